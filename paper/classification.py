"""Labels by vote: of the nearest points, or of all points of the nearest cells.

A vote of cells looks at no point: its whole cost is choosing the cells. It is compared with the vote of k-means
cells, as many of them, and as many as cost the same.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import faiss
import garlic_ann
import numpy as np

from paper import sets, store

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner


def run(runner: Runner, experiment: Experiment) -> bool:
    """All data sets of the experiment; whether there was anything to do."""
    did = False
    for key in experiment.content["sets"]:
        folder = runner.out / "results" / experiment.name
        done = folder / f"{key}.json"
        source = None if done.is_file() else runner.set(key)
        if source is None:
            continue
        settings = runner.defaults["sets"][key]["paper"] | (runner.defaults["quick"]["paper"] if runner.quick else {})
        settings |= experiment.content.get("settings", {})
        rows = Votes(source, experiment.content, settings, runner.quick, runner.threads).all()
        about = {"experiment": experiment.name} | runner.stamp(source)
        # The report reads one file a method; the list of them is the mark that the set is done.
        for number, row in enumerate(rows):
            store.save(folder / f"{key}-{number:02}.json", about | row)
        store.save(done, about | {"methods": [row["method"] for row in rows]})
        did = True
    return did


class Votes:
    """The votes on one data set."""

    def __init__(
        self, source: sets.Set, content: dict[str, Any], settings: dict[str, Any], quick: bool, threads: int
    ) -> None:
        self.threads = threads
        self.train = source.train()
        labels, test_labels = sets.labels(source)
        self.labels = labels[: len(self.train)].astype(np.int64)
        self.queries = source.queries(500 if quick else 10_000)
        self.answers = test_labels[: len(self.queries)].astype(np.int64)
        self.k = content["neighbours"]
        self.cells = content["cells"]
        self.seed = content["seed"]
        self.settings = settings
        self._found: dict[int, tuple[faiss.Index, np.ndarray, float]] = {}

    def all(self) -> list[dict[str, Any]]:
        """Every method, a row each."""
        rows = [self._exact()]
        for preset, settings in (("default", {}), ("paper", self.settings)):
            start = time.perf_counter()
            index = garlic_ann.build(self.train, preset=preset, seed=self.seed, threads=self.threads, **settings)
            seconds = time.perf_counter() - start
            built = {"build_seconds": seconds, "seed": self.seed}
            rows.append(self._neighbours(index, preset, settings) | built)
            costs = {}
            for count in self.cells:
                row = self._cells(index, preset, settings, count) | built
                costs[count] = row["distance_equivalents"]
                rows.append(row)
            number = index.stats()["cells"]
            rows += [self._kmeans(number, count, f"as many cells as preset {preset}") for count in self.cells]
            same = max(1, round(costs[self.cells[0]]))
            rows.append(self._kmeans(same, 1, f"cost of a cell vote of preset {preset}"))
        return rows

    def _row(self, method: str, votes: np.ndarray, equivalents: float, candidates: float, **settings: Any) -> dict:
        accuracy = float((votes.argmax(axis=1) == self.answers).mean())
        costs = {"distance_equivalents": equivalents, "candidates": candidates}
        return {"method": method, "accuracy": accuracy, "settings": settings, "queries": len(self.answers)} | costs

    def _count(self, ids: np.ndarray) -> np.ndarray:
        """Votes of points for labels; missing points do not vote."""
        votes = np.zeros((len(ids), self.labels.max() + 1))
        rows = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)
        there = ids >= 0
        np.add.at(votes, (rows[there], self.labels[ids[there]]), 1)
        return votes

    def _exact(self) -> dict[str, Any]:
        index = faiss.IndexFlatL2(self.train.shape[1])
        index.add(self.train)
        _, ids = index.search(self.queries, self.k)
        n = len(self.train)
        return self._row("exact k-NN", self._count(ids), n, n, k=self.k) | {"build_seconds": 0.0, "seed": self.seed}

    def _neighbours(self, index: garlic_ann.Index, preset: str, settings: dict[str, Any]) -> dict[str, Any]:
        how = {} if preset == "default" else {"probes": 5, "bins": 0.3}
        _, ids, work = index.search(self.queries, self.k, return_stats=True, **how)
        name = f"garlic-{preset} k-NN"
        n = len(self.queries)
        total = work["distance_equivalents"] / n
        return self._row(name, self._count(ids), total, work["candidates"] / n, k=self.k, **settings, **how)

    def _cells(self, index: garlic_ann.Index, preset: str, settings: dict[str, Any], count: int) -> dict[str, Any]:
        counts = np.zeros((index.stats()["cells"], self.labels.max() + 1))
        np.add.at(counts, (index.route(self.train)[:, 0], self.labels), 1)
        votes = counts[index.route(self.queries, count).reshape(len(self.queries), -1)].sum(axis=1)
        # What choosing so many cells costs, as a search counts it.
        some = self.queries[:200]
        how = {"probes": count} if preset == "paper" else {"probes": count, "rerank": 1}
        *_, work = index.search(some, 1, return_stats=True, **how)
        madds = work["rotation_madds"] + work["routing_madds"]
        equivalents = madds / self.train.shape[1] / len(some)
        return self._row(f"garlic-{preset} cell vote", votes, equivalents, 0, cells=count, **settings)

    def _kmeans(self, number: int, count: int, why: str) -> dict[str, Any]:
        means, counts, seconds = self._centres(number)
        votes = counts[means.search(self.queries, min(count, number))[1]].sum(axis=1)
        row = self._row("k-means vote", votes, number, 0, cells=count, centres=number, why=why)
        return row | {"build_seconds": seconds, "seed": self.seed}

    def _centres(self, number: int) -> tuple[faiss.Index, np.ndarray, float]:
        """Centres of k-means, the labels around each, and the time that took; found once for each number."""
        if number not in self._found:
            start = time.perf_counter()
            means = faiss.Kmeans(self.train.shape[1], number, niter=20, seed=self.seed, max_points_per_centroid=10**9)
            means.train(self.train)
            seconds = time.perf_counter() - start
            counts = np.zeros((number, self.labels.max() + 1))
            np.add.at(counts, (means.index.search(self.train, 1)[1][:, 0], self.labels), 1)
            self._found[number] = means.index, counts, seconds
        return self._found[number]
