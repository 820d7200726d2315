"""Gaussians: Mahalanobis distances, which points they cover, and the gradients of the losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paper.independent.arrays import blocks, lower_inverse, xp

CHUNK = 20_000
"""Points whose distances to all cells are computed at a time."""


@dataclass
class Cells:
    """Means and factors: triangles (cells, d, d), or scales (cells, d) of diagonal and (cells, 1) of isotropic cells."""

    means: Any
    factors: Any

    @property
    def full(self) -> bool:
        return self.factors.ndim == 3

    def __len__(self) -> int:
        return self.means.shape[0]

    def taken(self, which: Any) -> Cells:
        """Some of the cells."""
        return Cells(self.means[which].copy(), self.factors[which].copy())


@dataclass
class Assignment:
    """For every point its nearest cell, the distance to it, and which cells cover it."""

    nearest: Any
    distance: Any
    within: Any

    def holds(self) -> Any:
        """Which cells hold a point: those that cover it, and the nearest."""
        held = self.within.copy()
        held[xp.arange(len(self.nearest)), self.nearest] = True
        return held


def mahalanobis(points: Any, cells: Cells, inverses: Any = None) -> Any:
    """Distances of all points to all cells."""
    count, dim = points.shape
    found = xp.empty((count, len(cells)), dtype=points.dtype)
    if cells.full and inverses is None:
        inverses = lower_inverse(cells.factors)
    side = max(128, -(-dim // 4))
    step = max(1, int(5e8 // (min(count, CHUNK) * (side if cells.full else dim))))
    for start in range(0, count, CHUNK):
        some = points[start : start + CHUNK]
        for first in range(0, len(cells), step):
            means = cells.means[first : first + step]
            if cells.full:
                squares = _turned_squares(some, means, inverses[first : first + step], side)
            else:
                turned = (some[:, None] - means[None]) / cells.factors[None, first : first + step]
                turned *= turned
                squares = turned.sum(axis=2)
            found[start : start + CHUNK, first : first + step] = xp.sqrt(squares)
    return found


def _turned_squares(points: Any, means: Any, inverses: Any, side: int) -> Any:
    """Squared lengths of L^-1 (x - mu), `side` coordinates at a time: most of the zeros of a triangle are left out."""
    squares = 0.0
    for top in range(0, points.shape[1], side):
        end = min(top + side, points.shape[1])
        rows = xp.ascontiguousarray(inverses[:, top:end, :end])
        turned = points[:, :end] @ rows.reshape(-1, end).T
        turned = turned.reshape(len(points), len(means), end - top)
        turned -= (rows @ means[:, :end, None])[None, :, :, 0]
        turned *= turned
        squares = squares + turned.sum(axis=2)
    return squares


def assign(points: Any, cells: Cells, tau: float, inverses: Any = None) -> Assignment:
    """The cells of all points."""
    distances = mahalanobis(points, cells, inverses)
    nearest = distances.argmin(axis=1)
    return Assignment(nearest, distances[xp.arange(len(points)), nearest], distances <= tau)


def euclidean(points: Any, means: Any) -> Any:
    """Distances of all points to all means."""
    squares = (points * points).sum(axis=1)[:, None] + (means * means).sum(axis=1)[None] - 2 * points @ means.T
    return xp.sqrt(xp.maximum(squares, 1e-12))


def coverage(points: Any, cells: Cells, within: Any) -> tuple[float, Any]:
    """The coverage loss and its gradient by the means; a point that no cell covers adds one and pulls nothing."""
    count = len(points)
    away = xp.where(within, euclidean(points, cells.means), xp.inf)
    first = away.argmin(axis=1)
    rows = xp.arange(count)
    covered = within.any(axis=1)
    smallest = xp.where(covered, away[rows, first], 0)
    weights = xp.where(within, xp.exp(smallest[:, None] - away), 0)
    shares = weights / xp.maximum(weights.sum(axis=1), 1e-12)[:, None]
    best = xp.where(covered, shares[rows, first], 0)
    pull = -best[:, None] * shares
    pull[rows, first] += best
    pull = xp.where(within, pull / xp.where(within, away, 1), 0) / count
    gradient = cells.means * pull.sum(axis=0)[:, None] - pull.T @ points
    return float(1 - best.mean()), gradient


def divergence(points: Any, cells: Cells, found: Assignment, tau: float, inverses: Any) -> tuple[float, Any, Any]:
    """The divergence loss and its gradients by means and factors: points outside pull their nearest cell."""
    outside = xp.flatnonzero(found.distance > tau)
    means, factors = xp.zeros_like(cells.means), xp.zeros_like(cells.factors)
    loss = float((found.distance[outside] - tau).sum()) / len(points)
    order = xp.argsort(found.nearest[outside])
    ids = outside[order]
    for some, rows, taken in blocks(found.nearest[ids], ids, len(cells), points.shape[1]):
        centred = (points[rows] - cells.means[some][:, None]) * taken[:, :, None]
        if cells.full:
            inverse = inverses[some]
            turned = centred @ inverse.transpose(0, 2, 1)
            unit = turned / xp.maximum(xp.sqrt((turned * turned).sum(axis=2)), 1e-30)[:, :, None]
            pull = unit @ inverse
            factors[some] = -xp.tril(pull.transpose(0, 2, 1) @ turned)
        else:
            scale = cells.factors[some][:, None]
            turned = centred / scale
            pull = turned / xp.maximum(xp.sqrt((turned * turned).sum(axis=2)), 1e-30)[:, :, None] / scale
            factors[some] = _fold(-(pull * turned).sum(axis=1), cells)
        means[some] = -pull.sum(axis=1)
    return loss, means / len(points), factors / len(points)


def anchor(points: Any, cells: Cells, members: Any, alpha: float) -> tuple[float, Any, Any]:
    """The anchor loss and its gradients: a cell should have the mean and the covariance of its members."""
    means, factors = xp.zeros_like(cells.means), xp.zeros_like(cells.factors)
    share = 1 / (points.shape[1] * len(cells))
    flat = xp.flatnonzero(xp.ascontiguousarray(members.T))
    total = 0.0
    for some, rows, taken in blocks(flat // len(points), flat % len(points), len(cells), points.shape[1]):
        own = points[rows] * taken[:, :, None]
        sizes = taken.sum(axis=1).astype(points.dtype)
        centres = own.sum(axis=1) / sizes[:, None]
        away = cells.means[some] - centres
        means[some] = 2 * share * away
        total += float((away * away).sum())
        centred = (own - centres[:, None]) * taken[:, :, None]
        many = (sizes >= 2).astype(points.dtype)
        if cells.full:
            factor = cells.factors[some]
            wrong = factor @ factor.transpose(0, 2, 1) - centred.transpose(0, 2, 1) @ centred / sizes[:, None, None]
            wrong *= many[:, None, None]
            factors[some] = 4 * alpha * share * xp.tril(wrong @ factor)
        else:
            scale = cells.factors[some]
            wrong = (scale * scale - (centred * centred).sum(axis=1) / sizes[:, None]) * many[:, None]
            factors[some] = _fold(4 * alpha * share * wrong * scale, cells)
        total += alpha * float((wrong * wrong).sum())
    return total * share, means, factors


def _fold(gradient: Any, cells: Cells) -> Any:
    """The gradient by one scale is the sum of those by its copies."""
    return gradient.sum(axis=1, keepdims=True) if cells.factors.shape[1] == 1 else gradient
