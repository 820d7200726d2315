"""Data and helpers that the tests share."""

import os
import sys

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, os.path.dirname(__file__))

settings.register_profile("short", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile("soak" if os.environ.get("GARLIC_SOAK") else "short")


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
