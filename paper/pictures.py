"""The pictures of the method, drawn once from an example in the plane and kept in docs/pictures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paper.experiment import Experiment
    from paper.run import Runner


def run(runner: Runner, experiment: Experiment) -> bool:
    """Puts them beside the results; whether any was not there."""
    source = Path(experiment.content["folder"])
    target = runner.out / "pictures"
    target.mkdir(parents=True, exist_ok=True)
    missing = [p for p in sorted(source.glob("*.svg")) if not (target / p.name).is_file()]
    for picture in missing:
        shutil.copyfile(picture, target / picture.name)
    return bool(missing)
