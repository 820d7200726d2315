"""The same pictures at several sizes: what the dimension costs each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.report.curves import mean_cost_for
from paper.report.document import Figure, Line, Section, variant_lines
from paper.report.load import Results
from paper.report.numbers import count
from paper.report.plots import COST_LABELS, growth_figure, recall_figure, save
from paper.report.styles import style
from paper.report.tables import cost_table, recall_table

NAME = "dimensionality"
PUBLISHED = "dimensionality-published"
TARGET = 0.9


def dimensionality(results: Results, out: Path) -> Section:
    """A part of the pictures, a short training, and other methods beside it."""
    return _section(results, out, NAME, "Dimensionality", "What does the dimension cost, the pictures being the same?")


def published(results: Results, out: Path) -> Section:
    """All pictures and the training of the text."""
    question = "What does the dimension cost at the published settings: all pictures, 250 epochs, 100 first cells?"
    return _section(results, out, PUBLISHED, "Dimensionality at the published settings", question)


def _section(results: Results, out: Path, name: str, title: str, question: str) -> Section:
    """Cost of a recall against the dimension, and the curves of each method."""
    section = Section(name, title, question)
    lines = sorted(variant_lines(results.of(name), "set"), key=lambda line: line.runs[0].dim)
    methods = list(dict.fromkeys(line.method for line in variant_lines(results.of(name), "set")))
    if not lines:
        return section
    section.ran = True
    caption = f"Candidates and all work needed for Recall@1 = {TARGET:g} against the dimension of the pictures."
    panels = {cost: {method: growth(lines, method, cost) for method in methods} for cost in COST_LABELS}
    if any(points for series in panels.values() for points in series.values()):
        _add(section, growth_figure(panels, f"Cost of Recall@1 = {TARGET:g}"), out, f"{name}-growth", caption)
    for method in methods:
        own = [line for line in lines if line.method == method]
        figure = recall_figure(own, f"{title}: {style(method).name}", "recall_at_1", high=False)
        _add(section, figure, out, f"{name}-{method}", f"{style(method).name}: Recall@1 for each size of the pictures.")
    section.tables.append(cost_table(lines, "recall_at_1", f"{title}: what a recall costs"))
    section.tables.append(recall_table(lines, "recall_at_1", f"{title}: recall at fixed numbers of candidates"))
    section.finding = " ".join(_sentence(panels["candidates"][method], method) for method in methods).strip()
    return section


def growth(lines: Sequence[Line], method: str, cost: str) -> list[tuple[float, float]]:
    """(dimension, cost of the recall) for each size that reached it between measured settings."""
    found = []
    for line in lines:
        if line.method == method:
            needs = mean_cost_for(line.runs, "recall_at_1", cost, TARGET)
            if needs.value is not None and not needs.bound:
                found.append((float(line.runs[0].dim), needs.value))
    return found


def _sentence(points: Sequence[tuple[float, float]], method: str) -> str:
    if len(points) < 2:
        return ""
    (low, before), (high, after) = points[0], points[-1]
    return (
        f"{style(method).name}: {count(before)} candidates for Recall@1 = {TARGET:g} with {low:.0f} dimensions, "
        f"{count(after)} with {high:.0f} ({after / before:.2f} times as many)."
    )


def _add(section: Section, figure, out: Path, name: str, caption: str) -> None:
    file = f"figures/{name}.svg"
    save(figure, out / file)
    section.figures.append(Figure(file, caption, caption.split(".")[0]))
