"""Requests to a server and what its answers mean, without a connection.

Each operation is a generator that yields a request, is sent the answer, and returns the result. Those of an index have its
name first and are the methods of both clients' indexes, which differ only in how they send.
"""

from __future__ import annotations

import json
import math
import os
import struct
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import own_vectors, vectors

BINARY = "application/x-garlic"
MAGIC = b"GVC1"
PAGE = 10_000
# Points whose vectors are read at a time.
VECTOR_PAGE = 1000

T = TypeVar("T")


@dataclass
class Request:
    """A request; the clients add the key and the length."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    # Whether it may be sent again if a connection that was kept turns out to be closed.
    repeatable: bool = True


@dataclass
class Answer:
    """The answer to a request."""

    status: int
    body: bytes


Steps = Generator[Request, Answer, T]


class ServerError(RuntimeError):
    """The server refused or failed; ``status`` is that of HTTP, ``code`` a word for programs."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class RefusedError(ServerError, ValueError):
    """What was asked for is wrong; nothing was changed."""


class MissingError(ServerError, KeyError):
    """There is no such index or point."""


def check(answer: Answer) -> bytes:
    """The body of an answer that is no error."""
    if answer.status < 400:
        return answer.body
    try:
        error = json.loads(answer.body)["error"]
        message, code = str(error["message"]), str(error["code"])
    except (ValueError, KeyError, TypeError):
        message, code = f"the server answered with status {answer.status}", "unknown"
    kind = {404: MissingError, 400: RefusedError, 409: RefusedError, 422: RefusedError}.get(answer.status, ServerError)
    raise kind(message, answer.status, code)


def ask(method: str, path: str, body: object = None) -> Steps[Any]:
    """Sends JSON and gives what came back as JSON."""
    request = Request(method, path)
    if body is not None:
        request.body = json.dumps(body, allow_nan=False).encode()
        request.headers["content-type"] = "application/json"
    return json.loads(check((yield request)))


def packed(about: Mapping[str, object], x: NDArray[np.float32]) -> bytes:
    """A binary body."""
    text = json.dumps(about, allow_nan=False).encode()
    rows = np.ascontiguousarray(x, dtype="<f4")
    return MAGIC + struct.pack("<III", len(text), *rows.shape) + text + rows.tobytes()


def unpacked(body: bytes) -> tuple[dict[str, Any], NDArray[np.float32], bytes]:
    """JSON, rows and what follows of a binary answer."""
    if body[:4] != MAGIC:
        raise ServerError("the answer is not in the binary format", 200, "format")
    size, rows, columns = struct.unpack("<III", body[4:16])
    about: dict[str, Any] = json.loads(body[16 : 16 + size])
    start = 16 + size
    end = start + 4 * rows * columns
    values = np.frombuffer(body[start:end], "<f4").astype(np.float32).reshape(rows, columns)
    return about, values, body[end:]


def index_path(name: str) -> str:
    return "/v1/indexes/" + quote(name, safe="")


def rows_of(x: ArrayLike) -> NDArray[np.float32]:
    """Vectors as rows."""
    own = own_vectors(x)
    return own.reshape(1, -1) if own.ndim == 1 else own


def ids_list(ids: Any) -> list[int] | list[str]:
    """Identifiers as JSON has them."""
    if isinstance(ids, (str, uuid.UUID)) or np.isscalar(ids):
        ids = [ids]
    values = [value.item() if isinstance(value, np.generic) else value for value in ids]
    if any(isinstance(value, (str, uuid.UUID)) for value in values):
        return [str(value) for value in values]
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise TypeError("identifiers are whole numbers, or text")
    return values


def is_one(ids: Any) -> bool:
    return isinstance(ids, (str, uuid.UUID)) or np.ndim(ids) == 0


def expression(allowed: Any) -> str | None:
    """A filter as the server takes it."""
    if allowed is None or isinstance(allowed, str):
        return allowed
    if callable(allowed) or not hasattr(allowed, "__iter__"):
        raise TypeError("a server takes an expression or identifiers as a filter, not functions and masks")
    ids = ids_list(list(allowed))
    quoted = ("'" + str(i).replace("'", "''") + "'" if isinstance(i, str) else str(i) for i in ids)
    return f"id IN ({', '.join(quoted)})" if ids else "id <> id"


def plain(value: Any) -> Any:
    """A value of a column as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (Sequence, np.ndarray)):
        return [plain(item) for item in value]
    return str(value)


def columns_of(columns: Any) -> dict[str, list[Any]]:
    """Columns as lists: of a mapping, or of a table of pandas, polars or Arrow."""
    if isinstance(columns, Mapping):
        found: Any = columns
    elif hasattr(columns, "to_pydict"):
        found = columns.to_pydict()
    elif hasattr(columns, "to_dicts"):
        found = columns.to_dict(as_series=False)
    elif hasattr(columns, "to_dict"):
        found = columns.to_dict("list")
    else:
        raise TypeError("columns: a dictionary of lists is needed, or a table of pandas, polars or Arrow")
    return {str(name): [plain(value) for value in values] for name, values in found.items()}


def column_arrays(rows: Sequence[Mapping[str, Any]], shape: tuple[int, ...], at: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    """Columns of points as arrays of a shape; the rest of a row is missing."""
    names = list(rows[0]) if rows else []
    count = int(np.prod(shape))
    arrays = {}
    for name in names:
        values: list[Any] = [None] * count
        for place, row in zip(at, rows):
            values[place] = row[name]
        arrays[name] = column(values).reshape(shape)
    return arrays


def smaller(error: RefusedError, size: int) -> int:
    """How much to ask for at a time after a server has refused ``size``; other errors are raised again."""
    if error.code != "limit" or size <= 1:
        raise error
    return size // 2


def in_parts(read: Callable[[list[Any]], Steps[T]], values: list[Any], size: int) -> Steps[list[T]]:
    """What ``read`` gives for parts of a list, of ``size`` values or of as many as the server allows at a time. An empty list
    is a part, too."""
    found: list[T] = []
    start = 0
    while not found or start < len(values):
        part = values[start : start + size]
        try:
            found.append((yield from read(part)))
        except RefusedError as error:
            size = smaller(error, len(part))
            continue
        start += size
    return found


def column(values: list[Any]) -> NDArray[Any]:
    """Values as an array: numbers as numbers, everything else as objects."""
    given = [value for value in values if value is not None]
    is_number = bool(given) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in given)
    if is_number and (len(given) == len(values) or any(isinstance(v, float) for v in given)):
        return np.array([math.nan if value is None else value for value in values])
    if given and len(given) == len(values) and all(isinstance(v, bool) for v in given):
        return np.array(values, bool)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def info(name: str) -> Steps[dict[str, Any]]:
    """Name, number of points, dimension, metric, columns, whether points have names, and whether the index can be changed."""
    about: dict[str, Any] = yield from ask("GET", index_path(name))
    return about


def stats(name: str) -> Steps[dict[str, Any]]:
    """Sizes, memory, parameters, drift, training and storage."""
    about: dict[str, Any] = yield from ask("GET", f"{index_path(name)}/stats")
    return about


def drift(name: str) -> Steps[dict[str, Any]]:
    """How far the data have moved since the index was built."""
    return dict((yield from stats(name))["drift"])


def search(
    name: str,
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
) -> Steps[Any]:
    """The ``k`` nearest neighbours, as :meth:`garlic_ann.Index.search` gives them: ``(distances, ids)``, then ``columns``
    and statistics where they are asked for. ``filter`` is an expression or identifiers."""
    options = {"recall": recall, "filter": expression(filter), "probes": probes, "bins": bins, "rerank": rerank}
    q = vectors(queries, "queries")
    about: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    about |= {"k": k, "exact": exact, "with_stats": return_stats}
    if columns is not None:
        about["columns"] = list(columns)
    shape = (*q.shape[:-1], k)
    if q.ndim == 2 and len(q) == 0:
        return np.empty(shape, np.float32), np.empty(shape, np.int64)
    headers = {"content-type": BINARY, "accept": BINARY}
    request = Request("POST", f"{index_path(name)}/search", packed(about, rows_of(q)), headers)
    found, distances, rest = unpacked(check((yield request)))
    counts = found["counts"]
    filled = np.flatnonzero(np.arange(k) < np.array(counts)[:, None])
    if "ids" in found:
        ids: NDArray[Any] = np.full(len(counts) * k, None, object)
        ids[filled] = found["ids"]
    else:
        ids = np.frombuffer(rest, "<u8").astype(np.int64)
        ids[np.isinf(distances.ravel())] = -1
    result: list[Any] = [distances.reshape(shape), ids.reshape(shape)]
    if columns is not None:
        result.append(column_arrays(found["columns"], shape, filled))
    if return_stats:
        result.append(found["stats"])
    return tuple(result)


def knn_query(name: str, data: ArrayLike, k: int = 10, filter: Any = None) -> Steps[tuple[NDArray[Any], NDArray[np.float32]]]:
    """:func:`search` as hnswlib has it: identifiers first."""
    distances, found = yield from search(name, data, k, filter=filter)
    return found, distances


def range_search(
    name: str, queries: ArrayLike, radius: float, *, recall: float | None = None, filter: Any = None
) -> Steps[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[Any]]]:
    """All points within ``radius``: limits, distances and identifiers, as :meth:`garlic_ann.Index.range_search` gives them."""
    q = vectors(queries, "queries")
    about = {"radius": float(radius), "recall": recall, "filter": expression(filter)}
    about = {key: value for key, value in about.items() if value is not None}
    headers = {"content-type": BINARY, "accept": BINARY}
    request = Request("POST", f"{index_path(name)}/search", packed(about, rows_of(q)), headers)
    found, distances, rest = unpacked(check((yield request)))
    counts = np.array(found["counts"], np.int64)
    filled = np.arange(distances.shape[1]) < counts[:, None]
    if "ids" in found:
        ids: NDArray[Any] = np.array(found["ids"], object)
    else:
        ids = np.frombuffer(rest, "<u8").astype(np.int64).reshape(distances.shape)[filled]
    return np.concatenate([[0], np.cumsum(counts)]), distances[filled], ids


def add(name: str, x: ArrayLike, ids: Any = None, columns: Any = None) -> Steps[NDArray[Any]]:
    """Adds vectors, all or none, and returns their identifiers. They are on the device of the server then."""
    return (yield from write(name, x, ids, columns, "add"))


def upsert(name: str, x: ArrayLike, ids: Any, columns: Any = None) -> Steps[NDArray[Any]]:
    """Adds vectors, and replaces vectors and columns of those that exist, all or none."""
    return (yield from write(name, x, ids, columns, "upsert"))


def update(name: str, x: ArrayLike, ids: Any) -> Steps[NDArray[Any]]:
    """Replaces the vectors of points that exist, all or none. Their columns stay."""
    return (yield from write(name, x, ids, None, "update"))


def write(name: str, x: ArrayLike, ids: Any, columns: Any, mode: str) -> Steps[NDArray[Any]]:
    """Adds or replaces points and gives their identifiers."""
    about: dict[str, object] = {"mode": mode}
    if ids is not None:
        about["ids"] = ids_list(ids)
    if columns is not None:
        about["columns"] = columns_of(columns)
    request = Request("POST", f"{index_path(name)}/points", packed(about, rows_of(x)), {"content-type": BINARY})
    # Without identifiers every request adds new points.
    request.repeatable = mode != "add" and ids is not None
    written = json.loads(check((yield request)))["ids"]
    return column(written) if written and isinstance(written[0], str) else np.array(written, np.int64)


def remove(name: str, ids: Any = None, *, filter: str | None = None) -> Steps[int]:
    """Removes points by identifiers or by a filter, and returns how many there were."""
    body: dict[str, Any] = {"filter": filter} if ids is None else {"ids": ids_list(ids)}
    found = yield from ask("POST", f"{index_path(name)}/points/delete", body)
    return int(found["removed"])


def get(name: str, ids: Any) -> Steps[NDArray[np.float32]]:
    """The vectors of some identifiers, one per row; a single identifier gives one vector."""

    def read(part: list[Any]) -> Steps[NDArray[np.float32]]:
        body = {"ids": part, "columns": [], "with_vectors": True}
        headers = {"content-type": "application/json", "accept": BINARY}
        request = Request("POST", f"{index_path(name)}/points/get", json.dumps(body).encode(), headers)
        return unpacked(check((yield request)))[1]

    rows = np.concatenate((yield from in_parts(read, ids_list(ids), VECTOR_PAGE)))
    return rows[0] if is_one(ids) else rows


def rows(name: str, ids: Any, columns: Sequence[str] | None = None) -> Steps[dict[str, NDArray[Any]]]:
    """The columns of some identifiers as arrays, all columns unless ``columns`` names some."""

    def read(part: list[Any]) -> Steps[list[dict[str, Any]]]:
        body = {"ids": part, "columns": None if columns is None else list(columns)}
        found = yield from ask("POST", f"{index_path(name)}/points/get", body)
        return [point.get("columns", {}) for point in found["points"]]

    points = [point for part in (yield from in_parts(read, ids_list(ids), PAGE)) for point in part]
    shape = () if is_one(ids) else (len(points),)
    return column_arrays(points, shape, np.arange(len(points)))


def contains(name: str, ids: Any) -> Steps[NDArray[np.bool_]]:
    """For each identifier, whether the index has it."""

    def read(part: list[Any]) -> Steps[list[Any]]:
        body: dict[str, Any] = {"filter": expression(part), "limit": max(1, len(part)), "columns": []}
        try:
            page = yield from ask("POST", f"{index_path(name)}/points/scroll", body)
        except RefusedError as error:
            # Names of an index that numbers its points, or the other way round.
            if error.code != "invalid":
                raise
            return []
        return [point["id"] for point in page["points"]]

    listed = ids_list(ids)
    there = {known for part in (yield from in_parts(read, listed, PAGE)) for known in part}
    return np.array([i in there for i in listed], bool)


def ids(name: str, filter: str | None = None) -> Steps[NDArray[Any]]:
    """Identifiers of all points, or of those that a filter allows."""
    found: list[Any] = []
    size = PAGE
    start: int | None = 0
    while start is not None:
        body: dict[str, Any] = {"limit": size, "from": start, "filter": filter, "columns": []}
        try:
            page = yield from ask("POST", f"{index_path(name)}/points/scroll", body)
        except RefusedError as error:
            size = smaller(error, size)
            continue
        found.extend(point["id"] for point in page["points"])
        start = page["next"]
    return column(found) if found and isinstance(found[0], str) else np.array(found, np.int64)


def create(name: str, dim: int | None, x: ArrayLike | None, ids: Any, columns: Any, metric: str, parameters: Mapping[str, Any]) -> Steps[Any]:
    about: dict[str, Any] = {"metric": metric, "parameters": dict(parameters)}
    if x is None:
        return (yield from ask("PUT", index_path(name), about | {"dim": dim}))
    if ids is not None:
        about["ids"] = ids_list(ids)
    if columns is not None:
        about["columns"] = columns_of(columns)
    request = Request("PUT", index_path(name), packed(about, rows_of(x)), {"content-type": BINARY})
    return json.loads(check((yield request)))


def count(name: str, filter: Any = None) -> Steps[int]:
    """Number of points, or of those that a filter allows."""
    found = yield from ask("POST", f"{index_path(name)}/points/count", {"filter": expression(filter)})
    return int(found["count"])


def compact(name: str) -> Steps[None]:
    """Writes the index anew, without removed points and with an empty log."""
    yield from ask("POST", f"{index_path(name)}/compact", {})


def recalibrate(name: str) -> Steps[None]:
    """Measures again what recall targets take."""
    yield from ask("POST", f"{index_path(name)}/recalibrate", {})


def retrain(name: str) -> Steps[None]:
    """Trains axes, cells, bins and calibration again, from all points, as a build would."""
    yield from ask("POST", f"{index_path(name)}/retrain", {})


def tune(name: str, queries: ArrayLike) -> Steps[None]:
    """Measures what recall targets take for queries like these, at least 100 of them."""
    request = Request("POST", f"{index_path(name)}/tune", packed({}, rows_of(queries)), {"content-type": BINARY})
    check((yield request))


def to_bytes(name: str) -> Steps[bytes]:
    """The index as a file; :func:`garlic_ann.from_bytes` reads it."""
    return check((yield Request("GET", f"{index_path(name)}/snapshot")))


def save(name: str, path: str | os.PathLike[str]) -> Steps[None]:
    """Writes the index to a file here; :func:`garlic_ann.open` reads it."""
    Path(path).write_bytes((yield from to_bytes(name)))


def restore(name: str, data: bytes | Path) -> Steps[None]:
    """Creates an index from a file."""
    body = data.read_bytes() if isinstance(data, Path) else data
    check((yield Request("PUT", f"{index_path(name)}/snapshot", body, {"content-type": "application/octet-stream"})))
