"""Groups the cells of a model into shards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def group_cells(means: NDArray[np.float32], weights: NDArray[np.int64], shards: int) -> list[int]:
    """The shard of each cell: neighbouring cells together, about equally many points in each shard.

    Cells are halved along the direction in which their means vary most, again and again.
    """
    groups = np.zeros(len(means), np.int64)
    pending = [(np.arange(len(means)), 0, max(1, min(shards, len(means))))]
    while pending:
        cells, first, count = pending.pop()
        if count == 1:
            groups[cells] = first
            continue
        left = count // 2
        near, far = _halves(cells, means, weights, left, count)
        pending += [(near, first, left), (far, first + left, count - left)]
    return [int(group) for group in groups]


def _halves(
    cells: NDArray[np.int64], means: NDArray[np.float32], weights: NDArray[np.int64], left: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    weight = weights[cells].astype(np.float64) + 1.0
    centred = means[cells].astype(np.float64)
    centred -= np.average(centred, axis=0, weights=weight)
    spread = (centred * weight[:, None]).T @ centred
    axis = np.linalg.eigh(spread)[1][:, -1]
    # An eigenvector has no sign of its own.
    axis *= np.sign(axis[np.abs(axis).argmax()])
    order = np.lexsort((cells, centred @ axis))
    filled = np.cumsum(weight[order])
    cut = int(np.searchsorted(filled, filled[-1] * left / count)) + 1
    # Each side has a cell for each of its shards.
    cut = min(max(cut, left), len(cells) - (count - left))
    return cells[order[:cut]], cells[order[cut:]]
