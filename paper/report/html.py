"""The report as one plain HTML page: no scripts, nothing loaded from elsewhere, figures as files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from paper.report.claims import Claim, verdict_words
from paper.report.document import Figure, Section, Table
from paper.report.load import Results
from paper.report import mapping
from paper.report.mapping import Counterpart
from paper.report.numbers import text
from paper.report.runinfo import about

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 62rem;
  margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid #bbb; padding-top: 1rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #888; vertical-align: bottom; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; }
figcaption, .note { font-size: 0.85rem; color: #333; }
.missing { background: #f3f3f3; border-left: 4px solid #777; padding: 0.4rem 0.8rem; }
.finding { background: #eef5fb; border-left: 4px solid #0072B2; padding: 0.4rem 0.8rem; }
details { margin: 0.5rem 0; } iframe { width: 100%; height: 40rem; border: 1px solid #bbb; }
nav ol { columns: 2; }
.numbers td:first-child { white-space: nowrap; }
@page { margin: 14mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, details { display: none; } figure { break-inside: avoid; }
  table { font-size: 7pt; }
  figcaption, .note { font-size: 8pt; } th, td { padding: 0.1rem 0.25rem; } .scroll { overflow: visible; }
}
"""


def table_html(table: Table) -> str:
    """A table, numbers to the right."""
    kinds = ["" if column.kind == "text" else ' class="n"' for column in table.columns]
    head = "".join(f"<th{kind}>{escape(column.name)}</th>" for column, kind in zip(table.columns, kinds, strict=True))
    body = []
    for row in table.rows:
        cells = zip(row, table.columns, kinds, strict=True)
        body.append(
            "<tr>"
            + "".join(f"<td{kind}>{escape(text(cell, column.kind))}</td>" for cell, column, kind in cells)
            + "</tr>"
        )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    rows = "\n".join(body)
    return (
        f'<div class="scroll"><table class="numbers"><caption>{escape(table.title)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{note}"
    )


def figure_html(figure: Figure) -> str:
    """A figure by reference."""
    file = escape(figure.file)
    return (
        f'<figure id="{escape(figure.anchor)}"><a href="{file}">'
        f'<img src="{file}" alt="{escape(figure.alt)}" loading="lazy"></a>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def embed_html(title: str, file: str) -> str:
    """A page of its own, shown here when it is opened."""
    link = f'<a href="{escape(file)}">page of its own</a>'
    frame = f'<iframe src="{escape(file)}" title="{escape(title)}" loading="lazy"></iframe>'
    return f"<details><summary>{escape(title)} ({link})</summary>{frame}</details>"


def section_html(section: Section) -> str:
    """One experiment; a line that says so when it was not run."""
    parts = [
        f'<section id="{escape(section.anchor)}"><h2>{escape(section.title)}</h2>',
        f"<p>{escape(section.question)}</p>",
    ]
    if not section.ran:
        parts.append('<p class="missing">Not run: there are no results of this experiment.</p></section>')
        return "\n".join(parts)
    if section.finding:
        parts.append(f'<p class="finding">{escape(section.finding)}</p>')
    parts += [figure_html(figure) for figure in section.figures]
    parts += [table_html(table) for table in section.tables]
    parts += [embed_html(title, file) for title, file in section.embeds]
    return "\n".join([*parts, "</section>"])


def claims_html(claims: Sequence[Claim]) -> str:
    """The claims with their verdicts."""
    rows = []
    for claim in claims:
        measured = "<br>".join(escape(part) for part in claim.measured.split("; "))
        verdict = verdict_words(claim)
        cells = (escape(claim.statement), escape(claim.rule), measured, escape(verdict), escape(claim.sentence))
        body = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr id="{claim.anchor}"><td class="n">{claim.number}</td>{body}</tr>')
    names = ("", "published", "how it is checked", "measured", "verdict", "in words")
    head = "<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"
    table = (
        f'<div class="scroll"><table><thead>{head}</thead>\n<tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"
    )
    return f'<section id="claims"><h2>The published claims</h2>\n{table}\n</section>'


def mapping_html(counterparts: Sequence[Counterpart]) -> str:
    """Where each published figure and table has its counterpart."""
    rows = []
    for one in counterparts:
        link = f'<a href="#{escape(one.anchor)}">{escape(one.ours)}</a>'
        cells = (escape(one.published), link, escape(one.verdict), escape(one.evidence), escape(one.sentence))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "<tr>" + "".join(f"<th>{name}</th>" for name in mapping.HEAD) + "</tr>"
    table = (
        f'<div class="scroll"><table><thead>{head}</thead>\n<tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"
    )
    return f'<section id="mapping"><h2>The paper\'s figures and tables, and ours</h2>\n{table}\n</section>'


def page(
    results: Results, sections: Sequence[Section], claims: Sequence[Claim], counterparts: Sequence[Counterpart]
) -> str:
    """The whole page."""
    contents = [("claims", "The published claims"), ("mapping", "The paper's figures and tables, and ours")]
    contents += [(section.anchor, section.title + ("" if section.ran else " (not run)")) for section in sections]
    toc = "\n".join(f'<li><a href="#{escape(anchor)}">{escape(title)}</a></li>' for anchor, title in contents)
    problems = "".join(f'<p class="missing">Left out: {escape(problem)}</p>' for problem in results.problems)
    body = "\n".join([claims_html(claims), mapping_html(counterparts), *map(section_html, sections)])
    intro = "".join(f"<p>{escape(line)}</p>\n" for line in about(results))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>GARLIC: the paper's evaluation, repeated</title><style>{STYLE}</style></head>\n<body>\n"
        f"<h1>GARLIC: the paper's evaluation, repeated</h1>\n{intro}{problems}\n"
        f"<nav><h2>Contents</h2><ol>\n{toc}\n</ol></nav>\n"
        f"{body}\n</body></html>\n"
    )
