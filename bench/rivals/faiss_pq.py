"""faiss IVF with 4-bit product codes scanned in registers (fast scan), the best re-ranked with the vectors."""

import faiss

from rivals.base import power_of_two, steps
from rivals.faiss_common import Faiss


class Rival(Faiss):
    @staticmethod
    def variants(points, dim):
        lists = max(16, power_of_two(4 * points ** 0.5))
        few = max(16, lists // 4)
        if dim > 200:
            # Codes of all dimensions would be long: reduce first, the re-ranking sees the whole vectors. Codes of
            # residuals (fsr) win here. OPQ instead of PCA trains for minutes and was left out.
            return [f"PCA128,IVF{few},PQ64x4fsr,RFlat", f"PCA64,IVF{few},PQ32x4fsr,RFlat",
                    f"PCA64,IVF{2 * few},PQ32x4fsr,RFlat", f"PCA128,IVF{few},PQ64x4fsr,Refine(SQfp16)"]
        codes = f"PQ{dim // 2 if dim % 2 == 0 else dim}x4fs,RFlat"
        return [f"IVF{lists},{codes}", f"IVF{few},{codes}"]

    def build(self, threads):
        faiss.omp_set_num_threads(threads)
        self.index = faiss.index_factory(self.train.shape[1], self.variant, faiss.METRIC_L2)
        self.index.train(self.train)
        self.index.add(self.train)

    def ready(self):
        self.ivf = faiss.extract_index_ivf(self.index.base_index)

    def grid(self, k):
        factors = {1: (4, 6, 8, 12, 16, 24, 32, 64, 128), 10: (1, 1.5, 2, 2.5, 3, 4, 6, 8, 12, 20, 32, 50)}
        return {"nprobe": steps(1, max(32, self.ivf.nlist / 8), 1.2),
                "k_factor": factors.get(k, (1, 1.25, 1.5, 2, 2.5, 3, 4, 6))}

    def set(self, params, k):
        self.ivf.nprobe = params["nprobe"]
        self.index.k_factor = params["k_factor"]
