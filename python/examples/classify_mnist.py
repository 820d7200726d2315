"""Search and classify images: Fashion-MNIST, from the data directory or downloaded.

    python python/examples/classify_mnist.py [mnist | fashion-mnist]

Needs h5py, and labels, which are downloaded when neither the data set nor the data directory has them. Downloads into
GARLIC_DATA, else ~/.cache/garlic/datasets.
"""

import sys
import time
from typing import Any

from garlic_ann import datasets
from garlic_ann.sklearn import GarlicClassifier


def main(name: str = "fashion-mnist") -> None:
    data = datasets.load(f"{name}-784-euclidean", progress=True)
    if "train_labels" in data and "test_labels" in data:
        train, test = data["train_labels"], data["test_labels"]
    else:
        train, test = datasets.labels(name)
    kinds: list[dict[str, Any]] = [{"n_neighbors": 5}, {"n_neighbors": 5, "weights": "distance"}, {"vote": "cells", "n_cells": 2}]
    for settings in kinds:
        model = GarlicClassifier(seed=1, **settings).fit(data["train"], train)
        start = time.perf_counter()
        score = model.score(data["test"], test)
        print(f"{settings}: {score:.2%} right, {time.perf_counter() - start:.2f} s for {len(test)} images")


if __name__ == "__main__":
    main(*sys.argv[1:])
