"""faiss HNSW over codes of 8 bits a dimension, the best re-ranked with the vectors."""

import faiss

from rivals.base import steps
from rivals.faiss_common import Faiss


class Rival(Faiss):
    @staticmethod
    def variants(points, dim):
        return ["HNSW32,SQ8,RFlat efConstruction=200"]

    def build(self, threads):
        faiss.omp_set_num_threads(threads)
        self.index = faiss.index_factory(self.train.shape[1], self.variant.split()[0], faiss.METRIC_L2)
        self.ready()
        self.graph.hnsw.efConstruction = 200
        self.index.train(self.train)
        self.index.add(self.train)

    def ready(self):
        self.graph = faiss.downcast_index(self.index.base_index)

    def grid(self, k):
        return {"efSearch": steps(max(k, 6), 1500, 1.1), "k_factor": (1, 1.5, 2, 3)}

    def set(self, params, k):
        self.graph.hnsw.efSearch = params["efSearch"]
        self.index.k_factor = params["k_factor"]
