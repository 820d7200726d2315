"""Data and helpers that the tests share."""

import os
import sys
import uuid
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, os.path.dirname(__file__))

settings.register_profile("short", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile("soak" if os.environ.get("GARLIC_SOAK") else "short")


@pytest.fixture(scope="session")
def program():
    """The program `garlic`: the one that GARLIC_BIN names, else the newest that cargo has built."""
    target = Path(__file__).parents[2] / "target"
    named = os.environ.get("GARLIC_BIN")
    found = [path for path in ([Path(named)] if named else target.glob("*/garlic")) if path.is_file()]
    if not found:
        message = "NOT TESTED: the documents' shell examples and parameters. Build the program, or name it in GARLIC_BIN."
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    return max(found, key=lambda path: path.stat().st_mtime).resolve()


def clusters(count):
    """Clusters of different shapes, so that there are cells to find."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(20, 24)) * 4
    spread = random.gamma(1.0, size=(20, 24))
    cluster = random.integers(20, size=count)
    return (centres[cluster] + random.normal(size=(count, 24)) * spread[cluster]).astype(np.float32)


@pytest.fixture(scope="session")
def points():
    """So few that every search with a recall target reads all of them."""
    return clusters(4000)


@pytest.fixture(scope="session")
def many_points():
    """So many that a search with a recall target reads some of them."""
    return clusters(20_000)


@pytest.fixture(scope="session")
def queries(points):
    random = np.random.default_rng(8)
    near = points[random.choice(len(points), 60, replace=False)]
    return (near + random.normal(size=near.shape) * 0.3).astype(np.float32)


@pytest.fixture(scope="session")
def built_of_many(many_points):
    """An index of `many_points` that no test changes."""
    import garlic_ann as garlic

    return garlic.build(many_points, seed=1)


@pytest.fixture(scope="session")
def built(points):
    """An index of `points` that no test changes."""
    import garlic_ann as garlic

    return garlic.build(points, seed=1)


@pytest.fixture(scope="session")
def server(program, tmp_path_factory):
    """The address of a server whose indexes are made by :func:`make_remote`."""
    from served import served

    with served(program, "--root", tmp_path_factory.mktemp("served")) as url:
        yield url


@pytest.fixture
def make_remote(server):
    """Makes empty indexes of a server, which live as long as the test."""
    from garlic_ann.client import Client

    with Client(server) as client:
        made = []

        def make(dim, metric="cosine"):
            made.append(client.create(uuid.uuid4().hex, dim, metric=metric))
            return made[-1]

        yield make
        for index in made:
            client.delete(index.name)
