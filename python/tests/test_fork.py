"""What a forked child may do with an index, and with an index directory that its parent has open."""

import os
import signal
import subprocess
import sys
import textwrap

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


@pytest.fixture
def place(tmp_path, points):
    place = tmp_path / "live"
    garlic.Live.create(place, garlic.build(points[:200], seed=1)).close()
    return place


def test_a_child_cannot_write_through_its_parents_handle(place, points):
    live = garlic.Live.open(place)
    live.add(points[200:210])
    before = sorted((f.name, f.read_bytes()) for f in place.iterdir())

    def work():
        for write in (
            lambda: live.add(points[210:220]),
            lambda: live.remove([1]),
            lambda: live.update(points[:1], [1]),
            live.compact,
            live.checkpoint,
            live.sync,
        ):
            with pytest.raises(OSError, match="forked"):
                write()
        assert live.status() is None
        assert live.search(points[5], k=1, exact=True)[1].tolist() == [5]
        assert live.inspect()["points"] == 210
        # The parent still has it.
        with pytest.raises(OSError, match="another writer"):
            garlic.Live.open(place)
        live.close()
        with pytest.raises(OSError, match="another writer"):
            garlic.Live.open(place)

    assert in_child(work) == 0
    assert sorted((f.name, f.read_bytes()) for f in place.iterdir()) == before
    with pytest.raises(OSError, match="another writer"):
        garlic.Live.open(place)
    live.add(points[210:220])
    live.close()
    assert len(garlic.Live.open(place)) == 220


def test_a_child_does_not_keep_a_directory_that_its_parent_has_closed(place, points):
    live = garlic.Live.open(place)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    live.close()
    again = garlic.Live.open(place)
    again.add(points[200:210])
    os.write(go[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The child's end takes no lock away.
    with pytest.raises(OSError, match="another writer"):
        garlic.Live.open(place)


DIES = """
    import os, sys, time, garlic_ann as garlic
    live = garlic.Live.open(sys.argv[1])
    if os.fork() == 0:
        print("forked", flush=True)
        time.sleep(60)
    time.sleep(0.5)
    os._exit(0)
"""


def test_a_child_does_not_keep_the_directory_of_a_parent_that_died(place):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(DIES), str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        try:
            assert parent.stdout.readline() == b"forked\n"
            assert parent.wait(30) == 0
            garlic.Live.open(place).close()
        finally:
            # The child is all that is left of the session.
            os.killpg(parent.pid, signal.SIGKILL)


def test_a_child_opens_a_directory_of_its_own(place, points):
    live = garlic.Live.open(place)
    live.close()

    def work():
        with garlic.Live.open(place) as own:
            own.add(points[200:210])
            own.compact()

    assert in_child(work) == 0
    assert len(garlic.Live.open(place)) == 210
