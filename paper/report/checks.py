"""The rules behind the table of claims, one function a claim."""

from __future__ import annotations

from collections.abc import Sequence

from paper.report.ablation import averages, order_lines, plain_label
from paper.report.claims import Claim
from paper.report.curves import Estimate, mean_cost_for, mean_recall_at
from paper.report.diagnostics import find_curvature
from paper.report.document import Line, by_set, method_lines, set_name, variant_lines
from paper.report.experiments import ABLATIONS
from paper.report.load import Results, Run, number
from paper.report.numbers import count, percent
from paper.report.tables import fixed_counts

SPECS = {spec.name: spec for spec in ABLATIONS}
TARGETS = (0.9, 0.8, 0.7, 0.5)


def cheapest(lines: Sequence[Line], method: str, recall: str, target: float) -> Estimate | None:
    """The fewest candidates any variant of a method needs for a recall: rivals are taken at their best."""
    costs = [mean_cost_for(line.runs, recall, "candidates", target) for line in lines if line.method == method]
    known = [cost for cost in costs if cost.value is not None]
    return min(known, key=lambda cost: cost.value) if known else None


def half_of_ivf(results: Results, place: int) -> Claim:
    """Claim: half of IVF's candidates on Fashion-MNIST."""
    claim = Claim(
        place,
        "On Fashion-MNIST GARLIC needs about half the candidates of an IVF for the same 10-recall@10 (first version's "
        "abstract).",
        "Candidates of garlic-paper / candidates of faiss-ivf for 10-recall@10 = 0.5 and 0.7 on Fashion-MNIST: agrees "
        "at 0.55 or less. garlic-default and the other sets are given beside it and do not decide.",
    )
    held, measured = [], []
    for name, runs in by_set(results.of("recall-vs-candidates")).items():
        lines = method_lines(runs)
        for target in (0.5, 0.7):
            ivf = cheapest(lines, "faiss-ivf", "recall_at_10", target)
            for method in ("garlic-paper", "garlic-default"):
                ours = cheapest(lines, method, "recall_at_10", target)
                if ivf is None or ours is None or ivf.bound:
                    continue
                ratio = ours.value / ivf.value
                claim.numbers.append(
                    {"set": name, "recall": target, "method": method, "ratio": ratio, "bound": ours.bound}
                )
                sign = "≤ " if ours.bound else ""
                measured.append(f"{set_name(name)} at {target:g}, {method}: {sign}{ratio:.2f}")
                decides = method == "garlic-paper" and name.startswith("fashion-mnist")
                # An upper bound above the limit decides nothing: the true ratio may be on either side.
                if decides and (not ours.bound or ratio <= 0.55):
                    held.append(ratio <= 0.55)
    ratios = [
        f"{one['ratio']:.2f}"
        for one in claim.numbers
        if one["method"] == "garlic-paper" and one["set"].startswith("fashion-mnist")
    ]
    return claim.settle(
        held,
        measured,
        f"The published method needs about half of IVF's candidates or fewer (ratios {', '.join(ratios)}).",
        f"The published method needs more than half of IVF's candidates (ratios {', '.join(ratios)}).",
    )


def _fraction(runs: Sequence[Run], method: str, fraction: float) -> list[Run]:
    return [run for run in runs if run.method == method and abs((number(run.value) or 0.0) - fraction) < 1e-9]


def one_percent(results: Results, place: int) -> Claim:
    """Claim: trained on 1 % beats IVF trained on 10 %."""
    claim = Claim(
        place,
        "Trained on 1 % of the points, GARLIC beats an IVF trained on 10 %.",
        "10-recall@10 of garlic-paper at 1 % against faiss-ivf at 10 % at equal candidates, at the round numbers of "
        "candidates "
        "that both sweeps contain: agrees if ours is higher at all of them.",
    )
    held, measured = [], []
    for name, runs in by_set(results.of("training-fraction")).items():
        ours, ivf = _fraction(runs, "garlic-paper", 0.01), _fraction(runs, "faiss-ivf", 0.1)
        for at in fixed_counts(max(run.points for run in runs)):
            pair = [mean_recall_at(some, "recall_at_10", "candidates", at) for some in (ours, ivf)]
            if all(one.value is not None and not one.bound for one in pair):
                held.append(pair[0].value > pair[1].value)
                measured.append(f"{set_name(name)} @ {at:,}: {pair[0].value:.3f} against {pair[1].value:.3f}")
                claim.numbers.append({"set": name, "candidates": at, "garlic": pair[0].value, "ivf": pair[1].value})
    return claim.settle(
        held,
        measured,
        "GARLIC trained on 1 % finds more than the IVF trained on 10 % at every number of candidates compared.",
        "The IVF trained on 10 % finds as much or more at equal candidates.",
    )


def tau_four(results: Results, place: int) -> Claim:
    """Claim: tau = 4 gives recall .67 at 154,264 candidates."""
    claim = Claim(
        place,
        "τ = 4 gives Recall@1 0.67 at 154,264 candidates (15.4 % of SIFT's million points).",
        "Candidates that τ = 4 needs for Recall@1 = 0.67 on photosift1m or SIFT, as a share of the points, against "
        "15.4 %: agrees "
        "within 25 % of that. The same for τ = 3 is given beside it.",
    )
    held, measured, ratios = [], [], []
    for name, runs in by_set(results.of("tau")).items():
        if "sift" not in name:
            continue
        costs = {}
        for value in (3.0, 4.0):
            some = [run for run in runs if number(run.value) == value and run.method == "garlic-paper"]
            costs[value] = mean_cost_for(some, "recall_at_1", "candidates", 0.67)
        if costs[4.0].value is None:
            ran_out = _ran_out([run for run in runs if number(run.value) == 4.0 and run.method == "garlic-paper"])
            if ran_out:
                held.append(False)
                measured.append(f"{set_name(name)}: {ran_out}")
            continue
        points = max(run.points for run in runs)
        share = costs[4.0].value / points
        if costs[4.0].bound and share > 1.25 * 0.154264:
            continue
        held.append(not costs[4.0].bound and abs(share / 0.154264 - 1.0) <= 0.25)
        sign = "at most " if costs[4.0].bound else ""
        measured.append(f"{set_name(name)}: {sign}{count(costs[4.0].value)} candidates ({sign}{percent(share, 1)})")
        claim.numbers.append({"set": name, "candidates": costs[4.0].value, "share": share, "points": points})
        if costs[3.0].value is not None:
            ratios.append(f"{costs[4.0].value / costs[3.0].value:.1f}")
            measured.append(f"τ = 3: {count(costs[3.0].value)}")
    shares = " and ".join(percent(one["share"], 1) for one in claim.numbers) or "more than 19 %"
    beside = f" That is {' and '.join(ratios)} times what τ = 3 needs." if ratios else ""
    return claim.settle(
        held,
        measured,
        f"With τ = 4 the same recall takes a similar share of the points ({shares}).{beside}",
        f"With τ = 4 the same recall takes {shares} of the points (published: 15.4 %).{beside}",
    )


def _ran_out(runs: Sequence[Run]) -> str:
    """What a sweep gave that spent more than the published candidates and still missed the recall; else nothing."""
    spent = [row for run in runs for row in run.rows if (row.get("candidates") or 0.0) > 1.25 * 0.154264 * run.points]
    if not spent:
        return ""
    last = max(spent, key=lambda row: row.get("recall_at_1") or 0.0)
    return f"Recall@1 {last.get('recall_at_1'):.3f} at {count(last.get('candidates'))} candidates"


def farthest_point(results: Results, place: int) -> Claim:
    """Claim: a farthest-point start needs 50 % more candidates."""
    claim = Claim(
        place,
        "A farthest-point start needs 50 % more candidates (the text's probes).",
        "Candidates needed for the highest of Recall@1 = 0.9, 0.8, 0.7, 0.5 that both reach, farthest point / "
        "k-means++: agrees between 1.35 and 1.65.",
    )
    held, measured = [], []
    for name, runs in by_set(results.of("initialisation")).items():
        lines = order_lines(variant_lines(runs), SPECS["initialisation"])
        start = next((line for line in lines if "means++" in plain_label(line)), None)
        far = next((line for line in lines if "farthest" in plain_label(line)), None)
        if start is None or far is None:
            continue
        for target in TARGETS:
            costs = [mean_cost_for(line.runs, "recall_at_1", "candidates", target) for line in (far, start)]
            if all(cost.value is not None and not cost.bound for cost in costs):
                ratio = costs[0].value / costs[1].value
                held.append(1.35 <= ratio <= 1.65)
                numbers = " against ".join(count(cost.value) for cost in costs)
                measured.append(f"{set_name(name)} at {target:g}: {numbers} ({ratio:.2f})")
                claim.numbers.append({"set": name, "recall": target, "ratio": ratio})
                break
    ratios = ", ".join(f"{one['ratio']:.2f}" for one in claim.numbers)
    return claim.settle(
        held,
        measured,
        f"A farthest-point start needs about half as many candidates again (ratios {ratios}).",
        f"A farthest-point start needs {ratios} times the candidates, not 1.5 times.",
    )


def _budget_recalls(results: Results) -> dict[tuple[str, int, float], dict[float, float]]:
    """Recall@1 by bin budget for each (set, seed, probes); from the comparison where the experiment was not run."""
    runs = results.of("bin-budget") or [
        run for run in results.of("recall-vs-candidates") if run.method == "garlic-paper"
    ]
    found: dict[tuple[str, int, float], dict[float, float]] = {}
    for run in runs:
        for row in run.rows:
            given = next((row.params[key] for key in ("bins", "rho") if key in row.params), run.value)
            budget, probes, recall = number(given), number(row.params.get("probes")), row.get("recall_at_1")
            if budget and probes and recall is not None:
                found.setdefault((run.set, run.seed, probes), {})[budget] = recall
    return found


def bin_budget(results: Results, place: int) -> Claim:
    """Claim: rho >= 0.2 is robust."""
    claim = Claim(
        place,
        "A bin budget ρ of 0.2 or more is robust.",
        "At equal probes, Recall@1 with ρ of 0.2 or more is at least 90 % of that with ρ = 1 (all bins), for every "
        "number of probes "
        "measured.",
    )
    held, measured = [], []
    found = _budget_recalls(results)
    for name in sorted({key[0] for key in found}):
        shares: dict[bool, list[float]] = {True: [], False: []}
        for key, recalls in found.items():
            if key[0] == name and recalls.get(1.0):
                for budget, recall in recalls.items():
                    if budget < 1.0:
                        shares[budget >= 0.2 - 1e-9].append(recall / recalls[1.0])
        if shares[True]:
            held.append(min(shares[True]) >= 0.9)
            below = f", below 0.2 at least {percent(min(shares[False]))}" if shares[False] else ""
            measured.append(f"{set_name(name)}: at least {percent(min(shares[True]))} of the recall of all bins{below}")
            claim.numbers.append(
                {"set": name, "worst": min(shares[True]), "worst_below": min(shares[False], default=None)}
            )
    worst = min((one["worst"] for one in claim.numbers), default=0.0)
    return claim.settle(
        held,
        measured,
        f"From ρ = 0.2 on at most {percent(1 - worst)} of the recall of all bins is lost.",
        f"With ρ of 0.2 or more up to {percent(1 - worst)} of the recall of all bins is lost.",
    )


def curvature(results: Results, place: int) -> Claim:
    """Claim: curvature about 0.5 +- 0.06."""
    claim = Claim(
        place,
        "The local curvature of the data is about 0.5 ± 0.06.",
        "Mean curvature over all sizes of neighbourhoods, in the diagnosis of each index: agrees from 0.44 to 0.56. "
        "The text does not define it fully; ours is defined in the diagnosis.",
    )
    held, measured = [], []
    for name, content in sorted(results.diagnostics.items()):
        found = find_curvature(content)
        if found:
            mean, deviation = found
            held.append(0.44 <= mean <= 0.56)
            measured.append(f"{name}: {mean:.2f}" + (f" ± {deviation:.2f}" if deviation is not None else ""))
            claim.numbers.append({"index": name, "mean": mean, "deviation": deviation})
    means = ", ".join(f"{one['mean']:.2f}" for one in claim.numbers)
    return claim.settle(
        held,
        measured,
        f"Our measure of curvature lies in the published range ({means}).",
        f"Our measure of curvature is {means}; with another definition, the number itself cannot be compared, only "
        "its spread.",
    )


def collapse(results: Results, place: int) -> Claim:
    """Claim: diagonal and isotropic covariances collapse."""
    claim = Claim(
        place,
        "Diagonal and isotropic covariances collapse: Recall@1 per candidate 1.22 and 0.75 against 16.20 (ratios "
        "0.075 and 0.046).",
        "Mean Recall@1 per candidate over the same sweep, relative to full covariances: a collapse is a ratio of 0.2 "
        "or less.",
    )
    held, measured = [], []
    for name, runs in by_set(results.of("covariance")).items():
        lines = order_lines(variant_lines(runs), SPECS["covariance"])
        for one in averages(lines, SPECS["covariance"]):
            word = next((word for word in ("diagonal", "isotropic") if word in one.line.label.lower()), None)
            if word and one.ratio is not None:
                held.append(one.ratio <= 0.2)
                spread = f" ± {one.spread:.3f}" if one.spread is not None else ""
                measured.append(f"{set_name(name)}, {word}: {one.ratio:.3f}{spread}")
                claim.numbers.append({"set": name, "covariance": word, "ratio": one.ratio})
    ratios = ", ".join(f"{one['ratio']:.2f}" for one in claim.numbers)
    return claim.settle(
        held,
        measured,
        f"Both collapse in ours, too (ratios {ratios}).",
        f"They do not collapse in ours (ratios {ratios}).",
    )


def online(results: Results, place: int) -> Claim:
    """Claim: online updates work."""
    claim = Claim(
        place,
        "The index can be updated online.",
        "Experiment online: candidates for the highest of Recall@1 = 0.9, 0.8, 0.7, 0.5 that both reach, half of the "
        "points added "
        "online / all of them built at once: agrees at 1.10 or less.",
    )
    held, measured = [], []
    for name, runs in by_set(results.of("online")).items():
        lines = variant_lines(runs)
        for grown in filter(_grown, lines):
            whole = next((line for line in lines if line.method == grown.method and not _grown(line)), None)
            for target in TARGETS if whole else ():
                costs = [mean_cost_for(line.runs, "recall_at_1", "candidates", target) for line in (grown, whole)]
                if all(cost.value is not None and not cost.bound for cost in costs):
                    ratio = costs[0].value / costs[1].value
                    held.append(ratio <= 1.10)
                    measured.append(f"{set_name(name)}, {grown.label} at {target:g}: {ratio:.2f}")
                    claim.numbers.append({"set": name, "variant": grown.label, "recall": target, "ratio": ratio})
                    break
    ratios = ", ".join(f"{one['ratio']:.2f}" for one in claim.numbers)
    return claim.settle(
        held,
        measured,
        f"An index that grew online needs about the candidates of one built on everything (ratios {ratios}).",
        f"An index that grew online needs more candidates than one built on everything (ratios {ratios}).",
    )


def _grown(line: Line) -> bool:
    """Whether points of an index were added online: told by the words of its label."""
    return any(word in plain_label(line) for word in ("online", "added", "stream", "grown"))
