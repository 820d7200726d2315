"""A vector store of LlamaIndex. Needs ``llama-index-core`` (``pip install garlic-ann[llama-index]``).

>>> from llama_index.core.schema import TextNode
>>> from llama_index.core.vector_stores import VectorStoreQuery
>>> from garlic_ann.llama_index import GarlicVectorStore
>>> store = GarlicVectorStore(columns={"year": int})
>>> store.add([TextNode(id_="a", text="red", metadata={"year": 1990}, embedding=[1.0, 0.0])])
['a']
>>> found = store.query(VectorStoreQuery(query_embedding=[1.0, 0.1], similarity_top_k=1))
>>> found.ids, found.nodes[0].text, round(found.similarities[0], 3)
(['a'], 'red', 0.995)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from ._conditions import Condition
from ._documents import Documents, Found, Keys, SearchIndex, diverse
from ._options import IndexParameters, Metric

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OPERATORS = {
    FilterOperator.EQ: "=",
    FilterOperator.NE: "<>",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "not in",
    FilterOperator.ANY: "any",
    FilterOperator.ALL: "all",
    FilterOperator.CONTAINS: "has",
    FilterOperator.TEXT_MATCH: "contains",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "icontains",
    FilterOperator.IS_EMPTY: "empty",
}
# The document that a node is a part of; always a column, because documents are deleted by it.
_SOURCE = "ref_doc_id"


class GarlicVectorStore(BasePydanticVectorStore):
    """Nodes in an index, with their texts and metadata.

    Parameters
    ----------
    index
        An index to use: a :class:`garlic_ann.Index`, a :class:`garlic_ann.Live`, an index of a
        :class:`garlic_ann.client.Client`, or anything with their methods. Without one,
        the first nodes make one.
    path
        An index directory, made or opened, that keeps every change. Without it, the index is in memory; :meth:`persist`
        writes it to a file.
    columns
        Keys of the metadata that become columns of the index, so that filters on them are fast: names, or a dictionary with
        types (``{"year": int}``). Filters on other keys read the metadata of all nodes.
    metric
        The metric of a new index; ``cosine`` unless given.
    parameters
        Other parameters of a new index, as :class:`garlic_ann.Index` takes them.

    Notes
    -----
    Similarities are cosines, inner products, or ``1 / (1 + distance)`` of Euclidean distances. Query modes are ``default``
    and ``mmr``. ``query`` also takes ``recall`` and ``exact`` as :meth:`garlic_ann.Index.search` does, and ``where``, an SQL
    expression over the columns instead of filters.
    """

    stores_text: bool = True
    flat_metadata: bool = False
    _documents: Documents = PrivateAttr()

    def __init__(
        self,
        index: SearchIndex | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        columns: Keys = (),
        metric: Metric = "cosine",
        **parameters: Unpack[IndexParameters],
    ) -> None:
        super().__init__(stores_text=True)
        typed = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
        keys: Keys = {**typed, _SOURCE: str}
        self._documents = Documents(index, path=path, columns=keys, metric=metric, parameters=parameters)

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in files of LlamaIndex."""
        return "GarlicVectorStore"

    @property
    def client(self) -> SearchIndex | None:
        """The index; ``None`` before the first nodes."""
        return self._documents.index

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Adds nodes with their embeddings, or replaces those whose identifiers exist."""
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes]
        metadatas = [node_to_metadata_dict(node, remove_text=True) for node in nodes]
        vectors = [node.get_embedding() for node in nodes]
        return self._documents.put(texts, vectors, metadatas, [node.node_id for node in nodes])

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Removes the nodes of a document."""
        self._remove(("=", _SOURCE, ref_doc_id))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Removes the nodes that have one of these identifiers and meet the filters."""
        if filters is None:
            self._documents.remove(node_ids or [])
        else:
            allowed = self._allowed(node_ids, None, filters)
            self._documents.remove([str(id) for id in allowed or []])

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes that have one of these identifiers and meet the filters; all of them without both."""
        index = self._documents.index
        if index is None:
            return []
        ids = self._allowed(node_ids, None, filters)
        ids = index.ids().tolist() if ids is None else ids
        return [_node(found) for found in self._documents.get([str(id) for id in ids])]

    def clear(self) -> None:
        """Removes all nodes."""
        self._documents.remove(None)

    def _remove(self, condition: Condition) -> None:
        self._documents.remove([str(id) for id in self._ids(condition)])

    def _ids(self, condition: Condition) -> list[Any]:
        """The identifiers of the nodes that meet a condition."""
        index = self._documents.index
        found = self._documents.where(condition)
        if isinstance(found, list):
            return found
        return [] if index is None else list(index.ids(found).tolist())

    def _allowed(
        self, node_ids: list[str] | None, doc_ids: list[str] | None, filters: MetadataFilters | None
    ) -> list[Any] | None:
        """The identifiers that are allowed; ``None`` if all are."""
        parts = [] if filters is None else [_condition(filters)]
        if doc_ids is not None:
            parts.append(("in", _SOURCE, doc_ids))
        if not parts:
            return node_ids
        found = self._ids(("and", parts))
        if node_ids is None:
            return found
        wanted = set(node_ids)
        return [id for id in found if str(id) in wanted]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that are nearest to the embedding of the query."""
        if query.mode not in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR):
            raise ValueError(f"the query mode {query.mode.value} is not supported; use default or mmr")
        if query.query_embedding is None:
            raise ValueError("the query has no embedding; a vector store searches by embeddings")
        vector, k = query.query_embedding, query.similarity_top_k
        threshold = kwargs.pop("mmr_threshold", query.mmr_threshold)
        fetch = kwargs.pop("mmr_prefetch_k", None) or 4 * k
        allowed: Any = kwargs.pop("where", None)
        # LlamaIndex gives empty lists where it means all nodes.
        if query.filters is not None or query.doc_ids or query.node_ids:
            if allowed is not None:
                raise ValueError("where= and filters are two filters; put all of it into one of them")
            allowed = self._filter(query)
        if query.mode == VectorStoreQueryMode.DEFAULT:
            found = self._documents.search(vector, k, allowed, **kwargs)
        else:
            found = self._documents.search(vector, fetch, allowed, **kwargs)
            if found:
                vectors = self._documents.vectors([one.id for one in found])
                found = [found[row] for row in diverse(vector, vectors, k, 0.5 if threshold is None else threshold)]
        metric = "cosine" if self.client is None else self.client.metric
        return VectorStoreQueryResult(
            nodes=[_node(one) for one in found],
            similarities=[_similarity(metric, one.distance) for one in found],
            ids=[one.id for one in found],
        )

    def _filter(self, query: VectorStoreQuery) -> str | list[Any]:
        """The filter of a query: an expression where columns suffice, else identifiers."""
        if not query.node_ids and not query.doc_ids and query.filters is not None:
            found = self._documents.where(_condition(query.filters))
            return found if isinstance(found, str) else [str(id) for id in found]
        allowed = self._allowed(query.node_ids or None, query.doc_ids or None, query.filters)
        return [str(id) for id in allowed or []]

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Writes the index to a file, which :meth:`from_persist_path` reads. A directory and a server keep everything themselves."""
        if fs is not None and type(fs).__name__ != "LocalFileSystem":
            raise ValueError("an index file is written to a local path; use it without fs=, and copy it")
        if self._documents.is_local and self.client is not None:
            os.makedirs(os.path.dirname(os.path.abspath(persist_path)), exist_ok=True)
            self._documents.save(persist_path)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: Any = None) -> GarlicVectorStore:
        """The store of an index file that :meth:`persist` wrote, or of an index directory."""
        return cls(Documents.load(persist_path).index)

    def close(self) -> None:
        """Closes an index directory, so that another process can write it."""
        self._documents.close()

    # The index works without the interpreter lock, so that a thread does not block the loop.

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """:meth:`add` without blocking."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """:meth:`delete` without blocking."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """:meth:`delete_nodes` without blocking."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """:meth:`get_nodes` without blocking."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """:meth:`clear` without blocking."""
        await asyncio.to_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """:meth:`query` without blocking."""
        return await asyncio.to_thread(self.query, query, **kwargs)


def _node(found: Found) -> BaseNode:
    return metadata_dict_to_node(found.metadata, text=found.text)


def _similarity(metric: str, distance: float) -> float:
    if metric == "euclidean":
        return 1 / (1 + distance)
    return 1 - distance if metric == "cosine" else -distance


def _condition(filters: MetadataFilters | MetadataFilter) -> Condition:
    if isinstance(filters, MetadataFilter):
        return _OPERATORS[filters.operator], filters.key, filters.value
    parts = [_condition(part) for part in filters.filters]
    if filters.condition == FilterCondition.NOT:
        # Met where none of the filters is.
        none: Condition = ("or", parts)
        return "not", [none]
    return ("or" if filters.condition == FilterCondition.OR else "and"), parts
