"""Buckets of hash tables as cells, probed by query-directed multi-probe (Lv et al. 2007): one engine for every hash.

A hash is a few functions, each with a few symbols (two for a hyperplane, the vertices for a cross-polytope). A query
gives every symbol a cost, 0 for its own; a bucket's score is the sum of the costs of its symbols, and buckets are
probed by score, over all tables together. A search program makes the buckets' keys one after the other with a heap and
meets empty ones on its way; that is counted, one addition for each symbol of each key, or one for each symbol of every
occupied bucket where scoring all of those is cheaper.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paper.baselines.cells import Cells, smallest

Costs = Callable[[np.ndarray], list[np.ndarray]]
"""queries -> for each function of a table the (queries, symbols) costs."""

MOST_KEYS = 1 << 18
BLOCK = 128


@dataclass
class Table:
    """One hash table: how queries see its symbols, and the occupied buckets."""

    costs: Costs
    radices: tuple[int, ...]
    offsets: np.ndarray
    ids: np.ndarray
    keys: np.ndarray
    """Key of every occupied bucket, ascending."""

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Score of every possible key, (queries, product of radices)."""
        total = np.zeros((len(queries), 1), np.float32)
        for cost in self.costs(queries):
            total = (total[:, :, None] + cost[:, None, :].astype(np.float32)).reshape(len(queries), -1)
        return total


def table(symbols: np.ndarray, radices: Sequence[int], costs: Costs) -> Table:
    """A table of points whose symbols (points, functions) are given."""
    if np.prod(radices, dtype=np.float64) > MOST_KEYS:
        raise ValueError(f"{' x '.join(map(str, radices))} keys are more than the {MOST_KEYS} that can be ordered")
    keys = np.ravel_multi_index(tuple(symbols.T), tuple(radices))
    occupied, sizes = np.unique(keys, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Table(costs, tuple(radices), offsets, np.argsort(keys, kind="stable").astype(np.int32), occupied)


def cells_of(tables: Sequence[Table], points: int, hash_madds: float, settings: dict, model_bytes: int) -> Cells:
    """The buckets of all tables as cells; `hash_madds` is what hashing a query takes, all tables together."""
    starts = np.cumsum([0] + [len(t.ids) for t in tables])
    offsets = [t.offsets[:-1] + start for t, start in zip(tables, starts)]
    return Cells(
        offsets=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        ids=np.concatenate([t.ids for t in tables]),
        points=points,
        order_of=lambda queries, most: order(tables, queries, most),
        madds_of=lambda probes, queries: hash_madds + key_madds(tables, probes, queries),
        settings=settings,
        model_bytes=model_bytes,
        extra={"possible_buckets": int(sum(np.prod(t.radices) for t in tables))},
    )


def order(tables: Sequence[Table], queries: np.ndarray, most: int) -> np.ndarray:
    """Occupied buckets by score."""
    blocks = [queries[at : at + BLOCK] for at in range(0, len(queries), BLOCK)]
    return np.concatenate([smallest(occupied_scores(tables, block), most) for block in blocks])


def occupied_scores(tables: Sequence[Table], queries: np.ndarray) -> np.ndarray:
    """Scores of the occupied buckets, numbered through all tables."""
    return np.concatenate([t.scores(queries)[:, t.keys] for t in tables], axis=1)


def key_madds(tables: Sequence[Table], probes: Sequence[int], queries: np.ndarray) -> np.ndarray:
    """Mean additions spent on keys until so many occupied buckets have been met."""
    counts = np.zeros(len(probes))
    functions = len(tables[0].radices)
    for at in range(0, len(queries), BLOCK):
        block = queries[at : at + BLOCK]
        possible = np.sort(np.concatenate([t.scores(block) for t in tables], axis=1), axis=1)
        met = np.sort(occupied_scores(tables, block), axis=1)
        for everything, some in zip(possible, met):
            last = some[np.minimum(probes, len(some)) - 1]
            made = np.searchsorted(everything, last, side="right")
            counts += np.minimum(made, len(some))
    return counts * functions / len(queries)


def sign_costs(project: Callable[[np.ndarray], np.ndarray]) -> Costs:
    """Costs of bits that are the signs of projections: the squared margin of a flipped bit."""

    def costs(queries: np.ndarray) -> list[np.ndarray]:
        margins = project(queries)
        flipped = margins**2
        return [
            np.stack([np.where(m >= 0, f, 0), np.where(m >= 0, 0, f)], axis=1) for m, f in zip(margins.T, flipped.T)
        ]

    return costs


def default_bits(points: int) -> int:
    """About log2(n) bits, 16 at most: with a score for every bucket, buckets finer than a probe's worth cost little."""
    return int(np.clip(round(np.log2(max(points, 2))), 1, 16))
