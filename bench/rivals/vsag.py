"""VSAG's HGraph: a navigable graph over short codes, the candidates re-ranked with the vectors."""

import json

import numpy as np
import pyvsag

from rivals.base import Base, steps

# Left out after trials of 0.18.5: sq4_uniform found hardly any neighbours of embeddings and too few of images, pqfs
# hardly any of embeddings.
CODES = {
    "sq8_uniform": {"base_quantization_type": "sq8_uniform"},
    "sq4": {"base_quantization_type": "sq4"},
    "rabitq": {"base_quantization_type": "rabitq", "rabitq_use_fht": True},
}


class Rival(Base):
    package = "pyvsag"

    @staticmethod
    def variants(points, dim):
        return [f"{codes},fp32 max_degree=32 ef_construction=200" for codes in CODES]

    def _empty(self, threads):
        pyvsag.set_logger_off()
        param = {**CODES[self.variant.split(",")[0]], "use_reorder": True, "precise_quantization_type": "fp32",
                 "max_degree": 32, "ef_construction": 200, "build_thread_count": threads}
        options = {"dtype": "float32", "metric_type": "l2", "dim": self.train.shape[1], "index_param": param}
        return pyvsag.Index("hgraph", json.dumps(options))

    def build(self, threads):
        points, dim = self.train.shape
        self.index = self._empty(threads)
        self.index.build(self.train.ravel(), np.arange(points), points, dim)

    def save(self, path):
        self.index.save(str(path))

    def load(self, path):
        self.index = self._empty(1)
        self.index.load(str(path))

    def grid(self, k):
        # With few neighbours asked for it takes no more than 1,000, and beyond gives wrong ids or none, without an error.
        return {"ef_search": steps(max(k, 6), 1000, 1.1)}

    def set(self, params, k):
        self.options = json.dumps({"hgraph": params})

    def batch(self, queries, k):
        # Its Python package has no call for many queries.
        return self.single(queries, k)

    def single(self, queries, k):
        found = np.full((len(queries), k), -1, np.int64)
        search, options = self.index.knn_search, self.options
        for i in range(len(queries)):
            ids = search(queries[i], k, options)[0]
            found[i, :len(ids)] = ids
        return found
