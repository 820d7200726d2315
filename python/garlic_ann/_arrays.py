"""What users give, as the extension takes it: float32 rows, unsigned identifiers, filters."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._columns import columns_of as columns_of
from ._columns import objects as objects
from ._garlic import Filter, Handle
from ._inputs import read

# Kinds of numbers: booleans, signed and unsigned integers, floats.
_NUMBERS = "biuf"


def vectors(x: ArrayLike, what: str = "vectors") -> NDArray[np.float32]:
    """C-contiguous float32 of one or two axes; a copy unless ``x`` is that already."""
    array = _numbers(x, what)
    # float64 values beyond float32 become infinity, which the library refuses by name.
    with np.errstate(over="ignore"):
        return np.require(array, np.float32, ["C_CONTIGUOUS", "ALIGNED"])


def own_vectors(x: ArrayLike, what: str = "vectors") -> NDArray[np.float32]:
    """The same, always a copy, and one only.

    What is checked must be what is kept, and another thread may change ``x`` while the library works.
    """
    array = _numbers(x, what)
    with np.errstate(over="ignore"):
        return np.array(array, np.float32, order="C", copy=True)


def source(x: ArrayLike, what: str = "vectors") -> tuple[NDArray[Any], str]:
    """What a build copies, and its type: the array itself if the extension reads that type, otherwise a copy as float32.

    The extension makes the one copy as float32 that a build works on, so float16 and bfloat16 need no other. They go
    there as the bits of their numbers.
    """
    array = _numbers(x, what)
    name = array.dtype.name
    plain = array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative
    if plain and name in ("float16", "bfloat16"):
        return array.view(np.uint16), name
    if plain and name in ("float32", "float64"):
        return array, name
    return own_vectors(array, what), "own"


def _numbers(x: Any, what: str) -> NDArray[Any]:
    array = read(x, what)
    # numpy knows bfloat16 only through ml_dtypes, whose type is of no kind but converts to float32 without loss.
    if array.dtype.kind not in _NUMBERS and array.dtype.name != "bfloat16":
        raise ValueError(f"{what}: numbers are needed, these are of type {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{what}: an array of one or two axes is needed, this one has the shape {array.shape}"
        )
    return array


def identifiers(ids: Any) -> NDArray[np.uint64] | list[str]:
    """Identifiers as an array of unsigned numbers or as a list of text, always a copy, for the reason that
    :func:`own_vectors` makes one.

    Numbers from 2**63 on are left for the library to refuse.
    """
    if isinstance(ids, (set, frozenset)):
        ids = sorted(ids, key=str) if any(isinstance(i, (str, uuid.UUID)) for i in ids) else sorted(ids)
    if isinstance(ids, (str, uuid.UUID)):
        return [str(ids)]
    if is_plain_iterable(ids):
        ids = list(ids)
    names = _names(ids)
    if names is not None:
        return names
    array = np.asarray(ids)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(f"identifiers: a list is needed, this has the shape {array.shape}")
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.dtype.kind in "Of" and _whole(ids):
        raise ValueError("identifiers must be from 0 to 2^63 - 1")
    if array.dtype.kind not in "iu":
        raise ValueError(f"identifiers: whole numbers are needed, these are of type {array.dtype}")
    if array.dtype.kind == "i" and array.min() < 0:
        raise ValueError(f"the identifier {array.min()} is negative; identifiers begin with 0")
    return np.array(array, np.uint64, order="C", copy=True)


def is_plain_iterable(values: Any) -> bool:
    """Whether it has values one after the other that NumPy does not see: generators, sets, keys, bitmaps."""
    is_array = isinstance(values, (str, bytes, list, tuple, range)) or hasattr(values, "dtype") or hasattr(values, "__array__")
    return isinstance(values, Iterable) and not is_array


def _names(ids: Any) -> list[str] | None:
    """Text and UUIDs as text; nothing for anything else."""
    array = ids if isinstance(ids, (list, tuple)) or hasattr(ids, "dtype") else np.asarray(ids)
    kind = getattr(getattr(array, "dtype", None), "kind", "O")
    if kind not in "OUT" or np.ndim(array) != 1:
        return None
    values = array.tolist() if hasattr(array, "tolist") else list(array)
    text = [isinstance(value, (str, uuid.UUID)) for value in values]
    if not any(text):
        return None
    if not all(text):
        other = values[text.index(False)]
        raise ValueError(
            f"identifiers: {other!r} is neither text nor a UUID, but others are; give all points names, or all numbers"
        )
    return [str(value) for value in values]


def cell_numbers(partition: ArrayLike) -> list[int]:
    """The cell of each row, as whole numbers below 2**32."""
    array = np.asarray(partition)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            "partition: a list of whole numbers is needed, the cell of each row;"
            f" this is of type {array.dtype} and has the shape {array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= 2**32):
        raise ValueError(
            "partition: cells are numbered from 0 to 2^32 - 1,"
            f" these from {array.min()} to {array.max()}"
        )
    return [int(cell) for cell in array]


def _whole(ids: Any) -> bool:
    """Whether they are all whole numbers, too large for any type of NumPy or for a common one."""
    ids = [ids] if np.ndim(ids) == 0 else ids
    return not isinstance(ids, np.ndarray) and all(isinstance(i, (int, np.integer)) for i in ids)


def filter_of(allowed: Any) -> Filter:
    """Makes a filter that many searches can share; ``search`` makes one by itself of what it is given.

    ``allowed`` is one of these:

    - an expression over the columns, as text: ``"lang = 'en' AND year > 2015"`` (see ``docs/guide/columns.md``);
    - a list or array of identifiers, a set or a bitmap of them (anything that can be iterated over, such as
      ``pyroaring.BitMap``);
    - an array of booleans with an entry for every row, in the order in which rows were given to the build and to ``add``;
    - a function of an identifier. It is asked about every point once for every state of the index; what it raises, the
      search raises.

    >>> import garlic_ann as garlic
    >>> garlic.filter(range(0, 1000, 2))
    Filter(list of 500)
    >>> garlic.filter("year > 2015")
    Filter(year > 2015)
    """
    if isinstance(allowed, Filter):
        return allowed
    if isinstance(allowed, str):
        return Filter.of_expression(allowed)
    if callable(allowed):
        return Filter.of_function(allowed)
    if is_plain_iterable(allowed):
        listed = list(allowed)
        if any(isinstance(value, (str, uuid.UUID)) for value in listed):
            return Filter.of_ids(listed)
        try:
            return Filter.of_ids(np.fromiter(listed, np.int64, len(listed)))
        except OverflowError:
            raise ValueError("identifiers must be from 0 to 2^63 - 1") from None
    array = np.asarray(allowed)
    if array.dtype.kind != "b":
        return Filter.of_ids(allowed if array.dtype.kind in "OU" else array)
    if array.ndim != 1:
        raise ValueError(f"filter: a mask has one axis, this one has the shape {array.shape}")
    return Filter.of_mask(np.array(array, np.bool_, order="C", copy=True))
