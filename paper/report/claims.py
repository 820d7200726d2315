"""The published claims, each checked by a rule that is written beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from paper.report.load import Results
from paper.report.numbers import plain

AGREES, PARTLY, DISAGREES, UNKNOWN = "agrees", "agrees in part", "disagrees", "not measured"


@dataclass
class Claim:
    """A claim, how it is checked, and what came out."""

    number: int
    statement: str
    rule: str
    measured: str = "–"
    verdict: str = UNKNOWN
    sentence: str = "There are no results to check this with."
    numbers: list[dict[str, Any]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The claim for programs."""
        return plain(dict(vars(self)))

    def settle(self, held: Sequence[bool], measured: Sequence[str], yes: str, no: str, partly: str = "") -> Claim:
        """Fills in what was measured; the verdict counts in how many comparisons the rule held."""
        if not held:
            return self
        self.measured = "; ".join(measured)
        if all(held):
            self.verdict, self.sentence = AGREES, yes
        elif any(held):
            self.verdict = PARTLY
            self.sentence = (
                partly or f"The rule holds in {sum(held)} of {len(held)} comparisons. Where it does not: {no}"
            )
        else:
            self.verdict, self.sentence = DISAGREES, no
        return self


def check_claims(results: Results) -> list[Claim]:
    """All claims, in the order of the table."""
    from paper.report import checks

    rules: tuple[Callable[[Results, int], Claim], ...] = (
        checks.half_of_ivf,
        checks.one_percent,
        checks.tau_four,
        checks.farthest_point,
        checks.bin_budget,
        checks.curvature,
        checks.collapse,
        checks.online,
    )
    return [rule(results, place + 1) for place, rule in enumerate(rules)]
