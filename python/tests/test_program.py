"""The program `garlic`, as the package installs it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import garlic_ann as garlic
import numpy as np
import pytest

PROGRAM = Path(sys.executable).with_name("garlic")
COMMANDS = {"script": [str(PROGRAM)], "module": [sys.executable, "-m", "garlic_ann"]}


@pytest.fixture(params=COMMANDS)
def garlic_command(request):
    if request.param == "script" and not PROGRAM.exists():
        pytest.fail(f"the package has not installed {PROGRAM}")
    return COMMANDS[request.param]


def run(command, *args, **options):
    return subprocess.run([*command, *args], capture_output=True, text=True, **options)


def test_exit_codes_and_streams(garlic_command, tmp_path):
    version = run(garlic_command, "--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"garlic {garlic.__version__}\n", "")
    for args, code in [((), 2), (("build",), 2), (("search", "nothing.garlic", "nothing.npy"), 3)]:
        ran = run(garlic_command, *args, cwd=tmp_path)
        assert ran.returncode == code and ran.stdout == "" and ran.stderr, args
    # Arguments need not be text.
    ran = subprocess.run([*garlic_command, "inspect", b"\xff.garlic"], capture_output=True)
    assert ran.returncode == 3 and b"no such file" in ran.stderr.lower()


def test_what_the_program_writes_the_package_reads(garlic_command, points, tmp_path):
    np.save(tmp_path / "x.npy", points)
    built = run(garlic_command, "build", "x.npy", "-o", "x.garlic", "--seed", "1", "--json", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    assert garlic.open(tmp_path / "x.garlic").to_bytes() == garlic.build(points, seed=1).to_bytes()


def test_a_closed_pipe_is_no_failure(garlic_command):
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run([*garlic_command, "config"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs the list of threads that Linux has")
def test_ctrl_c_ends_a_command(garlic_command, many_points, tmp_path):
    np.save(tmp_path / "x.npy", np.tile(many_points, (20, 4)))
    command = [*garlic_command, "build", "x.npy", "-o", "x.garlic"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    # Before the program has taken over the signal, it would be Python's.
    while child.poll() is None and "ctrl-c" not in threads(child.pid):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate()
    assert child.returncode == 130, told
    assert b"Traceback" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def threads(process):
    """The names of the threads of a process."""
    return [path.read_text().strip() for path in Path(f"/proc/{process}/task").glob("*/comm")]
