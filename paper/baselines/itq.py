"""Iterative quantisation (Gong and Lazebnik 2011): principal axes, a learned rotation, signs.

The rotation is learned by 50 alternations as published, from at most 100,000 points. Its authors rank by Hamming
distance; buckets are probed here by the squared margins of the flipped bits instead, which needs fewer candidates for
the same recall at the cost of nothing (a Hamming rank has huge ties with this few bits). log2(n) bits, 16 at most: a
bucket for each code has to hold some points to be worth a probe.
"""

from typing import Any

import numpy as np

from paper.baselines.cells import Cells
from paper.baselines.centres import sample
from paper.baselines.hashing import cells_of, default_bits, sign_costs, table
from paper.baselines.pca import principal_axes

WHAT = "ITQ codes, multi-probe"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"bits": min(default_bits(points), dim), "iterations": 50, "train": 100_000}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Learns the rotation and fills the buckets."""
    settings = {**defaults(*base.shape, quick), **settings}
    seen = sample(base, settings["train"], seed)
    mean, axes, _ = principal_axes(seen, settings["bits"])
    turn, losses = learn((seen - mean) @ axes.T, settings["iterations"], seed)
    directions = np.ascontiguousarray((axes.T @ turn).T, np.float32)
    shift = directions @ mean

    def project(points: np.ndarray) -> np.ndarray:
        return points @ directions.T - shift

    symbols = (project(base) >= 0).astype(np.int64)
    built = [table(symbols, [2] * settings["bits"], sign_costs(project))]
    cells = cells_of(built, len(base), float(directions.size), settings, directions.nbytes + shift.nbytes)
    cells.extra["quantisation_loss"] = [float(losses[0]), float(losses[-1])]
    return cells


def learn(projected: np.ndarray, iterations: int, seed: int) -> tuple[np.ndarray, list[float]]:
    """The rotation that brings points close to the corners of a cube, and the loss |B - V R|^2 / n before each step.

    Signs B for a fixed rotation and the rotation for fixed signs (orthogonal Procrustes) are both optimal, so the loss
    never grows.
    """
    projected = np.asarray(projected, np.float64)
    # The scale does not change the rotation; with this one the loss is between 0 (all corners) and 2 for each bit.
    projected = projected / max(float(np.sqrt(np.mean(projected**2))), 1e-300)
    bits = projected.shape[1]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((bits, bits)))[0]
    losses = []
    for _ in range(iterations):
        turned = projected @ turn
        corners = np.where(turned >= 0, 1.0, -1.0)
        losses.append(float(np.sum((corners - turned) ** 2) / len(projected)))
        left, _, right = np.linalg.svd(projected.T @ corners)
        turn = left @ right
    return turn, losses
