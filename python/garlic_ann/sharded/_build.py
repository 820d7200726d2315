"""Builds a sharded index: sample, train, split by cell, write shards, calibrate, and the manifest last."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _garlic
from .._index import _settings
from . import _manifest, _steps
from ._calibrate import calibrate
from ._engine import Engine
from ._lock import together
from ._manifest import Calibration, Manifest, Shard, Spread
from ._place import Place, Settings
from ._source import Block, Layout
from ._steps import Shares, Summary

# Points of a shard, unless the number of shards is given.
SHARD_POINTS = 1_000_000
# Points of the sample for each cell, and at least.
_SAMPLED_PER_CELL = 256
_LEAST_SAMPLE = 20_000
_HELD_OUT = 400
# Fewer points are not worth routing: all shards are searched.
_LEAST_ROUTED = 1000


@dataclass(frozen=True)
class Options:
    """What the caller of a build asks for."""

    vectors: str | None
    ids: str | None
    columns: Sequence[str] | None
    shards: int | None
    cells: int | None
    sample: int | None
    recall: float | None
    resume: bool
    settings: Settings


def build(engine: Engine, blocks: list[tuple[Block, Any]], path: str | os.PathLike[str], options: Options) -> Manifest:
    """Builds the index of some blocks in the folder ``path``."""
    options = _plain_options(options)
    settings = _checked(options)
    rows = sum(block.rows for block, _ in blocks)
    if rows == 0:
        raise ValueError("the data have no rows; an index needs at least one point")
    first, table = next((block, table) for block, table in blocks if block.rows)
    asked = (options.vectors, options.ids, options.columns, settings.metric)
    layout: Layout = engine.get([engine.call(_steps.first_layout, table, first, *asked)])[0]
    shards, cells, shares = _sizes(rows, options)
    scans = [engine.call_many(3, _steps.scan, table, block, layout, shares, settings.metric) for block, table in blocks]
    summaries: list[Summary] = engine.get([scan[0] for scan in scans])
    fingerprint = _fingerprint(layout, summaries, (shards, cells, shares), settings)
    folder = os.path.abspath(path)
    with cleared_on_failure(engine, folder, fingerprint, fingerprint, options.resume) as place:
        samples = [scan[2] for scan in scans]
        model, = engine.get([engine.call(_steps.train, place, settings, cells, shards, options.resume, *samples)])
        held = engine.call(_steps.hold_out, place, "", None, *[scan[1] for scan in scans])
        groups: list[int] = model.groups
        facts = [scan[0] for scan in scans]
        written, _ = write_shards(engine, blocks, facts, layout, place, settings, groups, place.shard, options.resume)
        (held_out, spread), = engine.get([held])
        manifest = Manifest(
            fingerprint=place.fingerprint,
            generation=0,
            metric=settings.metric,
            dim=layout.dim,
            named=layout.named,
            next_id=rows if layout.named else max(s.largest_id for s in summaries) + 1,
            columns={field.name: str(field.type) for field in layout.columns},
            recall=float(settings.config["recall"]),
            seed=settings.seed,
            settings=settings.config,
            model=model.segment,
            held_out=held_out,
            held_out_share=shares.held_out,
            shards=[
                Shard([cell for cell, group in enumerate(groups) if group == number], [] if segment is None else [segment])
                for number, segment in enumerate(written)
            ],
            calibration=Calibration(),
            spread=Spread(built_points=rows, built=spread),
        )
        manifest = replace(manifest, calibration=calibrate(engine, folder, manifest))
        _manifest.write(folder, manifest)
    return manifest


def _plain_options(options: Options) -> Options:
    numbers = ("shards", "cells", "sample", "recall")
    given = options.settings
    settings = Settings(given.metric, _plain(given.seed), {k: _plain(v) for k, v in given.config.items()}, _plain(given.threads))
    return replace(options, settings=settings, **{name: _plain(getattr(options, name)) for name in numbers})


def _checked(options: Options) -> Settings:
    """The settings with the default recall target, once the library has taken them."""
    config = dict(options.settings.config)
    refused = {"cells": "give cells= as a parameter of its own", "partition": "a build finds the cells itself"}
    for name, why in refused.items():
        if name in config:
            raise ValueError(f"parameter `{name}`: {why}")
    for name, value in (("shards", options.shards), ("cells", options.cells), ("sample", options.sample)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"parameter `{name}` is {value}: must be a whole number from 1 on")
    config["recall"] = 0.95 if options.recall is None else options.recall
    try:
        # The manifest, which is written last, has to hold them.
        json.dumps([config, options.settings.seed])
    except TypeError as error:
        raise ValueError(f"parameters must be numbers or text: {error}") from None
    metric = _garlic.check_settings("default", _settings(options.settings.metric, options.settings.seed, config))
    if float(config.get("spill", 0)) > 0:
        raise ValueError("parameter `spill`: points of a sharded index are stored once")
    return Settings(metric, options.settings.seed, config, options.settings.threads)


def _plain(value: Any) -> Any:
    """A value of NumPy as one of Python."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _sizes(rows: int, options: Options) -> tuple[int, int, Shares]:
    """Numbers of shards and cells, and the shares of the points to hold out and to train on."""
    shards = options.shards or math.ceil(rows / SHARD_POINTS)
    # Each shard gets as many cells as an index of its points would have.
    cells = options.cells or max(round(math.sqrt(rows * shards) / 4), 8 * shards if shards > 1 else 1)
    if cells < shards:
        raise ValueError(f"there are {shards} shards, but only {cells} cells; a shard needs at least one")
    held_out = min(_HELD_OUT / rows, 0.1) if rows >= _LEAST_ROUTED else 0.0
    sample = options.sample or max(_LEAST_SAMPLE, _SAMPLED_PER_CELL * cells)
    return shards, cells, Shares(held_out, min(sample / rows, 1.0))


def _fingerprint(layout: Layout, summaries: list[Summary], sizes: Any, settings: Settings) -> str:
    """The fingerprint: builds of the same data and parameters have the same, and no others."""
    shards, cells, shares = sizes
    facts = {
        "version": (_manifest.VERSION, _garlic.__version__),
        "data": (sum(s.rows for s in summaries), sum(s.content for s in summaries) % 2**64, layout.dim),
        "columns": [(field.name, str(field.type)) for field in layout.columns],
        "sizes": (shards, cells, shares.held_out, shares.sample),
        "settings": (settings.metric, settings.seed, sorted((k, repr(v)) for k, v in settings.config.items())),
    }
    return short_hash(json.dumps(facts))


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_shards(
    engine: Engine,
    blocks: list[tuple[Block, Any]],
    facts: list[Any],
    layout: Layout,
    place: Place,
    settings: Settings,
    groups: list[int],
    name: Callable[[int], str],
    resume: bool,
) -> tuple[list[Any], float]:
    """Segments of all shards, ``None`` for a shard without points; and the sum of squared distances of points from their cells.

    ``facts`` has the summary of each block, of the time when it was read first.
    """
    shards = max(groups) + 1
    numbers = range(shards)
    found = engine.get([engine.call(_steps.finished, place, name(n)) for n in numbers]) if resume else [None] * shards
    wanted = [n for n in numbers if found[n] is None]
    if not wanted:
        return found, 0.0
    pieces = [
        engine.call_many(len(wanted) + 1, _steps.split, table, block, layout, place, groups, wanted, summary)
        for (block, table), summary in zip(blocks, facts)
    ]
    radii = [piece.pop() for piece in pieces]
    writes = [
        engine.call(_steps.write, place, name(n), settings, *[piece[at] for piece in pieces]) for at, n in enumerate(wanted)
    ]
    del pieces
    for number, segment in zip(wanted, engine.get(writes)):
        found[number] = segment
    return found, math.fsum(engine.get(radii))


@contextmanager
def cleared_on_failure(engine: Engine, folder: str, fingerprint: str, mark: str, keep: bool = False) -> Iterator[Place]:
    """The place of a build's files, whose names contain ``mark``. A build that fails leaves none of them behind, unless
    finished shards shall be used again.
    """
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    try:
        with together(os.path.join(folder, f".{mark}-build.lock")) as is_last:
            before = set(os.listdir(folder))
            try:
                yield Place(folder, fingerprint)
            except BaseException:
                engine.stop()
                # The same build may be going on elsewhere, with the same files.
                if not keep and is_last():
                    for name in set(os.listdir(folder)) - before - _named(folder):
                        if mark in name:
                            os.unlink(os.path.join(folder, name))
                raise
    except BaseException:
        if is_new and not os.listdir(folder):
            os.rmdir(folder)
        raise


def _named(folder: str) -> set[str]:
    """Files of the index that is there: the same build may have been finished by someone else at the same time."""
    try:
        return {segment.file for segment in _manifest.read(folder)[0].segments()}
    except (OSError, ValueError):
        return set()
