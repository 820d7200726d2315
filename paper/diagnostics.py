"""`garlic inspect --report` of an index of each preset."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from paper import garlic

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner


def run(runner: Runner, experiment: Experiment) -> bool:
    """All data sets and both presets; whether there was anything to do."""
    did = False
    for key in experiment.content["sets"]:
        for preset in ("default", "paper"):
            target = runner.out / "results" / experiment.name / f"{key}-{preset}.html"
            source = None if target.is_file() else runner.set(key)
            if source is None:
                continue
            settings = {}
            if preset == "paper":
                settings = runner.defaults["sets"][key]["paper"] | experiment.content.get("settings", {})
                settings |= runner.defaults["quick"]["paper"] if runner.quick else {}
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="garlic-inspect-") as place:
                index = Path(place) / "index.garlic"
                garlic.build(source.path, preset, settings, experiment.content["seed"], index, runner.threads)
                # Under another name until it is whole: it is the mark that this one is done.
                report = Path(place) / target.name
                garlic.output([garlic.program(), "inspect", str(index), "--report", str(report)])
                for file in (report.with_suffix(".json"), report):
                    (target.parent / file.name).write_bytes(file.read_bytes())
            did = True
    return did
