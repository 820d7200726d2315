"""The shortest way through: build, search, save, open."""

import os
import tempfile

import garlic_ann as garlic
import numpy as np

random = np.random.default_rng(1)
centres = random.normal(size=(50, 64)) * 3
x = (centres[random.integers(50, size=10_000)] + random.normal(size=(10_000, 64))).astype(np.float32)
queries = x[:5] + 0.1

index = garlic.build(x, seed=1)
distances, ids = index.search(queries, k=3, recall=0.95)
for query, (near, id) in enumerate(zip(distances, ids)):
    print(f"query {query}: points {id} at {near}")

with tempfile.TemporaryDirectory() as place:
    path = os.path.join(place, "vectors.garlic")
    index.save(path)
    print(garlic.open(path), f"{os.path.getsize(path):,} bytes")
