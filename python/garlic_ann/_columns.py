"""Columns of points: what users give, as the extension takes it, and the other way round."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A name, a type, the values, and which of them there are.
Column = tuple[str, str, Any, "NDArray[np.bool_] | None"]


def columns_of(columns: Any) -> Any:
    """An object with ``__arrow_c_stream__``, or a list of columns as the extension takes them.

    Data frames and tables of pyarrow, pandas and polars have that method. A dictionary has a list or an array for each
    column, where ``None`` stands for a missing value.
    """
    if hasattr(columns, "__arrow_c_stream__"):
        try:
            return _stream(columns)
        except ImportError:
            # pandas needs pyarrow for it.
            columns = {str(name): columns[name] for name in columns.columns}
    if not isinstance(columns, Mapping):
        raise TypeError(
            "columns: a data frame, a table of Arrow or a dictionary of arrays is needed, this is"
            f" {type(columns).__name__}"
        )
    return [_column(str(name), values) for name, values in columns.items()]


class _stream:
    """A table whose capsule has been made, because pandas finds out only then that it lacks pyarrow."""

    def __init__(self, table: Any) -> None:
        self._capsule = table.__arrow_c_stream__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._capsule


def _column(name: str, values: Any) -> Column:
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        valid = ~np.ma.getmaskarray(values)
        values = values.data
    array = _array(values)
    if array.ndim != 1:
        raise ValueError(f"column `{name}`: a list is needed, this has the shape {array.shape}")
    if array.dtype.kind == "f" and array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    kind = array.dtype.kind
    if kind in "biu" or array.dtype in (np.float32, np.float64):
        return name, array.dtype.name, _plain(array, array.dtype.newbyteorder("=")), valid
    if kind == "M":
        return _times(name, array, valid)
    if kind == "U":
        return name, "text", _objects(array, valid), None
    if kind == "S":
        return name, "bytes", _objects(array, valid), None
    if kind == "O":
        return _of_objects(name, _objects(array, valid))
    raise ValueError(f"column `{name}`: values of type {array.dtype} cannot be stored")


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, (list, tuple)):
        # NumPy would make text of a list of text and numbers.
        array = np.empty(len(values), object)
        array[:] = values
        return array
    return np.asarray(values)


def _plain(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    return np.array(array, dtype, order="C", copy=True)


def _objects(array: NDArray[Any], valid: NDArray[np.bool_] | None) -> list[Any]:
    values: list[Any] = array.tolist()
    if valid is None:
        return values
    return [value if there else None for value, there in zip(values, valid)]


def _times(name: str, array: NDArray[Any], valid: NDArray[np.bool_] | None) -> Column:
    unit = np.datetime_data(array.dtype)[0]
    if unit in ("Y", "M", "W"):
        unit = "D"
    elif unit not in ("D", "s", "ms", "us", "ns"):
        unit = "s" if unit in ("h", "m") else "ns"
    there = ~np.isnat(array) if valid is None else valid & ~np.isnat(array)
    ticks = array.astype(f"datetime64[{unit}]").astype(np.int64)
    ticks[~there] = 0
    kind = np.int32 if unit == "D" else np.int64
    return name, f"datetime64[{unit}]", _plain(ticks, kind), there


def _is_missing(value: Any) -> bool:
    # pandas has two values of its own for it; that of numbers is not equal to itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _of_objects(name: str, values: list[Any]) -> Column:
    """A column of Python's objects, all of one type but for missing ones."""
    missing = [_is_missing(value) for value in values]
    known = [value for value, gone in zip(values, missing) if not gone]
    valid = ~np.array(missing, bool) if any(missing) else None

    def all_are(*types: type) -> bool:
        return all(isinstance(value, types) for value in known)

    def filled(with_: Any, dtype: Any) -> NDArray[Any]:
        return np.array([with_ if gone else v for v, gone in zip(values, missing)], dtype)

    if all_are(str, uuid.UUID):
        return name, "text", [None if gone else str(v) for v, gone in zip(values, missing)], None
    if all_are(bytes):
        return name, "bytes", [None if gone else v for v, gone in zip(values, missing)], None
    if all_are(bool, np.bool_):
        return name, "bool", filled(False, np.bool_), valid
    if all_are(int, np.integer) and not any(isinstance(value, bool) for value in known):
        try:
            return name, "int64", filled(0, np.int64), valid
        except OverflowError:
            raise ValueError(f"column `{name}`: a number does not fit 64 bits") from None
    if all_are(int, float, np.integer, np.floating) and not any(isinstance(v, bool) for v in known):
        return name, "float64", filled(0.0, np.float64), valid
    if all_are(datetime.date):
        whole_days = not any(isinstance(value, datetime.datetime) for value in known)
        if any(getattr(value, "tzinfo", None) is not None for value in known):
            known_zone = [v if gone else v.astimezone(datetime.timezone.utc).replace(tzinfo=None)
                          for v, gone in zip(values, missing)]
            values = known_zone
        unit = "D" if whole_days else "us"
        times = np.array(["NaT" if gone else v for v, gone in zip(values, missing)], f"datetime64[{unit}]")
        return _times(name, times, None)
    kinds = sorted({type(value).__name__ for value in known})
    raise ValueError(f"column `{name}`: the values must be of one type, these are of {', '.join(kinds)}")


def arrays(columns: list[tuple[str, str, Any]], shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Columns of the extension as arrays of a shape."""
    found = {}
    for name, kind, values in columns:
        if kind == "object":
            array = objects(values, shape)
        else:
            array = (values.view(kind) if kind else values).reshape(shape)
        found[name] = array
    return found


def objects(values: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A list as an array of Python's objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)
