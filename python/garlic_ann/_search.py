"""What an index and an index directory share: searches, changes and descriptions."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import identifiers, is_plain_iterable, own_vectors, vectors
from ._columns import arrays
from ._garlic import Filter, Handle, Table, route
from ._html import page

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ArrowStream(Protocol):
    """Tables of pyarrow, and data frames of pandas and polars."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Found = tuple[NDArray[np.float32], NDArray[Any]]
Arrays = dict[str, NDArray[Any]]
# Whole numbers, or text and UUIDs.
Identifiers = Union[ArrayLike, uuid.UUID, Iterable[int], Iterable[str], Iterable[uuid.UUID]]
Columns = Union[Mapping[str, Union[ArrayLike, Sequence[Any]]], ArrowStream]
Allowed = Union[Identifiers, Callable[[Any], Any], Filter]


class SearchOptions(TypedDict, total=False):
    """Options of a search that do not change what it returns."""

    recall: float | None
    filter: Allowed | None
    threads: int | None
    probes: int | None
    bins: float | None
    rerank: int | None
    exact: bool


class Searchable:
    """An index that can be searched."""

    _handle: Handle | None = None
    # Of an index that is mapped and was not changed: the file and what identified it.
    _source: tuple[str, tuple[int, int, int, int]] | None = None
    # Targets that were found to read everything, or not to.
    _looked_at: frozenset[tuple[int, float]] = frozenset()

    def _have(self) -> Handle:
        if self._handle is None:
            raise ValueError("the index has no points yet; add some")
        return self._handle

    def _peek(self) -> Handle | None:
        """Nothing where an index has no points yet, and where that is no error."""
        return self._handle

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._have().dim

    @property
    def metric(self) -> str:
        """``euclidean``, ``cosine`` or ``inner_product``."""
        return self._have().metric

    def __len__(self) -> int:
        handle = self._peek()
        return 0 if handle is None else len(handle)

    @property
    def ntotal(self) -> int:
        """``len(index)``, by the name that faiss has for it."""
        return len(self)

    @property
    def d(self) -> int:
        """:attr:`dim`, by the name that faiss has for it."""
        return self.dim

    def __contains__(self, id: object) -> bool:
        handle = self._peek()
        is_number = isinstance(id, (int, np.integer)) and 0 <= id < 2**63
        if handle is None or not (is_number or isinstance(id, (str, uuid.UUID))):
            return False
        return bool(handle.contains_all(id)[0])

    def contains(self, ids: Identifiers) -> NDArray[np.bool_]:
        """For each identifier, whether the index has it.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.eye(4, dtype=np.float32), ids=[10, 11, 12, 13])
        >>> index.contains([10, 5])
        array([ True, False])
        >>> 11 in index
        True
        """
        handle = self._peek()
        return np.zeros(len(identifiers(ids)), bool) if handle is None else handle.contains_all(ids)

    def get(self, ids: Identifiers) -> NDArray[np.float32]:
        """The vectors of some identifiers, one per row; a single identifier gives one vector.

        The vectors are as stored: rounded with ``store="f16"`` and ``store="int8"``, of unit length with cosine distances. Raises
        ``KeyError`` for an identifier that does not exist.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build([[0.0, 1.5], [2.0, 3.0]])
        >>> index.get(1)
        array([2., 3.], dtype=float32)
        """
        handle = self._peek()
        if handle is None:
            raise KeyError("the index has no points yet")
        rows = handle.get(ids)
        return rows[0] if _is_one(ids) else rows

    def ids(self, filter: str | None = None) -> NDArray[Any]:
        """Identifiers of all points: numbers in ascending order, names in the order in which they were given.

        ``filter``, an expression over the columns, leaves those for which it is true.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.eye(3), ids=["a", "b", "c"], columns={"year": [1999, 2020, 2021]})
        >>> index.ids(filter="year > 2000").tolist()
        ['b', 'c']
        """
        handle = self._peek()
        return np.empty(0, np.int64) if handle is None else handle.ids(filter)

    def rows(self, ids: Identifiers, columns: Sequence[str] | None = None) -> Arrays:
        """The columns of some identifiers as arrays, all columns unless ``columns`` names some.

        Missing numbers with a fraction are not a number, missing times ``NaT``. Other columns with missing values are arrays
        of objects with ``None``, and so is text. Raises ``KeyError`` for an identifier that does not exist.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.eye(2), ids=["a", "b"], columns={"year": [1999, 2020]})
        >>> index.rows(["b", "a"])["year"]
        array([2020, 1999])
        """
        found = self._have().rows(ids, None if columns is None else list(columns))
        shape = () if _is_one(ids) else (-1,)
        return arrays(found, shape)

    def table(self) -> Table:
        """Identifiers and columns of all points, in the order in which they were given.

        pyarrow, pandas and polars read it without a copy: ``pyarrow.table(index.table())``, ``polars.DataFrame(...)``.

        >>> import numpy as np, garlic_ann as garlic
        >>> garlic.build(np.eye(2), ids=["a", "b"], columns={"year": [1999, 2020]}).table()
        Table(2 rows: id, year)
        """
        return self._have().table()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        handle = self._peek()
        return [] if handle is None else handle.column_names()

    @overload
    def search(
        self,
        queries: ArrayLike,
        k: int = ...,
        *,
        columns: None = ...,
        return_stats: Literal[False] = ...,
        **options: Unpack[SearchOptions],
    ) -> Found: ...

    @overload
    def search(
        self,
        queries: ArrayLike,
        k: int = ...,
        *,
        columns: None = ...,
        return_stats: Literal[True],
        **options: Unpack[SearchOptions],
    ) -> tuple[NDArray[np.float32], NDArray[Any], dict[str, Any]]: ...

    @overload
    def search(
        self,
        queries: ArrayLike,
        k: int = ...,
        *,
        columns: Sequence[str],
        return_stats: Literal[False] = ...,
        **options: Unpack[SearchOptions],
    ) -> tuple[NDArray[np.float32], NDArray[Any], Arrays]: ...

    @overload
    def search(
        self,
        queries: ArrayLike,
        k: int = ...,
        *,
        columns: Sequence[str],
        return_stats: Literal[True],
        **options: Unpack[SearchOptions],
    ) -> tuple[NDArray[np.float32], NDArray[Any], Arrays, dict[str, Any]]: ...

    def search(
        self,
        queries: ArrayLike,
        k: int = 10,
        *,
        recall: float | None = None,
        filter: Allowed | None = None,
        threads: int | None = None,
        probes: int | None = None,
        bins: float | None = None,
        rerank: int | None = None,
        exact: bool = False,
        columns: Sequence[str] | None = None,
        return_stats: bool = False,
        return_work: bool | None = None,
    ) -> Any:
        """The ``k`` nearest neighbours: ``(distances, ids)``, with ``columns`` ``(distances, ids, columns)``. Options after
        ``k`` are keyword-only.

        Parameters
        ----------
        queries
            One vector, or one per row. A C-contiguous float32 array is read in place; anything else is copied once.
        k
            Number of neighbours. If there are fewer, the remaining distances are infinity, and identifiers -1 or ``None``. An
            index without points finds nothing, and so does a filter that allows nothing; the latter warns.
        recall
            Recall target, in (0, 1): the share of the true neighbours to find. The default is that of the index. A target
            so high that the search reads all points warns once; :meth:`inspect` lists such targets.
        filter
            Search only these points: an expression such as ``"year > 2015"``, identifiers, a mask or a function; see
            :func:`garlic_ann.filter`.
        threads
            Worker threads for a batch of queries. The default is one.
        probes, bins, rerank
            Cells to visit, share of their bins to scan, exact distances to compute. They override ``recall``.
        exact
            Find all true neighbours, with proof. With the metric cosine this raises ``ValueError`` if 32-bit unit vectors
            cannot tell neighbours apart. In that case subtract the mean from data and queries.
        columns
            Names of columns to return for every neighbour, as a dictionary of arrays of the same shape as the identifiers;
            ``id`` is one, too. See :meth:`rows` for missing values.
        return_stats
            Return a dictionary with counts of the work as the last result.
        return_work
            The former name of ``return_stats``; deprecated.

        Returns
        -------
        distances : float32, ids : int64, or text as objects
            ``[n, k]`` for rows, ``[k]`` for one vector, ordered by distance.

        Examples
        --------
        >>> import numpy as np, garlic_ann as garlic
        >>> x = np.arange(600, dtype=np.float32).reshape(200, 3)
        >>> index = garlic.build(x, seed=1)
        >>> distances, ids = index.search(x[7], k=3, exact=True)
        >>> sorted(ids.tolist())
        [6, 7, 8]
        >>> index.search(x[:2], k=1, filter=lambda id: id % 2 == 1, exact=True)[1].tolist()
        [[1], [1]]
        """
        if return_work is not None:
            warnings.warn("return_work is now return_stats", DeprecationWarning, stacklevel=2)
            return_stats = return_stats or return_work
        handle = self._handle
        if handle is None:
            return self._nothing(queries, k, return_stats)
        if recall is not None and not exact and (k, recall) not in self._looked_at:
            self._look_at(handle, k, recall)
        effort = (recall, probes, bins, rerank, exact)
        if isinstance(columns, str):
            raise TypeError(f"columns: a list of names is needed, such as [{columns!r}]")
        wanted = None if columns is None else list(columns)
        found = handle.search(queries, k, effort, filter, threads, return_stats, wanted)
        if filter is not None and found[0].size and np.isinf(found[0]).all() and len(handle):
            warnings.warn("the search found no point that the filter allows; check the filter", stacklevel=2)
        if wanted is None:
            return found
        distances, ids, joined, *stats = found
        return (distances, ids, arrays(joined, ids.shape), *stats)

    def _look_at(self, handle: Handle, k: int, recall: float) -> None:
        """Warns of a target that reads everything."""
        self._looked_at |= {(k, recall)}
        if 0 < recall < 1 and 0 < k and handle.reads_everything(k, recall):
            warnings.warn(
                f"a search for {k} neighbours with recall={recall} reads all points; `index.inspect()['exhaustive']` says "
                "why, and exact=True proves its answers for the same work",
                stacklevel=3,
            )

    def knn_query(
        self, data: ArrayLike, k: int = 1, num_threads: int = 1, filter: Allowed | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """:meth:`search` by the name and in the order of hnswlib: ``(labels, distances)``. Distances are not squared.

        >>> import numpy as np, garlic_ann as garlic
        >>> labels, distances = garlic.build(np.eye(3)).knn_query(np.eye(3), k=1)
        >>> labels.ravel().tolist()
        [0, 1, 2]
        """
        threads = None if num_threads < 1 else num_threads
        distances, ids = self.search(data, k, filter=filter, threads=threads)
        return ids, distances

    def _nothing(self, queries: ArrayLike, k: int, return_stats: bool) -> Any:
        return self._have()

    def range_search(
        self,
        queries: ArrayLike,
        radius: float,
        *,
        recall: float | None = None,
        filter: Allowed | None = None,
        threads: int | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[Any]]:
        """All points within ``radius``: ``(lims, distances, ids)``.

        The points near query ``i`` are at ``lims[i]:lims[i + 1]``, ordered by distance. ``radius`` is a distance as
        searches report it, not its square. The search finds all points, or with ``recall`` about that share of them.

        >>> import numpy as np, garlic_ann as garlic
        >>> x = np.arange(40, dtype=np.float32).reshape(-1, 1)
        >>> index = garlic.build(x)
        >>> lims, distances, ids = index.range_search([[3.0], [20.5]], radius=1)
        >>> lims.tolist(), sorted(ids[lims[0]:lims[1]].tolist())
        ([0, 3, 5], [2, 3, 4])
        """
        handle = self._peek()
        if handle is None:
            _, ids = self.search(queries, 1)
            rows = len(ids) if ids.ndim == 2 else 1
            return np.zeros(rows + 1, np.int64), np.empty(0, np.float32), np.empty(0, np.int64)
        return handle.range(queries, radius, recall, filter, threads)

    def route(self, queries: ArrayLike, count: int = 1) -> NDArray[np.int64]:
        """The numbers of the ``count`` nearest cells of each query, nearest first. Changes of the index renumber cells.

        >>> import numpy as np, garlic_ann as garlic
        >>> x = np.random.default_rng(1).normal(size=(500, 4)).astype(np.float32)
        >>> garlic.build(x, cells=5).route(x[:2], count=3).shape
        (2, 3)
        """
        if count < 1:
            raise ValueError(f"search parameter `count` is {count}: must be at least 1")
        asked = vectors(queries, "queries")
        cells = route(self._have(), asked, count)
        return cells[0] if asked.ndim == 1 else cells

    def remove(self, ids: Identifiers) -> int:
        """Removes points and returns how many existed; other identifiers are ignored.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.eye(4, dtype=np.float32))
        >>> index.remove([1, 2, 77])
        2
        >>> len(index)
        2
        """
        handle = self._peek()
        if handle is None:
            return 0
        self._changing()
        removed = handle.remove(ids)
        self._changed(handle)
        return removed

    def upsert(self, x: ArrayLike, ids: Identifiers, columns: Columns | None = None) -> None:
        """Adds points, and replaces the vectors and columns of those that exist, all or none.

        Columns that are not given are missing afterwards.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.eye(2), ids=["a", "b"], columns={"year": [1999, 2020]})
        >>> index.upsert(np.ones((2, 2)), ["b", "c"], columns={"year": [2021, 2022]})
        >>> index.rows(["a", "b", "c"])["year"].tolist()
        [1999, 2021, 2022]
        """
        handle = self._have()
        self._changing()
        handle.upsert(own_vectors(x), ids, columns)
        self._changed(handle)

    def update(self, x: ArrayLike, ids: Identifiers) -> None:
        """Replaces the vectors of points, all or none; ``KeyError`` for an identifier that does not exist.

        Their columns stay as they are.
        """
        handle = self._have()
        self._changing()
        handle.update(own_vectors(x), ids)
        self._changed(handle)

    def _changing(self) -> None:
        """Called before every change."""
        self._source = None
        self._looked_at = frozenset()

    def _changed(self, handle: Handle) -> None:
        """Called after every change. An index in memory waits for the training that the change made due."""

    def retrain(self) -> None:
        """Trains axes, cells, bins and calibration again, from all points, as a build would.

        An index does this by itself each time it has doubled. Call it if :meth:`drift` says that a rebuild would pay.
        An index without points raises ``ValueError``.

        >>> import numpy as np, garlic_ann as garlic
        >>> index = garlic.build(np.random.default_rng(1).normal(size=(500, 4)))
        >>> index.retrain()
        >>> index.stats()["trainings"]
        1
        """
        self._changing()
        self._have().retrain()

    def compact(self) -> None:
        """Drops removed points and stores the others as a build would. Exact answers stay the same."""
        handle = self._peek()
        if handle is not None:
            self._changing()
            handle.compact()

    def recalibrate(self) -> None:
        """Measures again what recall targets take, after the index has grown, and compacts it."""
        handle = self._peek()
        if handle is not None:
            self._changing()
            handle.recalibrate()

    def tune(self, queries: ArrayLike) -> None:
        """Measures what recall targets take for queries like these, and compacts the index.

        A build measures its recall targets with points of the index. Queries that do not resemble them, such as texts that
        search images, may miss these targets. Give a sample of such queries, at least 100. Trainings after later changes
        keep how many times fewer misses searches have to allow; call it again to measure it again.

        >>> import numpy as np, garlic_ann as garlic
        >>> random = np.random.default_rng(1)
        >>> x = random.normal(size=(5000, 8)).astype(np.float32)
        >>> index = garlic.build(x, seed=1)
        >>> queries = random.normal(size=(300, 8)).astype(np.float32) * 2
        >>> index.tune(queries[:200])
        >>> distances, ids = index.search(queries[200:], k=5, recall=0.9)
        """
        handle = self._have()
        self._changing()
        handle.tune(own_vectors(queries))

    def drift(self) -> dict[str, Any]:
        """How far the data have moved since the last training, and what that means for searches.

        ``rebuild`` says whether :meth:`retrain` would pay. ``correction`` is above 1 if recall targets were missed since
        the index changed; searches then aim at that many times fewer misses. ``reads_everything`` says whether searches
        have to read all points until the next training. An index of preset ``paper`` keeps no track of it and
        raises ``ValueError``.
        """
        found: dict[str, Any] = json.loads(self._have().drift())
        return found

    def stats(self) -> dict[str, Any]:
        """Points, dimension, cells, bytes by part, and trainings.

        - ``trainings``: how often the index has been trained again.
        - ``trained_points``: number of points, or rows of a sample, of the last training; 0 if there was none.
        - ``trains_at``: number of points at which the index trains itself next.
        - ``training``: whether a training is running (``running``), and why the last one failed, if it did (``failed``).
        - ``reads_everything``: whether a search for 10 neighbours with the default recall target reads all points.
          :meth:`inspect` lists other targets under ``exhaustive``.

        >>> import numpy as np, garlic_ann as garlic
        >>> garlic.build(np.eye(4, dtype=np.float32)).stats()["points"]
        4
        """
        found: dict[str, Any] = json.loads(self._have().stats())
        return found

    def inspect(self) -> dict[str, Any]:
        """All of :meth:`stats`, with the parameters, the sizes of the cells, the drift and the recall targets.

        ``exhaustive`` lists the recall targets for which a search reads all points: for ``k`` neighbours those above
        ``above``, with the reason in ``why``.
        """
        found: dict[str, Any] = json.loads(self._have().inspect())
        return found

    def _repr_html_(self) -> str | None:
        """What notebooks show: what matters, and a picture of the cells."""
        handle = self._peek() if self._handle is not None else None
        return None if handle is None else page(repr(self), json.loads(handle.stats()), handle.cell_sizes())


def _is_one(ids: Any) -> bool:
    """Whether it is one identifier, not several."""
    return not is_plain_iterable(ids) and (isinstance(ids, (str, uuid.UUID)) or np.ndim(ids) == 0)
