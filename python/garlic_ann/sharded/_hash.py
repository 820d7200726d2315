"""Hashes of rows, which choose samples and tell data sets apart. They do not depend on how rows are cut into blocks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._source import Points, pyarrow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

Hashes = NDArray[np.uint64]
# The hash of a value that is missing: any number.
_MISSING = 0x6A09E667F3BCC909


def mix(values: Hashes) -> Hashes:
    """Spreads the bits of numbers: the finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        x = values + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def of_ids(ids: pa.Array, seed: int) -> Hashes:
    """A hash of each identifier."""
    salt = mix(np.array([seed & (2**64 - 1)], np.uint64))
    return mix(_of_column(ids) ^ salt)


def content(points: Points) -> int:
    """A sum over the rows, of identifier, vector and columns; the order of rows does not matter."""
    total = of_ids(points.ids, 0)
    with np.errstate(over="ignore"):
        bits = points.vectors.view(np.uint32)
        factors = mix(np.arange(bits.shape[1], dtype=np.uint64)) | np.uint64(1)
        for start in range(0, len(bits), 4096):
            part = slice(start, start + 4096)
            total[part] += mix((bits[part] * factors).sum(axis=1, dtype=np.uint64))
        for number, name in enumerate(points.columns.column_names):
            salt = np.uint64(number + 1)
            total += mix(_of_column(points.columns.column(name).combine_chunks()) + salt)
        return int(mix(total).sum(dtype=np.uint64))


def _of_column(column: Any) -> Hashes:
    """A hash of each value; equal values have equal hashes, whatever else the block has."""
    types = pyarrow().types
    if types.is_integer(column.type) or types.is_floating(column.type):
        # Missing floats are NaN in NumPy, but whole numbers would become floats.
        filled = column.fill_null(0) if types.is_integer(column.type) else column
        wide = np.int64 if types.is_integer(column.type) else np.float64
        hashes = mix(np.asarray(filled).astype(wide).view(np.uint64))
        hashes[np.asarray(column.is_null())] = _MISSING
        return hashes
    encoded = column.dictionary_encode(null_encoding="encode")
    values = encoded.dictionary.to_pylist()
    known = [_MISSING if value is None else int.from_bytes(_digest(value), "little") for value in values]
    return np.array(known, np.uint64)[np.asarray(encoded.indices)] if len(column) else np.empty(0, np.uint64)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(value.encode() if isinstance(value, str) else repr(value).encode(), digest_size=8).digest()
