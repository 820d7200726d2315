"""The published claims, each checked by a rule that is written beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    length: str = ""
    """The length of training that the verdict holds for; "" where the experiment names none."""

    @property
    def name(self) -> str:
        """Number and length, as in `claim 7, when trained`."""
        return f"claim {self.number}" + (f", {self.length}" if self.length else "")

    @property
    def anchor(self) -> str:
        """Where links to the claim lead."""
        return self.name.replace(",", "").replace(" ", "-")

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


def verdict_words(claim: Claim) -> str:
    """The verdict, with the length of training that it holds for."""
    return f"{claim.length}: {claim.verdict}" if claim.length else claim.verdict


def check_claims(results: Results) -> list[Claim]:
    """All claims, in the order of the table; one that has several lengths of training once for each of them."""
    from paper.report import checks

    # The experiment beside a rule is the one whose lengths of training the claim is judged at.
    rules: tuple[tuple[Callable[[Results, int], Claim], str], ...] = (
        (checks.half_of_ivf, ""),
        (checks.one_percent, ""),
        (checks.tau_four, "tau"),
        (checks.farthest_point, "initialisation"),
        (checks.bin_budget, "bin-budget"),
        (checks.curvature, ""),
        (checks.collapse, "covariance"),
        (checks.online, ""),
    )
    claims = []
    for place, (rule, experiment) in enumerate(rules, 1):
        for length in results.lengths(experiment) or [""]:
            claims.append(replace(rule(results.at(length) if length else results, place), length=length))
    return claims
