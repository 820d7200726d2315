"""SymphonyQG: a graph whose neighbours are scored in batches of 32 codes, the vectors visited scored exactly."""

import numpy as np
import rabitqlib

from rivals.base import Base, steps


class Rival(Base):
    package = "rabitqlib"

    @staticmethod
    def variants(points, dim):
        # bits=0 keeps the vectors, bits=8 codes of them. Degrees are multiples of 32. Degree 64 is slower on embeddings
        # and is there for other data.
        return ["degree=32 bits=0", "degree=32 bits=8", "degree=64 bits=0"]

    def build(self, threads):
        options = dict(word.split("=") for word in self.variant.split())
        self.index = rabitqlib.SymqgIndex(self.train.shape[1], int(options["degree"]), "l2", int(options["bits"]))
        self.index.build(self.train, ef_construction=200, num_threads=threads)

    def save(self, path):
        self.index.save(str(path))

    def load(self, path):
        self.index = rabitqlib.SymqgIndex.load(str(path))

    def grid(self, k):
        return {"ef": steps(max(k, 6), 1000, 1.07)}

    def set(self, params, k):
        self.ef = params["ef"]

    def batch(self, queries, k):
        return self.index.search(queries, k, self.ef, num_threads=1)[0].astype(np.int64)

    def single(self, queries, k):
        search, ef = self.index.search, self.ef
        found = np.vstack([search(queries[i:i + 1], k, ef, num_threads=1)[0] for i in range(len(queries))])
        return found.astype(np.int64)
