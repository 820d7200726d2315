"""The steps of a build. Each is a function of its arguments and of files that never change, so that it may run anywhere, and
twice: a task that is repeated writes the same bytes under the same name.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _garlic
from .._index import Index, build, open
from . import _hash
from ._groups import group_cells
from ._manifest import Segment, check_file, describe, write_file
from ._place import Place, Settings, is_complete, open_model
from ._source import Block, Layout, Points, layout_of, pyarrow, read_points

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Shares:
    """Shares of the points that are held out for calibration, and that the model is trained on."""

    held_out: float
    sample: float


@dataclass(frozen=True)
class Summary:
    """What one block adds to the facts about the data."""

    rows: int
    content: int
    largest_id: int


@dataclass(frozen=True)
class Claims:
    """Identifiers of one block that one shard checks for repeats, and their rows in what ``name`` names."""

    name: str
    rows: NDArray[np.int64]
    ids: pa.Array


@dataclass(frozen=True)
class Piece:
    """Points of one block for one shard."""

    ids: pa.Array
    cells: NDArray[np.uint32]
    vectors: NDArray[np.float32]
    columns: pa.Table
    claims: Claims


@dataclass(frozen=True)
class Model:
    """The trained model, and the shard of each of its cells."""

    segment: Segment
    groups: list[int]


def first_layout(
    table: Any, block: Block, vectors: str | None, ids: str | None, names: Sequence[str] | None, metric: str
) -> Layout:
    """The layout, once an index has taken a few of its rows: types that cannot be stored fail here."""
    rows = block.read(table)
    layout = layout_of(block, rows, vectors, ids, names)
    few = rows.slice(0, 8)
    points = read_points(replace(block, parts=None), few, layout)
    try:
        columns = points.columns if layout.columns else None
        # The rows themselves are checked when blocks are scanned, which names them.
        Index(layout.dim, metric=metric).add(np.ones_like(points.vectors), columns=columns)  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"{block.name}: {error}") from None
    return layout


def scan(table: Any, block: Block, layout: Layout, shares: Shares, metric: str) -> tuple[Summary, Points, Points]:
    """Checks a block. Returns facts about it, the points to hold out and those to train on."""
    summary, points, chance = _scanned(table, block, layout, metric)
    held = np.flatnonzero(chance < shares.held_out)
    sample = np.flatnonzero((chance >= shares.held_out) & (chance < shares.held_out + shares.sample))
    return summary, _only_vectors(points, held), _only_vectors(points, sample)


def scan_added(table: Any, block: Block, layout: Layout, share: float, metric: str) -> tuple[Summary, Points, pa.Array]:
    """Checks a block to append. Returns facts about it, the points to hold out and all identifiers."""
    summary, points, chance = _scanned(table, block, layout, metric)
    return summary, _only_vectors(points, np.flatnonzero(chance < share)), points.ids


def _scanned(table: Any, block: Block, layout: Layout, metric: str) -> tuple[Summary, Points, NDArray[np.float64]]:
    """Facts about a block, its points, and a number from 0 to 1 for each that chooses samples."""
    points = read_points(block, table, layout)
    if len(points.ids) != block.rows:
        raise _changed(block)
    if metric == "cosine" and not points.vectors.any(axis=1).all():
        row = block.first + int((~points.vectors.any(axis=1)).argmax())
        raise ValueError(f"{block.name}: row {row}: the vector is zero, and the metric cosine needs a direction")
    largest = -1 if layout.named or not len(points.ids) else int(np.asarray(points.ids).max())
    summary = Summary(len(points.vectors), _hash.content(points), largest)
    return summary, points, _hash.of_ids(points.ids, 1).astype(np.float64) / 2.0**64


def _changed(block: Block) -> Exception:
    return RuntimeError(f"{block.name}: the rows changed while they were read; try again when nobody writes them")


def _only_vectors(points: Points, rows: NDArray[np.intp]) -> Points:
    return Points(points.ids.take(pyarrow().array(rows)), points.vectors[rows], pyarrow().table({}))


def train(place: Place, settings: Settings, cells: int, shards: int, resume: bool, *sample: Points) -> Model:
    """Trains the model on the sample and writes it; groups its cells into shards of about equally many points."""
    points = _sorted(sample)
    file = place.model()
    if not (resume and is_complete(place.path(file))):
        config = {**settings.config, "cells": min(cells, len(points.vectors)), "graph": "off"}
        dim = points.vectors.shape[1]
        index = Index(dim, settings.metric, seed=settings.seed, threads=settings.threads, **config)  # type: ignore[arg-type]
        index.train(points.vectors)
        index.save(place.path(file))
    model = open_model(place.path(file))
    labels, _ = _garlic.assign(model._have(), points.vectors)
    means = _garlic.shapes(model._have())["means"]
    weights = np.bincount(labels, minlength=len(means))
    return Model(describe(place.folder, file, 0), group_cells(means, weights, shards))


def hold_out(place: Place, part: str, before: Segment | None, *held: Points) -> tuple[Segment, float]:
    """Writes the held-out points, after those of ``before``. Returns the mean squared distance from their cells."""
    points = _sorted(held)
    ids: NDArray[Any] = np.asarray(plain_ids(points.ids))
    vectors = points.vectors
    if before is not None:
        old_ids, old_vectors = read_held_out(place.folder, before)
        ids, vectors = np.concatenate([old_ids, ids]), np.concatenate([old_vectors, vectors])
    buffer = io.BytesIO()
    np.savez(buffer, ids=ids, vectors=vectors)
    write_file(place.path(place.held_out(part)), buffer.getvalue())
    _, radii = _garlic.assign(open_model(place.path(place.model()))._have(), points.vectors)
    spread = float(radii.mean(dtype=np.float64)) if len(radii) else 0.0
    return describe(place.folder, place.held_out(part), len(ids)), spread


def read_held_out(folder: str, segment: Segment) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Identifiers and vectors of the held-out points."""
    check_file(folder, segment)
    with np.load(os.path.join(folder, segment.file)) as data:
        return data["ids"], data["vectors"]


def split(
    table: Any, block: Block, layout: Layout, place: Place, groups: list[int], wanted: list[int], summary: Summary
) -> list[Any]:
    """Assigns the points of a block to cells. Returns a piece for each shard that is wanted, and the sum of squared distances of
    the points from their cells.
    """
    points = read_points(block, table, layout)
    # Held-out points and the fingerprint are of the rows that were read first.
    if _hash.content(points) != summary.content:
        raise _changed(block)
    cells, radii = _garlic.assign(open_model(place.path(place.model()))._have(), points.vectors)
    shard_of = np.asarray(groups)[cells] if len(cells) else np.empty(0, np.int64)
    shards = max(groups) + 1
    claimed_by = (_hash.of_ids(points.ids, 2) % np.uint64(shards)).astype(np.int64)
    pieces: list[Any] = []
    for shard in wanted:
        rows = np.flatnonzero(shard_of == shard)
        numbers = pyarrow().array(rows)
        claimed = np.flatnonzero(claimed_by == shard)
        claims = Claims(block.name, block.first + claimed, points.ids.take(pyarrow().array(claimed)))
        columns = points.columns.take(numbers) if layout.columns else points.columns
        pieces.append(Piece(points.ids.take(numbers), cells[rows], points.vectors[rows], columns, claims))
    return [*pieces, float(radii.sum(dtype=np.float64))]


def write(place: Place, file: str, settings: Settings, *pieces: Piece) -> Segment | None:
    """Builds the index of a shard's points, in the order of their identifiers, and writes it; none without points."""
    pa = pyarrow()
    _check_unique([piece.claims for piece in pieces])
    pieces = tuple(piece for piece in pieces if len(piece.ids))
    if not pieces:
        return None
    ids = pa.concat_arrays([piece.ids for piece in pieces])
    order = np.asarray(pa.compute.sort_indices(ids))
    columns = pa.concat_tables([piece.columns for piece in pieces])
    return write_points(
        place,
        file,
        settings,
        ids.take(pa.array(order)),
        np.concatenate([piece.vectors for piece in pieces])[order],
        np.concatenate([piece.cells for piece in pieces])[order],
        columns.take(pa.array(order)) if columns.num_columns else None,
    )


def write_points(
    place: Place,
    file: str,
    settings: Settings,
    ids: pa.Array,
    vectors: NDArray[np.float32],
    cells: NDArray[np.uint32],
    columns: pa.Table | None,
) -> Segment:
    """Writes a segment of sorted points."""
    index = build(
        vectors,
        plain_ids(ids),
        columns=columns,
        metric=settings.metric,  # type: ignore[arg-type]
        seed=settings.seed,
        threads=settings.threads,
        partition=cells,
        **settings.config,
    )
    index.save(place.path(file))
    return describe(place.folder, file, len(index))


def finished(place: Place, file: str) -> Segment | None:
    """A file of an earlier build, if it is complete."""
    if not is_complete(place.path(file)):
        return None
    return describe(place.folder, file, len(open(place.path(file))))


def _sorted(parts: Sequence[Points]) -> Points:
    pa = pyarrow()
    ids = pa.concat_arrays([part.ids for part in parts])
    order = np.asarray(pa.compute.sort_indices(ids))
    vectors = np.concatenate([part.vectors for part in parts])[order]
    return Points(ids.take(pa.array(order)), vectors, pa.table({}))


def _check_unique(claims: Sequence[Claims]) -> None:
    pa = pyarrow()
    counts = pa.concat_arrays([part.ids for part in claims]).value_counts()
    repeated = np.asarray(counts.field("counts")) > 1
    if repeated.any():
        which = counts.field("values")[int(repeated.argmax())].as_py()
        same = [np.flatnonzero(np.asarray(pa.compute.equal(part.ids, which))) for part in claims]
        places = [f"{part.name}: row {row}" for part, at in zip(claims, same) for row in part.rows[at]]
        raise ValueError(
            f"{places[1]}: the identifier {which!r} occurs more than once, first in {places[0]}; each point needs one of its own"
        )


def plain_ids(ids: Any) -> Any:
    """Identifiers as an index takes them."""
    if pyarrow().types.is_integer(ids.type):
        return np.asarray(ids)
    return ids.to_pylist()
