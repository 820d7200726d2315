"""Where each figure and table of the paper has its counterpart here, with a sentence on agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paper.report.claims import UNKNOWN, Claim, verdict_words
from paper.report.document import Section, set_name
from paper.report.load import Results

HEAD = ("in the paper", "here", "verdict", "evidence", "in words")
NOT_RUN = "Not run."
NO_NUMBER = "No number is published for this in the text we have, so there is none to agree with."


@dataclass(frozen=True)
class Counterpart:
    """A published figure or table, our section for it, and how they agree."""

    published: str
    anchor: str
    ours: str
    sentence: str
    verdict: str = "–"
    evidence: str = "–"

    def plain(self) -> dict[str, str]:
        """The row for programs."""
        return dict(vars(self))


@dataclass(frozen=True)
class Entry:
    """A published item by name, the section that answers it, the claims that speak about it; a picture by its word."""

    published: str
    anchor: str
    claims: tuple[int, ...] = ()
    remark: str = ""
    picture: str = ""


DRAWN = "Drawn from data of our own with the library's own code; there is no number to agree with."
ENTRIES = (
    Entry("Figure: overview of the method", "pictures", (), DRAWN, "overview"),
    Entry("Figure: cloning", "pictures", (), DRAWN, "refinement"),
    Entry("Figure: gradient flow of the losses", "pictures", (), DRAWN, "gradient"),
    Entry("Figures: recall against candidates, each data set", "recall-vs-candidates", (1,)),
    Entry("Figure: efficiency against build time, training on 1, 2.5 and 5 %", "efficiency", (), NO_NUMBER),
    Entry("Table: training fraction", "training-fraction", (2,)),
    Entry("Table: batch size", "batch-size"),
    Entry("Table: number of Gaussians", "initial-cells"),
    Entry("Table: initialisation", "initialisation", (4,)),
    Entry("Table: split threshold γ", "gamma"),
    Entry("Table: clone threshold e", "clone-shell"),
    Entry("Table: radius τ", "tau", (3,)),
    Entry("Table: bin budget ρ", "bin-budget", (5,)),
    Entry("Figure: dimensionality", "dimensionality"),
    Entry("Figure: dimensionality, at its settings", "dimensionality-published"),
    Entry("Table: loss terms", "losses"),
    Entry("Table: split and clone", "split-clone"),
    Entry("Table: covariance", "covariance", (7,)),
    Entry(
        "Figures: reconstruction and coverage landscapes",
        "diagnostics",
        (),
        "Drawn for each index; there is no number to agree with.",
    ),
    Entry(
        "Figure: density against coverage", "diagnostics", (), "Drawn for each index; there is no number to agree with."
    ),
    Entry("Figures: curvature; by Gaussian against radius and coverage", "diagnostics", (6,)),
    Entry(
        "Figures: anisotropy and spectra", "diagnostics", (), "Drawn for each index; there is no number to agree with."
    ),
    Entry("Table: complexity", "complexity"),
    Entry("Table: classification", "classification"),
    Entry("Figures: ε-recall, P@10, r95, r99, relative error", "metrics", (), NO_NUMBER),
    Entry("Text: online updates", "online", (8,)),
)


def counterparts(results: Results, sections: Sequence[Section], claims: Sequence[Claim]) -> list[Counterpart]:
    """The table, in the order of the paper."""
    by_anchor = {section.anchor: section for section in sections}
    return [_counterpart(entry, by_anchor[entry.anchor], claims, results) for entry in ENTRIES]


def _counterpart(entry: Entry, section: Section, claims: Sequence[Claim], results: Results) -> Counterpart:
    if not entry.picture:
        verdict, sentence = _verdict(entry, section, claims), _sentence(entry, section, claims)
        found = evidence(results, entry.anchor) if section.ran else "–"
        return Counterpart(entry.published, entry.anchor, section.title, sentence, verdict, found)
    figure = next((one for one in section.figures if entry.picture in one.file), None)
    if figure is None:
        return Counterpart(entry.published, entry.anchor, section.title, NOT_RUN)
    return Counterpart(entry.published, figure.anchor, figure.alt, entry.remark)


def _own(entry: Entry, claims: Sequence[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.number in entry.claims]


def _verdict(entry: Entry, section: Section, claims: Sequence[Claim]) -> str:
    """What our results say of the item: of its claims, else of its table."""
    if not section.ran:
        return UNKNOWN
    own = _own(entry, claims)
    said = [verdict_words(claim) for claim in own if claim.verdict != UNKNOWN]
    return "; ".join(said + section.verdicts) or (UNKNOWN if own else "no number to agree with")


def _sentence(entry: Entry, section: Section, claims: Sequence[Claim]) -> str:
    if not section.ran:
        return NOT_RUN
    own = _own(entry, claims)
    parts = [f"{claim.name.capitalize()}: {claim.verdict}. {claim.sentence}" for claim in own]
    if entry.remark:
        return " ".join([*parts, entry.remark])
    if section.finding and all(claim.verdict == UNKNOWN for claim in own):
        parts.append(section.finding)
        if "agree" not in section.finding and not entry.claims:
            parts.append(NO_NUMBER)
    return " ".join(parts) or NO_NUMBER


def evidence(results: Results, anchor: str) -> str:
    """Which points and how many seeds the results of a section come from."""
    found: dict[tuple[str, int, str], set[int]] = {}
    for run in results.of("recall-vs-candidates" if anchor == "metrics" else anchor):
        found.setdefault((run.set, run.points, run.length), set()).add(run.seed)
    parts = []
    for (name, points, length), seeds in sorted(found.items()):
        count = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
        shown = set_name(name)
        size = "" if "points" in shown else f"{points:,} points"
        parts.append(", ".join(filter(None, (shown, size, length, count))))
    return "; ".join(parts) or "–"
