"""The plots. Each takes lines and writes one SVG whose bytes depend on the numbers only."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from paper.metrics import METRICS
from paper.report.curves import frontier_rows
from paper.report.document import Line
from paper.report.styles import LINES, SETTINGS, shades, style

WIDTH = 7.2
Spread = tuple[float, float, float | None]
COST_LABELS = {
    "candidates": "candidates per query (exact distances)",
    "distance_equivalents": "all work per query (distance equivalents)",
}
METRIC_LABELS = {
    "recall_at_1": "Recall@1",
    "recall_at_10": "10-recall@10",
    "precision_at_10": "P@10",
    "epsilon_recall_1pct": "ε-recall, ε = 0.01",
    "epsilon_recall_10pct": "ε-recall, ε = 0.1",
    "r95": "r95 (distance ratio)",
    "r99": "r99 (distance ratio)",
    "relative_error": "mean relative error",
}


def save(figure: Figure, path: Path) -> None:
    """Writes a figure without the date; as PNG when the name says so (to look at while working)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(SETTINGS):
        if path.suffix == ".png":
            figure.savefig(path, dpi=100)
            return
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    path.write_text(_compact(buffer.getvalue()), encoding="utf-8")


def _compact(svg: str) -> str:
    """The same picture in fewer bytes: coordinates to a hundredth of a point, no indentation."""

    def rounded(attribute: re.Match[str]) -> str:
        return re.sub(r"(\d\.\d\d)\d+", r"\1", attribute.group(0))

    short = re.sub(r'\b(?:d|x|y|transform)="[^"]*"', rounded, svg)
    return "\n".join(line.strip() for line in short.splitlines()) + "\n"


def looks(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The look of each line: a method's own where it has one line, shades of it where it has several."""
    number = Counter(line.method for line in lines)
    palettes = {method: iter(shades(method, many, len(number) == 1)) for method, many in number.items()}
    return [next(palettes[line.method]) for line in lines]


def short_count(value: float, _: Any = None) -> str:
    """1, 10, 300, 2k, 1M: ticks of an axis of counts."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def log_axis(axes: Axes, name: str = "x") -> None:
    """A logarithmic axis of counts, with 2 and 5 labelled, too, when it spans little."""
    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(short_count))
    digits = "2345678" if high / low < 8 else "25" if high / low < 150 else ""
    axis.set_minor_formatter(FuncFormatter(lambda x, _: short_count(x) if f"{x:e}"[0] in digits else ""))
    axes.tick_params(axis=name, which="minor", labelsize=9)


def draw(axes: Axes, lines: Sequence[Line], metric: str, cost: str, choose: str, missed: bool = False) -> None:
    """The frontier of `choose` against `cost`, showing `metric`; one line a seed, the first of them in the legend."""
    for line, look in zip(lines, looks(lines), strict=True):
        shown = False
        thin = {"linewidth": 0.7, "markersize": 2.5} if len(line.runs) > 3 else {}
        for run in line.runs:
            rows = [row for row in frontier_rows(run.rows, choose, cost) if row.get(metric) is not None]
            points = [(row.get(cost), 1.0 - row.get(metric) if missed else row.get(metric)) for row in rows]
            points = [(x, y) for x, y in points if not missed or y > 0.0]
            if points:
                axes.plot(*zip(*points, strict=True), label=None if shown else line.label, **(look | thin))
                shown = True
    axes.set_xlabel(COST_LABELS[cost])
    log_axis(axes)


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One legend for all panels, under them: nothing is hidden behind it."""
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=columns, handlelength=3.2, columnspacing=1.4
        )


def legend_columns(lines: Sequence[Line]) -> int:
    """As many columns as the longest label leaves room for."""
    longest = max((len(line.label) for line in lines), default=1)
    return max(1, min(4, int(96 / (longest + 9))))


def _figure(height: float, lines: Sequence[Line]) -> Figure:
    rows = -(-len(lines) // legend_columns(lines))
    return Figure(figsize=(WIDTH, height + 0.2 * rows), layout="constrained")


def recall_figure(lines: Sequence[Line], title: str, recall: str, high: bool) -> Figure:
    """Recall against candidates and, beside it, against all work; with `high` the missed share below them."""
    with matplotlib.rc_context(SETTINGS):
        figure = _figure(6.0 if high else 3.2, lines)
        grid = figure.subplots(2 if high else 1, 2, squeeze=False, sharey="row")
        for axes, cost in zip(grid[0], COST_LABELS, strict=True):
            draw(axes, lines, recall, cost, recall)
            axes.set_ylim(0.0, 1.02)
        grid[0][0].set_ylabel(METRIC_LABELS[recall])
        if high:
            for axes, cost in zip(grid[1], COST_LABELS, strict=True):
                draw(axes, lines, recall, cost, recall, missed=True)
                axes.set_yscale("log")
            grid[1][0].set_ylabel(f"missed: 1 − {METRIC_LABELS[recall]}")
        figure.suptitle(title, fontsize=11)
        legend_below(figure, list(grid.flat), legend_columns(lines))
        return figure


def metrics_figure(lines: Sequence[Line], title: str, cost: str) -> Figure:
    """All metrics against one cost: small panels with the settings of the 10-recall@10 frontier."""
    with matplotlib.rc_context(SETTINGS):
        figure = _figure(8.6, lines)
        grid = figure.subplots(4, 2, sharex=True)
        for axes, metric in zip(grid.flat, METRICS, strict=True):
            draw(axes, lines, metric, cost, "recall_at_10")
            axes.set_xlabel("")
            axes.set_ylabel(METRIC_LABELS[metric])
            if metric in ("r95", "r99", "relative_error"):
                axes.margins(y=0.08)
            else:
                axes.set_ylim(0.0, 1.03)
        for axes in grid[-1]:
            axes.set_xlabel(COST_LABELS[cost])
        figure.suptitle(title, fontsize=11)
        legend_below(figure, list(grid.flat), legend_columns(lines))
        return figure


@dataclass(frozen=True)
class Efficiency:
    """A method, or its training on a share of the points: build time and recall per candidate."""

    label: str
    method: str
    seconds: float
    value: float
    share: float | None = None


def efficiency_figure(points: Sequence[Efficiency], title: str, time: str) -> Figure:
    """Recall per candidate against build time, one point a method; trainings on a share of the points are joined."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        axes = figure.subplots()
        trained = sorted((one for one in points if one.share is not None), key=lambda one: one.share)
        if trained:
            color = style(trained[0].method).color
            axes.plot([one.seconds for one in trained], [one.value for one in trained], color=color, linewidth=0.8)
        for one in points:
            look = style(one.method)
            hollow = {"markerfacecolor": "none"} if one.share is not None else {}
            size = 9.0 if one.share is None else 5.0 + 2.0 * trained.index(one)
            axes.plot(
                [one.seconds],
                [one.value],
                color=look.color,
                marker=look.marker,
                markersize=size,
                linestyle="none",
                label=one.label,
                **hollow,
            )
        axes.set_xlabel(f"{time} (s)")
        axes.set_ylabel("Recall@1 per 100,000 candidates,\nmean over the sweep")
        axes.margins(0.1)
        log_axis(axes)
        log_axis(axes, "y")
        figure.suptitle(title, fontsize=11)
        legend_below(figure, [axes], 3)
        return figure


def scatter_figure(
    points: Sequence[tuple[str, str, str, float, float]], title: str, x: str, y: str, logarithmic: bool = True
) -> Figure:
    """Points with a name each: (label, colour, marker, x, y)."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
        axes = figure.subplots()
        named: set[str] = set()
        for label, color, marker, at, value in points:
            name = None if label in named else label
            named.add(label)
            axes.plot([at], [value], color=color, marker=marker, markersize=8, linestyle="none", label=name)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.margins(0.08)
        if logarithmic:
            log_axis(axes)
        figure.suptitle(title, fontsize=11)
        legend_below(figure, [axes], 2)
        return figure


def scaling_figure(
    panels: Sequence[tuple[str, list[tuple[str, str, str, list[tuple[float, float]]]]]], title: str, x: str
) -> Figure:
    """Measured scaling: (name of the quantity, [(label, colour, marker, points)]) per panel, both axes logarithmic."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 3.0 + 0.25), layout="constrained")
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, series) in zip(grid, panels, strict=True):
            for label, color, marker, points in series:
                axes.plot(*zip(*points, strict=True), color=color, marker=marker, linewidth=1.6, label=label)
            axes.set_xlabel(x)
            axes.set_ylabel(name)
            log_axis(axes)
            log_axis(axes, "y")
        figure.suptitle(title, fontsize=11)
        legend_below(figure, list(grid), 2)
        return figure


def curvature_figure(series: Sequence[tuple[str, list[Spread], list[Spread]]]) -> Figure:
    """Mean and deviation against the size of the neighbourhood and against coverage: (index, by size, by coverage)."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 3.2 + 0.2 * -(-len(series) // 2)), layout="constrained")
        grid = figure.subplots(1, 2, sharey=True)
        seen: Counter[str] = Counter()
        for name, *panels in series:
            look = style("garlic-paper" if name.endswith("paper") else "garlic-default")
            line = LINES[seen[look.name] % len(LINES)]
            seen[look.name] += 1
            for axes, points in zip(grid, panels, strict=True):
                x, mean, deviation = zip(*points, strict=True) if points else ((), (), ())
                known = [one or 0.0 for one in deviation]
                axes.errorbar(
                    x, mean, known, color=look.color, marker=look.marker, linestyle=line, capsize=2, label=name
                )
        grid[0].set_xlabel("neighbours in the neighbourhood")
        grid[1].set_xlabel("cells that cover the point")
        grid[0].set_ylabel("curvature (mean ± deviation)")
        grid[0].set_ylim(0.0, 1.0)
        log_axis(grid[0])
        legend_below(figure, [grid[0]], 2)
        return figure


def cell_figure(series: Sequence[tuple[str, Sequence[tuple[float, float, float]]]]) -> Figure:
    """Curvature of each Gaussian against its radius and against the points it holds: (index, (radius, share, curvature))."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 3.2 + 0.2 * -(-len(series) // 2)), layout="constrained")
        grid = figure.subplots(1, 2, sharey=True)
        for (name, cells), look in zip(series, shades("garlic-paper", len(series)), strict=True):
            for axes, place in zip(grid, (0, 1), strict=True):
                x = [cell[place] for cell in cells]
                y = [cell[2] for cell in cells]
                axes.plot(x, y, linestyle="none", marker=look["marker"], markersize=3, color=look["color"], label=name)
        grid[0].set_xlabel("radius of the Gaussian (root of the trace)")
        grid[1].set_xlabel("share of the points in the cell")
        grid[0].set_ylabel("curvature of the data in the cell")
        grid[0].set_ylim(0.0, 1.0)
        for axes in grid:
            log_axis(axes)
        legend_below(figure, [grid[0]], 2)
        return figure


def growth_figure(panels: dict[str, dict[str, list[tuple[float, float]]]], title: str) -> Figure:
    """Costs against the dimension, a panel for each kind of cost, a line for each method."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (cost, series) in zip(grid, panels.items(), strict=True):
            for method, points in series.items():
                if points:
                    axes.plot(*zip(*points, strict=True), label=style(method).name, **style(method).plot())
            axes.set_xlabel("dimension")
            axes.set_ylabel(COST_LABELS[cost].replace(" (", "\n("))
            log_axis(axes)
            log_axis(axes, "y")
        figure.suptitle(title, fontsize=11)
        legend_below(figure, list(grid), 3)
        return figure
