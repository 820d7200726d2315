"""LoRANN: clusters, a low-rank regression of the distances in each, the best re-ranked with the vectors."""

import lorann
import numpy as np

from rivals.base import Base, power_of_two, steps


class Rival(Base):
    package = "lorann"

    @staticmethod
    def variants(points, dim):
        # sqrt(n) clusters as its documentation advises, and half as many.
        clusters = max(8, power_of_two(points ** 0.5))
        return [f"clusters={clusters}", f"clusters={max(4, clusters // 2)}"]

    def build(self, threads):
        points, dim = self.train.shape
        reduced = None if dim < 200 else 128 if dim <= 1000 else 256
        rank = 32 if dim > 32 else 16
        self.index = lorann.LorannIndex(self.train, int(self.variant.split("=")[1]), reduced, quantization_bits=8, rank=rank,
                                        train_size=5 if points < 500_000 else 3, distance=lorann.L2)
        self.index.build(n_threads=threads)

    def save(self, path):
        self.index.save(str(path))

    def load(self, path):
        self.index = lorann.LorannIndex.load(str(path))

    def grid(self, k):
        kept = {1: (5, 10, 20, 40, 80, 160), 10: (12, 16, 20, 30, 45, 70, 100, 150, 250, 400)}
        rerank = kept.get(k, tuple(round(k * f) for f in (1.25, 1.6, 2, 3, 4.5, 7)))
        most = min(self.index.n_clusters, max(32, self.index.n_clusters / 4))
        return {"clusters_to_search": steps(1, most, 1.15), "points_to_rerank": rerank}

    def set(self, params, k):
        self.options = {"k": k, **params}

    def batch(self, queries, k):
        return self.index.search(queries, n_threads=1, **self.options)

    def single(self, queries, k):
        search, options = self.index.search, self.options
        return np.vstack([search(queries[i], n_threads=1, **options) for i in range(len(queries))])
