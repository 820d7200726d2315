#!/usr/bin/env python3
"""Search with the vectors on the disk and little memory: GARLIC, DiskANN and LanceDB, cold and warm.

    python bench/disk.py DATA.hdf5 --folder /tmp/disk --prepare
    python bench/disk.py DATA.hdf5 --folder /tmp/disk --limit 256MiB

DATA is an ANN-Benchmarks file. The first command makes the indexes in the folder and finds, for each rival, the cheapest setting that reaches
each recall; GARLIC is asked for the recall. The second measures in a memory cgroup, which needs root: index, program and the page cache share
the limit. Each engine runs in a process of its own, and the pages of its files are dropped before every pass, which runs once. Without --limit a
pass is warm: the best of three. Needs numpy, h5py, garlic_ann, diskannpy and lancedb (diskannpy 0.7 wants numpy 1, and so pyarrow before 19).
The table goes to standard output.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np

K = 10
QUERIES = 1000
TARGETS = (0.90, 0.95, 0.99)
GROUP = Path("/sys/fs/cgroup/memory/garlic-disk"), Path("/sys/fs/cgroup/garlic-disk")


class Garlic:
    """`how` is "disk", or "mapped" for the page faults of a mapped file."""

    settings = TARGETS

    def __init__(self, folder, how="disk"):
        import garlic_ann

        path = folder / "index.garlic"
        self.index = garlic_ann.open(path, vectors="disk") if how == "disk" else garlic_ann.open(path)

    @staticmethod
    def build(x, folder, threads):
        import garlic_ann

        garlic_ann.build(x, seed=1, threads=threads).save(folder / "index.garlic")

    def one(self, q, recall):
        return self.index.search(q, K, recall=recall, threads=1)[1]

    def all(self, q, recall, threads):
        return self.index.search(q, K, recall=recall, threads=threads)[1]


class Mapped(Garlic):
    def __init__(self, folder):
        super().__init__(folder, "mapped")


class DiskAnn:
    """Degree 64 and 100 candidates while building; no nodes are cached. A setting is the size of the list of a search."""

    settings = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200, 300, 400)

    def __init__(self, folder):
        import diskannpy

        self.index = diskannpy.StaticDiskIndex(str(folder), num_threads=os.cpu_count(), num_nodes_to_cache=0)

    @staticmethod
    def build(x, folder, threads):
        import diskannpy

        # As many bytes of codes as GARLIC keeps of a point, about.
        memory = x.shape[0] * x.shape[1] / 4 / 2**30
        diskannpy.build_disk_index(x, "l2", str(folder), 100, 64, memory, 8, threads)

    def one(self, q, complexity):
        return self.index.search(q, K, complexity, beam_width=4).identifiers

    def all(self, q, complexity, threads):
        return self.index.batch_search(q, K, complexity, threads, beam_width=4).identifiers


class LanceDb:
    """Cells with product codes; a setting is the number of cells and the factor of vectors to read."""

    settings = ((10, 5), (20, 5), (20, 10), (40, 10), (40, 20), (80, 20), (80, 40))

    def __init__(self, folder):
        import lancedb

        self.table = lancedb.connect(folder).open_table("points")

    @staticmethod
    def build(x, folder, threads):
        import lancedb
        import pyarrow as pa

        vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
        table = lancedb.connect(folder).create_table("points", pa.table({"id": np.arange(len(x)), "vector": vectors}))
        parts = x.shape[1] // 4
        table.create_index("l2", num_partitions=int(len(x) ** 0.5), num_sub_vectors=parts, index_type="IVF_PQ")

    def one(self, q, setting):
        search = self.table.search(q).nprobes(setting[0]).refine_factor(setting[1]).limit(K).select(["id", "_distance"])
        return search.to_arrow()["id"].to_numpy()

    def all(self, q, setting, threads):
        """One query after the other. LanceDB has threads of its own."""
        return np.array([self.one(x, setting) for x in q])


ENGINES = {"garlic": Garlic, "garlic, mapped": Mapped, "diskann": DiskAnn, "lancedb": LanceDb}


def load(path):
    with h5py.File(path) as file:
        x, q = (np.asarray(file[name], np.float32) for name in ("train", "test"))
        if file.attrs.get("distance") == "angular":
            x, q = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-30) for v in (x, q))
        return x, q[:QUERIES], np.asarray(file["neighbors"][:QUERIES, :K])


def recall(found, truth):
    return float(np.mean([len(set(f) & set(t)) / K for f, t in zip(np.asarray(found).tolist(), truth.tolist())]))


def folder_of(options, name):
    return options.folder / name.split(",")[0]


def prepare(options):
    x, q, truth = load(options.data)
    np.savez(options.folder / "queries.npz", q=q, truth=truth)
    for name, engine in ENGINES.items():
        if name not in options.engines or issubclass(engine, Mapped):
            continue
        folder = folder_of(options, name)
        if not folder.exists():
            folder.mkdir(parents=True)
            start = time.perf_counter()
            engine.build(x, folder, os.cpu_count())
            print(f"{name}: built in {time.perf_counter() - start:.0f} s", file=sys.stderr)
        index, chosen = engine(folder), []
        costs = []
        for setting in engine.settings:
            start = time.perf_counter()
            found = recall([index.one(v, setting) for v in q[:300]], truth)
            costs.append((time.perf_counter() - start, found, setting))
        for at, target in enumerate(TARGETS):
            reach = [c for c in costs if c[1] >= target] or [max(costs, key=lambda c: c[1])]
            chosen.append(engine.settings[at] if engine is Garlic else min(reach)[2])
        (folder / "chosen.json").write_text(json.dumps(chosen))


def drop(folder):
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(options, name):
    """In a process of its own: prints one line a target."""
    folder = folder_of(options, name)
    loaded = np.load(options.folder / "queries.npz")
    q, truth = loaded["q"], loaded["truth"]
    index = ENGINES[name](folder)
    for target, setting in zip(TARGETS, json.loads((folder / "chosen.json").read_text())):
        setting = tuple(setting) if isinstance(setting, list) else setting
        times = []
        if options.limit:
            drop(folder)
        for v in q[: len(q) // 2]:
            start = time.perf_counter()
            index.one(v, setting)
            times.append(time.perf_counter() - start)
        best = np.inf
        for _ in range(1 if options.limit else 3):
            if options.limit:
                drop(folder)
            start = time.perf_counter()
            found = index.all(q, setting, options.threads)
            best = min(best, time.perf_counter() - start)
        p50, p99 = np.percentile(times, [50, 99]) * 1000
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        line = [name, f"{target:.2f}", f"{recall(found, truth):.3f}", f"{p50:.2f}", f"{p99:.2f}", f"{len(q) / best:,.0f}", f"{memory:,.0f}"]
        print("| " + " | ".join(line) + " |", flush=True)


def limited(limit):
    """A memory cgroup with the limit, of either version."""
    old, new = GROUP
    group, file = (old, "memory.limit_in_bytes") if old.parent.is_dir() else (new, "memory.max")
    group.mkdir(exist_ok=True)
    (group / file).write_text(str(limit))
    return group / "cgroup.procs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="where the indexes are")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--limit", help="memory for each engine, like 300MiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of a batch")
    parser.add_argument("--measure", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.prepare:
        return prepare(options)
    if options.measure:
        return measure(options, options.measure)
    procs = limited(int(options.limit.removesuffix("MiB")) << 20) if options.limit else None
    print("| | target | recall@10 | p50 ms | p99 ms | queries a second, batch | peak MiB |\n|---|---|---|---|---|---|---|", flush=True)
    for name in options.engines:
        drop(folder_of(options, name))
        command = [sys.executable, __file__, options.data, "--folder", options.folder, "--threads", str(options.threads), "--measure", name]
        command += ["--limit", options.limit] if options.limit else []
        enter = (lambda: procs.write_text(str(os.getpid()))) if procs else None
        done = subprocess.run(command, preexec_fn=enter)
        if done.returncode:
            print(f"{name}: failed with {done.returncode} (-9: out of memory)", file=sys.stderr)


if __name__ == "__main__":
    main()
