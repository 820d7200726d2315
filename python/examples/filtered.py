"""Filtered search: a shop where only some articles are in stock."""

import time

import garlic_ann as garlic
import numpy as np

random = np.random.default_rng(1)
centres = random.normal(size=(200, 48)) * 3
x = (centres[random.integers(200, size=50_000)] + random.normal(size=(50_000, 48))).astype(np.float32)
queries = x[:1000] + random.normal(size=(1000, 48)).astype(np.float32) * 0.1
price = random.gamma(2.0, 30.0, size=len(x))

index = garlic.build(x, seed=1)
for share in (1.0, 0.5, 0.1, 0.01):
    affordable = np.flatnonzero(price <= np.quantile(price, share))
    allowed = garlic.filter(affordable)
    true = index.search(queries, k=10, filter=allowed, exact=True)[1]
    start = time.perf_counter()
    ids = index.search(queries, k=10, filter=allowed, recall=0.95)[1]
    spent = time.perf_counter() - start
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids.tolist(), true.tolist())])
    print(f"{share:4.0%} allowed: {len(queries) / spent:8,.0f} queries a second, recall {recall:.3f}")
