"""Where the steps of a build run: in this process, or as tasks of a cluster (``garlic_ann.ray``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Engine(Protocol):
    """Runs functions. Results are known by handles, which other calls take as arguments."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Starts a function; returns a handle of its result."""
        ...

    def call_many(self, count: int, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Starts a function that returns ``count`` results; returns a handle of each."""
        ...

    def get(self, handles: Sequence[Any]) -> list[Any]:
        """The results. An error of a function is raised here."""
        ...

    def stop(self) -> None:
        """Ends what is still running, before an error is raised."""
        ...


class Local:
    """Runs functions at once, one after the other."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def call_many(self, count: int, function: Callable[..., Any], *args: Any) -> list[Any]:
        return list(function(*args))

    def get(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)

    def stop(self) -> None:
        pass
