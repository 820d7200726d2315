"""Known properties of the hashes: collision probabilities, learned rotations, the order of probing, its cost."""

import itertools

import numpy as np
import pytest

from paper import baselines
from paper.baselines import cross_polytope_lsh, hashing, hyperplane_lsh, itq


def pairs(angle: float, count: int, dim: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with this angle between them."""
    first = random.normal(size=(count, dim))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    other = random.normal(size=(count, dim))
    other -= np.sum(other * first, axis=1, keepdims=True) * first
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    return first.astype(np.float32), (np.cos(angle) * first + np.sin(angle) * other).astype(np.float32)


@pytest.mark.parametrize("angle", [0.2, 0.8, 1.5, 2.4])
def test_hyperplanes_collide_with_probability_one_minus_angle_over_pi(angle):
    random = np.random.default_rng(2)
    first, second = pairs(angle, 400, 12, random)
    project = hyperplane_lsh.projection(random.normal(size=(500, 12)).astype(np.float32), np.zeros(500, np.float32))
    same = np.mean((project(first) >= 0) == (project(second) >= 0))
    assert same == pytest.approx(1 - angle / np.pi, abs=0.01)


def test_near_points_share_a_vertex_more_often_than_far_ones():
    random = np.random.default_rng(4)
    shares = []
    for angle in (0.2, 0.6, 1.2):
        first, second = pairs(angle, 300, 20, random)
        same = 0
        for _ in range(20):
            turn = cross_polytope_lsh.rotation(20, 32, random)
            zero = np.zeros(20, np.float32)
            same += np.mean(
                cross_polytope_lsh.vertices(first, zero, turn) == cross_polytope_lsh.vertices(second, zero, turn)
            )
        shares.append(same / 20)
    assert shares[0] > 0.5 and shares[0] > 1.5 * shares[1] and shares[1] > 1.5 * shares[2]


def test_the_pseudo_random_rotation_keeps_lengths_and_starts_anew():
    random = np.random.default_rng(1)
    turn, other = (cross_polytope_lsh.rotation(20, 32, random) for _ in range(2))
    assert np.allclose(turn.T @ turn, np.eye(20), atol=1e-5)
    assert not np.allclose(turn, other)


@pytest.mark.parametrize(
    "bits, full, widths", [(9, 1024, [256]), (11, 1024, [1024]), (16, 1024, [1024, 16]), (16, 128, [128, 128])]
)
def test_functions_have_as_many_bits_as_asked_for(bits, full, widths):
    assert cross_polytope_lsh.function_widths(bits, full) == widths
    assert np.prod([2 * w for w in widths]) == 2**bits


def test_a_point_is_in_the_bucket_its_own_query_probes_first(data):
    for name in ("hyperplane-lsh", "cross-polytope-lsh", "itq"):
        cells = baselines.build(name, data.base, 5, bits=7)
        first = cells.order(data.base[:50], 1)[:, 0]
        for point, cell in enumerate(first):
            assert point in cells.ids[cells.offsets[cell] : cells.offsets[cell + 1]], name


def test_buckets_come_by_the_squared_margins_of_flipped_bits(data):
    cells = baselines.build("hyperplane-lsh", data.base, 6, bits=6, tables=1)
    planes = np.random.default_rng(6).standard_normal((6, 24)).astype(np.float32)
    margins = (data.queries - data.base.mean(axis=0)) @ planes.T
    codes = (data.base - data.base.mean(axis=0)) @ planes.T >= 0
    order = cells.order(data.queries, cells.cells)
    for query, margin in enumerate(margins):
        scores = []
        for cell in order[query]:
            code = codes[cells.ids[cells.offsets[cell]]]
            scores.append(float(np.sum(margin[code != (margin >= 0)] ** 2)))
        assert np.all(np.diff(scores) >= -1e-3)


def test_keys_made_on_the_way_are_counted_as_by_hand():
    # Two tables of two bits; margins 1, 2 and 3, 4. Scores of the keys: 0, 1, 4, 5 and 0, 9, 16, 25.
    margins = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]
    symbols = np.array([[1, 1], [0, 0]])
    tables = [hashing.table(symbols, [2, 2], hashing.sign_costs(lambda q, m=m: m)) for m in margins]
    query = np.zeros((1, 1), np.float32)
    # Own buckets (score 0), then the opposite corners at 5 and 25.
    assert hashing.order(tables, query, 4).tolist() == [[1, 3, 0, 2]]
    # Up to 0: 2 keys. Up to 5: 5 keys, up to 25: 8, but only 4 buckets are occupied, and scoring those is cheaper.
    assert hashing.key_madds(tables, [1, 2, 3, 4], query).tolist() == [4, 4, 8, 8]


def test_scores_of_all_keys_are_sums_over_functions():
    random = np.random.default_rng(0)
    costs = [random.random((3, r)).astype(np.float32) for r in (4, 2, 3)]
    table = hashing.table(np.zeros((1, 3), int), [4, 2, 3], lambda _q: costs)
    scores = table.scores(np.zeros((3, 1)))
    for key, symbols in enumerate(itertools.product(range(4), range(2), range(3))):
        assert np.allclose(scores[:, key], sum(c[:, s] for c, s in zip(costs, symbols)))


def test_too_many_keys_are_refused():
    with pytest.raises(ValueError, match="keys are more"):
        hashing.table(np.zeros((1, 30), int), [2] * 30, lambda _q: [])


def test_hashing_is_counted(data):
    planes = baselines.build("hyperplane-lsh", data.base, 1, bits=5, tables=3)
    assert planes.routing_madds([1], data.queries)[0] >= 3 * 5 * 24
    assert planes.routing_madds([1], data.queries)[0] <= 3 * 5 * 24 + 5 * planes.cells
    polytope = baselines.build("cross-polytope-lsh", data.base, 1, bits=5, tables=2)
    hashed = 2 * 24 + 2 * 3 * 32 * 5
    assert hashed < polytope.routing_madds([1], data.queries)[0] <= hashed + polytope.cells


def test_itq_learns_a_rotation_and_its_loss_does_not_grow(data):
    turn, losses = itq.learn(data.base[:, :8], 50, seed=1)
    assert np.allclose(turn @ turn.T, np.eye(8), atol=1e-10)
    assert np.all(np.diff(losses) <= 1e-9) and losses[-1] < losses[0]


def test_itq_finds_the_corners_of_a_turned_cube():
    random = np.random.default_rng(8)
    turn = np.linalg.qr(random.normal(size=(4, 4)))[0]
    corners = np.where(random.random((500, 4)) < 0.5, -1.0, 1.0)
    turned = corners @ turn + random.normal(0, 0.01, (500, 4))
    # Alternation stops at local minima; some of ten starts must get there.
    assert min(itq.learn(turned, 50, seed)[1][-1] for seed in range(10)) < 0.01
