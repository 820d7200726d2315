"""Known properties of the other baselines: nearest centres, balanced trees and parts, densities, Faiss's own counts."""

import faiss
import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from paper import baselines
from paper.baselines import engine, gmm, neural_lsh, pca_tree
from paper.baselines.pca import principal_axes


def labels_of(cells) -> np.ndarray:
    labels = np.empty(cells.points, int)
    labels[cells.ids] = np.repeat(np.arange(cells.cells), cells.sizes)
    return labels


def test_kmeans_assigns_points_to_the_nearest_centre_and_counts_its_centres(data):
    cells = baselines.build("kmeans", data.base, 1, cells=25)
    assert cells.cells == 25
    # A point as a query probes its own cell first; the means of the cells are the centres once Lloyd has settled.
    assert np.array_equal(cells.order(data.base, 1)[:, 0], labels_of(cells))
    labels = labels_of(cells)
    means = np.stack([data.base[labels == c].mean(axis=0) for c in range(25)])
    nearest = np.linalg.norm(data.base[:, None] - means[None], axis=2).argmin(axis=1)
    assert np.mean(nearest == labels) > 0.97
    assert cells.routing_madds([1, 5], data.queries).tolist() == [25 * 24] * 2


def test_birch_has_about_the_subclusters_it_was_asked_for(data):
    cells = baselines.build("birch", data.base, 1, cells=40, subclusters=5)
    assert cells.cells <= 40
    assert 150 <= cells.extra["subclusters"] <= 267
    assert cells.routing_madds([3], data.queries)[0] == cells.cells * 24


def test_mixture_orders_by_scikit_learns_probabilities(data):
    mean, axes, _ = principal_axes(data.base, 6)
    model = GaussianMixture(9, max_iter=3, reg_covar=1e-3, random_state=0).fit((data.base - mean) @ axes.T)
    densities = gmm.Densities(model, mean, axes)
    expected = model.predict_proba((data.queries - mean) @ axes.T)
    ours = densities(data.queries).astype(np.float64)
    ours = np.exp(ours - ours.max(axis=1, keepdims=True))
    assert np.allclose(ours / ours.sum(axis=1, keepdims=True), expected, atol=1e-3)
    assert densities.madds() == 6 * 24 + 9 * 21


def test_metis_parts_are_balanced_and_cut_fewer_edges_than_chance(data):
    graph = neural_lsh.neighbours(data.base, 10, 16, seed=1)
    labels, cut = neural_lsh.partition(graph, 10, seed=1)
    sizes = np.bincount(labels, minlength=10)
    assert sizes.max() <= 1.05 * 200
    between = np.mean(labels[graph[:, :1]] != labels[graph[:, 1:]])
    assert between < 0.5 and cut < 0.5


def test_the_graph_has_the_nearest_neighbours(data):
    graph = neural_lsh.neighbours(data.base, 10, 1000, seed=1)
    assert np.array_equal(graph[:, 0], np.arange(2000))
    squared = ((data.base[:40, None] - data.base[None]) ** 2).sum(axis=2)
    true = np.argsort(squared, axis=1)[:, 1:11]
    assert all(set(a) == set(b) for a, b in zip(graph[:40, 1:].tolist(), true.tolist()))


def test_the_graph_of_many_points_has_most_of_them(data, monkeypatch):
    true = neural_lsh.neighbours(data.base, 10, 1000, seed=1)
    monkeypatch.setattr(neural_lsh, "LARGE", 100)
    graph = neural_lsh.neighbours(data.base, 10, 16, seed=1)
    assert np.array_equal(graph[:, 0], np.arange(2000))
    assert np.mean([len(set(a) & set(b)) for a, b in zip(graph.tolist(), true.tolist())]) > 0.8 * 11


def test_neural_lsh_counts_its_network(data):
    cells = baselines.build("neural-lsh", data.base, 1, parts=8, rank=16, hidden=32, epochs=8, batch=32)
    assert cells.routing_madds([1], data.queries)[0] == 24 * 16 + 16 * 32 + 32 * 8
    # The network has learned something: most points' own part comes first or second.
    own = labels_of(cells)
    assert np.mean(np.any(cells.order(data.base, 2) == own[:, None], axis=1)) > 0.8


def test_tree_leaves_are_balanced_and_planes_are_principal_directions(data):
    tree = pca_tree.Tree(data.base, 1, depth=4, sample=2000, iterations=200)
    sizes = [len(leaf) for leaf in tree.leaves]
    assert len(sizes) == 16 and max(sizes) - min(sizes) <= 1
    _, axes, _ = principal_axes(data.base, 1)
    assert abs(float(tree.planes[0] @ axes[0])) > 0.999
    side = data.base @ tree.planes[0] > tree.cuts[0]
    assert side.sum() == 1000 and set(np.flatnonzero(side)) == set(np.concatenate(tree.leaves[8:]).tolist())


def test_tree_leaves_come_by_the_planes_between_them_and_the_query(data):
    tree = pca_tree.Tree(data.base, 1, depth=3, sample=2000, iterations=30)
    query = data.queries[0]
    expected = []
    for leaf in range(8):
        node, score = leaf + 7, 0.0
        while node:
            parent = (node - 1) // 2
            margin = float(query @ tree.planes[parent] - tree.cuts[parent])
            if (margin > 0) != (node == 2 * parent + 2):
                score += margin**2
            node = parent
        expected.append(score)
    assert np.array_equal(tree.order(query[None], 8)[0], np.argsort(expected, kind="stable"))


def test_tree_opens_as_many_nodes_as_a_best_first_search(data):
    import heapq

    tree = pca_tree.Tree(data.base, 1, depth=5, sample=2000, iterations=30)
    for probes in (1, 2, 7, 32):
        opened = 0
        for query in data.queries:
            heap, leaves = [(0.0, 0)], 0
            while leaves < probes:
                score, node = heapq.heappop(heap)
                if node >= tree.inner:
                    leaves += 1
                    continue
                opened += 1
                margin = float(query @ tree.planes[node] - tree.cuts[node])
                near, far = (2 * node + 2, 2 * node + 1) if margin > 0 else (2 * node + 1, 2 * node + 2)
                heapq.heappush(heap, (score, near))
                heapq.heappush(heap, (score + margin**2, far))
        assert tree.madds([probes], data.queries)[0] == pytest.approx(24 * opened / 60)
    assert tree.madds([1], data.queries)[0] == 24 * 5


def test_equal_points_can_be_cut():
    tree = pca_tree.Tree(np.ones((40, 3), np.float32), 1, depth=3, sample=10, iterations=5)
    assert [len(leaf) for leaf in tree.leaves] == [5] * 8


def test_ivf_counts_equal_faiss_own(data):
    cells = baselines.build("faiss-ivf", data.base, 1, nlist=40)
    for probes in (1, 4, 40):
        faiss.cvar.indexIVF_stats.reset()
        found, _ = cells.search(data.queries, probes, 10)
        (row,) = engine.measure(cells, data.base, data.queries, data.truth, [probes])
        assert row["candidates"] == faiss.cvar.indexIVF_stats.ndis / 60
        right = np.mean(np.sqrt(found) <= data.truth[:, 9:] * (1 + 1e-5))
        assert row["recall_at_10"] == pytest.approx(right, abs=0.002)
    assert cells.routing_madds([1], data.queries)[0] == 40 * 24


def test_ivf_trains_on_a_fraction(data):
    few = baselines.build("faiss-ivf", data.base, 1, nlist=40, train_fraction=0.05)
    full = baselines.build("faiss-ivf", data.base, 1, nlist=40)
    assert few.settings["train_fraction"] == 0.05 and not np.array_equal(few.sizes, full.sizes)


def test_product_codes_with_and_without_re_ranking(data):
    kwargs = {"settings": {"nlist": 20}, "probes": [1, 5, 20]}
    plain = baselines.run("faiss-pq", data.base, data.queries, data.truth, **kwargs)
    best = baselines.run(
        "faiss-pq-rerank", data.base, data.queries, data.truth,
        settings={"nlist": 20, "k_factors": [1, 8, 200]}, probes=[1, 5, 20],
    )
    assert [row["candidates"] for row in plain["rows"]] == [0, 0, 0]
    last = best["rows"][-1]
    assert last["params"] == {"probes": 20, "k_factor": 200}
    assert last["candidates"] == 2000 and last["recall_at_10"] == last["recall_at_1"] == 1
    assert best["rows"][-2]["candidates"] == 80
    assert best["rows"][-2]["recall_at_10"] > plain["rows"][-1]["recall_at_10"]
    # By hand, without residuals: 20 centres, 16 * 24 for the tables, 12 look-ups for each of 2,000 codes.
    assert plain["rows"][-1]["distance_equivalents"] == pytest.approx((20 * 24 + 16 * 24 + 12 * 2000) / 24)
    assert last["distance_equivalents"] == pytest.approx((20 * 24 + 16 * 24 + 12 * 2000) / 24 + 2000)
    assert best["bytes"] - plain["bytes"] == data.base.nbytes


def test_product_codes_behind_principal_axes(data):
    wide = np.concatenate([data.base] * 10, axis=1)
    queries = np.concatenate([data.queries] * 10, axis=1)
    settings = {"pca": 16, "nlist": 10, "codes": 8, "k_factors": [200]}
    result = baselines.run(
        "faiss-pq-rerank", wide, queries, data.truth * 10**0.5, settings=settings, probes=[2, 10]
    )
    first, last = result["rows"]
    assert last["recall_at_10"] == 1 and last["candidates"] == 2000
    # Axes, centres, a table for each probed list (residuals), codes, exact distances.
    work = 240 * 16 + 10 * 16 + 2 * 16 * 16 + 8 * first["codes_scanned"] + 240 * first["candidates"]
    assert first["distance_equivalents"] == pytest.approx(work / 240)
    assert first["candidates"] == pytest.approx(first["codes_scanned"])


def test_a_bound_on_candidates_leaves_out_factors(data):
    result = baselines.run(
        "faiss-pq-rerank", data.base, data.queries, data.truth, settings={"nlist": 20}, max_candidates=50
    )
    assert {row["params"]["k_factor"] for row in result["rows"]} == {2, 4}
