"""The manifest of a sharded index: the one file that says which files belong together.

All other files never change and have the fingerprint of their build in their names, so builds at one place do not mix. The
manifest is replaced atomically, and last.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .._garlic import FormatError
from ._lock import alone

NAME = "manifest.json"
FORMAT = "garlic-shards"
VERSION = 1
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True)
class Segment:
    """An immutable index file. A shard has one from the build, and one from each ``append`` that had points for it."""

    file: str
    points: int
    size: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """The points of some cells of the model."""

    cells: list[int]
    segments: list[Segment]

    @property
    def points(self) -> int:
        return sum(segment.points for segment in self.segments)


@dataclass(frozen=True)
class Calibration:
    """How many cells to route by, for numbers of neighbours and recall targets: ``cells[k][target]``.

    Shards are searched with the recall target ``within[target]``. ``measured`` is the recall that held-out points had, and
    ``visited`` the mean number of shards that they were searched in. ``complete`` says whether the number of cells was enough:
    if not, all shards are searched exactly.
    """

    queries: int = 0
    neighbors: list[int] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    cells: list[list[int]] = field(default_factory=list)
    measured: list[list[float]] = field(default_factory=list)
    visited: list[list[float]] = field(default_factory=list)
    complete: list[list[bool]] = field(default_factory=list)


@dataclass(frozen=True)
class Spread:
    """Mean squared distances of points from their cells: of those held out of the build, and of those appended."""

    built_points: int = 0
    built: float = 0.0
    added_points: int = 0
    added: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` holds."""

    fingerprint: str
    generation: int
    metric: str
    dim: int
    named: bool
    next_id: int
    columns: dict[str, str]
    recall: float
    seed: int
    settings: dict[str, Any]
    model: Segment
    held_out: Segment
    held_out_share: float
    shards: list[Shard]
    calibration: Calibration
    spread: Spread

    @property
    def points(self) -> int:
        return sum(shard.points for shard in self.shards)

    def segments(self) -> Iterator[Segment]:
        """All files that the index needs, the model first."""
        yield self.model
        yield self.held_out
        for shard in self.shards:
            yield from shard.segments

    def cell_shards(self) -> list[int]:
        """The shard of each cell."""
        owners = {cell: number for number, shard in enumerate(self.shards) for cell in shard.cells}
        return [owners[cell] for cell in range(len(owners))]

    def with_changes(self, **changes: Any) -> Manifest:
        """The next generation of the same index."""
        return replace(self, generation=self.generation + 1, **changes)

    def to_bytes(self) -> bytes:
        body = {"format": FORMAT, "version": VERSION, "points": self.points, **asdict(self)}
        return (json.dumps(body, indent=1) + "\n").encode()


def read(path: str | os.PathLike[str]) -> tuple[Manifest, bytes]:
    """The manifest of a folder, and its bytes, which tell whether it has changed."""
    place = os.path.join(path, NAME)
    try:
        with open(place, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{os.fspath(path)}: no sharded index is here ({NAME} is missing); a build writes it last, so one may be going on"
        ) from None
    return parse(data, place)


def parse(data: bytes, place: str) -> tuple[Manifest, bytes]:
    """The manifest of these bytes, and the bytes; errors name ``place``."""
    try:
        body = json.loads(data)
        if body.pop("format") != FORMAT:
            raise FormatError(f"{place}: is not the manifest of a sharded index")
        version = body.pop("version")
        if version != VERSION:
            raise FormatError(f"{place}: is of version {version}; this release reads version {VERSION}")
        points = body.pop("points")
        shards = [Shard(s["cells"], [Segment(**f) for f in s["segments"]]) for s in body.pop("shards")]
        parts = {"model": Segment, "held_out": Segment, "calibration": Calibration, "spread": Spread}
        made = {name: kind(**body.pop(name)) for name, kind in parts.items()}
        manifest = Manifest(shards=shards, **made, **body)
        cells = sorted(cell for shard in shards for cell in shard.cells)
        names = [segment.file for segment in manifest.segments()]
        if cells != list(range(len(cells))) or points != manifest.points:
            raise FormatError(f"{place}: is damaged: cells or points do not add up")
        if any(os.path.basename(name) != name or not name for name in names):
            raise FormatError(f"{place}: is damaged: it names files outside of its folder")
        return manifest, data
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FormatError(f"{place}: is damaged ({error!r}); restore it, or build the index again") from None


def write(path: str | os.PathLike[str], manifest: Manifest, before: bytes | None = None) -> None:
    """Makes this manifest the index of the folder, if all its files are there.

    With ``before``, the manifest must still have these bytes: of two changes at once, the second one fails.
    """
    with alone(os.path.join(path, f".{NAME}.lock")):
        # Within the lock, so that a build that fails at the same time deletes none of them.
        check_files(path, manifest)
        if before is not None and read(path)[1] != before:
            raise RuntimeError(
                f"{os.fspath(path)}: the index was changed by someone else meanwhile; nothing was changed here, try again"
            )
        write_file(os.path.join(path, NAME), manifest.to_bytes())


def write_file(place: str, data: bytes) -> None:
    """Replaces a file atomically and durably."""
    folder = os.path.dirname(place)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(place)}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def describe(path: str | os.PathLike[str], file: str, points: int) -> Segment:
    """A finished file as the manifest names it."""
    digest = hashlib.sha256()
    size = 0
    with open(os.path.join(path, file), "rb") as stream:
        while data := stream.read(_HASHED_BYTES):
            digest.update(data)
            size += len(data)
    return Segment(file, points, size, digest.hexdigest())


def check_files(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Fails for a file that is missing or has another size."""
    for segment in manifest.segments():
        check_file(path, segment)


def check_file(path: str | os.PathLike[str], segment: Segment) -> None:
    place = os.path.join(path, segment.file)
    try:
        size = os.stat(place).st_size
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{place}: this file of the sharded index is lost; restore it, or build the index again with resume=True"
        ) from None
    if size != segment.size:
        raise FormatError(
            f"{place}: this file of the sharded index is damaged: it has {size} bytes, not {segment.size};"
            " restore it, or delete it and build the index again with resume=True"
        )
