"""Clients of a server that ``garlic serve`` runs.

:class:`Client` waits for answers, :class:`AsyncClient` is for ``asyncio``. Both give indexes with the methods of
:class:`garlic_ann.Index`. They need nothing but NumPy.

>>> from garlic_ann.client import Client                                  # doctest: +SKIP
>>> pages = Client("http://127.0.0.1:7878").index("pages")                # doctest: +SKIP
>>> distances, ids = pages.search(query, k=10, recall=0.95)               # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _remote
from ._remote import Answer, MissingError, RefusedError, Request, ServerError, Steps

__all__ = ["AsyncClient", "AsyncRemoteIndex", "Client", "MissingError", "RefusedError", "RemoteIndex", "ServerError"]

T = TypeVar("T")


class _Server:
    """Where a server is and how to reach it."""

    def __init__(self, url: str, key: str | None, timeout: float, certificates: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f"{url!r} is no address of a server; give one such as http://127.0.0.1:7878")
        self.host = parts.hostname
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.tls = ssl.create_default_context(cafile=certificates) if parts.scheme == "https" else None
        self.timeout = timeout
        self.name = parts.netloc.rpartition("@")[2]
        self.headers = {"authorization": f"Bearer {key}"} if key else {}


class RemoteIndex:
    """An index of a server. :meth:`Client.index` gives it; nothing is asked until a method is called."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"RemoteIndex({self.name!r} at {self._client})"

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        return bool(self.contains([id])[0])

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return int(self.info()["dim"])

    @property
    def metric(self) -> str:
        """``euclidean``, ``cosine`` or ``inner_product``."""
        return str(self.info()["metric"])

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [column["name"] for column in self.info()["columns"]]

    def drift(self) -> dict[str, Any]:
        """How far the data have moved since the index was built."""
        return dict(self.stats()["drift"])

    def save(self, path: str | Path) -> None:
        """Writes the index to a file here; :func:`garlic_ann.open` reads it."""
        Path(path).write_bytes(self.to_bytes())

    def info(self) -> dict[str, Any]:
        """Name, number of points, dimension, metric, columns, and whether it can be changed."""
        return self._client._run(_remote.ask("GET", _remote.index_path(self.name)))

    def count(self, filter: Any = None) -> int:
        """Number of points, or of those that a filter allows."""
        return self._client._run(_remote.count(self.name, filter))

    def stats(self) -> dict[str, Any]:
        """Sizes, memory, parameters, drift, training and storage."""
        return self._client._run(_remote.ask("GET", _remote.index_path(self.name) + "/stats"))

    def search(
        self,
        queries: ArrayLike,
        k: int = 10,
        *,
        recall: float | None = None,
        filter: Any = None,
        probes: int | None = None,
        bins: float | None = None,
        rerank: int | None = None,
        exact: bool = False,
        columns: Sequence[str] | None = None,
        return_stats: bool = False,
    ) -> Any:
        """The ``k`` nearest neighbours, as :meth:`garlic_ann.Index.search` gives them: ``(distances, ids)``, then ``columns``
        and statistics where they are asked for. ``filter`` is an expression or identifiers."""
        return self._client._run(_remote.search(
            self.name,
            queries,
            k,
            {
                "recall": recall,
                "filter": _remote.expression(filter),
                "probes": probes,
                "bins": bins,
                "rerank": rerank,
                "exact": exact,
            },
            columns,
            return_stats,
        ))

    def range_search(self, queries: ArrayLike, radius: float, *, recall: float | None = None, filter: Any = None) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[Any]]:
        """All points within ``radius``: limits, distances and identifiers, as :meth:`garlic_ann.Index.range_search` gives them."""
        return self._client._run(_remote.range_search(self.name, queries, radius, recall, filter))

    def add(self, x: ArrayLike, ids: Any = None, columns: Any = None) -> NDArray[Any]:
        """Adds vectors, all or none, and returns their identifiers. They are on the device of the server then."""
        return self._client._run(_remote.write(self.name, x, ids, columns, "add"))

    def upsert(self, x: ArrayLike, ids: Any, columns: Any = None) -> NDArray[Any]:
        """Adds vectors, and replaces vectors and columns of those that exist, all or none."""
        return self._client._run(_remote.write(self.name, x, ids, columns, "upsert"))

    def update(self, x: ArrayLike, ids: Any) -> NDArray[Any]:
        """Replaces the vectors of points that exist, all or none. Their columns stay."""
        return self._client._run(_remote.write(self.name, x, ids, None, "update"))

    def remove(self, ids: Any = None, *, filter: str | None = None) -> int:
        """Removes points by identifiers or by a filter, and returns how many there were."""
        return self._client._run(_remote.remove(self.name, ids, filter))

    def get(self, ids: Any) -> NDArray[np.float32]:
        """The vectors of some identifiers, one per row; a single identifier gives one vector."""
        return self._client._run(_remote.get(self.name, ids))

    def rows(self, ids: Any, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """The columns of some identifiers as arrays, all columns unless ``columns`` names some."""
        return self._client._run(_remote.rows(self.name, ids, columns))

    def contains(self, ids: Any) -> NDArray[np.bool_]:
        """For each identifier, whether the index has it."""
        return self._client._run(_remote.contains(self.name, ids))

    def ids(self, filter: str | None = None) -> NDArray[Any]:
        """Identifiers of all points, or of those that a filter allows."""
        return self._client._run(_remote.ids(self.name, filter))

    def compact(self) -> None:
        """Writes the index anew, without removed points and with an empty log."""
        self._client._run(_remote.ask("POST", _remote.index_path(self.name) + "/compact", {}))

    def recalibrate(self) -> None:
        """Measures again what recall targets take."""
        self._client._run(_remote.ask("POST", _remote.index_path(self.name) + "/recalibrate", {}))

    def to_bytes(self) -> bytes:
        """The index as a file; :func:`garlic_ann.from_bytes` reads it."""
        return self._client._run(_remote.download(self.name))


class Client:
    """A connection to a server, or several: threads may share it.

    ``key`` is an API key. ``certificates`` is a file of certificates to trust, for servers whose own are not public.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60, certificates: str | None = None) -> None:
        self._server = _Server(url, key, timeout, certificates)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Client({self._server.name})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def index(self, name: str) -> RemoteIndex:
        """An index of the server, which need not be there yet."""
        return RemoteIndex(self, name)

    def indexes(self) -> list[dict[str, Any]]:
        """What there is to say about every index."""
        found = self._run(_remote.ask("GET", "/v1/indexes"))
        listed: list[dict[str, Any]] = found["indexes"]
        return listed

    def create(
        self,
        name: str,
        dim: int | None = None,
        *,
        vectors: ArrayLike | None = None,
        ids: Any = None,
        columns: Any = None,
        metric: str = "euclidean",
        **parameters: Any,
    ) -> RemoteIndex:
        """Creates an index below the root of the server: empty, for vectors of dimension ``dim``, or of ``vectors``."""
        self._run(_remote.create(name, dim, vectors, ids, columns, metric, parameters))
        return self.index(name)

    def delete(self, name: str) -> None:
        """Deletes an index below the root of the server, with its files."""
        self._run(_remote.ask("DELETE", _remote.index_path(name)))

    def restore(self, name: str, data: bytes | Path) -> RemoteIndex:
        """Creates an index from a file that :meth:`RemoteIndex.to_bytes` or ``garlic build`` made."""
        self._run(_remote.restore(name, data.read_bytes() if isinstance(data, Path) else data))
        return self.index(name)

    def _run(self, steps: Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(self._send(request))
        except StopIteration as done:
            value: T = done.value
            return value

    def _send(self, request: Request) -> Answer:
        kept = None
        if request.repeatable:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                return self._exchange(kept, request)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                # The server has closed it meanwhile.
                kept.close()
        return self._exchange(self._connect(), request)

    def _connect(self) -> http.client.HTTPConnection:
        server = self._server
        if server.tls is not None:
            return http.client.HTTPSConnection(server.host, server.port, timeout=server.timeout, context=server.tls)
        return http.client.HTTPConnection(server.host, server.port, timeout=server.timeout)

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Answer:
        headers = {**self._server.headers, **request.headers}
        try:
            connection.request(request.method, request.path, request.body or None, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read())
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return answer


class AsyncRemoteIndex:
    """An index of a server, for ``asyncio``. :meth:`AsyncClient.index` gives it."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"AsyncRemoteIndex({self.name!r} at {self._client})"

    async def drift(self) -> dict[str, Any]:
        """How far the data have moved since the index was built."""
        return dict((await self.stats())["drift"])

    async def save(self, path: str | Path) -> None:
        """Writes the index to a file here; :func:`garlic_ann.open` reads it."""
        Path(path).write_bytes(await self.to_bytes())

    async def info(self) -> dict[str, Any]:
        """Name, number of points, dimension, metric, columns, and whether it can be changed."""
        return await self._client._run(_remote.ask("GET", _remote.index_path(self.name)))

    async def count(self, filter: Any = None) -> int:
        """Number of points, or of those that a filter allows."""
        return await self._client._run(_remote.count(self.name, filter))

    async def stats(self) -> dict[str, Any]:
        """Sizes, memory, parameters, drift, training and storage."""
        return await self._client._run(_remote.ask("GET", _remote.index_path(self.name) + "/stats"))

    async def search(
        self,
        queries: ArrayLike,
        k: int = 10,
        *,
        recall: float | None = None,
        filter: Any = None,
        probes: int | None = None,
        bins: float | None = None,
        rerank: int | None = None,
        exact: bool = False,
        columns: Sequence[str] | None = None,
        return_stats: bool = False,
    ) -> Any:
        """The ``k`` nearest neighbours, as :meth:`garlic_ann.Index.search` gives them: ``(distances, ids)``, then ``columns``
        and statistics where they are asked for. ``filter`` is an expression or identifiers."""
        return await self._client._run(_remote.search(
            self.name,
            queries,
            k,
            {
                "recall": recall,
                "filter": _remote.expression(filter),
                "probes": probes,
                "bins": bins,
                "rerank": rerank,
                "exact": exact,
            },
            columns,
            return_stats,
        ))

    async def range_search(self, queries: ArrayLike, radius: float, *, recall: float | None = None, filter: Any = None) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[Any]]:
        """All points within ``radius``: limits, distances and identifiers, as :meth:`garlic_ann.Index.range_search` gives them."""
        return await self._client._run(_remote.range_search(self.name, queries, radius, recall, filter))

    async def add(self, x: ArrayLike, ids: Any = None, columns: Any = None) -> NDArray[Any]:
        """Adds vectors, all or none, and returns their identifiers. They are on the device of the server then."""
        return await self._client._run(_remote.write(self.name, x, ids, columns, "add"))

    async def upsert(self, x: ArrayLike, ids: Any, columns: Any = None) -> NDArray[Any]:
        """Adds vectors, and replaces vectors and columns of those that exist, all or none."""
        return await self._client._run(_remote.write(self.name, x, ids, columns, "upsert"))

    async def update(self, x: ArrayLike, ids: Any) -> NDArray[Any]:
        """Replaces the vectors of points that exist, all or none. Their columns stay."""
        return await self._client._run(_remote.write(self.name, x, ids, None, "update"))

    async def remove(self, ids: Any = None, *, filter: str | None = None) -> int:
        """Removes points by identifiers or by a filter, and returns how many there were."""
        return await self._client._run(_remote.remove(self.name, ids, filter))

    async def get(self, ids: Any) -> NDArray[np.float32]:
        """The vectors of some identifiers, one per row; a single identifier gives one vector."""
        return await self._client._run(_remote.get(self.name, ids))

    async def rows(self, ids: Any, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """The columns of some identifiers as arrays, all columns unless ``columns`` names some."""
        return await self._client._run(_remote.rows(self.name, ids, columns))

    async def contains(self, ids: Any) -> NDArray[np.bool_]:
        """For each identifier, whether the index has it."""
        return await self._client._run(_remote.contains(self.name, ids))

    async def ids(self, filter: str | None = None) -> NDArray[Any]:
        """Identifiers of all points, or of those that a filter allows."""
        return await self._client._run(_remote.ids(self.name, filter))

    async def compact(self) -> None:
        """Writes the index anew, without removed points and with an empty log."""
        await self._client._run(_remote.ask("POST", _remote.index_path(self.name) + "/compact", {}))

    async def recalibrate(self) -> None:
        """Measures again what recall targets take."""
        await self._client._run(_remote.ask("POST", _remote.index_path(self.name) + "/recalibrate", {}))

    async def to_bytes(self) -> bytes:
        """The index as a file; :func:`garlic_ann.from_bytes` reads it."""
        return await self._client._run(_remote.download(self.name))


class AsyncClient:
    """:class:`Client` for ``asyncio``: requests that are awaited at the same time have connections of their own."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60, certificates: str | None = None) -> None:
        self._server = _Server(url, key, timeout, certificates)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    def __repr__(self) -> str:
        return f"AsyncClient({self._server.name})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections that are kept."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass

    def index(self, name: str) -> AsyncRemoteIndex:
        """An index of the server, which need not be there yet."""
        return AsyncRemoteIndex(self, name)

    async def indexes(self) -> list[dict[str, Any]]:
        """What there is to say about every index."""
        found = await self._run(_remote.ask("GET", "/v1/indexes"))
        listed: list[dict[str, Any]] = found["indexes"]
        return listed

    async def create(
        self,
        name: str,
        dim: int | None = None,
        *,
        vectors: ArrayLike | None = None,
        ids: Any = None,
        columns: Any = None,
        metric: str = "euclidean",
        **parameters: Any,
    ) -> AsyncRemoteIndex:
        """Creates an index below the root of the server: empty, for vectors of dimension ``dim``, or of ``vectors``."""
        await self._run(_remote.create(name, dim, vectors, ids, columns, metric, parameters))
        return self.index(name)

    async def delete(self, name: str) -> None:
        """Deletes an index below the root of the server, with its files."""
        await self._run(_remote.ask("DELETE", _remote.index_path(name)))

    async def restore(self, name: str, data: bytes | Path) -> AsyncRemoteIndex:
        """Creates an index from a file that :meth:`RemoteIndex.to_bytes` or ``garlic build`` made."""
        await self._run(_remote.restore(name, data.read_bytes() if isinstance(data, Path) else data))
        return self.index(name)

    async def _run(self, steps: Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(await asyncio.wait_for(self._send(request), self._server.timeout))
        except StopIteration as done:
            value: T = done.value
            return value

    async def _send(self, request: Request) -> Answer:
        if request.repeatable and self._idle:
            try:
                return await self._exchange(*self._idle.pop(), request)
            except (asyncio.IncompleteReadError, ConnectionResetError, BrokenPipeError):
                # The server has closed it meanwhile.
                pass
        server = self._server
        return await self._exchange(*await asyncio.open_connection(server.host, server.port, ssl=server.tls), request)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request) -> Answer:
        headers = {"host": self._server.name, "content-length": str(len(request.body)), **self._server.headers, **request.headers}
        lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + request.body)
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            answered: Mapping[str, str] = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(answered.get("content-length", "0")))
        except BaseException:
            writer.close()
            raise
        if answered.get("connection", "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return Answer(int(head[0].split(" ")[1]), body)
