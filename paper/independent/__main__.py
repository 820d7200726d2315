"""`python -m paper.independent SET -o FILE.json`: trains, searches, and writes what came out."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from paper.independent.arrays import device, host, xp
from paper.independent.retrieval import index, sweep, value_of_a_candidate
from paper.independent.training import Settings, train


def arguments() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m paper.independent", description=__doc__)
    parser.add_argument("set", type=Path, help="folder with train.npy and test.npy")
    parser.add_argument("-o", "--out", type=Path, required=True, help="file to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, help="the first points alone, trained on and searched")
    parser.add_argument("--side", type=int, help="square images of this side")
    parser.add_argument("--train-fraction", type=float, default=1.0, help="share of the points that training sees")
    parser.add_argument("--covariance", choices=("full", "diagonal", "isotropic"), default="full")
    parser.add_argument("--rotate", action="store_true", help="to the principal axes first")
    parser.add_argument("--initial-cells", type=int, default=100)
    parser.add_argument("--batch", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=250)
    parser.add_argument("--no-early-stop", action="store_true")
    parser.add_argument("--yardstick", action="store_true", help="nearest points anchor, moments forgotten, 20 quiet epochs, occupied bins")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--probes", default="1,2,3,5,8,16")
    parser.add_argument("--bins", default="0.1,0.2,0.3,0.5,1")
    return parser


def main() -> None:
    asked = arguments().parse_args()
    about = measure(asked)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(about) + "\n")
    print({k: v for k, v in about.items() if k not in ("asked", "history", "rows")}, flush=True)


def measure(asked: argparse.Namespace) -> dict:
    """Trains and searches as asked for."""
    settings = Settings(
        covariance=asked.covariance, initial_cells=asked.initial_cells, batch=asked.batch, epochs=asked.epochs,
        early_stop=not asked.no_early_stop,
    )  # fmt: skip
    if asked.yardstick:
        settings.anchor_points, settings.adam_reset, settings.refine_quiet = "nearest", True, 20
    points, queries, nearest = read(asked)
    random = np.random.default_rng(asked.seed + 1000)
    seen = xp.asarray(np.sort(random.permutation(len(points))[: round(asked.train_fraction * len(points))]))
    start = time.perf_counter()
    cells, history = train(points[seen], settings, asked.seed)
    trained = time.perf_counter() - start
    found = index(points, cells, settings.tau)
    probes, bins = [int(p) for p in asked.probes.split(",")], [float(b) for b in asked.bins.split(",")]
    rows = sweep(found, queries, nearest, probes, bins, asked.yardstick)
    return {
        "asked": {k: str(v) if isinstance(v, Path) else v for k, v in vars(asked).items()},
        "device": device,
        "points": len(points),
        "trained_on": len(seen),
        "epochs": len(history),
        "cells": len(cells),
        "covered": found.covered,
        "largest": found.largest,
        "eigenvalue_ratio": eigenvalue_ratio(cells),
        "value": value_of_a_candidate(rows),
        "train_seconds": trained,
        "seconds": time.perf_counter() - start,
        "history": history,
        "rows": rows,
    }


def read(asked: argparse.Namespace) -> tuple:
    """Points and queries, normalised, and the true nearest points of the queries."""
    base = np.load(asked.set / "train.npy", mmap_mode="r")[: asked.points].astype(np.float32)
    test = np.load(asked.set / "test.npy")[: asked.queries].astype(np.float32)
    if asked.side:
        from paper.sets import resize

        base, test = resize(base, asked.side), resize(test, asked.side)
    nearest = true_nearest(xp.asarray(base), xp.asarray(test))
    mean = base.mean(axis=0, dtype=np.float64)
    deviation = np.sqrt(((base - mean) ** 2).mean(dtype=np.float64))
    points, queries = (((x - mean) / deviation).astype(np.float32) for x in (base, test))
    if asked.rotate:
        axes = np.linalg.eigh(np.cov(points[:100_000].T.astype(np.float64)))[1][:, ::-1].astype(np.float32)
        points, queries = points @ axes, queries @ axes
    return xp.asarray(points), xp.asarray(queries), nearest


def true_nearest(base, test) -> list[np.ndarray]:
    """The nearest points of every query, several where they are equally far. Pixels and descriptors are whole numbers."""
    found = []
    norms = (base * base).sum(axis=1)
    for one in test:
        squares = norms - 2 * base @ one
        ids = xp.argsort(squares)[:50]
        exact = host(((base[ids].astype(np.float64) - one.astype(np.float64)) ** 2).sum(axis=1))
        found.append(host(ids)[exact <= exact.min() * (1 + 1e-6) ** 2])
    return found


def eigenvalue_ratio(cells) -> float:
    """Largest over smallest eigenvalue of the covariance, the median of at most 32 cells."""
    ratios = []
    for cell in range(0, len(cells), max(1, len(cells) // 32)):
        factor = host(cells.factors[cell]).astype(np.float64)
        values = np.linalg.svd(factor, compute_uv=False) if cells.full else np.abs(factor)
        ratios.append(float((values.max() / values.min()) ** 2))
    return float(np.median(ratios))


if __name__ == "__main__":
    main()
