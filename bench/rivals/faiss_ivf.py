"""faiss IVF-Flat: k-means lists, exact distances to every point of the nearest lists."""

import faiss

from rivals.base import power_of_two, steps
from rivals.faiss_common import Faiss


class Rival(Faiss):
    @staticmethod
    def variants(points, dim):
        # About 4 sqrt(n) lists, and half as many: fewer lists cost less to route and more to scan.
        lists = max(16, power_of_two(4 * points ** 0.5))
        return [f"IVF{lists},Flat", f"IVF{max(8, lists // 2)},Flat"]

    def build(self, threads):
        faiss.omp_set_num_threads(threads)
        self.index = faiss.index_factory(self.train.shape[1], self.variant, faiss.METRIC_L2)
        self.index.train(self.train)
        self.index.add(self.train)

    def grid(self, k):
        return {"nprobe": steps(1, self.index.nlist / 2, 1.1)}

    def set(self, params, k):
        self.index.nprobe = params["nprobe"]

    def count(self, queries, k):
        stats = faiss.cvar.indexIVF_stats
        stats.reset()
        self.index.search(queries, k)
        return self.index.nlist + stats.ndis / len(queries)
