"""Data sets in the ANN-Benchmarks layout, and files derived from them.

Every program of the comparison reads one HDF5 file with `train`, `test`, `neighbors`. Where the file given is
not that already (fewer points wanted, no true neighbours, angular distance), such a file is written to the
cache first, so that all of them see the same numbers.
"""

import hashlib
import os
from pathlib import Path

import h5py
import numpy as np

QUERIES = 10_000
DEPTH = 100


def cache_dir():
    """Where indexes and derived data sets are kept."""
    return Path(os.environ.get("GARLIC_BENCH_CACHE", Path.home() / ".cache" / "garlic" / "bench"))


def find(name):
    """The file of a data set: a path, or a name in the data directory."""
    path = Path(name)
    if path.is_file():
        return path.resolve()
    folder = Path(os.environ.get("GARLIC_DATA", Path.home() / ".cache" / "garlic" / "datasets"))
    for extension in ("", ".hdf5", ".h5"):
        path = folder / (name + extension)
        if path.is_file():
            return path.resolve()
    there = ", ".join(sorted(p.stem for p in folder.glob("*.h*5"))) or "nothing"
    raise SystemExit(f"{name}: no such file, and no such data set in {folder} (there: {there}); set GARLIC_DATA")


def prepare(name, limit_base=None, limit_queries=None, depth=DEPTH):
    """Returns (name of the set, file with train, test and at least `depth` true neighbours, if there are so many)."""
    source = find(name)
    with h5py.File(source, "r") as file:
        for key in ("train", "test"):
            if key not in file:
                raise SystemExit(f"{source}: has no `{key}`; the ANN-Benchmarks layout is needed")
        points, queries = file["train"].shape[0], file["test"].shape[0]
        distance = file.attrs.get("distance", "euclidean")
        distance = distance.decode() if isinstance(distance, bytes) else str(distance)
        if distance not in ("euclidean", "l2", "angular", "cosine"):
            raise SystemExit(f"{source}: distance `{distance}`; only euclidean and angular sets can be compared")
        angular = distance in ("angular", "cosine")
        known = file["neighbors"].shape[1] if "neighbors" in file else 0
    base = min(points, limit_base or points)
    tests = min(queries, limit_queries or QUERIES)
    depth = min(depth, base)
    # A file that is written anyway gets the usual number, so that it serves other runs as well.
    stored = min(max(depth, DEPTH), base)
    if base == points and tests == queries and not angular and known >= depth:
        return source.stem, source
    label = source.stem
    if base < points:
        label += f"-base{base}"
    if tests < min(queries, QUERIES):
        label += f"-queries{tests}"
    stat = source.stat()
    identity = f"{source} {stat.st_size} {stat.st_mtime_ns} {base} {tests} {stored} {angular}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    target = cache_dir() / label / f"{label}-{key}.hdf5"
    if not target.is_file():
        _derive(source, target, base, tests, stored, angular, keep_truth=base == points and known >= stored)
    return label, target


def _derive(source, target, base, tests, depth, angular, keep_truth):
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"writing {target}: {base} points, {tests} queries", flush=True)
    with h5py.File(source, "r") as file:
        train = np.asarray(file["train"][:base], np.float32)
        test = np.asarray(file["test"][:tests], np.float32)
        truth = np.asarray(file["neighbors"][:tests, :depth]) if keep_truth else None
    if angular:
        # On the unit sphere the order by angle is the order by Euclidean distance.
        for rows in (train, test):
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    if truth is None:
        truth = exact(train, test, depth)
    distances = np.sqrt(squared(train, test, truth)).astype(np.float32)
    temporary = target.with_suffix(f".{os.getpid()}.tmp")
    with h5py.File(temporary, "w") as file:
        file.attrs["distance"] = "euclidean"
        for name, values in (("train", train), ("test", test), ("distances", distances)):
            file[name] = values
        file["neighbors"] = truth.astype(np.int32)
    temporary.rename(target)


def exact(train, test, depth):
    """Ids of the true neighbours, nearest first: a shortlist in float32, its order in float64."""
    norms = np.einsum("ij,ij->i", train, train)
    short = min(len(train), depth + 28)
    found = np.empty((len(test), depth), np.int64)
    for start in range(0, len(test), 256):
        part = test[start:start + 256]
        scores = norms - 2.0 * (part @ train.T)
        ids = np.argpartition(scores, short - 1, axis=1)[:, :short]
        order = np.argsort(squared(train, part, ids), axis=1, kind="stable")[:, :depth]
        found[start:start + 256] = np.take_along_axis(ids, order, axis=1)
    return found


def squared(train, test, ids, chunk=1 << 22):
    """Squared distances of the listed points in float64."""
    out = np.empty(ids.shape, np.float64)
    rows = max(1, chunk // max(1, ids.shape[1] * train.shape[1]))
    for start in range(0, len(test), rows):
        part = slice(start, start + rows)
        difference = train[ids[part]].astype(np.float64) - test[part, None, :]
        out[part] = np.einsum("qkd,qkd->qk", difference, difference)
    return out


def load(path):
    """(train, test, neighbors) as contiguous arrays."""
    with h5py.File(path, "r") as file:
        train = np.ascontiguousarray(file["train"][:], np.float32)
        test = np.ascontiguousarray(file["test"][:], np.float32)
        return train, test, np.asarray(file["neighbors"][:], np.int64)


def shape(path):
    """(points, dimension, queries, depth of the truth)."""
    with h5py.File(path, "r") as file:
        return (*file["train"].shape, file["test"].shape[0], file["neighbors"].shape[1])
