"""How good answers are: every metric of the report, from distances alone.

Points are judged by distance, not by id, so that equally near points are equally right. A row of `distances` is one
query's answer in the order in which the method ranks it, as true distances (not squared), `inf` where there are fewer
than k answers; a row of `truth` has the true distances, ascending. A method that re-ranks exactly has ascending rows;
one that does not (product codes) is judged by the order it gives: its "nearest" is the one it names first.
"""

import math

import numpy as np

METRICS = (
    "recall_at_1",
    "recall_at_10",
    "precision_at_10",
    "epsilon_recall_1pct",
    "epsilon_recall_10pct",
    "r95",
    "r99",
    "relative_error",
)
"""Names of the metrics in a row of a result file."""
COSTS = ("candidates", "distance_equivalents")
"""Names of what a row says of the work."""

SLACK = 1e-6
"""Share by which a distance may exceed the true one and still count as equal: rounding, no more."""


def evaluate(distances: np.ndarray, truth: np.ndarray, k: int = 10) -> dict[str, float | None]:
    """All metrics, means over the queries, by their names in a result file. None stands for infinite or undefined."""
    found, true = checked(distances, truth, k)
    ratios = nearest_ratios(found, true)
    return {
        "recall_at_1": float(np.mean(found[:, 0] <= true[:, 0] * (1 + SLACK))),
        f"recall_at_{k}": recall(found, true, SLACK),
        f"precision_at_{k}": precision(found, true),
        "epsilon_recall_1pct": epsilon_recall(ratios, 0.01),
        "epsilon_recall_10pct": epsilon_recall(ratios, 0.1),
        "r95": finite(percentile(ratios, 0.95)),
        "r99": finite(percentile(ratios, 0.99)),
        "relative_error": relative_error(ratios),
    }


def checked(distances: np.ndarray, truth: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 with k columns; answers beyond the k-th are cut off, missing ones are infinitely far."""
    found, true = np.asarray(distances, np.float64), np.asarray(truth, np.float64)
    if found.ndim != 2 or true.ndim != 2 or len(found) != len(true) or not len(found):
        raise ValueError(f"answers of shape {found.shape} do not fit truth of shape {true.shape}")
    if true.shape[1] < k:
        raise ValueError(f"truth has {true.shape[1]} neighbours a query, {k} are needed")
    missing = max(0, k - found.shape[1])
    return np.pad(found[:, :k], ((0, 0), (0, missing)), constant_values=np.inf), true[:, :k]


def recall(found: np.ndarray, true: np.ndarray, slack: float) -> float:
    """Share of k answers that are within (1 + slack) of the true k-th distance; missing answers count as wrong."""
    return float(np.mean(found <= true[:, -1:] * (1 + slack)))


def precision(found: np.ndarray, true: np.ndarray) -> float:
    """As recall, out of the number of answers a query got; 0 for a query without any."""
    right = np.sum(found <= true[:, -1:] * (1 + SLACK), axis=1)
    returned = np.sum(np.isfinite(found), axis=1)
    return float(np.mean(right / np.maximum(returned, 1)))


def nearest_ratios(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Distance of the first answer over the true nearest: 1 where both are 0, infinite where only the true one is."""
    first, nearest = found[:, 0], true[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = first / nearest
    return np.where(nearest == 0, np.where(first == 0, 1.0, np.inf), ratios)


def percentile(values: np.ndarray, share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed (nearest rank)."""
    # The product is rounded first: 0.95 * 20 is 19, not a hair more.
    rank = math.ceil(round(share * len(values), 9))
    return float(np.sort(values)[max(rank, 1) - 1])


def epsilon_recall(ratios: np.ndarray, epsilon: float) -> float:
    """Share of queries whose first answer is no farther than (1 + epsilon) times the true nearest neighbour."""
    return float(np.mean(ratios <= (1 + epsilon) * (1 + SLACK)))


def relative_error(ratios: np.ndarray) -> float | None:
    """Mean over queries of the nearest answer's distance over the true nearest distance, less one.

    A query without an answer, or whose neighbour at distance 0 was missed, has no such ratio and is left out.
    """
    known = ratios[np.isfinite(ratios)]
    return float(np.mean(known - 1)) if known.size else None


def finite(value: float) -> float | None:
    """None in place of infinity, which JSON cannot say."""
    return value if math.isfinite(value) else None
