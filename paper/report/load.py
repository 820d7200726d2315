"""Reads the result files of a run.

A file that cannot be read, or lacks what every result has, is remembered as a problem and shown in the report: one bad
file must not cost the report, and must not vanish either.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paper.metrics import COSTS, METRICS

OTHER_KINDS = ("classification", "complexity", "diagnostics")


@dataclass(frozen=True)
class Row:
    """One setting of a search and what it gave; a number that is missing or infinite is None."""

    params: dict[str, Any]
    numbers: dict[str, float | None]

    def get(self, name: str) -> float | None:
        """The number called `name`, None where it was not measured."""
        return self.numbers.get(name)

    @property
    def key(self) -> str:
        """The same text for the same parameters."""
        return json.dumps(self.params, sort_keys=True)


@dataclass(frozen=True)
class Run:
    """One build and the sweep of searches over it."""

    experiment: str
    set: str
    method: str
    variant: str
    value: float | str | None
    seed: int
    points: int
    dim: int
    queries: int
    build_seconds: float | None
    build_cpu_seconds: float | None
    cells: int | None
    bytes: int | None
    settings: dict[str, Any]
    extra: dict[str, Any]
    machine: dict[str, Any]
    build_threads: int | None
    date: str
    rows: tuple[Row, ...]
    source: str
    length: str = ""


@dataclass
class Results:
    """Everything found under OUT."""

    runs: list[Run] = field(default_factory=list)
    classification: list[dict[str, Any]] = field(default_factory=list)
    complexity: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: dict[str, dict[str, Any]] = field(default_factory=dict)
    diagnostic_pages: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    run_info: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    quick: bool = False

    def of(self, experiment: str) -> list[Run]:
        """The runs of one experiment."""
        return [run for run in self.runs if run.experiment == experiment]

    def lengths(self, experiment: str) -> list[str]:
        """The lengths of training that an experiment has results of; "" where it names none."""
        return sorted({run.length for run in self.of(experiment)})

    def at(self, length: str) -> Results:
        """These results without the runs of other lengths."""
        return replace(self, runs=[run for run in self.runs if run.length == length])

    def dates(self) -> list[str]:
        """The days on which results were made, each once."""
        return sorted({run.date for run in self.runs if run.date})


def number(value: Any) -> float | None:
    """A finite number, or None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def load(out: Path) -> Results:
    """All results under `out`, in an order that depends on their contents and names only."""
    results = Results()
    folder = out / "results"
    for path in sorted(folder.rglob("*.json")) if folder.is_dir() else []:
        _load_file(path, path.relative_to(out).as_posix(), results)
    pages = sorted((folder / "diagnostics").glob("*.html")) if (folder / "diagnostics").is_dir() else []
    results.diagnostic_pages = [page.relative_to(out).as_posix() for page in pages]
    pictures = sorted((out / "pictures").glob("*.svg")) if (out / "pictures").is_dir() else []
    results.pictures = [picture.relative_to(out).as_posix() for picture in pictures]
    if (out / "run.json").is_file():
        found = _read(out / "run.json", "run.json", results)
        results.run_info = found if isinstance(found, dict) else {}
        failed = results.run_info.get("failed")
        results.problems += [f"{one}: failed" for one in failed] if isinstance(failed, list) else []
    results.runs.sort(
        key=lambda run: (run.experiment, run.set, run.length, run.method, _order(run), run.variant, run.seed, run.source)
    )
    return results


def _order(run: Run) -> tuple[int, float, str]:
    """Numbers in their order first, then words in theirs."""
    value = number(run.value)
    return (0, value, "") if value is not None else (1, 0.0, str(run.value))


def _read(path: Path, name: str, results: Results) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        results.problems.append(f"{name}: cannot be read as JSON ({type(error).__name__})")
        return None


def _load_file(path: Path, name: str, results: Results) -> None:
    content = _read(path, name, results)
    if content is None:
        return
    if not isinstance(content, dict):
        results.problems.append(f"{name}: is not an object")
        return
    kind = path.parent.name
    if kind == "diagnostics":
        results.diagnostics[path.stem] = content
    elif kind in OTHER_KINDS and "rows" not in content:
        _load_other(kind, content, name, results)
    else:
        _load_run(content, name, results)


def _load_other(kind: str, content: dict[str, Any], name: str, results: Results) -> None:
    if kind == "classification" and "methods" in content:
        return  # the runner's mark that a set is done
    needed = {"classification": ("set", "method", "accuracy"), "complexity": ("axis", "preset", "points")}[kind]
    missing = [key for key in needed if key not in content]
    if missing:
        results.problems.append(f"{name}: lacks {', '.join(missing)}")
    else:
        getattr(results, kind).append(content)


def _load_run(content: dict[str, Any], name: str, results: Results) -> None:
    missing = [key for key in ("experiment", "set", "method", "rows") if not content.get(key)]
    if missing:
        results.problems.append(f"{name}: lacks {', '.join(missing)}")
        return
    results.quick |= content.get("quick") is True
    try:
        results.runs.append(_run(content, name))
    except (TypeError, ValueError, AttributeError) as error:
        results.problems.append(f"{name}: is not a result ({error})")


def _run(content: dict[str, Any], name: str) -> Run:
    value = content.get("value")
    rows = tuple(_row(row) for row in content["rows"])
    return Run(
        experiment=str(content["experiment"]),
        set=str(content["set"]),
        method=str(content["method"]),
        variant=str(content.get("variant") or content["method"]),
        value=value if isinstance(value, (int, float, str)) else None,
        seed=int(content.get("seed") or 0),
        points=int(content.get("points") or 0),
        dim=int(content.get("dim") or 0),
        queries=int(content.get("queries") or 0),
        build_seconds=number(content.get("build_seconds")),
        build_cpu_seconds=number(content.get("build_cpu_seconds")),
        cells=None if number(content.get("cells")) is None else int(content["cells"]),
        bytes=None if number(content.get("bytes")) is None else int(content["bytes"]),
        settings=dict(content.get("settings") or {}),
        extra=dict(content.get("extra") or {}),
        machine=dict(content.get("machine") or {}),
        build_threads=None if number(content.get("build_threads")) is None else int(content["build_threads"]),
        date=str(content.get("date") or ""),
        rows=rows,
        source=name,
        length=str(content.get("length") or ""),
    )


def _row(row: dict[str, Any]) -> Row:
    names = (*METRICS, *COSTS, "qps")
    return Row(params=dict(row.get("params") or {}), numbers={name: number(row.get(name)) for name in names})
