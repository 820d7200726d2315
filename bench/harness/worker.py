"""A process of its own for each rival: one library, one task, the threads it may have.

    python -m harness.worker TASK.json RESULT.json

A library that crashes takes nothing else with it, and no library inherits the threads of another.
"""

import json
import os
import sys
import time
from pathlib import Path

import rivals
from harness.dataset import load, shape
from harness.machine import versions
from harness.recall import Truth
from harness.store import Slot
from harness.sweep import Sweep


def say(text):
    print(text, flush=True)


def slots(task, rival):
    """The variants of a rival and their places in the cache."""
    points, dim, _, _ = shape(task["file"])
    version = versions()[rival.package]
    return {v: Slot(task["set"], Path(task["file"]), task["rival"], v, version) for v in rival.variants(points, dim)}


def build(task):
    """Builds what is not in the cache."""
    rival = rivals.load(task["rival"])
    missing = {v: s for v, s in slots(task, rival).items() if task["rebuild"] or not s.built()}
    if not missing:
        return {}
    train, _, _ = load(task["file"])
    for variant, slot in missing.items():
        say(f"  building {task['rival']} {variant}")
        slot.clear()
        engine = rival(train, variant)
        start, cpu = time.perf_counter(), time.process_time()
        engine.build(task["threads"])
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        engine.save(slot.index)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        note = slot.finish(seconds=round(seconds, 2), cpu_seconds=round(cpu, 2), threads=min(task["threads"], cores))
        say(f"  built {task['rival']} {variant} in {seconds:.1f} s, {note['bytes'] / 1e6:.0f} MB")
    return {}


def search(task):
    """Sweeps, or measures given settings once more."""
    rival = rivals.load(task["rival"])
    train, test, neighbors = load(task["file"])
    truth = Truth(train, test, neighbors)
    engines, builds = {}, {}
    for variant, slot in slots(task, rival).items():
        engine = rival(train, variant)
        engine.load(slot.index)
        engines[variant] = engine
        note = slot.built()
        builds[variant] = {n: note.get(n) for n in ("seconds", "cpu_seconds", "threads", "bytes")}
    rows = []
    for k in task["ks"]:
        sweep = Sweep(engines, truth, k, task["repeat"], task["seconds_per_k"], say)
        earlier = task.get("again")
        if earlier is None:
            rows += sweep.run()
        else:
            rows += sweep.again([r for r in earlier if r["k"] == k and r["mode"] == "batch"])
    return {"builds": builds, "rows": rows}


def main():
    task = json.loads(Path(sys.argv[1]).read_text())
    result = {"build": build, "search": search}[task["do"]](task)
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
