"""Sharded indexes on a cluster of Ray (``pip install garlic-ann[ray]``): build, serve, join, append.

Indexes are those of ``garlic_ann.sharded``, byte for byte. The folder of an index must be one that all machines share. Without a
cluster, Ray runs on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

try:
    import ray as _ray  # noqa: F401
except ImportError:
    raise ImportError("garlic_ann.ray needs Ray; install it with `pip install garlic-ann[ray]`") from None

from .._options import Metric, ShardParameters
from ..sharded import ShardedIndex, _build, _change, _manifest, clean, open, verify
from ..sharded._index import plain_filter
from ..sharded._place import Settings
from ._cluster import Cluster, blocks_of, connect
from ._join import neighbors_of
from ._service import Service, start

if TYPE_CHECKING:
    from ray.data import Dataset
    from typing_extensions import Unpack

__all__ = ["Service", "ShardedIndex", "append", "build", "clean", "compact", "join", "open", "serve", "verify"]


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
    threads: int = 1,
    **config: Unpack[ShardParameters],
) -> ShardedIndex:
    """Builds a sharded index in the folder ``path`` with tasks of Ray.

    ``data`` is a data set of Ray, or what :func:`garlic_ann.sharded.build` takes; the other parameters are also those of that
    function. ``threads`` is the number of processors of a task. Machines may be lost meanwhile: their tasks run again elsewhere
    and write the same bytes. If the program itself ends, a second call with ``resume=True`` uses the shards that are finished.
    """
    connect()
    settings = Settings(metric, seed, dict(config), threads)
    options = _build.Options(vectors, ids, columns, shards, cells, sample, recall, resume, settings)
    _build.build(Cluster(threads), blocks_of(data), path, options)
    return open(path)


def append(
    data: Any,
    path: str | os.PathLike[str],
    *,
    vectors: str | None = None,
    ids: str | None = None,
    threads: int = 1,
) -> ShardedIndex:
    """Adds points with tasks of Ray: new segments of the same model. See :func:`garlic_ann.sharded.append`."""
    connect()
    _change.append(Cluster(threads), blocks_of(data), path, (vectors, ids), threads)
    return open(path)


def compact(path: str | os.PathLike[str], *, threads: int = 1) -> ShardedIndex:
    """Merges the segments of each shard into one, each shard in a task of Ray."""
    connect()
    _change.compact(Cluster(threads), path, threads)
    return open(path)


def serve(
    path: str | os.PathLike[str],
    *,
    replicas: int = 1,
    shards: int | None = None,
    cpus: float = 1,
    wait: float = 0.002,
    batch: int = 256,
    watch: float = 5.0,
    timeout: float = 120.0,
) -> Service:
    """Starts actors that search a sharded index.

    Parameters
    ----------
    path
        The folder of the index.
    replicas
        Actors for each group of shards; searches go on while one of them is left.
    shards
        Number of groups that the shards are divided into; as many as there are shards unless given.
    cpus
        Processors that Ray reserves for each actor.
    wait, batch
        A search waits this many seconds for others, unless so many queries are waiting already; they are answered together.
    watch
        Seconds after which a search looks whether the folder has a new index.
    timeout
        Seconds after which it is an error that some actors have not started, because the cluster has too few free processors.
    """
    connect()
    folder = os.path.abspath(path)
    manifest, _ = _manifest.read(folder)
    groups = len(manifest.shards) if shards is None else shards
    if replicas < 1 or groups < 1:
        raise ValueError(f"there are {replicas} replicas of {groups} groups of shards; at least one of each is needed")
    return start(folder, replicas, min(groups, len(manifest.shards)), cpus, wait, batch, watch, timeout)


def join(
    queries: Dataset,
    index: str | os.PathLike[str] | Service,
    k: int = 10,
    recall: float | None = None,
    *,
    vectors: str = "vector",
    exclude: str | None = None,
    filter: Any = None,
    exact: bool = False,
    batch_size: int = 1024,
    cpus: float = 1,
) -> Dataset:
    """The ``k`` nearest neighbours of every row of a data set, as new columns ``neighbors`` and ``distances``, nearest first.

    ``index`` is the folder of a sharded index, which every task then maps, or a :class:`Service`, whose actors are then asked.
    Nothing is done before the result is read. ``vectors`` is the column of the queries. ``exclude`` names a column with
    identifiers of the index: the point with that identifier is left out, for data that are joined with themselves.
    """
    connect()
    if isinstance(index, (str, os.PathLike)):
        folder = os.path.abspath(index)
        asked: Any = (folder, _manifest.read(folder)[1])
    else:
        asked = index
    options: dict[str, Any] = {"k": k, "recall": recall, "vectors": vectors, "exclude": exclude, "exact": exact}
    # Every batch reads the filter.
    options["filter"] = plain_filter(filter)
    return queries.map_batches(
        neighbors_of,  # type: ignore[arg-type]
        fn_kwargs={"index": asked, "options": options},
        batch_format="pyarrow",
        batch_size=batch_size,
        num_cpus=cpus,
    )
