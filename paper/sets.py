"""Data sets of the experiments: those of `defaults.toml`, parts of them, and images made smaller or larger."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bench.harness import dataset

DEPTH = 100


@dataclass(frozen=True)
class Set:
    """A data set in the ANN-Benchmarks layout."""

    name: str
    path: Path
    source: Path | None = None  # the whole set, where this one is the first points and queries of it

    def read(self, key: str) -> np.ndarray:
        """One array of the file."""
        with h5py.File(self.path, "r") as file:
            return np.asarray(file[key])

    def train(self) -> np.ndarray:
        """The points, float32."""
        return np.ascontiguousarray(self.read("train"), dtype=np.float32)

    def queries(self, count: int) -> np.ndarray:
        """The first `count` queries, float32."""
        return np.ascontiguousarray(self.read("test")[:count], dtype=np.float32)

    def truth(self, count: int, base: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """True distances of the first `count` queries, computed anew from the neighbours' ids."""
        ids = self.read("neighbors")[:count]
        found = np.empty(ids.shape, dtype=np.float64)
        for i, row in enumerate(ids):
            found[i] = np.sqrt(((base[row].astype(np.float64) - queries[i]) ** 2).sum(axis=1))
        return np.sort(found, axis=1)


def open_set(key: str, defaults: dict[str, Any], quick: bool, cache: Path) -> Set | None:
    """The data set of a key of `defaults.toml`; None, and a loud line, when its file is not there."""
    about = defaults["sets"][key]
    source = next((f for f in map(_find, about["files"]) if f), None)
    if source is None:
        print(f"MISSING: {' or '.join(about['files'])} is not there: set GARLIC_DATA", file=sys.stderr)
        return None
    if side := about.get("side"):
        points = about["points"] if not quick else min(about["points"], defaults["quick"]["points"])
        return _resized(source, key, side, points, about["queries"], cache)
    if not quick and "points" not in about:
        return Set(source.stem, source)
    points, queries = (about.get(name) or defaults["quick"][name] for name in ("points", "queries"))
    if quick:
        points, queries = (min(a, defaults["quick"][b]) for a, b in ((points, "points"), (queries, "queries")))
    label, path = dataset.prepare(str(source), limit_base=points, limit_queries=queries)
    return Set(key if "points" in about else source.stem, Path(path), source)


def labels(source: Set) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all points and queries: of the file, or those that `garlic datasets --labels` fetched.

    Those of a part of a set are the first ones.
    """
    with h5py.File(source.source or source.path, "r") as file:
        if "train_labels" in file and "test_labels" in file:
            return np.asarray(file["train_labels"]), np.asarray(file["test_labels"])
    from garlic_ann import datasets

    return datasets.labels(source.name.split("-784")[0])


def _find(name: str) -> Path | None:
    try:
        return dataset.find(name)
    except SystemExit:
        return None


def _resized(source: Path, name: str, side: int, points: int, queries: int, cache: Path) -> Set:
    """Square images brought to another side by averaging areas, with their true neighbours."""
    path = cache / f"{name}-{points}-{queries}.hdf5"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(source, "r") as file:
            train, test = file["train"][:points], file["test"][:queries]
        train, test = (resize(np.asarray(x, dtype=np.float32), side) for x in (train, test))
        neighbors = np.empty((len(test), DEPTH), dtype=np.int32)
        norms = (train.astype(np.float64) ** 2).sum(axis=1)
        for start in range(0, len(test), 200):
            some = test[start : start + 200].astype(np.float64)
            squares = norms - 2 * some @ train.T.astype(np.float64)
            neighbors[start : start + 200] = np.argsort(squares, axis=1, kind="stable")[:, :DEPTH]
        partial = path.with_suffix(".partial")
        with h5py.File(partial, "w") as file:
            file.attrs["distance"] = "euclidean"
            file["train"], file["test"], file["neighbors"] = train, test, neighbors
        partial.rename(path)
    return Set(name, path)


def resize(images: np.ndarray, side: int) -> np.ndarray:
    """Images (one a row, square) brought to `side` x `side` pixels: every new pixel is the mean of the area it covers."""
    old = round(images.shape[1] ** 0.5)
    weights = np.zeros((side, old), dtype=np.float32)
    scale = old / side
    for i in range(side):
        low, high = i * scale, (i + 1) * scale
        for j in range(int(low), min(old, int(np.ceil(high)))):
            weights[i, j] = max(0.0, min(high, j + 1) - max(low, j)) / scale
    pictures = images.reshape(-1, old, old)
    return np.einsum("ai,nij,bj->nab", weights, pictures, weights, optimize=True).reshape(len(images), side * side)
