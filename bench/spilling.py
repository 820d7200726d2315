"""Does it pay to put points into a second cell as well? target/bench-env/bin/python bench/spilling.py SET [--queries N]

Cells and learned bins as the default preset has them (k-means in the principal space, bins by k-means in each cell's own
frame, bins of the visited cells in the order of the estimated distance of their points), less codes. A point is spilled
into the second nearest cell when that is at most so many times as far as the nearest. What a query reads until it has
found a share of its 10 nearest neighbours is counted, points that it meets twice twice. The table is Markdown.
"""

import argparse
import sys
from pathlib import Path

import faiss
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from harness.dataset import find, load  # noqa: E402

TARGETS = (.90, .95, .99)
# Ratios of distances up to which points are spilled; 1 spills none.
RATIOS = (1.0, 1.02, 1.05, 1.1, 1.2, 9e9)
PROBES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
WIDE, RANK, BIN, K = 96, 32, 24, 10


def kmeans(rows, count, rounds):
    """k-means centres, as an array."""
    model = faiss.Kmeans(rows.shape[1], count, niter=rounds, seed=1, min_points_per_centroid=1,
                         max_points_per_centroid=512)
    model.train(rows)
    return model.centroids


def nearest(rows, centres, count):
    """The nearest centres of every row, and their squared distances."""
    index = faiss.IndexFlatL2(centres.shape[1])
    index.add(centres)
    distances, labels = index.search(rows, count)
    return labels, distances


class Cell:
    """A cell with its points in bins."""

    def __init__(self, mean, own, spilled, points, outside):
        self.mean, rows = mean, np.concatenate([own, spilled])
        centred = points[own] - mean
        values, vectors = np.linalg.eigh(centred.T @ centred)
        self.axes = vectors[:, np.argsort(values)[::-1][:RANK]].astype(np.float32)
        centred = points[rows] - mean
        y = np.ascontiguousarray(centred @ self.axes)
        self.centres = kmeans(y, max(1, len(rows) // BIN), 8)
        labels = nearest(y, self.centres, 1)[0][:, 0]
        order = np.argsort(labels, kind="stable")
        self.bins = np.split(rows[order], np.cumsum(np.bincount(labels, minlength=len(self.centres)))[:-1])
        norms = (centred ** 2).sum(1) + outside[rows]
        sums = np.bincount(labels, norms, minlength=len(self.centres))
        self.norms = sums / np.maximum(np.bincount(labels, minlength=len(self.centres)), 1)

    def estimates(self, query):
        """Estimated squared distances of the points of all bins, but for what is the same for all cells."""
        centred = query - self.mean
        return centred @ centred + self.norms - 2 * self.centres @ (centred @ self.axes)


def reads(cells, query, route, truth):
    """For every number of probes, what has been read when the first, second, ... of the true neighbours is found."""
    truth = set(truth.tolist())
    found = []
    for probes in PROBES:
        chosen = route[:probes]
        estimates = [cells[c].estimates(query) for c in chosen]
        bins = [points for c in chosen for points in cells[c].bins]
        read, left, places = 0, set(truth), []
        for at in np.argsort(np.concatenate(estimates), kind="stable"):
            points = bins[at]
            here = left.intersection(points.tolist())
            read += len(points)
            places += [read] * len(here)
            left -= here
            if not left:
                break
        found.append(places + [np.inf] * len(left))
    return found


def fewest(found, target):
    """The smallest budget of points read, over all numbers of probes, that finds the target on average."""
    best = np.inf
    for at in range(len(PROBES)):
        places = np.sort(np.concatenate([f[at] for f in found]))
        needed = places[int(np.ceil(target * len(places))) - 1]
        best = min(best, needed)
    return best


def main():
    """Measures one data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--queries", type=int, default=1000)
    args = parser.parse_args()
    faiss.omp_set_num_threads(1)
    train, test, neighbors = load(find(args.data))
    test = test[:args.queries]
    mean = train.mean(0)
    _, vectors = np.linalg.eigh(np.cov(train[::max(1, len(train) // 50_000)].T))
    basis = vectors[:, ::-1][:, :min(WIDE, train.shape[1])].astype(np.float32)
    points, queries = (train - mean) @ basis, (test - mean) @ basis
    outside = ((train - mean) ** 2).sum(1) - (points ** 2).sum(1)
    count = round(len(train) ** .5 / 4)
    means = kmeans(points, count, 18)
    labels, distances = nearest(points, means, 2)
    routes = nearest(queries, means, min(max(PROBES), count))[0]
    ratio = np.sqrt(distances[:, 1] / np.maximum(distances[:, 0], 1e-20))
    print(f"{args.data}: {count} cells, {len(test)} queries, points read for 10-recall@10\n")
    print("| second cell up to | points stored | " + " | ".join(f"{t:.2f}" for t in TARGETS) + " |")
    print("|---|---:|" + "---:|" * len(TARGETS))
    for most in RATIOS:
        spilled = ratio < most if most > 1 else np.zeros(len(train), bool)
        cells = [Cell(means[c], np.flatnonzero(labels[:, 0] == c), np.flatnonzero(spilled & (labels[:, 1] == c)),
                      points, outside) for c in range(count)]
        found = [reads(cells, q, r, t[:K]) for q, r, t in zip(queries, routes, neighbors)]
        name = "none" if most == 1 else "always" if most > 100 else f"{most:g} times as far"
        print(f"| {name} | {1 + spilled.mean():.2f} | " + " | ".join(f"{fewest(found, t):,.0f}" for t in TARGETS) + " |",
              flush=True)


if __name__ == "__main__":
    main()
