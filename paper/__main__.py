"""`python -m paper`: runs the experiments that have no results yet, then writes the report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from bench.harness.machine import machine, versions

from paper import garlic, store
from paper.experiment import load, restricted
from paper.run import Runner


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("--experiments", type=Path, default=Path("experiments"), help="folder of the experiments")
    parser.add_argument("--out", type=Path, default=Path("target/paper"), help="where results and report go")
    parser.add_argument("--quick", action="store_true", help="parts of the data sets, short trainings")
    parser.add_argument("--only", help="names of experiments, separated by commas")
    parser.add_argument("--sets", help="data sets of sweeps, separated by commas")
    parser.add_argument("--methods", help="methods of sweeps, separated by commas")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads that builds may use")
    parser.add_argument("--list", action="store_true", help="say what would be run, and stop")
    parser.add_argument("--no-report", action="store_true", help="only measure")
    args = parser.parse_args()
    defaults, experiments = load(args.experiments, args.quick, garlic.parameters("paper"))
    everything = experiments
    if args.only:
        wanted = args.only.split(",")
        unknown = set(wanted) - {e.name for e in experiments}
        if unknown:
            parser.error(f"no such experiment: {', '.join(sorted(unknown))}; there are: "
                         f"{', '.join(e.name for e in experiments)}")
        experiments = [e for e in experiments if e.name in wanted]
    for name, chosen in (("set", args.sets), ("method", args.methods)):
        if chosen:
            experiments = [restricted(e, name, chosen.split(",")) for e in experiments]
    if args.list:
        for experiment in experiments:
            print(f"{experiment.name}: {experiment.title} ({len(experiment.runs) or 1} runs)")
        return 0
    start = time.perf_counter()
    runner = Runner(args.out, defaults, args.quick, args.threads)
    try:
        runner.run(experiments)
    finally:
        _note(args.out, args.quick, time.perf_counter() - start, runner, runner.missing(everything))
    if not args.no_report:
        from paper.report.__main__ import main as report

        report([str(args.out)])
    if runner.failed:
        print(f"{len(runner.failed)} runs failed:", *runner.failed, sep="\n  ", file=sys.stderr)
    return 1 if runner.failed else 0


def _note(out: Path, quick: bool, seconds: float, runner: Runner, missing: list[str]) -> None:
    """Keeps how long the runs took, summed over interruptions."""
    path = out / "run.json"
    before = store.load(path) or {}
    command = "make paper QUICK=1" if quick else "make paper"
    total = before.get("seconds", 0.0) + seconds
    about = {"command": command, "seconds": total, "runs": before.get("runs", 0) + runner.done}
    about |= {"failed": runner.failed, "missing": missing}
    about |= {"notes": before["notes"]} if "notes" in before else {}  # written by hand, shown at the top of the report
    store.save(path, about | {"machine": machine(), "versions": versions()})


if __name__ == "__main__":
    sys.exit(main())
