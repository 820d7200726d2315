"""Arrays that another thread changes while they are added: what is checked is what is kept."""

import threading
import tracemalloc
from contextlib import contextmanager

import garlic_ann as garlic
import numpy as np
import pytest


@contextmanager
def changing(array, *values):
    """Another thread puts one value after the other into the last entry of ``array``."""
    stop = threading.Event()

    def change():
        while not stop.is_set():
            for value in values:
                array[-1] = value

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def attempt(change):
    try:
        change()
    except (ValueError, KeyError):
        return 0
    return 1


def same_after_opening(live, place):
    ids = live.ids()
    kept = live.get(ids)
    assert np.isfinite(kept).all()
    live.close()
    with garlic.Live.open(place) as again:
        assert (again.ids() == ids).all()
        assert (again.get(ids) == kept).all()


@pytest.mark.parametrize("values", [(1.0, np.nan), (1.0, 2.0)])
def test_vectors_that_change_while_they_are_added(tmp_path, points, values):
    place = tmp_path / "live"
    live = garlic.Live.create(place, garlic.build(points[:300], seed=1, store="f32"), sync=False)
    x = points[:2000].copy()
    done = 0
    with changing(x, *values):
        for _ in range(25):
            done += attempt(lambda: live.add(x))
            done += attempt(lambda: live.update(x[-100:], range(200, 300)))
    assert done > 0
    same_after_opening(live, place)


def test_identifiers_that_change_while_points_are_added(tmp_path, points):
    place = tmp_path / "live"
    live = garlic.Live.create(place, garlic.build(points[:300], seed=1), sync=False)
    done = 0
    for batch in range(25):
        ids = np.arange(1000 + 2000 * batch, 3000 + 2000 * batch, dtype=np.uint64)
        # 5 is there already.
        with changing(ids, ids[-1], 5):
            done += attempt(lambda: live.add(points[:2000], ids))
            done += attempt(lambda: live.remove(ids[-5:]))
    assert done > 0
    same_after_opening(live, place)


def test_an_index_in_memory_keeps_what_it_has_checked(points):
    x = points[:2000].copy()
    index = garlic.Index(24, seed=1, store="f32")
    with changing(x, 1.0, np.nan):
        for _ in range(25):
            attempt(lambda: index.add(x))
    assert np.isfinite(index.get(index.ids())).all()
    assert len(garlic.from_bytes(index.to_bytes())) == len(index)


def test_a_build_keeps_what_it_has_checked(points):
    x = points[:1000].copy()
    built = []
    with changing(x, 1.0, np.nan):
        for _ in range(10):
            attempt(lambda: built.append(garlic.build(x, seed=1, store="f32")))
    for index in built:
        assert np.isfinite(index.get(index.ids())).all()
        assert len(garlic.from_bytes(index.to_bytes())) == 1000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_copy_is_made(points, dtype):
    index = garlic.build(points[:300], seed=1)
    x = np.tile(points, (10, 1)).astype(dtype)
    one = x.size * 4
    tracemalloc.start()
    try:
        index.add(x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # NumPy tells Python what memory its arrays take; identifiers and the like take little.
    assert one <= most < 1.5 * one
