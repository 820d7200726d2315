"""Threads, Ctrl-C, progress, memory."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import garlic_ann as garlic
import numpy as np
import pytest


def test_searches_while_points_come_and_go(points):
    index = garlic.build(points[:1000], seed=1)
    failures, stop = [], threading.Event()

    def search():
        while not stop.is_set():
            distances, ids = index.search(points[:20], k=5, exact=True)
            if not (ids[:, 0] == np.arange(20)).all() or (distances[:, 0] != 0).any():
                failures.append(ids[:, 0])

    searchers = [threading.Thread(target=search) for _ in range(3)]
    writers = [
        threading.Thread(target=lambda: [index.add(points[1000:1010]) for _ in range(20)]) for _ in range(2)
    ]
    for thread in searchers + writers:
        thread.start()
    for writer in writers:
        writer.join()
    stop.set()
    for searcher in searchers:
        searcher.join()
    assert not failures
    assert len(index) == 1400 and len(set(index.ids().tolist())) == 1400


def test_threads_that_all_add_first(points):
    index = garlic.Index(24, seed=1)
    threads = [threading.Thread(target=index.add, args=(points[i * 100 : i * 100 + 100],)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 600
    assert (index.search(points[:600], k=1, exact=True)[0] == 0).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_index_can_be_searched(points):
    index = garlic.build(points[:1000], seed=1)
    index.add(points[1000:1100])
    wanted = index.search(points[:50], k=5)[1]
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        same = all((index.search(points[:50], k=5, threads=t)[1] == wanted).all() for t in (1, 2))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ctrl_c_ends_a_build():
    # Minutes of work, were it not for the signal.
    x = np.random.default_rng(1).normal(size=(200_000, 96)).astype(np.float32)
    press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    # A shell starts what runs in its background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    press.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            garlic.build(x)
    finally:
        press.join()
        signal.signal(signal.SIGINT, before)


def test_what_a_progress_function_raises_ends_the_build():
    x = np.random.default_rng(1).normal(size=(60_000, 64)).astype(np.float32)

    def fails(stage, done, total):
        assert stage in ("prepare", "train", "assign", "bins", "calibrate") and done <= total
        raise LookupError("as planned")

    with pytest.raises(LookupError, match="as planned"):
        garlic.build(x, progress=fails)


@pytest.mark.parametrize("tqdm", [True, False])
def test_progress_goes_to_standard_error(tqdm, capsys, monkeypatch):
    if tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    x = np.random.default_rng(1).normal(size=(12_000, 16)).astype(np.float32)
    garlic.build(x, progress=True)
    told = capsys.readouterr()
    # Stages that are over at once are not shown.
    assert any(stage in told.err for stage in ("train", "assign", "bins", "calibrate")) and told.out == ""


CYCLES = """
    import gc, os, numpy as np, garlic_ann as garlic
    x = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
    page = os.sysconf("SC_PAGE_SIZE")
    used = lambda: int(open("/proc/self/statm").read().split()[1]) * page
    cycles = int(os.environ["CYCLES"])
    for cycle in range(cycles):
        index = garlic.from_bytes(garlic.build(x, threads=1).to_bytes())
        index.search(x[:2], k=3, filter=lambda id: id < 30)
        if cycle == cycles // 4:
            gc.collect()
            before = used()
    gc.collect()
    print(used() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_building_and_dropping_leaves_nothing_behind():
    cycles = "10000" if os.environ.get("GARLIC_SOAK") else "2000"
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CYCLES)],
        env={**os.environ, "CYCLES": cycles},
        capture_output=True,
        text=True,
        check=True,
    )
    # An index of this size takes more than 10 kB: thousands of them would show.
    assert int(ran.stdout) < 4 << 20
