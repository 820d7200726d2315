"""Indexes whose vectors stay on the disk."""

import os
import pickle
import signal
import threading

import garlic_ann as garlic
import numpy as np
import pytest

READS = ["io_uring", "threads"]


@pytest.fixture(params=READS)
def opened(request, tmp_path, monkeypatch, points):
    """An index in memory, and the same one on the disk."""
    monkeypatch.setenv("GARLIC_IO", request.param)
    x = np.tile(points, (3, 1))[:6000] + np.random.default_rng(1).normal(size=(6000, points.shape[1])).astype(np.float32)
    index = garlic.build(x.astype(np.float32), seed=1)
    index.save(tmp_path / "x.garlic")
    return index, garlic.open(tmp_path / "x.garlic", vectors="disk")


def same(found, wanted):
    return all(np.array_equal(a, b) for a, b in zip(found, wanted))


def test_searches_answer_as_in_memory(opened, points):
    index, disk = opened
    assert disk.stats()["disk_reads"] in READS and index.stats()["disk_reads"] is None
    assert disk.stats()["memory"]["vectors"] == disk.stats()["mapped_bytes"] == 0
    queries = points[:50]
    for how in ({}, {"recall": 0.99}, {"exact": True}, {"filter": np.arange(0, 6000, 7)}):
        assert same(disk.search(queries, k=10, **how), index.search(queries, k=10, **how))
        assert same(disk.search(queries[0], k=3, **how), index.search(queries[0], k=3, **how))
    assert np.array_equal(disk.get([5, 4000]), index.get([5, 4000]))
    assert disk.to_bytes() == index.to_bytes()
    assert same(pickle.loads(pickle.dumps(disk)).search(queries), index.search(queries))


def test_it_is_read_only(opened, points):
    with pytest.raises(ValueError, match="cannot be changed"):
        opened[1].add(points[:1])
    with pytest.raises(ValueError, match="vectors"):
        garlic.open("x", vectors="memory")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_and_its_parent_search_at_the_same_time(opened, points):
    index, disk = opened
    wanted = index.search(points[:100], k=10)
    assert same(disk.search(points[:100], k=10), wanted)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            code = 0 if all(same(disk.search(points[:100], k=10, threads=1 + i % 2), wanted) for i in range(20)) else 2
        finally:
            os._exit(code)
    assert all(same(disk.search(points[:100], k=10), wanted) for _ in range(20))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_search_at_the_same_time(opened, points):
    index, disk = opened
    wanted, found = index.search(points[:100], k=10), []
    threads = [threading.Thread(target=lambda: found.append(disk.search(points[:100], k=10, threads=1))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(same(f, wanted) for f in found)


def test_a_file_that_is_cut_is_an_error(opened, tmp_path, points):
    disk = opened[1]
    os.truncate(tmp_path / "x.garlic", 40_000)
    with pytest.raises(OSError, match="vectors could not be read"):
        disk.search(points[:5], k=10)
    with pytest.raises(garlic.FormatError):
        garlic.open(tmp_path / "x.garlic", vectors="disk")
