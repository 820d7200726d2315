"""Locks in the folder of an index. The system releases those of a process that dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def alone(place: str) -> Iterator[None]:
    """Waits until nobody else holds the lock of this file."""
    import fcntl

    descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def together(place: str) -> Iterator[Callable[[], bool]]:
    """Held by any number of builds at once. The last one deletes the file; the function that is given says whether this is it,
    and then nobody can begin before the end.
    """
    import fcntl

    descriptor = _shared(place)

    def is_last() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # The lock is free for a moment while it is changed: another one may have been the last and deleted the file.
        return _is_at(descriptor, place)

    try:
        yield is_last
    finally:
        if is_last():
            os.unlink(place)
        os.close(descriptor)


def _shared(place: str) -> int:
    """A descriptor that shares the lock of the file that has this name now, not of a file that was deleted meanwhile."""
    import fcntl

    while True:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if _is_at(descriptor, place):
            return descriptor
        os.close(descriptor)


def _is_at(descriptor: int, place: str) -> bool:
    try:
        return os.path.samestat(os.stat(place), os.fstat(descriptor))
    except FileNotFoundError:
        return False
