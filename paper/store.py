"""Result files: one a run, written whole or not at all, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def save(path: Path, content: dict[str, Any]) -> None:
    """Writes `content` as JSON; a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(_rounded(content), indent=1, sort_keys=True) + "\n")
    partial.replace(path)


def load(path: Path) -> dict[str, Any] | None:
    """The content of a file, None when there is none."""
    return json.loads(path.read_text()) if path.is_file() else None


def _rounded(value: Any) -> Any:
    """Seven digits are more than was measured, and a third of the size."""
    if isinstance(value, float):
        return None if value != value or value in (float("inf"), float("-inf")) else float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return value
