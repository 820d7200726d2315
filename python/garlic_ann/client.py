"""Clients of a server that ``garlic serve`` runs.

:class:`Client` waits for answers, :class:`AsyncClient` is for ``asyncio``. Both give indexes with the methods of
:class:`garlic_ann.Index`. They need nothing but NumPy.

>>> from garlic_ann.client import Client                                  # doctest: +SKIP
>>> pages = Client("http://127.0.0.1:7878").index("pages")                # doctest: +SKIP
>>> distances, ids = pages.search(query, k=10, recall=0.95)               # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from numpy.typing import ArrayLike

from . import _remote
from ._remote import Answer, MissingError, RefusedError, Request, ServerError, Steps

__all__ = ["AsyncClient", "AsyncRemoteIndex", "Client", "MissingError", "RefusedError", "RemoteIndex", "ServerError"]

P = ParamSpec("P")
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


def _waits(operation: Callable[Concatenate[str, P], Steps[T]]) -> Callable[Concatenate[RemoteIndex, P], T]:
    """The method of an index that does this operation and waits until it is done."""

    @functools.wraps(operation)
    def method(self: RemoteIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._client._run(operation(self.name, *args, **kwargs))

    return method


def _awaits(operation: Callable[Concatenate[str, P], Steps[T]]) -> Callable[Concatenate[AsyncRemoteIndex, P], Coroutine[Any, Any, T]]:
    """The same for ``asyncio``."""

    @functools.wraps(operation)
    async def method(self: AsyncRemoteIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._client._run(operation(self.name, *args, **kwargs))

    return method


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
    def d(self) -> int:
        """The same as :attr:`dim`."""
        return self.dim

    @property
    def ntotal(self) -> int:
        """Number of points."""
        return self.count()

    @property
    def metric(self) -> str:
        """``euclidean``, ``cosine`` or ``inner_product``."""
        return str(self.info()["metric"])

    @property
    def named(self) -> bool:
        """Whether points have text as identifiers, not numbers."""
        return bool(self.info()["named"])

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [column["name"] for column in self.info()["columns"]]

    info = _waits(_remote.info)
    count = _waits(_remote.count)
    stats = _waits(_remote.stats)
    drift = _waits(_remote.drift)
    search = _waits(_remote.search)
    knn_query = _waits(_remote.knn_query)
    range_search = _waits(_remote.range_search)
    add = _waits(_remote.add)
    upsert = _waits(_remote.upsert)
    update = _waits(_remote.update)
    remove = _waits(_remote.remove)
    get = _waits(_remote.get)
    rows = _waits(_remote.rows)
    contains = _waits(_remote.contains)
    ids = _waits(_remote.ids)
    compact = _waits(_remote.compact)
    recalibrate = _waits(_remote.recalibrate)
    retrain = _waits(_remote.retrain)
    tune = _waits(_remote.tune)
    to_bytes = _waits(_remote.to_bytes)
    save = _waits(_remote.save)


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
        self._run(_remote.restore(name, data))
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
        # A request that may not be sent twice takes no connection that is kept, so its own would be one more each time.
        if response.will_close or not request.repeatable:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return answer


class AsyncRemoteIndex:
    """An index of a server, for ``asyncio``: the methods of :class:`RemoteIndex`, to be awaited."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    def __repr__(self) -> str:
        return f"AsyncRemoteIndex({self.name!r} at {self._client})"

    info = _awaits(_remote.info)
    count = _awaits(_remote.count)
    stats = _awaits(_remote.stats)
    drift = _awaits(_remote.drift)
    search = _awaits(_remote.search)
    knn_query = _awaits(_remote.knn_query)
    range_search = _awaits(_remote.range_search)
    add = _awaits(_remote.add)
    upsert = _awaits(_remote.upsert)
    update = _awaits(_remote.update)
    remove = _awaits(_remote.remove)
    get = _awaits(_remote.get)
    rows = _awaits(_remote.rows)
    contains = _awaits(_remote.contains)
    ids = _awaits(_remote.ids)
    compact = _awaits(_remote.compact)
    recalibrate = _awaits(_remote.recalibrate)
    retrain = _awaits(_remote.retrain)
    tune = _awaits(_remote.tune)
    to_bytes = _awaits(_remote.to_bytes)
    save = _awaits(_remote.save)


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
        await self._run(_remote.restore(name, data))
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
        if answered.get("connection", "").lower() == "close" or not request.repeatable:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return Answer(int(head[0].split(" ")[1]), body)
