"""What Python costs: searches from Python beside those of the program `garlic`, on one data set.

    python python/examples/speed.py DATA.hdf5 path/to/garlic

Both search the same index file, in turns, and the fastest of several runs counts. Needs h5py.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import garlic_ann as garlic
import h5py  # type: ignore[import-untyped, import-not-found, unused-ignore]

ROUNDS, BATCH, RECALL = 7, 1000, 0.95


def native(program: str, path: str, data: str) -> dict[str, float]:
    """Queries a second of the program: one after the other, and all together."""
    out = subprocess.run(
        [program, "eval", path, data, "--recall", str(RECALL), "--queries", str(BATCH)]
        + ["--batch", "--repeat", "5", "--json", "--quiet"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    row: dict[str, float] = json.loads(out.splitlines()[-1])
    return row


def seconds(work: Callable[[], None], repeat: int = 5) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main(data: str, program: str) -> None:
    file: Any
    with h5py.File(data) as file:
        x, queries = file["train"][:], file["test"][:BATCH]
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/speed.garlic"
        garlic.build(x, seed=1).save(path)
        index = garlic.open(path)

        def batch() -> None:
            index.search(queries, 10, recall=RECALL)

        def single() -> None:
            for q in queries:
                index.search(q, 10, recall=RECALL)

        def share(threads: int) -> None:
            def some() -> None:
                for _ in range(4):
                    index.search(queries, 10, recall=RECALL)

            workers = [threading.Thread(target=some) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        best: dict[str, float] = {}

        def note(name: str, value: float) -> None:
            best[name] = min(best.get(name, float("inf")), value)

        for _ in range(ROUNDS):
            row = native(program, path, data)
            note("native batch", BATCH / row["qps_batch"])
            note("native single", BATCH / row["qps"])
            note("python batch", seconds(batch))
            note("python single", seconds(single))
            note("one thread", seconds(lambda: share(1), 2) / 4)
            note("four threads", seconds(lambda: share(4), 2) / 16)
        for name, value in best.items():
            print(f"{name:14} {BATCH / value:10,.0f} queries a second")
        print(f"batch: {best['native batch'] / best['python batch']:.1%} of native")
        extra = (best["python single"] - best["native single"]) / BATCH
        print(f"a single call: {extra * 1e6:.1f} us above native")
        print(f"four threads: {best['one thread'] / best['four threads']:.2f} times one")


if __name__ == "__main__":
    main(*sys.argv[1:])
