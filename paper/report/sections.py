"""The sections of the report that come from sweeps: the comparison of all methods, and the ablations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.report.ablation import ablation_table, agreement, order_lines
from paper.report.curves import mean_cost_for, per_candidate
from paper.report.document import Figure, Line, Section, by_set, method_lines, set_name, split_rows, variant_lines
from paper.report.experiments import Spec
from paper.report.load import Results, Run
from paper.report.numbers import count
from paper.report.plots import COST_LABELS, efficiency_figure, metrics_figure, recall_figure, save
from paper.report.styles import style
from paper.report.tables import build_seconds, cost_table, cpu_seconds, recall_table
from paper.report.wording import seeds_sentence, spread_sentence

COMPARISON = "recall-vs-candidates"


def comparison(results: Results, out: Path) -> Section:
    """All methods on all sets."""
    section = Section(
        COMPARISON,
        "Recall against candidates, all methods",
        "Who finds the neighbours with the fewest candidates, and with the least work?",
    )
    findings = []
    for name, runs in by_set(results.of(COMPARISON)).items():
        section.ran = True
        lines, title = method_lines(runs), set_name(name)
        figure = recall_figure(lines, f"{title}: 10-recall@10 ({_size(runs)})", "recall_at_10", high=True)
        caption = (
            f"{title}: 10-recall@10 against candidates (left) and all work (right); below the missed share, for high "
            "recall. "
            "Each line is the frontier of a sweep. A method without exact distances has no place on the left."
        )
        section.figures.append(_save(figure, out, f"{COMPARISON}-{name}", caption))
        section.tables.append(cost_table(lines, "recall_at_10", f"{title}: what a recall costs"))
        section.tables.append(recall_table(lines, "recall_at_10", f"{title}: recall at fixed numbers of candidates"))
        findings.append(_comparison_sentence(lines, title))
    section.finding = " ".join(one for one in findings if one)
    return section


def metrics(results: Results, out: Path) -> Section:
    """All metrics of the comparison, in small panels."""
    section = Section("metrics", "All metrics", "Do the other measures of quality tell the same story as recall?")
    for name, runs in by_set(results.of(COMPARISON)).items():
        section.ran = True
        lines, title = method_lines(runs), set_name(name)
        for cost, what in COST_LABELS.items():
            caption = (
                f"{title}: all metrics against {what}, at the settings of the 10-recall@10 frontier. "
                "Every measured setting is in report.json."
            )
            section.figures.append(
                _save(metrics_figure(lines, f"{title}: all metrics", cost), out, f"metrics-{name}-{cost}", caption)
            )
    return section


def efficiency(results: Results, out: Path) -> Section:
    """Recall per candidate against build time."""
    question = "What does a method's recall per candidate cost at build time?"
    section = Section("efficiency", "Efficiency against build time", question)
    findings = []
    for name, runs in by_set(results.of(COMPARISON)).items():
        # The processor's time does not depend on what else the machine does: taken where all methods tell it.
        cpu = all(run.build_cpu_seconds for run in runs)
        points = _efficiencies(runs, cpu)
        if not points:
            continue
        section.ran = True
        title, time = set_name(name), "processor time of the build" if cpu else "build time"
        best, quick = max(points, key=lambda one: one[2]), min(points, key=lambda one: one[1])
        findings.append(
            f"{title}: most recall a candidate by {style(best[0]).name} ({best[2]:.3g}, built in {best[1]:.1f} s), "
            f"quickest build by {style(quick[0]).name} ({quick[1]:.1f} s, {quick[2]:.3g})."
        )
        caption = (
            f"{title}: mean over each method's own sweep of Recall@1 per 100,000 candidates against {time}. Sweeps "
            "differ between methods, so this shows orders of magnitude; the tables compare at equal recall."
        )
        figure = efficiency_figure(points, f"{title}: efficiency", time)
        section.figures.append(_save(figure, out, f"efficiency-{name}", caption))
    section.finding = " ".join(findings)
    return section


def _efficiencies(runs: Sequence[Run], cpu: bool) -> list[tuple[str, float, float]]:
    """(method, seconds, recall per candidate) of the methods that have all three."""
    points = []
    for line in method_lines(runs):
        values = [value for run in line.runs if (value := per_candidate(run.rows)) is not None]
        seconds = cpu_seconds(line.runs) if cpu else build_seconds(line.runs)
        if values and seconds:
            points.append((line.method, seconds, sum(values) / len(values)))
    return points


def ablation(results: Results, spec: Spec, out: Path) -> Section:
    """One ablation: curves, costs, and recall per candidate beside the published one."""
    section = Section(spec.name, spec.title, spec.question)
    runs = results.of(spec.name)
    if spec.split_by and len({run.variant for run in runs}) == 1:
        runs = split_rows(runs, spec.split_by, spec.title.split()[-1])
    groups = by_set(runs)
    findings = []
    for name, members in groups.items():
        section.ran = True
        lines = order_lines(variant_lines(members), spec)
        title = f"{spec.title}, {set_name(name)}"
        figure = recall_figure(lines, f"{title} ({_size(members)})", "recall_at_1", high=False)
        section.figures.append(
            _save(figure, out, f"{spec.name}-{name}", f"{title}: Recall@1 against candidates and against all work.")
        )
        section.tables.append(ablation_table(lines, spec, f"{title}: Recall@1 per candidate"))
        section.tables.append(cost_table(lines, "recall_at_1", f"{title}: what a recall costs"))
        section.tables.append(recall_table(lines, "recall_at_1", f"{title}: recall at fixed numbers of candidates"))
        sentences = [agreement(lines, spec), spread_sentence(lines, spec), seeds_sentence(lines)]
        said = " ".join(one for one in sentences if one)
        if said:
            findings.append(f"{set_name(name)}: {said}" if len(groups) > 1 else said)
    section.finding = " ".join(findings)
    return section


def _save(figure, out: Path, name: str, caption: str) -> Figure:
    file = f"figures/{name}.svg"
    save(figure, out / file)
    return Figure(file, caption, caption.split(".")[0])


def _size(runs: Sequence[Run]) -> str:
    points = sorted({run.points for run in runs})
    queries = sorted({run.queries for run in runs})
    return f"{' or '.join(f'{n:,}' for n in points)} points, {' or '.join(f'{n:,}' for n in queries)} queries"


def _comparison_sentence(lines: Sequence[Line], title: str) -> str:
    parts = []
    for cost, what in (("candidates", "candidates"), ("distance_equivalents", "work")):
        for target in (0.9, 0.99):
            found = [(mean_cost_for(line.runs, "recall_at_10", cost, target), line) for line in lines]
            known = sorted((pair for pair in found if pair[0].value is not None), key=lambda pair: pair[0].value)
            if known:
                parts.append(f"least {what} for {target:g}: {known[0][1].label} ({count(known[0][0].value)})")
    return f"{title}, 10-recall@10: {'; '.join(parts)}." if parts else ""
