"""One colour, marker and line for each method, everywhere.

Colours are those of Okabe and Ito, which people with the common kinds of colour blindness can tell apart; yellow is
left out because it vanishes on white. There are more methods than colours, so related methods share one and differ in
line and marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#777777"
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h")

SETTINGS: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "svg.fonttype": "none",
    "svg.hashsalt": "garlic",
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "figure.dpi": 100,
}


@dataclass(frozen=True)
class Style:
    """How a method looks."""

    name: str
    color: str
    marker: str
    line: str = "-"
    width: float = 1.4

    def plot(self) -> dict[str, Any]:
        """Arguments of a line plot."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.line, "linewidth": self.width}


METHODS: dict[str, Style] = {
    "garlic-default": Style("GARLIC (default)", VERMILLION, "o", "-", 2.2),
    "garlic-paper": Style("GARLIC (paper)", BLUE, "s", "-", 2.2),
    "faiss-ivf": Style("Faiss IVF-Flat", BLACK, "D"),
    "faiss-pq-rerank": Style("Faiss IVF-PQ + re-rank", BLACK, "P", "--"),
    "faiss-pq": Style("Faiss IVF-PQ alone", BLACK, "X", ":"),
    "kmeans": Style("k-means++", ORANGE, "^"),
    "birch": Style("BIRCH", ORANGE, "v", "--"),
    "gmm": Style("Gaussian mixture", PURPLE, "<"),
    "neural-lsh": Style("Neural LSH", GREEN, "p"),
    "pca-tree": Style("PCA tree", GREEN, "h", "--"),
    "hyperplane-lsh": Style("hyperplane LSH", SKY, ">"),
    "cross-polytope-lsh": Style("cross-polytope LSH", SKY, "*", "--"),
    "itq": Style("ITQ", PURPLE, "d", "--"),
}
ORDER = list(METHODS)


def style(method: str) -> Style:
    """The style of a method; grey for one we do not know."""
    return METHODS.get(method, Style(method, GREY, ".", "-."))


def rank(method: str) -> tuple[int, str]:
    """The place of a method in legends and tables."""
    return (ORDER.index(method) if method in METHODS else len(ORDER), method)


def _blend(color: str, other: str, share: float) -> tuple[float, float, float]:
    return tuple((1 - share) * a + share * b for a, b in zip(to_rgb(color), to_rgb(other), strict=True))  # type: ignore[return-value]


def _shade(color: str, place: float) -> tuple[float, float, float]:
    """A colour between its dark form (place 0) and its light form (place 1); black has no dark form."""
    if color == BLACK:
        return _blend(color, "#FFFFFF", 0.65 * place)
    if place < 0.5:
        return _blend(color, "#000000", 0.7 * (1.0 - 2.0 * place))
    return _blend(color, "#FFFFFF", 0.6 * (2.0 * place - 1.0))


def shades(method: str, count: int, alone: bool = True) -> Sequence[dict[str, Any]]:
    """`count` variants of a method: shades of its colour, each with a line of its own.

    Alone in a figure they go from dark to light and have a marker each; beside other methods they keep the method's
    marker and go from its colour to a light form, since dark forms of two colours look alike.
    """
    base = style(method)
    if count == 1:
        return [base.plot()]
    looks = []
    for i in range(count):
        place = i / (count - 1)
        color = _shade(base.color, place if alone or base.color == BLACK else 0.5 + 0.5 * place)
        marker = MARKERS[i % len(MARKERS)] if alone else base.marker
        looks.append({"color": color, "marker": marker, "linestyle": LINES[i % len(LINES)], "linewidth": 1.6})
    return looks
