"""A system that starts no more threads: errors say so, and nothing is taken for damaged."""

import os
import subprocess
import sys
import textwrap

import garlic_ann as garlic
import numpy as np

# No address space has room for stacks of this size, so that the library cannot start a thread.
NO_THREADS = {"RUST_MIN_STACK": str(1 << 47)}

SCRIPT = """
    import sys, numpy as np, garlic_ann as garlic
    x = np.random.default_rng(1).normal(size=(200, 8)).astype(np.float32)

    def told(action):
        try:
            action()
        except RuntimeError as error:
            assert "could not start" in str(error), error
            return
        raise AssertionError("no error")

    told(lambda: garlic.build(x))
    told(lambda: garlic.build(x, threads=1))
    told(lambda: garlic.Index(8).add(x))
    told(lambda: garlic.Live.open(sys.argv[1]))
    told(lambda: garlic.Live.open(sys.argv[1], read_only=True))
    index = garlic.open(sys.argv[2])
    told(lambda: index.add(x))
    told(lambda: index.search(x, k=3, threads=4))
    assert index.search(x, k=1, exact=True)[1][:, 0].tolist() == list(range(200))
    assert index.inspect()["points"] == 200
    print("all as expected")
"""


def test_a_system_without_threads(tmp_path):
    x = np.random.default_rng(1).normal(size=(200, 8)).astype(np.float32)
    index = garlic.build(x, seed=1)
    index.save(tmp_path / "file.garlic")
    with garlic.Live.create(tmp_path / "live", index) as live:
        live.add(x[:3])
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), tmp_path / "live", tmp_path / "file.garlic"],
        env={**os.environ, **NO_THREADS},
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "all as expected\n", ran.stderr
    assert len(garlic.Live.open(tmp_path / "live")) == 203
