"""An index in many files: shards of whole cells of one model, and a manifest that makes them an index.

This module builds and searches in one process. ``garlic_ann.ray`` does the same on a cluster, and writes the same bytes.

>>> import tempfile, numpy as np
>>> from garlic_ann import sharded
>>> place = tempfile.TemporaryDirectory()
>>> x = np.random.default_rng(1).normal(size=(3000, 8)).astype(np.float32)
>>> index = sharded.build(x, place.name + "/index", shards=3)
>>> index
ShardedIndex(3000 x 8, euclidean, 3 shards)
>>> distances, ids = index.search(x[:2], k=1)
>>> ids.ravel().tolist()
[0, 1]
>>> len(sharded.append(x + 10, place.name + "/index"))
6000
>>> place.cleanup()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._options import Metric, ShardParameters
from . import _build, _change
from ._engine import Local
from ._index import ShardedIndex, clean, verify
from ._place import Settings
from ._source import blocks_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ShardedIndex", "append", "build", "clean", "compact", "open", "verify"]


def open(path: str | os.PathLike[str]) -> ShardedIndex:
    """Opens the sharded index of a folder. A file that is missing or has another size raises an error that names it."""
    return ShardedIndex(path)


def build(
    data: Any,
    path: str | os.PathLike[str],
    *,
    vectors: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    shards: int | None = None,
    cells: int | None = None,
    sample: int | None = None,
    recall: float | None = None,
    metric: Metric = "euclidean",
    seed: int = 0,
    resume: bool = False,
    threads: int | None = None,
    **config: Unpack[ShardParameters],
) -> ShardedIndex:
    """Builds a sharded index in the folder ``path``, in this process.

    Parameters
    ----------
    data
        A Parquet or Arrow file, a folder or a list of them, a table of pyarrow, or rows of NumPy.
    path
        The folder of the index. The index that is there stays in use until the new one is complete.
    vectors, ids, columns
        Names of the columns with vectors, with identifiers (numbers or text; row numbers without it), and of the other columns
        to keep (all of them without it).
    shards
        Number of shards; one for a million points unless given.
    cells, sample
        Number of cells of the model, and of the points that it is trained on.
    recall
        Default recall target of searches.
    resume
        Use the files that an earlier build of the same data and parameters has finished, and keep those of this one if it fails.
    metric, seed, threads, config
        As :func:`garlic_ann.build` takes them.
    """
    settings = Settings(metric, seed, dict(config), threads)
    options = _build.Options(vectors, ids, columns, shards, cells, sample, recall, resume, settings)
    _build.build(Local(), blocks_of(data), path, options)
    return open(path)


def append(
    data: Any,
    path: str | os.PathLike[str],
    *,
    vectors: str | None = None,
    ids: str | None = None,
    threads: int | None = None,
) -> ShardedIndex:
    """Adds points: new segments of the same model beside the old ones. Recall targets are measured again.

    Identifiers must be new. Without ``ids`` they count up from the largest one so far. ``index.drift()`` says when a new build
    pays off.
    """
    _change.append(Local(), blocks_of(data), path, (vectors, ids), threads)
    return open(path)


def compact(path: str | os.PathLike[str], *, threads: int | None = None) -> ShardedIndex:
    """Merges the segments of each shard into one."""
    _change.compact(Local(), path, threads)
    return open(path)
