"""The sections whose results are no sweeps: classification, complexity, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.report.document import Column, Figure, Section, Table, set_name
from paper.report.load import Results, number
from paper.report.numbers import percent
from paper.report.plots import save, scaling_figure, scatter_figure
from paper.report.styles import BLACK, GREEN, GREY, style

QUANTITIES = {
    "build_seconds": "build time (s)",
    "query_us": "time of a query (µs)",
    "distance_equivalents": "work (distance equivalents)",
}
AXES = {"n": "points n", "points": "points n", "cells": "cells K", "dim": "dimension d", "rank": "axes per cell r"}


def classification(results: Results, out: Path) -> Section:
    """Votes of neighbours and of cells."""
    question = "How well do the neighbours found, or the cells alone, tell the class, and at which cost?"
    section = Section("classification", "Classification", question)
    findings = []
    for name in sorted({str(one["set"]) for one in results.classification}):
        found = [one for one in results.classification if str(one["set"]) == name]
        found.sort(
            key=lambda one: (str(one["method"]), number(one.get("distance_equivalents")) or 0.0, one.get("seed") or 0)
        )
        section.ran = True
        title = f"Classification, {set_name(name)}"
        points = [
            (str(one["method"]), *_vote_look(one), work, accuracy)
            for one in found
            if (work := number(one.get("distance_equivalents"))) and (accuracy := number(one["accuracy"])) is not None
        ]
        if points:
            figure = scatter_figure(
                points, title, "work per query (distance equivalents)", "accuracy (share of queries)"
            )
            file = f"figures/classification-{name}.svg"
            save(figure, out / file)
            section.figures.append(Figure(file, f"{title}: accuracy against all work, one point a setting.", title))
        section.tables.append(_vote_table(found, title))
        findings.append(_vote_sentence(found, set_name(name)))
    section.finding = " ".join(one for one in findings if one)
    return section


def _settings(one: dict[str, Any]) -> dict[str, Any]:
    return one["settings"] if isinstance(one.get("settings"), dict) else {}


def _vote_look(one: dict[str, Any]) -> tuple[str, str]:
    """Colour and marker of a vote: those of the method that finds the neighbours or cells."""
    name = f"{one['method']} {_settings(one).get('preset', '')}".lower()
    if "exact" in name:
        return GREY, "*"
    if "garlic" in name:
        look = style("garlic-paper") if "paper" in name else style("garlic-default")
        return look.color, "X" if "cell" in name else look.marker
    if "means" in name:
        return style("kmeans").color, style("kmeans").marker
    return (BLACK, "D") if "ivf" in name else (GREEN, "p")


def _vote_table(found: list[dict[str, Any]], title: str) -> Table:
    columns = [Column("method"), Column("settings"), Column("accuracy", "share"), Column("work per query", "count")]
    columns += [Column("candidates", "count"), Column("build s", "seconds")]
    rows = []
    for one in found:
        words = ", ".join(
            f"{key} {value}" for key, value in _settings(one).items() if isinstance(value, (str, int, float))
        )
        numbers = [number(one.get(key)) for key in ("accuracy", "distance_equivalents", "candidates", "build_seconds")]
        rows.append([str(one["method"]), words, *numbers])
    return Table(title, columns, rows, "Accuracy is the share of queries whose class the vote names.")


def _best(found: list[dict[str, Any]], *words: str) -> tuple[float, float | None, str] | None:
    known = [
        (accuracy, number(one.get("distance_equivalents")), str(one["method"]))
        for one in found
        if (accuracy := number(one["accuracy"])) is not None
        and all(word in str(one["method"]).lower() for word in words)
    ]
    return max(known, key=lambda one: one[0]) if known else None


def _vote_sentence(found: list[dict[str, Any]], title: str) -> str:
    exact, ours = _best(found, "exact"), _best(found, "garlic", "k-nn")
    cell, means = _best(found, "garlic", "cell"), _best(found, "means")
    parts = []
    if exact and ours:
        part = f"GARLIC's neighbours name {percent(ours[0], 2)} of the classes, the exact ones {percent(exact[0], 2)}"
        if exact[1] and ours[1]:
            part += f", at {percent(ours[1] / exact[1], 1)} of the work"
        parts.append(part)
    if cell and means:
        parts.append(
            f"the cells' vote {percent(cell[0], 2)}, that of k-means {percent(means[0], 2)} (the best of each)"
        )
    return f"{title}: {'; '.join(parts)}." if parts else ""


def complexity(results: Results, out: Path) -> Section:
    """Measured scaling with fitted exponents beside the published formulas."""
    section = Section(
        "complexity",
        "Complexity",
        "How do build and query grow with n, K, d and r, and do the published formulas say so?",
    )
    columns = [
        Column("grows with"),
        Column("preset"),
        Column("quantity"),
        Column("exponent", "fixed"),
        Column("r²", "share"),
    ]
    columns += [Column("published exponent", "fixed"), Column("from"), Column("to"), Column("published formula")]
    rows: list[list[Any]] = []
    for axis in sorted(
        {str(one["axis"]) for one in results.complexity},
        key=lambda axis: (list(AXES).index(axis) if axis in AXES else 9, axis),
    ):
        found = sorted(
            (one for one in results.complexity if str(one["axis"]) == axis), key=lambda one: str(one["preset"])
        )
        section.ran = True
        panels = [(label, _series(found, name)) for name, label in QUANTITIES.items()]
        panels = [(label, series) for label, series in panels if series]
        title = f"Scaling in the {AXES.get(axis, axis)}"
        if panels:
            file = f"figures/complexity-{axis}.svg"
            save(scaling_figure(panels, title, AXES.get(axis, axis)), out / file)
            section.figures.append(Figure(file, f"{title}: measured, both axes logarithmic.", title))
        for one in found:
            rows += _fit_rows(one, axis)
    if rows:
        section.tables.append(
            Table("Fitted exponents", columns, rows, "Exponent b of quantity = a · x^b, least squares in logarithms.")
        )
        section.finding = _growth_sentence(rows)
    return section


def _series(found: list[dict[str, Any]], name: str) -> list[tuple[str, str, str, list[tuple[float, float]]]]:
    series = []
    for one in found:
        look = style(f"garlic-{one['preset']}")
        points = []
        for point in one["points"]:
            x, y = number(point.get("x")), number(point.get(name))
            if x and y and x > 0 and y > 0:
                points.append((x, y))
        if points:
            series.append((look.name, look.color, look.marker, sorted(points)))
    return series


def _fit_rows(one: dict[str, Any], axis: str) -> list[list[Any]]:
    fits = one.get("fits") if isinstance(one.get("fits"), dict) else {}
    places = sorted(x for point in one["points"] if (x := number(point.get("x"))) is not None)
    ends = [f"{places[0]:,.0f}", f"{places[-1]:,.0f}"] if places else ["", ""]
    rows = []
    for name, fit in sorted(fits.items()):
        if isinstance(fit, dict):
            quantity = QUANTITIES.get(name, name)
            head = [
                AXES.get(axis, axis),
                str(one["preset"]),
                quantity,
                number(fit.get("exponent")),
                number(fit.get("r2")),
            ]
            expected = one.get("published_exponents")
            expected = number(expected.get(name)) if isinstance(expected, dict) else None
            rows.append([*head, expected, *ends, str(one.get("published") or "")])
    return rows


def _growth_sentence(rows: list[list[Any]]) -> str:
    """The exponents, one part for each axis."""
    parts = []
    for axis in dict.fromkeys(row[0] for row in rows):
        main = [row for row in rows if row[0] == axis and row[3] is not None and row[2] in QUANTITIES.values()]
        found = [f"{row[2].split(' (')[0]} {row[3]:.2f} ({row[1]})" for row in main]
        parts += [f"in the {axis}: {', '.join(found)}"] if found else []
    compared = [row for row in rows if row[3] is not None and row[5] is not None]
    close = sum(abs(row[3] - row[5]) <= 0.2 for row in compared)
    verdict = " The published formulas stand beside them in the table; they give no exponent to agree with."
    if compared:
        verdict = f" {close} of {len(compared)} agree with the published formula within 0.2."
    return f"Measured exponents {'; '.join(parts)}.{verdict}" if parts else ""


def pictures(results: Results) -> Section:
    """The method in pictures from a 2-D example."""
    question = "The method in pictures, drawn from a two-dimensional example by the library's own code."
    section = Section("pictures", "Pictures of the method", question, ran=bool(results.pictures))
    for file in results.pictures:
        name = Path(file).stem.replace("-", " ").replace("_", " ")
        section.figures.append(Figure(file, f"{name.capitalize()}.", name))
    return section
