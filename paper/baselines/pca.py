"""Principal axes, for the baselines that reduce or turn their data first."""

import numpy as np


def principal_axes(points: np.ndarray, rank: int, block: int = 65536) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, axes (rank, dim), variances) of the leading directions; the largest entry of each axis is positive."""
    mean = points.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((points.shape[1],) * 2)
    for at in range(0, len(points), block):
        centred = (points[at : at + block] - mean).astype(np.float32)
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter / max(1, len(points)))
    axes = vectors[:, ::-1][:, :rank].T
    # A sign of its own makes the result the same whatever the eigen-solver's whim.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = axes * np.where(largest < 0, -1, 1)
    return mean.astype(np.float32), axes.astype(np.float32), values[::-1][:rank]
