"""What the faiss rivals share."""

import faiss
import numpy as np

from rivals.base import Base


class Faiss(Base):
    """A faiss index: saved with write_index, searched with and without the Python wrapper."""

    package = "faiss-cpu"

    def save(self, path):
        faiss.write_index(self.index, str(path))

    def load(self, path):
        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(str(path))
        self.ready()

    def ready(self):
        """Called once the index is there."""

    def batch(self, queries, k):
        return self.index.search(queries, k)[1]

    def single(self, queries, k):
        # The raw call: the Python wrapper's checks would cost as much as a fast search.
        found = np.empty((len(queries), k), np.int64)
        distances = np.empty(k, np.float32)
        to = faiss.swig_ptr(distances)
        search, pointer = self.index.search_c, faiss.swig_ptr
        for i in range(len(queries)):
            search(1, pointer(queries[i]), k, to, pointer(found[i]))
        return found
