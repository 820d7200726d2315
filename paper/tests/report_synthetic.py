"""Made-up result files for the tests of the report. They look like results and are none: no report may show them.

Curves follow a formula (recall rises with the logarithm of candidates), so that a test knows what must come out.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

FASHION = "fashion-mnist-784-euclidean"
SIFT = "photosift1m-128-euclidean"
METHODS = {
    "garlic-default": 0.3,
    "garlic-paper": 0.45,
    "faiss-ivf": 1.0,
    "faiss-pq-rerank": 0.6,
    "kmeans": 1.05,
    "birch": 2.0,
    "gmm": 1.6,
    "neural-lsh": 0.8,
    "pca-tree": 3.0,
    "hyperplane-lsh": 8.0,
    "cross-polytope-lsh": 6.0,
    "itq": 4.0,
}


def recall(candidates: float, points: int, factor: float) -> float:
    """A rising curve; `factor` times the candidates are needed for the same recall."""
    return 1.0 - math.exp(-((candidates / factor / (0.004 * points)) ** 0.6))


def row(candidates: float, points: int, factor: float, **params: Any) -> dict[str, Any]:
    """A row of the schema with recall on the curve."""
    found = recall(candidates, points, factor)
    ten = found**1.2
    return {
        "params": params,
        "recall_at_1": found,
        "recall_at_10": ten,
        "precision_at_10": ten,
        "epsilon_recall_1pct": ten**0.9,
        "epsilon_recall_10pct": ten**0.4,
        "r95": None if found < 0.3 else 1.0 + 0.2 * (1.0 - found),
        "r99": None if found < 0.4 else 1.0 + 0.5 * (1.0 - found),
        "relative_error": 0.1 * (1.0 - ten),
        "candidates": candidates,
        "distance_equivalents": candidates + 300.0 * factor,
        "qps": 2e6 / (candidates + 300.0),
    }


def run(experiment: str, method: str, factor: float, **given: Any) -> dict[str, Any]:
    """A result file; everything in `given` replaces the usual."""
    points = given.get("points", 60_000)
    rows = [
        row(0.002 * points * probes * (0.2 + 0.8 * bins), points, factor, probes=probes, bins=bins)
        for probes in (1, 2, 4, 8, 16, 32)
        for bins in (0.3, 1.0)
    ]
    usual = {
        "experiment": experiment,
        "set": FASHION,
        "method": method,
        "variant": method,
        "value": None,
        "settings": {"cells": 400},
        "seed": 1,
        "points": points,
        "dim": 784,
        "queries": 2000,
        "build_seconds": 20.0 * factor,
        "build_threads": 2,
        "cells": 387,
        "bytes": 673_995_520,
        "machine": {"cpu": "made up", "cores": 2},
        "date": "2026-01-02",
        "extra": {"coverage_share": 0.33, "largest_share": 0.02},
        "rows": rows,
    }
    return usual | given


def pq_run() -> dict[str, Any]:
    """A method without exact distances."""
    rows = [row(100.0 * i, 60_000, 1.0, probes=i) | {"candidates": 0.0} for i in (1, 2, 4, 8)]
    return run("recall-vs-candidates", "faiss-pq", 0.5, rows=rows)


def ablation_runs() -> list[dict[str, Any]]:
    """Runs of every ablation."""
    found = [
        run("training-fraction", method, factor * (1 + 0.02 / value), variant=f"{value:g} of the points", value=value)
        for method, factor in (("garlic-paper", 0.45), ("faiss-ivf", 1.0))
        for value in (0.01, 0.1, 1.0)
    ]
    numbers = {
        "batch-size": (5000, 20000, 50000),
        "initial-cells": (50, 100, 200),
        "gamma": (0.0025, 0.005, 0.01, 0.02, 0.05),
        "clone-shell": (1.5, 2.2, 3.0),
    }
    for name, values in numbers.items():
        found += [
            run(name, "garlic-paper", 0.45 + 0.1 * i, variant=f"{name} = {v:g}", value=v) for i, v in enumerate(values)
        ]
    words = {
        "bin-shape": {"r 3, 6 x 4": 1.0, "r 2, 6 x 4": 1.2},
        "initialisation": {
            "init = kmeans": 1.0,
            "init = kmeans-plus-plus": 1.0,
            "init = farthest-point": 1.5,
            "init = random": 1.1,
        },
        "losses": {"all": 1.0, "without coverage": 1.1, "without anchor": 1.6, "divergence alone": 1.8},
        "split-clone": {"both": 1.0, "split only": 1.2, "clone only": 3.0, "neither": 3.5},
        "covariance": {"full": 1.0, "diagonal": 400.0, "isotropic": 900.0},
        "selection": {"published training": 1.0, "guard and selection": 0.8},
        "online": {"built from all": 1.0, "half added online": 1.05, "half added online, recalibrated": 1.02},
    }
    found += [
        run("online", "garlic-default", 0.3 * f, variant=v, value=None)
        for v, f in (("built from all", 1.0), ("half added online", 1.04))
    ]
    for name, variants in words.items():
        found += [run(name, "garlic-paper", 0.45 * f, variant=v, value=None) for v, f in variants.items()]
    found += [
        run("training-length", "garlic-paper", factor, variant=f"{length}, {shape}", value=None)
        for length, factor in (("120 steps", 0.5), ("3,600 steps", 0.4))
        for shape in ("full", "full, rotated", "diagonal")
    ]
    found.append(run("bin-budget", "garlic-paper", 0.45))
    found += [run("seeds", "garlic-paper", 0.45 + 0.01 * s, seed=s) for s in range(10)]
    for side in (8, 16, 28):
        given = {"set": f"fashion-mnist-{side}x{side}", "dim": side * side, "points": 10_000}
        found += [
            run("dimensionality", m, f * side / 40, **given) for m, f in (("garlic-paper", 1.0), ("faiss-ivf", 2.0))
        ]
        found.append(run("dimensionality-published", "garlic-paper", side / 40, **given | {"points": 60_000}))
    found += [
        run("efficiency", "garlic-paper", 0.45 * (1 + 0.02 / share), variant=f"trained on = {share:g}", value=share)
        | {"build_seconds": 400.0 * share}
        for share in (0.01, 0.025, 0.05)
    ]
    for value in (2.0, 3.0, 4.0):
        factor = 2.0 ** (value - 3.0) * 20
        found.append(
            run("tau", "garlic-paper", factor, set=SIFT, points=1_000_000, variant=f"tau = {value:g}", value=value)
        )
    return found


def all_runs() -> list[dict[str, Any]]:
    """Runs of every experiment that is a sweep."""
    found = [run("recall-vs-candidates", method, factor) for method, factor in METHODS.items()]
    found += [
        run("recall-vs-candidates", method, METHODS[method], set=SIFT, points=1_000_000, dim=128)
        for method in ("garlic-default", "garlic-paper", "faiss-ivf")
    ]
    return [*found, pq_run(), *ablation_runs()]


def votes() -> list[dict[str, Any]]:
    """Files of the classification."""
    methods = {
        "exact k-NN": (0.97, 60000.0),
        "garlic k-NN": (0.968, 900.0),
        "garlic cell vote": (0.91, 400.0),
        "k-means vote": (0.89, 400.0),
    }
    return [
        {"experiment": "classification", "set": FASHION, "method": name, "settings": {"k": 10}, "accuracy": accuracy}
        | {"distance_equivalents": work, "candidates": work, "build_seconds": 3.0, "seed": 1}
        for name, (accuracy, work) in methods.items()
    ]


def scalings() -> list[dict[str, Any]]:
    """Files of the complexity."""
    found = []
    for axis in ("n", "cells", "dim", "rank"):
        for preset in ("paper", "default"):
            points = [
                {"x": x, "build_seconds": x / 500, "query_us": x**0.5, "distance_equivalents": 40 + x**0.5}
                for x in (1000, 4000, 16000)
            ]
            fits = {"build_seconds": {"exponent": 1.0, "r2": 1.0}, "query_us": {"exponent": 0.5, "r2": 1.0}}
            found.append(
                {
                    "experiment": "complexity",
                    "axis": axis,
                    "preset": preset,
                    "points": points,
                    "fits": fits,
                    "published": "O(n)",
                }
            )
    return found


def diagnosis() -> dict[str, Any]:
    """A diagnosis with the parts that the report reads."""
    sizes = [{"neighbours": n, "curvature": {"mean": 0.4 + n / 400, "deviation": 0.05}} for n in (8, 16, 32, 64)]
    groups = [{"label": str(n), "at": n, "values": {"count": 9, "mean": 0.5, "deviation": 0.04}} for n in (0, 1, 2)]
    cells = [{"cell": i, "centres": 3, "curvature": 0.3 + i / 20, "radius": 1.0 + i, "share": 0.01} for i in range(5)]
    by_cell = {"cells": [*cells, {"cell": 9}], "radius_correlation": 1.0, "share_correlation": -0.25}
    return {
        "subject": {"cells": 387},
        "coverage": {"share": 0.33, "mean": 1.08},
        "anisotropy": {"ratio": {"summary": {"median": 812.0}}},
        "curvature": {"all": {"mean": 0.51, "deviation": 0.06}, "sizes": sizes, "by_coverage": groups, "by_cell": by_cell},
    }


def write(out: Path, runs: list[dict[str, Any]], others: bool = True) -> None:
    """Writes a run's folder."""
    for i, one in enumerate(runs):
        _dump(out / "results" / one["experiment"] / f"{i:03}.json", one)
    if not others:
        return
    for kind, found in (("classification", votes()), ("complexity", scalings())):
        for i, one in enumerate(found):
            _dump(out / "results" / kind / f"{i}.json", one)
    _dump(out / "results" / "diagnostics" / f"{FASHION}-paper.json", diagnosis())
    (out / "results" / "diagnostics" / f"{FASHION}-paper.html").write_text("<p>diagnosis</p>", encoding="utf-8")
    (out / "pictures").mkdir()
    for name in ("overview", "refinement", "gradients"):
        (out / "pictures" / f"{name}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    _dump(out / "run.json", {"command": "make paper QUICK=1", "seconds": 700.0, "machine": {"cpu": "made up"}})


def _dump(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
