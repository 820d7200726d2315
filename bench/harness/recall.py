"""k-recall@k by distance: the share of returned points that are no farther than the true k-th neighbour.

The distances are computed here, in float64, from the vectors; what a library says its distances are is not used.
"""

import numpy as np

from harness.dataset import squared

SLACK = 1e-6


class Truth:
    """True neighbours of the queries, and what is needed to judge answers against them."""

    def __init__(self, train, test, neighbors):
        self.train, self.test, self.neighbors = train, test, neighbors
        self.limits, self.members = {}, {}

    def _prepare(self, k):
        if k not in self.limits:
            nearest = self.neighbors[:, :k]
            self.limits[k] = squared(self.train, self.test, nearest).max(axis=1)
            # Most answers are among the true neighbours by id; only the others need a distance.
            self.members[k] = np.sort(self._keys(nearest), axis=None)
        return self.limits[k], self.members[k]

    def _keys(self, ids):
        return np.arange(len(ids), dtype=np.int64)[:, None] * len(self.train) + ids

    def recall(self, ids, k):
        """Recall of `ids`, the answers to the first len(ids) queries; -1 stands for no answer."""
        limits, members = self._prepare(k)
        ids = np.sort(np.asarray(ids, np.int64)[:, :k], axis=1)
        valid = (ids >= 0) & (ids < len(self.train))
        # A point that is returned twice is one answer.
        valid[:, 1:] &= ids[:, 1:] != ids[:, :-1]
        keys = self._keys(ids)
        place = np.minimum(np.searchsorted(members, keys), len(members) - 1)
        good = valid & (members[place] == keys)
        query, column = np.nonzero(valid & ~good)
        for start in range(0, len(query), 1 << 15):
            part = slice(start, start + (1 << 15))
            q, points = query[part], ids[query[part], column[part]]
            distance = squared(self.train, self.test[q], points[:, None])[:, 0]
            # The slack is on distances, these are squares.
            good[q, column[part]] = distance <= limits[q] * (1 + SLACK) ** 2
        return float(good.sum() / (len(ids) * k))
