"""Experiments as data: what a file of `experiments/` means.

A file names data sets, methods, what is varied and the seeds; `defaults.toml` beside it says what every data set
is called and how it is trained unless an experiment says otherwise. Reading all files gives a list of runs, each
a build with its sweep. Runs with the same settings are the same run, whichever experiment asks for it.

Settings are parameters of preset paper; `steps_per_epoch`, for sets that are a part of a file, stands for the `batch`
that gives so many steps. An experiment with `lengths` is run once for each of them, and the report gives a verdict for each.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """One build and the settings it is searched with."""

    experiment: str
    set: str  # key of a data set in defaults.toml
    method: str
    variant: str
    value: Any
    settings: dict[str, Any] = field(hash=False)
    seed: int
    sweep: dict[str, Any] = field(hash=False)
    length: str = ""  # of the training, a key of `lengths` in defaults.toml

    def key(self) -> str:
        """Names what is built and measured, not why: runs of two experiments with equal keys are one."""
        what = [self.set, self.method, self.settings, self.seed, self.sweep]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Experiment:
    """A file of `experiments/`."""

    name: str
    title: str
    kind: str  # "sweep", or the name of a module of paper.special
    order: int
    content: dict[str, Any]
    runs: list[Run]


def load(folder: Path, quick: bool, preset: dict[str, Any]) -> tuple[dict[str, Any], list[Experiment]]:
    """The defaults and all experiments, in the order in which they are run.

    `preset` holds the values of preset paper: an experiment that names one of them changes nothing.
    """
    defaults = tomllib.loads((folder / "defaults.toml").read_text())
    defaults["preset"] = preset
    found = []
    for path in sorted(folder.glob("*.toml")):
        if path.name == "defaults.toml":
            continue
        content = tomllib.loads(path.read_text())
        content = _overlaid(content, content.pop("quick", {}) if quick else {})
        found.append(read(path.stem, content, defaults, quick))
    return defaults, sorted(found, key=lambda e: (e.order, e.name))


def read(name: str, content: dict[str, Any], defaults: dict[str, Any], quick: bool) -> Experiment:
    """One experiment with its runs."""
    kind = content.get("kind", "sweep")
    runs: list[Run] = []
    if kind == "sweep":
        for set_name in content["sets"]:
            choices = product(_methods(content), content.get("lengths", [""]), _variants(content), content.get("seeds", [1]))
            for method, length, variant, seed in choices:
                runs.append(_run(name, content, defaults, quick, set_name, method, length, variant, seed))
    return Experiment(name, content["title"], kind, content.get("order", 50), content, runs)


def restricted(experiment: Experiment, name: str, values: list[str]) -> Experiment:
    """The experiment with those runs, or sets, alone whose field `name` is one of `values`."""
    content = dict(experiment.content)
    if name == "set" and "sets" in content:
        content["sets"] = [one for one in content["sets"] if one in values]
    runs = [run for run in experiment.runs if getattr(run, name) in values]
    return replace(experiment, content=content, runs=runs)


def _methods(content: dict[str, Any]) -> list[str]:
    return content.get("methods", ["garlic-paper"])


def _variants(content: dict[str, Any]) -> list[dict[str, Any]]:
    """What differs between runs: `vary` lists values of one key, `variant` tables name several keys.

    `axis` tables are crossed: one `choice` of each makes a variant.
    """
    variants = [dict(v) for v in content.get("variant", [])]
    if vary := content.get("vary"):
        label = vary.get("label", vary["key"])
        for value in vary["values"]:
            variants.append({"label": f"{label} = {value}", "value": value, "set": {vary["key"]: value}})
    if axes := content.get("axis"):
        for choices in product(*(axis["choice"] for axis in axes)):
            settings: dict[str, Any] = {}
            for choice in choices:
                settings |= choice.get("set", {})
            variants.append({"label": ", ".join(choice["label"] for choice in choices), "set": settings})
    return variants or [{"label": "", "value": None, "set": {}}]


def _run(
    name: str,
    content: dict[str, Any],
    defaults: dict[str, Any],
    quick: bool,
    set_name: str,
    method: str,
    length: str,
    variant: dict[str, Any],
    seed: int,
) -> Run:
    # A variant may be another method altogether: cells of the default preset beside those of the paper.
    method = variant.get("method", method)
    chosen = variant.get("set", {})
    if method == "garlic-paper":
        settings = dict(defaults["sets"][set_name].get("paper", {}))
        settings |= defaults["quick"].get("paper", {}) if quick else {}
        settings |= _length(defaults, quick, length) | content.get("settings", {}) | chosen
        if steps := settings.pop("steps_per_epoch", None):
            points = defaults["sets"][set_name]["points"]
            settings["batch"] = -(-(min(points, defaults["quick"]["points"]) if quick else points) // steps)
        settings = {k: v for k, v in settings.items() if defaults["preset"].get(k) != v}
    else:
        # Others know some of the keys under the same name; the rest says nothing to them.
        settings = {k: v for k, v in chosen.items() if k in content.get("shared_keys", [])}
        settings |= content.get("baselines", {}).get(method, {})
    sweep = dict(defaults["sweep"].get(method, {}))
    sweep |= content.get("sweep", {}) if method == "garlic-paper" else {}
    sweep["queries"] = defaults["quick"]["queries"] if quick else content.get("queries", defaults["queries"])
    label = variant["label"] or method
    return Run(name, set_name, method, label, variant.get("value"), settings, seed, sweep, length)


def _length(defaults: dict[str, Any], quick: bool, length: str) -> dict[str, Any]:
    """What a length of training sets; an experiment without lengths sets nothing."""
    return (defaults["quick"]["lengths"] if quick else defaults["lengths"])[length] if length else {}


def _overlaid(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` with what `over` says instead, table by table."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _overlaid(merged[key], value) if both else value
    return merged
