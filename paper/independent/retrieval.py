"""Cells with hyperspherical bins, and what queries find in them for how many candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.independent.arrays import blocks, host, xp
from paper.independent.cells import Cells, mahalanobis
from paper.independent.training import assign_all

RADIAL, ANGULAR = 6, 4
BINS = RADIAL * ANGULAR * ANGULAR


@dataclass
class Index:
    """Members of cells as pairs (cell x bin, point), sorted by point, and the frames and edges of the bins."""

    cells: Cells
    points: int
    slots: Any  # cell * BINS + bin of every pair
    members: Any
    centres: Any
    axes: Any  # (cells, d, 3)
    low: Any  # (cells, 3): radius, polar angle, azimuth
    high: Any
    covered: float
    largest: float

    def sizes(self) -> Any:
        """Members of every bin, (cells, bins)."""
        return xp.bincount(self.slots, minlength=len(self.cells) * BINS).reshape(-1, BINS)


def sphere(coordinates: Any) -> Any:
    """Radius, polar angle from the first axis, azimuth."""
    radius = xp.sqrt((coordinates**2).sum(axis=-1))
    polar = xp.arccos(xp.clip(coordinates[..., 0] / xp.maximum(radius, 1e-30), -1, 1))
    return xp.stack([radius, polar, xp.arctan2(coordinates[..., 2], coordinates[..., 1])], axis=-1)


def index(points: Any, cells: Cells, tau: float) -> Index:
    """Every point goes into the cells that cover it, else into the nearest one, and there into a bin."""
    found = assign_all(points, cells, tau)
    count, dim = points.shape
    bare = xp.flatnonzero(~found.within.any(axis=1))
    covered = 1 - len(bare) / count
    members = found.within
    members[bare, found.nearest[bare]] = True
    flat = xp.flatnonzero(xp.ascontiguousarray(members.T))
    owners, ids = flat // count, flat % count
    del members, flat, found
    steps = xp.asarray([RADIAL, ANGULAR, ANGULAR])
    centres, axes = xp.zeros_like(cells.means), xp.zeros((len(cells), dim, 3), dtype=points.dtype)
    low, high = (xp.zeros((len(cells), 3), dtype=points.dtype) for _ in range(2))
    slots, listed, largest = [], [], 0
    for some, rows, taken in blocks(owners, ids, len(cells), dim):
        own = points[rows] * taken[:, :, None]
        sizes = taken.sum(axis=1).astype(points.dtype)
        largest = max(largest, int(sizes.max()))
        middle = own.sum(axis=1) / sizes[:, None]
        own = (own - middle[:, None]) * taken[:, :, None]
        frame = principal(own)
        round_ = sphere(own @ frame)
        first = xp.where(taken[:, :, None], round_, xp.inf).min(axis=1)
        last = xp.where(taken[:, :, None], round_, -xp.inf).max(axis=1)
        width = xp.maximum(last - first, 1e-30)
        places = xp.clip((round_ - first[:, None]) / width[:, None] * steps, 0, steps - 1).astype(np.int64)
        bins = (places[..., 0] * ANGULAR + places[..., 1]) * ANGULAR + places[..., 2]
        slots.append((some[:, None] * BINS + bins)[taken])
        listed.append(rows[taken])
        centres[some], axes[some], low[some], high[some] = middle, frame, first, last
    slots, listed = xp.concatenate(slots), xp.concatenate(listed)
    order = xp.argsort(listed)
    return Index(cells, count, slots[order], listed[order], centres, axes, low, high, covered, largest / count)


def principal(centred: Any) -> Any:
    """The three main axes of every stack of centred points, by subspace iteration."""
    dim = centred.shape[2]
    scatter = centred.transpose(0, 2, 1) @ centred
    wide = min(dim, 8)
    random = xp.asarray(np.random.default_rng(0).standard_normal((dim, wide)).astype(np.float32))
    basis = xp.broadcast_to(random, (len(centred), dim, wide))
    for _ in range(30):
        basis = xp.linalg.qr(scatter @ basis)[0]
    small = basis.transpose(0, 2, 1) @ scatter @ basis
    turned = basis @ xp.linalg.eigh(small)[1]
    return xp.ascontiguousarray(turned[:, :, ::-1][:, :, :3])


def bin_distances(query: Any, low: Any, high: Any) -> Any:
    """Distances of queries (..., 3) in a cell's frame to its bins (..., BINS), squared, in closed form."""
    edges = [low[..., i : i + 1] + (high - low)[..., i : i + 1] * xp.arange(n + 1) / n for i, n in enumerate((RADIAL, ANGULAR, ANGULAR))]
    at = sphere(query)
    azimuth, start, end = at[..., 2:3], edges[2][..., :-1], edges[2][..., 1:]
    inside = (azimuth >= start) & (azimuth <= end)
    turn = xp.where(inside, 1.0, xp.maximum(xp.cos(azimuth - start), xp.cos(azimuth - end)))  # (..., 4)
    along = xp.cos(at[..., 1])[..., None, None]
    across = xp.sin(at[..., 1])[..., None, None] * turn[..., None, :]  # (..., 1, 4)
    start, end = edges[1][..., :-1, None], edges[1][..., 1:, None]
    best = xp.clip(xp.arctan2(across, along), start, end)
    peak = along * xp.cos(best) + across * xp.sin(best)
    for edge in (start, end):  # the sine of a negative maximum is not clipped to the better end
        peak = xp.maximum(peak, along * xp.cos(edge) + across * xp.sin(edge))
    peak = peak[..., None, :, :]
    radius = at[..., 0][..., None, None, None]
    start, end = edges[0][..., :-1, None, None], edges[0][..., 1:, None, None]
    best = xp.clip(radius * peak, start, end)
    squared = radius**2 + best**2 - 2 * radius * best * peak
    return squared.reshape(*squared.shape[:-3], BINS)


def visits(found: Index, queries: Any, probes: int) -> tuple[Any, Any]:
    """For every query its nearest cells, and in which order their occupied bins are visited."""
    cells = mahalanobis(queries, found.cells).argsort(axis=1)[:, :probes]
    projected = ((queries[:, None] - found.centres[cells])[:, :, None] @ found.axes[cells])[:, :, 0]
    away = bin_distances(projected, found.low[cells], found.high[cells])
    away = xp.where(found.sizes()[cells] > 0, away, xp.inf)
    return cells, away.argsort(axis=2).argsort(axis=2)


def sweep(
    found: Index, queries: Any, nearest: list[np.ndarray], probes: list[int], shares: list[float], occupied: bool
) -> list[dict[str, float]]:
    """Recall@1 and distinct candidates for every setting; `nearest` holds the true nearest points of every query."""
    sizes = found.sizes()
    filled = (sizes > 0).sum(axis=1)
    sums = {(k, r): [0, 0] for k in probes for r in shares}
    at_point = xp.searchsorted(found.members, xp.arange(found.points + 1))
    listed = at_point[1:] - at_point[:-1]
    shared = found.slots[listed[found.members] > 1]  # pairs of points that several cells cover, point by point
    stops = xp.cumsum(listed[listed > 1])
    many = len(shared)
    bounds = host(at_point)
    chunk = int(max(1, min(100, 4e8 // max(1, many))))
    for first in range(0, len(queries), chunk):
        some = queries[first : first + chunk]
        cells, ranks = visits(found, some, max(probes))
        rows = xp.arange(len(some))[:, None, None]
        wanted = [found.slots[int(bounds[p]) : int(bounds[p + 1])] for q in nearest[first : first + len(some)] for p in q]
        owner = np.repeat(np.arange(len(some)), [len(q) for q in nearest[first : first + len(some)]])
        owner = xp.asarray(np.repeat(owner, [len(w) for w in wanted]))
        wanted = xp.concatenate(wanted)
        for share in shares:
            budget = filled if share >= 1 else xp.minimum(filled, _budget(share, filled if occupied else BINS))
            chosen = (ranks < budget[cells][:, :, None]) & (sizes[cells] > 0)
            for k in probes:
                seen = xp.zeros((len(some), len(found.cells) * BINS), dtype=np.bool_)
                seen[rows, cells[:, :k, None] * BINS + xp.arange(BINS)] = chosen[:, :k]
                total = int((seen * sizes.reshape(1, -1)).sum())
                if many:
                    hits = xp.cumsum(seen[:, shared].astype(np.int32), axis=1)
                    upto = hits[:, stops - 1]
                    each = xp.concatenate([upto[:, :1], upto[:, 1:] - upto[:, :-1]], axis=1)
                    total -= int(xp.maximum(each - 1, 0).sum())
                right = xp.bincount(owner, weights=seen[owner, wanted].astype(np.float64), minlength=len(some)) > 0
                sums[k, share][0] += int(right.sum())
                sums[k, share][1] += total
    count = len(queries)
    return [{"probes": k, "bins": r, "recall_at_1": a / count, "candidates": b / count} for (k, r), (a, b) in sums.items()]


def _budget(share: float, of: Any) -> Any:
    return math.ceil(share * of - 1e-9) if isinstance(of, int) else xp.maximum(1, xp.ceil(share * of - 1e-9).astype(np.int64))


def value_of_a_candidate(rows: list[dict[str, float]]) -> float:
    """Mean over settings of Recall@1 per candidate, in the unit of the text, 1e-5."""
    return float(np.mean([1e5 * row["recall_at_1"] / row["candidates"] for row in rows]))
