"""Vectors as other packages have them, as arrays of NumPy. None of the packages is imported here.

Arrays that share their memory (``__array__``, ``__array_interface__``, DLPack) are not copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read(x: Any, what: str) -> NDArray[Any]:
    """What ``x`` holds, of any type and any number of axes; a column of equally long lists has two axes."""
    package = type(x).__module__.partition(".")[0]
    if isinstance(x, np.ma.MaskedArray):
        return _masked(x, what)
    if hasattr(x, "nnz") and hasattr(x, "toarray"):
        raise ValueError(
            f"{what}: this matrix is sparse, and an index stores dense vectors; use x.toarray() if that fits into memory, "
            "or reduce it first, for example with sklearn.decomposition.TruncatedSVD"
        )
    if package == "torch":
        # numpy reads neither tensors with gradients nor those of another device, and no bfloat16.
        x = x.detach().to("cpu")
    if str(getattr(x, "dtype", "")) == "torch.bfloat16":
        x = x.detach().to("cpu").float()
    if package == "pyarrow":
        return _arrow(x, what)
    if package == "polars":
        x = _polars(x, what)
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__") and not _has_array(x):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{what}: copy the array to the memory of the processor first ({error})") from None
    try:
        array = np.asarray(x)
    except (TypeError, BufferError) as error:
        raise ValueError(f"{what}: cannot be read as an array ({error})") from None
    except ValueError as error:
        raise ValueError(f"{what}: the rows are not equally long ({error})") from None
    if array.dtype.kind == "O":
        return _rows(array, what)
    return array


def _has_array(x: Any) -> bool:
    return hasattr(x, "__array__") or hasattr(x, "__array_interface__")


def _masked(x: np.ma.MaskedArray[Any, Any], what: str) -> NDArray[Any]:
    if np.ma.is_masked(x):
        raise ValueError(
            f"{what}: some values are masked, and distances need all of them; fill them in with x.filled(value), or leave "
            "out their rows with numpy.ma.compress_rows(x)"
        )
    return np.asarray(x.data)


def _rows(column: NDArray[Any], what: str) -> NDArray[Any]:
    """Rows of a column of lists, such as a Series of pandas has."""
    if column.ndim == 2 and column.shape[1] == 1 and _is_list(column.flat[0] if column.size else None):
        raise ValueError(f"{what}: this is a table; give its column of lists, as in table['embedding']")
    if column.ndim != 1 or not (len(column) and _is_list(column[0])):
        missing = [i for i, value in enumerate(column[:1]) if value is None]
        if missing:
            raise ValueError(f"{what}: row 0 has no vector; leave out rows without one")
        return column
    return _equal(column, what)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) or (hasattr(value, "__len__") and hasattr(value, "__array__"))


def _equal(column: Iterable[Any], what: str) -> NDArray[Any]:
    rows: list[NDArray[Any]] = []
    for number, value in enumerate(column):
        row = None if value is None else np.asarray(value)
        if row is None or row.ndim != 1:
            raise ValueError(f"{what}: row {number} has no vector; leave out rows without one")
        if rows and len(row) != len(rows[0]):
            raise ValueError(
                f"{what}: the rows are not equally long: row {number} has {len(row)} numbers, row 0 has {len(rows[0])}"
            )
        rows.append(row)
    return np.stack(rows)


def _polars(x: Any, what: str) -> Any:
    """Values of a column of lists as one array; anything else as it is."""
    if not hasattr(x, "list") or str(x.dtype).partition("(")[0] != "List":
        return x
    if not len(x):
        return np.empty((0, 0), np.float32)
    lengths = x.list.len().to_numpy()
    _check_lengths(lengths, x.is_null().to_numpy(), what, 0)
    values = x.explode()
    if values.null_count():
        row = int(values.is_null().arg_max() or 0) // int(lengths[0])
        raise ValueError(f"{what}: row {row} has a missing number; fill it in, or leave out the row")
    return values.to_numpy().reshape(len(x), -1)


def _arrow(x: Any, what: str, first: int = 0) -> NDArray[Any]:
    """Values of a column of pyarrow: lists as rows. Errors count rows from ``first`` on."""
    if hasattr(x, "column_names"):
        raise ValueError(f"{what}: this is a table; give one of its columns ({', '.join(x.column_names)})")
    chunks = x.chunks if hasattr(x, "chunks") else [x]
    arrays = []
    for chunk in chunks:
        # An extension type, such as that of tensors of one shape, has plain lists inside.
        chunk = getattr(chunk, "storage", chunk)
        if len(chunk):
            arrays.append(_chunk(chunk, what, first))
        first += len(chunk)
    if not arrays:
        return np.empty((0, 0), np.float32)
    if len({array.shape[1:] for array in arrays}) > 1:
        raise ValueError(f"{what}: the rows are not equally long: {arrays[0].shape[1]} and {arrays[-1].shape[1]} numbers")
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


# For those who know that it is a column of pyarrow.
arrow_rows = _arrow


def _chunk(chunk: Any, what: str, first: int) -> NDArray[Any]:
    missing = np.asarray(chunk.is_null())
    if not hasattr(chunk, "flatten"):
        if missing.any():
            raise ValueError(f"{what}: entry {first + int(missing.argmax())} is missing")
        return np.asarray(chunk)
    size = getattr(chunk.type, "list_size", None)
    lengths = np.asarray(chunk.value_lengths()) if size is None else np.full(len(chunk), size)
    _check_lengths(lengths, missing, what, first)
    values = chunk.flatten()
    if values.null_count:
        row = first + int(np.asarray(values.is_null()).argmax()) // int(lengths[0])
        raise ValueError(f"{what}: row {row} has a missing number; fill it in, or leave out the row")
    return np.asarray(values).reshape(len(chunk), -1)


def _check_lengths(lengths: NDArray[Any], missing: NDArray[Any], what: str, first: int) -> None:
    if missing.any():
        raise ValueError(f"{what}: row {first + int(missing.argmax())} has no vector; leave out rows without one")
    other = lengths != lengths[0]
    if other.any():
        row = int(other.argmax())
        raise ValueError(
            f"{what}: the rows are not equally long: row {first + row} has {lengths[row]} numbers, row {first} has {lengths[0]}"
        )
    if lengths[0] == 0:
        raise ValueError(f"{what}: the rows are empty; a vector has at least one number")
