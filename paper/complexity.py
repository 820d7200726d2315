"""How build and query grow: one quantity varied at a time, exponents fitted to what was measured.

Times are the processor's, of one thread, the best of some runs: on a shared machine the wall clock tells of others.
Work is counted, so its exponents carry no noise at all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paper import garlic, store

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner

POINTS = 20_000
QUERIES = 300
# What the operations of the published method add up to; the anchor term multiplies three triangular matrices a cell.
FORMULAS = {
    ("paper", "points"): "training O(n K d^2) a pass, plus O(K d^3) a step; query O(K d^2) routing + candidates O(n / K)",
    ("paper", "cells"): "training O(n K d^2 + K d^3); query O(K d^2) routing, candidates falling as 1 / K",
    ("paper", "dim"): "training O(n K d^2 + K d^3); query O(K d^2) routing, that is O(K d) distance equivalents",
    ("paper", "rank"): "frames O(n d r); query O(k_G (r d + bins r)), bins growing as n_r n_a^(r-1)",
    ("default", "points"): "build O(n K d'), K ~ sqrt(n) / 4 unless given; query O(K + k_G r + bins + codes)",
    ("default", "cells"): "build O(n K d'); query O(K) routing on a prefix",
    ("default", "dim"): "build O(n K d'), rotation O(n d d'); query O(d d') rotation",
    ("default", "rank"): "frames O(n d' r); query O(k_G r d' + bins r + codes r)",
}
SETTINGS = {
    # No refinement: the number of cells stays what it was set to.
    "paper": {"epochs": 4, "warmup_epochs": 1, "initial_cells": 64, "batch": 10_000, "split": False, "clone": False},
    "default": {"cells": 64, "rounds": 5, "axes": 16, "calibration_queries": 100},
}
KEYS = {
    ("paper", "cells"): "initial_cells",
    ("default", "cells"): "cells",
    ("paper", "rank"): "rank",
    ("default", "rank"): "axes",
}
RANKS = {"paper": lambda x: x, "default": lambda x: 8 * x}
SEARCH = {"paper": ["--probes", "4", "--bins", "0.3"], "default": ["--probes", "8", "--bins", "0.1", "--rerank", "50"]}


def run(runner: Runner, experiment: Experiment) -> bool:
    """Both presets, every axis; whether there was anything to do."""
    did = False
    for key in experiment.content["sets"]:
        for preset in SETTINGS:
            for axis, about in experiment.content["axes"].items():
                target = runner.out / "results" / experiment.name / f"{key}-{preset}-{axis}.json"
                source = None if target.is_file() else runner.set(key)
                if source is None:
                    continue
                train, queries = source.train(), source.queries(QUERIES)
                measured = [
                    _point(preset, axis, value, train, queries, experiment.content) for value in about["values"]
                ]
                result = {"experiment": experiment.name, "preset": preset, "axis": axis, "points": measured}
                result |= {"fits": fits(measured), "published": FORMULAS[preset, axis]} | runner.stamp(source)
                store.save(target, result)
                did = True
    return did


def fits(points: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Exponents of power laws, by least squares on logarithms."""
    found = {}
    for name in points[0]:
        if name == "x":
            continue
        values = np.array([[p["x"], p[name]] for p in points], dtype=np.float64)
        values = np.log(values[(values > 0).all(axis=1)])
        if len(values) < 3:
            continue
        slope, offset = np.polyfit(values[:, 0], values[:, 1], 1)
        rest = values[:, 1] - slope * values[:, 0] - offset
        spread = ((values[:, 1] - values[:, 1].mean()) ** 2).sum()
        found[name] = {"exponent": float(slope), "r2": float(1 - (rest**2).sum() / spread) if spread > 0 else 1.0}
    return found


def _point(
    preset: str, axis: str, value: int, train: np.ndarray, queries: np.ndarray, content: dict[str, Any]
) -> dict[str, Any]:
    settings = dict(SETTINGS[preset])
    points, dim, x = min(POINTS, len(train)), train.shape[1], value
    if axis == "points":
        points = min(value, len(train))
    elif axis == "dim":
        dim = value
    else:
        x = RANKS[preset](value) if axis == "rank" else value
        settings[KEYS[preset, axis]] = x
    with tempfile.TemporaryDirectory(prefix="garlic-complexity-") as place:
        data, asked, index = (Path(place) / name for name in ("train.npy", "queries.npy", "index.garlic"))
        np.save(data, np.ascontiguousarray(train[:points, :dim]))
        np.save(asked, np.ascontiguousarray(queries[:, :dim]))
        builds = [_build(data, preset, settings, content["seed"], index) for _ in range(content["repeat"])]
        command = [garlic.program(), "eval", str(index), str(data), "--query-file", str(asked), "--json", "--quiet"]
        rows = garlic.rows(command + SEARCH[preset] + ["--repeat", str(content["repeat"])])
    work = rows[0]["work"]
    return {
        "x": x,
        "build_seconds": min(builds),
        "query_us": rows[0]["p50_us"],
        "distance_equivalents": rows[0]["distance_equivalents"],
        "routing": work["routing"],
        "projection": work["projection"],
        "candidates": rows[0]["candidates"],
    }


def _build(data: Path, preset: str, settings: dict[str, Any], seed: int, index: Path) -> float:
    about = garlic.build(data, preset, settings, seed, index, threads=1)
    return about["cpu_seconds"]
