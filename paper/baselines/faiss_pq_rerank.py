"""Faiss IVF-PQ fast scan with the best of its answers re-ranked by exact distance: `faiss_pq` with re-ranking on."""

from typing import Any

import numpy as np

from paper.baselines import faiss_pq
from paper.baselines.faiss_pq import Codes, measure

__all__ = ["WHAT", "build", "defaults", "measure"]

WHAT = "Faiss IVF-PQ fast scan, re-ranked"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """As without re-ranking; k times each of `k_factors` points are re-ranked."""
    return {**faiss_pq.defaults(points, dim, quick), "k_factors": [2, 4, 10, 30]}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Codes:
    """The same index; the vectors are taken when it is measured."""
    return faiss_pq.build(base, seed, quick, **{**defaults(*base.shape, quick), **settings})
