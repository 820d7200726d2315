"""The sections of the report that come from sweeps: the comparison of all methods, and the ablations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.report.ablation import ablation_table, agreement, judgement, order_lines
from paper.report.curves import mean_cost_for, per_candidate
from paper.report.document import (
    Figure,
    Line,
    Section,
    by_set,
    by_set_and_length,
    method_lines,
    set_name,
    split_rows,
    variant_lines,
)
from paper.report.experiments import Spec
from paper.report.load import Results, Run
from paper.report.numbers import count, percent
from paper.report.plots import COST_LABELS, Efficiency, efficiency_figure, metrics_figure, recall_figure, save
from paper.report.styles import style
from paper.report.tables import build_seconds, cost_table, cpu_seconds, recall_table
from paper.report.wording import choice_verdict, seeds_sentence, spread_sentence

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
    shares = by_set(results.of("efficiency"))
    for name, runs in by_set(results.of(COMPARISON)).items():
        runs = [*runs, *shares.get(name, [])]
        # The processor's time does not depend on what else the machine does: taken where all methods tell it.
        cpu = all(run.build_cpu_seconds for run in runs)
        points = _efficiencies(runs, cpu)
        if not points:
            continue
        section.ran = True
        title, time = set_name(name), "processor time of the build" if cpu else "build time"
        best, quick = max(points, key=lambda one: one.value), min(points, key=lambda one: one.seconds)
        findings.append(
            f"{title}: most recall a candidate by {best.label} ({best.value:.3g}, built in {best.seconds:.1f} s), "
            f"quickest build by {quick.label} ({quick.seconds:.1f} s, {quick.value:.3g})."
        )
        findings.append(_shares_sentence(points))
        caption = (
            f"{title}: mean over each method's own sweep of Recall@1 per 100,000 candidates against {time}. Sweeps "
            "differ between methods, so this shows orders of magnitude; the tables compare at equal recall."
        )
        figure = efficiency_figure(points, f"{title}: efficiency", time)
        section.figures.append(_save(figure, out, f"efficiency-{name}", caption))
    section.finding = " ".join(one for one in findings if one)
    return section


def _efficiencies(runs: Sequence[Run], cpu: bool) -> list[Efficiency]:
    """The methods, and their trainings on a share of the points, that have all three numbers."""
    points = []
    for line in method_lines(runs):
        values = [value for run in line.runs if (value := per_candidate(run.rows)) is not None]
        seconds = cpu_seconds(line.runs) if cpu else build_seconds(line.runs)
        share = line.runs[0].value if line.runs[0].experiment == "efficiency" else None
        label = style(line.method).name
        label += f", trained on {percent(share, 1)}" if share is not None else ""
        if values and seconds:
            points.append(Efficiency(label, line.method, seconds, sum(values) / len(values), share))
    return points


def _shares_sentence(points: Sequence[Efficiency]) -> str:
    """What training on fewer points costs and saves."""
    shares = sorted((one for one in points if one.share is not None), key=lambda one: one.share)
    if len(shares) < 2:
        return ""
    low, high = shares[0], shares[-1]
    return (
        f"Trained on {percent(low.share, 1)} instead of {percent(high.share, 1)} of the points it takes "
        f"{percent(low.seconds / high.seconds)} of the time and gives {percent(low.value / high.value)} of the recall a "
        "candidate."
    )


def ablation(results: Results, spec: Spec, out: Path) -> Section:
    """One ablation: curves, costs, and recall per candidate beside the published one."""
    section = Section(spec.name, spec.title, spec.question)
    runs = results.of(spec.name)
    if spec.split_by and len({run.variant for run in runs}) == 1:
        runs = split_rows(runs, spec.split_by, spec.title.split()[-1])
    groups = by_set_and_length(runs)
    findings = []
    for (name, length), members in groups.items():
        section.ran = True
        lines = order_lines(variant_lines(members), spec)
        subject = ", ".join(filter(None, (set_name(name), length)))
        title = f"{spec.title}, {subject}"
        figure = recall_figure(lines, f"{title} ({_size(members)})", "recall_at_1", high=False)
        file = "-".join([spec.name, name, *length.split()])
        section.figures.append(
            _save(figure, out, file, f"{title}: Recall@1 against candidates and against all work.")
        )
        section.tables.append(ablation_table(lines, spec, f"{title}: Recall@1 per candidate"))
        section.tables.append(cost_table(lines, "recall_at_1", f"{title}: what a recall costs"))
        section.tables.append(recall_table(lines, "recall_at_1", f"{title}: recall at fixed numbers of candidates"))
        sentences = [agreement(lines, spec), spread_sentence(lines, spec), seeds_sentence(lines)]
        said = " ".join(one for one in sentences if one)
        verdict = judgement(lines, spec) or choice_verdict(lines, spec)
        if verdict:
            section.verdicts.append(f"{subject}: {verdict}")
        if said:
            findings.append(f"{subject}: {said}" if len(groups) > 1 else said)
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
