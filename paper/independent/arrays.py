"""CuPy where there is a graphics card, numpy otherwise, and the few operations on stacks of matrices that neither has."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cupy as xp

    xp.cuda.runtime.getDeviceCount()
    device = xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
except Exception:  # no CuPy, or no card: whatever the reason, numpy is there
    xp = np
    device = "processor"

LEAF = 16
"""Side of the triangles that are inverted directly."""


def host(array: Any) -> np.ndarray:
    """The array in main memory."""
    return array if isinstance(array, np.ndarray) else array.get()


def lower_inverse(factors: Any) -> Any:
    """Inverses of a stack of lower triangles, by halves."""
    count, dim = factors.shape[0], factors.shape[1]
    padded = LEAF
    while padded < dim:
        padded *= 2
    inverse = xp.zeros((count, padded, padded), dtype=factors.dtype)
    diagonal = xp.arange(padded)
    inverse[:, diagonal, diagonal] = 1
    inverse[:, :dim, :dim] = factors
    for start in range(0, padded, LEAF):
        block = inverse[:, start : start + LEAF, start : start + LEAF]
        inverse[:, start : start + LEAF, start : start + LEAF] = _small_inverse(block)
    side = LEAF
    while side < padded:
        for start in range(0, padded, 2 * side):
            top, bottom = slice(start, start + side), slice(start + side, start + 2 * side)
            left = inverse[:, bottom, bottom] @ inverse[:, bottom, top]
            inverse[:, bottom, top] = -(left @ inverse[:, top, top])
        side *= 2
    return xp.ascontiguousarray(inverse[:, :dim, :dim])


def _small_inverse(lower: Any) -> Any:
    """Inverses of a stack of small lower triangles, row by row."""
    result = xp.zeros_like(lower)
    for row in range(lower.shape[1]):
        scale = 1 / lower[:, row, row]
        known = (lower[:, row : row + 1, :row] @ result[:, :row, :])[:, 0]
        result[:, row] = -known * scale[:, None]
        result[:, row, row] += scale
    return result


def blocks(owners: Any, members: Any, count: int, values: int) -> Any:
    """Members by owner, in pieces that fit into memory: yields (owners, members, whether a place is taken).

    `owners` are sorted numbers below `count`; every owner's row is as long as the longest of its piece. `values` is what a place costs.
    """
    sizes = host(xp.bincount(owners, minlength=count))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    at = 0
    while at < len(order):
        longest = int(sizes[order[at]])
        room = max(1, int(2e8 // (longest * values)))
        some = order[at : at + room]
        at += len(some)
        places = xp.arange(longest)[None, :]
        taken = places < xp.asarray(sizes[some])[:, None]
        index = xp.where(taken, xp.asarray(starts[some])[:, None] + places, 0)
        yield xp.asarray(some), members[index], taken
