"""Sentences about an ablation, worded from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from paper.report.ablation import CLOSE, reference, shape
from paper.report.curves import Estimate, highest, mean_cost_for
from paper.report.document import Line
from paper.report.experiments import Spec
from paper.report.numbers import count, percent

TARGETS = (0.9, 0.8, 0.7, 0.5)


def spread_sentence(lines: Sequence[Line], spec: Spec) -> str:
    """Best and worst variant by candidates for a Recall@1 that all reach, and where the published choice stands."""
    if len(lines) < 2:
        return ""
    for target in TARGETS:
        costs = [(mean_cost_for(line.runs, "recall_at_1", "candidates", target), line) for line in lines]
        if all(cost.value is not None and not cost.bound for cost, _ in costs):
            return _spread(sorted(costs, key=lambda pair: pair[0].value), target, reference(lines, spec))
    tops = [f"{line.label} {top:.3f}" for line in lines if (top := highest(line.runs, "recall_at_1")) is not None]
    return f"The sweeps share no recall to compare at; their highest Recall@1: {', '.join(tops)}." if tops else ""


def _spread(costs: list[tuple[Estimate, Line]], target: float, choice: Line | None) -> str:
    (low, best), (high, worst) = costs[0], costs[-1]
    text = (
        f"For Recall@1 = {target:g}, {best.label} needs the fewest candidates ({count(low.value)}), {worst.label} the "
        f"most ({count(high.value)}, {high.value / low.value:.2f} times as many)."
    )
    text += _shape_sentence(best, worst) if high.value > (1.0 + CLOSE) * low.value else ""
    if choice is None:
        return text
    more = next(cost.value for cost, line in costs if line is choice) / low.value - 1.0
    if choice is best:
        return f"{text} That agrees with the published choice."
    verdict = "agrees" if more <= CLOSE else "disagrees"
    return f"{text} The published choice, {choice.label}, needs {percent(more)} more: ours {verdict} with it."


def _shape_sentence(best: Line, worst: Line) -> str:
    """What the cells tell about why: a cell that has swallowed its neighbours makes every probe of it dear."""
    good, bad = (shape(line.runs)[2] for line in (best, worst))
    if good is None or bad is None or bad < 1.5 * good:
        return ""
    return (
        f" The largest cell of {worst.label} holds {percent(bad, 1)} of the points, that of {best.label} "
        f"{percent(good, 1)}."
    )


def choice_verdict(lines: Sequence[Line], spec: Spec) -> str:
    """The verdict on a table whose published choice is known: whether ours settles on the same."""
    said = spread_sentence(lines, spec)
    if "disagrees with" in said:
        return "disagrees with the published choice"
    return "agrees with the published choice" if "agrees with" in said else ""


def seeds_sentence(lines: Sequence[Line]) -> str:
    """How far seeds differ, for lines that have several."""
    parts = []
    for line in lines:
        for target in TARGETS:
            cost = mean_cost_for(line.runs, "recall_at_1", "candidates", target)
            if cost.value is not None and cost.spread is not None:
                found = f"{count(cost.value)} ± {count(cost.spread)} ({percent(cost.spread / cost.value, 1)})"
                parts.append(f"{line.label}: {found} candidates for Recall@1 = {target:g}")
                break
    return f"Over seeds, {'; '.join(parts)}." if parts else ""
