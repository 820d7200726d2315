"""The examples of the README run as they stand; rustdoc runs the one in Rust."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, language):
    """The code of every block of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_it_is_short():
    assert README.count("\n") <= 120


def test_every_example_is_there_once_and_tested():
    languages = re.findall(r"^```(\w+)$", README, re.M)
    # Nothing in blocks of `console` is run: they install things, or take hours.
    assert sorted(language for language in languages if language != "console") == ["python", "rust", "sh"]
    assert all(len(blocks(README, language)[0].splitlines()) <= 14 for language in ("python", "rust", "sh"))
    assert "fn main()" in blocks(README, "rust")[0]


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_python(page, tmp_path):
    (code,) = blocks((ROOT / page).read_text(encoding="utf-8"), "python")
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "10500" in ran.stdout
    assert (tmp_path / "vectors.garlic").is_file()


@pytest.mark.skipif(os.name != "posix", reason="the example is for a POSIX shell")
def test_shell(program, tmp_path):
    (code,) = blocks(README, "sh")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "garlic").symlink_to(program)
    path = os.pathsep.join([str(commands), os.environ["PATH"]])
    ran = subprocess.run(["sh", "-ec", code], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    # Ten neighbours of each of a hundred queries, without the header: query, rank, identifier, distance.
    rows = [(tmp_path / name).read_text().splitlines()[1:] for name in ("hits.csv", "exact.csv")]
    hits, exact = ({tuple(line.split(",")[0:3:2]) for line in lines} for lines in rows)
    assert len(hits) == len(exact) == 1000
    # The target is .95. The data are random and differ from run to run, hence the room.
    assert len(hits & exact) > 900
    assert "10,098 points" in ran.stdout


def test_the_chart_shows_the_results(tmp_path):
    pytest.importorskip("matplotlib")
    chart = tmp_path / "chart.svg"
    subprocess.run([sys.executable, ROOT / "bench/chart.py", chart], check=True, capture_output=True)
    # Other versions of matplotlib place labels elsewhere; titles, names and the number of points do not change.
    drawn, committed = chart.read_text(), (ROOT / "docs/recall-and-speed.svg").read_text()
    assert sorted(re.findall(r"<text[^>]*>([^<]*)</text>", drawn)) == sorted(re.findall(r"<text[^>]*>([^<]*)</text>", committed))
    assert drawn.count("<use") == committed.count("<use")
