"""Cells of points around centres, probed by distance to them: what k-means, BIRCH and IVF have in common."""

from typing import Any

import numpy as np

from paper.baselines.cells import Cells, constant, csr, smallest


def squared_distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances up to a constant of each point: enough to order centres, and one product."""
    return np.einsum("ij,ij->i", centres, centres) - 2 * (points @ centres.T)


def nearest_centre(points: np.ndarray, centres: np.ndarray, block: int = 16384) -> np.ndarray:
    """The nearest centre of every point, the first of equally near ones."""
    labels = np.empty(len(points), np.int64)
    for first in range(0, len(points), block):
        labels[first : first + block] = squared_distances(points[first : first + block], centres).argmin(axis=1)
    return labels


def around(centres: np.ndarray, labels: np.ndarray, settings: dict[str, Any]) -> Cells:
    """Cells with these members, probed in the order of distance to the centres: K * d multiply-adds a query."""
    centres = np.ascontiguousarray(centres, np.float32)
    offsets, ids = csr(labels, len(centres))
    return Cells(
        offsets=offsets,
        ids=ids,
        points=len(labels),
        order_of=lambda queries, most: smallest(squared_distances(queries, centres), most),
        madds_of=constant(centres.size),
        settings=settings,
        model_bytes=centres.nbytes,
    )


def sample(base: np.ndarray, size: int | None, seed: int) -> np.ndarray:
    """`size` points drawn without repeats, in their stored order; all of them when there are no more."""
    if size is None or size >= len(base):
        return base
    return base[np.sort(np.random.default_rng(seed).choice(len(base), size, replace=False))]
