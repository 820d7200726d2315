"""From the figures to files: JSON with everything, a table in Markdown, two plots."""

import json

from harness import plot
from harness.sweep import TARGETS, best_at, summary

MODES = {"batch": "all queries in one call", "single": "one query a call"}


def without_places(value):
    """Results with the names of files, not where they lie on this machine."""
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_places(item) for item in value]
    return value.rsplit("/", 1)[-1] if isinstance(value, str) and value.startswith("/") else value


def progress(rows, ks):
    """Lines that say what came out, for the terminal."""
    for k in ks:
        for mode in MODES:
            part = [r for r in rows if r["k"] == k and r["mode"] == mode]
            if part:
                yield f"  k={k}, {mode}: {summary(part)}"


def write(result, folder, name):
    """Writes SET.json, SET.md, SET.svg (speed) and SET-work.svg (distance equivalents); returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.json": json.dumps(without_places(result), indent=1) + "\n", f"{name}.md": markdown(result)}
    k = 10 if 10 in result["ks"] else result["ks"][0]
    own = {r["mode"] for r in rows_of(result, "garlic", k)}
    mode = "single" if own == {"single"} else "batch"
    title, what = result["set"], f"{k}-recall@{k}, one thread"
    speed = {n: [(r["recall"], r["qps"]) for r in rows_of(result, n, k) if r["mode"] == mode] for n in result["rivals"]}
    files[f"{name}.svg"] = plot.draw(speed, title, f"{what}, {MODES[mode]}", "queries a second", higher=True)
    work = {n: [(r["recall"], r["distance_equivalents"]) for r in rows_of(result, n, k)
                if r.get("distance_equivalents")] for n in result["rivals"]}
    work = {n: points for n, points in work.items() if points}
    if work:
        files[f"{name}-work.svg"] = plot.draw(work, title, f"{what}: all work of a query, routing included",
                                              "distance equivalents", higher=False)
    for file, text in files.items():
        (folder / file).write_text(text)
    return [folder / file for file in files]


def rows_of(result, name, k):
    """Rows of one contestant at one k."""
    return [r for r in result["rivals"].get(name, {}).get("rows", []) if r["k"] == k]


def table(header, rows):
    """Lines of a Markdown table."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def markdown(result):
    """The whole report."""
    lines = [*head(result), *builds(result)]
    for mode, words in MODES.items():
        for k in result["ks"]:
            lines += ["", f"## k = {k}, {words}", "", *speeds(result, k, mode)]
    lines += [*work(result), *settings(result)]
    return "\n".join(lines) + "\n"


def head(result):
    """What was measured on what."""
    m = result["machine"]
    yield f"# {result['set']}"
    yield ""
    yield (f"{result['points']:,} points of dimension {result['dim']}, {result['queries']:,} queries, Euclidean. "
           f"Searches on one thread, pinned to one core; best of up to {result['repeat']} runs. {result['date']}.")
    yield ""
    yield (f"Machine: {m['cpu']}, {m['cores']} cores, {m['memory_bytes'] / 2**30:.0f} GiB, {m['kernel']}, "
           f"{' '.join(m['simd'])}; load average {m['load_average'][0]:.2f} before, "
           f"{result.get('load_average_after', [float('nan')])[0]:.2f} after.")
    yield ""
    yield "Versions: " + ", ".join(f"{n} {v or 'NOT INSTALLED'}" for n, v in result["versions"].items()) + "."
    yield ""
    for name, ratio in result["noise"].items():
        if ratio:
            yield (f"- Noise (A/A): {name} swept again at the end of the run, QPS second / first over "
                   f"{ratio['settings']} settings: min {ratio['min']:.2f}, median {ratio['median']:.2f}, "
                   f"max {ratio['max']:.2f}.")
    check = result.get("recall_check")
    if check:
        yield (f"- Recall of GARLIC at one setting, k = {check['k']}: {check['eval']:.4f} as it says, "
               f"{check['recomputed']:.4f} recomputed from its answers.")
    for name, why in result["skipped"].items():
        yield f"- **LEFT OUT: {name}** ({why})."


def builds(result):
    """Build times and sizes."""
    rows = []
    for name, entry in result["rivals"].items():
        for variant, note in entry["builds"].items():
            cpu = f"{note['cpu_seconds']:.1f}" if note.get("cpu_seconds") else "-"
            rows.append([name, variant, f"{note['seconds']:.1f}", cpu, str(note["threads"]), f"{note['bytes'] / 1e6:,.0f}"])
    header = ["", "variant", "build, s", "CPU s", "threads", "MB on disk"]
    return ["", "## Builds", "", "Sizes are those of the saved index with what it needs to answer, vectors included "
            "where the library saves them.", "", *table(header, rows)]


def setting(row):
    """A row's setting in a few words."""
    return f"{row['variant']}: " + " ".join(f"{n}={v:g}" if isinstance(v, (int, float)) else f"{n}={v}"
                                            for n, v in row["params"].items())


def settings(result):
    """The settings behind the table of batches."""
    k = 10 if 10 in result["ks"] else result["ks"][0]
    yield from ("", f"## Settings of the fastest rows, k = {k}, batch (all others are in the JSON file)", "")
    for name in result["rivals"]:
        rows = [r for r in rows_of(result, name, k) if r["mode"] == "batch"]
        for target in TARGETS:
            row = best_at(rows, target)
            if row:
                yield f"- {name}, {target:.2f}: {setting(row)}"


def speeds(result, k, mode):
    """QPS of each at the targets, and GARLIC's ratio to the best of the others."""
    rows, best = [], {t: {} for t in TARGETS}
    for name in result["rivals"]:
        own = [r for r in rows_of(result, name, k) if r["mode"] == mode]
        if not own:
            continue
        cells = []
        for target in TARGETS:
            row = best_at(own, target)
            best[target][name] = row
            cells.append(f"{row['qps']:,.0f} ({row['recall']:.4f})" if row else "not reached")
        rows.append([name, *cells])
    others = ["best rival"]
    ratio = ["GARLIC / best rival"]
    for target in TARGETS:
        mine = best[target].pop("garlic", None)
        first = max((item for item in best[target].items() if item[1]), key=lambda i: i[1]["qps"], default=None)
        others.append(f"{first[1]['qps']:,.0f} ({first[0]})" if first else "-")
        ratio.append(f"**{mine['qps'] / first[1]['qps']:.2f}**" if mine and first else "-")
    return table(["QPS at recall >=", *(f"{t:.2f}" for t in TARGETS)], [*rows, others, ratio])


def work(result):
    """Distance equivalents at the targets, of those that count them."""
    lines = ["", "## Distance equivalents per query", "",
             "All work of a query in units of one exact distance. faiss-ivf: lists plus points scanned; graphs: distances "
             "computed; GARLIC: routing, projections, codes and exact distances. The least of all rows that reach the recall."]
    tables = []
    for k in result["ks"]:
        rows = []
        for name in result["rivals"]:
            own = [r for r in rows_of(result, name, k) if r.get("distance_equivalents")]
            if own:
                rows.append([name, *(least(own, t) for t in TARGETS)])
        if rows:
            tables += ["", *table([f"k = {k}", *(f"{t:.2f}" for t in TARGETS)], rows)]
    return [*lines, *tables] if tables else []


def least(rows, target):
    """The smallest number of distance equivalents of a row that reaches the target."""
    fits = [r for r in rows if r["recall"] >= target]
    if not fits:
        return "not reached"
    row = min(fits, key=lambda r: r["distance_equivalents"])
    exact = f", {row['candidates']:,.0f} exact" if row.get("candidates") else ""
    return f"{row['distance_equivalents']:,.0f} at {row['recall']:.4f}{exact}"
