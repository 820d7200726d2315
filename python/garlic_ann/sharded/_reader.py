"""Searches the segments of one shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._index import Index
from ._manifest import Shard
from ._place import open_segment
from ._route import Found, Parts, best


class ShardReader:
    """The files of a shard, opened when they are first searched."""

    def __init__(self, folder: str, shard: Shard) -> None:
        self._folder = folder
        self._shard = shard
        self._indexes: list[Index] | None = None

    def indexes(self) -> list[Index]:
        if self._indexes is None:
            self._indexes = [open_segment(self._folder, segment) for segment in self._shard.segments]
        return self._indexes

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        recall: float | None,
        exact: bool,
        filter: Any,
        columns: Sequence[str] | None,
        threads: int | None = None,
    ) -> Found:
        """The ``k`` nearest neighbours of every row in this shard."""
        everyone = np.arange(len(queries))
        wanted = None if columns is None else list(columns)
        parts: Parts = []
        named = False
        for index in self.indexes():
            handle = index._have()
            named = handle.is_named
            effort = (recall, None, None, None, exact)
            distances, ids, *joined = handle.search(queries, k, effort, filter, threads, False, wanted)
            parts.append((everyone, (distances, ids, _arrays(joined, ids))))
        if len(parts) == 1:
            return parts[0][1]
        return best(parts, len(queries), k, named, wanted)


def _arrays(joined: list[Any], ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
    from .._columns import arrays

    return arrays(joined[0], ids.shape) if joined else {}
