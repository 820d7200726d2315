"""k-means cells with k-means++ seeds (Arthur and Vassilvitskii 2007), by scikit-learn.

About 4 sqrt(n) cells, which balances routing against scanning, as for IVF. Lloyd's steps run on at most 100,000
points: 25 for each of the 4,000 centres of a million, few, but greedy seeding takes minutes. One start: scikit-learn
advises several for small K only, and its k-means++ is greedy (several trials for each seed).
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from paper.baselines.cells import Cells
from paper.baselines.centres import around, nearest_centre, sample

WHAT = "k-means++ cells, nearest centres first"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"cells": max(1, round(4 * points**0.5)), "train": 50_000 if quick else 100_000, "iterations": 25}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Seeds and Lloyd's steps on a sample, then every point joins its nearest centre."""
    settings = {**defaults(*base.shape, quick), **settings}
    model = KMeans(settings["cells"], init="k-means++", n_init=1, max_iter=settings["iterations"], random_state=seed)
    model.fit(sample(base, settings["train"], seed))
    return around(model.cluster_centers_, nearest_centre(base, model.cluster_centers_), settings)
