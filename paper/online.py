"""Half of the points added online, against an index built from all of them, through the program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paper import garlic, store

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner

METHOD = "garlic-default"


def run(runner: Runner, experiment: Experiment) -> bool:
    """All data sets of the experiment; whether there was anything to do."""
    did = False
    for key in experiment.content["sets"]:
        folder = runner.out / "results" / experiment.name
        done = folder / f"{key}-built.json"
        source = None if done.is_file() else runner.set(key)
        if source is None:
            continue
        seed = experiment.content["seed"]
        how = dict(runner.defaults["sweep"][METHOD])
        how["queries"] = (runner.defaults["quick"] if runner.quick else runner.defaults)["queries"]
        about = {"experiment": experiment.name, "method": METHOD, "value": None, "settings": {}, "seed": seed}
        about |= {"queries": how["queries"]} | runner.stamp(source)
        with tempfile.TemporaryDirectory(prefix="garlic-online-") as place:
            for name, variant, fields in _variants(source, seed, how, Path(place), runner.threads):
                store.save(folder / f"{key}-{name}.json", about | {"variant": variant} | fields)
        did = True
    return did


def _variants(
    source: Any, seed: int, how: dict[str, Any], place: Path, threads: int
) -> list[tuple[str, str, dict[str, Any]]]:
    """The online index, the same recalibrated, and, last, the one built at once."""
    points = source.train()
    half, rest, index = place / "half.npy", place / "rest.npy", place / "online.garlic"
    np.save(half, points[: len(points) // 2])
    np.save(rest, points[len(points) // 2 :])
    about = garlic.build(half, "default", {}, seed, index, threads)
    garlic.output([garlic.program(), "add", str(index), str(rest)])
    found = [("added", "half added online", _fields(about, index, source, how))]
    garlic.output([garlic.program(), "compact", str(index), "--recalibrate"])
    found.append(("recalibrated", "half added online, recalibrated", _fields(about, index, source, how)))
    whole = place / "whole.garlic"
    about = garlic.build(source.path, "default", {}, seed, whole, threads)
    found.append(("built", "built from all", _fields(about, whole, source, how)))
    return found


def _fields(about: dict[str, Any], index: Path, source: Any, how: dict[str, Any]) -> dict[str, Any]:
    return {
        "points": len(source.read("train")),
        "dim": about["dim"],
        "cells": about["cells"],
        "bytes": index.stat().st_size,
        "build_seconds": about["seconds"]["total"],
        "build_cpu_seconds": about["cpu_seconds"],
        "build_threads": about["threads"],
        "rows": garlic.sweep(index, source.path, "default", how),
    }
