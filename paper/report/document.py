"""What a report is made of, before it is HTML, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from paper.report.load import Run, number
from paper.report.numbers import plain
from paper.report.styles import rank, style


@dataclass(frozen=True)
class Column:
    """A column: its heading and the kind of its numbers (`numbers.FORMATS`), or text."""

    name: str
    kind: str = "text"


@dataclass
class Table:
    """Rows of cells; a cell is text, a number, an estimate or None."""

    title: str
    columns: list[Column]
    rows: list[list[Any]]
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """The table for programs."""
        names = [column.name for column in self.columns]
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in self.rows]
        return {"title": self.title, "note": self.note, "rows": rows}


@dataclass(frozen=True)
class Figure:
    """A picture, its file relative to the report, and what it shows."""

    file: str
    caption: str
    alt: str

    @property
    def anchor(self) -> str:
        """Where links to the figure lead."""
        return "figure-" + PurePosixPath(self.file).stem


@dataclass
class Section:
    """One experiment: what was asked, what came out. `ran` is false when there is no result."""

    anchor: str
    title: str
    question: str
    ran: bool = False
    finding: str = ""
    verdicts: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    embeds: list[tuple[str, str]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The section for programs."""
        return {
            "title": self.title,
            "ran": self.ran,
            "finding": self.finding,
            "verdicts": self.verdicts,
            "figures": [figure.file for figure in self.figures],
            "tables": [table.plain() for table in self.tables],
        }


@dataclass(frozen=True)
class Line:
    """One line of a plot and of a table: a method or a variant of it, with one run for each seed."""

    label: str
    method: str
    runs: tuple[Run, ...]


def set_name(name: str) -> str:
    """A data set as it is written in titles."""
    known = {
        "fashion-mnist-784-euclidean": "Fashion-MNIST",
        "mnist-784-euclidean": "MNIST",
        "photosift1m-128-euclidean": "photosift1m",
        "sift-128-euclidean": "SIFT1M",
        "sift-3k": "photosift1m, 3,000 points",
        "sift-10k": "photosift1m, 10,000 points",
        "fashion-mnist-3k": "Fashion-MNIST 16 x 16, 3,000 points",
    }
    return known.get(name, name.replace("fashion-mnist", "Fashion-MNIST"))


def by_set(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each data set."""
    sets: dict[str, list[Run]] = {}
    for run in runs:
        sets.setdefault(run.set, []).append(run)
    return dict(sorted(sets.items()))


def by_set_and_length(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each data set and each length of training."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.set, run.length), []).append(run)
    return dict(sorted(found.items()))


def method_lines(runs: Sequence[Run]) -> list[Line]:
    """One line a method, or one for each variant of a method that has several."""
    found = _grouped(runs, "variant")
    lines = []
    for (method, name), members in found.items():
        alone = sum(other == method for other, _ in found) == 1
        label = style(method).name if alone else f"{style(method).name}: {name}"
        lines.append(Line(label, method, tuple(members)))
    return sorted(lines, key=lambda line: rank(line.method))


def variant_lines(runs: Sequence[Run], label: str = "variant") -> list[Line]:
    """One line a variant (or, with `label` = "set", one a data set), in the order of the runs."""
    found = _grouped(runs, label)
    several = len({method for method, _ in found}) > 1
    lines = []
    for (method, name), members in found.items():
        shown = set_name(name) if label == "set" else style(method).name if name == method else name
        lines.append(
            Line(
                f"{style(method).name}: {shown}" if several and shown != style(method).name else shown,
                method,
                tuple(members),
            )
        )
    return sorted(lines, key=lambda line: rank(line.method))


def split_rows(runs: Sequence[Run], param: str, label: str) -> list[Run]:
    """Each run as several, one for each value of a search parameter, which becomes the variant."""
    found = []
    for run in runs:
        values = sorted({value for row in run.rows if (value := number(row.params.get(param))) is not None})
        for value in values:
            rows = [row for row in run.rows if number(row.params.get(param)) == value]
            rest = tuple(replace(row, params={k: v for k, v in row.params.items() if k != param}) for row in rows)
            found.append(replace(run, variant=f"{label} = {value:g}", value=value, rows=rest))
    return sorted(found, key=lambda run: (run.set, run.method, run.value))


def _grouped(runs: Sequence[Run], label: str) -> dict[tuple[str, str], list[Run]]:
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.method, getattr(run, label)), []).append(run)
    return found
