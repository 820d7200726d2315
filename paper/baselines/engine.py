"""Measures (cells, probe order) pairs: quality against candidates and against all work, every baseline the same way.

Distances of a block of queries to all points come from one matrix product, in float32: a row of them is looked up for
whatever the query reaches, which is far cheaper than gathering vectors. Those that may be among the k nearest are then
computed again, in float64, so no rounding of the product decides anything. What is *counted* is what a search program
would compute: the exact distances of the distinct points of the probed cells, and the routing.
"""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paper.baselines.cells import Cells
from paper.metrics import evaluate

BLOCK_BYTES = 1 << 28
# Relative error of a squared distance from a float32 product, generously: what is closer than this is computed again.
ROUNDING = 1e-5
# Time for one setting's `qps` where the search is ours.
MOST_SECONDS = 2.0


def measure(
    cells: Cells,
    base: np.ndarray,
    queries: np.ndarray,
    truth: np.ndarray,
    probes: Sequence[int] | None = None,
    k: int = 10,
    max_candidates: float | None = None,
    timed: int = 0,
) -> list[dict[str, Any]]:
    """One row of a result file for each number of probes.

    `probes` None takes `probe_steps`; settings whose mean candidates would exceed `max_candidates` are left out.
    `timed` queries (the first ones) are searched one setting after the other for `qps`, see `queries_per_second`.
    """
    steps = choose(cells, queries, probes, max_candidates)
    nearest, counts = answers(cells, base, queries, steps, k)
    routing = cells.routing_madds(steps, queries)
    rows: list[dict[str, Any]] = []
    for at, step in enumerate(steps):
        row: dict[str, Any] = {"params": {"probes": step}, **evaluate(nearest[at], truth, k)}
        row["candidates"] = float(counts[at].mean())
        row["distance_equivalents"] = row["candidates"] + float(routing[at]) / base.shape[1]
        row["qps"] = queries_per_second(cells, base, queries[:timed], step, k) if timed else None
        rows.append(row)
    return rows


def answers(
    cells: Cells, base: np.ndarray, queries: np.ndarray, steps: Sequence[int], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances (steps, queries, k) of the nearest points reached, inf where missing, and counts (steps, queries)."""
    nearest = np.full((len(steps), len(queries), k), np.inf)
    counts = np.zeros((len(steps), len(queries)), np.int64)
    norms = np.einsum("ij,ij->i", base, base)
    seen = np.full(len(base), -1, np.int32)
    rows = max(1, min(len(queries), BLOCK_BYTES // (4 * len(base))))
    for first in range(0, len(queries), rows):
        block = queries[first : first + rows]
        orders = cells.order(block, steps[-1])
        squared = norms - 2 * (block @ base.T)
        for row, query in enumerate(block):
            at = first + row
            slack = ROUNDING * float(query @ query + norms.max())
            best = np.empty(0)
            for step, fresh in enumerate(reached(cells, orders[row], steps, seen, at)):
                close = shortlist(squared[row, fresh], k, slack)
                best = np.sort(np.concatenate([best, exact(base, query, fresh[close])]))[:k]
                nearest[step, at, : len(best)] = best
                counts[step, at] = len(fresh) + (counts[step - 1, at] if step else 0)
    return np.sqrt(nearest), counts


def reached(
    cells: Cells, order: np.ndarray, steps: Sequence[int], seen: np.ndarray, mark: int
) -> Iterator[np.ndarray]:
    """For each step the distinct points that it reaches and the steps before it did not; `seen` keeps the marks."""
    done = 0
    for step in steps:
        probed = order[done:step]
        done = step
        fresh = cells.members(probed[probed >= 0])
        if not cells.disjoint:
            fresh = np.unique(fresh)
            fresh = fresh[seen[fresh] != mark]
            seen[fresh] = mark
        yield fresh


def shortlist(values: np.ndarray, k: int, slack: float) -> np.ndarray:
    """Positions of all values that rounding allows to be among the k smallest."""
    if len(values) <= k:
        return np.arange(len(values))
    return np.flatnonzero(values <= np.partition(values, k - 1)[k - 1] + 2 * slack)


def exact(base: np.ndarray, query: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Squared distances in float64."""
    difference = base[ids].astype(np.float64) - query.astype(np.float64)
    return np.einsum("ij,ij->i", difference, difference)


def choose(cells: Cells, queries: np.ndarray, probes: Sequence[int] | None, most: float | None) -> list[int]:
    """Ascending numbers of probes, the given ones or `probe_steps`, within `most` mean candidates; one at least."""
    if probes and most is None:
        return sorted({min(int(p), cells.cells) for p in probes})
    reach = cumulative(cells, queries)
    steps = sorted({min(int(p), cells.cells) for p in probes}) if probes else probe_steps(reach, cells.points)
    return [s for s in steps if most is None or reach[s - 1] <= most] or steps[:1]


def probe_steps(
    reach: np.ndarray, points: int, low: float = 0.001, high: float = 0.2, settings: int = 12
) -> list[int]:
    """Numbers of probes whose mean candidates go from about `low` to `high` of the points, log-spaced."""
    targets = np.geomspace(low, high, settings) * points
    places = np.minimum(np.searchsorted(reach, targets), len(reach) - 1) + 1
    return sorted({int(p) for p in places})


def cumulative(cells: Cells, queries: np.ndarray, sample: int = 64) -> np.ndarray:
    """Mean number of distinct points reached after 1, 2, ... probes, by some of the queries."""
    orders = cells.order(queries[:: max(1, len(queries) // sample)][:sample], cells.cells)
    reach = np.zeros(orders.shape[1])
    for order in orders:
        order = order[order >= 0]
        probe = np.repeat(np.arange(len(order)), cells.sizes[order])
        first = np.empty(cells.points, np.int64)
        # Written backwards, the first probe that names a point is the one that stays.
        first[cells.members(order)[::-1]] = probe[::-1]
        reach += np.bincount(first, minlength=len(reach)).cumsum()
    return reach / len(orders)


def search(cells: Cells, base: np.ndarray, query: np.ndarray, probes: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Plain search for one query: (squared distances, ids) of the k nearest points in the first `probes` cells."""
    order = cells.order(query[None], probes)[0]
    ids = cells.members(order[order >= 0])
    if not cells.disjoint:
        ids = np.unique(ids)
    difference = base[ids] - query
    squared = np.einsum("ij,ij->i", difference, difference)
    near = np.argpartition(squared, k - 1)[:k] if len(ids) > k else np.arange(len(ids))
    near = near[np.lexsort((ids[near], squared[near]))]
    return squared[near], ids[near]


def queries_per_second(cells: Cells, base: np.ndarray, queries: np.ndarray, probes: int, k: int) -> float:
    """Queries a second, one thread, one query at a time where the search is ours.

    For a baseline of a real library (faiss) this is that library's own search of the batch. For all others it is the
    time of numpy: probe order, exact distances and selection of one query after the other. No tuned program; good for
    seeing how time grows with probes, not for comparing methods with compiled ones. Hashes suffer most: they score all
    buckets here, where a program would make the few it needs. As many queries as two seconds allow, one at least.
    """
    if cells.search is not None:
        return rate(lambda: cells.search(queries, probes, k), len(queries))
    with threadpool_limits(limits=1):
        done, start = 0, perf_counter()
        while done < len(queries) and perf_counter() - start < MOST_SECONDS:
            search(cells, base, queries[done], probes, k)
            done += 1
        return done / (perf_counter() - start)


def rate(work: Callable[[], Any], count: int, least: float = 0.2) -> float:
    """How many of `count` things a second some work does on one thread, repeated until the clock can tell."""
    with threadpool_limits(limits=1):
        rounds, start = 0, perf_counter()
        while rounds == 0 or perf_counter() - start < least:
            work()
            rounds += 1
        return rounds * count / (perf_counter() - start)
