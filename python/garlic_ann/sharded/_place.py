"""The folder of a sharded index, and its files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import _garlic
from .._garlic import FormatError
from .._index import Index, open
from ._manifest import Segment, check_file


@dataclass(frozen=True)
class Settings:
    """Parameters of the indexes of a build."""

    metric: str
    seed: int
    config: dict[str, Any]
    threads: int | None = None


@dataclass(frozen=True)
class Place:
    """The folder, and the beginning of the names of a build's files."""

    folder: str
    fingerprint: str

    def model(self) -> str:
        return f"{self.fingerprint}-model.garlic"

    def held_out(self, part: str = "") -> str:
        return f"{self.fingerprint}{part}-held-out.npz"

    def shard(self, number: int, part: str = "") -> str:
        return f"{self.fingerprint}-{number:05}{part}.garlic"

    def path(self, file: str) -> str:
        return os.path.join(self.folder, file)


@lru_cache(maxsize=4)
def _opened(path: str, identity: tuple[int, int, int]) -> Index:
    return open(path)


def open_model(path: str) -> Index:
    """A model file, mapped; the tasks of one process share it."""
    found = os.stat(path)
    return _opened(path, (found.st_ino, found.st_size, found.st_mtime_ns))


def open_segment(folder: str, segment: Segment) -> Index:
    """A file of the index, mapped, if it is there and whole."""
    check_file(folder, segment)
    place = os.path.join(folder, segment.file)
    try:
        return open(place)
    except FormatError as error:
        raise FormatError(f"{place}: this file of the sharded index is damaged ({error})") from None


def is_complete(path: str) -> bool:
    """Whether a file is an index, every byte checked."""
    try:
        _garlic.verify(path)
    except (OSError, ValueError):
        return False
    return True
