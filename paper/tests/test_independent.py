"""The second implementation of the published method: gradients against differences, bins and counts against plain loops."""

import math

import numpy as np
import pytest

from paper.independent import cells as cells_, retrieval, training
from paper.independent.arrays import lower_inverse, xp
from paper.independent.cells import Cells

pytestmark = pytest.mark.skipif(xp is not np, reason="compares with numpy")


def some_cells(random, kind, count=5, dim=6):
    means = random.normal(0, 0.7, (count, dim))
    if kind == "full":
        factors = np.tril(random.normal(0, 0.2, (count, dim, dim)), -1)
        factors[:, np.arange(dim), np.arange(dim)] = random.uniform(0.5, 1.2, (count, dim))
    else:
        factors = random.uniform(0.5, 1.2, (count, dim if kind == "diagonal" else 1))
    return Cells(means, factors)


def test_inverses_of_triangles():
    random = np.random.default_rng(1)
    factors = np.tril(random.normal(0, 0.1, (3, 37, 37))) + np.eye(37)
    assert np.allclose(lower_inverse(factors), np.linalg.inv(factors), atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "diagonal", "isotropic"])
def test_gradients_are_those_of_the_losses(kind):
    """Members of cells are fixed in the text's gradients, and so they are here."""
    random = np.random.default_rng(2)
    model, points, tau = some_cells(random, kind), random.normal(0, 1.5, (60, 6)), 3.0
    found = cells_.assign(points, model, tau)
    held = found.holds()
    inverse = lower_inverse(model.factors) if model.full else None

    def losses(changed):
        now = cells_.assign(points, changed, tau)
        fixed = cells_.Assignment(found.nearest, cells_.mahalanobis(points, changed)[np.arange(60), found.nearest], found.within)
        assert (now.nearest == found.nearest).all() and (now.within == found.within).all()
        again = lower_inverse(changed.factors) if changed.full else None
        return np.array([
            cells_.divergence(points, changed, fixed, tau, again)[0],
            cells_.coverage(points, changed, found.within)[0],
            cells_.anchor(points, changed, held, 0.1)[0],
        ])  # fmt: skip

    parts = [cells_.divergence(points, model, found, tau, inverse)[1:]]
    parts.append((cells_.coverage(points, model, found.within)[1], np.zeros_like(model.factors)))
    parts.append(cells_.anchor(points, model, held, 0.1)[1:])
    assert all(np.abs(part[0]).max() > 1e-4 for part in parts)
    step = 1e-6
    for name, which in (("means", 0), ("factors", 1)):
        for place in np.argwhere(np.ones_like(getattr(model, name))):
            place = tuple(place)
            if name == "factors" and model.full and place[1] < place[2]:
                continue
            ends = []
            for sign in (1, -1):
                changed = Cells(model.means.copy(), model.factors.copy())
                getattr(changed, name)[place] += sign * step
                ends.append(losses(changed))
            slope = (ends[0] - ends[1]) / (2 * step)
            assert np.allclose([part[which][place] for part in parts], slope, atol=1e-6)


def test_rates_rise_and_fall():
    rates = (1e-7, 9e-3, 3e-3)
    assert training.rate(rates, 35, 250, 0) == 1e-7
    assert training.rate(rates, 35, 250, 35) == 9e-3
    assert training.rate(rates, 35, 250, 142.5) == pytest.approx(math.sqrt(9e-3 * 3e-3))


def test_halves_of_two_groups():
    random = np.random.default_rng(3)
    own = np.concatenate([random.normal(0, 0.1, (80, 4)), random.normal(5, 0.1, (40, 4))])
    found = sorted(training.halves(own, random)[:, 0])
    assert found == pytest.approx([0, 5], abs=0.1)
    assert training.halves(np.ones((50, 4)), random) is None


def test_distances_to_bins():
    """Against the nearest of many points spread over every bin."""
    random = np.random.default_rng(4)
    low, high = np.array([0.5, 0.3, -2.0]), np.array([3.0, 2.9, 2.5])
    grid = [np.linspace(0, 1, 40)] * 3
    u = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 3)
    steps = np.array([retrieval.RADIAL, retrieval.ANGULAR, retrieval.ANGULAR])
    for query in random.normal(0, 2, (10, 3)):
        found = retrieval.bin_distances(query, low, high)
        for number in random.integers(0, retrieval.BINS, 12):
            place = np.array(np.unravel_index(number, steps))
            r, a, z = (low + (high - low) * (place + u) / steps).T
            points = np.stack([r * np.cos(a), r * np.sin(a) * np.cos(z), r * np.sin(a) * np.sin(z)], axis=1)
            nearest = np.sqrt(((points - query) ** 2).sum(axis=1).min())
            assert math.sqrt(max(found[number], 0)) <= nearest + 1e-9
            assert math.sqrt(max(found[number], 0)) == pytest.approx(nearest, abs=0.03)


@pytest.mark.parametrize("occupied", [True, False])
def test_recall_and_candidates(occupied):
    """Candidates are distinct points of the first bins of the nearest cells."""
    random = np.random.default_rng(5)
    points, queries = random.normal(0, 1, (400, 6)).astype(np.float32), random.normal(0, 1, (20, 6)).astype(np.float32)
    model = Cells(points[:8].copy(), np.full((8, 6), 0.5, dtype=np.float32))
    index = retrieval.index(points, model, 3.0)
    assert len(index.slots) > 400 and 0 < index.covered < 1
    nearest = [np.array([((points - q) ** 2).sum(axis=1).argmin()]) for q in queries]
    rows = retrieval.sweep(index, queries, nearest, [1, 3], [0.1, 1.0], occupied)
    cells, ranks = retrieval.visits(index, queries, 3)
    for row in rows:
        right, total = 0, 0
        for q in range(20):
            seen = set()
            for cell, rank in zip(cells[q, : row["probes"]], ranks[q], strict=False):
                filled = np.unique(index.slots[index.slots // retrieval.BINS == cell]) % retrieval.BINS
                budget = min(len(filled), math.ceil(row["bins"] * (len(filled) if occupied else retrieval.BINS) - 1e-9))
                for number in filled[rank[filled] < budget]:
                    seen |= set(index.members[index.slots == cell * retrieval.BINS + number].tolist())
            total += len(seen)
            right += nearest[q][0] in seen
        assert (row["recall_at_1"], row["candidates"]) == (right / 20, total / 20)
    assert rows[-1]["candidates"] > rows[0]["candidates"]
