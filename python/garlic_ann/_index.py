"""An index in memory or in a mapped file."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _garlic
from ._arrays import cell_numbers, identifiers, objects, own_vectors, source, vectors
from ._options import IndexParameters, Metric, Parameters, Preset
from ._progress import Progress, Report
from ._search import Columns, Identifiers, Searchable

if TYPE_CHECKING:
    from typing_extensions import Unpack

# What tells whether a file is still the one that was opened: device, number, size and time of the last change.
Identity = tuple[int, int, int, int]


class Index(Searchable):
    """An index for vectors of dimension ``dim``: ``train``, ``add``, ``search``, as in faiss.

    The index begins empty. Points may come in any order and in batches of any size; recall targets stay met. Up to 4,096
    points, every search reads all of them. Beyond that the index trains itself, and again each time it has doubled, before
    the ``add`` that made it due returns. :meth:`train` fits the cells to a sample before the first point comes.
    :func:`build` makes an index of all points in one call. So does a first ``add`` of more than 4,096 points.

    Parameters
    ----------
    dim
        Dimension of the vectors.
    metric
        ``euclidean`` (or ``l2``), ``cosine`` (``cos``; one minus the cosine) or ``inner_product`` (``ip``, ``dot``; minus the
        inner product).
    preset
        ``default``, or ``paper`` for the published method. An index of the published method is built by its first ``add``; later ones
        refit the cells that points join.
    seed
        Seed of every random choice. The same vectors, parameters and seed give the same index.
    threads
        Worker threads of ``train`` and of a build. The default is all cores. The index does not depend on the number. An
        index that trains itself uses all cores.
    progress
        ``True`` shows the progress of ``train`` and of a build. A function is called with the stage, the steps done and
        the number of steps.
    config
        Other parameters by name; :func:`parameters` lists them.

    Examples
    --------
    >>> import numpy as np, garlic_ann as garlic
    >>> x = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float32)
    >>> index = garlic.Index(8)
    >>> index.search(x[0], k=1)[1].tolist()
    [-1]
    >>> first = index.add(x[:100])
    >>> rest = index.add(x[100:])
    >>> len(index)
    500
    >>> index.add(x[:2] + 10)
    array([500, 501])
    >>> index.remove([0])
    1
    >>> index
    Index(501 x 8, euclidean)
    """

    def __init__(
        self,
        dim: int,
        metric: Metric = "euclidean",
        preset: Preset = "default",
        seed: int = 0,
        *,
        threads: int | None = None,
        progress: bool | Report = False,
        **config: Unpack[IndexParameters],
    ) -> None:
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
            raise ValueError(f"the dimension is {dim!r}; it must be a whole number from 1 on")
        self._dim = int(dim)
        self._preset: str = preset
        self._settings = _settings(metric, seed, config)
        self._threads: int | None = threads
        self._progress: bool | Report = progress
        # Of an index that only a build trains; the handle knows about others.
        self._trained = False
        self._first = threading.Lock()
        if threads is not None and threads < 1:
            raise ValueError(f"parameter `threads` is {threads}: must be at least 1")
        _garlic.check_settings(preset, self._settings)

    def _begin(self) -> _garlic.Handle | None:
        """The handle, of an index without points if there was none; ``None`` if only a build can make one."""
        if self._handle is None:
            self._handle = _garlic.empty(self._dim, self._preset, self._settings)
        return self._handle

    def _have(self) -> _garlic.Handle:
        if self._handle is None:
            with self._first:
                self._begin()
        return super()._have()

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._dim

    @property
    def metric(self) -> str:
        """``euclidean``, ``cosine`` or ``inner_product``."""
        if self._handle is not None:
            return self._handle.metric
        return _garlic.check_settings(self._preset, self._settings)

    @property
    def is_trained(self) -> bool:
        """Whether ``train`` or ``add`` has been called. ``add`` does not need it."""
        return self._trained or (self._handle is not None and self._handle.is_trained())

    def train(self, x: ArrayLike) -> None:
        """Fits axes, cells, bins and calibration to a sample ``x``. The index keeps none of its points.

        Points that are added later join these cells. The index trains itself again when it has twice as many points as the
        sample. Before that it checks its recall targets as it grows: points unlike the sample cost more work, not recall.

        Raises ``ValueError`` if the index has had points; :meth:`retrain` trains it on those. With preset ``paper`` and
        with ``spill``, only a build trains: this method then checks ``x``, and the first ``add`` builds.

        >>> import numpy as np, garlic_ann as garlic
        >>> x = np.random.default_rng(1).normal(size=(6000, 8)).astype(np.float32)
        >>> index = garlic.Index(8)
        >>> index.train(x[:1000])
        >>> len(index), index.is_trained, index.stats()["trained_points"]
        (0, True, 1000)
        >>> ids = index.add(x)
        """
        x = own_vectors(x)
        self._check_dim(x)
        with self._first:
            handle = self._begin()
            if handle is None:
                self._trained = True
                return
            if handle.next_id > 0:
                raise ValueError("the index has had points; `retrain()` trains it on those that it has")
            with Progress(self._progress) as report:
                self._handle = _garlic.train_like(handle, x, self._threads, report)

    def add(
        self, x: ArrayLike, ids: Identifiers | None = None, columns: Columns | None = None
    ) -> NDArray[Any]:
        """Adds vectors, all or none, in batches of any size, and returns their identifiers. Recall targets stay met.

        The points join the existing cells. When the index grows past 4,096 points, and each time it has doubled since, it
        is trained again before this method returns. That takes about as long as a build of all its points. A first ``add``
        of more than 4,096 points is one build.

        Identifiers are numbers from 0 to 2**63 - 1, or all of them text; a UUID is the text that it is written as. Without
        ``ids`` they count up from the largest one so far. An identifier that exists or is repeated raises ``ValueError``.
        ``columns`` is a data frame, a table of Arrow or a dictionary of arrays with a row for each vector. The first points
        of an index decide whether points have names, and which columns there are; columns that later points do not have are
        missing. The vectors are copied first, so other threads may change ``x`` meanwhile.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.Index(2)
        >>> index.add(np.eye(2), ids=["a", "b"], columns={"year": [1999, 2020]}).tolist()
        ['a', 'b']
        >>> distances, ids, columns = index.search([1, 0], k=1, filter="year > 2000", columns=["year"])
        >>> ids.tolist(), columns["year"].tolist()
        (['b'], [2020])
        """
        x = own_vectors(x)
        self._check_dim(x)
        if self._is_fresh():
            if x.ndim == 2 and len(x) == 0:
                return np.empty(0, np.int64)
            # Of several threads one goes first; the others' points join what it has made.
            with self._first:
                if self._is_fresh():
                    return self._of_first(x, ids, columns)
        self._changing()
        handle = self._have()
        added = handle.add(x, ids, columns)
        self._changed(handle)
        return added

    def _is_fresh(self) -> bool:
        """Whether there have been no points and no training."""
        return self._handle is None or self._handle.is_fresh()

    def _of_first(
        self, x: NDArray[np.float32], ids: Identifiers | None, columns: Columns | None
    ) -> NDArray[Any]:
        """Makes the index of its first points and returns their identifiers."""
        handle = self._begin()
        # They are needed twice, and a generator has them once.
        own = None if ids is None else identifiers(ids)
        rows = (own, columns)
        if handle is None:
            self._handle = _build((x, "own"), rows, self._preset, self._settings, self._threads, self._progress)
        elif x.ndim == 2 and len(x) > _garlic.EXHAUSTIVE_POINTS:
            with Progress(self._progress) as report:
                self._handle = _garlic.build_like(handle, x, rows, self._threads, report)
        else:
            return handle.add(x, *rows)
        if own is None:
            return np.arange(len(self._handle))
        return objects(own, (-1,)) if isinstance(own, list) else own.astype(np.int64)

    def _changed(self, handle: _garlic.Handle) -> None:
        handle.wait()

    def _check_dim(self, x: NDArray[np.float32]) -> None:
        if x.shape[-1] != self._dim:
            raise ValueError(
                f"the index was built for dimension {self._dim}, the vectors have {x.shape[-1]}"
            )

    def _nothing(self, queries: ArrayLike, k: int, return_stats: bool) -> Any:
        q = vectors(queries, "queries")
        if q.shape[-1] != self._dim:
            raise ValueError(f"the index was built for dimension {self._dim}, the query has {q.shape[-1]}")
        if k < 1:
            raise ValueError(f"search parameter `k` is {k}: must be at least 1")
        shape = (*q.shape[:-1], k)
        found = np.full(shape, np.inf, np.float32), np.full(shape, -1, np.int64)
        return (*found, {}) if return_stats else found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, which is replaced atomically; :func:`open` reads it."""
        self._have().save(path)

    def to_bytes(self) -> bytes:
        """The bytes that ``save`` writes; :func:`from_bytes` reads them."""
        return self._have().to_bytes()

    def copy(self) -> Index:
        """A copy that changes independently. It is cheap: the two share what neither has changed."""
        if self._handle is None:
            return self._empty_copy()
        copy = Index._of(self._handle.copy())
        copy._threads, copy._progress = self._threads, self._progress
        return copy

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Index:
        return self.copy()

    def _empty_copy(self) -> Index:
        return _revive({k: v for k, v in self.__dict__.items() if k != "_first"})

    def __reduce__(self) -> tuple[Any, ...]:
        if self._handle is None:
            # Locks are of one process, and so may be the function that shows progress.
            state = {k: v for k, v in self.__dict__.items() if k not in ("_first", "_progress")}
            return _revive, (state | {"_progress": False},)
        source = self._source
        if source is not None and _identity(source[0]) == source[1]:
            return _open_same, source
        return from_bytes, (self.to_bytes(),)

    def add_with_ids(self, x: ArrayLike, ids: Identifiers) -> None:
        """:meth:`add` by the name that faiss has for it."""
        self.add(x, ids)

    def __repr__(self) -> str:
        return f"Index({len(self)} x {self.dim}, {self.metric})"

    @classmethod
    def _of(cls, handle: _garlic.Handle) -> Index:
        index = cls.__new__(cls)
        index._handle = handle
        index._dim = handle.dim
        index._trained = False
        index._threads = None
        index._progress = False
        index._first = threading.Lock()
        return index


def _revive(state: dict[str, Any]) -> Index:
    index = Index.__new__(Index)
    index.__dict__.update(state, _first=threading.Lock())
    return index


def build(
    x: ArrayLike,
    ids: Identifiers | None = None,
    *,
    columns: Columns | None = None,
    recall: float | None = None,
    metric: Metric = "euclidean",
    preset: Preset = "default",
    partition: ArrayLike | None = None,
    queries_like: ArrayLike | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Report = False,
    **config: Unpack[Parameters],
) -> Index:
    """Builds an index of the rows of ``x``.

    ``x`` is copied once, so other threads may change it meanwhile. Ctrl-C ends the build with ``KeyboardInterrupt``.

    Parameters
    ----------
    x
        The vectors: an array, a column of lists, a tensor; ``docs/guide/data.md`` lists what else.
    ids
        Identifiers: whole numbers, or text and UUIDs. Row numbers unless given.
    columns
        A row for each vector: a data frame of pandas or polars, a table of Arrow, or a dictionary of arrays and lists. Filters
        are expressions over them.
    recall
        The default recall target of searches.
    partition
        The number of each row's cell, below 2**32, of cells that were found elsewhere. Frames, bins and codes are fitted to
        these cells.
    queries_like
        A sample of the queries that will be asked, at least 100, if they do not resemble the rows of ``x``. Recall targets are
        measured with it, as :meth:`Index.tune` does.
    metric, preset, seed, threads, progress, config
        As of :class:`Index`.

    >>> import numpy as np, garlic_ann as garlic
    >>> x = np.random.default_rng(1).normal(size=(400, 6))
    >>> index = garlic.build(x, recall=0.99, metric="cosine")
    >>> index.search(x[5], k=1)[1].tolist()
    [5]
    >>> index = garlic.build(x, ids=[f"page {i}" for i in range(400)], columns={"year": np.arange(1700, 2100)})
    >>> index.search(x[5], k=1, filter="year >= 1706", exact=True)[1][0] != "page 5"
    True
    """
    target = {} if recall is None else {"recall": recall}
    cells = None if partition is None else cell_numbers(partition)
    sample = None if queries_like is None else own_vectors(queries_like)
    settings = _settings(metric, seed, {**config, **target})
    return Index._of(_build(source(x), (ids, columns), preset, settings, threads, progress, cells, sample))


def open(
    path: str | os.PathLike[str], mmap: bool = True, *, vectors: Literal["disk"] | None = None
) -> Index:
    """Opens an index file.

    By default the file is mapped, which takes no time and no memory of its own. While the index is in use, replace the file
    by rename (``os.replace``, ``mv``), never in place (``cp`` onto the old name). An index whose file was renamed or deleted
    keeps working. If the file is overwritten, answers are wrong; if it is shortened, the process ends with a bus error.
    With ``mmap=False`` the whole file is read and checked, and not needed afterwards.

    ``vectors="disk"`` is for data larger than memory. Vectors stay in the file, everything else is read into memory and
    checked. A search reads the vectors of its candidates from the disk, all at once, and a batch those of its queries together.
    Such an index is read-only. ``stats()["disk_reads"]`` says how it reads: with ``io_uring`` or with ``threads``.

    A pickle of a mapped index that was not changed holds the path, not the bytes, as long as the file is the same. Pickle
    ``index.copy()`` for a reader that has no such file.
    """
    if vectors not in (None, "disk"):
        raise ValueError(f'vectors: "disk" or None, not {vectors!r}')
    path = os.path.abspath(path)
    before = _identity(path) if mmap and vectors is None else None
    index = Index._of(_garlic.open(path, vectors or ("mapped" if mmap else "memory")))
    if before is not None and _identity(path) == before:
        index._source = path, before
    return index


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _open_same(path: str, identity: Identity) -> Index:
    """What a pickle of a mapped index calls. Another machine may number devices and files in another way."""
    found = _identity(path)
    if found is not None and found[2:] != identity[2:]:
        raise ValueError(f"{path}: has changed since the index was pickled; pickle it again, or index.copy()")
    return open(path)


def from_bytes(data: bytes) -> Index:
    """The index that ``to_bytes`` wrote, checked.

    >>> import numpy as np, garlic_ann as garlic
    >>> index = garlic.build(np.eye(4, dtype=np.float32))
    >>> len(garlic.from_bytes(index.to_bytes()))
    4
    """
    return Index._of(_garlic.from_bytes(bytes(data)))


def verify(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Checks every byte of an index file and describes it; ``FormatError`` says what is wrong."""
    summary: dict[str, Any] = json.loads(_garlic.verify(path))
    return summary


def _build(
    x: tuple[NDArray[Any], str],
    rows: tuple[Identifiers | None, Columns | None],
    preset: str,
    settings: list[tuple[str, str]],
    threads: int | None,
    progress: bool | Report,
    partition: list[int] | None = None,
    queries_like: NDArray[np.float32] | None = None,
) -> _garlic.Handle:
    with Progress(progress) as report:
        return _garlic.build(*x, rows, (preset, settings), threads, report, (partition, queries_like))


def _settings(metric: str, seed: int, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    given = {"metric": metric, "seed": seed, **config}
    return [(key, _text(value)) for key, value in given.items()]


def _text(value: Any) -> str:
    """A value as the library's settings write it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    return str(value)
