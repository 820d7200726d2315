"""Half of the points added online, against an index built from all of them, through the program: both presets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paper import garlic, store

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner

#: Method of each preset, and what begins the names of its result files.
METHODS = {"default": ("garlic-default", ""), "paper": ("garlic-paper", "paper-")}


def run(runner: Runner, experiment: Experiment) -> bool:
    """All data sets and presets of the experiment; whether there was anything to do."""
    did = False
    for key in experiment.content["sets"]:
        for preset, (method, prefix) in METHODS.items():
            folder = runner.out / "results" / experiment.name
            done = folder / f"{key}-{prefix}built.json"
            source = None if done.is_file() else runner.set(key)
            if source is None:
                continue
            seed = experiment.content["seed"]
            settings = settings_of(runner, key, preset)
            how = dict(runner.defaults["sweep"][method])
            how["queries"] = (runner.defaults["quick"] if runner.quick else runner.defaults)["queries"]
            about = {"experiment": experiment.name, "method": method, "value": None, "settings": settings, "seed": seed}
            about |= {"queries": how["queries"]} | runner.stamp(source)
            with tempfile.TemporaryDirectory(prefix="garlic-online-") as place:
                trial = Trial(source, preset, settings, seed, how, Path(place), runner.threads)
                for name, variant, fields in trial.variants():
                    store.save(folder / f"{key}-{prefix}{name}.json", about | {"variant": variant} | fields)
            did = True
    return did


def settings_of(runner: Runner, key: str, preset: str) -> dict[str, Any]:
    """What an index of a preset is built with on a data set."""
    if preset == "default":
        return {}
    settings = dict(runner.defaults["sets"][key]["paper"])
    return settings | runner.defaults["quick"]["paper"] if runner.quick else settings


class Trial:
    """One data set and one preset."""

    def __init__(
        self,
        source: Any,
        preset: str,
        settings: dict[str, Any],
        seed: int,
        how: dict[str, Any],
        place: Path,
        threads: int,
    ) -> None:
        self.source, self.preset, self.settings, self.seed = source, preset, settings, seed
        self.how, self.place, self.threads = how, place, threads

    def variants(self) -> list[tuple[str, str, dict[str, Any]]]:
        """The online index, with preset default the same recalibrated, and, last, the one built at once."""
        points = self.source.train()
        half, rest, index = self.place / "half.npy", self.place / "rest.npy", self.place / "online.garlic"
        np.save(half, points[: len(points) // 2])
        np.save(rest, points[len(points) // 2 :])
        about = self._build(half, index)
        garlic.output([garlic.program(), "add", str(index), str(rest)])
        found = [("added", "half added online", self._fields(about, index))]
        if self.preset == "default":
            garlic.output([garlic.program(), "compact", str(index), "--recalibrate"])
            found.append(("recalibrated", "half added online, recalibrated", self._fields(about, index)))
        whole = self.place / "whole.garlic"
        about = self._build(self.source.path, whole)
        found.append(("built", "built from all", self._fields(about, whole)))
        return found

    def _build(self, data: Path, index: Path) -> dict[str, Any]:
        return garlic.build(data, self.preset, self.settings, self.seed, index, self.threads)

    def _fields(self, about: dict[str, Any], index: Path) -> dict[str, Any]:
        return {
            "points": len(self.source.read("train")),
            "dim": about["dim"],
            "cells": about["cells"],
            "bytes": index.stat().st_size,
            "build_seconds": about["seconds"]["total"],
            "build_cpu_seconds": about["cpu_seconds"],
            "build_threads": about["threads"],
            "rows": garlic.sweep(index, self.source.path, self.preset, self.how),
        }
