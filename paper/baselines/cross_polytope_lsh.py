"""Cross-polytope LSH (Andoni et al. 2015) with query-directed multi-probe.

A hash function turns the centred point with a pseudo-random rotation, three rounds of random signs and a Hadamard
transform, and takes the nearest vertex of the cross-polytope: the largest coordinate by absolute value, with its sign.
As in FALCONN, the number of functions and the number of coordinates the last of them looks at are chosen for a number
of bits, log2(n) or 16 at most; centring is advised there too. Another vertex costs the square of what its coordinate
falls short of the largest, all coordinates of the unit vector. A rotation is counted as 3 D log2 D additions, D the
dimension padded to a power of two. Here the three rounds are multiplied out once, so that points are hashed by one
product: the same map.
"""

from typing import Any

import numpy as np
from scipy.linalg import hadamard

from paper.baselines.cells import Cells
from paper.baselines.hashing import Costs, cells_of, default_bits, table

WHAT = "cross-polytope LSH, multi-probe"
BLOCK = 8192


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    return {"bits": default_bits(points), "tables": 4}


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Draws the rotations and fills the buckets."""
    settings = {**defaults(*base.shape, quick), **settings}
    random = np.random.default_rng(seed)
    mean = base.mean(axis=0, dtype=np.float64).astype(np.float32)
    widths = function_widths(settings["bits"], padded(base.shape[1]))
    built = []
    for _ in range(settings["tables"]):
        rotations = [rotation(base.shape[1], width, random) for width in widths]
        symbols = [vertices(base, mean, r) for r in rotations]
        built.append(table(np.stack(symbols, axis=1), [2 * w for w in widths], vertex_costs(mean, rotations)))
    full = padded(base.shape[1])
    functions = settings["tables"] * len(widths)
    # Centring, unit length (one norm), and the rotations.
    madds = 2 * base.shape[1] + functions * 3 * full * np.log2(full)
    return cells_of(built, len(base), float(madds), settings, functions * 3 * full // 8 + mean.nbytes)


def padded(dim: int) -> int:
    """The next power of two."""
    return 1 << max(0, dim - 1).bit_length()


def function_widths(bits: int, full: int) -> list[int]:
    """Coordinates each function of a table looks at: all of them, and in the last one what the bits leave."""
    each = full.bit_length()
    rest = bits % each
    return [full] * (bits // each) + ([1 << (rest - 1)] if rest else [])


def rotation(dim: int, width: int, random: np.random.Generator) -> np.ndarray:
    """The first `width` rows of H D3 H D2 H D1, for vectors padded from `dim`."""
    full = padded(dim)
    transform = hadamard(full, dtype=np.float32) / np.float32(np.sqrt(full))
    result = np.eye(full, dtype=np.float32)
    for _ in range(3):
        result = transform @ (random.choice(np.float32([-1, 1]), full)[:, None] * result)
    return np.ascontiguousarray(result[:width, :dim])


def vertices(points: np.ndarray, mean: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The nearest vertex of every point: 2 i for +e_i, 2 i + 1 for -e_i."""
    found = np.empty(len(points), np.int64)
    for at in range(0, len(points), BLOCK):
        turned = (points[at : at + BLOCK] - mean) @ turn.T
        axis = np.abs(turned).argmax(axis=1)
        found[at : at + BLOCK] = 2 * axis + (turned[np.arange(len(turned)), axis] < 0)
    return found


def vertex_costs(mean: np.ndarray, rotations: list[np.ndarray]) -> Costs:
    """Costs of all vertices of each function."""

    def costs(queries: np.ndarray) -> list[np.ndarray]:
        centred = queries - mean
        centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-30)
        result = []
        for turn in rotations:
            turned = centred @ turn.T
            signed = np.stack([turned, -turned], axis=2).reshape(len(queries), -1)
            result.append((signed.max(axis=1, keepdims=True) - signed) ** 2)
        return result

    return costs
