"""An index directory, whose changes survive the end of the process."""

from __future__ import annotations

import json
import os
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike, NDArray

from . import _garlic
from ._arrays import own_vectors
from ._garlic import Handle
from ._index import Index
from ._options import AllParameters, IndexParameters, Metric
from ._search import Columns, Identifiers, Searchable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Live(Searchable):
    """An index in a directory. Every change is in a log before searches see it.

    There is one writer at a time and any number of readers; ``docs/guide/live.md`` states the promises. Close it, or use it
    in a ``with`` block, to let another process write. A forked process can search what its parent opened, but not change it.

    It may begin empty, with ``dim=``. Like :class:`Index` it trains itself as it grows, but in the background: until the
    training is done, searches and changes use the old cells, and searches do more work to meet their targets.
    :meth:`training` reports the training, and :meth:`wait` waits for it.

    >>> import tempfile, numpy as np, garlic_ann as garlic
    >>> place = tempfile.TemporaryDirectory()
    >>> x = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    >>> with garlic.Live.create(place.name + "/index", garlic.build(x)) as live:
    ...     live.add(x[:5] + 1, ids=range(1000, 1005))
    ...     live.remove([0])
    array([1000, 1001, 1002, 1003, 1004])
    1
    >>> with garlic.Live.open(place.name + "/index", read_only=True) as live:
    ...     len(live)
    304
    >>> place.cleanup()
    """

    def __init__(self) -> None:
        raise TypeError("use Live.create or Live.open")

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        index: Index | None = None,
        *,
        dim: int | None = None,
        metric: Metric | None = None,
        seed: int | None = None,
        sync: bool = True,
        **config: Unpack[IndexParameters],
    ) -> Live:
        """Makes an index directory that contains ``index`` and opens it for writing.

        To begin empty, give ``dim``, the dimension of the vectors, instead of an index; ``metric``, ``seed`` and other
        parameters are then those of :class:`Index`. With ``sync=False`` a batch survives the end of the process, but not
        a power cut before the next :meth:`sync`.

        >>> import tempfile, numpy as np, garlic_ann as garlic
        >>> place = tempfile.TemporaryDirectory()
        >>> with garlic.Live.create(place.name + "/index", dim=3, metric="cosine") as live:
        ...     live.add(np.eye(3))
        ...     live
        array([0, 1, 2])
        Live(3 x 3, cosine)
        >>> place.cleanup()
        """
        parameters = cast("AllParameters", dict(config))
        if metric is not None:
            parameters["metric"] = metric
        if seed is not None:
            parameters["seed"] = seed
        if index is None:
            if dim is None:
                raise TypeError("give an index, or the dimension of an empty one as dim=")
            index = Index(dim, **parameters)
        elif dim is not None or parameters:
            raise TypeError("an index has its own dimension and parameters; leave out dim= and all others")
        return cls._of(_garlic.live_create(path, index._have(), sync))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, read_only: bool = False, sync: bool = True
    ) -> Live:
        """Opens an index directory; ``OSError`` if another writer has it open."""
        return cls._of(_garlic.live_open(path, read_only, sync))

    @classmethod
    def _of(cls, handle: Handle) -> Live:
        live = cls.__new__(cls)
        live._handle = handle
        _opened.add(live)
        return live

    def _have(self) -> Handle:
        if self._handle is None:
            raise ValueError("the index directory has been closed; open it again")
        return self._handle

    _peek = _have

    def add(
        self, x: ArrayLike, ids: Identifiers | None = None, columns: Columns | None = None
    ) -> NDArray[Any]:
        """Adds vectors, all or none, and returns their identifiers; see :meth:`Index.add`.

        Identifiers and columns are in the log together with the vectors.

        A training that this makes due runs in the background. If points come faster than the training can follow, this
        method waits for it.
        """
        return self._have().add(own_vectors(x), ids, columns)

    def compact(self) -> None:
        """Drops removed points, stores the others as a build would, and writes a checkpoint."""
        self._have().compact()

    def checkpoint(self) -> None:
        """Writes the whole index and begins an empty log, so that opening has nothing to replay."""
        self._have().checkpoint()

    def sync(self) -> None:
        """Forces all batches to the device; needed only with ``sync=False``."""
        self._have().sync()

    def status(self) -> dict[str, Any] | None:
        """The state of the directory; ``None`` if it is open for reading only."""
        status = self._have().status()
        return None if status is None else json.loads(status)

    def training(self) -> dict[str, Any]:
        """Whether a training is running (``running``), and why the last one failed, if it did (``failed``)."""
        running, failed = self._have().training()
        return {"running": running, "failed": failed}

    def wait(self) -> None:
        """Waits for a running training. Ctrl-C ends the waiting, not the training."""
        self._have().wait()

    def snapshot(self) -> Index:
        """The index as it is now, in memory. The two change independently afterwards."""
        return Index._of(self._have().copy())

    def close(self) -> None:
        """Closes the directory once running searches have ended.

        A running training is given up and begins again when the directory is opened for writing. Call :meth:`wait` first
        to keep it.
        """
        self._handle = None

    def __enter__(self) -> Live:
        self._have()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "Live(closed)"
        return f"Live({len(self)} x {self.dim}, {self.metric})"


_opened: weakref.WeakSet[Live] = weakref.WeakSet()


def _after_fork() -> None:
    """Releases the copies of locks in a child process, so that the end of its parent frees them."""
    for live in list(_opened):
        if live._handle is not None:
            live._handle.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
