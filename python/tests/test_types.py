"""Type checkers: the package, the examples and the notebooks pass mypy --strict and pyright, and mistakes are found."""

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path

import garlic_ann
import pytest
from test_notebooks import NOTEBOOKS, cells

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
PACKAGE = Path(garlic_ann.__file__).parent
# Modules of the packages inside, by their names; those of Ray where it is installed.
SHARDED = [
    ".".join([folder, *([] if path.stem == "__init__" else [path.stem])])
    for folder in ("sharded", *(["ray"] if importlib.util.find_spec("ray") else []))
    for path in sorted((PACKAGE / folder).glob("*.py"))
]
WRONG = """import garlic_ann as garlic
garlic.Index(3, metric="manhattan")
garlic.Index(3, bin_size="x")
garlic.Index(3, cels=3)
distances, ids = garlic.Index(3).search([1, 2, 3], columns=["a"])
garlic.Index(3).search([1, 2, 3], recal=0.9)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The examples, and the code of the notebooks as modules."""
    place = tmp_path_factory.mktemp("notebooks")
    written = [place / f"{path.stem}.py" for path in NOTEBOOKS]
    for path, notebook in zip(written, NOTEBOOKS):
        path.write_text("\n".join(cells(notebook)))
    return [str(path) for path in [*EXAMPLES, *written]]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong") / "wrong.py"
    path.write_text(WRONG)
    return str(path)


def mypy(*files):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *files]
    return subprocess.run(command, capture_output=True, text=True)


def test_mypy(sources, wrong):
    modules = ["_documents", "_conditions", "_files", "_remote", "client", "cloud", "langchain", "llama_index", *SHARDED]
    for what in (sources, [part for name in modules for part in ("-m", f"garlic_ann.{name}")]):
        ran = mypy(*what)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = mypy(wrong)
    assert {line.split(":")[1] for line in ran.stdout.splitlines() if "error:" in line} == {"2", "3", "4", "5", "6"}, ran.stdout


def pyright(*files):
    """What pyright says; loudly nothing where it cannot run, because it fetches its program on first use."""
    pytest.importorskip("pyright")
    started = subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, text=True)
    if started.returncode != 0:
        message = f"NOT TESTED: the examples with pyright, which cannot start here: {started.stderr[-300:]}"
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *files]
    ran = subprocess.run(command, capture_output=True, text=True)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    return [(entry["range"]["start"]["line"] + 1, entry["file"], entry["message"]) for entry in found if entry["severity"] == "error"]


def test_pyright(sources, wrong):
    assert pyright(*sources) == []
    assert {line for line, _, _ in pyright(wrong)} == {2, 3, 4, 5, 6}
