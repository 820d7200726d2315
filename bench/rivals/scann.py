"""ScaNN: k-means tree, 4-bit codes of two dimensions each, the best re-ranked with the vectors."""

import numpy as np
import scann

from rivals.base import Base, steps


class Rival(Base):
    package = "scann"

    @staticmethod
    def variants(points, dim):
        leaves = max(8, round(points ** 0.5 / 50) * 50 if points > 20_000 else round(points ** 0.5))
        plain = [f"leaves={leaves} block=2", f"leaves={leaves} block=2 threshold=0.2"]
        # It scans faster with at most 256 blocks a vector.
        return [*plain, f"leaves={leaves} block=4" if dim > 200 else f"leaves={2 * leaves} block=2"]

    def _options(self):
        return {"threshold": "nan", **dict(word.split("=") for word in self.variant.split())}

    def build(self, threads):
        options, points = self._options(), len(self.train)
        leaves = int(options["leaves"])
        self.index = (
            scann.scann_ops_pybind.builder(self.train, 10, "squared_l2")
            .set_n_training_threads(threads)
            .tree(leaves, max(1, leaves // 20), training_sample_size=min(points, 250_000))
            .score_ah(int(options["block"]), anisotropic_quantization_threshold=float(options["threshold"]))
            .reorder(100)
            .build()
        )

    def save(self, path):
        path.mkdir()
        self.index.serialize(str(path))

    def load(self, path):
        self.index = scann.scann_ops_pybind.load_searcher(str(path))

    def grid(self, k):
        most = int(self._options()["leaves"]) / 2
        kept = {1: (5, 8, 12, 20, 35, 60, 100), 10: (15, 20, 25, 30, 40, 55, 80, 120, 200)}
        reorder = kept.get(k, tuple(round(k * f) for f in (1.1, 1.3, 1.6, 2, 2.5, 3.5, 5)))
        return {"leaves": steps(1, most, 1.15), "reorder": reorder}

    def set(self, params, k):
        self.options = {"final_num_neighbors": k, "pre_reorder_num_neighbors": params["reorder"],
                        "leaves_to_search": params["leaves"]}

    def batch(self, queries, k):
        return _filled(self.index.search_batched(queries, **self.options)[0], k)

    def single(self, queries, k):
        search, options = self.index.search, self.options
        return _filled([search(queries[i], **options)[0] for i in range(len(queries))], k)


def _filled(answers, k):
    """Answers as a table; ScaNN gives short lists when the visited leaves hold fewer than k points."""
    if isinstance(answers, np.ndarray) and answers.dtype != object and answers.shape[1] == k:
        return answers
    table = np.full((len(answers), k), -1, np.int64)
    for row, ids in zip(table, answers):
        row[:len(ids)] = ids
    return table
