"""A vector store of LangChain. Needs ``langchain-core`` (``pip install garlic-ann[langchain]``).

>>> from langchain_core.embeddings import DeterministicFakeEmbedding
>>> from garlic_ann.langchain import GarlicVectorStore
>>> store = GarlicVectorStore(DeterministicFakeEmbedding(size=8), columns={"year": int})
>>> store.add_texts(["red", "green", "blue"], [{"year": 1990}, {"year": 2010}, {"year": 2020}], ids=["r", "g", "b"])
['r', 'g', 'b']
>>> store.similarity_search("red", k=1)[0].page_content
'red'
>>> sorted(d.page_content for d in store.similarity_search("red", filter="year > 2000"))
['blue', 'green']
>>> [d.metadata["year"] for d in store.similarity_search("red", filter={"year": {"$lt": 2000}})]
[1990]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore

from ._documents import Documents, Found, Keys, SearchIndex, diverse
from ._options import IndexParameters, Metric

if TYPE_CHECKING:
    from typing_extensions import Unpack

Filter = Union[str, Mapping[str, Any], Callable[[Document], bool], None]


class GarlicVectorStore(VectorStore):
    """Documents in an index, searched by the embeddings of their texts.

    Parameters
    ----------
    embedding
        Makes vectors of texts.
    index
        An index to use: a :class:`garlic_ann.Index`, a :class:`garlic_ann.Live`, an index of a
        :class:`garlic_ann.client.Client`, or anything with their methods. Without one, the first documents make one.
    path
        An index directory, made or opened, that keeps every change (:class:`garlic_ann.Live`). Without it, the index is in
        memory; :meth:`save` writes it to a file.
    columns
        Keys of the metadata that become columns of the index. Filters on them are fast and can be SQL. Give a dictionary
        with types (``{"year": int}``) if the first documents may not have the key.
    metric
        The metric of a new index; ``cosine`` unless given.
    parameters
        Other parameters of a new index, as :class:`garlic_ann.Index` takes them.

    Notes
    -----
    A ``filter`` is one of these:

    - text: an SQL expression over the columns and ``id``, such as ``"lang = 'en' AND year > 2015"``;
    - a dictionary over all metadata: ``{"lang": "en", "year": {"$gte": 2015}}``, with ``$eq``, ``$ne``, ``$gt``, ``$gte``,
      ``$lt``, ``$lte``, ``$in``, ``$nin``, ``$exists``, ``$and``, ``$or`` and ``$not``. If it names a key that is no column,
      the metadata of all documents are read;
    - a function of a document, which is asked about all documents.

    Scores are distances, as the index reports them: smaller is nearer. Searches also take the options ``recall`` and
    ``exact`` of :meth:`garlic_ann.Index.search`.
    """

    def __init__(
        self,
        embedding: Embeddings,
        index: SearchIndex | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        columns: Keys = (),
        metric: Metric = "cosine",
        **parameters: Unpack[IndexParameters],
    ) -> None:
        self._embedding = embedding
        self._documents = Documents(index, path=path, columns=columns, metric=metric, parameters=parameters)

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    @property
    def index(self) -> SearchIndex | None:
        """The index; ``None`` before the first documents."""
        return self._documents.index

    def __len__(self) -> int:
        return len(self._documents)

    def __bool__(self) -> bool:
        # A store without documents is still one.
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> GarlicVectorStore:
        """A store with these texts; other arguments are those of the class."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> GarlicVectorStore:
        """:meth:`from_texts` without blocking."""
        store = await run_in_executor(None, lambda: cls(embedding, **kwargs))
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def load(cls, path: str | os.PathLike[str], embedding: Embeddings) -> GarlicVectorStore:
        """The store of a file that :meth:`save` wrote, of any other index file, or of an index directory.

        Of an index that was made elsewhere, the column ``text`` is the text, and the other columns are the metadata.
        """
        return cls(embedding, Documents.load(path).index)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all documents with their vectors to one index file."""
        self._documents.save(path)

    def close(self) -> None:
        """Closes an index directory, so that another process can write it."""
        self._documents.close()

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Adds texts, or replaces those whose identifiers exist, and returns their identifiers."""
        given = list(texts)
        return self._documents.put(given, self._embedding.embed_documents(given), metadatas, ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """:meth:`add_texts` without blocking."""
        given = list(texts)
        vectors = await self._embedding.aembed_documents(given)
        return await run_in_executor(None, self._documents.put, given, vectors, metadatas, ids)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Removes documents, all of them without ``ids``. Identifiers that do not exist are ignored."""
        self._documents.remove(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of some identifiers; those that do not exist are left out."""
        return [_document(found) for found in self._documents.get(ids)]

    def _found(self, vector: Sequence[float], k: int, filter: Filter, options: Mapping[str, Any]) -> list[Found]:
        allowed: Any = filter
        if callable(filter):
            test = filter
            allowed = self._documents.matching(
                lambda text, metadata: bool(test(Document(page_content=text, metadata=metadata)))
            )
            allowed = [str(id) for id in allowed]
        return self._documents.search(vector, k, allowed, **options)

    def similarity_search(self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any) -> list[Document]:
        """The ``k`` documents that are nearest to a text."""
        return self.similarity_search_by_vector(self._embedding.embed_query(query), k, filter, **kwargs)

    async def asimilarity_search(self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any) -> list[Document]:
        """:meth:`similarity_search` without blocking."""
        vector = await self._embedding.aembed_query(query)
        return await run_in_executor(None, self.similarity_search_by_vector, vector, k, filter, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[Document]:
        """The ``k`` documents that are nearest to a vector."""
        return [_document(found) for found in self._found(embedding, k, filter, kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` documents that are nearest to a text, with their distances."""
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, filter, **kwargs)

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """:meth:`similarity_search_with_score` without blocking."""
        vector = await self._embedding.aembed_query(query)
        return await run_in_executor(None, self.similarity_search_with_score_by_vector, vector, k, filter, **kwargs)

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The ``k`` documents that are nearest to a vector, with their distances."""
        return [(_document(found), found.distance) for found in self._found(embedding, k, filter, kwargs)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **kwargs: Any,
    ) -> list[Document]:
        """``k`` of the ``fetch_k`` documents that are nearest to a text, chosen to be unlike each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter, **kwargs)

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **kwargs: Any,
    ) -> list[Document]:
        """:meth:`max_marginal_relevance_search` without blocking."""
        vector = await self._embedding.aembed_query(query)
        return await self.amax_marginal_relevance_search_by_vector(
            vector, k, fetch_k, lambda_mult, filter=filter, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter = None,
        **kwargs: Any,
    ) -> list[Document]:
        """``k`` of the ``fetch_k`` documents that are nearest to a vector, chosen to be unlike each other.

        ``lambda_mult`` is 1 for the nearest ones and 0 for those that are most unlike.
        """
        found = self._found(embedding, max(k, fetch_k), filter, kwargs)
        if not found:
            return []
        vectors = self._documents.vectors([one.id for one in found])
        return [_document(found[row]) for row in diverse(embedding, vectors, k, lambda_mult)]

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """:meth:`max_marginal_relevance_search_by_vector` without blocking."""
        return await run_in_executor(
            None, self.max_marginal_relevance_search_by_vector, embedding, k, fetch_k, lambda_mult, **kwargs
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        metric = "cosine" if self.index is None else self.index.metric
        scores = {
            "cosine": self._cosine_relevance_score_fn,
            "euclidean": self._euclidean_relevance_score_fn,
            "inner_product": self._max_inner_product_relevance_score_fn,
        }
        return cast("Callable[[float], float]", scores[metric])


def _document(found: Found) -> Document:
    return Document(id=found.id, page_content=found.text, metadata=found.metadata)
