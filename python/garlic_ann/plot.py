"""Pictures of an index; needs matplotlib. Each function draws into ``ax``, or into a new figure, and returns the axes.

>>> import numpy as np, garlic_ann as garlic
>>> import garlic_ann.plot as plot
>>> x = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
>>> index = garlic.build(x, cells=6, seed=1)
>>> axes = plot.cells(index)
>>> len(axes.patches)
6
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _garlic
from ._search import Searchable

__all__ = ["cells", "recall", "sizes", "spectra"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def recall(
    index: Searchable,
    queries: ArrayLike,
    k: int = 10,
    targets: Sequence[float] = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99),
    ax: Any = None,
) -> Any:
    """Work against recall: exact distances per query, and all work in units of one distance, over the measured recall.

    Exact search finds the true neighbours.
    """
    queries = np.atleast_2d(np.asarray(queries))
    true, _ = index.search(queries, k, exact=True)
    reach = np.where(np.isfinite(true), true, -np.inf).max(axis=1, keepdims=True)
    reached, candidates, work = [], [], []
    for target in targets:
        found, _, done = index.search(queries, k, recall=target, return_stats=True)
        # As near as the k-th true neighbour is as good as a true neighbour.
        reached.append((found <= reach).sum() / np.isfinite(true).sum())
        candidates.append(done["candidates"] / len(queries))
        work.append(done["distance_equivalents"] / len(queries))
    ax = _axes(ax)
    ax.plot(reached, candidates, marker="o", label="exact distances")
    ax.plot(reached, work, marker="s", label="all work")
    ax.set(xlabel=f"{k}-recall@{k}", ylabel="a query, in units of one distance", yscale="log")
    ax.legend()
    return ax


def cells(index: Searchable, ax: Any = None, points: int = 2000, deviations: float = 2.0, seed: int = 0) -> Any:
    """The cells as ellipses over the two directions in which the data vary most, with a sample of the points.

    An ellipse is ``deviations`` standard deviations of its cell. For inner products the cells are drawn without points.
    """
    from matplotlib.patches import Ellipse

    handle = index._have()
    shapes = _garlic.shapes(handle)
    if shapes["means"].shape[1] < 2:
        raise ValueError("a plane needs two directions; the cells of this index have one")
    ax = _axes(ax)
    ids = index.ids()
    if points and len(ids) and handle.metric != "inner_product":
        chosen = np.random.default_rng(seed).choice(ids, min(points, len(ids)), replace=False)
        flat = _garlic.project(handle, index.get(chosen))
        ax.scatter(flat[:, 0], flat[:, 1], s=2, color="0.6", linewidths=0)
    for mean, axes, variances, residual in zip(*(shapes[n] for n in ("means", "axes", "variances", "residuals"))):
        # Covariance in the plane: along the axes theirs, elsewhere the residual.
        plane = axes[:, :2].astype(np.float64)
        covariance = residual * np.eye(2) + (plane.T * (variances - residual * (variances > 0))) @ plane
        values, vectors = np.linalg.eigh(covariance)
        size = 2 * deviations * np.sqrt(np.maximum(values, 0))
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        ax.add_patch(Ellipse(mean[:2], size[1], size[0], angle=angle, fill=False, color="C0", alpha=0.7))
    ax.autoscale_view()
    ax.set(xlabel="first direction", ylabel="second direction")
    return ax


def sizes(index: Searchable, ax: Any = None) -> Any:
    """Points of each cell, the largest first."""
    counts = sorted(index.inspect()["cell_sizes"], reverse=True)
    ax = _axes(ax)
    ax.bar(range(len(counts)), counts, width=1.0)
    ax.set(xlabel="cells, the largest first", ylabel="points")
    return ax


def spectra(index: Searchable, ax: Any = None) -> Any:
    """Variance along the axes of the cells: the median over the cells, and where the middle half of them lies."""
    variances = _garlic.shapes(index._have())["variances"]
    variances = np.sort(variances, axis=1)[:, ::-1]
    low, middle, high = np.quantile(variances, (0.25, 0.5, 0.75), axis=0)
    ax = _axes(ax)
    at = np.arange(1, variances.shape[1] + 1)
    ax.fill_between(at, low, high, alpha=0.3, label="middle half of the cells")
    ax.plot(at, middle, label="median")
    ax.set(xlabel="axis", ylabel="variance", yscale="log")
    ax.legend()
    return ax
