"""faiss IVF with RaBitQ codes of one or four bits scanned in registers, the best re-ranked with the vectors."""

import faiss

from rivals.base import power_of_two, steps
from rivals.faiss_common import Faiss


class Rival(Faiss):
    @staticmethod
    def variants(points, dim):
        # In trials on embeddings one bit was faster at equal recall, and a random rotation before (RR) gained nothing.
        lists = max(16, power_of_two(4 * points ** 0.5))
        few = max(16, lists // 4)
        return [f"IVF{few},RaBitQfs,RFlat", f"IVF{lists},RaBitQfs,RFlat", f"IVF{few},RaBitQfs4,RFlat"]

    def build(self, threads):
        faiss.omp_set_num_threads(threads)
        self.index = faiss.index_factory(self.train.shape[1], self.variant, faiss.METRIC_L2)
        self.index.train(self.train)
        self.index.add(self.train)

    def ready(self):
        self.ivf = faiss.extract_index_ivf(self.index.base_index)

    def grid(self, k):
        factors = {1: (2, 4, 8, 16, 32, 64), 10: (1, 1.5, 2, 3, 4, 6, 8, 12, 20)}
        return {"nprobe": steps(1, max(32, self.ivf.nlist / 2), 1.2), "k_factor": factors.get(k, (1, 1.5, 2, 3, 4, 6))}

    def set(self, params, k):
        self.ivf.nprobe = params["nprobe"]
        self.index.k_factor = params["k_factor"]
