"""The diagnoses of the indexes: their pages, their main numbers side by side, and the curvature.

The diagnoses are made by another program, so everything is read by its name and what is not there is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.report.document import Column, Figure, Section, Table
from paper.report.load import Results, number
from paper.report.plots import cell_figure, curvature_figure, save

Spread = tuple[float, float, float | None]
NUMBERS = (
    ("cells", "count", ("subject", "cells")),
    ("covered points", "share", ("coverage", "share")),
    ("cells per point", "fixed", ("coverage", "mean")),
    ("largest cell", "share", ("cell_sizes", "largest_share")),
    ("λmax / λmin, median", "number", ("anisotropy", "ratio", "summary", "median")),
    ("effective dimension", "fixed", ("anisotropy", "effective_dimension", "summary", "mean")),
    ("explained variance", "share", ("anisotropy", "explained_variance", "summary", "mean")),
    ("diagonality", "share", ("anisotropy", "diagonality", "summary", "mean")),
)


def dig(content: Any, *path: str) -> Any:
    """What lies under these keys, None where there is nothing."""
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def summary(part: Any) -> tuple[float, float | None] | None:
    """Mean and deviation of a summary."""
    mean = number(dig(part, "mean"))
    return None if mean is None else (mean, number(dig(part, "deviation")))


def find_curvature(content: dict[str, Any]) -> tuple[float, float | None] | None:
    """Mean and deviation of the curvature over all sizes of neighbourhoods."""
    return summary(dig(content, "curvature", "all")) or summary(dig(content, "curvature"))


def curvature_by_size(content: dict[str, Any]) -> list[Spread]:
    """(neighbours, mean, deviation) for each size of neighbourhood."""
    sizes = dig(content, "curvature", "sizes")
    found = []
    for one in sizes if isinstance(sizes, list) else []:
        at, values = number(dig(one, "neighbours")), summary(dig(one, "curvature"))
        if at and values:
            found.append((at, *values))
    return found


def curvature_by_coverage(content: dict[str, Any]) -> list[Spread]:
    """(times covered, mean, deviation) for each class of coverage that has points."""
    groups = dig(content, "curvature", "by_coverage")
    found = []
    for one in groups if isinstance(groups, list) else []:
        at, values = number(dig(one, "at")), summary(dig(one, "values"))
        if at is not None and values and dig(one, "values", "count") != 0:
            found.append((at, *values))
    return found


def curvature_by_cell(content: dict[str, Any]) -> list[Spread]:
    """(radius, share of the points, curvature) of each Gaussian that has all three and points to tell them."""
    cells = dig(content, "curvature", "by_cell", "cells")
    found = []
    for one in cells if isinstance(cells, list) else []:
        radius, share, value = (number(dig(one, key)) for key in ("radius", "share", "curvature"))
        if radius and share and value is not None:
            found.append((radius, share, value))
    return found


def diagnostics(results: Results, out: Path) -> Section:
    """The section."""
    question = "What do the cells look like: coverage, landscape, curvature, anisotropy?"
    section = Section("diagnostics", "Diagnostics of the indexes", question)
    section.ran = bool(results.diagnostics or results.diagnostic_pages)
    found = sorted(results.diagnostics.items())
    if found:
        section.tables.append(_table(found))
    series = [(name, curvature_by_size(content), curvature_by_coverage(content)) for name, content in found]
    series = [one for one in series if one[1]]
    if series:
        file = "figures/diagnostics-curvature.svg"
        save(curvature_figure(series), out / file)
        caption = (
            "Curvature (share of a neighbourhood's variance outside its first principal directions; defined in the "
            "diagnoses), mean and standard deviation: against the size of the neighbourhood, and against how many "
            "cells cover the point."
        )
        section.figures.append(Figure(file, caption, "Curvature"))
    cells = [(name, curvature_by_cell(content)) for name, content in found if name.endswith("paper")]
    cells = [one for one in cells if one[1]]
    if cells:
        file = "figures/diagnostics-curvature-by-cell.svg"
        save(cell_figure(cells), out / file)
        caption = (
            "Curvature by Gaussian: the mean over the sampled points nearest to it, against its radius (the root of the "
            "trace of its covariance) and against the share of all points that it holds. One point a Gaussian."
        )
        section.figures.append(Figure(file, caption, "Curvature by Gaussian"))
        section.finding = " ".join(_correlation(name, results.diagnostics[name]) for name, _ in cells).strip()
    section.embeds = [(f"Diagnosis of {Path(page).stem}", page) for page in results.diagnostic_pages]
    return section


def _correlation(name: str, content: dict[str, Any]) -> str:
    """How the curvature of a Gaussian goes with its radius and with its points."""
    radius, share = (number(dig(content, "curvature", "by_cell", f"{key}_correlation")) for key in ("radius", "share"))
    if radius is None or share is None:
        return ""
    return (
        f"{name}: rank correlation of a Gaussian's curvature with its radius {radius:.2f}, with its share of the points "
        f"{share:.2f}."
    )


def _table(found: list[tuple[str, dict[str, Any]]]) -> Table:
    columns = [Column("index"), *(Column(name, kind) for name, kind, _ in NUMBERS)]
    columns += [Column("curvature, mean", "share"), Column("curvature, deviation", "share")]
    rows = [
        [name, *(number(dig(content, *path)) for _, _, path in NUMBERS), *(find_curvature(content) or (None, None))]
        for name, content in found
    ]
    return Table("The indexes side by side", columns, rows, "Definitions stand in the diagnosis of each index, below.")
