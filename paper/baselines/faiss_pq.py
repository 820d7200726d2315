"""Faiss IVF with 4-bit product codes (fast scan): answers from the codes alone, or the best re-ranked exactly.

As Faiss advises: two dimensions a sub-quantiser; above 200 dimensions principal axes first (128), with codes of
residuals; about 4 sqrt(n) lists, a quarter of them with residuals, whose tables cost something for every list. Not a
(cells, probe order) pair: which points are looked at exactly depends on the codes, so it has a `measure` of its own.

Work of a query, in multiply-adds: d * p for the axes (p = d without), nlist * p for the lists, 16 * p for the tables
(for every probed list with residuals, once without), M for each code scanned (one look-up and addition for each of its
M nibbles counts as one multiply-add), d for each point re-ranked. Without re-ranking there are no candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np

from paper.baselines import engine
from paper.metrics import evaluate

WHAT = "Faiss IVF-PQ fast scan, no re-ranking"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points; `k_factors` empty means no re-ranking."""
    lists = max(1, round(4 * points**0.5))
    if dim > 200:
        return {"pca": 128, "nlist": max(1, lists // 4), "codes": 64, "residual": True, "k_factors": []}
    return {"pca": None, "nlist": lists, "codes": dim // 2 or 1, "residual": False, "k_factors": []}


@dataclass
class Codes:
    """A built index and what it was built with."""

    index: faiss.Index
    settings: dict[str, Any]
    build_seconds: float = 0.0

    @property
    def ivf(self) -> faiss.IndexIVF:
        """The lists, behind principal axes or not."""
        return faiss.extract_index_ivf(self.index)

    @property
    def cells(self) -> int:
        """Number of lists."""
        return self.settings["nlist"]

    def reduced(self, queries: np.ndarray) -> np.ndarray:
        """Queries as the lists see them."""
        if self.settings["pca"] is None:
            return queries
        return faiss.downcast_VectorTransform(self.index.chain.at(0)).apply(queries)

    def bytes(self, base: np.ndarray) -> int:
        """Codes, ids of four bytes, centres, axes, code books; the vectors too when they re-rank."""
        width = self.settings["pca"] or base.shape[1]
        axes = 4 * width * base.shape[1] if self.settings["pca"] else 0
        model = axes + 4 * width * (self.settings["nlist"] + 16)
        vectors = base.nbytes if self.settings["k_factors"] else 0
        return int(vectors + len(base) * (self.settings["codes"] // 2 + 4) + model)

    def shape(self) -> dict[str, Any]:
        """What a result file says of the lists."""
        return {"largest_share": float(self.list_sizes().max() / self.index.ntotal)}

    def list_sizes(self) -> np.ndarray:
        """Number of points in each list."""
        lists = self.ivf.invlists
        return np.array([lists.list_size(i) for i in range(self.cells)])


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Codes:
    """Trains axes, lists and code books, and codes all points."""
    settings = {**defaults(*base.shape, quick), **settings}
    first = f"PCA{settings['pca']}," if settings["pca"] else ""
    kind = "fsr" if settings["residual"] else "fs"
    index = faiss.index_factory(base.shape[1], f"{first}IVF{settings['nlist']},PQ{settings['codes']}x4{kind}")
    ivf = faiss.downcast_index(faiss.extract_index_ivf(index))
    ivf.cp.seed = ivf.pq.cp.seed = seed
    ivf.cp.min_points_per_centroid = ivf.pq.cp.min_points_per_centroid = 1
    index.train(base)
    index.add(base)
    return Codes(index, settings)


def measure(
    built: Codes,
    base: np.ndarray,
    queries: np.ndarray,
    truth: np.ndarray,
    probes: Sequence[int] | None = None,
    k: int = 10,
    max_candidates: float | None = None,
    timed: int = 0,
) -> list[dict[str, Any]]:
    """One row for each number of probes and each number of points to re-rank, k * k_factor.

    `max_candidates` bounds the points to re-rank; a scan of codes is cheap and not bounded. A row also has
    `codes_scanned`. Eight numbers of probes by default, fewer than elsewhere: each comes with every k_factor.
    """
    reach = reached(built, queries)
    steps = sorted({min(int(p), built.cells) for p in probes}) if probes else None
    steps = steps or engine.probe_steps(reach, len(base), settings=8)
    factors = built.settings["k_factors"]
    if max_candidates is not None and factors:
        factors = [f for f in factors if k * f <= max_candidates] or factors[:1]
    index = faiss.IndexRefineFlat(built.index, faiss.swig_ptr(base)) if factors else built.index
    rows, some = [], queries[:timed]
    for step in steps:
        built.ivf.nprobe = step
        for factor in factors or [None]:
            params = {"probes": step} | ({"k_factor": factor} if factor else {})
            if factor:
                index.k_factor = factor
            found = index.search(queries, k)[1]
            row: dict[str, Any] = {"params": params, **evaluate(true_distances(base, queries, found), truth, k)}
            row["candidates"] = reranked(built, queries, k * factor) if factor else 0.0
            row["codes_scanned"] = float(reach[step - 1])
            row["distance_equivalents"] = madds(built, base.shape[1], step, row) / base.shape[1]
            row["qps"] = engine.rate(lambda: index.search(some, k), len(some)) if timed else None
            rows.append(row)
    return rows


def reached(built: Codes, queries: np.ndarray) -> np.ndarray:
    """Mean number of codes scanned after 1, 2, ... lists."""
    order = built.ivf.quantizer.search(built.reduced(queries), built.cells)[1]
    return built.list_sizes()[order].cumsum(axis=1).mean(axis=0)


def reranked(built: Codes, queries: np.ndarray, wanted: int) -> float:
    """Mean number of points whose exact distance re-ranking computes: what the codes return, counted."""
    return float(np.mean(np.sum(built.index.search(queries, wanted)[1] >= 0, axis=1)))


def madds(built: Codes, dim: int, probes: int, row: dict[str, Any]) -> float:
    """All multiply-adds of a query, as the head of this file counts them."""
    settings = built.settings
    width = settings["pca"] or dim
    axes = dim * width if settings["pca"] else 0
    tables = 16 * width * (probes if settings["residual"] else 1)
    scan = settings["codes"] * row["codes_scanned"]
    return axes + settings["nlist"] * width + tables + scan + row["candidates"] * dim


def true_distances(base: np.ndarray, queries: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Exact distances of the answers, in the order they were given: judging them is no work of the method."""
    distances = np.full(found.shape, np.inf)
    for row, (ids, query) in enumerate(zip(found, queries)):
        difference = base[ids[ids >= 0]].astype(np.float64) - query.astype(np.float64)
        distances[row, ids >= 0] = np.linalg.norm(difference, axis=1)
    return distances

