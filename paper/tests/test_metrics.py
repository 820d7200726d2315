"""Metrics against numbers worked out by hand."""

import numpy as np
import pytest

from paper.metrics import evaluate, percentile

INF = np.inf
TRUE = np.arange(1.0, 11.0)


def one(found, true=TRUE):
    return evaluate(np.array([found], float), np.array([true], float))


def test_perfect_answers():
    result = one(TRUE)
    for name in ("recall_at_1", "recall_at_10", "precision_at_10", "epsilon_recall_1pct", "epsilon_recall_10pct"):
        assert result[name] == 1
    assert result["r95"] == result["r99"] == 1
    assert result["relative_error"] == 0


def test_recall_counts_by_distance():
    # The true tenth is 10: six are within it.
    result = one([1, 2, 3, 4, 5, 10 * (1 + 5e-7), 10.05, 10.9, 11, 11.01])
    assert result["recall_at_10"] == pytest.approx(0.6)


def test_epsilon_recall_and_relative_error_are_of_the_nearest():
    # The true nearest is at 1: found, missed by half a percent, by 5 % and by half.
    found = np.tile(TRUE, (4, 1))
    found[:, 0] = [1, 1.005, 1.05, 1.5]
    result = evaluate(found, np.tile(TRUE, (4, 1)))
    assert result["recall_at_1"] == pytest.approx(0.25)
    assert result["epsilon_recall_1pct"] == pytest.approx(0.5)
    assert result["epsilon_recall_10pct"] == pytest.approx(0.75)
    assert result["relative_error"] == pytest.approx((0.005 + 0.05 + 0.5) / 4)


def test_precision_is_out_of_what_was_returned():
    result = one([1, 2, 11, 12] + [INF] * 6)
    assert result["recall_at_10"] == pytest.approx(0.2)
    assert result["precision_at_10"] == pytest.approx(0.5)


def test_fewer_columns_than_k_are_missing_answers():
    result = one([1, 2])
    assert result["recall_at_10"] == pytest.approx(0.2)
    assert result["precision_at_10"] == 1


def test_nothing_returned():
    result = one([INF] * 10)
    assert result["recall_at_1"] == result["recall_at_10"] == result["precision_at_10"] == 0
    assert result["r95"] is None and result["r99"] is None and result["relative_error"] is None


def test_the_nearest_is_the_one_named_first():
    swapped = [2, 1, 3, 4, 5, 6, 7, 8, 9, 10]
    result = one(swapped)
    assert result["recall_at_1"] == 0
    assert result["relative_error"] == 1
    assert result["r99"] == 2


def test_true_distances_of_zero():
    true = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert one(true, true)["r99"] == 1
    assert one(true, true)["relative_error"] == 0
    missed = one([0.5, 0.5, 1, 1, 1, 1, 1, 1, 2, 2], true)
    assert missed["r99"] is None
    assert missed["relative_error"] is None
    assert missed["epsilon_recall_10pct"] == 0


def test_percentiles_are_nearest_ranks():
    values = np.arange(1.0, 21.0)
    assert percentile(values, 0.95) == 19
    assert percentile(values, 0.99) == 20
    assert percentile(np.arange(1.0, 101.0), 0.95) == 95
    assert percentile(np.array([7.0]), 0.95) == 7


def test_an_infinite_ratio_beyond_the_percentile_does_not_matter():
    found = np.tile(TRUE, (100, 1))
    found[:3] = INF
    result = evaluate(found, np.tile(TRUE, (100, 1)))
    assert result["r95"] == 1
    assert result["r99"] is None
    assert result["recall_at_1"] == pytest.approx(0.97)


@pytest.mark.parametrize("found, true", [((2, 10), (3, 10)), ((2, 10), (2, 5)), ((0, 10), (0, 10))])
def test_shapes_that_do_not_fit_are_refused(found, true):
    with pytest.raises(ValueError):
        evaluate(np.ones(found), np.ones(true))
