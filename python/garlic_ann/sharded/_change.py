"""Changes of a sharded index: ``append`` writes delta segments of the same model, ``compact`` merges the segments of shards."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _garlic
from .._index import Index
from . import _manifest, _steps
from ._build import cleared_on_failure, short_hash, write_shards
from ._calibrate import calibrate
from ._engine import Engine
from ._manifest import Manifest, Segment, Shard
from ._place import Place, Settings, open_model, open_segment
from ._source import Block, Layout, pyarrow
from ._steps import Summary, plain_ids, write_points


def append(engine: Engine, blocks: list[tuple[Block, Any]], path: str | os.PathLike[str], columns: Any, threads: int | None) -> Manifest:
    """Adds points as delta segments of the same model. ``columns`` names the columns of vectors and identifiers."""
    folder = os.path.abspath(path)
    manifest, bytes_before = _manifest.read(folder)
    _manifest.check_files(folder, manifest)
    rows = sum(block.rows for block, _ in blocks)
    if rows == 0:
        return manifest
    settings = Settings(manifest.metric, manifest.seed, manifest.settings, threads)
    blocks = [(replace(block, start=block.start + manifest.next_id), table) for block, table in blocks]
    first, table = next((block, table) for block, table in blocks if block.rows)
    asked = (*columns, list(manifest.columns), manifest.metric)
    layout: Layout = engine.get([engine.call(_steps.first_layout, table, first, *asked)])[0]
    _check_alike(layout, manifest)
    share = manifest.held_out_share
    scans = [engine.call_many(3, _steps.scan_added, table, block, layout, share, manifest.metric) for block, table in blocks]
    facts, held_points, ids = [list(column) for column in zip(*scans)]
    del scans
    summaries: list[Summary] = engine.get(facts)
    if layout.ids is not None:
        _check_new(engine, [block for block, _ in blocks], ids, folder, manifest)
    del ids
    # Files of the same name have the same bytes: held-out points come after those that there were.
    content = (sum(s.content for s in summaries) % 2**64, rows, manifest.generation, manifest.held_out.sha256)
    part = f"-{short_hash(json.dumps(content))}"
    with cleared_on_failure(engine, folder, manifest.fingerprint, part) as place:
        held = engine.call(_steps.hold_out, place, part, manifest.held_out, *held_points)
        groups = manifest.cell_shards()
        written, radii = write_shards(
            engine, blocks, facts, layout, place, settings, groups, lambda n: place.shard(n, part), False
        )
        (held_out, _), = engine.get([held])
        old = manifest.spread
        total = old.added * old.added_points + radii
        changed = manifest.with_changes(
            next_id=manifest.next_id + rows if layout.ids is None else max(manifest.next_id, *(s.largest_id + 1 for s in summaries)),
            held_out=held_out,
            shards=[
                Shard(shard.cells, shard.segments if segment is None else [*shard.segments, segment])
                for shard, segment in zip(manifest.shards, written)
            ],
            spread=replace(old, added_points=old.added_points + rows, added=total / (old.added_points + rows)),
        )
        changed = replace(changed, calibration=calibrate(engine, folder, changed))
        _manifest.write(folder, changed, bytes_before)
    return changed


def _check_alike(layout: Layout, manifest: Manifest) -> None:
    if layout.dim != manifest.dim:
        raise ValueError(f"{layout.origin}: the vectors have dimension {layout.dim}, the index has {manifest.dim}")
    if layout.named != manifest.named:
        kind = "text" if manifest.named else "whole numbers"
        raise ValueError(f"{layout.origin}: the identifiers of this index are {kind}; name the column that has some with ids=")
    for field in layout.columns:
        if str(field.type) != manifest.columns[field.name]:
            raise ValueError(
                f"{layout.origin}: column `{field.name}` is of type {field.type}, that of the index of"
                f" {manifest.columns[field.name]}"
            )


def _check_new(engine: Engine, blocks: list[Block], ids: list[Any], folder: str, manifest: Manifest) -> None:
    """Fails for identifiers that the index has already."""
    segments = [segment for shard in manifest.shards for segment in shard.segments]
    for found in engine.get([engine.call(existing, folder, segment, *ids) for segment in segments]):
        if found is not None:
            number, row, id = found
            where = f"{blocks[number].name}: row {blocks[number].first + row}"
            raise ValueError(f"{where}: the identifier {id!r} exists already; nothing was appended")


def compact(engine: Engine, path: str | os.PathLike[str], threads: int | None) -> Manifest:
    """Merges the segments of each shard into one."""
    folder = os.path.abspath(path)
    manifest, bytes_before = _manifest.read(folder)
    _manifest.check_files(folder, manifest)
    several = [number for number, shard in enumerate(manifest.shards) if len(shard.segments) > 1]
    if not several:
        return manifest
    settings = Settings(manifest.metric, manifest.seed, manifest.settings, threads)
    part = f"-{short_hash(json.dumps([segment.sha256 for segment in manifest.segments()]))}"
    with cleared_on_failure(engine, folder, manifest.fingerprint, part) as place:
        shards = list(manifest.shards)
        merges = []
        for number in several:
            args = (place.shard(number, part), settings, shards[number].cells, shards[number].segments)
            merges.append(engine.call(merge, place, *args))
        for number, segment in zip(several, engine.get(merges)):
            shards[number] = Shard(shards[number].cells, [segment])
        changed = manifest.with_changes(shards=shards)
        changed = replace(changed, calibration=calibrate(engine, folder, changed))
        _manifest.write(folder, changed, bytes_before)
    return changed


def merge(place: Place, file: str, settings: Settings, group: list[int], segments: list[Segment]) -> Segment:
    """Writes the points of all segments of a shard as one."""
    pa = pyarrow()
    parts = [open_segment(place.folder, segment) for segment in segments]
    tables = [pa.table(part.table()) for part in parts]
    ids = pa.concat_arrays([table.column("id").combine_chunks() for table in tables])
    ids = ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.large_string())
    vectors = np.concatenate([part.get(plain_ids(table.column("id"))) for part, table in zip(parts, tables)])
    columns = pa.concat_tables([table.drop_columns(["id"]) for table in tables])
    order = np.asarray(pa.compute.sort_indices(ids))
    vectors = np.ascontiguousarray(vectors[order])
    return write_points(
        place,
        file,
        settings,
        ids.take(pa.array(order)),
        vectors,
        _cells_within(open_model(place.path(place.model())), vectors, group),
        columns.take(pa.array(order)) if columns.num_columns else None,
    )


def _cells_within(model: Index, vectors: NDArray[np.float32], group: list[int]) -> NDArray[np.uint32]:
    """Cells of the points of a shard. A point may be beyond its border by rounding: it then takes a cell of the shard."""
    cells, _ = _garlic.assign(model._have(), vectors)
    outside = ~np.isin(cells, group)
    cells[outside] = min(group)
    return cells


def existing(folder: str, segment: Segment, *parts: Any) -> tuple[int, int, Any] | None:
    """An identifier that a segment has already, after the numbers of its part and row; ``None`` if it has none of them."""
    index = open_segment(folder, segment)
    for number, ids in enumerate(parts):
        if len(ids):
            there = index.contains(plain_ids(ids))
            if there.any():
                row = int(there.argmax())
                return number, row, ids[row].as_py()
    return None
