"""The baselines of the report, by name: what they are, their settings, and one function that builds and measures one.

    from paper import baselines
    result = baselines.run("kmeans", base, queries, truth, seed=1, timed=200)

gives the part of a result file that is the method's: settings, build seconds, cells, bytes, extra and rows. Modules are
imported when they are needed, so that a missing library is missed by its own baseline only.
"""

from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

MODULES = {
    "kmeans": "kmeans",
    "birch": "birch",
    "gmm": "gmm",
    "neural-lsh": "neural_lsh",
    "hyperplane-lsh": "hyperplane_lsh",
    "cross-polytope-lsh": "cross_polytope_lsh",
    "itq": "itq",
    "pca-tree": "pca_tree",
    "faiss-ivf": "faiss_ivf",
    "faiss-pq": "faiss_pq",
    "faiss-pq-rerank": "faiss_pq_rerank",
}
"""Method -> its module here, which has WHAT, defaults(points, dim, quick) and build(base, seed, quick, **settings)."""


def module(name: str) -> ModuleType:
    """The module of a method."""
    if name not in MODULES:
        raise ValueError(f"no baseline {name!r}; there are {', '.join(MODULES)}")
    return import_module(f"{__name__}.{MODULES[name]}")


def defaults(name: str, points: int, dim: int, quick: bool = False) -> dict[str, Any]:
    """The settings a method takes for so many points."""
    return module(name).defaults(points, dim, quick)


def build(name: str, base: np.ndarray, seed: int = 1, quick: bool = False, **settings: Any) -> Any:
    """Builds a baseline, `settings` in place of its defaults; `build_seconds` is the time all of it took."""
    owner = module(name)
    unknown = set(settings) - set(owner.defaults(*base.shape, quick))
    if unknown:
        raise ValueError(f"{name} has no setting {', '.join(sorted(unknown))}")
    base = np.ascontiguousarray(base, np.float32)
    start = perf_counter()
    built = owner.build(base, seed, quick, **settings)
    built.build_seconds = perf_counter() - start
    return built


def run(
    name: str,
    base: np.ndarray,
    queries: np.ndarray,
    truth: np.ndarray,
    seed: int = 1,
    quick: bool = False,
    settings: dict[str, Any] | None = None,
    **measuring: Any,
) -> dict[str, Any]:
    """Builds and measures. `measuring` goes to the method's `measure`: probes, k, max_candidates, timed."""
    from paper.baselines import engine

    base, queries = (np.ascontiguousarray(a, np.float32) for a in (base, queries))
    built = build(name, base, seed, quick, **(settings or {}))
    measure = getattr(module(name), "measure", engine.measure)
    return {
        "method": name,
        "settings": built.settings,
        "seed": seed,
        "points": len(base),
        "dim": base.shape[1],
        "queries": len(queries),
        "build_seconds": built.build_seconds,
        "cells": built.cells,
        "bytes": built.bytes(base),
        "extra": built.shape(),
        "rows": measure(built, base, queries, truth, **measuring),
    }
