"""Searching among some points only."""

import brute
import garlic_ann as garlic
import numpy as np
import pytest

ALLOWED = np.arange(0, 4000, 7)


def forms():
    mask = np.zeros(4000, bool)
    mask[ALLOWED] = True
    yield "array", ALLOWED
    yield "unsigned", ALLOWED.astype(np.uint64)
    yield "list", ALLOWED.tolist()
    yield "set", set(ALLOWED.tolist())
    yield "range", range(0, 4000, 7)
    yield "mask", mask
    yield "list of booleans", mask.tolist()
    yield "function", lambda id: id % 7 == 0
    yield "filter", garlic.filter(ALLOWED)


@pytest.mark.parametrize("allowed", [pytest.param(f, id=n) for n, f in forms()])
def test_every_form_allows_the_same(built, points, queries, allowed):
    _, ids = built.search(queries, k=10, filter=allowed, exact=True)
    assert brute.recall(ids // 7, queries, points[ALLOWED]) > 0.999
    _, ids = built.search(queries, k=10, filter=allowed, recall=0.95, threads=2)
    assert (ids % 7 == 0).all() and brute.recall(ids // 7, queries, points[ALLOWED]) > 0.9
    _, _, ids = built.range_search(queries, 8.0, filter=allowed)
    assert len(ids) and (ids % 7 == 0).all()


def test_bitmaps(built, queries):
    pyroaring = pytest.importorskip("pyroaring")
    wanted = built.search(queries, k=10, filter=ALLOWED, exact=True)[1]
    for kind in (pyroaring.BitMap, pyroaring.BitMap64):
        got = built.search(queries, k=10, filter=kind(ALLOWED.tolist()), exact=True)[1]
        np.testing.assert_array_equal(got, wanted)


def test_nothing_allowed(built, queries):
    for nothing in ([], set(), np.zeros(4000, bool), lambda id: False, [10**9]):
        assert (built.search(queries, k=2, filter=nothing)[1] == -1).all()


def test_what_a_function_raises_is_raised(built, queries):
    def fails(id):
        if id == 1234:
            raise LookupError("as planned")
        return True

    with pytest.raises(LookupError, match="as planned"):
        built.search(queries, filter=fails)
    shared = garlic.filter(fails)
    for _ in range(2):
        with pytest.raises(LookupError, match="as planned"):
            built.range_search(queries, 1.0, filter=shared)


def test_a_shared_filter_follows_changes(points):
    index = garlic.build(points[:1000])
    odd = garlic.filter(lambda id: id % 2 == 1)
    assert (index.search(points[:5], k=3, filter=odd)[1] % 2 == 1).all()
    index.add(points[1000:1100], ids=np.arange(100) * 2 + 5001)
    assert index.search(points[1000], k=1, filter=odd, exact=True)[1][0] == 5001


def test_masks_and_lists_that_make_no_sense(built, queries):
    for length in (3999, 4001, 0):
        with pytest.raises(ValueError, match=f"has {length} entries, but 4000 rows were given"):
            built.search(queries, filter=np.ones(length, bool))
    for wrong in ([-1], [0.5], ["a"], [1, "a"], np.ones((2, 2), bool), [[1, 2]], {2**64}, 2**64):
        with pytest.raises(ValueError):
            built.search(queries, filter=wrong)


def test_a_mask_means_rows_as_they_were_given(points):
    mask = np.zeros(300, bool)
    mask[[3, 70]] = True
    numbers = np.random.default_rng(2).permutation(300)
    for ids in (None, np.arange(300) * 5 + 7, numbers, [f"p{n}" for n in numbers]):
        index = garlic.build(points[:300], ids=ids)
        expected = set(np.flatnonzero(mask) if ids is None else np.asarray(ids)[mask])
        for opened in (index, garlic.from_bytes(index.to_bytes())):
            _, found = opened.search(points[0], k=2, filter=mask, exact=True)
            assert set(found) == expected
            _, found = opened.search(points[0], k=2, filter=garlic.filter(mask), exact=True)
            assert set(found) == expected
            with pytest.raises(ValueError, match="has 299 entries"):
                opened.search(points[0], filter=mask[1:])


def test_a_function_that_searches_with_its_own_filter_is_told(points):
    index = garlic.build(points[:300], seed=1)
    told = []

    def allows(id):
        if not told:
            with pytest.raises(RuntimeError, match="same filter") as error:
                index.search(points[0], k=1, filter=own)
            told.append(str(error.value))
        return id < 10

    own = garlic.filter(allows)
    _, ids = index.search(points[0], k=20, filter=own, exact=True)
    assert sorted(ids[ids >= 0].tolist()) == list(range(10)) and told


def test_what_an_inner_search_raises_the_outer_one_raises(points):
    index = garlic.build(points[:300], seed=1)

    def allows(id):
        return len(index.search(points[0], k=1, filter=own)[1]) > 0

    own = garlic.filter(allows)
    with pytest.raises(RuntimeError, match="same filter"):
        index.search(points[0], k=5, filter=own)
    # A function that may search with another filter.
    inner = garlic.filter(lambda id: id % 2 == 0)
    even = garlic.filter(lambda id: index.search(points[id], k=1, filter=inner, exact=True)[1][0] == id)
    _, ids = index.search(points[0], k=300, filter=even, exact=True)
    assert sorted(ids[ids >= 0].tolist()) == list(range(0, 300, 2))
