"""A Gaussian mixture with full covariances, by scikit-learn; cells are the most probable components.

Full covariances of 784 dimensions cannot be fitted from so few points a component, so the mixture lives in the space of
the first principal axes (32), from at most 60,000 points and 15 steps of EM after k-means: what fits in about two
minutes. Covariances are regularised by 0.001 of the mean variance. Cells are probed by responsibility. The cost of a
query: d * rank for the axes, and rank (rank + 1) / 2 for each component, the triangular product of its density.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from paper.baselines.cells import Cells, constant, csr, smallest
from paper.baselines.centres import sample
from paper.baselines.pca import principal_axes

WHAT = "Gaussian mixture, most responsible components first"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    components = int(np.clip(round(points**0.5), 1, 512))
    return {
        "components": components,
        "rank": min(32, dim),
        "train": 10_000 if quick else 60_000,
        "iterations": 15,
        "regularisation": 1e-3,
    }


class Densities:
    """Logarithms of weighted component densities, up to a constant of each point."""

    def __init__(self, model: GaussianMixture, mean: np.ndarray, axes: np.ndarray) -> None:
        factors = np.asarray(model.precisions_cholesky_, np.float64)
        components, rank = model.means_.shape
        self.shape = (components, rank)
        # All components side by side: one product gives every whitened point.
        whiten = factors.transpose(1, 0, 2).reshape(rank, components * rank)
        self.whiten = whiten.astype(np.float32)
        centres = np.einsum("kr,krs->ks", model.means_, factors).reshape(-1)
        self.shift = (mean @ axes.T @ whiten + centres).astype(np.float32)
        self.axes = axes
        logdet = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        self.constant = (np.log(np.maximum(model.weights_, 1e-300)) + logdet).astype(np.float32)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(points, components)."""
        white = (points @ self.axes.T) @ self.whiten - self.shift
        white = white.reshape(len(points), *self.shape)
        return self.constant - 0.5 * np.einsum("nks,nks->nk", white, white)

    def madds(self) -> float:
        """Multiply-adds of one point."""
        components, rank = self.shape
        return float(self.axes.size + components * rank * (rank + 1) / 2)


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Fits the mixture to a sample in the reduced space, then every point joins its most probable component."""
    settings = {**defaults(*base.shape, quick), **settings}
    mean, axes, variances = principal_axes(sample(base, 100_000, seed), settings["rank"])
    # One scale for all axes keeps the shape and makes the regularisation relative.
    axes = (axes / np.sqrt(max(float(variances.mean()), 1e-30))).astype(np.float32)
    model = GaussianMixture(
        settings["components"],
        covariance_type="full",
        max_iter=settings["iterations"],
        reg_covar=settings["regularisation"],
        init_params="kmeans",
        random_state=seed,
    )
    with warnings.catch_warnings():
        # It says that so few steps have not converged, which is known.
        warnings.simplefilter("ignore")
        model.fit((sample(base, settings["train"], seed) - mean) @ axes.T)
    densities = Densities(model, mean, axes)
    labels = np.concatenate([densities(base[at : at + 2048]).argmax(axis=1) for at in range(0, len(base), 2048)])
    offsets, ids = csr(labels, settings["components"])
    return Cells(
        offsets=offsets,
        ids=ids,
        points=len(base),
        order_of=lambda queries, most: ordered(densities, queries, most),
        madds_of=constant(densities.madds()),
        settings=settings,
        model_bytes=densities.axes.nbytes + densities.whiten.nbytes // 2 + densities.shift.nbytes,
        extra={"empty_components": int(np.sum(np.diff(offsets) == 0))},
    )


def ordered(densities: Densities, queries: np.ndarray, most: int, block: int = 512) -> np.ndarray:
    """Components by density, the most probable first."""
    parts = [smallest(-densities(queries[at : at + block]), most) for at in range(0, len(queries), block)]
    return np.concatenate(parts)
