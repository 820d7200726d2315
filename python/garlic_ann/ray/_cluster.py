"""Runs the steps of a build as tasks of Ray, and takes the blocks of its data sets."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray as _ray

from ..sharded import _source
from ..sharded._source import Block

# A task is run again if its machine is lost, but not for ever: it may be what kills the process.
_RETRIES = 10

# Ray's decorators have no types that fit functions of any arguments.
ray: Any = _ray


class Cluster:
    """An engine whose steps are stateless tasks. Ray runs a task again if its machine is lost."""

    def __init__(self, cpus: float = 1) -> None:
        self._cpus = cpus
        self._remotes: dict[int, Any] = {}
        self._started: list[Any] = []

    def _remote(self, count: int) -> Any:
        if count not in self._remotes:
            options = {"num_cpus": self._cpus, "num_returns": count, "max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}
            self._remotes[count] = ray.remote(**options)(_guarded)
        return self._remotes[count]

    def _start(self, function: Callable[..., Any], count: int, args: Sequence[Any]) -> Any:
        """Starts a task of ``count`` results, or of one that is no list if it is 0."""
        return self._remote(max(count, 1)).options(name=function.__name__).remote(function, count, *args)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        handle = self._start(function, 0, args)
        self._started.append(handle)
        return handle

    def call_many(self, count: int, function: Callable[..., Any], *args: Any) -> list[Any]:
        # These are not kept in _started: Ray would keep their results in memory.
        handles = self._start(function, count, args)
        return [handles] if count == 1 else list(handles)

    def get(self, handles: Sequence[Any]) -> list[Any]:
        # The first error that occurs ends the waiting, not the first one in order.
        pending = list(handles)
        while pending:
            done, pending = ray.wait(pending, num_returns=1)
            value(done[0])
        known = set(handles)
        self._started = [handle for handle in self._started if handle not in known]
        return [value(handle) for handle in handles]

    def stop(self) -> None:
        for handle in self._started:
            ray.cancel(handle)
        if self._started:
            ray.wait(self._started, num_returns=len(self._started), timeout=60)
        self._started = []


class _Remote(Exception):
    """Shows the lines of the task that raised an error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """An error of a task, as its result. Ray logs every error that nobody asks for; users should see one."""

    error: Exception
    lines: str


def _guarded(function: Callable[..., Any], count: int, *args: Any) -> Any:
    """The result of a function, or a list of ``count`` results; failures instead if it or what it needs has failed."""
    failure = next((arg for arg in args if isinstance(arg, Failure)), None)
    result: Any = failure
    if failure is None:
        try:
            result = function(*args)
        except Exception as error:
            result = Failure(error, traceback.format_exc())
    if count == 0:
        return result
    results = [result] * count if isinstance(result, Failure) else list(result)
    return results[0] if count == 1 else results


def value(handle: Any) -> Any:
    """A result; an error of the task as the task raised it."""
    try:
        found = ray.get(handle)
    except ray.exceptions.RayTaskError as error:
        raise error if error.cause is None else error.cause from None
    if isinstance(found, Failure):
        raise found.error from _Remote(found.lines)
    return found


def blocks_of(data: Any) -> list[tuple[Block, Any]]:
    """Blocks of a data set of Ray, which stay in its object store, or of what ``garlic_ann.sharded`` takes."""
    from ray.data import Dataset

    if not isinstance(data, Dataset):
        return [(block, None if table is None else ray.put(table)) for block, table in _source.blocks_of(data)]
    # Without a column of identifiers, rows are known by their numbers.
    data.context.execution_options.preserve_order = True
    tables = data.materialize().to_arrow_refs()
    count = ray.remote(num_cpus=0.1, max_retries=_RETRIES)(_rows)
    blocks, start = [], 0
    for number, (table, rows) in enumerate(zip(tables, ray.get([count.remote(table) for table in tables]))):
        blocks.append((Block(f"block {number} of the data set", 0, start, rows), table))
        start += rows
    return blocks


def _rows(table: Any) -> int:
    return int(table.num_rows)


def connect() -> None:
    """Starts Ray on this machine unless the program has connected to a cluster."""
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
