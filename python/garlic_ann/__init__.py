"""Nearest-neighbour search with recall targets.

>>> import numpy as np
>>> import garlic_ann as garlic
>>> x = np.random.default_rng(1).normal(size=(2000, 16)).astype(np.float32)
>>> index = garlic.build(x, seed=1)
>>> distances, ids = index.search(x[:3], k=5, recall=0.95)
>>> ids.shape
(3, 5)
>>> ids[:, 0].tolist()
[0, 1, 2]

Points may have names and columns, and filters are expressions over these:

>>> index = garlic.build(x, ids=[f"page {i}" for i in range(2000)], columns={"year": range(2000)})
>>> distances, ids, columns = index.search(x[:3], k=5, filter="year < 1000", columns=["year"])
>>> ids[0, 0], int(columns["year"][0, 0])
('page 0', 0)

Distances are not squared. Identifiers are int64, or text. If there are fewer than ``k`` neighbours, the remaining entries are
infinity, and -1 or ``None``. Searches release the interpreter lock, and many threads may search and change one index at once.
"""

from typing import Any

from ._arrays import filter_of as filter
from ._files import Points, read, write
from ._garlic import Filter, FormatError, Table, __version__
from ._index import Index, build, from_bytes, open, verify
from ._live import Live
from ._options import parameters

__all__ = [
    "Filter",
    "FormatError",
    "Index",
    "Live",
    "Points",
    "Table",
    "__version__",
    "build",
    "filter",
    "from_bytes",
    "open",
    "parameters",
    "read",
    "verify",
    "write",
]


def __getattr__(name: str) -> Any:
    # Modules that need more than NumPy, or are needed rarely, are imported when they are first named.
    if name in ("datasets", "langchain", "llama_index", "plot", "ray", "sharded", "sklearn"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
