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
    """A published item by name, the section that answers it, and the claims that speak about it."""

    published: str
    anchor: str
    claims: tuple[int, ...] = ()
    remark: str = ""


DRAWN = "Drawn from data of our own with the library's own code; there is no number to agree with."
ENTRIES = (
    Entry("Figure: overview of the method", "pictures", (), DRAWN),
    Entry("Figure: cloning", "pictures", (), DRAWN),
    Entry("Figure: gradient flow of the losses", "pictures", (), DRAWN),
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
    Entry("Table: bin shape", "bin-shape"),
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
    return Counterpart(entry.published, entry.anchor, section.title, _sentence(entry, section, claims))


def _sentence(entry: Entry, section: Section, claims: dict[int, Claim]) -> str:
    if not section.ran:
        return NOT_RUN
    spoken = [claims[number] for number in entry.claims if claims[number].verdict != UNKNOWN]
    parts = [f"Claim {claim.number} {claim.verdict}: {claim.sentence}" for claim in spoken]
    if not spoken:
        parts += [entry.remark] if entry.remark else [section.finding]
    return " ".join(part for part in parts if part) or NO_NUMBER
