"""The oracle: distances to all points, in double precision."""

import numpy as np


def distances(queries, points, metric="euclidean"):
    q, x = np.float64(queries), np.float64(points)
    if metric == "inner_product":
        return -(q @ x.T)
    if metric == "cosine":
        q = q / np.linalg.norm(q, axis=1, keepdims=True)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return 1 - q @ x.T
    return np.sqrt(((q[:, None] - x[None]) ** 2).sum(-1))


def recall(ids, queries, points, metric="euclidean"):
    all_distances = distances(queries, points, metric)
    k = ids.shape[1]
    true = np.argsort(all_distances, axis=1, kind="stable")[:, :k]
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(ids.tolist(), true.tolist())])
