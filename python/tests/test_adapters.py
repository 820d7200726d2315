"""The adapters, driven as ANN-Benchmarks and VIBE drive theirs."""

import importlib
import sys
import time
import types
from itertools import product
from pathlib import Path

import brute
import numpy as np
import pytest

ADAPTERS = Path(__file__).parents[2] / "adapters"


class BaseANN:
    """What both benchmarks give an algorithm before it overrides it."""

    def done(self):
        pass

    def get_memory_usage(self):
        return 0.0

    def fit(self, X):
        raise NotImplementedError

    def query(self, q, n):
        raise NotImplementedError

    def batch_query(self, X, n):
        self.res = [self.query(q, n) for q in X]

    def get_batch_results(self):
        return self.res

    def get_additional(self):
        return {}

    def __str__(self):
        return self.name


@pytest.fixture
def load(monkeypatch):
    """Imports an adapter as a module of a package that has `base.module`, as the benchmarks do."""

    def load(benchmark):
        package = types.ModuleType("algorithms")
        package.__path__ = [str(ADAPTERS / benchmark)]
        base = types.ModuleType("algorithms.base")
        base.__path__ = []
        module = types.ModuleType("algorithms.base.module")
        module.BaseANN = BaseANN
        for name in [name for name in sys.modules if name.startswith("algorithms")]:
            monkeypatch.delitem(sys.modules, name)
        for known in (package, base, module):
            monkeypatch.setitem(sys.modules, known.__name__, known)
        return importlib.import_module("algorithms.garlic.module")

    return load


def definitions(benchmark, point_type="float"):
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load((ADAPTERS / benchmark / "garlic" / "config.yml").read_text())
    (definition,) = config[point_type].get("any") or config[point_type]["euclidean"]
    return definition


def combinations(grid):
    """Cartesian product of a list of lists, or of the values of a dictionary."""
    lists = grid.values() if isinstance(grid, dict) else grid
    return [list(values) for values in product(*lists)]


def drive(algorithm, groups, x, queries, count, batch):
    """Fit once; for each group of query arguments, time every query twice, check, ask for more attributes."""
    algorithm.fit(x)
    rows = []
    for group in groups:
        algorithm.set_query_arguments(*group)
        for _ in range(2):
            start = time.time()
            if batch:
                algorithm.batch_query(queries, count)
                answers = algorithm.get_batch_results()
            else:
                answers = [algorithm.query(q, count) for q in queries]
            spent = time.time() - start
        assert all(len(answer) <= count and len(set(answer.tolist())) == len(answer) for answer in answers)
        # Distances come from the data, so that every identifier must be a row of it.
        assert all((x[answer] == x[answer]).all() for answer in answers)
        rows.append((group, str(algorithm), spent, answers, dict(algorithm.get_additional())))
    algorithm.done()
    return rows


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    "benchmark, metric, ours",
    [
        ("ann-benchmarks", "euclidean", "euclidean"),
        ("ann-benchmarks", "angular", "cosine"),
        ("vibe", "euclidean", "euclidean"),
        ("vibe", "normalized", "cosine"),
        ("vibe", "ip", "inner_product"),
    ],
)
def test_a_whole_run(load, many_points, queries, benchmark, metric, ours, batch):
    definition = definitions(benchmark)
    (group,) = definition["run_groups"].values()
    (arguments,) = combinations(group["args"])
    algorithm = getattr(load(benchmark), definition["constructor"])(metric, *arguments)
    asked = combinations(group["query_args"])
    rows = drive(algorithm, asked, many_points, queries, 10, batch)
    assert len({name for _, name, *_ in rows}) == len(asked)
    works = []
    for (recall,), _, _, answers, additional in rows:
        full = np.array([np.resize(answer, 10) for answer in answers])
        assert brute.recall(full, queries, many_points, ours) > recall - 0.1
        # High targets may take all points.
        assert 10 <= additional["exact_distances"] <= additional["distance_equivalents"]
        assert additional["exact_distances"] < len(many_points) or recall > 0.9
        assert additional["dist_comps"] == pytest.approx(additional["distance_equivalents"] * 2 * len(queries))
        works.append(additional["distance_equivalents"])
    # The highest targets may leave the graph for cells and bins, whose codes are shorter.
    assert max(works) > works[0] > 0


def test_missing_answers_are_left_out(load, points):
    algorithm = load("ann-benchmarks").Garlic("euclidean", 8)
    algorithm.fit(points[:5])
    assert sorted(algorithm.query(points[0], 10).tolist()) == [0, 1, 2, 3, 4]
    algorithm.batch_query(points[:2], 10)
    assert [len(row) for row in algorithm.get_batch_results()] == [5, 5]


@pytest.mark.parametrize("benchmark", ["ann-benchmarks", "vibe"])
def test_other_metrics_are_refused(load, benchmark):
    with pytest.raises(NotImplementedError):
        load(benchmark).Garlic("hamming", 8)


def test_bytes(load, points):
    definition = definitions("vibe", "uint8")
    algorithm = getattr(load("vibe"), definition["constructor"])("euclidean", 8)
    x = np.clip(points * 8 + 128, 0, 255).astype(np.uint8)
    algorithm.fit(x)
    algorithm.set_query_arguments(0.9)
    assert algorithm.query(x[3], 1)[0] == 3
