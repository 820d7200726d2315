"""The actor that searches shards. Requests that wait at the same time are answered as one batch."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sharded import _manifest
from ..sharded._reader import ShardReader
from ..sharded._route import Found

# The current index and the one before, which requests may still be on their way to.
_KEPT_VERSIONS = 2
# Queries, and where their answer goes.
Waiting = list[tuple[NDArray[np.float32], "asyncio.Future[Found]"]]


class StaleVersion(Exception):
    """The folder has another index now than the one that was asked for."""


def version_of(data: bytes) -> str:
    """What tells the bytes of manifests apart."""
    return hashlib.sha256(data).hexdigest()[:16]


def _fail(future: asyncio.Future[Found], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


class ShardServer:
    """Searches any shard of the index; those that it was given are opened before the first request."""

    def __init__(self, path: str, own: int, groups: int, wait: float, batch: int) -> None:
        self._path = path
        self._own, self._groups = own, groups
        self._wait, self._batch = wait, batch
        self._versions: dict[str, list[ShardReader]] = {}
        self._waiting: dict[Any, Waiting] = {}
        self._worker = ThreadPoolExecutor(1)
        self._batches = 0
        self._requests = 0

    async def load(self, version: str) -> str:
        """Opens this version of the index beside those that are open."""
        self._readers(version)
        return version

    def _readers(self, version: str) -> list[ShardReader]:
        if version not in self._versions:
            manifest, data = _manifest.read(self._path)
            if version_of(data) != version:
                raise StaleVersion(version)
            readers = [ShardReader(self._path, shard) for shard in manifest.shards]
            for reader in readers[self._own :: self._groups]:
                reader.indexes()
            self._versions[version] = readers
            for old in list(self._versions)[:-_KEPT_VERSIONS]:
                del self._versions[old]
        return self._versions[version]

    async def search(
        self,
        version: str,
        shard: int,
        queries: NDArray[np.float32],
        k: int,
        recall: float | None,
        exact: bool,
        filter: Any,
        columns: Sequence[str] | None,
    ) -> Found:
        reader = self._readers(version)[shard]
        self._requests += 1
        key = (version, shard, k, recall, exact, filter, None if columns is None else tuple(columns))
        if filter is not None and not isinstance(filter, str):
            # Lists of identifiers are rarely the same.
            return await self._run(reader, queries, key)
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, [])
        waiting.append((queries, future))
        if sum(len(rows) for rows, _ in waiting) >= self._batch:
            self._start(reader, key, waiting)
        elif len(waiting) == 1:
            asyncio.get_running_loop().call_later(self._wait, self._start, reader, key, waiting)
        return await future

    def _start(self, reader: ShardReader, key: Any, waiting: Waiting) -> None:
        """Begins to answer everything that waits with the same parameters, unless that has begun."""
        if self._waiting.get(key) is waiting:
            del self._waiting[key]
            asyncio.ensure_future(self._answer(reader, key, waiting))

    async def _answer(self, reader: ShardReader, key: Any, waiting: Waiting) -> None:
        try:
            distances, ids, columns = await self._run(reader, np.concatenate([rows for rows, _ in waiting]), key)
        except Exception as error:
            if len(waiting) == 1:
                _fail(waiting[0][1], error)
            else:
                # One query may be wrong; the others have an answer.
                for one in waiting:
                    await self._answer(reader, key, [one])
            return
        start = 0
        for rows, future in waiting:
            part = slice(start, start + len(rows))
            start += len(rows)
            if not future.done():
                future.set_result((distances[part], ids[part], {name: values[part] for name, values in columns.items()}))

    async def _run(self, reader: ShardReader, queries: NDArray[np.float32], key: Any) -> Found:
        _, _, k, recall, exact, filter, columns = key
        self._batches += 1
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, reader.search, queries, k, recall, exact, filter, columns)

    async def stats(self) -> dict[str, Any]:
        import ray

        node = ray.get_runtime_context().get_node_id()
        return {"requests": self._requests, "batches": self._batches, "versions": list(self._versions), "node": node}
