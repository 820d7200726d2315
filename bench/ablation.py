#!/usr/bin/env python3
"""What each part of the default preset brings: {k-means, tempered} cells x {whole cells, hyperspherical bins, learned
bins, codes}.

    bench/ablation.py DATA --cells K [--seeds 1,2,3] [--paper INDEX] [--queries N]

DATA is a data set's name or file, as for `garlic build`; `--paper` adds an index of the published method: whole
cells, its own hyperspherical bins, and learned bins and codes in its cells, each point in its best one. Hyperspherical bins
of other cells are those of Gaussians fitted to the points, round ones of one size for k-means. Needs
target/release/garlic (`cargo build --release`), nothing else. Candidates, distance equivalents and queries a second are
interpolated at recall targets on the front of each sweep; recall is 1-recall@1 and 10-recall@10. Without codes every point
that is met counts as a candidate.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GARLIC = os.environ.get("GARLIC_BIN", str(ROOT / "target/release/garlic"))
EVERYTHING = 4_000_000_000
TARGETS = (0.90, 0.95, 0.99)
SHARES = (0.002, 0.004, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35, 0.6, 1)


def run(*words):
    done = subprocess.run([GARLIC, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"garlic {' '.join(map(str, words))}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def probes(cells):
    steps, value = [], 1
    while value <= cells:
        steps.append(value)
        value = max(value + 1, round(value * 1.25))
    return steps


def at(rows, recall, target, value):
    """The least `value` at a recall target, between neighbouring points of the front; None when it is not reached."""
    front, best = [], 0.0
    for row in sorted(rows, key=lambda r: r[value]):
        if row[recall] > best:
            best = row[recall]
            front.append((best, row[value]))
    for (low, cheap), (high, dear) in zip([(0.0, None), *front], front):
        if high >= target:
            if cheap is None:
                return dear
            share = (target - low) / (high - low)
            return math.exp(math.log(cheap) + share * (math.log(dear) - math.log(cheap)))
    return None


def parts(index, data, cells, queries, only):
    limit = ["--queries", queries] if queries else []
    base = ["eval", index, data, "-k", 10, "--json", "--quiet", *limit]
    few = [p for p in probes(cells) if p <= max(8, cells // 8)]
    wide = ",".join(map(str, sorted({few[-1], few[len(few) // 2], few[len(few) * 3 // 4]})))
    narrow, shares = ",".join(map(str, few)), ",".join(map(str, SHARES))
    settings = {
        "whole cells": ["--probes", narrow, "--bins", 1, "--rerank", EVERYTHING],
        "learned bins": ["--probes", wide, "--bins", shares, "--rerank", EVERYTHING],
        "codes": ["--recall", ".8,.85,.9,.925,.95,.97,.98,.99,.995"],
    }
    for part, words in settings.items():
        if only in (None, part):
            yield part, run(*base, *words)


def paper(index, data, queries, only=None):
    limit = ["--queries", queries] if queries else []
    base = ["eval", index, data, "-k", 10, "--json", "--quiet", *limit]
    steps = "1,2,3,4,5,6,8,10,12,16,24,32"
    if only in (None, "whole cells"):
        yield "whole cells", run(*base, "--probes", steps, "--bins", 1)
    yield "hyperspherical bins", run(*base, "--probes", steps, "--bins", ".1,.2,.3,.4,.5,.7")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data")
    arguments.add_argument("--cells", type=int, required=True)
    arguments.add_argument("--seeds", default="1")
    arguments.add_argument("--paper")
    arguments.add_argument("--queries", type=int)
    arguments.add_argument("--only", help="one of the parts, such as `whole cells`")
    options = arguments.parse_args()
    measured = {}

    def note(model, part, rows):
        for recall in ("recall_at_1", "recall_at_10"):
            for target in TARGETS:
                for value in ("candidates", "distance_equivalents"):
                    found = at(rows, recall, target, value)
                    measured.setdefault((model, part, recall, target, value), []).append(found)
                fast = [r["qps"] for r in rows if r[recall] >= target]
                measured.setdefault((model, part, recall, target, "qps"), []).append(max(fast, default=None))

    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds.split(","):
            for model, anisotropy in (("k-means", 0), ("tempered", 0.5)):
                index = Path(folder) / f"{model}.garlic"
                calibrate = [] if options.only in (None, "codes") else ["--set", "calibration_queries=0"]
                run("build", options.data, "-o", index, "--json", "--seed", seed, "--set", f"cells={options.cells}",
                    "--set", f"anisotropy={anisotropy}", *calibrate)
                for part, rows in parts(index, options.data, options.cells, options.queries, options.only):
                    note(model, part, rows)
                if options.only in (None, "hyperspherical bins"):
                    spheres = Path(folder) / "spheres.garlic"
                    shape = "full" if anisotropy else "isotropic"
                    run("build", options.data, "-o", spheres, "--json", "--seed", seed, "--preset", "paper",
                        "--partition", index, "--set", f"covariance={shape}")
                    # Whole cells are above, chosen as the default preset chooses them.
                    for part, rows in paper(spheres, options.data, options.queries, "hyperspherical bins"):
                        note(model, part, rows)
        if options.paper:
            for part, rows in paper(options.paper, options.data, options.queries):
                note("paper", part, rows)
            index = Path(folder) / "paper.garlic"
            built = run("build", options.data, "-o", index, "--json", "--partition", options.paper)
            for part, rows in parts(index, options.data, built[-1]["cells"], options.queries, options.only):
                # Cells are chosen as the default preset chooses them here; whole cells in the published way are above.
                if part != "whole cells":
                    note("paper", part, rows)

    print(f"{options.data}, {options.cells} cells, seeds {options.seeds}: mean (standard deviation) over the seeds\n")
    print("| cells | part | recall | candidates .90/.95/.99 | distance equivalents | QPS |")
    print("|---|---|---|---|---|---|")
    for model, part, recall in dict.fromkeys(key[:3] for key in measured):
        columns = []
        for value in ("candidates", "distance_equivalents", "qps"):
            cells = []
            for target in TARGETS:
                values = measured[model, part, recall, target, value]
                if None in values:
                    cells.append("-")
                elif len(values) > 1:
                    cells.append(f"{statistics.mean(values):.0f} ({statistics.stdev(values):.0f})")
                else:
                    cells.append(f"{values[0]:.0f}")
            columns.append(" / ".join(cells))
        print(f"| {model} | {part} | {recall.removeprefix('recall_')} | " + " | ".join(columns) + " |")


if __name__ == "__main__":
    main()
