"""BIRCH (Zhang, Ramakrishnan and Livny 1996), by scikit-learn: a tree of subclusters, merged to cells by Ward's method.

The authors start with a small threshold and raise it until the tree fits; here it is searched for a number of
subclusters, eight for each cell but no more than half the points seen (within a third), on a sample: scikit-learn
inserts points one by one, in Python. Many small subclusters are what matters: three a cell needed twice the candidates.
Points take the cell of their nearest subcluster, as its `predict` does; cells are probed by distance to their means.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering, Birch

from paper.baselines.cells import Cells
from paper.baselines.centres import around, nearest_centre, sample

WHAT = "BIRCH subclusters merged to cells, nearest means first"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    cells = max(1, round(4 * min(points, 250_000) ** 0.5))
    return {"cells": cells, "subclusters": 8, "train": 10_000 if quick else 20_000, "branching": 50, "fits": 8}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Searches the threshold, merges the subclusters, assigns all points."""
    settings = {**defaults(*base.shape, quick), **settings}
    seen = sample(base, settings["train"], seed)
    wanted = min(settings["cells"], len(seen))
    tree = with_subclusters(seen, min(settings["subclusters"] * wanted, max(wanted, len(seen) // 2)), settings)
    centres = np.asarray(tree.subcluster_centers_, np.float32)
    merged = np.arange(len(centres))
    if len(centres) > wanted:
        merged = AgglomerativeClustering(wanted, linkage="ward").fit_predict(centres)
    labels = merged[nearest_centre(base, centres)]
    # Subclusters that no point is nearest to leave cells without members; they are no cells.
    labels = np.unique(labels, return_inverse=True)[1]
    cells = around(means(base, labels), labels, settings)
    cells.extra = {"threshold": float(tree.threshold), "subclusters": len(centres)}
    return cells


def with_subclusters(points: np.ndarray, target: int, settings: dict[str, Any]) -> Birch:
    """The tree whose number of subclusters is closest to the target among a few thresholds, halving the interval."""
    low, high = 0.0, 2 * float(np.sqrt(points.var(axis=0, dtype=np.float64).sum()))
    best, miss = None, np.inf
    threshold = high / 4
    for _ in range(settings["fits"]):
        tree = grown(points, threshold, settings["branching"])
        count = len(tree.subcluster_centers_)
        if abs(np.log(count / target)) < miss:
            best, miss = tree, abs(np.log(count / target))
        if miss < np.log(4 / 3):
            break
        low, high = (threshold, high) if count > target else (low, threshold)
        threshold = (low + high) / 2
    return best


def grown(points: np.ndarray, threshold: float, branching: int) -> Birch:
    """A tree without the global step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Birch(threshold=threshold, branching_factor=branching, n_clusters=None, compute_labels=False).fit(points)


def means(base: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the points of each label."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    sums = np.add.reduceat(base[order], starts, axis=0, dtype=np.float64)
    return sums / np.bincount(labels)[:, None]
