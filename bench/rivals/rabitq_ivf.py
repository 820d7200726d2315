"""RaBitQ-IVF, of the authors of RaBitQ: k-means lists, one-bit codes scanned in registers, then longer codes or the vectors."""

import numpy as np
import rabitqlib

from rivals.base import Base, power_of_two, steps


class Rival(Base):
    package = "rabitqlib"

    @staticmethod
    def variants(points, dim):
        # nbits=32 re-ranks with the vectors, 8 with codes. Shorter codes lost more recall than they gained speed in trials.
        lists = max(32, power_of_two(4 * points ** 0.5))
        return [f"clusters={lists // 4} nbits=32", f"clusters={lists // 2} nbits=32", f"clusters={lists // 4} nbits=8"]

    def build(self, threads):
        options = {name: int(value) for name, value in (word.split("=") for word in self.variant.split())}
        points, dim = self.train.shape
        means = rabitqlib.RaBitQKMeans(dim, options["clusters"], num_threads=threads, seed=1,
                                       final_assignment=rabitqlib.FinalAssignmentMode.Exact)
        means.train(self.train)
        self.index = rabitqlib.IvfIndex(dim, points, options["clusters"], options["nbits"], "l2")
        self.index.build(self.train, means.centroids, means.assignments, num_threads=threads)

    def save(self, path):
        self.index.save(str(path))

    def load(self, path):
        self.index = rabitqlib.IvfIndex.load(str(path))

    def grid(self, k):
        return {"nprobe": steps(1, self.index.num_clusters, 1.07)}

    def set(self, params, k):
        self.nprobe = params["nprobe"]

    def batch(self, queries, k):
        return self.index.search(queries, k, self.nprobe, num_threads=1)[0].astype(np.int64)

    def single(self, queries, k):
        search, nprobe = self.index.search, self.nprobe
        found = np.vstack([search(queries[i:i + 1], k, nprobe, num_threads=1)[0] for i in range(len(queries))])
        return found.astype(np.int64)
