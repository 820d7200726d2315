"""A data set of a chosen local dimension, for `bench/compare`: python bench/synthetic.py OUT.hdf5 --local-dim 20

Points lie on a smooth surface: standard normal variables, as many as the local dimension, go through a random network of
one hidden layer, get noise of 2 % of their length and are scaled to unit length. Queries are other points of the surface.
"""

import argparse

import h5py
import numpy as np

HIDDEN = 512
ROWS = 10_000


def main():
    parser = argparse.ArgumentParser(description="Writes `train` and `test` on a surface of a chosen dimension.")
    parser.add_argument("out")
    parser.add_argument("--local-dim", type=int, required=True)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    into = random.normal(size=(args.local_dim, HIDDEN)) * (2 / args.local_dim ** 0.5)
    shift = random.normal(size=HIDDEN)
    out = random.normal(size=(HIDDEN, args.dim)) / HIDDEN ** 0.5

    def rows(count):
        made = np.empty((count, args.dim), np.float32)
        for start in range(0, count, ROWS):
            part = made[start:start + ROWS]
            hidden = np.tanh(random.normal(size=(len(part), args.local_dim)) @ into + shift)
            points = hidden @ out
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            points += random.normal(size=points.shape) * (0.02 / args.dim ** 0.5)
            part[:] = points / np.linalg.norm(points, axis=1, keepdims=True)
        return made

    with h5py.File(args.out, "w") as file:
        file.attrs["distance"] = "angular"
        file["train"] = rows(args.points)
        file["test"] = rows(args.queries)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
