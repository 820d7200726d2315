"""GARLIC for VIBE."""

import garlic_ann
import numpy as np

from ..base.module import BaseANN

METRICS = {"euclidean": "euclidean", "cosine": "cosine", "normalized": "cosine", "ip": "inner_product"}

# Queries whose work is counted.
COUNTED = 10_000


class Garlic(BaseANN):
    def __init__(self, metric, code_bits):
        if metric not in METRICS:
            raise NotImplementedError(f"GARLIC doesn't support metric {metric}")
        self.metric = METRICS[metric]
        self.code_bits = code_bits
        self.recall = 0.95
        self.seen, self.asked = [], 0

    def fit(self, X):
        self.index = garlic_ann.build(X, metric=self.metric, code_bits=self.code_bits, threads=1)

    def set_query_arguments(self, recall):
        self.recall = recall
        self.seen, self.asked = [], 0

    def query(self, q, n):
        # Counting would cost time here; the query is remembered instead, and its work is counted later.
        self.asked += 1
        if self.asked <= COUNTED:
            self.seen.append((q, n))
        ids = self.index.search(q, n, recall=self.recall)[1]
        return ids if ids[-1] >= 0 else ids[ids >= 0]

    def batch_query(self, X, n):
        self.asked += len(X)
        self.seen = [(q, n) for q in X[:COUNTED]]
        ids = self.index.search(X, n, recall=self.recall)[1]
        self.res = [row if row[-1] >= 0 else row[row >= 0] for row in ids]

    def get_batch_results(self):
        return self.res

    def get_additional(self):
        if not self.seen:
            return {}
        work = [self.index.search(q, n, recall=self.recall, return_stats=True)[2] for q, n in self.seen]
        mean = {name: float(np.mean([w[name] for w in work])) for name in work[0]}
        return {
            # All multiply-adds, not only those of exact distances. The sum over all runs.
            "dist_comps": mean["distance_equivalents"] * self.asked,
            "distance_equivalents": mean["distance_equivalents"],
            "exact_distances": mean["candidates"],
        }

    def __str__(self):
        return f"Garlic(code_bits={self.code_bits}, recall={self.recall})"
