"""The summary in Markdown: what a reader of the repository sees first."""

from __future__ import annotations

from collections.abc import Sequence

from paper.report.claims import Claim, verdict_words
from paper.report.document import Section, Table
from paper.report.experiments import ABLATIONS
from paper.report.load import Results
from paper.report.mapping import HEAD, Counterpart
from paper.report.numbers import text
from paper.report.runinfo import READING, command, made
from paper.report.sections import COMPARISON


def cell(value: str) -> str:
    """Text that does not break a table."""
    return value.replace("|", "\\|").replace("\n", " ")


def table_markdown(table: Table) -> list[str]:
    """A table, numbers to the right."""
    head = "| " + " | ".join(cell(column.name) for column in table.columns) + " |"
    rule = "|" + "|".join("---" if column.kind == "text" else "---:" for column in table.columns) + "|"
    rows = [
        "| " + " | ".join(cell(text(one, column.kind)) for one, column in zip(row, table.columns, strict=True)) + " |"
        for row in table.rows
    ]
    return [f"**{table.title}**", "", head, rule, *rows, ""]


def tables_markdown(tables: Sequence[Table]) -> list[str]:
    """Tables one after the other; a note they share stands once, after the last of them."""
    lines: list[str] = []
    for i, table in enumerate(tables):
        lines += table_markdown(table)
        if table.note and (i + 1 == len(tables) or tables[i + 1].note != table.note):
            lines += [table.note, ""]
    return lines


def summary(
    results: Results, sections: Sequence[Section], claims: Sequence[Claim], mapping: Sequence[Counterpart]
) -> str:
    """The whole summary."""
    lines = ["# The paper's evaluation, repeated", "", *made(results)]
    lines += [
        "",
        "The full report is [report.html](report.html), its numbers are in [report.json](report.json); "
        f"`{command(results)}` makes both.",
    ]
    lines += [f"Left out: {problem}" for problem in results.problems]
    lines += [
        "",
        "## The published claims",
        "",
        "| | published | measured | verdict | in words |",
        "|---:|---|---|---|---|",
    ]
    for claim in claims:
        cells = (str(claim.number), claim.statement, claim.measured, verdict_words(claim), claim.sentence)
        lines.append("| " + " | ".join(map(cell, cells)) + " |")
    lines += ["", "How each claim is checked stands in the report.", ""]
    lines += _comparison(sections)
    lines += _ablations(sections)
    lines += ["## The paper's figures and tables, and ours", ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for one in mapping:
        here = f"[{cell(one.ours)}](report.html#{one.anchor})"
        cells = (cell(one.published), here, *map(cell, (one.verdict, one.evidence, one.sentence)))
        lines.append("| " + " | ".join(cells) + " |")
    missing = [section.title for section in sections if not section.ran]
    lines += ["", f"Not run: {', '.join(missing)}." if missing else "Every experiment has results.", ""]
    return "\n".join(lines)


def _comparison(sections: Sequence[Section]) -> list[str]:
    section = next(one for one in sections if one.anchor == COMPARISON)
    lines = ["## What a recall costs", ""]
    if not section.ran:
        return [*lines, "Not run.", ""]
    lines += [section.finding, ""] if section.finding else []
    lines += [READING, ""]
    return lines + tables_markdown(section.tables[::2])


def _ablations(sections: Sequence[Section]) -> list[str]:
    lines = ["## Ablations", ""]
    names = [spec.name for spec in ABLATIONS]
    for section in sections:
        if section.anchor in names and section.ran:
            lines += [f"### {section.title}", ""]
            lines += [section.finding, ""] if section.finding else []
            lines += tables_markdown(section.tables[::3])
    return lines if len(lines) > 2 else [*lines, "Not run.", ""]
