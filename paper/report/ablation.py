"""The paper's average of Recall@1 per candidate, ours beside the published ones.

The published unit is 1e-5 a candidate, so ours is taken times 100,000. The text gives no sweep: we average over every
setting that all variants of a method share and write the sweep down. Since sweeps differ, published values are compared
as ratios to the full method's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from paper.report.curves import Estimate, over_seeds, per_candidate
from paper.report.document import Column, Line, Table
from paper.report.experiments import Published, Spec
from paper.report.load import Run, number
from paper.report.numbers import percent

CLOSE = 0.10


@dataclass(frozen=True)
class Average:
    """A line's average, and its ratio to the reference line's; `spread` is that of the ratios seed by seed."""

    line: Line
    value: Estimate
    ratio: float | None
    spread: float | None = None

    @property
    def relative(self) -> Estimate:
        """The ratio as a cell of a table."""
        return Estimate(self.ratio, "", self.spread)


def order_lines(lines: Sequence[Line], spec: Spec) -> list[Line]:
    """The lines in the order of the experiment, the reference first; values in their order where there are no words."""
    if not spec.order:
        return list(lines)
    return sorted(lines, key=lambda line: _place(line, spec.order))


def plain_label(line: Line) -> str:
    """Label and value in one spelling, to look for words in."""
    value = line.runs[0].value
    spelled = (line.label if value is None else f"{line.label} {value}").lower()
    return spelled.replace("kmeans", "k-means").replace("-plus-plus", "++")


def _place(line: Line, words: Sequence[str]) -> int:
    label = plain_label(line)
    return next((i for i, word in enumerate(words) if word in label), len(words))


def reference(lines: Sequence[Line], spec: Spec) -> Line | None:
    """The line with the published choice, None without one."""
    for line in lines:
        choice = spec.choice_for(line.runs[0].set)
        if isinstance(choice, float) and number(line.runs[0].value) == choice:
            return line
        if isinstance(choice, str) and _place(line, spec.order) == spec.order.index(choice):
            return line
    return None


def shared_settings(lines: Sequence[Line], method: str) -> set[str]:
    """The settings that every run of a method has."""
    sweeps = [{row.key for row in run.rows} for line in lines if line.method == method for run in line.runs]
    return set.intersection(*sweeps) if sweeps else set()


def averages(lines: Sequence[Line], spec: Spec) -> list[Average]:
    """The average of each line over the settings it shares with the others of its method, else over its own."""
    base = reference(lines, spec) or (lines[0] if lines else None)
    values = [_average(line, shared_settings(lines, line.method) or None) for line in lines]
    found = []
    for line, value in zip(lines, values, strict=True):
        pairs = _pairs(line, base, shared_settings(lines, line.method) or None) if base and value.value is not None else []
        if not pairs:
            found.append(Average(line, value, None))
            continue
        ours, theirs = (fmean(side) for side in zip(*pairs, strict=True))
        ratios = [one / other for one, other in pairs]
        spread = stdev(ratios) if len(ratios) > 1 and line is not base else None
        found.append(Average(line, value, ours / theirs, spread))
    return found


def _pairs(line: Line, base: Line, keys: set[str] | None) -> list[tuple[float, float]]:
    """The averages of a line and of the reference for each seed that both have: other seeds would not be comparable."""
    ours, theirs = ({run.seed: per_candidate(run.rows, keys) for run in one.runs} for one in (line, base))
    return [(ours[seed], theirs[seed]) for seed in sorted(ours) if ours[seed] and theirs.get(seed)]


def _average(line: Line, keys: set[str] | None) -> Estimate:
    return over_seeds(line.runs, lambda run: Estimate(per_candidate(run.rows, keys)))


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
    label = plain_label(line)
    return next(
        (value for word, value in published.known.items() if word in label.split() or label.startswith(word)), None
    )


def ablation_table(lines: Sequence[Line], spec: Spec, title: str) -> Table:
    """Recall@1 per candidate, relative to the reference, published beside ours."""
    found = averages(lines, spec)
    base = reference(lines, spec) or lines[0]
    columns = [
        Column("variant"),
        Column("Recall@1 per 100,000 candidates", "number"),
        Column(f"relative to {base.label}", "share"),
    ]
    first = spec.published.values[0] if spec.published else None
    if first:
        columns += [Column("published", "fixed"), Column("published, relative", "share")]
    columns += [Column("cells", "count"), Column("covered points", "share"), Column("largest cell", "share")]
    rows: list[list[Any]] = []
    for one in found:
        row: list[Any] = [one.line.label, one.value, one.relative]
        if first:
            theirs = published_of(one.line, spec.published)
            row += [theirs, None if theirs is None else theirs / first]
        rows.append(row + shape(one.line.runs))
    methods = sorted({line.method for line in lines})
    sweeps = [f"{method}: {_sweep(lines, method)}" for method in methods]
    return Table(
        title, columns, rows, "Mean over the sweep of Recall@1 / candidates × 100,000. Sweep: " + ". ".join(sweeps) + "."
    )


def shape(runs: Sequence[Run]) -> list[float | None]:
    """Cells, share of points that a cell covers, share of the largest cell: means over the seeds."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    cells = mean([None if run.cells is None else float(run.cells) for run in runs])
    return [cells] + [
        mean([number(run.extra.get(name)) for run in runs]) for name in ("coverage_share", "largest_share")
    ]


def agreement(lines: Sequence[Line], spec: Spec) -> str:
    """A sentence on whether our ratios agree with the published ones; empty when nothing is published as numbers."""
    published = spec.published
    if published is None:
        return ""
    base = reference(lines, spec)
    if base is None:
        return "The full method was not measured, so the published ratios have nothing to stand beside."
    others = [one for one in averages(lines, spec) if one.line is not base and one.line.method == "garlic-paper"]
    others = [one for one in others if one.ratio is not None and not _unpublished(one.line, published)]
    if not others:
        return "Too few variants were measured to compare with the published values."
    return f"{_order_sentence(base, others, published)} {_ratio_sentence(others, published)}"


def judgement(lines: Sequence[Line], spec: Spec) -> str:
    """The verdict on a table with published values: whether the order agrees, and how many ratios do."""
    base, published = reference(lines, spec), spec.published
    if base is None or published is None:
        return ""
    others = [one for one in averages(lines, spec) if one.line is not base and one.line.method == "garlic-paper"]
    others = [one for one in others if one.ratio is not None and not _unpublished(one.line, published)]
    if len(others) != len(published.values) - 1:
        return ""
    order = "agrees" if _order_sentence(base, others, published).startswith("The order agrees") else "disagrees"
    return f"order {order}, {_close(others, published)} of {len(others)} ratios within {percent(CLOSE)}"


def _unpublished(line: Line, published: Published) -> bool:
    return bool(published.unpublished) and published.unpublished in line.label.lower()


def _order_sentence(base: Line, others: Sequence[Average], published: Published) -> str:
    best = max(others, key=lambda one: one.ratio)
    if best.ratio > 1.0:
        return f"The order disagrees: {best.line.label} does better than {base.label}, published as the best."
    known = [(value, one) for one in others if (value := published_of(one.line, published)) is not None]
    theirs = sorted(known, key=lambda pair: -pair[0])
    ours = sorted(known, key=lambda pair: -pair[1].ratio)
    if theirs != ours:
        names = [" > ".join(one.line.label for _, one in pairs) for pairs in (theirs, ours)]
        return (
            f"{base.label} comes first, as published; then the order disagrees: {names[0]} published, {names[1]} ours."
        )
    if not known:
        return f"{base.label} comes first, as published; the text we have does not say whose the other values are."
    return "The order agrees: " + " > ".join([base.label, *(one.line.label for _, one in ours)]) + "."


def _ratio_sentence(others: Sequence[Average], published: Published) -> str:
    theirs = [value / published.values[0] for value in published.values[1:]]
    mine = sorted((one.ratio for one in others), reverse=True)
    text = f"Relative to the full method, in falling order: published {_list(theirs)}, ours {_list(mine)}"
    if len(mine) != len(theirs):
        return f"{text} (another number of variants, so not compared one by one)."
    close = _close(others, published)
    verdict = "agrees" if close == len(theirs) else "disagrees" if close == 0 else "agrees in part"
    return f"{text}: {close} of {len(theirs)} within {percent(CLOSE)}, so the size of the effect {verdict}."


def _close(others: Sequence[Average], published: Published) -> int:
    """How many of our ratios, in falling order, are near the published ones."""
    theirs = [value / published.values[0] for value in published.values[1:]]
    mine = sorted((one.ratio for one in others), reverse=True)
    return sum(abs(a - b) <= CLOSE * b for a, b in zip(mine, theirs, strict=True))


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" for value in values)
