"""Which shards a query goes to, and how results of several segments become one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._garlic import route as nearest_cells
from .._index import Index
from ._manifest import Manifest, check_file
from ._place import open_model

Found = tuple[NDArray[np.float32], NDArray[Any], dict[str, NDArray[Any]]]
# What segments or shards found, with the rows of their queries.
Parts = list[tuple[NDArray[np.intp], Found]]


@dataclass(frozen=True)
class Plan:
    """For each shard that is searched, the rows of its queries; how to search it, and the version that it was planned for."""

    shards: list[tuple[int, NDArray[np.intp]]]
    recall: float | None
    exact: bool
    version: str


class Router:
    """A manifest and its model."""

    def __init__(self, folder: str, manifest: Manifest, version: str = "") -> None:
        self.version = version
        check_file(folder, manifest.model)
        self.manifest = manifest
        self.model: Index = open_model(os.path.join(folder, manifest.model.file))
        self._shard_of = np.asarray(manifest.cell_shards())
        self._with_points = [number for number, shard in enumerate(manifest.shards) if shard.points]

    def visited(self, queries: NDArray[np.float32], cells: int) -> NDArray[np.bool_]:
        """For each query and shard, whether one of the query's nearest cells is in the shard."""
        visited = np.zeros((len(queries), len(self.manifest.shards)), bool)
        near = nearest_cells(self.model._have(), queries, cells)
        rows = np.repeat(np.arange(len(queries)), near.shape[1])
        known = near.ravel() >= 0
        visited[rows[known], self._shard_of[near.ravel()[known]]] = True
        return visited

    def plan(self, queries: NDArray[np.float32], k: int, recall: float | None, exact: bool, filtered: bool) -> Plan:
        """Exact searches and those with filters go to all shards: allowed neighbours may lie anywhere."""
        target = self.manifest.recall if recall is None else recall
        if not 0.0 < target < 1.0:
            raise ValueError(f"search parameter `recall` is {target}: must be above 0 and below 1; use exact=True for all")
        cells, within, complete = self._effort(k, target)
        exact = exact or not complete
        if exact or filtered or cells is None:
            everyone = np.arange(len(queries))
            return Plan([(shard, everyone) for shard in self._with_points], within, exact, self.version)
        visited = self.visited(queries, cells)
        chosen = [(shard, np.flatnonzero(visited[:, shard])) for shard in self._with_points]
        return Plan([(shard, rows) for shard, rows in chosen if len(rows)], within, False, self.version)

    def _effort(self, k: int, target: float) -> tuple[int | None, float, bool]:
        """Cells to route by (``None`` for all shards), the recall target inside a shard, and whether that is enough."""
        table = self.manifest.calibration
        k_row = next((i for i, n in enumerate(table.neighbors) if n >= k), None)
        column = next((i for i, t in enumerate(table.targets) if t >= target), None)
        if k_row is None or column is None:
            return None, target, True
        return table.cells[k_row][column], table.within[column], table.complete[k_row][column]


def best(parts: Parts, queries: int, k: int, named: bool, columns: list[str] | None) -> Found:
    """The ``k`` nearest of what segments found for their queries, ordered by distance and identifier."""
    width = sum(found[0].shape[1] for _, found in parts) or k
    distances = np.full((queries, max(width, k)), np.inf, np.float32)
    ids: NDArray[Any] = np.full(distances.shape, None if named else -1, object if named else np.int64)
    joined: dict[str, NDArray[Any]] = {}
    at = 0
    for rows, (their_distances, their_ids, their_columns) in parts:
        where = np.ix_(rows, np.arange(at, at + their_distances.shape[1]))
        distances[where], ids[where] = their_distances, their_ids
        for name in columns or []:
            _put(joined, name, their_columns[name], where, distances.shape)
        at += their_distances.shape[1]
    order = np.lexsort((_ranks(ids) if named else ids, distances), axis=1)[:, :k]
    nearest = np.take_along_axis(distances, order, 1)
    picked = {name: _picked(values, order, np.isinf(nearest)) for name, values in joined.items()}
    return nearest, np.take_along_axis(ids, order, 1), picked


def _picked(values: NDArray[Any], order: NDArray[np.intp], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Values of the nearest; whole numbers and booleans have no value for neighbours that there are not."""
    found = np.take_along_axis(values, order, 1)
    if found.dtype.kind in "iub" and missing.any():
        found = found.astype(object)
        found[missing] = None
    return found


def _put(joined: dict[str, NDArray[Any]], name: str, values: NDArray[Any], where: Any, shape: tuple[int, ...]) -> None:
    """Adds values to a column. Segments may differ in whether values are missing, and so in the type."""
    if name not in joined:
        joined[name] = _missing(shape, values.dtype)
    elif joined[name].dtype != values.dtype:
        wider = joined[name].astype(object)
        joined[name] = wider
    joined[name][where] = values


def _missing(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    if dtype.kind == "M":
        return np.full(shape, np.datetime64("NaT"), dtype)
    return np.zeros(shape, dtype) if dtype.kind in "iub" else np.full(shape, None, object)


def _ranks(names: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers in the order of names; missing ones come last."""
    flat = names.ravel()
    known = np.array([name for name in flat if name is not None], object)
    if not len(known):
        return np.zeros(names.shape, np.int64)
    places = {name: number for number, name in enumerate(sorted(set(known)))}
    ranks = [places.get(name, len(places)) for name in flat]
    return np.asarray(ranks, np.int64).reshape(names.shape)
