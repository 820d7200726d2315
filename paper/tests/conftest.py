"""The experiments need Python 3.11; the package does not."""

import sys

collect_ignore_glob = [] if sys.version_info >= (3, 11) else ["test_*.py"]


def pytest_report_header() -> str | None:
    """Says loudly what is left out."""
    return None if not collect_ignore_glob else "NOT RUN: the tests of `make paper` need Python 3.11 or later"
