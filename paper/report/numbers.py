"""Numbers as people read them, and as programs do."""

from __future__ import annotations

from typing import Any

from paper.report.curves import Estimate

NONE = "–"


def count(value: float) -> str:
    """1,234 or, for small means, 12.3."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}".removesuffix(".0")


def share(value: float) -> str:
    """A recall: three digits, as in .934; 1.000 in full."""
    return f"{value:.3f}"


def short(value: float) -> str:
    """Four significant digits without an exponent for usual sizes."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{100.0 * value:.{digits}f} %"


FORMATS = {
    "count": count,
    "share": share,
    "number": short,
    "fixed": lambda value: f"{value:.2f}",
    "seconds": lambda value: f"{value:,.1f}",
}


def text(value: Any, kind: str = "text") -> str:
    """A cell of a table as text; what was not measured is a dash."""
    if value is None:
        return NONE
    if isinstance(value, Estimate):
        return _estimate(value, kind)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return FORMATS.get(kind, short)(value)
    return str(value)


def _estimate(value: Estimate, kind: str) -> str:
    if value.value is None:
        return NONE
    show = FORMATS.get(kind, short)
    bound = {"<=": "≤ ", ">=": "≥ "}.get(value.bound, "")
    spread = f" ± {show(value.spread)}" if value.spread is not None else ""
    return f"{bound}{show(value.value)}{spread}"


def plain(value: Any) -> Any:
    """A cell as JSON; rounded, so that the last bits of a platform's logarithm do not show."""
    if isinstance(value, Estimate):
        found: dict[str, Any] = {"value": plain(value.value)}
        if value.bound:
            found["bound"] = value.bound
        if value.spread is not None:
            found["spread"] = plain(value.spread)
        return found if len(found) > 1 else found["value"]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value
