"""hnswlib: the reference implementation of the navigable graph."""

import hnswlib
import numpy as np

from rivals.base import Base, steps


class Rival(Base):
    package = "hnswlib"

    @staticmethod
    def variants(points, dim):
        return ["M=16 ef_construction=200"]

    def build(self, threads):
        self.index = hnswlib.Index(space="l2", dim=self.train.shape[1])
        self.index.init_index(max_elements=len(self.train), M=16, ef_construction=200, random_seed=1)
        self.index.add_items(self.train, np.arange(len(self.train)), num_threads=threads)

    def save(self, path):
        self.index.save_index(str(path))

    def load(self, path):
        self.index = hnswlib.Index(space="l2", dim=self.train.shape[1])
        self.index.load_index(str(path))
        self.index.set_num_threads(1)

    def grid(self, k):
        return {"ef": steps(max(k, 6), 1500, 1.1)}

    def set(self, params, k):
        self.index.set_ef(params["ef"])

    def batch(self, queries, k):
        return self.index.knn_query(queries, k=k, num_threads=1)[0]

    def single(self, queries, k):
        query = self.index.knn_query
        return np.vstack([query(queries[i], k=k, num_threads=1)[0] for i in range(len(queries))])
