#!/usr/bin/env python3
"""Load on `garlic serve` over loopback: queries a second and latencies at a recall target, beside the library and Chroma.

    python bench/server.py DATA.hdf5 --garlic target/release/garlic --seconds 5 [--chroma] [--points 60000]

DATA is an ANN-Benchmarks file. Needs wrk (Debian's package of that name), numpy, h5py and garlic_ann; with --chroma also chromadb. The table goes
to standard output. Load generator and server share the machine, and so do other processes if there are any.
"""

import argparse
import contextlib
import json
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

import garlic_ann as garlic
from garlic_ann.client import Client

K = 10

# One thread of wrk sends the bodies in turn; every answer must have the status 200.
SCRIPT = """
local bodies, at = {}, 0
for line in io.lines("%(bodies)s") do
  bodies[#bodies + 1] = (line:gsub("%%x%%x", function(pair) return string.char(tonumber(pair, 16)) end))
end
wrk.method = "POST"
wrk.path = "%(path)s"
wrk.headers["content-type"] = "%(kind)s"
wrk.headers["accept"] = "%(kind)s"
function request()
  at = at %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[at])
end
function done(summary, latency)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  print(string.format("RESULT {\\"qps\\": %%f, \\"p50\\": %%f, \\"p99\\": %%f, \\"p999\\": %%f, \\"failed\\": %%d}",
    summary.requests / summary.duration * 1e6, latency:percentile(50), latency:percentile(99), latency:percentile(99.9), failed))
end
"""


def load(url, path, kind, bodies, connections, seconds, folder):
    """Runs wrk and gives what it measured."""
    (folder / "bodies").write_text("\n".join(body.hex() for body in bodies))
    (folder / "load.lua").write_text(SCRIPT % {"bodies": folder / "bodies", "path": path, "kind": kind})
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", folder / "load.lua", url]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    result = next(line for line in ran.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(result.removeprefix("RESULT "))


@contextlib.contextmanager
def served(program, *arguments):
    command = [program, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield child.stdout.readline().split()[-1].rstrip("/")
    finally:
        child.terminate()
        child.wait(60)


def recall(found, truth):
    return float(np.mean([len(set(f) & set(t[:K])) / K for f, t in zip(found, truth)]))


def row(name, connections, measured, recall):
    line = [name, connections, f"{measured['qps']:,.0f}", *(f"{measured[p] / 1000:.2f}" for p in ("p50", "p99", "p999")), f"{recall:.3f}"]
    print("| " + " | ".join(map(str, line)) + " |", flush=True)
    if measured["failed"]:
        print(f"{measured['failed']} requests failed", file=sys.stderr)


def packed(about, vector):
    text = json.dumps(about).encode()
    return b"GVC1" + struct.pack("<III", len(text), 1, len(vector)) + text + np.asarray(vector, "<f4").tobytes()


def measure_garlic(options, x, q, truth, folder):
    built = garlic.build(x, seed=1)
    garlic.Live.create(folder / "points", built).close()
    target = options.recall
    found = built.search(q, K, recall=target)[1]
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < options.seconds:
        built.search(q[done % len(q)], K, recall=target)
        done += 1
    each = (time.perf_counter() - start) / done
    print(f"| library, one query a call, one thread | - | {1 / each:,.0f} | {each * 1000:.2f} | | | {recall(found, truth):.3f} |", flush=True)
    bodies = [packed({"k": K, "recall": target}, v) for v in q]
    kind, path = "application/x-garlic", "/v1/indexes/points/search"
    with served(options.garlic, folder / "points") as url:
        client = Client(url)
        index = client.index("points")
        found = index.search(q, K, recall=target)[1]
        for connections in options.connections:
            row("server", connections, load(url, path, kind, bodies, connections, options.seconds, folder), recall(found, truth))
        stop = threading.Event()

        def write():
            at = 0
            while not stop.is_set():
                at = (at + 10) % (len(x) - 10)
                index.upsert(x[at : at + 10], np.arange(at, at + 10))

        writer = threading.Thread(target=write)
        writer.start()
        for connections in options.connections:
            before = points_written(url)
            measured = load(url, path, kind, bodies, connections, options.seconds, folder)
            rate = (points_written(url) - before) / options.seconds
            row(f"server, {rate:,.0f} points written a second", connections, measured, recall(index.search(q, K, recall=target)[1], truth))
        stop.set()
        writer.join()


def points_written(url):
    import urllib.request

    text = urllib.request.urlopen(f"{url}/metrics").read().decode()
    return float(next(line for line in text.splitlines() if line.startswith("garlic_points_written_total ")).split()[1])


def measure_chroma(options, x, q, truth, folder):
    import chromadb

    port = 8899
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder / "chroma", "--port", str(port)]
    quiet = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)
    try:
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        for _ in range(200):
            try:
                client = chromadb.HttpClient("127.0.0.1", port, settings=settings)
                break
            except Exception:
                time.sleep(0.2)
        ef = 100
        while True:
            name = f"points{ef}"
            configuration = {"hnsw": {"space": "l2", "ef_construction": 200, "max_neighbors": 16, "ef_search": ef}}
            collection = client.create_collection(name, configuration=configuration)
            for at in range(0, len(x), 2000):
                collection.add([str(i) for i in range(at, min(at + 2000, len(x)))], embeddings=x[at : at + 2000])
            answers = collection.query(query_embeddings=q[:300], n_results=K, include=["distances"])["ids"]
            reached = recall([[int(i) for i in ids] for ids in answers], truth[:300])
            if reached >= options.recall or ef > 400:
                break
            ef *= 2
        path = f"/api/v2/tenants/default_tenant/databases/default_database/collections/{collection.id}/query"
        bodies = [json.dumps({"query_embeddings": [v.tolist()], "n_results": K, "include": ["distances"]}).encode() for v in q[:1000]]
        for connections in options.connections:
            measured = load(f"http://127.0.0.1:{port}", path, "application/json", bodies, connections, options.seconds, folder)
            row(f"Chroma {chromadb.__version__}, ef_search {ef}", connections, measured, reached)
    finally:
        child.terminate()
        child.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--garlic", default="target/release/garlic")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--points", type=int, default=None, help="use only the first points; recall is then that of brute force over them")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--chroma", action="store_true")
    options = parser.parse_args()
    with h5py.File(options.data) as file:
        x, q, truth = (file[name][:] for name in ("train", "test", "neighbors"))
    q, truth = q[:1000], truth[:1000]
    if options.points and options.points < len(x):
        x = x[: options.points]
        truth = garlic.build(x, seed=1).search(q, K, exact=True)[1]
    print("| | connections | queries a second | p50 ms | p99 ms | p99.9 ms | recall@10 |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure_garlic(options, x, q, truth, Path(folder))
        if options.chroma:
            measure_chroma(options, x, q, truth, Path(folder))


if __name__ == "__main__":
    main()
