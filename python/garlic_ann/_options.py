"""Names and types of options, so that editors complete them and type checkers know them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from . import _garlic

Metric = Literal["euclidean", "cosine", "inner_product", "l2", "cos", "ip", "dot"]
"""A metric. ``l2``, ``cos``, ``ip`` and ``dot`` are short names of the first three."""

Preset = Literal["default", "paper"]
"""A kind of index."""

Store = Literal["auto", "f32", "f16", "int8", "u8"]
"""How vectors are stored."""

Graph = Literal["auto", "on", "off"]
"""Whether there is a neighbour graph."""


class ShardParameters(TypedDict, total=False):
    """Parameters of each shard of a sharded index; :func:`parameters` tells what they mean."""

    keep_variance: float
    max_dim: int
    axes: int
    anisotropy: float
    rounds: int
    bin_size: int
    graph: Graph
    code_bits: int
    store: Store
    calibration_queries: int


class DefaultParameters(ShardParameters, total=False):
    """Parameters of preset ``default``."""

    cells: int
    spill: float


class PaperParameters(TypedDict, total=False):
    """Parameters of preset ``paper``, the published method; :func:`parameters` tells what they mean."""

    train_fraction: float
    normalize: Literal["global", "per-coordinate", "none"]
    rotate: bool
    covariance: Literal["full", "diagonal", "isotropic"]
    init: Literal["kmeans-plus-plus", "kmeans", "farthest-point", "random"]
    initial_cells: int
    init_sample: int
    init_neighbours: int
    init_scale_floor: float
    tau: float
    weight_divergence: float
    weight_coverage: float
    weight_anchor: float
    anchor_shape: float
    anchor_points: Literal["covered", "nearest"]
    epochs: int
    batch: int
    warmup_epochs: int
    mean_rate: Sequence[float]
    factor_rate: Sequence[float]
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    adam_reset: bool
    diagonal_floor: float
    early_stop: bool
    patience: int
    min_improvement: float
    select_every: int
    select_queries: int
    select_recall: float
    refine_every: int
    refine_quiet: int
    max_cells: int
    split: bool
    split_threshold: float
    split_method: Literal["dbscan", "two-means"]
    split_sample: int
    split_scale: float
    split_refusal: float
    clone: bool
    clone_threshold: float
    clone_ratio: float
    clone_shell: float
    clone_shell_end: Literal["e-tau", "one-plus-e-tau"]
    clone_sample: float
    clone_sample_most: int
    clone_neighbours: int
    prune: bool
    prune_every: int
    prune_size: int
    rank: int
    radial_steps: int
    angular_steps: int
    probes: int
    bins: float
    bin_budget: Literal["all", "occupied"]


class Parameters(DefaultParameters, PaperParameters, total=False):
    """Parameters of either preset."""


class IndexParameters(Parameters, total=False):
    """The same with the default recall target, which a build takes by itself."""

    recall: float


class AllParameters(IndexParameters, total=False):
    """All that an index is made with, its metric and seed included."""

    metric: Metric
    seed: int


def parameters(preset: Preset = "default") -> dict[str, dict[str, Any]]:
    """The parameters of a preset by name, each with ``default``, ``about``, ``rule`` (allowed values) and ``group``.

    >>> import garlic_ann as garlic
    >>> garlic.parameters()["bin_size"]["default"]
    48
    >>> print(garlic.parameters()["bin_size"]["about"])
    Mean number of points per bin.
    """
    table = json.loads(_garlic.parameters(preset))
    return {entry.pop("name"): entry for entry in table}
