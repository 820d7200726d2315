#!/usr/bin/env python3
"""How work and time of a search grow with the number of points.

    python bench/growth.py SET.hdf5 62500 250000

Builds an index of a random part of the points for each size, and searches it on one core with the test queries of the set, by recall
target alone. The exponents are those between the smallest and the largest size. GARLIC_BIN names the program, otherwise it is
`garlic` from the path. Needs numpy and h5py.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy as np

PROGRAM = os.environ.get("GARLIC_BIN", "garlic")
TARGETS = "0.9,0.95,0.99"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, help="an HDF5 file with train and test")
    parser.add_argument("sizes", type=int, nargs="+", help="numbers of points")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2, help="of the builds")
    options = parser.parse_args()
    rows = {}
    with h5py.File(options.set) as file, tempfile.TemporaryDirectory() as folder:
        metric = "cosine" if file.attrs.get("distance", "euclidean") == "angular" else "euclidean"
        points, place = file["train"][:], Path(folder)
        np.save(place / "queries.npy", file["test"][: options.queries])
        order = np.random.default_rng(1).permutation(len(points))
        print("| points | target | recall@10 | work, distances | codes | queries a second, batch |\n|---|---|---|---|---|---|")
        for size in options.sizes:
            part, index = place / "part.npy", place / "x.garlic"
            np.save(part, points[np.sort(order[:size])])
            run("build", part, "-o", index, "--metric", metric, "--seed", 1, "--threads", options.threads, "--quiet")
            found = run("eval", index, "--query-file", place / "queries.npy", part, "--recall", TARGETS, "--batch", "--threads", 1, "--repeat", 3, "--json")
            for row in map(json.loads, found.splitlines()):
                rows[size, row["target"]] = row
                facts = f"{row['recall_at_10']:.3f} | {row['distance_equivalents']:,.0f} | {row['work']['codes']:,.0f} | {row['qps_batch']:,.0f}"
                print(f"| {size:,} | {row['target']} | {facts} |", flush=True)
    first, last = min(options.sizes), max(options.sizes)
    growth = math.log(last / first)
    for target in sorted({target for _, target in rows}):
        a, b = rows[first, target], rows[last, target]
        work = math.log(b["distance_equivalents"] / a["distance_equivalents"]) / growth
        print(f"target {target}: work grows as n^{work:.2f}, time as n^{math.log(a['qps_batch'] / b['qps_batch']) / growth:.2f}")


def run(*words):
    """What the program prints."""
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
