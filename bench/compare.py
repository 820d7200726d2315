"""GARLIC beside its rivals on one data set, one thread: see README.md in this folder, start with bench/compare."""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rivals
from harness import dataset, report
from harness.machine import machine, versions
from rivals.garlic import Program, compiled

BENCH = Path(__file__).resolve().parent
AGAIN = "faiss-ivf"


def say(text):
    print(text, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/compare", description="GARLIC and its rivals, on one thread.")
    parser.add_argument("data", help="name of a data set in $GARLIC_DATA, or an HDF5 file (train, test, neighbors)")
    parser.add_argument("--k", default="1,10,100", help="neighbours asked for [%(default)s]")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs of a setting, the best counts [%(default)s]")
    parser.add_argument("--only", help="of garlic," + ",".join(rivals.MODULES) + "; results go to SET-partial.*")
    parser.add_argument("--out", type=Path, default=BENCH / "results", help="folder of the results [bench/results]")
    parser.add_argument("--minutes", type=float, default=40, help="time for all sweeps together, builds not counted [%(default)s]")
    parser.add_argument("--threads", type=int, default=2, help="threads for building; searches have one [%(default)s]")
    parser.add_argument("--limit-base", type=int, metavar="N", help="only the first N points, with their own true neighbours")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="only the first N queries [10000]")
    parser.add_argument("--build-only", action="store_true", help="build and cache the indexes, measure nothing")
    parser.add_argument("--rebuild", action="store_true", help="build again what is in the cache")
    parser.add_argument("--garlic-build-args", default="", metavar="ARGS", help="more arguments of `garlic build`")
    args = parser.parse_args()
    args.ks = sorted({int(k) for k in args.k.split(",")})
    args.names = args.only.split(",") if args.only else ["garlic", *rivals.MODULES]
    unknown = [n for n in args.names if n != "garlic" and n not in rivals.MODULES]
    if unknown or min(args.ks) < 1 or args.repeat < 1:
        parser.error(f"unknown rival {unknown}" if unknown else "k and repeat are positive numbers")
    return args


def worker(task, core=None):
    """Runs a task in a process of its own; (result, None) or (None, what went wrong)."""
    threads = str(task["threads"] if task["do"] == "build" else 1)
    env = {**os.environ, "PYTHONPATH": str(BENCH), "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env[name] = threads

    def pin():
        if core is not None:
            os.sched_setaffinity(0, {core})

    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "task.json", Path(folder) / "result.json"]
        log = Path(folder) / "log"
        files[0].write_text(json.dumps(task))
        with open(log, "w") as errors:
            done = subprocess.run([sys.executable, "-m", "harness.worker", *map(str, files)], env=env, stderr=errors,
                                  preexec_fn=pin, check=False)
        if done.returncode == 0:
            return json.loads(files[1].read_text()), None
        lines = log.read_text(errors="replace").strip().splitlines() or [""]
        return None, f"exit {done.returncode}: {lines[-1]}"


def noise(first, second):
    """Ratios of QPS at equal settings of two sweeps of the same thing: an A/A test."""
    def key(row):
        return (row["k"], row["mode"], row["variant"], json.dumps(row["params"], sort_keys=True))

    earlier = {key(r): r["qps"] for r in first}
    ratios = sorted(r["qps"] / earlier[key(r)] for r in second if key(r) in earlier)
    if not ratios:
        return None
    return {"settings": len(ratios), "min": ratios[0], "median": ratios[len(ratios) // 2], "max": ratios[-1]}


class Comparison:
    """One run over one data set."""

    def __init__(self, args):
        self.args = args
        self.name, self.file = dataset.prepare(args.data, args.limit_base, args.limit_queries, max(args.ks))
        points, dim, queries, depth = dataset.shape(self.file)
        self.ks = [k for k in args.ks if k <= depth]
        for k in set(args.ks) - set(self.ks):
            say(f"k = {k} LEFT OUT: only {depth} true neighbours can be known")
        self.core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else None
        self.result = {
            "set": self.name, "points": points, "dim": dim, "queries": queries, "ks": self.ks,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(), "versions": versions(), "repeat": args.repeat, "search_threads": 1,
            "rivals": {}, "skipped": {}, "noise": {},
        }
        say(f"{self.name}: {points} points of dimension {dim}, {queries} queries, k = {self.ks}")
        self.program = None
        # Two more turns: the second sweeps of the A/A test.
        self.seconds_per_k = 60 * args.minutes / (len(args.names) + 2) / max(1, len(self.ks))

    def skip(self, name, why):
        """Leaves a rival out, loudly and on record."""
        say(f"!!! {name} IS LEFT OUT: {why}")
        self.result["skipped"][name] = why

    def task(self, do, name, **more):
        return {"do": do, "rival": name, "set": self.name, "file": str(self.file), "threads": self.args.threads,
                "rebuild": self.args.rebuild, "ks": self.ks, "repeat": self.args.repeat,
                "seconds_per_k": self.seconds_per_k, **more}

    def build(self):
        """Builds everything first, so that no build disturbs a measurement."""
        for name in self.args.names:
            try:
                if name == "garlic":
                    program = Program(compiled(BENCH.parent), self.name, self.file, self.core,
                                      self.args.garlic_build_args.split(), say)
                    note = program.build(self.args.threads, self.args.rebuild)
                    self.program = program
                    self.result["versions"]["garlic"] = program.version()
                    self.result["rivals"][name] = {"builds": {"garlic": note}, "rows": []}
                    continue
            except (OSError, RuntimeError) as error:
                self.skip(name, f"{type(error).__name__}: {error}")
                continue
            _, error = worker(self.task("build", name))
            if error:
                self.skip(name, error)
            else:
                self.result["rivals"][name] = {"builds": {}, "rows": []}

    def measure(self, name, again=None):
        """Rows of one contestant, or None."""
        start, why = time.monotonic(), None
        say(f"{name}{'' if again is None else ', second sweep'}")
        if name == "garlic":
            try:
                found = {"rows": self.program.rows(self.ks, self.args.repeat, self.seconds_per_k)}
            except RuntimeError as error:
                found, why = None, str(error)
            else:
                say("\n".join(report.progress(found["rows"], self.ks)))
        else:
            found, why = worker(self.task("search", name, again=again), self.core)
        if found is None and again is not None:
            say(f"!!! the second sweep of {name} failed, its noise is not known: {why}")
        elif found is None:
            self.skip(name, why)
            self.result["rivals"].pop(name, None)
        say(f"  {time.monotonic() - start:.0f} s")
        return found

    def run(self):
        """Builds, sweeps, sweeps two of them again."""
        self.build()
        if self.args.build_only:
            return
        start = time.monotonic()
        for name in list(self.result["rivals"]):
            found = self.measure(name)
            if found:
                self.result["rivals"][name].update(found)
        for name in ("garlic", AGAIN):
            if name in self.result["rivals"]:
                first = self.result["rivals"][name]["rows"]
                second = self.measure(name, again=first)
                if second:
                    self.result["noise"][name] = noise(first, second["rows"])
        if "garlic" in self.result["rivals"]:
            try:
                self.result["recall_check"] = self.program.check(10 if 10 in self.ks else self.ks[0])
            except RuntimeError as error:
                say(f"!!! GARLIC's recall could not be checked: {error}")
        self.result["seconds"] = round(time.monotonic() - start)
        self.result["load_average_after"] = list(os.getloadavg())
        suffix = "-partial" if self.args.only else ""
        for path in report.write(self.result, self.args.out, self.name + suffix):
            say(f"wrote {path}")


def main():
    comparison = Comparison(arguments())
    comparison.run()
    if comparison.result["skipped"]:
        say(f"!!! LEFT OUT: {', '.join(comparison.result['skipped'])}; the tables are not complete")


if __name__ == "__main__":
    main()
