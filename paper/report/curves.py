"""Curves: what a sweep says about recall at a cost.

A sweep over several parameters is a cloud of settings. Its curve is the frontier: the settings that no other setting
beats in recall at no more cost. Between neighbours of the frontier we interpolate linearly in (log cost, recall);
beyond its ends we say on which side the truth lies instead of extrapolating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from paper.report.load import Row, Run

Point = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A number read off a curve, or the mean over seeds of such numbers.

    `bound` is "" for a value between measured settings, "<=" or ">=" where the curve ends; `value` is None when the
    curve says nothing. `spread` is the standard deviation over the seeds, None with one seed.
    """

    value: float | None
    bound: str = ""
    spread: float | None = None


NOTHING = Estimate(None)


def frontier_rows(rows: Sequence[Row], recall: str, cost: str) -> list[Row]:
    """The settings on the frontier, cheapest first. Settings without cost (no exact distance) are left out."""
    usable = [row for row in rows if row.get(recall) is not None and (row.get(cost) or 0.0) > 0.0]
    usable.sort(key=lambda row: (row.get(cost), -row.get(recall), row.key))
    best: list[Row] = []
    for row in usable:
        if not best or row.get(recall) > best[-1].get(recall):
            best.append(row)
    return best


def frontier(rows: Sequence[Row], recall: str, cost: str) -> list[Point]:
    """The frontier as (cost, recall)."""
    return [(row.get(cost), row.get(recall)) for row in frontier_rows(rows, recall, cost)]


def recall_at(curve: Sequence[Point], cost: float) -> Estimate:
    """Recall at a cost; past the last setting at least what that setting gives."""
    if not curve or cost < curve[0][0]:
        return NOTHING
    if cost > curve[-1][0]:
        return Estimate(curve[-1][1], ">=")
    for (low, below), (high, above) in pairwise(curve):
        if low <= cost <= high:
            return Estimate(below + (above - below) * math.log(cost / low) / math.log(high / low))
    return Estimate(curve[0][1])


def cost_for(curve: Sequence[Point], recall: float) -> Estimate:
    """Cost needed for a recall; below the first setting at most what that setting costs."""
    if not curve or recall > curve[-1][1]:
        return NOTHING
    if recall < curve[0][1]:
        return Estimate(curve[0][0], "<=")
    for (low, below), (high, above) in pairwise(curve):
        if below <= recall <= above:
            share = (recall - below) / (above - below)
            return Estimate(math.exp(math.log(low) + share * math.log(high / low)))
    return Estimate(curve[0][0])


def over_seeds(runs: Sequence[Run], read: Callable[[Run], Estimate]) -> Estimate:
    """The mean over the runs; None as soon as one of them says nothing, since a mean of the others would flatter."""
    found = [read(run) for run in runs]
    if not found or any(one.value is None for one in found):
        return NOTHING
    values = [one.value for one in found]
    bounds = {one.bound for one in found} - {""}
    bound = bounds.pop() if len(bounds) == 1 else ""
    return Estimate(fmean(values), bound, stdev(values) if len(values) > 1 else None)


def mean_recall_at(runs: Sequence[Run], recall: str, cost: str, at: float) -> Estimate:
    """`recall_at` over the seeds."""
    return over_seeds(runs, lambda run: recall_at(frontier(run.rows, recall, cost), at))


def mean_cost_for(runs: Sequence[Run], recall: str, cost: str, target: float) -> Estimate:
    """`cost_for` over the seeds."""
    return over_seeds(runs, lambda run: cost_for(frontier(run.rows, recall, cost), target))


def best_qps(runs: Sequence[Run], recall: str, target: float) -> Estimate:
    """The highest rate of queries among the settings that reach a recall, without interpolation."""

    def read(run: Run) -> Estimate:
        rates = [row.get("qps") for row in run.rows if (row.get(recall) or 0.0) >= target and row.get("qps")]
        return Estimate(max(rates)) if rates else NOTHING

    return over_seeds(runs, read)


def highest(runs: Sequence[Run], recall: str) -> float | None:
    """The best recall that any setting reached."""
    found = [row.get(recall) for run in runs for row in run.rows if row.get(recall) is not None]
    return max(found) if found else None


def per_candidate(rows: Sequence[Row], keys: set[str] | None = None) -> float | None:
    """The mean over the settings (those in `keys` if given) of Recall@1 per candidate, times 100,000: the published unit is 1e-5 a candidate."""
    shares = [
        1e5 * row.get("recall_at_1") / row.get("candidates")
        for row in rows
        if (keys is None or row.key in keys)
        and row.get("recall_at_1") is not None
        and (row.get("candidates") or 0.0) > 0
    ]
    return fmean(shares) if shares else None
