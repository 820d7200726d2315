"""The vector store of LlamaIndex."""

import asyncio

import garlic_ann as garlic
import numpy as np
import pytest

pytest.importorskip("llama_index.core")

from garlic_ann.llama_index import GarlicVectorStore
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import VectorStoreQueryMode


def node(id, angle, document, **metadata):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    vector = [float(np.cos(angle)), float(np.sin(angle))]
    return TextNode(id_=id, text=f"text {id}", embedding=vector, metadata=metadata, relationships=source)


def nodes():
    return [
        node("a", 0.0, "one", year=1990, lang="en", tags=["x", "y"]),
        node("b", 0.1, "one", year=2000, lang="de"),
        node("c", 0.2, "two", year=2010, lang="100%"),
        node("d", 1.0, "two", lang="en"),
    ]


KEYS = [(), {"year": int, "lang": str}]


@pytest.fixture(params=[(keys, place) for keys in KEYS for place in ("memory", "server")], ids=lambda param: f"{'columns' if param[0] else 'metadata'}-{param[1]}")
def store(request):
    columns, place = request.param
    index = request.getfixturevalue("make_remote")(2) if place == "server" else None
    store = GarlicVectorStore(index, columns=columns)
    assert (store.client is None) == (place == "memory") and store.get_nodes() == []
    assert store.add(nodes()) == ["a", "b", "c", "d"]
    return store


def ask(store, k=10, **query):
    return store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=k, **query))


def test_nodes_come_back_as_they_were(store):
    found = ask(store, 2)
    assert found.ids == ["a", "b"]
    np.testing.assert_allclose(found.similarities, np.cos([0, 0.1]), atol=1e-6)
    given = nodes()[0]
    assert (found.nodes[0].text, found.nodes[0].metadata) == (given.text, given.metadata)
    assert found.nodes[0].ref_doc_id == "one" and found.nodes[0].embedding is None


OPERATORS = FilterOperator
FILTERS = [
    (("lang", OPERATORS.EQ, "en"), "ad"),
    (("lang", OPERATORS.NE, "en"), "bc"),
    (("year", OPERATORS.GT, 1990), "bc"),
    (("year", OPERATORS.GTE, 2000), "bc"),
    (("year", OPERATORS.LT, 2000), "a"),
    (("year", OPERATORS.LTE, 2000), "ab"),
    (("lang", OPERATORS.IN, ["en", "de"]), "abd"),
    (("lang", OPERATORS.NIN, ["en", "de"]), "c"),
    (("year", OPERATORS.NE, 1990), "bcd"),
    (("tags", OPERATORS.CONTAINS, "x"), "a"),
    (("tags", OPERATORS.ANY, ["z", "y"]), "a"),
    (("tags", OPERATORS.ALL, ["z", "y"]), ""),
    (("lang", OPERATORS.TEXT_MATCH, "0%"), "c"),
    (("lang", OPERATORS.TEXT_MATCH, "E"), ""),
    (("lang", OPERATORS.TEXT_MATCH_INSENSITIVE, "E"), "abd"),
    (("year", OPERATORS.IS_EMPTY, None), "d"),
]


def filters(*conditions, joined=FilterCondition.AND):
    made = [c if isinstance(c, MetadataFilters) else MetadataFilter(key=c[0], operator=c[1], value=c[2]) for c in conditions]
    return MetadataFilters(filters=made, condition=joined)


@pytest.mark.parametrize(("condition", "expected"), FILTERS)
@pytest.mark.filterwarnings("ignore:the search found no point")
def test_filters(store, condition, expected):
    assert sorted(ask(store, filters=filters(condition)).ids) == list(expected)
    assert sorted(node.node_id for node in store.get_nodes(filters=filters(condition))) == list(expected)


def test_joined_filters(store):
    english, old = ("lang", OPERATORS.EQ, "en"), ("year", OPERATORS.LT, 2005)
    assert ask(store, filters=filters(english, old)).ids == ["a"]
    assert sorted(ask(store, filters=filters(english, old, joined=FilterCondition.OR)).ids) == ["a", "b", "d"]
    assert ask(store, filters=filters(english, old, joined=FilterCondition.NOT)).ids == ["c"]
    nested = filters(filters(english, old, joined=FilterCondition.NOT), ("year", OPERATORS.GT, 0))
    assert ask(store, filters=nested).ids == ["c"]
    assert ask(store, doc_ids=["one"], filters=filters(english)).ids == ["a"]
    assert ask(store, node_ids=["b", "d"]).ids == ["b", "d"]
    if "year" in store.client.columns:
        assert store.query(VectorStoreQuery([1.0, 0.0], 5), where="year > 1995").ids == ["b", "c"]


def test_changes(store):
    store.delete("one")
    assert sorted(node.node_id for node in store.get_nodes()) == ["c", "d"]
    store.add([node("c", 0.5, "three", year=1)])
    assert store.get_nodes(["c"])[0].metadata == {"year": 1}
    store.delete_nodes(["c"], filters(("year", OPERATORS.GT, 5)))
    assert len(store.client) == 2
    store.delete_nodes(["c"], filters(("year", OPERATORS.LT, 5)))
    assert [node.node_id for node in store.get_nodes()] == ["d"]
    store.delete_nodes(["d"])
    assert store.get_nodes() == [] and ask(store).ids == []
    store.add(nodes())
    store.clear()
    assert len(store.client) == 0


def test_marginal_relevance_and_modes(store):
    assert ask(store, 2, mode=VectorStoreQueryMode.MMR, mmr_threshold=0.0).ids == ["a", "d"]
    assert ask(store, 2, mode=VectorStoreQueryMode.MMR, mmr_threshold=1.0).ids == ["a", "b"]
    with pytest.raises(ValueError, match="use default or mmr"):
        ask(store, mode=VectorStoreQueryMode.HYBRID)
    with pytest.raises(ValueError, match="no embedding"):
        store.query(VectorStoreQuery())


def test_stores_are_kept(store, tmp_path):
    path = str(tmp_path / "folder" / "nodes.garlic")
    store.persist(path)
    if isinstance(store.client, garlic.Index):
        again = GarlicVectorStore.from_persist_path(path)
        assert ask(again).ids == ask(store).ids and again.get_nodes(["b"]) == store.get_nodes(["b"])
    else:
        assert not (tmp_path / "folder").exists()
    GarlicVectorStore().persist(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
    live = GarlicVectorStore(path=tmp_path / "live")
    live.add(nodes())
    live.persist(str(tmp_path / "nothing"))
    live.close()
    assert not (tmp_path / "nothing").exists()
    again = GarlicVectorStore(path=tmp_path / "live")
    assert len(again.get_nodes()) == 4
    again.close()


def test_async(store):
    async def change():
        await store.async_add([node("e", 0.05, "new")])
        found = await store.aquery(VectorStoreQuery([1.0, 0.0], 2))
        await store.adelete("new")
        await store.adelete_nodes(["d"])
        left = await store.aget_nodes()
        await store.aclear()
        return found.ids, [node.node_id for node in left], len(store.client)

    assert asyncio.run(change()) == (["a", "e"], ["a", "b", "c"], 0)


def test_an_index_of_ones_own_and_metrics():
    for metric, best in (("euclidean", 1.0), ("inner_product", 1.0)):
        store = GarlicVectorStore(garlic.Index(2, metric=metric))
        store.add(nodes())
        assert ask(store, 1).similarities[0] == pytest.approx(best)


def test_a_vector_store_index():
    from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex

    context = StorageContext.from_defaults(vector_store=GarlicVectorStore())
    index = VectorStoreIndex(nodes=[], storage_context=context, embed_model=MockEmbedding(embed_dim=2))
    index.insert_nodes([TextNode(id_="x", text="hello")])
    found = index.as_retriever(similarity_top_k=1).retrieve("hello")
    assert [entry.node.node_id for entry in found] == ["x"] and found[0].text == "hello"
