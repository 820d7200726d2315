"""faiss HNSW: a navigable graph over the plain vectors."""

import faiss

from rivals.base import steps
from rivals.faiss_common import Faiss


class Rival(Faiss):
    @staticmethod
    def variants(points, dim):
        return ["HNSW32,Flat efConstruction=200"]

    def build(self, threads):
        faiss.omp_set_num_threads(threads)
        self.index = faiss.IndexHNSWFlat(self.train.shape[1], 32)
        self.index.hnsw.efConstruction = 200
        self.index.add(self.train)

    def grid(self, k):
        return {"efSearch": steps(max(k, 6), 1500, 1.1)}

    def set(self, params, k):
        self.index.hnsw.efSearch = params["efSearch"]

    def count(self, queries, k):
        stats = faiss.cvar.hnsw_stats
        stats.reset()
        self.index.search(queries, k)
        return stats.ndis / len(queries)
