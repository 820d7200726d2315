"""The vector store of LangChain: LangChain's own suite, in memory, in a directory and on a server, and what the suite does not ask for."""

import asyncio
import json

import garlic_ann as garlic
import numpy as np
import pytest

pytest.importorskip("langchain_tests")

from garlic_ann.langchain import GarlicVectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture()
    def vectorstore(self):
        return GarlicVectorStore(self.get_embeddings())


class TestInDirectory(VectorStoreIntegrationTests):
    @pytest.fixture()
    def vectorstore(self, tmp_path):
        store = GarlicVectorStore(self.get_embeddings(), path=tmp_path / "documents")
        yield store
        store.close()


class TestOfAnIndex(VectorStoreIntegrationTests):
    @pytest.fixture()
    def vectorstore(self):
        return GarlicVectorStore(self.get_embeddings(), garlic.Index(6, metric="cosine"))


class TestOfAServer(VectorStoreIntegrationTests):
    @pytest.fixture()
    def vectorstore(self, make_remote):
        return GarlicVectorStore(self.get_embeddings(), make_remote(6))


class Plane(Embeddings):
    """Texts are numbers: the angle of a vector."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        angle = float(text)
        return [float(np.cos(angle)), float(np.sin(angle))]


TEXTS = ["0.0", "0.1", "0.2", "1.0", "2.0"]
METADATA = [
    {"year": 1990, "lang": "en", "tags": ["a", "b"]},
    {"year": 2000, "lang": "it's"},
    {"year": 2010, "lang": "de", "score": 0.5},
    {"year": 2020},
    {"lang": "en", "nested": {"x": [1, None]}},
]


KEYS = [(), {"year": int, "lang": str}]


@pytest.fixture(params=[(keys, place) for keys in KEYS for place in ("memory", "server")], ids=lambda param: f"{'columns' if param[0] else 'metadata'}-{param[1]}")
def store(request):
    columns, place = request.param
    index = request.getfixturevalue("make_remote")(2) if place == "server" else None
    return GarlicVectorStore.from_texts(TEXTS, Plane(), METADATA, ids=list("abcde"), index=index, columns=columns)


def ids(documents):
    return [document.id for document in documents]


def test_metadata_come_back_as_they_were(store):
    found = {document.id: document for document in store.similarity_search("0", k=10)}
    assert [found[id].metadata for id in "abcde"] == METADATA
    assert [found[id].page_content for id in "abcde"] == TEXTS
    assert len(store) == 5 and store


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"lang": "en"}, "ae"),
        ({"lang": "it's"}, "b"),
        ({"lang": {"$ne": "en"}}, "bcd"),
        ({"lang": ["de", "it's"]}, "bc"),
        ({"lang": {"$nin": ["de", "it's"]}}, "ade"),
        ({"year": {"$gte": 2000, "$lt": 2020}}, "bc"),
        ({"year": {"$exists": False}}, "e"),
        ({"year": None}, "e"),
        ({"$or": [{"year": {"$gt": 2010}}, {"lang": "de"}]}, "cd"),
        ({"$not": {"year": {"$gt": 1995}}}, "ae"),
        ({"$and": [{"lang": "en"}, {"$not": {"year": 1990}}]}, "e"),
        ({"score": 0.5}, "c"),
        ({"year": {"$in": []}}, ""),
        (lambda document: "a" in document.metadata.get("tags", []), "a"),
    ],
)
@pytest.mark.filterwarnings("ignore:the search found no point")
def test_filters(store, filter, expected):
    assert sorted(ids(store.similarity_search("0", k=10, filter=filter))) == list(expected)


def test_expressions(store):
    if "year" in store.index.columns:
        assert ids(store.similarity_search("0", k=2, filter="year > 1995 AND lang <> 'de'")) == ["b"]
    with pytest.raises(ValueError, match="the columns are: id"):
        store.similarity_search("0", filter="yeer > 1995")
    with pytest.raises(ValueError, match=r"\$above of `year` is not known"):
        store.similarity_search("0", filter={"year": {"$above": 3}})


def test_scores_are_distances(store):
    found = store.similarity_search_with_score("0.1", k=3, exact=True)
    assert ids(document for document, _ in found) == ["b", "a", "c"] or ids(d for d, _ in found) == ["b", "c", "a"]
    np.testing.assert_allclose([score for _, score in found], [0, 1 - np.cos(0.1), 1 - np.cos(0.1)], atol=1e-6)
    relevant = store.similarity_search_with_relevance_scores("0.1", k=2, score_threshold=0.999)
    assert ids(document for document, _ in relevant) == ["b"]
    for metric, near in (("euclidean", 1.0), ("inner_product", 1.0)):
        other = GarlicVectorStore.from_texts(TEXTS, Plane(), metric=metric)
        (_, score), = other.similarity_search_with_relevance_scores("0.2", k=1)
        assert score == pytest.approx(near, abs=1e-3)


def test_marginal_relevance(store):
    assert ids(store.max_marginal_relevance_search("0", k=2, fetch_k=5, lambda_mult=1.0)) == ["a", "b"]
    assert ids(store.max_marginal_relevance_search("0", k=2, fetch_k=5, lambda_mult=0.0)) == ["a", "e"]
    assert ids(store.max_marginal_relevance_search("0", k=2, filter={"year": {"$lt": 2005}}, lambda_mult=0.0)) == ["a", "b"]
    assert ids(asyncio.run(store.amax_marginal_relevance_search("0", k=2, fetch_k=5, lambda_mult=0.0))) == ["a", "e"]


def test_async_takes_the_same_options(store):
    async def ask():
        first = await store.asimilarity_search("0", k=2, filter={"lang": "en"})
        second = await store.asimilarity_search_with_score("0", k=1)
        third = await store.asimilarity_search_by_vector([0.0, 1.0], k=1)
        made = await GarlicVectorStore.afrom_texts(["1", "2"], Plane(), ids=["x", "y"])
        return ids(first), second[0][0].id, ids(third), len(made)

    assert asyncio.run(ask()) == (["a", "e"], "a", ["e"], 2) or asyncio.run(ask())[:2] == (["a", "e"], "a")


def test_changes(store):
    assert store.add_documents([Document("0.3", metadata={"year": 1}), Document("0.4", id="d")])[1] == "d"
    assert len(store) == 6
    assert store.get_by_ids(["d", "nobody", "a"])[0] == Document("0.4", id="d", metadata={})
    # The last one of several with the same identifier counts.
    assert store.add_texts(["5", "6"], ids=["z", "z"]) == ["z", "z"]
    assert store.get_by_ids(["z"])[0].page_content == "6"
    assert store.delete(["z", "nobody"]) and len(store) == 6
    with pytest.raises(ValueError, match="there are 2 texts but 1 metadata"):
        store.add_texts(["1", "2"], [{}])
    with pytest.raises(ValueError, match="metadata must be what JSON can write"):
        store.add_texts(["1"], [{"x": object()}])
    assert store.delete() and len(store) == 0 and store.similarity_search("0") == []
    store.add_texts(["1"], [{"year": 3}])
    assert store.similarity_search("1")[0].metadata == {"year": 3}


def test_stores_are_kept(store, tmp_path):
    store.save(tmp_path / "documents.garlic")
    again = GarlicVectorStore.load(tmp_path / "documents.garlic", Plane())
    assert again.similarity_search("0", k=10) == store.similarity_search("0", k=10)
    again.add_texts(["3"], [{"year": 5}], ids=["f"])
    assert len(again) == 6 and len(store) == 5
    live = GarlicVectorStore(Plane(), path=tmp_path / "live", columns=["year"])
    live.add_texts(TEXTS, METADATA, ids=list("abcde"))
    live.close()
    again = GarlicVectorStore(Plane(), path=tmp_path / "live")
    assert ids(again.similarity_search("0", filter="year = 2000")) == ["b"]
    again.save(tmp_path / "copy.garlic")
    again.close()
    loaded = GarlicVectorStore.load(tmp_path / "live", Plane())
    assert len(loaded) == len(GarlicVectorStore.load(tmp_path / "copy.garlic", Plane())) == 5
    loaded.close()
    with pytest.raises(ValueError, match="nothing to save"):
        GarlicVectorStore(Plane()).save(tmp_path / "empty.garlic")
    with pytest.raises(TypeError, match="leave out path="):
        GarlicVectorStore(Plane(), garlic.Index(2), path=tmp_path / "x")


def test_an_index_that_was_made_elsewhere():
    x = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    columns = {"text": ["one", "two", None], "year": [1, None, 3], "weight": [0.5, np.nan, 1.0]}
    store = GarlicVectorStore(Plane(), garlic.build(x, columns=columns, metric="cosine"))
    (found,) = store.similarity_search("0", k=1)
    assert found == Document("one", id="0", metadata={"year": 1, "weight": 0.5})
    assert [d.page_content for d in store.get_by_ids(["1", "2", "77", "x"])] == ["two", ""]
    assert store.get_by_ids(["1"])[0].metadata == {}
    assert ids(store.similarity_search("0", filter={"year": {"$gt": 1}})) == ["2"]
    assert store.delete(["0"]) and len(store) == 2
    store.add_texts(["0"], [{"year": 9}], ids=["7"])
    assert store.get_by_ids(["7"])[0].metadata == {"year": 9}
    with pytest.raises(ValueError, match="no column `author`"):
        store.add_texts(["0"], [{"author": "x"}], ids=["8"])
    with pytest.raises(ValueError, match="`text` is a column of every store"):
        GarlicVectorStore(Plane(), columns=["text"])


def test_a_retriever():
    store = GarlicVectorStore(DeterministicFakeEmbedding(size=16), columns=["n"])
    store.add_texts([f"text {n}" for n in range(50)], [{"n": n} for n in range(50)])
    retriever = store.as_retriever(search_kwargs={"k": 3, "filter": "n % 2 = 0", "exact": True})
    found = retriever.invoke("text 7")
    assert len(found) == 3 and all(document.metadata["n"] % 2 == 0 for document in found)
    assert json.loads(str(store.index.rows(found[0].id, ["metadata"])["metadata"]))["n"] == found[0].metadata["n"]
