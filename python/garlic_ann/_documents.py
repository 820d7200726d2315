"""Texts with metadata as points of an index: what the vector stores of other libraries share."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Union, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._conditions import Condition, holds, of_dict, sql
from ._index import Index, open as open_index
from ._live import Live
from ._options import IndexParameters, Metric
from .client import RemoteIndex

TEXT, METADATA = "text", "metadata"
# Keys of metadata that are columns, too: names, or names with the types of their values.
Keys = Union[Sequence[str], Mapping[str, Union[type, None]]]


class SearchIndex(Protocol):
    """What a store needs of an index: :class:`garlic_ann.Index`, :class:`garlic_ann.Live`, an index of
    :class:`garlic_ann.client.Client`, or anything with these methods."""

    @property
    def dim(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def contains(self, ids: Any, /) -> NDArray[np.bool_]: ...
    def get(self, ids: Any, /) -> NDArray[np.float32]: ...
    def ids(self, filter: str | None = None) -> NDArray[Any]: ...
    def rows(self, ids: Any, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]: ...
    def remove(self, ids: Any, /) -> int: ...
    def upsert(self, x: ArrayLike, ids: Any, columns: Any = None) -> Any: ...
    @property
    def search(self) -> Callable[..., Any]: ...


class Found(NamedTuple):
    """A document of the store."""

    id: str
    distance: float
    text: str
    metadata: dict[str, Any]


class Documents:
    """Texts and metadata as columns of an index, which is made when the first document comes.

    The column ``text`` has the text and the column ``metadata`` all metadata as JSON. Keys that ``columns`` names have
    columns of their own, so that filters on them are expressions of the index. Of an index without the column
    ``metadata``, the other columns are the metadata.
    """

    def __init__(
        self,
        index: SearchIndex | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        columns: Keys = (),
        metric: Metric = "cosine",
        parameters: IndexParameters | None = None,
    ) -> None:
        if index is not None and (path is not None or parameters):
            raise TypeError("an index is kept where it is and has its own parameters; leave out path= and all others")
        self._types: dict[str, type | None] = {}
        typed = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
        for name, kind in typed.items():
            if name in (TEXT, METADATA, "id"):
                raise ValueError(f"columns: `{name}` is a column of every store; choose other keys of the metadata")
            self._types[name] = kind
        self._path, self._metric = path, metric
        self._parameters: dict[str, Any] = dict(parameters or {})
        self._making = threading.Lock()
        self._numbered: bool | None = None
        self._columns_read: list[str] | None = None
        self.index: SearchIndex | None = index
        if path is not None and os.path.exists(path):
            self.index = cast("SearchIndex", Live.open(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Documents:
        """The documents of an index file or of an index directory."""
        opened = Live.open(path) if os.path.isdir(path) else open_index(path)
        return cls(cast("SearchIndex", opened))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an index file. ``ValueError`` if there have been no documents."""
        index = self.index
        if index is None:
            raise ValueError("the store has had no documents, so that there is nothing to save; add some")
        if isinstance(index, Live):
            index = cast("SearchIndex", index.snapshot())
        if not isinstance(index, (Index, RemoteIndex)):
            raise TypeError(f"{type(index).__name__} keeps its documents by itself; there is nothing to save here")
        index.save(path)

    @property
    def is_local(self) -> bool:
        """Whether the index is in memory or in a mapped file, and :meth:`save` is what keeps it."""
        return isinstance(self.index, Index)

    def close(self) -> None:
        """Closes an index directory."""
        if isinstance(self.index, Live):
            self.index.close()

    def __len__(self) -> int:
        return 0 if self.index is None else len(self.index)

    def _made(self, dim: int) -> SearchIndex:
        with self._making:
            if self.index is None:
                made: Any
                if self._path is None:
                    made = Index(dim, self._metric, **self._parameters)
                else:
                    made = Live.create(self._path, dim=dim, metric=self._metric, **self._parameters)
                self.index = made
            return cast("SearchIndex", self.index)

    def put(
        self,
        texts: Sequence[str],
        vectors: ArrayLike,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Adds documents, or replaces those whose identifiers exist, all or none; the last one of several with the same."""
        count = len(texts)
        for what, given in (("metadata", metadatas), ("identifiers", ids)):
            if given is not None and len(given) != count:
                raise ValueError(f"there are {count} texts but {len(given)} {what}; give one for each text")
        named = [str(uuid.uuid4()) if id is None else str(id) for id in ids or [None] * count]
        if not count:
            return named
        every = metadatas or [{}] * count
        last = {id: row for row, id in enumerate(named)}
        rows = sorted(last.values())
        array = np.asarray(vectors, np.float32)
        index = self._made(array.shape[-1])
        keys = self._new_keys([named[row] for row in rows])
        columns = self._columns(index, [texts[row] for row in rows], [every[row] for row in rows])
        index.upsert(array[rows], keys, columns)
        return named

    def _columns(
        self, index: SearchIndex, texts: list[str], metadatas: list[Mapping[str, Any]]
    ) -> dict[str, Any]:
        have = index.columns
        keys = list(dict.fromkeys([*have, *self._types]))
        keys = [key for key in keys if key not in (TEXT, METADATA)]
        columns: dict[str, Any] = {TEXT: texts}
        if METADATA in have or not have:
            columns[METADATA] = [_json(metadata) for metadata in metadatas]
        else:
            # Everything is in columns; a key that has none is an error that lists the columns.
            keys = sorted({*keys, *(key for metadata in metadatas for key in metadata)})
        for key in keys:
            values = [metadata.get(key) for metadata in metadatas]
            # The index knows the type of a column that it has, and what is not given is missing.
            if key not in have or any(value is not None for value in values):
                columns[key] = _column(values, self._types.get(key))
        return columns

    def _has_numbers(self) -> bool:
        """Whether the identifiers of the index are numbers. One without points does not know yet, and takes text."""
        if self._numbered is None and len(self):
            index = cast("SearchIndex", self.index)
            is_named = index.named if isinstance(index, RemoteIndex) else index.ids().dtype.kind not in "iu"
            self._numbered = not is_named
        return bool(self._numbered)

    def _keys(self, ids: Iterable[str]) -> list[Any]:
        """Identifiers as the index has them: text, or numbers where it was made with numbers. There is no point of text that
        is no number, so that is left out.
        """
        if not self._has_numbers():
            return list(ids)
        return [number for number in map(_number, ids) if number is not None]

    def _new_keys(self, ids: Sequence[str]) -> list[Any]:
        """The same for documents to write, each of which needs a key of its own."""
        keys = self._keys(ids)
        if len(keys) < len(ids):
            wrong = next(id for id in ids if _number(id) is None)
            raise ValueError(
                f"the document identifier {wrong!r} is not a number below 2^63, and the identifiers of this index are numbers;"
                " give each document such an identifier (ids=), or use an index with text identifiers"
            )
        return keys

    def search(
        self, vector: Sequence[float], k: int, filter: str | Mapping[str, Any] | Iterable[str] | None, **options: Any
    ) -> list[Found]:
        """The nearest documents, nearest first. ``filter`` is an expression, a dictionary or identifiers."""
        index = self.index
        if index is None or (self._columns_read is None and not len(index)):
            return []
        allowed = filter
        if isinstance(filter, Mapping):
            allowed = self.where(of_dict(filter))
        elif filter is not None and not isinstance(filter, str):
            allowed = self._keys(filter)
        if isinstance(allowed, list) and not allowed:
            return []
        query = np.asarray(vector, np.float32)
        distances, ids, columns = index.search(query, k, filter=allowed, columns=self._wanted(index), **options)
        there = np.flatnonzero(np.isfinite(distances))
        documents = _documents({name: values[there] for name, values in columns.items()}, len(there))
        return [
            Found(str(ids[at]), float(distances[at]), *document) for at, document in zip(there, documents)
        ]

    def where(self, condition: Condition) -> str | list[Any]:
        """A condition on metadata as an expression, or as the identifiers of all documents that meet it."""
        index = self.index
        if index is None:
            return []
        names = [name for name in index.columns if name not in (TEXT, METADATA)]
        expression = sql(condition, names)
        if expression is not None:
            return expression
        return self.matching(lambda _, metadata: holds(condition, metadata))

    def matching(self, test: Callable[[str, dict[str, Any]], bool]) -> list[Any]:
        """The identifiers of all documents whose text and metadata a function is true of. It reads all of them."""
        index = self.index
        if index is None or not len(index):
            return []
        ids = index.ids()
        documents = _documents(index.rows(ids, self._wanted(index)), len(ids))
        return [id for id, document in zip(ids.tolist(), documents) if test(*document)]

    def get(self, ids: Sequence[str]) -> list[Found]:
        """The documents of some identifiers, in this order; those that there are not are left out."""
        index = self.index
        if index is None or not len(ids):
            return []
        keys = self._keys(dict.fromkeys(ids))
        known = [key for key, there in zip(keys, index.contains(keys)) if there] if keys else []
        if not known:
            return []
        documents = _documents(index.rows(known, self._wanted(index)), len(known))
        return [Found(str(id), 0.0, *document) for id, document in zip(known, documents)]

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of documents that there are."""
        return cast("SearchIndex", self.index).get(self._new_keys(ids))

    def remove(self, ids: Iterable[str] | None) -> int:
        """Removes documents, all of them without identifiers, and returns how many there were."""
        index = self.index
        # A server's index that has had no points does not know yet whether they will have names.
        if index is None or not len(index):
            return 0
        if ids is None:
            return index.remove(index.ids())
        keys = self._keys(ids)
        return index.remove(keys) if keys else 0

    def _wanted(self, index: SearchIndex) -> list[str]:
        """The columns to read. Those of a store stay the same, and a server need not be asked again."""
        if self._columns_read is not None:
            return self._columns_read
        have = index.columns
        if METADATA in have:
            self._columns_read = [name for name in (TEXT, METADATA) if name in have]
            return self._columns_read
        return have


def diverse(query: ArrayLike, vectors: NDArray[np.float32], k: int, relevance: float) -> list[int]:
    """The rows of ``vectors`` to choose for maximal marginal relevance, by cosines.

    ``relevance`` is 1 for the nearest ones and 0 for those that are unlike each other.

    >>> near = np.array([[1, 0.1], [1, 0.11], [0.3, 1]], np.float32)
    >>> diverse([1, 0], near, 2, relevance=1.0), diverse([1, 0], near, 2, relevance=0.3)
    ([0, 1], [0, 2])
    """
    rows = np.vstack([np.asarray(query, np.float32)[None], vectors])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(norms == 0, 1, norms)
    to_query, unit = unit[1:] @ unit[0], unit[1:]
    chosen: list[int] = []
    likeness = np.full(len(unit), -np.inf)
    for _ in range(min(k, len(unit))):
        scores = to_query if not chosen else relevance * to_query - (1 - relevance) * likeness
        scores = np.where(np.isin(np.arange(len(unit)), chosen), -np.inf, scores)
        best = int(scores.argmax())
        chosen.append(best)
        likeness = np.maximum(likeness, unit @ unit[best])
    return chosen


def _documents(columns: Mapping[str, NDArray[Any]], count: int) -> list[tuple[str, dict[str, Any]]]:
    """The text and the metadata of every row."""
    texts: Iterable[Any] = columns[TEXT] if TEXT in columns else [None] * count
    if METADATA in columns:
        metadatas = [json.loads(text) if text else {} for text in columns[METADATA]]
    else:
        others = {name: values.tolist() for name, values in columns.items() if name != TEXT}
        # Missing numbers are not equal to themselves.
        metadatas = [
            {name: values[row] for name, values in others.items() if values[row] is not None and values[row] == values[row]}
            for row in range(count)
        ]
    return [(text or "", metadata) for text, metadata in zip(texts, metadatas)]


def _number(id: str) -> int | None:
    """The number that an index gives back as this text; ``None`` for other text, such as ``007``.

    >>> [_number(id) for id in ("7", "007", "-1", "x", "9223372036854775808")]
    [7, None, None, None, None]
    """
    # Python refuses to read numbers of thousands of digits.
    if not (id.isascii() and id.isdecimal()) or len(id) > 19:
        return None
    number = int(id)
    return number if number < 2**63 and str(number) == id else None


def _json(metadata: Mapping[str, Any]) -> str:
    try:
        return json.dumps(metadata, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be what JSON can write: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a value is of type {type(value).__name__}")


def _column(values: list[Any], kind: type | None) -> Any:
    """Values of a column, of a known type even if all of them are missing."""
    if kind in (int, float, bool) and all(value is None for value in values):
        return np.ma.MaskedArray(np.zeros(len(values), kind), mask=True)
    return values
