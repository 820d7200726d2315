"""The nearest neighbours of every row of a data set."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs import arrow_rows
from ..sharded._index import Routed, ShardedIndex
from ..sharded._source import is_text, plain_type, pyarrow


@lru_cache(maxsize=2)
def _opened(path: str, manifest: bytes) -> ShardedIndex:
    """The tasks of one process share an index, and all tasks search the one that was there at first."""
    return ShardedIndex(path, manifest)


def neighbors_of(table: Any, index: Routed | tuple[str, bytes], options: dict[str, Any]) -> Any:
    """The table with columns ``neighbors`` and ``distances``."""
    pa = pyarrow()
    searched = _opened(*index) if isinstance(index, tuple) else index
    k, exclude = options["k"], options["exclude"]
    column = options["vectors"]
    for name in (column, exclude):
        if name is not None and name not in table.column_names:
            raise ValueError(f"the queries have no column `{name}`; they have {', '.join(table.column_names)}")
    rows = table.num_rows
    queries = np.require(arrow_rows(table.column(column), f"column `{column}`"), np.float32, ["C"])
    if rows == 0:
        queries = queries.reshape(0, searched.dim)
    asked = k if exclude is None else k + 1
    distances, ids = searched.search(queries, asked, recall=options["recall"], filter=options["filter"], exact=options["exact"])
    keep = np.isfinite(distances)
    if exclude is not None:
        keep &= ids != _own(table.column(exclude), exclude, searched.manifest.named)[:, None]
        keep &= keep.cumsum(axis=1) <= k
    ends = np.concatenate([[0], keep.sum(axis=1).cumsum()])
    kind = pa.string() if searched.manifest.named else pa.int64()
    return table.append_column("neighbors", _lists(ids, keep, ends, kind)).append_column(
        "distances", _lists(distances, keep, ends, pa.float32())
    )


def _own(column: Any, name: str, named: bool) -> NDArray[Any]:
    """The identifiers of the rows themselves. Those of another kind would be equal to none."""
    kind = plain_type(column.type)
    is_fit = is_text(kind) if named else pyarrow().types.is_integer(kind)
    if not is_fit and not pyarrow().types.is_null(kind):
        wanted = "text" if named else "whole numbers"
        raise ValueError(f"exclude: column `{name}` is of type {column.type}, the identifiers of the index are {wanted}")
    return np.array(column.to_pylist(), object)


def _lists(values: NDArray[Any], keep: NDArray[np.bool_], ends: NDArray[np.int64], kind: Any) -> Any:
    pa = pyarrow()
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(values[keep], kind))
