"""The estimators beside scikit-learn's own."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from garlic_ann.sklearn import GarlicClassifier, GarlicNeighbors, GarlicTransformer
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks


@parametrize_with_checks([GarlicNeighbors(exact=True), GarlicTransformer(exact=True), GarlicClassifier(exact=True), GarlicClassifier(vote="cells")])
def test_the_rules_of_estimators(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def test_neighbours_are_those_of_scikit_learn(digits):
    x, _ = digits
    ours, theirs = GarlicNeighbors(7, exact=True).fit(x), NearestNeighbors(n_neighbors=7).fit(x)
    queries = x[:50] + 0.3
    np.testing.assert_allclose(ours.kneighbors(queries)[0], theirs.kneighbors(queries)[0], rtol=1e-5)
    np.testing.assert_allclose(ours.kneighbors()[0], theirs.kneighbors()[0], rtol=1e-5)
    assert (ours.kneighbors(return_distance=False) != np.arange(len(x))[:, None]).all()
    a, b = ours.radius_neighbors(queries, 20.0), theirs.radius_neighbors(queries, 20.0)
    assert [sorted(i) for i in a[1]] == [sorted(i) for i in b[1]]
    a, b = ours.radius_neighbors(radius=18.0), theirs.radius_neighbors(radius=18.0)
    assert [sorted(i) for i in a[1]] == [sorted(i) for i in b[1]]
    for mode in ("connectivity", "distance"):
        a, b = ours.kneighbors_graph(queries, mode=mode), theirs.kneighbors_graph(queries, mode=mode)
        assert abs(a - b).max() < 1e-4


def test_recall_of_the_neighbours(digits):
    x, _ = digits
    ids = GarlicNeighbors(10, recall=0.95).fit(x).kneighbors(return_distance=False)
    true = NearestNeighbors(n_neighbors=10).fit(x).kneighbors(return_distance=False)
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, true)]) > 0.9


def test_copies_of_a_point_are_its_neighbours():
    x = np.repeat(np.eye(3), 4, axis=0)
    ids = GarlicNeighbors(3, exact=True).fit(x).kneighbors(return_distance=False)
    assert ids.shape == (12, 3) and (ids != np.arange(12)[:, None]).all()


def test_in_a_pipeline_in_place_of_theirs(digits):
    x, _ = digits
    shapes = []
    for transformer in (GarlicTransformer, KNeighborsTransformer):
        first = transformer(n_neighbors=15, mode="distance", **({"exact": True} if transformer is GarlicTransformer else {}))
        pipeline = make_pipeline(first, Isomap(n_neighbors=15, metric="precomputed"))
        shapes.append(pipeline.fit_transform(x[:800]))
    # Axes have no sign.
    for ours, theirs in zip(shapes[0].T, shapes[1].T):
        assert abs(np.corrcoef(ours, theirs)[0, 1]) > 0.99
    graph = GarlicTransformer(n_neighbors=10).fit_transform(x)
    labels = DBSCAN(eps=20, min_samples=5, metric="precomputed").fit_predict(graph)
    assert len(set(labels)) > 5


def test_classifier_in_a_pipeline(digits):
    x, y = digits
    ours = make_pipeline(StandardScaler(), GarlicClassifier(3))
    theirs = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
    a, b = cross_val_score(ours, x, y, cv=3).mean(), cross_val_score(theirs, x, y, cv=3).mean()
    assert a > 0.92 and abs(a - b) < 0.02
    scores = [
        GridSearchCV(clone(model), {f"{model.steps[1][0]}__n_neighbors": [1, 5]}, cv=2).fit(x, y).best_score_
        for model in (ours, theirs)
    ]
    assert abs(scores[0] - scores[1]) < 0.02


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_votes(digits, weights):
    x, y = digits
    names = np.array(list("abcdefghij"))[y]
    ours = GarlicClassifier(5, weights=weights, exact=True).fit(x[:1000], names[:1000])
    theirs = KNeighborsClassifier(5, weights=weights).fit(x[:1000], names[:1000])
    # Ties at the fifth place may be broken differently.
    assert np.mean(np.isclose(ours.predict_proba(x[900:]), theirs.predict_proba(x[900:]), atol=1e-4).all(axis=1)) > 0.97
    assert ours.classes_.tolist() == list("abcdefghij")


def test_votes_of_cells(digits):
    x, y = digits
    ours = GarlicClassifier(vote="cells").fit(x[:1200], y[:1200])
    shares = ours.predict_proba(x[1200:])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    few = ours.score(x[1200:], y[1200:])
    # More cells than digits: most cells are of one digit.
    assert few > 0.5
    neighbours = GarlicClassifier(3).fit(x[:1200], y[:1200]).score(x[1200:], y[1200:])
    assert few < neighbours
    with pytest.raises(ValueError, match="vote"):
        GarlicClassifier(vote="all").fit(x, y)


def test_random_state_is_the_seed(digits):
    x = digits[0][:600]

    def bytes_of(**how):
        return GarlicNeighbors(**how).fit(x).index_.to_bytes()

    assert bytes_of(random_state=5) == bytes_of(seed=5) == bytes_of(random_state=np.int64(5), seed=1)
    assert bytes_of() == bytes_of(random_state=0) != bytes_of(random_state=5)
    # An instance draws a seed at every fit: the same from the same state.
    assert bytes_of(random_state=np.random.RandomState(3)) == bytes_of(random_state=np.random.RandomState(3))
    state = np.random.RandomState(3)
    assert bytes_of(random_state=state) != bytes_of(random_state=state)
    with pytest.raises(ValueError):
        bytes_of(random_state="three")
    assert clone(GarlicClassifier(random_state=4)).random_state == 4
