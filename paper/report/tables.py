"""Tables read off the curves: recall at fixed costs, costs of fixed recalls, and every measured row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from paper.report.curves import best_qps, highest, mean_cost_for, mean_recall_at
from paper.report.document import Column, Line, Table
from paper.report.load import Run

TARGETS = (0.8, 0.9, 0.95, 0.99)
NAMES = {"recall_at_1": "Recall@1", "recall_at_10": "10-recall@10"}


def fixed_counts(points: int) -> list[int]:
    """Four round numbers of candidates that suit a set: 100 to 3,000 for 60,000 points, 1,000 to 30,000 for a "
    "million."""
    base = 10 ** max(1, math.floor(math.log10(max(points, 1) * 0.002)))
    return [base, 3 * base, 10 * base, 30 * base]


def build_seconds(runs: Sequence[Run]) -> float | None:
    """The mean time of the builds."""
    return _mean([run.build_seconds for run in runs])


def cpu_seconds(runs: Sequence[Run]) -> float | None:
    """The mean processor time of the builds, all threads together."""
    return _mean([run.build_cpu_seconds for run in runs])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def recall_table(lines: Sequence[Line], recall: str, title: str) -> Table:
    """Recall at fixed numbers of candidates, with what the build took."""
    counts = fixed_counts(max(run.points for line in lines for run in line.runs))
    columns = [
        Column("method or variant"),
        Column("seeds", "count"),
        Column("cells", "count"),
        Column("build s", "seconds"),
    ]
    columns += [Column("build CPU s", "seconds"), Column("index MB", "count")]
    columns += [Column(f"{NAMES[recall]} @ {count:,}", "share") for count in counts] + [Column("best", "share")]
    rows: list[list[Any]] = []
    for line in lines:
        sizes = [None if run.bytes is None else run.bytes / 1e6 for run in line.runs]
        row: list[Any] = [line.label, len({run.seed for run in line.runs})]
        row += [_mean([run.cells for run in line.runs]), build_seconds(line.runs), cpu_seconds(line.runs), _mean(sizes)]
        row += [mean_recall_at(line.runs, recall, "candidates", count) for count in counts]
        rows.append([*row, highest(line.runs, recall)])
    return Table(title, columns, rows)


def cost_table(lines: Sequence[Line], recall: str, title: str) -> Table:
    """Candidates, work and rate at fixed recalls."""
    columns = [Column("method or variant")]
    columns += [Column(f"candidates for {target:g}", "count") for target in TARGETS]
    columns += [Column(f"work for {target:g}", "count") for target in TARGETS]
    columns += [Column(f"QPS at {target:g}", "count") for target in (0.9, 0.99)]
    rows: list[list[Any]] = []
    for line in lines:
        row: list[Any] = [line.label]
        for cost in ("candidates", "distance_equivalents"):
            row += [mean_cost_for(line.runs, recall, cost, target) for target in TARGETS]
        rows.append(row + [best_qps(line.runs, recall, target) for target in (0.9, 0.99)])
    note = f"What {NAMES[recall]} needs; QPS is the highest rate among the settings that reach it."
    return Table(title, columns, rows, note)


def full_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every measured setting with every metric: for report.json only."""
    found = []
    for line in lines:
        for run in line.runs:
            for row in run.rows:
                head = {"method": run.method, "variant": run.variant, "seed": run.seed, "params": row.params}
                found.append(head | row.numbers)
    return found
