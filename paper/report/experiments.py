"""The experiments: what each asks, and what is published about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Published averages of Recall@1 per candidate, the first for the full method.

    `known` names the variants whose value we can tell from the text, by a word of their label; the other values can
    only be compared by their order. `unpublished` is a word of a variant that we measure and the paper does not.
    """

    values: tuple[float, ...]
    known: dict[str, float]
    unpublished: str = ""


@dataclass(frozen=True)
class Spec:
    """One ablation. `order` are words of the labels, the reference first; `choice` is what the authors settled on.

    `split_by` is a parameter of the search to tell lines apart by, where the build is the same.
    """

    name: str
    title: str
    question: str
    choice: float | str | dict[str, float] | None = None
    order: tuple[str, ...] = ()
    published: Published | None = None
    split_by: str = ""

    def choice_for(self, name: str) -> float | str | None:
        """The authors' choice on a data set: some differ between pictures and descriptors."""
        if isinstance(self.choice, dict):
            return next((value for word, value in self.choice.items() if word in name), None)
        return self.choice


LOSSES = Published(
    (16.20, 15.38, 10.64, 9.78),
    {"all": 16.20, "without anchor": 15.38, "without coverage": 10.64, "divergence alone": 9.78},
    "without divergence",
)
SPLIT_CLONE = Published(
    (16.20, 14.22, 5.45, 4.63), {"both": 16.20, "split": 14.22, "clone": 5.45, "none": 4.63, "neither": 4.63}
)
COVARIANCE = Published((16.20, 1.22, 0.75), {"full": 16.20, "diagonal": 1.22, "isotropic": 0.75})

ABLATIONS: tuple[Spec, ...] = (
    Spec(
        "training-fraction",
        "Training fraction",
        "How many of the points does training need, and how many does an IVF?",
    ),
    Spec("batch-size", "Batch size", "Fewer, larger steps or more, smaller ones?", {"mnist": 2e4, "sift": 5e4}),
    Spec("initial-cells", "Initial number of Gaussians", "How many cells to start from?"),
    Spec(
        "initialisation",
        "Initialisation",
        "Where should the first cells lie?",
        "k-means++",
        ("k-means++", "k-means", "random", "farthest"),
    ),
    Spec("gamma", "Split threshold γ", "From which share of the points on is a cell split?", 0.01),
    Spec("clone-shell", "Clone threshold e", "How far outside may points lie to be cloned for?", 2.2),
    Spec("tau", "Radius τ", "How many standard deviations does a cell reach?", 3.0),
    Spec(
        "bin-budget",
        "Bin budget ρ",
        "Which share of a cell's occupied bins must be scanned?",
        0.3,
        split_by="bins",
    ),
    Spec(
        "bin-shape",
        "Bin shape (r, n_r, n_a)",
        "How many axes and steps should the bins have?",
        "r 3, n_r 6, n_a 4",
        ("r 3, n_r 6, n_a 4",),
    ),
    Spec(
        "losses",
        "Loss terms",
        "Which terms of the loss does retrieval need?",
        "all",
        ("all", "without anchor", "without coverage", "without divergence", "divergence"),
        LOSSES,
    ),
    Spec(
        "split-clone",
        "Split and clone",
        "What do splitting and cloning bring?",
        "both",
        ("both", "split", "clone", "none", "neither"),
        SPLIT_CLONE,
    ),
    Spec(
        "covariance",
        "Covariance",
        "What do full covariances bring over diagonal and isotropic ones?",
        "full",
        ("full", "diagonal", "isotropic"),
        COVARIANCE,
    ),
    Spec("seeds", "Seeds", "How much do results depend on the seed?"),
    Spec(
        "selection",
        "Guard and model selection",
        "What do the guard against swallowing and selection by retrieval cost change against the published training?",
    ),
    Spec("online", "Online updates", "Is an index that grew as good as one built on everything?"),
)
