"""What every baseline promises: all points in cells, an order without repeats, honest counts, recall 1 in the end."""

import numpy as np
import pytest

from paper import baselines
from paper.baselines import engine
from paper.baselines.cells import Cells, constant, csr, smallest

EXACT = [name for name in baselines.MODULES if not name.startswith("faiss-pq")]
SETTINGS = {
    "birch": {"cells": 60, "subclusters": 4},
    "gmm": {"components": 12, "rank": 8, "iterations": 3},
    "neural-lsh": {"parts": 8, "rank": 16, "hidden": 32, "epochs": 8, "batch": 32},
}


@pytest.fixture(scope="module")
def built(data):
    return {name: baselines.build(name, data.base, 3, **SETTINGS.get(name, {})) for name in EXACT}


@pytest.mark.parametrize("name", EXACT)
def test_every_point_is_in_a_cell(built, data, name):
    cells = built[name]
    assert set(cells.ids.tolist()) == set(range(len(data.base)))
    assert cells.offsets[0] == 0 and cells.offsets[-1] == len(cells.ids) and (cells.sizes >= 0).all()
    for at in range(cells.cells):
        members = cells.ids[cells.offsets[at] : cells.offsets[at + 1]]
        assert len(set(members.tolist())) == len(members)


@pytest.mark.parametrize("name", EXACT)
def test_order_is_a_permutation_and_prefixes_agree(built, data, name):
    cells = built[name]
    order = cells.order(data.queries, cells.cells)
    assert np.array_equal(np.sort(order, axis=1), np.tile(np.arange(cells.cells), (len(order), 1)))
    assert np.array_equal(cells.order(data.queries, 5)[:, :5], order[:, :5])


@pytest.mark.parametrize("name", EXACT)
def test_recall_is_one_when_everything_is_probed(built, data, name):
    cells = built[name]
    (row,) = engine.measure(cells, data.base, data.queries, data.truth, [cells.cells])
    assert row["recall_at_10"] == row["recall_at_1"] == row["precision_at_10"] == 1
    assert row["candidates"] == len(data.base)
    assert row["relative_error"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", EXACT)
def test_candidates_and_recall_equal_an_independent_count(built, data, name):
    cells = built[name]
    steps = [1, 3, 7, 20]
    rows = engine.measure(cells, data.base, data.queries, data.truth, steps)
    lists = [set(cells.ids[a:b].tolist()) for a, b in zip(cells.offsets, cells.offsets[1:])]
    for row in rows:
        probes = row["params"]["probes"]
        counts, right = [], 0
        for at, query in enumerate(data.queries):
            union = set().union(*(lists[c] for c in cells.order(query[None], probes)[0] if c >= 0))
            counts.append(len(union))
            near = sorted(data.distances[at, i] for i in union)[:10]
            right += sum(d <= data.truth[at, 9] * (1 + 1e-6) for d in near)
        assert row["candidates"] == np.mean(counts)
        assert row["recall_at_10"] == pytest.approx(right / 600)
        assert row["distance_equivalents"] > row["candidates"]


@pytest.mark.parametrize("name", EXACT)
def test_the_same_seed_gives_the_same_cells(built, data, name):
    again = baselines.build(name, data.base, 3, **SETTINGS.get(name, {}))
    assert np.array_equal(again.ids, built[name].ids) and np.array_equal(again.offsets, built[name].offsets)
    assert np.array_equal(again.order(data.queries, 9), built[name].order(data.queries, 9))


@pytest.mark.parametrize("name", EXACT)
def test_few_probes_find_more_than_chance(built, data, name):
    cells = built[name]
    rows = engine.measure(cells, data.base, data.queries, data.truth)
    assert rows[0]["recall_at_10"] > 2 * rows[0]["candidates"] / len(data.base)
    assert [r["candidates"] for r in rows] == sorted(r["candidates"] for r in rows)
    assert [r["distance_equivalents"] for r in rows] == sorted(r["distance_equivalents"] for r in rows)


def test_a_result_has_what_the_report_reads(data):
    result = baselines.run("kmeans", data.base, data.queries, data.truth, settings={"cells": 30}, timed=5)
    assert result["cells"] == 30 and result["points"] == 2000 and result["dim"] == 24 and result["queries"] == 60
    assert result["settings"] == {"cells": 30, "train": 100_000, "iterations": 25}
    assert result["bytes"] == 2000 * 24 * 4 + 4 * 2000 + 8 * 31 + 30 * 24 * 4
    assert result["build_seconds"] > 0 and all(row["qps"] > 0 for row in result["rows"])


def test_unknown_names_and_settings_are_refused(data):
    with pytest.raises(ValueError, match="no baseline"):
        baselines.build("nothing", data.base)
    with pytest.raises(ValueError, match="no setting nlists"):
        baselines.build("kmeans", data.base, nlists=3)


def test_a_missing_end_of_the_order_is_no_cell(data):
    # Cell 0 has everything, and queries may probe nothing else.
    offsets, ids = csr(np.zeros(2000, int), 3)
    cells = Cells(offsets, ids, 2000, lambda q, most: np.tile([0, -1, -1][:most], (len(q), 1)), constant(240), {})
    row = engine.measure(cells, data.base, data.queries, data.truth, [3])[0]
    assert row["candidates"] == 2000 and row["recall_at_10"] == 1
    assert row["distance_equivalents"] == 2000 + 240 / 24


def test_steps_stop_at_the_most_candidates(built, data):
    rows = engine.measure(built["kmeans"], data.base, data.queries, data.truth, max_candidates=100)
    more = engine.measure(built["kmeans"], data.base, data.queries, data.truth)
    assert len(rows) < len(more) and rows[-1]["candidates"] < 130
    assert 0.15 < more[-1]["candidates"] / 2000 < 0.3


def test_cumulative_counts_distinct_points(built, data):
    cells = built["hyperplane-lsh"]
    reach = engine.cumulative(cells, data.queries, sample=60)
    (row,) = engine.measure(cells, data.base, data.queries, data.truth, [25])
    assert reach[24] == pytest.approx(row["candidates"])
    assert reach[-1] == 2000


def test_rounding_of_the_product_decides_nothing():
    # Far from the origin a float32 product cannot tell these points apart.
    random = np.random.default_rng(5)
    base = (1000 + random.normal(0, 0.1, (500, 16))).astype(np.float32)
    queries = (1000 + random.normal(0, 0.1, (20, 16))).astype(np.float32)
    distances = np.linalg.norm(queries[:, None].astype(float) - base[None].astype(float), axis=2)
    offsets, ids = csr(np.zeros(500, int), 1)
    cells = Cells(offsets, ids, 500, lambda q, most: np.zeros((len(q), 1), int), constant(0), {})
    found, _ = engine.answers(cells, base, queries, [1], 10)
    assert np.allclose(found[0], np.sort(distances, axis=1)[:, :10], rtol=1e-12)


def test_smallest_settles_ties_by_column():
    scores = np.array([[2.0, 1.0, 1.0, 3.0, 0.0]])
    assert smallest(scores, 3).tolist() == [[4, 1, 2]]
    assert smallest(scores, 9).tolist() == [[4, 1, 2, 0, 3]]
