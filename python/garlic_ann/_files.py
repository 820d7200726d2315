"""Vectors, identifiers and columns from files that other programs write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _garlic
from ._arrays import vectors as as_vectors
from ._garlic import Table
from ._search import Columns, Identifiers


class Points(NamedTuple):
    """What a file has for an index: ``garlic.build(points.vectors, ids=points.ids, columns=points.columns)``."""

    vectors: NDArray[np.float32]
    """The vectors, one a row."""

    ids: NDArray[Any] | None
    """Their identifiers; ``None`` if no column was named for them."""

    columns: Table | None
    """The other columns, for an index, or for ``pyarrow.table``, ``polars.DataFrame`` or pandas; ``None`` if there are none."""


def read(
    path: str | os.PathLike[str],
    vectors: str | None = None,
    *,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
) -> Points:
    """Reads a file, or all files of a folder, as the program ``garlic`` does.

    The extension names the format: ``.parquet``, ``.arrow``, ``.feather``, ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.hdf5``,
    ``.fvecs``, ``.bvecs``, ``.fbin`` or ``.u8bin``. It needs no other package.

    Parameters
    ----------
    path
        The file or the folder.
    vectors
        The column of lists of numbers, the array or the set that has the vectors; the only one that fits unless given.
    ids
        The column that has the identifiers: whole numbers, text or UUIDs.
    columns
        Names of the other columns to read; all of them unless given.

    Examples
    --------
    >>> import tempfile, numpy as np, garlic_ann as garlic
    >>> place = tempfile.TemporaryDirectory()
    >>> garlic.write(place.name + "/x.parquet", np.eye(2), ids=["a", "b"], columns={"year": [1999, 2020]})
    >>> points = garlic.read(place.name + "/x.parquet", ids="id")
    >>> points.vectors.tolist(), points.ids.tolist(), points.columns
    ([[1.0, 0.0], [0.0, 1.0]], ['a', 'b'], Table(2 rows: year))
    >>> index = garlic.build(points.vectors, ids=points.ids, columns=points.columns)
    >>> place.cleanup()
    """
    if isinstance(columns, str):
        raise TypeError(f"columns: a list of names is needed, such as [{columns!r}]")
    return Points(*_garlic.read(path, vectors, ids, None if columns is None else list(columns)))


def write(
    path: str | os.PathLike[str],
    x: ArrayLike,
    ids: Identifiers | None = None,
    columns: Columns | None = None,
) -> None:
    """Writes vectors as a column ``vector`` of a Parquet file, with identifiers as ``id`` and other columns.

    The file is replaced atomically. ``index.get(index.ids())`` has the vectors of an index, and ``index.rows(index.ids())`` its
    columns.
    """
    if os.path.splitext(path)[1] not in (".parquet", ".pq"):
        raise ValueError(f"{os.fspath(path)}: only Parquet is written; use a name that ends in .parquet")
    _garlic.write(path, np.atleast_2d(as_vectors(x)), ids, columns)
