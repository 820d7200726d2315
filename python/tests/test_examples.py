"""The examples run; the one that would download finds a small set of its own in the data directory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_images_are_classified(tmp_path):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("sklearn")
    random = np.random.default_rng(1)
    labels = random.integers(2, size=700)
    images = (random.normal(size=(2, 784))[labels] + 0.3 * random.normal(size=(700, 784))).astype(np.float32)
    with h5py.File(tmp_path / "mnist-784-euclidean.hdf5", "w") as file:
        file["train"], file["test"] = images[:600], images[600:]
        file["train_labels"], file["test_labels"] = labels[:600].astype(np.uint8), labels[600:].astype(np.uint8)
    environment = os.environ | {"GARLIC_DATA": str(tmp_path)}
    command = [sys.executable, EXAMPLES / "classify_mnist.py", "mnist"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    # Two groups far apart: whoever votes is right.
    assert ran.stdout.count("100.00% right") == 3, ran.stdout
