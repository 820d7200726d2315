"""Telling how far a build is: a tqdm bar where tqdm is installed, else a line on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

Report = Callable[[str, int, int], None]


class Progress:
    """A bar for as long as the ``with`` block lasts; nothing at all unless ``wanted``."""

    def __init__(self, wanted: bool | Report) -> None:
        self._wanted = wanted
        self._bar: Any = None
        self._stage = ""
        self._width = 0

    def __enter__(self) -> Report | None:
        if callable(self._wanted):
            return self._wanted
        if not self._wanted:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return self._line
        self._bar = tqdm(desc="build", leave=False)
        return self._tick

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._width:
            print(file=sys.stderr)

    def _tick(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._bar.set_description(stage, refresh=False)
            self._bar.reset(total)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def _line(self, stage: str, done: int, total: int) -> None:
        text = f"{stage} {done}/{total}"
        self._width = max(self._width, len(text))
        print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
