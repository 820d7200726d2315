"""What a forked child may do with an index."""

import os
import signal

import garlic_ann as garlic
import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def in_child(work):
    """The exit code of a child that does ``work``; it is killed when that takes too long."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(30)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_can_lay_out_and_change_an_index(points):
    index = garlic.build(points[:1000], seed=1)
    index.add(points[1000:1100])
    wanted = index.to_bytes()

    def work():
        assert index.inspect()["points"] == 1100
        assert index.to_bytes() == wanted
        index.add(points[1100:1200])
        index.recalibrate()
        index.compact()
        assert len(index) == 1200
        # And a child of the child.
        assert in_child(lambda: index.add(points[1200:1210])) == 0

    assert in_child(work) == 0
    index.add(points[1100:1150])
    assert len(index) == 1150
