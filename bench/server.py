#!/usr/bin/env python3
"""Load on `garlic serve` over loopback: queries a second and latencies at a recall target, beside the library and Chroma.

    python bench/server.py DATA.hdf5 --garlic target/release/garlic --folder /tmp/load --prepare [--chroma]
    python bench/server.py DATA.hdf5 --garlic target/release/garlic --folder /tmp/load --seconds 5 [--chroma]

DATA is an ANN-Benchmarks file. The first command makes the indexes in the folder, the second measures; without --folder one command does both.
Needs wrk (Debian's package of that name), numpy, h5py and garlic_ann; with --chroma also chromadb. The table goes to standard output. Load generator
and server share the machine, and so do other processes if there are any; time of the processor is that of the server's process alone.
"""

import argparse
import contextlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import numpy as np

from garlic_ann.client import Client

K = 10

# One thread of wrk sends the requests in turn; every answer must have the status 200.
SCRIPT = """
local requests, at = {}, 0
function init()
  wrk.method, wrk.path = "POST", "%(path)s"
  wrk.headers["content-type"], wrk.headers["accept"] = "%(kind)s", "%(kind)s"
  for line in io.lines("%(bodies)s") do
    local body = line:gsub("%%x%%x", function(pair) return string.char(tonumber(pair, 16)) end)
    requests[#requests + 1] = wrk.format(nil, nil, nil, body)
  end
end
function request()
  at = at %% #requests + 1
  return requests[at]
end
function done(summary, latency)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  print(string.format("RESULT {\\"qps\\": %%f, \\"count\\": %%d, \\"p50\\": %%f, \\"p99\\": %%f, \\"p999\\": %%f, \\"failed\\": %%d}",
    summary.requests / summary.duration * 1e6, summary.requests, latency:percentile(50), latency:percentile(99), latency:percentile(99.9), failed))
end
"""


def cpu_seconds(pid):
    """Processor time of a process and of those that it has started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(cpu_seconds(child) for child in children)


def load(server, path, kind, bodies, connections, seconds, folder):
    """Runs wrk and gives what it measured."""
    url, pid = server
    (folder / "bodies").write_text("\n".join(body.hex() for body in bodies))
    (folder / "load.lua").write_text(SCRIPT % {"bodies": folder / "bodies", "path": path, "kind": kind})
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", folder / "load.lua", url]
    before = cpu_seconds(pid)
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("RESULT ")).removeprefix("RESULT "))
    return result | {"cpu": (cpu_seconds(pid) - before) / max(1, result["count"])}


@contextlib.contextmanager
def served(program, *arguments):
    command = [program, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield child.stdout.readline().split()[-1].rstrip("/"), child.pid
    finally:
        child.terminate()
        child.wait(60)


def recall(found, truth):
    return float(np.mean([len(set(f) & set(t[:K])) / K for f, t in zip(found, truth)]))


def row(name, connections, measured, recall):
    latencies = (f"{measured[p] / 1000:.2f}" for p in ("p50", "p99", "p999"))
    line = [name, connections, f"{measured['qps']:,.0f}", *latencies, f"{measured['cpu'] * 1e6:.0f}", f"{recall:.3f}"]
    print("| " + " | ".join(map(str, line)) + " |", flush=True)
    if measured["failed"]:
        print(f"{measured['failed']} requests failed", file=sys.stderr)


def packed(about, vector):
    text = json.dumps(about).encode()
    return b"GVC1" + struct.pack("<III", len(text), 1, len(vector)) + text + np.asarray(vector, "<f4").tobytes()


def prepare_garlic(options, x, folder):
    if not (folder / "points").exists():
        np.save(folder / "points.npy", x)
        subprocess.run([options.garlic, "build", folder / "points.npy", "--live", "-o", folder / "points", "--seed", "1"], check=True)


def measure_library(options, x, q, truth, folder):
    """One query a call, in one thread, by the program."""
    for name, rows in (("points", x), ("queries", q), ("truth", truth[:, :K].astype("<i8"))):
        np.save(folder / f"{name}.npy", rows)
    asked = ["--query-file", folder / "queries.npy", "--truth", folder / "truth.npy", "--recall", str(options.recall), "--repeat", "5", "--json"]
    command = [options.garlic, "eval", folder / "points", folder / "points.npy", *asked]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    latencies = {"p50": found["p50_us"], "p99": found["p99_us"], "p999": math.nan}
    row("library, one thread", "-", {"qps": found["qps"], "cpu": 1 / found["qps"], "failed": 0} | latencies, found["recall_at_10"])


def measure_garlic(options, x, q, truth, folder):
    measure_library(options, x, q, truth, folder)
    target = options.recall
    bodies = {
        "application/x-garlic": [packed({"k": K, "recall": target}, v) for v in q],
        "application/json": [json.dumps({"vectors": v.tolist(), "k": K, "recall": target}).encode() for v in q],
    }
    path = "/v1/indexes/points/search"
    with served(options.garlic, folder / "points") as server:
        url, _ = server
        index = Client(url).index("points")
        found = recall(index.search(q, K, recall=target)[1], truth)
        for kind, name in (("application/x-garlic", "server"), ("application/json", "server, JSON")):
            for connections in options.connections:
                row(name, connections, load(server, path, kind, bodies[kind], connections, options.seconds, folder), found)
        stop = threading.Event()

        def write():
            at = 0
            while not stop.is_set():
                at = (at + 10) % (len(x) - 10)
                index.upsert(x[at : at + 10], np.arange(at, at + 10))

        writer = threading.Thread(target=write)
        writer.start()
        kind = "application/x-garlic"
        for connections in options.connections:
            before = points_written(url)
            measured = load(server, path, kind, bodies[kind], connections, options.seconds, folder)
            rate = (points_written(url) - before) / options.seconds
            found = recall(index.search(q, K, recall=target)[1], truth)
            row(f"server, {rate:,.0f} points written a second", connections, measured, found)
        stop.set()
        writer.join()


def points_written(url):
    import urllib.request

    text = urllib.request.urlopen(f"{url}/metrics").read().decode()
    return float(next(line for line in text.splitlines() if line.startswith("garlic_points_written_total ")).split()[1])


@contextlib.contextmanager
def chroma(folder):
    """Chroma's server: its address and process, and a client for it."""
    import chromadb

    port = 8899
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder / "chroma", "--port", str(port)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "ANONYMIZED_TELEMETRY": "False"})
    try:
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        for attempt in range(300):
            try:
                client = chromadb.HttpClient("127.0.0.1", port, settings=settings)
                break
            except Exception:
                if attempt == 299:
                    raise
                time.sleep(0.2)
        yield (f"http://127.0.0.1:{port}", child.pid), client
    finally:
        child.terminate()
        child.wait(60)


def prepare_chroma(x, q, truth, options, folder):
    """A collection of all points, with the least `ef_search` that reaches the recall. A server takes a new one when it starts."""
    if not (folder / "chroma").exists():
        with chroma(folder) as (_, client):
            configuration = {"hnsw": {"space": "l2", "ef_construction": 200, "max_neighbors": 16, "ef_search": 10}}
            collection = client.create_collection("points", configuration=configuration)
            for at in range(0, len(x), 1000):
                collection.add([str(i) for i in range(at, min(at + 1000, len(x)))], embeddings=x[at : at + 1000])
    for ef in (10, 12, 15, 20, 30, 40, 60, 80, 120, 160, 240, 400):
        with chroma(folder) as (_, client):
            client.get_collection("points").modify(configuration={"hnsw": {"ef_search": ef}})
        with chroma(folder) as (_, client):
            reached = chroma_recall(client.get_collection("points"), q[:300], truth)
        print(f"Chroma, ef_search {ef}: recall {reached:.3f}", file=sys.stderr)
        if reached >= options.recall:
            break
    (folder / "ef_search").write_text(str(ef))


def chroma_recall(collection, q, truth):
    answers = collection.query(query_embeddings=q, n_results=K, include=["distances"])["ids"]
    return recall([[int(i) for i in ids] for ids in answers], truth[: len(q)])


def measure_chroma(options, x, q, truth, folder):
    import chromadb

    with chroma(folder) as (server, client):
        collection = client.get_collection("points")
        reached = chroma_recall(collection, q[:300], truth)
        path = f"/api/v2/tenants/default_tenant/databases/default_database/collections/{collection.id}/query"
        bodies = [json.dumps({"query_embeddings": [v.tolist()], "n_results": K, "include": ["distances"]}).encode() for v in q]
        name = f"Chroma {chromadb.__version__}, ef_search {(folder / 'ef_search').read_text()}"
        for connections in options.connections:
            row(name, connections, load(server, path, "application/json", bodies, connections, options.seconds, folder), reached)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--garlic", default="target/release/garlic")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--points", type=int, default=None, help="use only the first points; recall is then that of brute force over them")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--chroma", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the indexes are kept; a temporary folder unless given")
    parser.add_argument("--prepare", action="store_true", help="make the indexes and measure nothing")
    options = parser.parse_args()
    with h5py.File(options.data) as file:
        x, q, truth = (file[name][:] for name in ("train", "test", "neighbors"))
    q, truth = q[:1000], truth[:1000]
    if options.points and options.points < len(x):
        x = x[: options.points]
        truth = np.array([np.argsort(((x - v) ** 2).sum(axis=1))[:K] for v in q])
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        prepare_garlic(options, x, folder)
        if options.chroma:
            prepare_chroma(x, q, truth, options, folder)
        if options.prepare:
            return
        print("| | connections | queries a second | p50 ms | p99 ms | p99.9 ms | processor us a query | recall@10 |")
        print("|---|---|---|---|---|---|---|---|")
        measure_garlic(options, x, q, truth, folder)
        if options.chroma:
            measure_chroma(options, x, q, truth, folder)


if __name__ == "__main__":
    main()
