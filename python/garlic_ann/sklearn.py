"""Estimators for scikit-learn: neighbours, neighbour graphs for pipelines, and a classifier.

They take the most important parameters of :func:`garlic_ann.build`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._index import build
from ._options import Metric

__all__ = ["GarlicClassifier", "GarlicNeighbors", "GarlicTransformer"]

_METRICS = {"l2": "euclidean", "minkowski": "euclidean"}


class _Fitted(BaseEstimator):
    """What the estimators share: fitting an index and asking it for neighbours."""

    n_neighbors: int
    metric: str
    recall: float
    exact: bool
    seed: int
    random_state: int | np.random.RandomState | None
    n_jobs: int | None

    def _build(self, X: NDArray[Any]) -> None:
        metric = cast("Metric", _METRICS.get(self.metric, self.metric))
        self.index_ = build(X, metric=metric, recall=self.recall, seed=self._seed())
        self.n_samples_fit_ = X.shape[0]

    def _seed(self) -> int:
        given = self.random_state
        if given is None:
            return self.seed
        if isinstance(given, (int, np.integer)):
            return int(given)
        # An instance gives a new seed at every fit, as in scikit-learn.
        return int(check_random_state(given).randint(np.iinfo(np.int32).max))

    def _check(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self, "index_")
        return validate_data(self, X, dtype=np.float32, order="C", reset=False)

    def _threads(self) -> int | None:
        # As in joblib: -1 is all cores.
        if self.n_jobs is not None and self.n_jobs < 0:
            import os

            return max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)
        return self.n_jobs

    def _nearest(self, X: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        if k > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {len(X)}"
            )
        recall = None if self.exact else self.recall
        distances, ids = self.index_.search(
            X, k, recall=recall, exact=self.exact, threads=self._threads()
        )
        # An estimator owes k neighbours: the rare query that found fewer is asked again with proof.
        short = np.flatnonzero(ids[:, -1] < 0)
        if len(short):
            distances[short], ids[short] = self.index_.search(X[short], k, exact=True)
        return distances.astype(np.float64), ids

    def _nearest_others(self, X: NDArray[np.float32], k: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Neighbours of the points themselves, each without itself."""
        distances, ids = self._nearest(X, k + 1)
        other = ids != np.arange(len(X))[:, None]
        # Where a point is not among its own neighbours (copies of it come first) the last one goes.
        other[other.all(axis=1), -1] = False
        return distances[other].reshape(-1, k), ids[other].reshape(-1, k)


def _graph(distances: NDArray[Any], ids: NDArray[Any], columns: int) -> csr_matrix:
    rows, k = ids.shape
    return csr_matrix((distances.ravel(), ids.ravel(), np.arange(0, rows * k + 1, k)), shape=(rows, columns))


def _check_k(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
    if k < 1:
        raise ValueError(f"Expected n_neighbors > 0. Got {k}")
    return int(k)


class GarlicNeighbors(_Fitted):
    """Unsupervised neighbours, in the manner of ``sklearn.neighbors.NearestNeighbors``.

    Parameters
    ----------
    n_neighbors, radius
        Defaults of the number of neighbours and of the radius.
    metric
        ``euclidean``, ``cosine`` or ``inner_product``.
    recall
        Recall target: the share of the true neighbours to find.
    exact
        Find all true neighbours, with proof.
    seed
        Seed of the build.
    random_state
        The seed as in scikit-learn: a number, or a ``RandomState`` that gives a new seed at every ``fit``. It overrides
        ``seed``. With ``None`` results are reproducible, because ``seed`` is used.
    n_jobs
        Threads of a search; -1 for all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from garlic_ann.sklearn import GarlicNeighbors
    >>> x = np.arange(20, dtype=np.float32).reshape(-1, 1)
    >>> distances, ids = GarlicNeighbors(n_neighbors=2).fit(x).kneighbors([[3.2]])
    >>> ids.tolist()
    [[3, 4]]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "euclidean",
        recall: float = 0.95,
        exact: bool = False,
        seed: int = 0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.recall = recall
        self.exact = exact
        self.seed = seed
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> GarlicNeighbors:
        """Builds an index of the rows of ``X``."""
        X = validate_data(self, X, dtype=np.float32, order="C")
        self._fit_X = X
        self._build(X)
        return self

    def kneighbors(
        self, X: ArrayLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Nearest neighbours of ``X``, or of the fitted points, each without itself."""
        check_is_fitted(self, "index_")
        k = _check_k(self.n_neighbors if n_neighbors is None else n_neighbors)
        if X is None:
            distances, ids = self._nearest_others(self._fit_X, k)
        else:
            distances, ids = self._nearest(self._check(X), k)
        return (distances, ids) if return_distance else ids

    def kneighbors_graph(
        self, X: ArrayLike | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """The neighbours as a sparse matrix of ones or of distances."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"Unsupported mode, must be one of 'connectivity' or 'distance', not {mode!r}")
        distances, ids = self.kneighbors(X, n_neighbors)
        values = np.ones_like(distances) if mode == "connectivity" else distances
        return _graph(values, ids, self.n_samples_fit_)

    def radius_neighbors(
        self,
        X: ArrayLike | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """All points within ``radius``, as arrays of arrays, always sorted by distance."""
        check_is_fitted(self, "index_")
        own = X is None
        rows = self._fit_X if own else self._check(X)
        radius = self.radius if radius is None else radius
        lims, distances, ids = self.index_.range_search(rows, radius, threads=self._threads())
        found = np.empty(len(rows), object), np.empty(len(rows), object)
        for row in range(len(rows)):
            part = slice(lims[row], lims[row + 1])
            keep = ids[part] != row if own else slice(None)
            found[0][row] = distances[part][keep].astype(np.float64)
            found[1][row] = ids[part][keep]
        return found if return_distance else found[1]


class GarlicTransformer(TransformerMixin, _Fitted):
    """A sparse graph of the nearest neighbours, for pipelines, in place of ``KNeighborsTransformer``.

    With ``mode="distance"`` the graph has one neighbour more than ``n_neighbors``, because the estimators that use it count
    each point as its own neighbour. The other parameters are those of :class:`GarlicNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from garlic_ann.sklearn import GarlicTransformer
    >>> x = np.arange(20, dtype=np.float32).reshape(-1, 1)
    >>> graph = GarlicTransformer(n_neighbors=3).fit_transform(x)
    >>> graph.shape, graph.nnz
    ((20, 20), 80)
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        metric: str = "euclidean",
        recall: float = 0.95,
        exact: bool = False,
        seed: int = 0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.recall = recall
        self.exact = exact
        self.seed = seed
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> GarlicTransformer:
        """Builds an index of the rows of ``X``."""
        if self.mode not in ("distance", "connectivity"):
            raise ValueError(f"mode must be 'distance' or 'connectivity', not {self.mode!r}")
        self._build(validate_data(self, X, dtype=np.float32, order="C"))
        return self

    def transform(self, X: ArrayLike) -> csr_matrix:
        """The neighbours of ``X`` among the fitted points."""
        X = self._check(X)
        k = _check_k(self.n_neighbors) + (self.mode == "distance")
        distances, ids = self._nearest(X, k)
        values = distances if self.mode == "distance" else np.ones_like(distances)
        return _graph(values, ids, self.n_samples_fit_)

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_


class GarlicClassifier(ClassifierMixin, _Fitted):
    """The vote of the nearest neighbours, or of the nearest cells.

    With ``vote="neighbors"`` the ``n_neighbors`` nearest points vote. ``weights`` is ``uniform``, or ``distance`` to weight
    votes by the inverse distance. With ``vote="cells"`` all points of the ``n_cells`` nearest cells vote, by label counts
    from ``fit``: this is much cheaper, because it computes no distances to points, and coarser. The other parameters are
    those of :class:`GarlicNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from garlic_ann.sklearn import GarlicClassifier
    >>> x = np.arange(20, dtype=np.float32).reshape(-1, 1)
    >>> GarlicClassifier(n_neighbors=3).fit(x, np.arange(20) >= 10).predict([[2.0], [15.0]]).tolist()
    [False, True]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        vote: str = "neighbors",
        weights: str = "uniform",
        n_cells: int = 1,
        metric: str = "euclidean",
        recall: float = 0.95,
        exact: bool = False,
        seed: int = 0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.vote = vote
        self.weights = weights
        self.n_cells = n_cells
        self.metric = metric
        self.recall = recall
        self.exact = exact
        self.seed = seed
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> GarlicClassifier:
        """Builds an index of the rows of ``X`` and remembers their labels."""
        if self.vote not in ("neighbors", "cells"):
            raise ValueError(f"vote must be 'neighbors' or 'cells', not {self.vote!r}")
        if self.weights not in ("uniform", "distance"):
            raise ValueError(f"weights must be 'uniform' or 'distance', not {self.weights!r}")
        if self.weights == "distance" and self.metric == "inner_product":
            raise ValueError("inner products are no distances to weigh by; use weights='uniform'")
        X, y = validate_data(self, X, y, dtype=np.float32, order="C")
        check_classification_targets(y)
        self.classes_, self._labels = np.unique(y, return_inverse=True)
        self._build(X)
        if self.vote == "cells":
            # A point counts for the cell that a query at its place would go to.
            cells = self.index_.route(X)[:, 0]
            self._counts = np.zeros((cells.max() + 1, len(self.classes_)))
            np.add.at(self._counts, (cells, self._labels), 1)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Shares of the votes, one column for each of ``classes_``."""
        X = self._check(X)
        if self.vote == "cells":
            return self._vote_of_cells(X)
        distances, ids = self._nearest(X, min(_check_k(self.n_neighbors), self.n_samples_fit_))
        if self.weights == "uniform":
            weights = np.ones_like(distances)
        else:
            # Points at no distance decide alone.
            same = distances <= 0
            with np.errstate(divide="ignore"):
                weights = np.where(same.any(axis=1, keepdims=True), same, 1 / distances)
        votes = np.zeros((len(X), len(self.classes_)))
        np.add.at(votes, (np.arange(len(X))[:, None], self._labels[ids]), weights)
        return votes / votes.sum(axis=1, keepdims=True)

    def _vote_of_cells(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        cells = self.index_.route(X, self.n_cells)
        # A cell that no point would go to has nothing to say; without any other, labels are as frequent as they are.
        known = (cells >= 0) & (cells < len(self._counts))
        votes = (self._counts[np.where(known, cells, 0)] * known[..., None]).sum(axis=1)
        votes[votes.sum(axis=1) == 0] = self._counts.sum(axis=0)
        return votes / votes.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label with the most votes; on a tie, the first in ``classes_``."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
