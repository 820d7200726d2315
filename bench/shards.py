#!/usr/bin/env python3
"""Sharded indexes: what a build with Ray costs beside one index, and what grows with the number of shards.

    python bench/shards.py POINTS.parquet QUERIES.npy --folder F --shards 1 4 8 16 32
    python bench/shards.py POINTS.parquet QUERIES.npy --folder F --shards 10 --nodes 4
    python bench/shards.py POINTS.parquet QUERIES.npy --folder F --single

The first command builds in one process (garlic_ann.sharded), the second with Ray on as many simulated nodes of one processor each
(ray.cluster_utils.Cluster), the third one index in memory (garlic_ann.build). Each build runs in a control group of its own, which needs
root: the group knows the processor time of all processes, and their memory is read from it five times a second (what is their own, and what they
share; not the page cache). Bytes between nodes are those that the loopback interface received meanwhile. Indexes stay in the folder, and one
that is there is not built again. Then every index answers the queries one by one and in one batch, on one thread; the best of --repeat
passes, in turns over all indexes, is reported in processor time. Needs numpy, pyarrow, garlic_ann and, with --nodes, ray. Tables go to standard output.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

K = 10
TARGETS = (0.90, 0.95, 0.99)
CGROUP = Path("/sys/fs/cgroup")
OLD = (CGROUP / "cpuacct").is_dir()
GROUPS = [CGROUP / "cpuacct/garlic-shards", CGROUP / "memory/garlic-shards"] if OLD else [CGROUP / "garlic-shards"]


def processor_seconds():
    if OLD:
        return int((GROUPS[0] / "cpuacct.usage").read_text()) / 1e9
    return int((GROUPS[0] / "cpu.stat").read_text().split()[1]) / 1e6


def memory():
    """Bytes that the processes of the group have for themselves, and those that they share."""
    found = dict(line.split() for line in (GROUPS[-1] / "memory.stat").read_text().splitlines())
    names = ("total_rss", "total_shmem") if OLD else ("anon", "shmem")
    # A kernel without the second line counts shared memory as page cache.
    return int(found[names[0]]), int(found.get(names[1], 0))


def loopback():
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def build(options, name):
    """In a process of its own."""
    place = options.folder / name
    shards, nodes = (int(part) for part in name.split("-")[1:]) if name != "single" else (0, 0)
    start = time.perf_counter()
    if name == "single":
        import garlic_ann

        data = garlic_ann.read(options.points)
        garlic_ann.build(data.vectors, seed=1, threads=options.threads, graph="off").save(place)
    elif nodes == 0:
        from garlic_ann import sharded

        sharded.build(options.points, place, shards=shards, seed=1, threads=options.threads, graph="off")
    else:
        import ray
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": options.store << 20}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        for _ in range(nodes - 1):
            cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        import garlic_ann.ray

        print(json.dumps({"started": time.perf_counter() - start}), flush=True)
        start = time.perf_counter()
        garlic_ann.ray.build(options.points, place, shards=shards, seed=1, graph="off")
        print(json.dumps({"built": time.perf_counter() - start}), flush=True)
        ray.shutdown()
        cluster.shutdown()
        return
    print(json.dumps({"built": time.perf_counter() - start}), flush=True)


def built(options, name):
    """Builds an index that is not there, and tells what it took."""
    place = options.folder / name
    facts = options.folder / f"{name}.json"
    if facts.exists():
        return json.loads(facts.read_text())
    shutil.rmtree(place, ignore_errors=True)
    for group in GROUPS:
        group.mkdir(exist_ok=True)

    def enter():
        for group in GROUPS:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    command = [sys.executable, __file__, options.points, options.queries, "--folder", options.folder, "--threads", str(options.threads)]
    command += ["--store", str(options.store), "--build", name]
    processor, received, most, start = processor_seconds(), loopback(), (0, 0), time.perf_counter()
    running = subprocess.Popen(command, preexec_fn=enter, stdout=subprocess.PIPE, text=True)
    while running.poll() is None:
        most = max(most, memory(), key=sum)
        time.sleep(0.2)
    if running.returncode:
        sys.exit(f"{name}: failed with {running.returncode}")
    found = {key: value for line in running.stdout for key, value in json.loads(line).items()}
    found |= {"whole": time.perf_counter() - start, "processor": processor_seconds() - processor, "received": loopback() - received}
    found |= {"own": most[0], "shared": most[1]}
    files = list(place.iterdir()) if place.is_dir() else [place]
    found["bytes"] = sum(file.stat().st_size for file in files if file.is_file() and file.name[0] != ".")
    found["manifest"] = (place / "manifest.json").stat().st_size if place.is_dir() else 0
    facts.write_text(json.dumps(found))
    return found


def truth_of(options, queries):
    """Distances of the true neighbours, by brute force."""
    place = options.folder / "truth.npy"
    if place.exists():
        return np.load(place)
    import pyarrow.parquet as pq

    best = np.full((len(queries), K), np.inf, np.float32)
    squares = (queries**2).sum(axis=1)[:, None]
    for batch in pq.ParquetFile(options.points).iter_batches(65_536):
        x = batch.column(0).flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(batch.num_rows, -1)
        distances = squares - 2 * queries @ x.T + (x**2).sum(axis=1)
        best = np.sort(np.concatenate([best, np.partition(distances, K - 1, axis=1)[:, :K]], axis=1), axis=1)[:, :K]
    np.save(place, np.sqrt(np.maximum(best, 0)))
    return np.load(place)


def opened(place):
    import garlic_ann
    from garlic_ann import sharded

    return sharded.open(place) if place.is_dir() else garlic_ann.open(place)


def search(options, names):
    queries = np.load(options.queries)[: options.count].astype(np.float32)
    truth = truth_of(options, queries)
    indexes = {name: opened(options.folder / name) for name in names}
    rows = {}
    for _ in range(options.repeat):
        for name, index in indexes.items():
            for target in TARGETS:
                start = time.process_time()
                for query in queries:
                    index.search(query, K, recall=target, threads=1)
                single = (time.process_time() - start) / len(queries)
                start = time.process_time()
                distances, _ = index.search(queries, K, recall=target, threads=1)
                batch = (time.process_time() - start) / len(queries)
                recall = float((distances <= truth[:, -1:] * (1 + 1e-5)).mean())
                shards = float(index.shards_of(queries, K, recall=target).sum(axis=1).mean()) if hasattr(index, "shards_of") else 1.0
                before = rows.get((name, target), (0, 0, np.inf, np.inf))
                rows[name, target] = (recall, shards, min(single, before[2]), min(batch, before[3]))
    print("\n| index | target | recall@10 | shards a query | single, us a query | batch, us a query |\n|---|---|---|---|---|---|")
    for (name, target), (recall, shards, single, batch) in rows.items():
        print(f"| {name} | {target} | {recall:.3f} | {shards:.2f} | {single * 1e6:,.0f} | {batch * 1e6:,.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", help="a Parquet file with one column of vectors")
    parser.add_argument("queries", help="an .npy file")
    parser.add_argument("--folder", type=Path, required=True, help="where the indexes are")
    parser.add_argument("--shards", type=int, nargs="*", default=[], help="numbers of shards, an index each")
    parser.add_argument("--nodes", type=int, default=0, help="nodes of Ray; 0 builds in one process")
    parser.add_argument("--single", action="store_true", help="also one index that is not sharded")
    parser.add_argument("--threads", type=int, default=1, help="of a build in one process")
    parser.add_argument("--store", type=int, default=1024, help="MiB of the object store of a node")
    parser.add_argument("--count", type=int, default=1000, help="queries")
    parser.add_argument("--repeat", type=int, default=3, help="passes, of which the best counts")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.build:
        return build(options, options.build)
    names = ["single"] * options.single + [f"shards-{count}-{options.nodes}" for count in options.shards]
    print("| index | build s | with start s | processor s | own MiB | shared MiB | over loopback MiB | index MiB | manifest bytes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        f = built(options, name)
        sizes = " | ".join(f"{f[key] / 2**20:,.0f}" for key in ("own", "shared", "received", "bytes"))
        print(f"| {name} | {f['built']:.0f} | {f['whole']:.0f} | {f['processor']:.0f} | {sizes} | {f['manifest']:,} |", flush=True)
    if options.repeat:
        search(options, names)


if __name__ == "__main__":
    main()
