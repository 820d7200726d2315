"""Answers against brute force."""

import brute
import garlic_ann as garlic
import numpy as np
import pytest


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_every_metric_reaches_its_recall(points, queries, metric):
    index = garlic.build(points, metric=metric, seed=1)
    assert index.metric == metric
    distances, ids = index.search(queries, k=10, recall=0.95)
    assert distances.dtype == np.float32 and ids.dtype == np.int64
    assert ids.shape == distances.shape == (len(queries), 10)
    assert brute.recall(ids, queries, points, metric) >= 0.9
    true = np.take_along_axis(brute.distances(queries, points, metric), ids, 1)
    np.testing.assert_allclose(distances, true, rtol=1e-4, atol=1e-4)
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_exact_is_exact(points, queries, metric):
    index = garlic.build(points, metric=metric, seed=1)
    _, ids = index.search(queries, k=20, exact=True)
    assert brute.recall(ids, queries, points, metric) > 0.999


def test_cells_found_elsewhere(points, queries):
    side = points[:, 0] > np.median(points[:, 0])
    index = garlic.build(points, partition=10 * side.astype(int) + 3, seed=1)
    assert index.stats()["cells"] == 2
    _, ids = index.search(queries, k=10, recall=0.95)
    assert brute.recall(ids, queries, points) >= 0.9
    for partition, message in [
        ([1, 2], "names the cells of 2 points"),
        (side * 1.5, "whole numbers"),
        (np.zeros((len(points), 1), int), "a list"),
        (-side.astype(int), "from -1 to 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            garlic.build(points, partition=partition)
    spheres = garlic.build(points, preset="paper", partition=side.astype(int))
    assert spheres.stats()["cells"] == 2
    _, ids = spheres.search(queries, k=10, probes=2, bins=1.0)
    assert brute.recall(ids, queries, points) > 0.999


def test_the_published_method(points, queries):
    index = garlic.build(points[:1500], preset="paper", epochs=10, initial_cells=10, seed=1)
    _, ids = index.search(queries, k=5, probes=10, bins=1.0)
    assert brute.recall(ids, queries, points[:1500]) > 0.9
    with pytest.raises(ValueError, match="published method"):
        index.search(queries, recall=0.9)
    added = index.add(points[1500:1600])
    assert added.tolist() == list(range(1500, 1600)) and index.remove([0, 1, 5000]) == 2
    _, ids = index.search(queries, k=5, probes=1000, bins=1.0)
    assert brute.recall(ids - 2, queries, points[2:1600]) == 1


def test_one_query_is_one_row(built, queries):
    distances, ids = built.search(queries[3], k=7)
    assert distances.shape == ids.shape == (7,)
    many = built.search(queries[3:4], k=7)
    np.testing.assert_array_equal(ids, many[1][0])
    np.testing.assert_array_equal(distances, many[0][0])
    assert built.search(np.empty((0, 24), np.float32), k=7)[1].shape == (0, 7)


def test_threads_do_not_change_answers(built, queries):
    one = built.search(queries, k=10)
    for threads in (2, 3):
        for a, b in zip(one, built.search(queries, k=10, threads=threads)):
            np.testing.assert_array_equal(a, b)


def test_more_neighbours_than_points():
    index = garlic.build(np.eye(3), ids=[5, 6, 7])
    distances, ids = index.search([[1, 0, 0]], k=5)
    assert sorted(ids[0, :3].tolist()) == [5, 6, 7] and ids[0, 0] == 5
    assert ids[0, 3:].tolist() == [-1, -1] and np.isinf(distances[0, 3:]).all()


def test_work_is_counted(built_of_many, queries):
    _, _, few = built_of_many.search(queries, k=1, recall=0.8, return_stats=True)
    _, _, many = built_of_many.search(queries, k=10, recall=0.99, return_stats=True)
    assert 0 < few["candidates"] < many["candidates"]
    assert few["total_madds"] == pytest.approx(few["distance_equivalents"] * 24)
    _, _, given = built_of_many.search(queries[0], k=1, rerank=33, probes=4, bins=1.0, return_stats=True)
    assert given["candidates"] == 33


@pytest.mark.parametrize("metric, radius", [("euclidean", 6.0), ("cosine", 0.2), ("inner_product", -150.0)])
def test_ranges(points, queries, metric, radius):
    index = garlic.build(points, metric=metric, seed=1)
    lims, distances, ids = index.range_search(queries, radius)
    true = brute.distances(queries, points, metric)
    assert lims.dtype == ids.dtype == np.int64 and distances.dtype == np.float32
    assert lims[0] == 0 and lims[-1] == len(ids) == len(distances) and lims[-1] > len(queries)
    for row in range(len(queries)):
        found = set(ids[lims[row] : lims[row + 1]].tolist())
        slack = 1e-4 * max(1, abs(radius))
        assert set(np.flatnonzero(true[row] < radius - slack)) <= found
        assert found <= set(np.flatnonzero(true[row] < radius + slack))
    lims, _, _ = index.range_search(queries[0], radius, threads=2)
    assert len(lims) == 2


def test_tuning_reaches_the_recall_on_strange_queries(points, queries):
    index = garlic.build(points, seed=1)
    sample = np.random.default_rng(5).permutation(points[:600])[:, ::-1] * 1.5
    strange = queries[:, ::-1] * 1.5
    index.tune(sample)
    built = garlic.build(points, seed=1, queries_like=sample)
    for tuned in (index, built):
        _, ids = tuned.search(strange, k=10, recall=0.95)
        assert brute.recall(ids, strange, points) >= 0.94
    assert index.inspect()["calibration"]["queries"] == 600
    with pytest.raises(ValueError, match="at least 100"):
        index.tune(sample[:99])


def test_same_seed_same_index(points):
    a = garlic.build(points, seed=3, threads=1)
    b = garlic.build(points, seed=3, threads=2)
    assert a.to_bytes() == b.to_bytes()
    assert a.to_bytes() != garlic.build(points, seed=4).to_bytes()


def test_looking_inside(built):
    stats = built.stats()
    assert (stats["points"], stats["dim"], stats["metric"]) == (4000, 24, "euclidean")
    assert stats["memory"]["total"] >= 4000 * 24 * 4
    about = built.inspect()
    assert sum(about["cell_sizes"]) == 4000 and len(about["cell_sizes"]) == about["cells"]
    assert about["calibration"]["settings"] and about["config"]["seed"] == 1
    assert built.drift()["rebuild"] is False
