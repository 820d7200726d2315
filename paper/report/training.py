"""How long training has to be: every length beside what its cells look like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from paper.report.ablation import shared_settings, sweep_text
from paper.report.curves import Estimate, over_seeds, per_candidate
from paper.report.document import Column, Figure, Line, Section, Table, by_set, set_name, variant_lines
from paper.report.load import Results, number
from paper.report.plots import recall_figure, save

NAME = "training-length"
TRAINED = 0.5
"""Share of the points that cells cover from which on a model counts as trained."""


def split_label(label: str) -> tuple[str, str, bool]:
    """Length, shape and whether it was rotated, from a label like `1,200 steps, full, rotated`."""
    rest, rotated = (label.removesuffix(", rotated"), True) if label.endswith(", rotated") else (label, False)
    length, _, shape = rest.rpartition(", ")
    return length, shape, rotated


def training_length(results: Results, out: Path) -> Section:
    """Recall per candidate, coverage and shape of the cells for every length."""
    section = Section(NAME, "Length of the training", "When are the cells trained, and what changes when they are?")
    findings = []
    for name, runs in by_set(results.of(NAME)).items():
        section.ran = True
        lines = variant_lines(runs)
        title = set_name(name)
        figure = recall_figure(lines, f"{title}: length of the training", "recall_at_1", high=False)
        file = f"figures/{NAME}-{name}.svg"
        save(figure, out / file)
        section.figures.append(Figure(file, f"{title}: Recall@1 against candidates and against all work.", title))
        section.tables.append(table(lines, f"{title}: Recall@1 per candidate and the cells"))
        findings += [sentence for sentence in ratios_in_words(lines, title) if sentence]
    section.finding = " ".join(findings)
    return section


def table(lines: Sequence[Line], title: str) -> Table:
    """One row a variant; ratios are to full covariances of the same length and rotation."""
    keys = shared_settings(lines, "garlic-paper") or None
    rows = []
    for line in lines:
        value = _average(line, keys)
        ratio = _ratio(line, lines, keys)
        rows.append([line.label, value, ratio, *(_mean(line, name) for name in COLUMNS)])
    columns = [
        Column("variant"),
        Column("Recall@1 per 100,000 candidates", "number"),
        Column("relative to full", "share"),
        *(Column(heading, kind) for heading, kind in COLUMNS.values()),
    ]
    note = "Relative to full covariances of the same length and rotation (unrotated for diagonal ones). Sweep: "
    return Table(title, columns, rows, note + sweep_text(lines[0].runs, keys or set()) + ".")


COLUMNS = {
    "coverage_share": ("covered points", "share"),
    "eigenvalue_ratio": ("largest over smallest eigenvalue", "number"),
    "largest_share": ("largest cell", "share"),
    "cells": ("cells", "count"),
    "epochs": ("epochs", "count"),
}
"""What is told of the cells: name in the result, heading and kind of the column."""


def _average(line: Line, keys: set[str] | None) -> Estimate:
    return over_seeds(line.runs, lambda run: Estimate(per_candidate(run.rows, keys)))


def _mean(line: Line, name: str) -> float | None:
    found = [number(run.cells if name == "cells" else run.extra.get(name)) for run in line.runs]
    known = [one for one in found if one is not None]
    return fmean(known) if known else None


def _ratio(line: Line, lines: Sequence[Line], keys: set[str] | None) -> float | None:
    length, shape, rotated = split_label(line.label)
    base = next((one for one in lines if split_label(one.label) == (length, "full", rotated)), None)
    values = [_average(one, keys).value for one in (line, base) if one]
    if len(values) < 2 or values[0] is None or not values[1]:
        return None
    return values[0] / values[1]


def ratios_in_words(lines: Sequence[Line], title: str) -> list[str]:
    """What the shapes lose, at the first length and at the first one whose full cells cover half of the points."""
    keys = shared_settings(lines, "garlic-paper") or None
    lengths = list(dict.fromkeys(split_label(line.label)[0] for line in lines))
    full = {split_label(line.label)[0]: line for line in lines if split_label(line.label)[1:] == ("full", False)}
    trained = next((one for one in lengths if one in full and (_mean(full[one], "coverage_share") or 0) >= TRAINED), None)
    said = []
    for length, words in ((lengths[0], "at"), (trained, "when trained, at")):
        found = [
            f"{split_label(line.label)[1]} {ratio:.2f}"
            for line in lines
            if split_label(line.label)[0] == length
            and not split_label(line.label)[2]
            and split_label(line.label)[1] != "full"
            and (ratio := _ratio(line, lines, keys)) is not None
        ]
        if length and found:
            covered = _mean(full[length], "coverage_share") if length in full else None
            share = f" ({covered:.0%} of the points covered)" if covered is not None else ""
            said.append(f"{title}, {words} {length}{share}: relative to full covariances {', '.join(found)}.")
    if trained is None and full:
        said.append(f"{title}: no length covers half of the points.")
    return said
