"""Search and classify images: Fashion-MNIST, from the data directory or downloaded.

    python python/examples/classify_mnist.py [mnist | fashion-mnist]

Needs h5py, and labels, which are downloaded when they are not there.
"""

import sys
import time

from garlic_ann import datasets
from garlic_ann.sklearn import GarlicClassifier


def main(name="fashion-mnist"):
    data = datasets.load(f"{name}-784-euclidean", progress=True)
    train, test = datasets.labels(name)
    for settings in ({"n_neighbors": 5}, {"n_neighbors": 5, "weights": "distance"}, {"vote": "cells", "n_cells": 2}):
        model = GarlicClassifier(seed=1, **settings).fit(data["train"], train)
        start = time.perf_counter()
        score = model.score(data["test"], test)
        print(f"{settings}: {score:.2%} right, {time.perf_counter() - start:.2f} s for {len(test)} images")


if __name__ == "__main__":
    main(*sys.argv[1:])
