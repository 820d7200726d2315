"""What a notebook shows of an index."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

# Bars of the picture at most, its width and its height.
_BARS, _WIDTH, _HEIGHT = 120, 360, 60


def page(title: str, stats: dict[str, Any], cell_sizes: Sequence[int]) -> str:
    """A table of what matters, and a bar for each cell, the largest first.

    >>> stats = {"points": 3, "dim": 2, "metric": "l2", "stored_as": "f32", "cells": 2, "memory": {"vectors": 24},
    ...          "mapped_bytes": 0, "trains_at": None, "reads_everything": False}
    >>> page("Index", stats, [1, 2]).count("<rect")
    2
    """
    taken = sum(value for value in stats["memory"].values() if isinstance(value, int))
    rows = {
        "points": f"{stats['points']:,} of dimension {stats['dim']}",
        "metric": stats["metric"],
        "stored as": stats["stored_as"],
        "cells": f"{stats['cells']:,}",
        "memory": f"{_bytes(taken)}, {_bytes(stats['mapped_bytes'])} of it mapped",
    }
    if stats["trains_at"]:
        rows["trains itself"] = f"at {stats['trains_at']:,} points"
    if stats["reads_everything"]:
        rows["searches"] = "read all points"
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<div><b>{escape(title)}</b><table>{cells}</table>{_picture(cell_sizes)}</div>"


def _picture(sizes: Sequence[int]) -> str:
    """Sizes of the cells as bars; of very many cells, every so many-th."""
    ordered = sorted(sizes, reverse=True)
    shown = ordered[:: max(1, -(-len(ordered) // _BARS))]
    if not shown or not shown[0]:
        return ""
    width = _WIDTH / len(shown)
    bars = "".join(
        f"<rect x='{i * width:.1f}' y='{_HEIGHT * (1 - size / shown[0]):.1f}' width='{width * 0.9:.1f}' "
        f"height='{_HEIGHT * size / shown[0]:.1f}'/>"
        for i, size in enumerate(shown)
    )
    label = f"Points of the {len(ordered)} cells, from {ordered[0]:,} to {ordered[-1]:,}"
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' aria-label='{label}' fill='steelblue'>"
        f"<title>{label}</title>{bars}</svg>"
    )


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            break
        size /= 1000
    else:
        unit = "TB"
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
