"""The whole report: results in, files out. The same results give the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper.report import diagnostics, dimension, html, markdown, others, sections, training
from paper.report.claims import DISAGREES, PARTLY, Claim, check_claims
from paper.report.document import Section, by_set, method_lines
from paper.report.experiments import ABLATIONS
from paper.report.load import Results, load
from paper.report.mapping import Counterpart, counterparts
from paper.report.notes import NOTES
from paper.report.numbers import plain
from paper.report.tables import full_rows


def make_report(out: Path) -> list[Path]:
    """Writes report.html, summary.md, report.json and figures/ under `out`; the files written."""
    results = load(out)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for old in (out / "figures").glob("*.svg"):
        old.unlink()
    parts = all_sections(results, out)
    claims = check_claims(results)
    add_notes(parts, claims)
    mapping = counterparts(results, parts, claims)
    pages = {
        "report.html": html.page(results, parts, claims, mapping),
        "summary.md": markdown.summary(results, parts, claims, mapping),
        "report.json": _dump(_machine_form(results, parts, claims, mapping)),
    }
    for name, content in pages.items():
        (out / name).write_text(content, encoding="utf-8")
    return [out / name for name in pages] + sorted((out / "figures").glob("*.svg"))


def all_sections(results: Results, out: Path) -> list[Section]:
    """The sections in the order of the report."""
    first = [sections.comparison(results, out), sections.efficiency(results, out), sections.metrics(results, out)]
    lengths = training.training_length(results, out)
    ablations = [sections.ablation(results, spec, out) for spec in ABLATIONS]
    last = [
        dimension.dimensionality(results, out),
        dimension.published(results, out),
        others.classification(results, out),
        others.complexity(results, out),
        diagnostics.diagnostics(results, out),
        others.pictures(results),
    ]
    return [*first, lengths, *ablations, *last]


def add_notes(parts: list[Section], claims: list[Claim]) -> None:
    """Puts the reasons in `notes.py` where they belong; a claim that agrees, or was not measured, needs none."""
    for part in parts:
        if part.ran and part.anchor in NOTES:
            part.finding = f"{part.finding} {NOTES[part.anchor]}".strip()
    for claim in claims:
        if claim.verdict in (PARTLY, DISAGREES) and claim.anchor in NOTES:
            claim.sentence = f"{claim.sentence} {NOTES[claim.anchor]}"


def _machine_form(
    results: Results, parts: list[Section], claims: list[Claim], mapping: list[Counterpart]
) -> dict[str, Any]:
    return {
        "run": results.run_info,
        "dates": results.dates(),
        "problems": results.problems,
        "claims": [claim.plain() for claim in claims],
        "mapping": [one.plain() for one in mapping],
        "sections": {part.anchor: part.plain() for part in parts},
        "rows": {
            name: plain(full_rows(method_lines(runs))) for name, runs in by_set(results.of(sections.COMPARISON)).items()
        },
    }


def _dump(content: dict[str, Any]) -> str:
    """JSON with one line for each claim, table row and measured row: small, and still a readable diff."""
    return _lines(content, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    if len(flat) <= 100 or not isinstance(value, (dict, list)):
        return flat
    if isinstance(value, list):
        parts = [_lines(one, inner) if _nested(one) else json.dumps(one, ensure_ascii=False) for one in value]
        return "[\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}]"
    named = [f"{inner}{json.dumps(key)}: {_lines(one, inner)}" for key, one in value.items()]
    return "{\n" + ",\n".join(named) + f"\n{indent}}}"


def _nested(value: Any) -> bool:
    """Whether a value holds lists: those are written over several lines."""
    return isinstance(value, (dict, list)) and any(
        isinstance(one, list) for one in (value.values() if isinstance(value, dict) else value)
    )
