"""docs/reference/configuration.md has the tables that `garlic config --markdown` prints."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_the_page_has_the_tables(program, preset):
    run = [program, "config", "--preset", preset, "--markdown"]
    tables = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert tables.count("| `") > 10
    assert tables in page, f"put the output of `{' '.join(map(str, run[1:]))}` into the page"
