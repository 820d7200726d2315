"""Baselines: what a result file says of a method that is not ours."""

from __future__ import annotations

from typing import Any

from paper import baselines
from paper.sets import Set

TIMED = 200


def measure(
    source: Set, method: str, settings: dict[str, Any], seed: int, how: dict[str, Any], quick: bool
) -> dict[str, Any]:
    """Builds and measures a baseline."""
    base = source.train()
    queries = source.queries(how["queries"])
    truth = source.truth(len(queries), base, queries)
    return baselines.run(method, base, queries, truth, seed, quick, settings, timed=TIMED)
