"""The whole report: results in, files out. The same results give the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paper.report import html, markdown, others, sections
from paper.report.claims import check_claims
from paper.report.document import Section, by_set, method_lines
from paper.report.experiments import ABLATIONS
from paper.report.load import Results, load
from paper.report.mapping import counterparts
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
    mapping = counterparts(parts, claims)
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
    ablations = [sections.ablation(results, spec, out) for spec in ABLATIONS]
    last = [
        others.classification(results, out),
        others.complexity(results, out),
        others.diagnostics(results),
        others.pictures(results),
    ]
    return [*first, *ablations, *last]


def _machine_form(results: Results, parts: list[Section], claims: list, mapping: list) -> dict[str, Any]:
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
    """JSON with one line for each element of the third level: small, and still a readable diff."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
