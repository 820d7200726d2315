"""The rivals, one a file. `load(name)` imports only the one that is asked for, so a missing library hurts no other."""

import importlib

# In the order in which they run; the class in the module is always called Rival.
MODULES = {
    "faiss-ivf": "faiss_ivf",
    "faiss-pq": "faiss_pq",
    "faiss-rabitq": "faiss_rabitq",
    "faiss-hnsw": "faiss_hnsw",
    "faiss-hnsw-sq": "faiss_hnsw_sq",
    "hnswlib": "hnswlib",
    "scann": "scann",
    "lorann": "lorann",
    "usearch": "usearch",
    "symphonyqg": "symphonyqg",
    "rabitq-ivf": "rabitq_ivf",
    "vsag": "vsag",
}


def load(name):
    """The class of a rival; ImportError when its library is not installed."""
    return importlib.import_module(f"rivals.{MODULES[name]}").Rival
