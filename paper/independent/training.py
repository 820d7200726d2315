"""Training: the first cells, Adam with two learning rates, splitting, cloning and pruning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paper.independent.arrays import host, lower_inverse, xp
from paper.independent.cells import CHUNK, Assignment, Cells, anchor, assign, coverage, divergence, euclidean


@dataclass
class Settings:
    """What the text gives, and what it leaves open; names are those of preset paper."""

    covariance: str = "full"
    initial_cells: int = 100
    tau: float = 3.0
    batch: int = 20_000
    epochs: int = 250
    warmup: int = 35
    early_stop: bool = True
    anchor_points: str = "covered"  # or nearest
    adam_reset: bool = False
    refine_quiet: int = 0
    floor: float = 0.01
    rates: dict[str, tuple[float, float, float]] = field(
        default_factory=lambda: {"means": (1e-7, 9e-3, 3e-3), "factors": (1e-7, 5e-4, 9e-5)}
    )


def first_cells(points: Any, settings: Settings, random: np.random.Generator) -> Cells:
    """k-means++ on at most 20,000 points; as wide as the logarithm of the distance to the three nearest others."""
    ids = random.permutation(len(points))[:20_000]
    sample = points[xp.asarray(ids)]
    means = sample[random.integers(len(ids))][None]
    nearest = ((sample - means) ** 2).sum(axis=1)
    for _ in range(settings.initial_cells - 1):
        cumulated = np.cumsum(host(nearest).astype(np.float64))
        chosen = int(np.searchsorted(cumulated, random.random() * cumulated[-1], side="right"))
        new = sample[min(chosen, len(ids) - 1)]
        means = xp.concatenate([means, new[None]])
        nearest = xp.minimum(nearest, ((sample - new) ** 2).sum(axis=1))
    away = euclidean(means, means)
    away[xp.arange(len(means)), xp.arange(len(means))] = xp.inf
    scales = xp.maximum(xp.log(xp.sort(away, axis=1)[:, :3].mean(axis=1)), 0.1).astype(points.dtype)
    dim = points.shape[1]
    if settings.covariance == "isotropic":
        return Cells(means, scales[:, None].copy())
    if settings.covariance == "diagonal":
        return Cells(means, xp.repeat(scales[:, None], dim, axis=1))
    drawn = xp.asarray(random.random((len(means), dim, dim), dtype=np.float32) * 0.01)
    factors = xp.tril(2 / (1 + xp.exp(-drawn)) - 1, -1)
    factors[:, xp.arange(dim), xp.arange(dim)] = scales[:, None]
    return Cells(means, factors)


def rate(rates: tuple[float, float, float], warmup: int, epochs: int, at: float) -> float:
    """A linear warm-up, then an exponential decay."""
    start, peak, end = rates
    if at < warmup:
        return start + (peak - start) * at / warmup
    return peak * (end / peak) ** min(1.0, (at - warmup) / (epochs - warmup))


class Adam:
    """Moments by cell, so that cells can come and go."""

    def __init__(self, cells: Cells) -> None:
        self.moments = {name: [xp.zeros_like(v), xp.zeros_like(v)] for name, v in vars(cells).items()}
        self.steps = xp.zeros(len(cells), dtype=np.float32)

    def step(self, cells: Cells, gradients: dict[str, Any], rates: dict[str, float], floor: float) -> None:
        """One step down."""
        self.steps += 1
        for name, gradient in gradients.items():
            values = getattr(cells, name)
            first, second = self.moments[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient * gradient - second)
            shape = (-1,) + (1,) * (values.ndim - 1)
            one, two = ((1 - decay**self.steps).reshape(shape) for decay in (0.9, 0.999))
            values -= rates[name] * (first / one) / (xp.sqrt(second / two) + 1e-8)
        if cells.full:
            diagonal = xp.arange(cells.factors.shape[1])
            cells.factors[:, diagonal, diagonal] = xp.maximum(cells.factors[:, diagonal, diagonal], floor)
        else:
            xp.maximum(cells.factors, floor, out=cells.factors)

    def follow(self, origin: np.ndarray) -> None:
        """Moments of cell `origin[i]` become those of cell i; -1 starts at zero."""
        new = xp.asarray(origin < 0)
        index = xp.asarray(np.maximum(origin, 0))
        for pair in self.moments.values():
            for i, values in enumerate(pair):
                pair[i] = values[index]
                pair[i][new] = 0
        self.steps = self.steps[index]
        self.steps[new] = 0


def train(points: Any, settings: Settings, seed: int) -> tuple[Cells, list[dict[str, float]]]:
    """Trains on normalised points; the cells and the history by epoch."""
    random = np.random.default_rng(seed)
    cells = first_cells(points, settings, random)
    adam = Adam(cells)
    refused: set[int] = set()
    history: list[dict[str, float]] = []
    best, waited = math.inf, 0
    for epoch in range(1, settings.epochs + 1):
        order = xp.asarray(random.permutation(len(points)))
        steps = -(-len(points) // settings.batch)
        losses = []
        for step in range(steps):
            batch = points[order[step * settings.batch : (step + 1) * settings.batch]]
            loss, gradients = gradient(batch, cells, settings)
            losses.append(loss * len(batch))
            at = epoch - 1 + step / steps
            rates = {name: rate(r, settings.warmup, settings.epochs, at) for name, r in settings.rates.items()}
            adam.step(cells, gradients, rates, settings.floor)
        mean = sum(losses) / len(points)
        settled = epoch >= settings.warmup and epoch + settings.refine_quiet <= settings.epochs
        changed = False
        if settled and epoch % 35 == 0:
            cells, origin, refused = refined(points, cells, settings, refused, random)
            adam.follow(origin)
            changed = True
        if settled and epoch % 60 == 0:
            kept = pruned(points, cells, settings)
            cells = cells.taken(xp.asarray(kept))
            adam.follow(kept)
            refused = {i for i, old in enumerate(kept) if old in refused}
            changed = True
        if changed:
            adam = Adam(cells) if settings.adam_reset else adam
            best, waited = math.inf, 0
        history.append({"epoch": epoch, "loss": mean, "cells": len(cells)})
        if mean < best * (1 - 1e-3):
            best, waited = mean, 0
        else:
            waited += 1
        if settings.early_stop and epoch > settings.warmup and waited >= 30:
            break
    return cells, history


def gradient(batch: Any, cells: Cells, settings: Settings) -> tuple[float, dict[str, Any]]:
    """The loss of a batch and its gradients."""
    inverses = lower_inverse(cells.factors) if cells.full else None
    found = assign(batch, cells, settings.tau, inverses)
    if settings.anchor_points == "covered":
        members = found.holds()
    else:
        members = xp.zeros_like(found.within)
        members[xp.arange(len(batch)), found.nearest] = True
    apart, means, factors = divergence(batch, cells, found, settings.tau, inverses)
    between, pulled = coverage(batch, cells, found.within)
    shape, anchored, shaped = anchor(batch, cells, members, 0.1)
    return apart + between + 0.01 * shape, {
        "means": means + pulled + 0.01 * anchored,
        "factors": factors + 0.01 * shaped,
    }


def assign_all(points: Any, cells: Cells, tau: float) -> Assignment:
    """The cells of all points, as one assignment."""
    inverses = lower_inverse(cells.factors) if cells.full else None
    parts = [assign(points[s : s + CHUNK], cells, tau, inverses) for s in range(0, len(points), CHUNK)]
    return Assignment(*(xp.concatenate([getattr(p, n) for p in parts]) for n in ("nearest", "distance", "within")))


def refined(
    points: Any, cells: Cells, settings: Settings, refused: set[int], random: np.random.Generator
) -> tuple[Cells, np.ndarray, set[int]]:
    """Splits cells with more than 1 % of the points by 2-means, clones cells with many points just outside."""
    found = assign_all(points, cells, settings.tau)
    held = xp.ascontiguousarray(found.holds().T)
    sizes = host(held.sum(axis=1))
    tau = settings.tau
    shell = (found.distance > tau) & (found.distance < 2.2 * tau)
    means, factors = [cells.means], [cells.factors]
    origin = np.arange(len(cells))
    refused = set(refused)
    new = len(cells)
    for cell in range(len(cells)):
        if sizes[cell] > 0.01 * len(points) and cell not in refused:
            centres = halves(points[xp.flatnonzero(held[cell])], random)
            if centres is not None:
                cells.means[cell] = centres[0]
                cells.factors[cell] *= 0.9
                means.append(centres[1][None])
                factors.append(cells.factors[cell][None])
                origin[cell] = -1
                new += 1
                continue
            refused.add(cell)
        if sizes[cell] > 8e-4 * len(points):
            around = xp.flatnonzero(shell & (found.nearest == cell))
            inside = int(found.within[:, cell].sum())
            if len(around) > 0 and len(around) > 0.5 * inside:
                means.append(densest(points[around], random)[None])
                factors.append(cells.factors[cell][None])
                new += 1
    grown = Cells(xp.concatenate(means), xp.concatenate(factors))
    if not grown.full:
        xp.maximum(grown.factors, settings.floor, out=grown.factors)
    return grown, np.concatenate([origin, np.full(new - len(origin), -1)]), refused


def halves(own: Any, random: np.random.Generator) -> Any:
    """Centres of the two halves of at most 1,000 of a cell's points; None when one half has more than 95 %."""
    own = own[xp.asarray(random.permutation(len(own))[:1000])]
    first = own[random.integers(len(own))]
    away = host(((own - first) ** 2).sum(axis=1)).astype(np.float64)
    if away.sum() <= 0:
        return None
    centres = xp.stack([first, own[int(random.choice(len(own), p=away / away.sum()))]])
    for _ in range(10):
        second = euclidean(own, centres).argmin(axis=1) == 1
        share = float(second.mean())
        if not 0 < share < 1:
            return None
        centres = xp.stack([own[~second].mean(axis=0), own[second].mean(axis=0)])
    return centres if 0.05 <= share <= 0.95 else None


def densest(shell: Any, random: np.random.Generator) -> Any:
    """Of 60 % of the points the one whose three nearest others are nearest."""
    sample = shell[xp.asarray(random.permutation(len(shell))[: min(20_000, math.ceil(0.6 * len(shell)))])]
    if len(sample) == 1:
        return sample[0]
    spreads = []
    for start in range(0, len(sample), 5000):
        some = sample[start : start + 5000]
        away = euclidean(some, sample)
        away[xp.arange(len(some)), start + xp.arange(len(some))] = xp.inf
        spreads.append(xp.sort(away, axis=1)[:, : min(3, len(sample) - 1)].mean(axis=1))
    return sample[int(xp.concatenate(spreads).argmin())]


def pruned(points: Any, cells: Cells, settings: Settings) -> np.ndarray:
    """Numbers of the cells that hold more than one point."""
    sizes = host(assign_all(points, cells, settings.tau).holds().sum(axis=0))
    kept = np.flatnonzero(sizes > 1)
    return kept if len(kept) else np.array([sizes.argmax()])
