"""The report: numbers read off curves, verdicts, and pages, all from made-up results whose outcome is known."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paper.report import sections, training
from paper.report.__main__ import main
from paper.report.ablation import agreement, averages, order_lines, reference
from paper.report.build import make_report
from paper.report.checks import SPECS
from paper.report.claims import AGREES, DISAGREES, PARTLY, UNKNOWN, check_claims
from paper.report.curves import Estimate, cost_for, frontier, over_seeds, per_candidate, recall_at
from paper.report.diagnostics import curvature_by_cell, diagnostics
from paper.report.dimension import growth
from paper.report.document import Line, method_lines, split_rows, variant_lines
from paper.report.load import Results, Row, load
from paper.report.mapping import ENTRIES, NOT_RUN
from paper.report.numbers import text
from paper.report.plots import looks
from paper.report.styles import METHODS, style
from paper.report.tables import fixed_counts
from paper.report.wording import spread_sentence
from paper.tests import report_synthetic as made_up


def row(candidates: float, recall: float, **params: float) -> Row:
    """A row with one recall."""
    return Row(params, {"recall_at_1": recall, "recall_at_10": recall, "candidates": candidates})


def loaded(tmp_path: Path, runs: list[dict]) -> Results:
    """Results of some runs, through files."""
    tmp_path.mkdir(exist_ok=True)
    made_up.write(tmp_path, runs, others=False)
    return load(tmp_path)


def claim(results: Results, number: int):
    """One claim."""
    return check_claims(results)[number - 1]


# Curves


def test_frontier_leaves_out_beaten_settings_and_those_without_cost() -> None:
    rows = [row(100, 0.5), row(200, 0.4), row(300, 0.8), row(300, 0.7), row(0, 0.9), row(50, 0.1)]
    assert frontier(rows, "recall_at_1", "candidates") == [(50, 0.1), (100, 0.5), (300, 0.8)]


def test_interpolation_is_linear_in_the_logarithm_of_the_cost() -> None:
    curve = [(100.0, 0.5), (10_000.0, 0.9)]
    assert recall_at(curve, 1000.0).value == pytest.approx(0.7)
    assert cost_for(curve, 0.7).value == pytest.approx(1000.0)
    assert cost_for(curve, 0.5) == Estimate(pytest.approx(100.0))
    assert recall_at(curve, 10_000.0) == Estimate(pytest.approx(0.9))


def test_beyond_the_ends_there_are_bounds_and_no_guesses() -> None:
    curve = [(100.0, 0.5), (10_000.0, 0.9)]
    assert recall_at(curve, 20_000.0) == Estimate(0.9, ">=")
    assert recall_at(curve, 50.0).value is None
    assert cost_for(curve, 0.3) == Estimate(100.0, "<=")
    assert cost_for(curve, 0.95).value is None
    assert recall_at([], 10.0).value is None
    assert recall_at([(5.0, 0.2)], 5.0) == Estimate(0.2)


def test_a_mean_over_seeds_needs_all_seeds() -> None:
    values = iter([Estimate(1.0), Estimate(3.0)])
    assert over_seeds([1, 2], lambda _: next(values)) == Estimate(2.0, "", pytest.approx(math.sqrt(2)))
    values = iter([Estimate(1.0), Estimate(None)])
    assert over_seeds([1, 2], lambda _: next(values)).value is None


def test_recall_per_candidate_is_the_mean_over_settings() -> None:
    rows = [row(100, 0.5, probes=1), row(1000, 0.9, probes=2), row(0, 0.9, probes=3)]
    assert per_candidate(rows) == pytest.approx((500.0 + 90.0) / 2)
    assert per_candidate(rows, {rows[0].key}) == pytest.approx(500.0)
    assert per_candidate([]) is None


def test_fixed_counts_suit_the_size() -> None:
    assert fixed_counts(60_000) == [100, 300, 1000, 3000]
    assert fixed_counts(1_000_000) == [1000, 3000, 10_000, 30_000]


def test_numbers_show_bounds_spread_and_gaps() -> None:
    assert text(Estimate(1234.4, "<="), "count") == "≤ 1,234"
    assert text(Estimate(0.5, "", 0.01), "share") == "0.500 ± 0.010"
    assert text(None, "count") == text(Estimate(None), "count") == "–"


# Looks


def test_no_two_methods_look_alike() -> None:
    known = [(one.color, one.marker) for one in METHODS.values()]
    assert len(set(known)) == len(known)


def test_a_method_alone_has_its_own_look_in_every_figure(tmp_path: Path) -> None:
    results = loaded(tmp_path, made_up.all_runs())
    for experiment in ("recall-vs-candidates", "online", "covariance"):
        lines = method_lines(results.of(experiment))
        for line, look in zip(lines, looks(lines), strict=True):
            if sum(other.method == line.method for other in lines) == 1:
                assert look == style(line.method).plot()


def test_variants_of_one_method_differ() -> None:
    lines = [Line(str(i), "garlic-paper", ()) for i in range(6)]
    assert len({(look["color"], look["marker"]) for look in looks(lines)}) == 6


# Ablations


def ablation_lines(results: Results, name: str) -> list[Line]:
    return order_lines(variant_lines(results.of(name)), SPECS[name])


def test_the_reference_comes_first_and_has_ratio_one(tmp_path: Path) -> None:
    results = loaded(tmp_path, made_up.ablation_runs())
    for name, label in (("losses", "all"), ("split-clone", "both"), ("initialisation", "init = kmeans-plus-plus")):
        found = averages(ablation_lines(results, name), SPECS[name])
        assert found[0].line.label == label
        assert found[0].ratio == 1.0
    gamma = ablation_lines(results, "gamma")
    assert reference(gamma, SPECS["gamma"]).label == "gamma = 0.01"
    batch = ablation_lines(results, "batch-size")
    assert reference(batch, SPECS["batch-size"]).label == "batch-size = 20000"


def test_only_settings_that_all_variants_share_are_averaged(tmp_path: Path) -> None:
    full = made_up.run("losses", "garlic-paper", 1.0, variant="all", value="all")
    part = made_up.run("losses", "garlic-paper", 1.0, variant="divergence alone", value="divergence alone")
    part["rows"] = part["rows"][:3]
    found = averages(ablation_lines(loaded(tmp_path, [full, part]), "losses"), SPECS["losses"])
    assert found[1].ratio == pytest.approx(1.0)


def with_ratios(name: str, ratios: dict[str, float]) -> list[dict]:
    """Runs whose Recall@1 per candidate have these ratios."""
    runs = []
    for label, ratio in ratios.items():
        rows = [{"params": {"probes": p}, "recall_at_1": 0.9 * ratio, "candidates": 100.0 * p} for p in (1, 2)]
        runs.append(made_up.run(name, "garlic-paper", 1.0, variant=label, value=None, rows=rows))
    return runs


def test_agreement_is_worded_from_order_and_size(tmp_path: Path) -> None:
    alike = {"both": 1.0, "split only": 0.88, "clone only": 0.33, "neither": 0.29}
    said = agreement(
        ablation_lines(loaded(tmp_path / "a", with_ratios("split-clone", alike)), "split-clone"), SPECS["split-clone"]
    )
    assert "The order agrees: both > split only > clone only > neither" in said
    assert "3 of 3 within 10 %" in said
    other = {"full": 1.0, "diagonal": 0.4, "isotropic": 0.5}
    said = agreement(
        ablation_lines(loaded(tmp_path / "b", with_ratios("covariance", other)), "covariance"), SPECS["covariance"]
    )
    assert "then the order disagrees" in said
    assert "0 of 2 within 10 %" in said
    worse = {"all": 0.5, "divergence alone": 1.0}
    said = agreement(ablation_lines(loaded(tmp_path / "c", with_ratios("losses", worse)), "losses"), SPECS["losses"])
    assert "The order disagrees: divergence alone does better than all" in said
    alone = {"diagonal": 1.0, "isotropic": 0.5}
    said = agreement(
        ablation_lines(loaded(tmp_path / "d", with_ratios("covariance", alone)), "covariance"), SPECS["covariance"]
    )
    assert "was not measured" in said


def test_the_published_choice_is_judged(tmp_path: Path) -> None:
    results = loaded(tmp_path, made_up.ablation_runs())
    said = spread_sentence(ablation_lines(results, "gamma"), SPECS["gamma"])
    assert "gamma = 0.0025 needs the fewest" in said
    assert "disagrees with it" in said
    said = spread_sentence(ablation_lines(results, "losses"), SPECS["losses"])
    assert "agrees with the published choice" in said


def test_a_sweep_over_a_search_parameter_becomes_variants(tmp_path: Path) -> None:
    runs = loaded(tmp_path, made_up.ablation_runs()).of("bin-budget")
    lines = variant_lines(split_rows(runs, "bins", "ρ"))
    assert [line.label for line in lines] == ["ρ = 0.3", "ρ = 1"]
    assert [row.params for row in lines[0].runs[0].rows] == [{"probes": p} for p in (1, 2, 4, 8, 16, 32)]
    assert reference(lines, SPECS["bin-budget"]) is lines[0]


def test_growth_with_the_dimension(tmp_path: Path) -> None:
    runs = loaded(tmp_path, made_up.ablation_runs()).of("dimensionality")
    lines = sorted(variant_lines(runs, "set"), key=lambda line: line.runs[0].dim)
    found = growth(lines, "garlic-paper", "candidates")
    assert [dim for dim, _ in found] == [64, 256, 784]
    assert found[2][1] / found[0][1] == pytest.approx(28 / 8, rel=0.05)


def test_efficiency_has_the_shares_that_training_saw(tmp_path: Path) -> None:
    results = loaded(tmp_path, made_up.all_runs())
    section = sections.efficiency(results, tmp_path)
    drawn = (tmp_path / "figures/efficiency-fashion-mnist-784-euclidean.svg").read_text(encoding="utf-8")
    for label in ("GARLIC (paper)", "trained on 1.0 %", "trained on 2.5 %", "trained on 5.0 %", "Faiss IVF-Flat"):
        assert label in drawn, label
    # 400 s a share of one; recall a candidate falls as the factor 1 + 0.02 / share grows, from 1.4 to 3.
    assert "Trained on 1.0 % instead of 5.0 % of the points it takes 20 % of the time" in section.finding
    without = sections.efficiency(loaded(tmp_path / "b", [made_up.run("recall-vs-candidates", "kmeans", 1.0)]), tmp_path)
    assert "Trained on" not in without.finding and without.ran


def test_curvature_by_gaussian(tmp_path: Path) -> None:
    results = loaded(tmp_path, [])
    results.diagnostics = {"a-paper": made_up.diagnosis(), "a-default": made_up.diagnosis(), "b-paper": {}}
    assert curvature_by_cell(results.diagnostics["a-paper"]) == [(1.0 + i, 0.01, 0.3 + i / 20) for i in range(5)]
    assert curvature_by_cell({}) == curvature_by_cell({"curvature": {"by_cell": 3}}) == []
    section = diagnostics(results, tmp_path)
    assert [figure.alt for figure in section.figures] == ["Curvature", "Curvature by Gaussian"]
    assert section.finding == (
        "a-paper: rank correlation of a Gaussian's curvature with its radius 1.00, with its share of the points -0.25."
    )


# Claims


@pytest.mark.parametrize(("factor", "verdict"), [(0.4, AGREES), (0.9, DISAGREES)])
def test_half_of_the_candidates_of_an_ivf(tmp_path: Path, factor: float, verdict: str) -> None:
    runs = [made_up.run("recall-vs-candidates", m, f) for m, f in (("garlic-paper", factor), ("faiss-ivf", 1.0))]
    found = claim(loaded(tmp_path, runs), 1)
    assert found.verdict == verdict
    assert [one["ratio"] for one in found.numbers] == pytest.approx([factor] * 2, rel=0.05)


def test_half_of_ivf_is_a_claim_about_one_set(tmp_path: Path) -> None:
    runs = [
        made_up.run("recall-vs-candidates", method, factor, set=name)
        for name, ours in ((made_up.FASHION, 0.4), ("mnist-784-euclidean", 0.8))
        for method, factor in (("garlic-paper", ours), ("faiss-ivf", 1.0))
    ]
    found = claim(loaded(tmp_path, runs), 1)
    assert found.verdict == AGREES
    assert "0.80" in found.measured and "0.80" not in found.sentence


def test_a_claim_that_holds_at_one_recall_only_agrees_in_part(tmp_path: Path) -> None:
    ivf = made_up.run("recall-vs-candidates", "faiss-ivf", 1.0)
    ours = made_up.run("recall-vs-candidates", "garlic-paper", 0.4)
    # Recalls above .6 take three times as many.
    for row in ours["rows"]:
        row["candidates"] *= 3.0 if row["recall_at_10"] > 0.6 else 1.0
    found = claim(loaded(tmp_path, [ours, ivf]), 1)
    assert found.verdict == PARTLY
    assert "1 of 2" in found.sentence


def test_an_upper_bound_above_the_limit_decides_nothing(tmp_path: Path) -> None:
    ours = made_up.run("recall-vs-candidates", "garlic-paper", 0.9)
    ours["rows"] = [one for one in ours["rows"] if one["recall_at_10"] > 0.75]
    ivf = made_up.run("recall-vs-candidates", "faiss-ivf", 1.0)
    assert claim(loaded(tmp_path, [ours, ivf]), 1).verdict == UNKNOWN


@pytest.mark.parametrize(("factor", "verdict"), [(0.8, AGREES), (1.4, DISAGREES)])
def test_one_percent_against_ten(tmp_path: Path, factor: float, verdict: str) -> None:
    runs = [
        made_up.run("training-fraction", "garlic-paper", factor, variant="1 %", value=0.01),
        made_up.run("training-fraction", "faiss-ivf", 1.0, variant="10 %", value=0.1),
        made_up.run("training-fraction", "faiss-ivf", 9.0, variant="1 %", value=0.01),
    ]
    assert claim(loaded(tmp_path, runs), 2).verdict == verdict


def test_tau_four(tmp_path: Path) -> None:
    # The curve reaches 0.67 where (candidates / factor / 4000)^0.6 = -ln(0.33).
    at_one = 4000 * (-math.log(0.33)) ** (1 / 0.6)
    for wanted, verdict in ((150_000, AGREES), (20_000, DISAGREES)):
        one = made_up.run("tau", "garlic-paper", 1.0, set=made_up.SIFT, points=1_000_000, variant="tau = 4", value=4)
        one["rows"] = [made_up.row(wanted * 1.3**i, 1_000_000, wanted / at_one, probes=i + 5) for i in range(-4, 5)]
        found = claim(loaded(tmp_path / verdict, [one]), 3)
        assert found.verdict == verdict
        assert found.numbers[0]["candidates"] == pytest.approx(wanted, rel=0.02)


def test_farthest_point_is_measured_in_candidates(tmp_path: Path) -> None:
    runs = with_ratios("initialisation", {"k-means++": 1.0, "farthest point": 1.0})
    for one, more in zip(runs, (1.0, 1.5), strict=True):
        one["rows"] = [
            {"params": {"probes": 2**i}, "recall_at_1": 0.4 + 0.1 * i, "candidates": more * 7.0 * 3**i}
            for i in range(6)
        ]
    found = claim(loaded(tmp_path, runs), 4)
    assert found.verdict == AGREES
    assert found.numbers[0]["ratio"] == pytest.approx(1.5)


@pytest.mark.parametrize(("at_fifth", "verdict"), [(0.93, AGREES), (0.85, DISAGREES)])
def test_bin_budget(tmp_path: Path, at_fifth: float, verdict: str) -> None:
    recalls = {0.1: 0.5, 0.2: at_fifth, 0.5: 0.98, 1.0: 1.0}
    runs = [
        made_up.run("bin-budget", "garlic-paper", 1.0, variant=f"rho = {budget}", value=budget)
        | {"rows": [{"params": {"probes": p}, "recall_at_1": 0.9 * recall, "candidates": 10 * p} for p in (1, 4)]}
        for budget, recall in recalls.items()
    ]
    found = claim(loaded(tmp_path, runs), 5)
    assert found.verdict == verdict
    assert found.numbers[0]["worst"] == pytest.approx(at_fifth)
    assert found.numbers[0]["worst_below"] == pytest.approx(0.5)


def test_collapse_and_curvature_and_online(tmp_path: Path) -> None:
    made_up.write(tmp_path, made_up.ablation_runs())
    results = load(tmp_path)
    assert [claim(results, number).verdict for number in (6, 7, 8)] == [AGREES] * 3
    results.diagnostics = {"a": {"curvature": {"all": {"mean": 0.8}}}, "b": {"curvature": "?"}, "c": {}}
    assert claim(results, 6).verdict == DISAGREES
    assert len(claim(results, 6).numbers) == 1
    # Either preset is compared with its own index of all points.
    assert [one["ratio"] for one in claim(results, 8).numbers] == pytest.approx([1.04, 1.05, 1.02], abs=0.01)


def test_no_results_no_verdicts() -> None:
    assert {one.verdict for one in check_claims(Results())} == {UNKNOWN}


# Pages


class Page(HTMLParser):
    """Ids, links, and whether tags are closed in order."""

    VOID = {"meta", "img", "br"}

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of everything."""
    out = tmp_path_factory.mktemp("report")
    made_up.write(out, made_up.all_runs())
    assert main([str(out), "--docs", str(out / "docs")]) == 0
    return out


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    for folder in (report, report / "docs"):
        page = Page((folder / "report.html").read_text(encoding="utf-8"))
        assert len(set(page.ids)) == len(page.ids)
        for link in page.links:
            assert link[1:] in page.ids if link.startswith("#") else (folder / link).is_file(), link


def test_figures_are_well_formed_and_have_labelled_axes(report: Path) -> None:
    figures = sorted((report / "figures").glob("*.svg"))
    assert len(figures) > 25
    for figure in figures:
        root = ElementTree.parse(figure).getroot()
        words = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
        assert any(unit in words for unit in ("per query", "(s)", "neighbours", "Gaussian")), figure.name
    assert sum(figure.stat().st_size for figure in figures) < 3e6


def test_every_experiment_has_a_section_and_every_published_item_a_counterpart(report: Path) -> None:
    content = json.loads((report / "report.json").read_text(encoding="utf-8"))
    assert all(part["ran"] for part in content["sections"].values())
    assert len(content["mapping"]) == len(ENTRIES)
    assert all(one["sentence"] and one["sentence"] != NOT_RUN for one in content["mapping"])
    assert len(content["claims"]) == 8
    rows = content["rows"][made_up.FASHION]
    assert len(rows) == 12 * len(made_up.METHODS) + 4
    assert {"r99", "relative_error", "epsilon_recall_1pct", "distance_equivalents"} <= set(rows[0])


def test_the_summary_names_command_and_duration(report: Path) -> None:
    summary = (report / "summary.md").read_text(encoding="utf-8")
    assert "`make paper QUICK=1`" in summary
    assert "The run took 12 min" in summary
    assert "Every experiment has results." in summary
    widths = [line.count("|") for line in summary.splitlines() if line.startswith("|---")]
    assert all(width > 2 for width in widths)


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    runs = made_up.ablation_runs()[:8]
    texts = []
    for name, order in (("a", runs), ("b", runs)):
        made_up.write(tmp_path / name, order, others=False)
        texts.append({path.name: path.read_bytes() for path in make_report(tmp_path / name)})
    assert texts[0] == texts[1]


def test_an_empty_folder_says_that_nothing_was_run(tmp_path: Path) -> None:
    make_report(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("Not run: there are no results") == 25
    assert "not measured" in page
    Page(page)
    assert main([str(tmp_path / "missing")]) == 1


def test_quick_runs_failures_and_marks_are_told_apart(tmp_path: Path) -> None:
    made_up.write(tmp_path, [made_up.run("gamma", "garlic-paper", 1.0, quick=True)], others=False)
    marks = tmp_path / "results" / "classification"
    marks.mkdir()
    (marks / "mnist.json").write_text('{"experiment": "classification", "methods": []}', encoding="utf-8")
    (tmp_path / "run.json").write_text('{"command": "make paper", "failed": ["tau 3/5"], "notes": ["Beside other work."]}', encoding="utf-8")
    make_report(tmp_path)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "A quick run" in summary and "Beside other work." in summary
    assert "Left out: tau 3/5: failed" in summary
    assert summary.count("Left out:") == 1


def test_bad_files_are_named_and_the_rest_is_reported(tmp_path: Path) -> None:
    made_up.write(tmp_path, made_up.ablation_runs()[:3], others=False)
    folder = tmp_path / "results" / "gamma"
    folder.mkdir()
    (folder / "half.json").write_text('{"experiment": "gam', encoding="utf-8")
    (folder / "list.json").write_text("[1]", encoding="utf-8")
    (folder / "empty.json").write_text('{"experiment": "gamma"}', encoding="utf-8")
    (folder / "odd.json").write_text(
        '{"experiment": "gamma", "set": "a", "method": "b", "rows": [3]}', encoding="utf-8"
    )
    (folder / "bare.json").write_text(
        '{"experiment": "gamma", "set": "a", "method": "b", "rows": [{}]}', encoding="utf-8"
    )
    make_report(tmp_path)
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [one.split(":")[0].split("/")[-1] for one in content["problems"]] == [
        "empty.json",
        "half.json",
        "list.json",
        "odd.json",
    ]
    assert content["sections"]["training-fraction"]["ran"]
    assert "half.json" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_lengths_of_training_are_compared_with_full_cells_of_the_same_length(tmp_path: Path) -> None:
    runs = []
    for length, covered, diagonal in (("120 steps", 0.04, 1.0), ("3,600 steps", 0.6, 2.5)):
        for shape, factor in (("full", 1.0), ("full, rotated", 0.5), ("diagonal", diagonal)):
            one = made_up.run("training-length", "garlic-paper", 1.0, variant=f"{length}, {shape}", value=None)
            one["rows"] = [row | {"candidates": factor * row["candidates"]} for row in one["rows"]]
            runs.append(one | {"extra": {"coverage_share": covered, "eigenvalue_ratio": 2.0, "largest_share": 0.1}})
    section = training.training_length(loaded(tmp_path, runs), tmp_path)
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["3,600 steps, diagonal"][2] == pytest.approx(1 / 2.5, rel=1e-6)
    assert rows["3,600 steps, full, rotated"][2] == pytest.approx(1.0)
    assert rows["120 steps, full"][3:6] == [0.04, 2.0, 0.1]
    assert "at 120 steps (4% of the points covered): relative to full covariances diagonal 1.00." in section.finding
    assert "when trained, at 3,600 steps (60% of the points covered)" in section.finding


def test_a_verdict_for_each_length_of_training(tmp_path: Path) -> None:
    runs = []
    for length, factors in (("at 120 steps", (1.0, 1.2, 1.1)), ("when trained", (1.0, 14.0, 22.0))):
        for seed in (1, 2):
            for variant, factor in zip(("full", "diagonal", "isotropic"), factors, strict=True):
                one = made_up.run("covariance", "garlic-paper", 1.0, variant=variant, seed=seed, length=length)
                more = factor * (1.0 if factor == 1.0 or seed == 1 else 1.5)
                one["rows"] = [row | {"candidates": more * row["candidates"]} for row in one["rows"]]
                runs.append(one)
    results = loaded(tmp_path, runs)
    found = [one for one in check_claims(results) if one.number == 7]
    assert [(one.length, one.verdict) for one in found] == [("at 120 steps", DISAGREES), ("when trained", AGREES)]
    assert found[1].anchor == "claim-7-when-trained"
    # Diagonal: 1/14 and 1/21 of full.
    assert found[1].numbers[0]["ratio"] == pytest.approx((1 / 14 + 1 / 21) / 2, rel=1e-3)
    assert "0.060 ± 0.017" in found[1].measured
    section = sections.ablation(results, SPECS["covariance"], tmp_path)
    assert [table.title for table in section.tables[::3]] == [
        "Covariance, Fashion-MNIST, at 120 steps: Recall@1 per candidate",
        "Covariance, Fashion-MNIST, when trained: Recall@1 per candidate",
    ]
    assert section.verdicts == [
        "Fashion-MNIST, at 120 steps: order disagrees, 0 of 2 ratios within 10 %",
        "Fashion-MNIST, when trained: order agrees, 0 of 2 ratios within 10 %",
    ]
    make_report(tmp_path)
    row = next(
        line for line in (tmp_path / "summary.md").read_text(encoding="utf-8").splitlines() if "Table: covariance" in line
    )
    assert "at 120 steps: disagrees; when trained: agrees" in row
    assert "Fashion-MNIST, 60,000 points, at 120 steps, 2 seeds" in row
