"""Faiss IVF-Flat: the library's own k-means lists, quantiser and search.

Its authors advise 4 sqrt(n) .. 16 sqrt(n) lists below a million points and 30 .. 256 training points a list;
`train_fraction` is the share of the points that k-means may see (of which Faiss takes 256 a list at most).
"""

from typing import Any

import faiss
import numpy as np

from paper.baselines.cells import Cells, constant
from paper.baselines.centres import sample

WHAT = "Faiss IVF-Flat"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"nlist": max(1, round(4 * points**0.5)), "train_fraction": 1.0, "iterations": 10}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Trains, adds all points, and reads the lists back."""
    settings = {**defaults(*base.shape, quick), **settings}
    nlist = settings["nlist"]
    quantizer = faiss.IndexFlatL2(base.shape[1])
    index = faiss.IndexIVFFlat(quantizer, base.shape[1], nlist)
    index.cp.seed, index.cp.niter = seed, settings["iterations"]
    # Faiss would only warn on its own output of few points a list; the fraction is what the experiment is about.
    index.cp.min_points_per_centroid = 1
    seen = max(nlist, round(settings["train_fraction"] * len(base)))
    index.train(sample(base, seen, seed))
    index.add(base)
    offsets, ids = lists(index)

    def search(queries: np.ndarray, probes: int, k: int) -> Any:
        index.nprobe = probes
        return index.search(queries, k)

    return Cells(
        offsets=offsets,
        ids=ids,
        points=len(base),
        order_of=lambda queries, most: quantizer.search(np.ascontiguousarray(queries), most)[1],
        madds_of=constant(nlist * base.shape[1]),
        settings=settings,
        model_bytes=4 * nlist * base.shape[1],
        search=search,
    )


def lists(index: faiss.IndexIVF) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and ids of the inverted lists."""
    inverted = index.invlists
    sizes = [inverted.list_size(i) for i in range(index.nlist)]
    ids = [faiss.rev_swig_ptr(inverted.get_ids(i), size).copy() for i, size in enumerate(sizes) if size]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(ids).astype(np.int32)
