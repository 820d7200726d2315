"""PCA tree (Sproull 1991; McNames 2001): a binary tree that cuts every cell at the median of its principal direction.

Leaves of about 50 points are the cells. They are probed best first by the sum of squared distances to the planes that
separate them from the query, one for each turn against the query's side; every inner node opened on the way costs one
product, and is counted for each query. Directions are found by power iteration on at most 2,000 points of a cell.
"""

from typing import Any

import numpy as np

from paper.baselines.cells import Cells, smallest

WHAT = "PCA tree, best first"
BLOCK = 256


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"depth": max(1, round(np.log2(max(points, 2) / 50))), "sample": 2000, "iterations": 30}


class Tree:
    """A complete binary tree in heap order: node i has children 2 i + 1 and 2 i + 2; leaves are the last level."""

    def __init__(self, base: np.ndarray, seed: int, depth: int, sample: int, iterations: int) -> None:
        self.depth, self.inner = depth, (1 << depth) - 1
        self.planes = np.zeros((self.inner, base.shape[1]), np.float32)
        self.cuts = np.zeros(self.inner, np.float32)
        random = np.random.default_rng(seed)
        cells = [np.arange(len(base))]
        for node in range(self.inner):
            ids = cells[node]
            # A parent's members are not needed again: only the lowest level keeps them.
            cells[node] = ids[:0]
            seen = ids if len(ids) <= sample else random.choice(ids, sample, replace=False)
            plane = direction(base[seen], iterations, random)
            left, right, cut = halves(ids, base[ids] @ plane)
            self.planes[node], self.cuts[node] = plane, cut
            cells += [left, right]
        self.leaves = cells[self.inner :]

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Score of every node, (queries, nodes): never less than its parent's."""
        margins = queries @ self.planes.T - self.cuts
        scores = np.zeros((len(queries), 2 * self.inner + 1), np.float32)
        for level in range(self.depth):
            nodes = np.arange((1 << level) - 1, (2 << level) - 1)
            away, margin = scores[:, nodes] + margins[:, nodes] ** 2, margins[:, nodes]
            scores[:, 2 * nodes + 1] = np.where(margin > 0, away, scores[:, nodes])
            scores[:, 2 * nodes + 2] = np.where(margin > 0, scores[:, nodes], away)
        return scores

    def order(self, queries: np.ndarray, most: int) -> np.ndarray:
        """Leaves by score."""
        blocks = [queries[at : at + BLOCK] for at in range(0, len(queries), BLOCK)]
        return np.concatenate([smallest(self.scores(block)[:, self.inner :], most) for block in blocks])

    def madds(self, probes: list[int], queries: np.ndarray) -> np.ndarray:
        """Mean cost of the inner nodes a best-first search opens: those that score no more than the last leaf taken."""
        opened = np.zeros(len(probes))
        for at in range(0, len(queries), BLOCK):
            scores = self.scores(queries[at : at + BLOCK])
            leaves, inner = np.sort(scores[:, self.inner :], axis=1), np.sort(scores[:, : self.inner], axis=1)
            for some, nodes in zip(leaves, inner):
                last = some[np.minimum(probes, len(some)) - 1]
                opened += np.searchsorted(nodes, last, side="right")
        return opened * self.planes.shape[1] / len(queries)


def direction(points: np.ndarray, iterations: int, random: np.random.Generator) -> np.ndarray:
    """The principal direction by power iteration; a random one where all points are equal."""
    centred = points - points.mean(axis=0, dtype=np.float64).astype(np.float32)
    vector = random.standard_normal(points.shape[1]).astype(np.float32)
    vector /= np.linalg.norm(vector)
    for _ in range(iterations):
        turned = (centred @ vector) @ centred
        length = np.linalg.norm(turned)
        if not length > 0:
            break
        vector = turned / length
    return vector


def halves(ids: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Ids cut in two equal halves by value, equal values by id, and the value half-way between the halves."""
    if len(ids) < 2:
        return ids, ids[:0], float(values[0]) if len(ids) else 0.0
    ranked = np.lexsort((ids, values))
    middle = (len(ids) + 1) // 2
    low, high = values[ranked[middle - 1]], values[ranked[middle]]
    return np.sort(ids[ranked[:middle]]), np.sort(ids[ranked[middle:]]), float((low + high) / 2)


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Grows the tree."""
    settings = {**defaults(*base.shape, quick), **settings}
    tree = Tree(base, seed, **settings)
    return Cells(
        offsets=np.concatenate([[0], np.cumsum([len(leaf) for leaf in tree.leaves])]).astype(np.int64),
        ids=np.concatenate(tree.leaves).astype(np.int32),
        points=len(base),
        order_of=tree.order,
        madds_of=tree.madds,
        settings=settings,
        model_bytes=tree.planes.nbytes + tree.cuts.nbytes,
        extra={"planes": tree.inner},
    )
