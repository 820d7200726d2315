"""Docstrings and pages: every example runs."""

import doctest
import importlib
import pkgutil
import re
from contextlib import contextmanager, nullcontext
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
    if name.endswith("sharded"):
        pytest.importorskip("pyarrow")
    if name.endswith("ray"):
        pytest.importorskip("ray")
    if name.endswith("plot"):
        pytest.importorskip("matplotlib").use("Agg")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@contextmanager
def local_ray():
    """Ray on this machine alone, for as long as a page needs it."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        yield
    finally:
        ray.shutdown()


PAGES = ["quickstart", "data", "columns", "python", "migrate", "vector-stores", "ray"]


@pytest.mark.parametrize("page", [f"docs/guide/{name}.md" for name in PAGES])
def test_pages(page, tmp_path, monkeypatch):
    path = ROOT / page
    if not path.exists():
        pytest.skip(f"{page} is not there")
    if page.endswith("vector-stores.md"):
        pytest.importorskip("langchain_core")
        pytest.importorskip("llama_index.core")
    if page.endswith("ray.md"):
        pytest.importorskip("ray")
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    # The blocks of a page follow each other, as a reader would type them.
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)
    assert blocks
    names: dict = {"__name__": "page"}
    with local_ray() if page.endswith("ray.md") else nullcontext():
        for block in blocks:
            exec(compile(block, page, "exec"), names)
