"""Where each figure and table of the paper has its counterpart here, with a sentence on agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paper.report.claims import UNKNOWN, Claim
from paper.report.document import Section

NOT_RUN = "Not run."
NO_NUMBER = "No number is published for this in the text we have, so there is none to agree with."


@dataclass(frozen=True)
class Counterpart:
    """A published figure or table, our section for it, and how they agree."""

    published: str
    anchor: str
    ours: str
    sentence: str

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
    Entry("Figure: efficiency against build time", "efficiency", (), NO_NUMBER),
    Entry("Table: training fraction", "training-fraction", (2,)),
    Entry("Table: batch size", "batch-size"),
    Entry("Table: number of Gaussians", "initial-cells"),
    Entry("Table: initialisation", "initialisation", (4,)),
    Entry("Table: split threshold γ", "gamma"),
    Entry("Table: clone threshold e", "clone-shell"),
    Entry("Table: radius τ", "tau", (3,)),
    Entry("Table: bin budget ρ", "bin-budget", (5,)),
    Entry("Figure: dimensionality", "dimensionality"),
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
    Entry("Figure: curvature", "diagnostics", (6,)),
    Entry(
        "Figures: anisotropy and spectra", "diagnostics", (), "Drawn for each index; there is no number to agree with."
    ),
    Entry("Table: complexity", "complexity"),
    Entry("Table: classification", "classification"),
    Entry("Figures: ε-recall, P@10, r95, r99, relative error", "metrics", (), NO_NUMBER),
    Entry("Text: online updates", "online", (8,)),
)


def counterparts(sections: Sequence[Section], claims: Sequence[Claim]) -> list[Counterpart]:
    """The table, in the order of the paper."""
    by_anchor = {section.anchor: section for section in sections}
    by_number = {claim.number: claim for claim in claims}
    return [_counterpart(entry, by_anchor[entry.anchor], by_number) for entry in ENTRIES]


def _counterpart(entry: Entry, section: Section, claims: dict[int, Claim]) -> Counterpart:
    if not entry.picture:
        return Counterpart(entry.published, entry.anchor, section.title, _sentence(entry, section, claims))
    figure = next((one for one in section.figures if entry.picture in one.file), None)
    if figure is None:
        return Counterpart(entry.published, entry.anchor, section.title, NOT_RUN)
    return Counterpart(entry.published, figure.anchor, figure.alt, entry.remark)


def _sentence(entry: Entry, section: Section, claims: dict[int, Claim]) -> str:
    if not section.ran:
        return NOT_RUN
    parts = [f"Claim {claim.number} {claim.verdict}: {claim.sentence}" for claim in map(claims.get, entry.claims)]
    if entry.remark:
        return " ".join([*parts, entry.remark])
    if section.finding and all(claims[place].verdict == UNKNOWN for place in entry.claims):
        parts.append(section.finding)
        if "agree" not in section.finding and not entry.claims:
            parts.append(NO_NUMBER)
    return " ".join(parts) or NO_NUMBER
