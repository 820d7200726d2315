"""Data and helpers of the tests of sharded indexes."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def clusters(count, dim=16, seed=3):
    """Points around the same centres for every seed."""
    centres = np.random.default_rng(0).normal(size=(24, dim)) * 3
    random = np.random.default_rng(seed)
    return (centres[np.arange(count) % 24] + random.normal(size=(count, dim))).astype(np.float32)


def table(x, ids=None, **columns):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
    return pa.table({"vector": vectors, **({} if ids is None else {"id": ids}), **columns})


def parquet(folder, data, files=4, rows=700):
    """Writes a table as several files."""
    os.makedirs(folder, exist_ok=True)
    size = -(-data.num_rows // files)
    for number in range(files):
        pq.write_table(data.slice(number * size, size), f"{folder}/part-{number:03}.parquet", row_group_size=rows)
    return str(folder)


def brute(x, queries, k):
    distances = np.sqrt(((queries[:, None].astype(np.float64) - x[None]) ** 2).sum(axis=2))
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def recall(found, truth):
    return np.mean([len(set(f) & set(t)) / len(t) for f, t in zip(found.tolist(), truth.tolist())])


def shard_bytes(folder):
    """The bytes of every file but the manifest, by name."""
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder)) if name[0] != "."}
