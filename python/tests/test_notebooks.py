"""The notebooks run from their first cell to the last, and carry no outputs."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples/notebooks").glob("*.ipynb"))
NEEDS = {"text_search": ["sklearn"], "images": ["sklearn", "matplotlib"]}

# What a notebook does with a cell: the value of its last line is shown.
RUN = """
import ast, json, sys
for cell in json.load(sys.stdin):
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), globals())
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), globals())
        html = getattr(value, "_repr_html_", lambda: None)()
        print("shown:", html or repr(value))
"""


def cells(path):
    """The code of the cells of a notebook."""
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_some():
    assert {path.stem for path in NOTEBOOKS} == {"text_search", "images", "filters_and_updates"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    for package in NEEDS.get(path.stem, []):
        pytest.importorskip(package)
    command = [sys.executable, "-W", "error::UserWarning:__main__", "-c", RUN]
    environment = os.environ | {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path)}
    ran = subprocess.run(command, input=json.dumps(cells(path)), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "shown: <div" in ran.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert all(ast.parse(cell) for cell in cells(path))
