"""GARLIC itself, through its program: `garlic build` and `garlic eval --json`.

Everything that knows the program's options and the names of its JSON fields is in this file.
"""

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np

from harness.dataset import load
from harness.recall import Truth
from harness.store import Slot

# Recall targets that `garlic eval --recall` is asked for; its own margin decides what comes out.
TARGETS = (.80, .85, .87, .88, .885, .89, .8925, .895, .8975, .90, .905, .91, .92, .93, .94, .9425, .945, .9475, .95, .955,
           .96, .97, .975, .98, .983, .986, .987, .988, .989, .99, .991, .993, .995)


def compiled(root):
    """The program: GARLIC_BIN, or the release build of the tree, made now."""
    if "GARLIC_BIN" in os.environ:
        return Path(os.environ["GARLIC_BIN"])
    words = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "garlic-cli"]
    if subprocess.run(words, cwd=root, check=False).returncode:
        raise SystemExit("GARLIC does not compile; mend it, name a program with GARLIC_BIN, or leave it out with --only")
    return Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release" / "garlic"


class Program:
    """The garlic program, one index of it, and the core on which it is timed."""

    def __init__(self, program, data_set, data_file, core, build_args, say):
        self.program, self.file, self.core, self.say = str(program), data_file, core, say
        self.build_args = list(build_args)
        digest = hashlib.sha256(Path(program).read_bytes()).hexdigest()[:16]
        self.slot = Slot(data_set, data_file, "garlic", " ".join(["garlic", *self.build_args]), digest)
        self.index = self.slot.folder / "index.garlic"

    def version(self):
        """What the program calls itself."""
        return self._run(["--version"]).strip().removeprefix("garlic ")

    def _run(self, words, pinned=False):
        def pin():
            if pinned and self.core is not None:
                os.sched_setaffinity(0, {self.core})

        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False,
                              preexec_fn=pin)
        if done.returncode:
            raise RuntimeError(f"garlic {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[:400]}")
        return done.stdout

    def build(self, threads, rebuild):
        """What is known of the build; builds when there is none of this very program."""
        note = self.slot.built()
        if note and not rebuild:
            return note
        self.slot.clear()
        self.say("  building garlic " + " ".join(self.build_args))
        words = ["build", self.file, "-o", self.index, "--threads", threads, "--json", *self.build_args]
        report = json.loads(self._run(words).strip().splitlines()[-1])
        self.index.replace(self.slot.index)
        note = self.slot.finish(seconds=round(build_seconds(report), 2), threads=threads, report=report)
        self.say(f"  built garlic in {note['seconds']:.1f} s, {note['bytes'] / 1e6:.0f} MB")
        return note

    def rows(self, ks, repeat, seconds_per_k):
        """Rows in the form of the rivals', the best of up to `repeat` runs of the program for each k, at least two."""
        if self.knows("eval", "--recall"):
            settings = ["--recall", ",".join(f"{t:g}" for t in TARGETS)]
        else:
            self.say("  THIS PROGRAM HAS NO `eval --recall`: its sweep of probes and bins is measured instead")
            settings = ["--sweep"]
        if self.knows("eval", "--batch"):
            settings.append("--batch")
        found = []
        for k in ks:
            best, start = {}, time.monotonic()
            for run in range(repeat):
                if run >= 2 and (time.monotonic() - start) * (run + 1) / run > seconds_per_k:
                    break
                words = ["eval", self.slot.index, self.file, "-k", k, "--threads", 1, "--quiet", "--json", *settings]
                for number, line in enumerate(self._run(words, pinned=True).splitlines()):
                    for row in converted(json.loads(line), k):
                        key = (row["mode"], number)
                        if key in best:
                            row["runs"] = best[key]["runs"] + 1
                            row["slowest_run_qps"] = min(best[key]["slowest_run_qps"], row["qps"])
                            row["qps"] = max(best[key]["qps"], row["qps"])
                        best[key] = row
            found += best.values()
        return found


    def check(self, k=10):
        """10-recall@10 of one setting as `eval` says, and as its answers in a file say, judged by the harness."""
        both = self.knows("eval", "--recall") and self.knows("search", "--recall")
        settings = ["--recall", "0.95"] if both else []
        words = ["eval", self.slot.index, self.file, "-k", k, "--quiet", "--json", *settings]
        said = converted(json.loads(self._run(words).splitlines()[0]), k)[0]["recall"]
        answers = self.slot.folder / "answers.npy"
        self._run(["search", self.slot.index, self.file, "-k", k, "-o", answers, "--quiet", *settings])
        ids = np.load(answers)
        answers.unlink()
        return {"k": k, "settings": settings, "eval": said, "recomputed": Truth(*load(self.file)).recall(ids, k)}

    def knows(self, command, option):
        """Whether a command of this program has an option."""
        return option in self._run([command, "--help"]).replace(",", " ").split()


def build_seconds(report):
    """Seconds of a build from the program's report, without reading and writing files."""
    seconds = report["seconds"]
    return seconds["total"] if isinstance(seconds, dict) else seconds


def converted(line, k):
    """Rows of one JSON line of `garlic eval`: one for single queries, one for the batch if it was measured."""
    recall = line.get("recall_at_k")
    if recall is None:
        recall = line.get({1: "recall_at_1", 10: "recall_at_10"}.get(k, "recall"))
    if recall is None:
        raise RuntimeError(f"garlic eval gave no recall for k = {k}: {sorted(line)}")
    params = {name: value for name, value in line.get("params", {}).items() if value not in (None, False) and name != "k"}
    for name in ("target", "recall_target"):
        if line.get(name) is not None:
            params["recall"] = line[name]
    row = {"variant": f"{line.get('method', 'garlic')}, {line.get('cells', '?')} cells", "params": params, "k": k,
           "recall": recall, "queries": line.get("timed_queries", line.get("queries")), "runs": 1,
           "candidates": line.get("candidates"), "distance_equivalents": line.get("distance_equivalents")}
    rows = []
    for mode, field in (("single", "qps"), ("batch", "qps_batch")):
        if line.get(field):
            rows.append({**row, "mode": mode, "qps": line[field], "slowest_run_qps": line[field]})
    return rows
