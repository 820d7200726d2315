"""Hyperplane LSH (Charikar 2002) with query-directed multi-probe (Lv et al. 2007).

Two vectors fall on the same side of a random hyperplane with probability 1 - angle / pi. The planes go through the mean
of the points, which is what the angles of data that are not centred need. log2(n) bits, the usual advice (16 at most);
more bits needed fewer candidates on images, and so did four tables rather than one. Multi-probe's authors replace many
tables by many probes of few.
"""

from typing import Any

import numpy as np

from paper.baselines.cells import Cells
from paper.baselines.hashing import cells_of, default_bits, sign_costs, table

WHAT = "hyperplane LSH, multi-probe"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"bits": default_bits(points), "tables": 4}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Draws the planes and fills the buckets."""
    settings = {**defaults(*base.shape, quick), **settings}
    bits, tables = settings["bits"], settings["tables"]
    random = np.random.default_rng(seed)
    mean = base.mean(axis=0, dtype=np.float64)
    built, planes_bytes = [], 0
    for _ in range(tables):
        planes = random.standard_normal((bits, base.shape[1])).astype(np.float32)
        # The planes' offsets take the mean away, so a query is projected as it is.
        shift = (planes @ mean).astype(np.float32)
        project = projection(planes, shift)
        symbols = (project(base) >= 0).astype(np.int64)
        built.append(table(symbols, [2] * bits, sign_costs(project)))
        planes_bytes += planes.nbytes + shift.nbytes
    return cells_of(built, len(base), float(tables * bits * base.shape[1]), settings, planes_bytes)


def projection(planes: np.ndarray, shift: np.ndarray):
    """points -> signed margins to the planes."""
    return lambda points: points @ planes.T - shift
