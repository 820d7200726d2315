"""What users give, as the extension takes it: float32 rows, unsigned identifiers, filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def identifiers(ids: ArrayLike) -> NDArray[np.uint64]:
    """Identifiers as a list of unsigned numbers, always a copy, for the reason that :func:`own_vectors` makes one.

    Those from 2**63 on are left for the library to refuse.
    """
    if isinstance(ids, (set, frozenset)):
        ids = sorted(ids)
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


def filter_of(
    allowed: ArrayLike | Iterable[int] | Callable[[int], Any] | Filter, index: Handle | None = None
) -> Filter:
    """Makes a filter that many searches can share; ``search`` makes one by itself of what it is given.

    ``allowed`` is a list or array of identifiers, a set or a bitmap of them (anything with a length that can be
    iterated over, such as ``pyroaring.BitMap``), an array of booleans where entry ``i`` says whether identifier ``i``
    is allowed, or a function of an identifier. The function is asked about every point once for every state of the
    index; what it raises, the search raises.

    >>> import garlic_ann as garlic
    >>> even = garlic.filter(range(0, 1000, 2))
    >>> even
    Filter(list of 500)
    """
    if isinstance(allowed, Filter):
        return allowed
    if callable(allowed):
        return Filter.of_function(allowed)
    given: Any = allowed
    is_array = isinstance(given, (list, tuple)) or hasattr(given, "__array__")
    if not is_array and hasattr(given, "__len__") and hasattr(given, "__iter__"):
        try:
            return Filter.of_ids(np.fromiter(given, np.int64, len(given)))
        except OverflowError:
            raise ValueError("identifiers must be from 0 to 2^63 - 1") from None
    array = np.asarray(given)
    if array.dtype.kind != "b":
        return Filter.of_ids(array)
    if array.ndim != 1:
        raise ValueError(f"filter: a mask has one axis, this one has the shape {array.shape}")
    if index is not None and len(array) < index.next_id:
        # The largest identifiers may have been removed since.
        largest = index.ids()[-1:]
        if largest.size and len(array) <= largest[0]:
            raise ValueError(
                f"filter: the mask has {len(array)} entries, but there are identifiers up to {largest[0]}; "
                "give it an entry for each, or a list of identifiers"
            )
    return Filter.of_ids(np.flatnonzero(array))
