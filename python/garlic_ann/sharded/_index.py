"""A sharded index in one process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _garlic
from .._arrays import identifiers, is_plain_iterable, vectors
from .._garlic import FormatError
from . import _manifest
from ._manifest import Manifest
from ._reader import ShardReader
from ._route import Parts, Plan, Router, best

# Models are trained again when the index has grown by this factor, or when points that were appended have increased the mean
# squared distance from cells by this share, as an index that is not sharded is.
_RETRAIN_GROWTH = 2.0
_MAX_SPREAD_GROWTH = 0.05


_FILTERS = (
    "filter: a sharded index takes an expression over the columns or a list of identifiers; it takes no mask, no function and"
    " no filter that was made for other indexes"
)

# Number of neighbours, recall target in a shard, whether it is exact, filter, columns, threads.
How = tuple[int, Union[float, None], bool, Any, Union[list[str], None], Union[int, None]]


class Routed:
    """What all ways to search a sharded index share. ``_ask`` searches shards by a plan."""

    _router: Router

    def _ask(self, plan: Plan, queries: NDArray[np.float32], how: How) -> Parts:
        raise NotImplementedError

    @property
    def manifest(self) -> Manifest:
        """What ``manifest.json`` says."""
        return self._router.manifest

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self.manifest.dim

    @property
    def metric(self) -> str:
        """``euclidean``, ``cosine`` or ``inner_product``."""
        return self.manifest.metric

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.manifest.columns)

    def __len__(self) -> int:
        return self.manifest.points

    def search(
        self,
        queries: ArrayLike,
        k: int = 10,
        *,
        recall: float | None = None,
        filter: Any = None,
        exact: bool = False,
        columns: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The ``k`` nearest neighbours: ``(distances, ids)``, with ``columns`` ``(distances, ids, columns)``.

        Results are as those of :meth:`garlic_ann.Index.search`. ``recall`` is the target over all shards. A query is searched
        in the shards of its nearest cells, as many as held-out points needed to reach the target. Searches with ``exact``, with
        a filter, for more than 100 neighbours or with a target above .99 go to all shards. A filter is an expression over the
        columns, or identifiers: a list, an array, or anything that can be iterated over.
        """
        if isinstance(columns, str):
            raise TypeError(f"columns: a list of names is needed, such as [{columns!r}]")
        if isinstance(k, bool) or k < 1:
            raise ValueError(f"search parameter `k` is {k}: must be at least 1")
        filter = plain_filter(filter)
        asked = vectors(queries, "queries")
        rows = np.atleast_2d(asked)
        if rows.shape[1] != self.dim:
            raise ValueError(f"the index was built for dimension {self.dim}, the query has {rows.shape[1]}")
        wanted = None if columns is None else list(columns)
        plan = self._router.plan(rows, k, recall, exact, filter is not None)
        parts = self._ask(plan, rows, (k, plan.recall, plan.exact, filter, wanted, threads))
        distances, ids, joined = best(parts, len(rows), k, self.manifest.named, wanted)
        if asked.ndim == 1:
            distances, ids, joined = distances[0], ids[0], {name: values[0] for name, values in joined.items()}
        return (distances, ids) if columns is None else (distances, ids, joined)

    def shards_of(self, queries: ArrayLike, k: int = 10, *, recall: float | None = None) -> NDArray[np.bool_]:
        """For each query and shard, whether a search with this target looks into the shard."""
        rows = np.atleast_2d(vectors(queries, "queries"))
        looked = np.zeros((len(rows), len(self.manifest.shards)), bool)
        for shard, chosen in self._router.plan(rows, k, recall, False, False).shards:
            looked[chosen, shard] = True
        return looked

    def drift(self) -> dict[str, Any]:
        """How far appended points differ from those that the model was trained on, and whether to build again.

        ``spread`` compares mean squared distances from cells: near 1 while the data do not change. ``retrain`` says that a new
        build pays off: the index has doubled, or appended points lie far from the cells.
        """
        spread, points = self.manifest.spread, self.manifest.points
        ratio = spread.added / spread.built if spread.added_points and spread.built > 0 else 1.0
        share = spread.added_points / max(points, 1)
        growth = points / max(spread.built_points, 1)
        strange = (ratio - 1.0) * share > _MAX_SPREAD_GROWTH
        return {
            "built": spread.built_points,
            "added": spread.added_points,
            "spread": ratio,
            "segments": sum(len(shard.segments) for shard in self.manifest.shards),
            "retrain": bool(strange or growth >= _RETRAIN_GROWTH),
        }


def plain_filter(filter: Any) -> Any:
    """A filter that all segments can read, each for itself: an expression, or identifiers that can be read many times."""
    if filter is None or isinstance(filter, str):
        return filter
    # A shared filter may be a mask or a function, and cannot be sent to other processes.
    if callable(filter) or isinstance(filter, _garlic.Filter):
        raise TypeError(_FILTERS)
    listed = list(filter) if is_plain_iterable(filter) else filter
    if np.asarray(listed).dtype.kind == "b":
        raise TypeError(_FILTERS)
    return listed


class ShardedIndex(Routed):
    """A sharded index, searched in this process; :func:`open` makes it. Its files are mapped when they are first needed.

    The index stays as it was opened when the folder changes; :meth:`reload` follows.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: bytes | None = None) -> None:
        self.path = os.path.abspath(path)
        self._load(manifest)

    def _load(self, data: bytes | None = None) -> None:
        """Opens what the folder has now, or a former manifest whose files are still there."""
        manifest, self._bytes = _manifest.read(self.path) if data is None else _manifest.parse(data, self.path)
        _manifest.check_files(self.path, manifest)
        self._router = Router(self.path, manifest)
        self._shards = [ShardReader(self.path, shard) for shard in manifest.shards]

    def reload(self) -> bool:
        """Opens the index that the folder has now. Returns whether it is another one."""
        if _manifest.read(self.path)[1] == self._bytes:
            return False
        self._load()
        return True

    def _ask(self, plan: Plan, queries: NDArray[np.float32], how: How) -> Parts:
        return [(rows, self._shards[shard].search(queries[rows], *how)) for shard, rows in plan.shards]

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """For each identifier, whether the index has it."""
        asked = identifiers(ids)
        there = [index.contains(asked) for shard in self._shards for index in shard.indexes()]
        found: NDArray[np.bool_] = np.logical_or.reduce(there)
        return found

    def get(self, ids: ArrayLike) -> NDArray[np.float32]:
        """The vectors of some identifiers, one per row. Raises ``KeyError`` for one that does not exist."""
        plain = identifiers(ids)
        asked: NDArray[Any] = np.array(plain, object) if isinstance(plain, list) else plain
        found = np.zeros((len(asked), self.dim), np.float32)
        missing = np.ones(len(asked), bool)
        for index in (index for shard in self._shards for index in shard.indexes()):
            there = index.contains(asked) & missing
            if there.any():
                found[there] = index.get(asked[there])
                missing &= ~there
        if missing.any():
            raise KeyError(f"there is no point {asked[missing].tolist()[0]!r}")
        return found

    def __repr__(self) -> str:
        return f"ShardedIndex({len(self)} x {self.dim}, {self.metric}, {len(self.manifest.shards)} shards)"


def verify(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Checks every byte of a sharded index, and describes it; errors name the file."""
    folder = os.path.abspath(path)
    manifest, _ = _manifest.read(folder)
    _manifest.check_files(folder, manifest)
    for segment in manifest.segments():
        place = os.path.join(folder, segment.file)
        if _manifest.describe(folder, segment.file, segment.points) != segment:
            raise FormatError(f"{place}: this file of the sharded index is damaged: its bytes are not those that were written")
        if segment.file.endswith(".garlic"):
            try:
                _garlic.verify(place)
            except FormatError as error:
                raise FormatError(f"{place}: this file of the sharded index is damaged ({error})") from None
    return {
        "points": manifest.points,
        "dim": manifest.dim,
        "metric": manifest.metric,
        "shards": len(manifest.shards),
        "segments": sum(len(shard.segments) for shard in manifest.shards),
        "fingerprint": manifest.fingerprint,
        "generation": manifest.generation,
        "bytes": sum(segment.size for segment in manifest.segments()),
    }


def clean(path: str | os.PathLike[str]) -> list[str]:
    """Deletes files of other builds and former generations, which the manifest does not name. Returns their names.

    Call it when no build is going on here and nobody searches a former index.
    """
    folder = os.path.abspath(path)
    named = {segment.file for segment in _manifest.read(folder)[0].segments()}
    ours = (".garlic", "-held-out.npz", ".tmp", "-build.lock")
    gone = sorted(name for name in os.listdir(folder) if name.endswith(ours) and name not in named)
    for name in gone:
        os.unlink(os.path.join(folder, name))
    return gone
