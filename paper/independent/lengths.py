"""`python -m paper.independent.lengths SET -o FOLDER`: the second implementation at several lengths of training, several runs at a time.

A run writes one JSON file when it ends; a file that is there is not measured again. Seeds come last in the order, so that a run that
is stopped early has every length and shape.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

EPOCHS = 120
FIXED = ["--no-early-stop", f"--epochs={EPOCHS}"]
# Options, and steps an epoch.
LENGTHS = {"120": (FIXED, 1), "preset": (["--epochs=250"], 1), "1200": (FIXED, 10), "3600": (FIXED, 30)}
SHAPES = {
    "full": [],
    "full-rotated": ["--rotate"],
    "diagonal": ["--covariance=diagonal"],
    "isotropic": ["--covariance=isotropic"],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.independent.lengths", description=__doc__)
    parser.add_argument("set", type=Path, help="folder with train.npy and test.npy")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--lengths", default=",".join(LENGTHS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--points", type=int, required=True, help="the first points of the set, trained on and searched")
    parser.add_argument("--initial-cells", type=int, default=100)
    parser.add_argument("--side", type=int, help="square images of this side")
    parser.add_argument("--workers", type=int, default=4, help="runs at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after this time")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    tasks = []
    for seed in asked.seeds.split(","):
        # The longest first: they decide when all is done.
        for length in reversed(asked.lengths.split(",")):
            for shape in asked.shapes.split(","):
                out = asked.out / f"{length}-{shape}-{seed}.json"
                fixed, steps = LENGTHS[length]
                options = [*fixed, f"--batch={-(-asked.points // steps)}", f"--points={asked.points}", f"--seed={seed}"]
                options += [f"--initial-cells={asked.initial_cells}", *SHAPES[shape]]
                options += [f"--side={asked.side}"] if asked.side else []
                if not out.exists():
                    tasks.append([str(asked.set), "--out", str(out), *options])
    stop = time.time() + asked.seconds
    with multiprocessing.get_context("spawn").Pool(asked.workers) as pool:
        for line in pool.imap_unordered(run, [(task, stop) for task in tasks]):
            print(line, flush=True)


def run(task: tuple[list[str], float]) -> str:
    """One run, unless it is too late for it."""
    words, stop = task
    if time.time() > stop:
        return f"not begun: {words[2]}"
    from paper.independent.__main__ import arguments, measure

    asked = arguments().parse_args(words)
    about = measure(asked)
    asked.out.write_text(json.dumps(about) + "\n")
    kept = ("cells", "covered", "largest", "eigenvalue_ratio", "value", "train_seconds", "seconds")
    return f"{asked.out.name}: " + ", ".join(f"{k} {about[k]:.3g}" for k in kept)


if __name__ == "__main__":
    main()
