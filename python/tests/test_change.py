"""Adding, removing, replacing."""

import brute
import garlic_ann as garlic
import numpy as np
import pytest


def test_train_add_search_remove(points, queries):
    index = garlic.Index(24, seed=1)
    assert len(index) == 0 and not index.is_trained
    distances, ids = index.search(queries, k=3)
    assert (ids == -1).all() and np.isinf(distances).all()
    lims, distances, ids = index.range_search(queries, 1.0)
    assert lims.tolist() == [0] * 61 and len(distances) == len(ids) == 0
    assert index.remove([1]) == 0 and 1 not in index and len(index.ids()) == 0
    index.train(points)
    assert index.is_trained and len(index) == 0
    index.add(points[:3000])
    index.add(points[3000:])
    assert len(index) == 4000 and index.ids().tolist() == list(range(4000))
    assert brute.recall(index.search(queries, k=10)[1], queries, points) > 0.9
    assert index.remove(range(2000)) == 2000
    ids = index.search(queries, k=10, exact=True)[1]
    assert brute.recall(ids - 2000, queries, points[2000:]) > 0.999
    index.compact()
    np.testing.assert_array_equal(index.search(queries, k=10, exact=True)[1], ids)
    index.add(points[:1])
    assert index.ids()[-1] == 4000


def test_one_vector_is_one_point(points):
    index = garlic.build(points[:500])
    index.add(points[500])
    index.add(points[501], ids=9000)
    assert 9000 in index and 500 in index and len(index) == 502
    np.testing.assert_array_equal(index.get(9000), points[501])
    np.testing.assert_array_equal(index.get([500, 3]), points[[500, 3]])


def test_update(points):
    index = garlic.build(points[:500])
    index.update(points[600:602], [3, 4])
    np.testing.assert_array_equal(index.get([3, 4]), points[600:602])
    with pytest.raises(KeyError, match="identifier 700"):
        index.update(points[:2], [1, 700])
    np.testing.assert_array_equal(index.get(1), points[1])


def test_a_failed_add_changes_nothing(points):
    index = garlic.build(points[:500])
    before = index.to_bytes()
    for vectors, ids in [
        (points[:2], [500, 3]),
        (points[:2], [500, 500]),
        (points[:2], [500]),
        (np.full((1, 24), np.nan), None),
        (points[:2, :5], None),
    ]:
        with pytest.raises(ValueError):
            index.add(vectors, ids)
    assert index.to_bytes() == before


def test_membership(points):
    index = garlic.build(points[:100], ids=np.arange(100) * 3)
    assert 3 in index and 4 not in index and -1 not in index and 2**80 not in index
    assert "3" not in index and np.int64(6) in index
    assert index.contains([0, 1, 297, 300]).tolist() == [True, False, True, False]
    with pytest.raises(KeyError):
        index.get([0, 1])


def test_copies_change_on_their_own(points):
    index = garlic.build(points[:200])
    other = index.copy()
    other.remove([0])
    assert len(index) == 200 and len(other) == 199
    assert len(garlic.Index(3).copy()) == 0


def test_everything_removed(points):
    index = garlic.build(points[:50])
    index.remove(range(50))
    assert len(index) == 0
    assert (index.search(points[:2], k=2)[1] == -1).all()
    again = garlic.from_bytes(index.to_bytes())
    again.add(points[:5])
    assert again.search(points[2], k=1, exact=True)[0][0] == 0


def test_an_index_that_has_grown_meets_its_targets_again():
    x = np.random.default_rng(5).normal(size=(6000, 16)).astype(np.float32)
    index = garlic.build(x[:2000], seed=1)
    index.add(x[2000:])
    index.recalibrate()
    assert len(index) == 6000
    queries = x[::40]
    _, exact = index.search(queries, k=10, exact=True)
    _, ids = index.search(queries, k=10, recall=0.9)
    found = [len(set(a) & set(b)) / 10 for a, b in zip(exact, ids)]
    assert np.mean(found) > 0.87
