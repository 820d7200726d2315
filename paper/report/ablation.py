"""The paper's average of Recall@1 per candidate, ours beside the published ones.

The text gives no unit and no sweep. We average over every setting that all variants of a method share, times 10,000,
and write the sweep down; since units differ, published values are compared as ratios to the full method's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from paper.report.curves import mean_cost_for, per_candidate
from paper.report.document import Column, Line, Table
from paper.report.experiments import Published, Spec
from paper.report.load import Run, number
from paper.report.numbers import count

CLOSE = 0.10


@dataclass(frozen=True)
class Average:
    """A line's average, and its ratio to the reference line's."""

    line: Line
    value: float | None
    ratio: float | None


def order_lines(lines: Sequence[Line], spec: Spec) -> list[Line]:
    """The lines in the order of the experiment, the reference first; values in their order where there are no words."""
    if not spec.order:
        return list(lines)
    return sorted(lines, key=lambda line: _place(line, spec.order))


def _place(line: Line, words: Sequence[str]) -> int:
    label = f"{line.label} {line.runs[0].value}".lower()
    return next((i for i, word in enumerate(words) if word in label), len(words))


def reference(lines: Sequence[Line], spec: Spec) -> Line | None:
    """The line with the published choice, None without one."""
    for line in lines:
        value = line.runs[0].value
        if isinstance(spec.choice, float) and number(value) == spec.choice:
            return line
        if isinstance(spec.choice, str) and spec.order and _place(line, spec.order) == _first(spec):
            return line
    return None


def _first(spec: Spec) -> int:
    return next(i for i, word in enumerate(spec.order) if word == spec.choice)


def shared_settings(lines: Sequence[Line], method: str) -> set[str]:
    """The settings that every run of a method has."""
    sweeps = [{row.key for row in run.rows} for line in lines if line.method == method for run in line.runs]
    return set.intersection(*sweeps) if sweeps else set()


def averages(lines: Sequence[Line], spec: Spec) -> list[Average]:
    """The average of each line over the settings it shares with the others of its method, else over its own."""
    base = reference(lines, spec) or (lines[0] if lines else None)
    values = [_average(line, shared_settings(lines, line.method) or None) for line in lines]
    first = next((value for line, value in zip(lines, values, strict=True) if line is base), None)
    return [
        Average(line, value, value / first if value is not None and first else None)
        for line, value in zip(lines, values, strict=True)
    ]


def _average(line: Line, keys: set[str] | None) -> float | None:
    found = [per_candidate(run.rows, keys) for run in line.runs]
    known = [value for value in found if value is not None]
    return fmean(known) if known else None


def _sweep(lines: Sequence[Line], method: str) -> str:
    runs = [run for line in lines if line.method == method for run in line.runs]
    return sweep_text(runs, shared_settings(lines, method))


def sweep_text(runs: Sequence[Run], keys: set[str]) -> str:
    """A sweep in words: each parameter with its values."""
    values: dict[str, set[Any]] = {}
    for row in runs[0].rows:
        if not keys or row.key in keys:
            for name, value in row.params.items():
                values.setdefault(name, set()).add(value if isinstance(value, (int, float, str)) else str(value))
    parts = [f"{name} {', '.join(map(_show, sorted(found, key=_sort_key)))}" for name, found in sorted(values.items())]
    settings = len(keys) or len(runs[0].rows)
    return f"{settings} settings ({'; '.join(parts) or 'one setting'})"


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _sort_key(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, value)


def published_of(line: Line, published: Published | None) -> float | None:
    """The published value of a variant, where the text tells which it is."""
    if published is None:
        return None
    label = f"{line.label} {line.runs[0].value}".lower()
    return next(
        (value for word, value in published.known.items() if word in label.split() or label.startswith(word)), None
    )


def ablation_table(lines: Sequence[Line], spec: Spec, title: str) -> Table:
    """Recall@1 per candidate, relative to the reference, published beside ours."""
    found = averages(lines, spec)
    base = reference(lines, spec) or lines[0]
    columns = [
        Column("variant"),
        Column("Recall@1 per 10,000 candidates", "number"),
        Column(f"relative to {base.label}", "share"),
    ]
    first = spec.published.values[0] if spec.published else None
    if first:
        columns += [Column("published", "fixed"), Column("published, relative", "share")]
    columns += [Column("cells", "count"), Column("covered points", "share"), Column("largest cell", "share")]
    rows: list[list[Any]] = []
    for one in found:
        row: list[Any] = [one.line.label, one.value, one.ratio]
        if first:
            theirs = published_of(one.line, spec.published)
            row += [theirs, None if theirs is None else theirs / first]
        rows.append(row + _shape(one.line.runs))
    methods = sorted({line.method for line in lines})
    sweeps = [f"{method}: {_sweep(lines, method)}" for method in methods]
    return Table(
        title, columns, rows, "Mean over the sweep of Recall@1 / candidates × 10,000. Sweep: " + ". ".join(sweeps) + "."
    )


def _shape(runs: Sequence[Run]) -> list[float | None]:
    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    cells = mean([None if run.cells is None else float(run.cells) for run in runs])
    return [cells] + [
        mean([number(run.extra.get(name)) for run in runs]) for name in ("coverage_share", "largest_share")
    ]


def agreement(lines: Sequence[Line], spec: Spec) -> str:
    """A sentence on whether our ratios agree with the published ones; empty when nothing is published as numbers."""
    if spec.published is None:
        return ""
    ours = [one for one in averages(lines, spec) if one.ratio is not None and one.line.method == "garlic-paper"]
    theirs = [value / spec.published.values[0] for value in spec.published.values]
    if len(ours) < 2:
        return "Too few variants were measured to compare with the published values."
    parts = [_order_sentence(ours, spec.published), _ratio_sentence(ours, theirs)]
    return " ".join(part for part in parts if part)


def _order_sentence(ours: Sequence[Average], published: Published) -> str:
    known = [(published_of(one.line, published), one) for one in ours]
    pairs = sorted((pair for pair in known if pair[0] is not None), key=lambda pair: -pair[0])
    if len(pairs) < 2:
        return (
            "The full method comes first in ours, too."
            if ours[0].ratio >= max(o.ratio for o in ours)
            else (
                f"The order disagrees: {max(ours, key=lambda one: one.ratio).line.label} does better than the full "
                "method."
            )
        )
    values = [one.ratio for _, one in pairs]
    agrees = all(a >= b for a, b in pairwise(values))
    names = " > ".join(one.line.label for _, one in pairs)
    if agrees:
        return f"The published order agrees ({names})."
    mine = " > ".join(one.line.label for _, one in sorted(pairs, key=lambda pair: -pair[1].ratio))
    return f"The order disagrees: published {names}, ours {mine}."


def _ratio_sentence(ours: Sequence[Average], theirs: Sequence[float]) -> str:
    mine = sorted((one.ratio for one in ours), reverse=True)
    text = f"Ratios in falling order: published {_list(theirs)}, ours {_list(mine)}"
    if len(mine) != len(theirs):
        return text + " (another number of variants, so not compared one by one)."
    close = sum(abs(a - b) <= CLOSE * b for a, b in zip(mine, theirs, strict=True))
    return f"{text}; {close} of {len(theirs)} within {CLOSE:.0%}."


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def spread_sentence(lines: Sequence[Line], spec: Spec) -> str:
    """Best and worst variant by candidates for a Recall@1 that all reach, and where the published choice stands."""
    for target in (0.9, 0.8, 0.7, 0.5):
        costs = [(mean_cost_for(line.runs, "recall_at_1", "candidates", target), line) for line in lines]
        if len(costs) > 1 and all(cost.value is not None and not cost.bound for cost, _ in costs):
            return _spread(sorted(costs, key=lambda pair: pair[0].value), target, reference(lines, spec))
    return ""


def _spread(costs: list[tuple[Any, Line]], target: float, choice: Line | None) -> str:
    (low, best), (high, worst) = costs[0], costs[-1]
    text = (
        f"For Recall@1 = {target:g}, {best.label} needs the fewest candidates ({count(low.value)}), {worst.label} the "
        "most "
        f"({count(high.value)}, {high.value / low.value:.2f} times as many)."
    )
    text += _shape_sentence(best, worst) if high.value > 1.1 * low.value else ""
    if choice is not None and choice is not best:
        needs = next(cost.value for cost, line in costs if line is choice)
        return f"{text} The published choice, {choice.label}, needs {needs / low.value - 1:.0%} more than the best."
    return text if choice is None else f"{text} The best is the published choice."


def _shape_sentence(best: Line, worst: Line) -> str:
    """What the cells tell about why: a cell that has swallowed its neighbours makes every probe of it dear."""
    (good, bad) = (_shape(line.runs)[2] for line in (best, worst))
    if good is None or bad is None or bad < 1.5 * good:
        return ""
    return (
        f" Its largest cell holds {bad:.1%} of the points, that of the best {good:.1%}: it scans more for each probe."
    )
