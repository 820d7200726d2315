"""What a baseline that re-ranks exactly is: cells of points, and an order in which a query probes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Order = Callable[[np.ndarray, int], np.ndarray]
Madds = Callable[[Sequence[int], np.ndarray], np.ndarray]
Search = Callable[[np.ndarray, int, int], Any]


@dataclass
class Cells:
    """Cells of the points 0..points and the order in which queries probe them.

    Members are in CSR form: cell c holds ids[offsets[c]:offsets[c + 1]]; a point may be in several cells.
    """

    offsets: np.ndarray
    ids: np.ndarray
    points: int
    order_of: Order
    """(queries, most) -> (len(queries), <= most) cells in the order of probing, -1 where there are no more."""
    madds_of: Madds
    """(probes, queries) -> for each number of probes the multiply-adds a query spends on finding the cells, mean."""
    settings: dict[str, Any]
    """Complete: building with these and the same seed gives the same cells."""
    model_bytes: int = 0
    """What routing needs beside vectors and members: centres, planes, weights."""
    build_seconds: float = 0.0
    search: Search | None = None
    """(queries, probes, k): a real library's search, where there is one, for the time it takes."""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """Number of cells; tables of a hash count their occupied buckets."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of members of each cell."""
        return np.diff(self.offsets)

    @property
    def disjoint(self) -> bool:
        """Whether no point is in two cells (every point is in one at least)."""
        return len(self.ids) == self.points

    def order(self, queries: np.ndarray, most: int) -> np.ndarray:
        """The first `most` cells of every query, best first, -1 where there are no more."""
        return self.order_of(queries, min(most, self.cells))

    def routing_madds(self, probes: Sequence[int], queries: np.ndarray) -> np.ndarray:
        """Multiply-adds that finding the first `probes` cells takes, mean over the queries, one for each setting."""
        return np.asarray(self.madds_of(probes, queries), np.float64)

    def members(self, cells: np.ndarray) -> np.ndarray:
        """Ids in these cells, one cell after the other; a point in several of them is named several times."""
        starts = self.offsets[cells]
        sizes = self.offsets[cells + 1] - starts
        before = np.cumsum(sizes) - sizes
        return self.ids[np.arange(sizes.sum()) + np.repeat(starts - before, sizes)]

    def bytes(self, base: np.ndarray) -> int:
        """Memory of an index: vectors, an id of four bytes for each member, offsets, the router's model."""
        return int(base.nbytes + 4 * len(self.ids) + 8 * len(self.offsets) + self.model_bytes)

    def shape(self) -> dict[str, Any]:
        """What a result file says of the cells beside their number."""
        return {
            "largest_share": float(self.sizes.max() / self.points),
            "coverage_mean": float(len(self.ids) / self.points),
            **self.extra,
        }


def csr(labels: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and ids of cells from one label a point; ids ascend within a cell. Empty cells stay, with no members."""
    offsets = np.zeros(cells + 1, np.int64)
    np.cumsum(np.bincount(labels, minlength=cells), out=offsets[1:])
    return offsets, np.argsort(labels, kind="stable").astype(np.int32)


def smallest(scores: np.ndarray, most: int) -> np.ndarray:
    """Columns of the `most` smallest scores of every row, ascending; equal scores in the order of their columns."""
    if most >= scores.shape[1]:
        return np.argsort(scores, axis=1, kind="stable").astype(np.int32)
    # A partition takes any of several equal scores at its end; the columns decide instead.
    ends = np.partition(scores, most - 1, axis=1)[:, most - 1]
    result = np.empty((len(scores), most), np.int32)
    for row, (values, end) in enumerate(zip(scores, ends)):
        some = np.flatnonzero(values <= end)
        result[row] = some[np.argsort(values[some], kind="stable")][:most]
    return result


def constant(madds: float) -> Madds:
    """Routing whose cost depends neither on the query nor on the number of probes."""
    return lambda probes, _queries: np.full(len(probes), float(madds))
