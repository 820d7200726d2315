"""Data of the tests: clusters of different shapes, queries between them, and their true distances.

The experiments need Python 3.11; the package does not.
"""

import sys

import numpy as np
import pytest

collect_ignore_glob = [] if sys.version_info >= (3, 11) else ["test_*.py"]


def pytest_report_header() -> str | None:
    """Says loudly what is left out."""
    return None if not collect_ignore_glob else "NOT RUN: the tests of `make paper` need Python 3.11 or later"


class Data:
    """2,000 points around 20 centres in 24 dimensions, 60 queries, the ten true distances of each."""

    def __init__(self) -> None:
        random = np.random.default_rng(11)
        centres = random.normal(0, 3, (20, 24))
        scales = random.uniform(0.2, 1.5, (20, 24))

        def draw(count: int) -> np.ndarray:
            label = random.integers(20, size=count)
            return (centres[label] + scales[label] * random.normal(size=(count, 24))).astype(np.float32)

        self.base, self.queries = draw(2000), draw(60)
        difference = self.queries[:, None].astype(np.float64) - self.base[None].astype(np.float64)
        self.distances = np.sqrt((difference**2).sum(axis=2))
        self.truth = np.sort(self.distances, axis=1)[:, :10]


@pytest.fixture(scope="session")
def data() -> Data:
    return Data()
