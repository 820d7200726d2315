"""The examples run; those that need a download are left out."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {"texts.py": "sklearn"}


@pytest.mark.parametrize("name", ["quickstart.py", "texts.py", "filtered.py", "streaming.py"])
def test_examples(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    ran = subprocess.run([sys.executable, EXAMPLES / name], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("\n") >= 3
    assert not list(tmp_path.iterdir())
