"""Measures on held-out points how many cells a recall target over all shards has to be routed by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._engine import Engine
from ._manifest import Calibration, Manifest, Segment
from ._place import open_segment
from ._route import Router
from ._steps import read_held_out

NEIGHBORS = [1, 10, 100]
TARGETS = [0.9, 0.95, 0.99]
# Half of the misses that a target allows are left to routing, half to the searches of the shards.
WITHIN = [1 - (1 - target) / 2 for target in TARGETS]
# Distances of one point may differ by rounding between an exact search and another.
_SAME = 1e-6

# Distances of the true neighbours in a segment, and for each number of neighbours and target which of them were found.
Measured = tuple[NDArray[np.float32], list[list[NDArray[np.bool_]]]]


def measure(folder: str, segment: Segment, held_out: Segment) -> Measured:
    """Searches one segment for the neighbours of all held-out points, other than themselves."""
    own, queries = read_held_out(folder, held_out)
    index = open_segment(folder, segment)
    most = max(NEIGHBORS)
    try:
        truth = _without(own, *index.search(queries, most + 1, exact=True))
    except ValueError:
        # 32-bit unit vectors cannot tell these neighbours apart.
        truth = _without(own, *index.search(queries, most + 1, recall=0.999))
    found = []
    for k in NEIGHBORS:
        there = truth[:, :k]
        answers = [_without(own, *index.search(queries, k + 1, recall=within)) for within in WITHIN]
        found.append([_are_found(there, answer) for answer in answers])
    return truth, found


def _without(own: NDArray[Any], distances: NDArray[np.float32], ids: NDArray[Any]) -> NDArray[np.float32]:
    """Distances of other points, in order; the last one goes where the point itself is not among them."""
    keep = ids != own[:, None]
    keep[keep.all(axis=1), -1] = False
    others: NDArray[np.float32] = distances[keep].reshape(len(distances), -1)
    return others


def _are_found(truth: NDArray[np.float32], answer: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which distances occur in the answer."""
    found = np.zeros(truth.shape, bool)
    for row, (wanted, given) in enumerate(zip(truth, answer)):
        given = given[np.isfinite(given)]
        if len(given):
            at = np.searchsorted(given, wanted).clip(0, len(given) - 1)
            near = np.minimum(np.abs(given[at] - wanted), np.abs(given[np.maximum(at - 1, 0)] - wanted))
            found[row] = near <= _SAME * np.abs(wanted)
    return found


def calibrate(engine: Engine, folder: str, manifest: Manifest) -> Calibration:
    """The table of a manifest, whose files must be there."""
    _, queries = read_held_out(folder, manifest.held_out)
    units = [(number, segment) for number, shard in enumerate(manifest.shards) for segment in shard.segments]
    if not len(queries):
        return Calibration()
    measured = engine.get([engine.call(measure, folder, segment, manifest.held_out) for _, segment in units])
    router = Router(folder, manifest)
    owners = np.array([number for number, _ in units])
    steps = _steps(len(router.manifest.cell_shards()))
    visits = [router.visited(queries, step) for step in steps]
    rows: list[list[tuple[int, float, float, bool]]] = []
    for number, k in enumerate(NEIGHBORS):
        distances = np.concatenate([part[0][:, :k] for part in measured], axis=1)
        shard = np.repeat(owners, [part[0][:, :k].shape[1] for part in measured])
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
        exists = np.isfinite(np.take_along_axis(distances, nearest, 1))
        row = []
        for column, target in enumerate(TARGETS):
            flags = np.concatenate([part[1][number][column] for part in measured], axis=1)
            hits = np.take_along_axis(flags, nearest, 1) & exists
            row.append(_choose(steps, visits, hits, exists, shard[nearest], target))
        rows.append(row)
    return Calibration(
        queries=len(queries),
        neighbors=NEIGHBORS,
        targets=TARGETS,
        within=WITHIN,
        cells=[[entry[0] for entry in row] for row in rows],
        measured=[[round(entry[1], 4) for entry in row] for row in rows],
        visited=[[round(entry[2], 2) for entry in row] for row in rows],
        complete=[[entry[3] for entry in row] for row in rows],
    )


def _steps(cells: int) -> list[int]:
    """Numbers of cells to try: each about a quarter more than the one before, up to all."""
    steps = [1]
    while steps[-1] < cells:
        steps.append(min(cells, max(steps[-1] + 1, steps[-1] * 5 // 4)))
    return steps


def _choose(
    steps: list[int],
    visits: list[NDArray[np.bool_]],
    hits: NDArray[np.bool_],
    exists: NDArray[np.bool_],
    shard: NDArray[np.int64],
    target: float,
) -> tuple[int, float, float, bool]:
    """The fewest cells that reach the target by more than a standard error, or all cells if those reach it."""
    there = exists.sum(axis=1)
    asked = there > 0
    if not asked.any():
        return steps[-1], 1.0, float(visits[-1].sum(axis=1).mean()), True
    mean = 0.0
    for step, visited in zip(steps, visits):
        found = hits & np.take_along_axis(visited, shard, 1)
        recalls = found.sum(axis=1)[asked] / there[asked]
        mean = float(recalls.mean())
        error = float(recalls.std() / np.sqrt(len(recalls)))
        is_last = step == steps[-1]
        if mean - error >= target or (is_last and mean >= target):
            return step, mean, float(visited.sum(axis=1).mean()), True
    return steps[-1], mean, float(visits[-1].sum(axis=1).mean()), False
