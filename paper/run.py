"""Runs what is not there yet."""

from __future__ import annotations

import datetime
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from bench.harness.machine import machine
from threadpoolctl import threadpool_limits

from paper import garlic, special, store
from paper.experiment import Experiment, Run
from paper.sets import Set, open_set

PRESETS = {"garlic-paper": "paper", "garlic-default": "default"}


class Runner:
    """All experiments of one output folder."""

    def __init__(self, out: Path, defaults: dict[str, Any], quick: bool, threads: int) -> None:
        self.out = out
        self.defaults = defaults
        self.quick = quick
        self.threads = threads
        self.failed: list[str] = []
        self.done = 0
        self._sets: dict[str, Set | None] = {}

    def set(self, key: str) -> Set | None:
        """A data set, looked for once."""
        if key not in self._sets:
            self._sets[key] = open_set(key, self.defaults, self.quick, self.out / "data")
        return self._sets[key]

    def run(self, experiments: list[Experiment]) -> None:
        """Runs one experiment after the other; what fails is told and left out."""
        for experiment in experiments:
            if experiment.kind != "sweep":
                self._guard(experiment.name, lambda e=experiment: special.run(self, e))
            for number, run in enumerate(experiment.runs, 1):
                label = f"{run.experiment} {number}/{len(experiment.runs)}: {run.set} {run.method} {run.variant} {run.length}"
                self._guard(f"{label} seed {run.seed}", lambda r=run: self._sweep(r))

    def missing(self, experiments: list[Experiment]) -> list[str]:
        """How many runs of each experiment and set have no result yet, for the report to name."""
        planned, left = Counter(), Counter()
        for run in (run for experiment in experiments for run in experiment.runs):
            planned[run.experiment, run.set] += 1
            left[run.experiment, run.set] += not self._target(run).is_file()
        return [f"{name} on {key} ({count} of {planned[name, key]} runs)" for (name, key), count in left.items() if count]

    def _target(self, run: Run) -> Path:
        return self.out / "results" / run.experiment / f"{run.set}-{run.method}-{run.key()}-{run.seed}.json"

    def _guard(self, label: str, work: Any) -> None:
        start = time.perf_counter()
        try:
            did = work()
        except Exception:  # one experiment must not take the others with it
            self.failed.append(label)
            print(f"!!! FAILED: {label}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            return
        if did:
            self.done += 1
            print(f"{label}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)

    def _sweep(self, run: Run) -> bool:
        target = self._target(run)
        if target.is_file():
            return False
        shared = self.out / "runs" / f"{run.key()}.json"
        measured = store.load(shared)
        if measured is None:
            source = self.set(run.set)
            if source is None:
                return False
            measured = self._measure(run, source)
            measured |= self.stamp(source)
            store.save(shared, measured)
        about = {"experiment": run.experiment, "method": run.method, "variant": run.variant, "value": run.value}
        about |= {"length": run.length, "seed": run.seed, "queries": run.sweep["queries"], "sweep": run.sweep}
        settings = measured.get("settings") or run.settings
        store.save(target, measured | about | {"settings": settings})
        return True

    def _measure(self, run: Run, source: Set) -> dict[str, Any]:
        if preset := PRESETS.get(run.method):
            return garlic.measure(source, preset, run.settings, run.seed, run.sweep, self.threads)
        from paper import others  # scikit-learn and faiss: only where they are needed

        with threadpool_limits(limits=self.threads):
            measured = others.measure(source, run.method, run.settings, run.seed, run.sweep, self.quick)
        return measured | {"build_threads": self.threads}

    def stamp(self, source: Set) -> dict[str, Any]:
        """What was measured when, on what."""
        return {"set": source.name, "machine": machine(), "date": datetime.date.today().isoformat(), "quick": self.quick}
