"""USearch: another navigable graph, with its own kernels."""

import numpy as np
from usearch.index import Index

from rivals.base import Base, steps


class Rival(Base):
    package = "usearch"

    @staticmethod
    def variants(points, dim):
        return ["connectivity=16 expansion_add=200"]

    def _empty(self):
        return Index(ndim=self.train.shape[1], metric="l2sq", dtype="f32", connectivity=16, expansion_add=200)

    def build(self, threads):
        self.index = self._empty()
        self.index.add(np.arange(len(self.train)), self.train, threads=threads)

    def save(self, path):
        self.index.save(str(path))

    def load(self, path):
        self.index = self._empty()
        self.index.load(str(path))

    def grid(self, k):
        return {"expansion": steps(max(k, 6), 1500, 1.1)}

    def set(self, params, k):
        self.index.expansion_search = params["expansion"]

    def batch(self, queries, k):
        return self.index.search(queries, k, threads=1).keys.astype(np.int64)

    def single(self, queries, k):
        found = np.full((len(queries), k), -1, np.int64)
        search = self.index.search
        for i in range(len(queries)):
            keys = search(queries[i], k, threads=1).keys
            found[i, :len(keys)] = keys
        return found

    def count(self, queries, k):
        return self.index.search(queries, k, threads=1).computed_distances / len(queries)
