"""Experiments that are more than a build and a sweep, by the `kind` of their file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner

KINDS = ("classification", "complexity", "diagnostics", "online", "pictures")


def run(runner: Runner, experiment: Experiment) -> bool:
    """Runs an experiment of another kind; whether there was anything left to do."""
    if experiment.kind not in KINDS:
        raise ValueError(f"{experiment.name}: no kind {experiment.kind!r}; there are: sweep, {', '.join(KINDS)}")
    return import_module(f"paper.{experiment.kind}").run(runner, experiment)
