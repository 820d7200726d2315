"""Neural LSH (Dong, Indyk, Razenshteyn and Wagner 2020): a balanced partition of the k-NN graph, and a classifier.

The graph (k = 10) comes from Faiss IVF with 16 probes, which misses some edges; METIS cuts it into parts of equal
size (256, as published for a million); a network of one hidden layer, over principal coordinates, learns them. The
published loss is the cross-entropy against the parts of a point *and its neighbours*. scikit-learn's classifier has
hard labels only, so every epoch draws for each point one of its neighbours (itself among them) and takes that one's
part: the same loss in expectation. Points keep METIS's part; queries probe parts by the network's probability.
"""

from typing import Any

import faiss
import numpy as np
import pymetis
from scipy.sparse import csr_array
from sklearn.neural_network import MLPClassifier

from paper.baselines.cells import Cells, constant, csr, smallest
from paper.baselines.pca import principal_axes

LARGE = 200_000
WHAT = "Neural LSH: METIS parts of the k-NN graph, most probable first"


def defaults(points: int, dim: int, quick: bool) -> dict[str, Any]:
    """Settings for so many points."""
    parts = 1 << int(np.clip(np.log2(max(points, 2) / 100), 1, 8))
    return {
        "parts": parts,
        "neighbours": 10,
        "graph_probes": 16,
        "rank": min(128, dim),
        "hidden": 512,
        "epochs": 10 if quick else 20,
        "epoch_points": 100_000,
        "batch": 256,
        "rate": 1e-3,
    }


def build(base: np.ndarray, seed: int, quick: bool = False, **settings: Any) -> Cells:
    """Graph, partition, classifier."""
    settings = {**defaults(*base.shape, quick), **settings}
    graph = neighbours(base, settings["neighbours"], settings["graph_probes"], seed)
    labels, cut = partition(graph, settings["parts"], seed)
    mean, axes, variances = principal_axes(base, settings["rank"])
    axes = (axes / np.sqrt(max(float(variances.mean()), 1e-30))).astype(np.float32)
    model = learned(base, mean, axes, graph, labels, seed, settings)

    def order(queries: np.ndarray, most: int) -> np.ndarray:
        return smallest(-model.predict_proba((queries - mean) @ axes.T), most)

    weights = sum(w.size for w in model.coefs_)
    offsets, ids = csr(labels, settings["parts"])
    return Cells(
        offsets=offsets,
        ids=ids,
        points=len(base),
        order_of=order,
        madds_of=constant(axes.size + weights),
        settings=settings,
        model_bytes=4 * (axes.size + weights + sum(b.size for b in model.intercepts_)),
        extra={"edge_cut_share": cut},
    )


def neighbours(base: np.ndarray, k: int, probes: int, seed: int) -> np.ndarray:
    """(points, k + 1) ids of near points, the point itself first; a missing one is the point itself."""
    found = graph_index(base, probes, seed).search(base, k + 1)[1]
    own = np.arange(len(base))[:, None]
    found = np.where(found < 0, own, found)
    # Duplicates may push a point off its own list; it goes first, the farthest of the others goes.
    others = np.take_along_axis(found, np.argsort(found == own, axis=1, kind="stable"), axis=1)[:, :k]
    return np.concatenate([own, others], axis=1)


def graph_index(base: np.ndarray, probes: int, seed: int) -> faiss.Index:
    """Lists of vectors, or for many points of codes, the best re-ranked: faster, .87 of the edges (photosift1m)."""
    many, dim = len(base) > LARGE, base.shape[1]
    lists = max(1, round((1 if many else 4) * len(base) ** 0.5))
    codes = dim // 2 if dim % 2 == 0 else dim
    index = faiss.index_factory(dim, f"IVF{lists}," + (f"PQ{codes}x4fs" if many else "Flat"))
    index.cp.seed, index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = seed, 1, 64
    index.train(base)
    index.add(base)
    index.nprobe = min(probes, lists)
    if not many:
        return index
    refined = faiss.IndexRefineFlat(index, faiss.swig_ptr(base))
    refined.k_factor = 4
    return refined


def partition(graph: np.ndarray, parts: int, seed: int) -> tuple[np.ndarray, float]:
    """A part for every point by METIS, sizes equal within a few percent, and the share of edges between parts."""
    points, wide = graph.shape
    rows = np.repeat(np.arange(points), wide)
    one_way = csr_array((np.ones(rows.size, np.int8), (rows, graph.ravel())), shape=(points, points))
    both = (one_way + one_way.T).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    # Bisections keep the balance where the graph falls into components; METIS's direct k-way cut does not.
    options = pymetis.Options(seed=seed, ufactor=5)
    adjacency = pymetis.CSRAdjacency(both.indptr, both.indices)
    cut, labels = pymetis.part_graph(parts, adjacency, options=options, recursive=True)
    return np.asarray(labels, np.int64), float(2 * cut / max(both.nnz, 1))


def learned(
    base: np.ndarray,
    mean: np.ndarray,
    axes: np.ndarray,
    graph: np.ndarray,
    labels: np.ndarray,
    seed: int,
    settings: dict[str, Any],
) -> MLPClassifier:
    """The classifier, trained on parts of random neighbours."""
    random = np.random.default_rng(seed)
    model = MLPClassifier(
        (settings["hidden"],), batch_size=settings["batch"], learning_rate_init=settings["rate"], random_state=seed
    )
    reduced = (base - mean) @ axes.T
    for _ in range(settings["epochs"]):
        drawn = random.permutation(len(base))[: settings["epoch_points"]]
        towards = graph[drawn, random.integers(graph.shape[1], size=len(drawn))]
        model.partial_fit(reduced[drawn], labels[towards], classes=np.arange(settings["parts"]))
    return model
