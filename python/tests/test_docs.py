"""Docstrings and pages: every example runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import garlic_ann
import pytest

ROOT = Path(__file__).parents[2]
MODULES = ["garlic_ann"] + [f"garlic_ann.{m.name}" for m in pkgutil.iter_modules(garlic_ann.__path__)]


@pytest.mark.parametrize("name", [m for m in MODULES if m != "garlic_ann._garlic"])
def test_docstrings(name):
    if name.endswith("sklearn"):
        pytest.importorskip("sklearn")
    if name.endswith("langchain"):
        pytest.importorskip("langchain_core")
    if name.endswith("llama_index"):
        pytest.importorskip("llama_index.core")
    if name.endswith("plot"):
        pytest.importorskip("matplotlib").use("Agg")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


PAGES = ["quickstart", "data", "columns", "python", "migrate", "vector-stores"]


@pytest.mark.parametrize("page", [f"docs/guide/{name}.md" for name in PAGES])
def test_pages(page, tmp_path, monkeypatch):
    path = ROOT / page
    if not path.exists():
        pytest.skip(f"{page} is not there")
    if page.endswith("vector-stores.md"):
        pytest.importorskip("langchain_core")
        pytest.importorskip("llama_index.core")
    monkeypatch.chdir(tmp_path)
    # The blocks of a page follow each other, as a reader would type them.
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)
    assert blocks
    names: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
