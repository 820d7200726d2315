"""Pictures: what they show is what is in the index."""

import garlic_ann as garlic
import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from garlic_ann import plot
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def close():
    yield
    pyplot.close("all")


def test_recall_grows_with_work(built_of_many, queries):
    ax = plot.recall(built_of_many, queries, k=10, targets=(0.7, 0.9, 0.99))
    exact, work = (line.get_xydata() for line in ax.get_lines())
    assert (np.diff(exact[:, 0]) >= 0).all() and exact[-1, 0] > 0.97
    assert (np.diff(exact[:, 1]) > 0).all() and (work[:, 1] > exact[:, 1]).all()


def test_ellipses_lie_where_the_points_are(points):
    # Two clusters, one long in the first direction, far apart in the second.
    random = np.random.default_rng(1)
    x = random.normal(size=(2000, 6)) * [10, 1, 0.1, 0.1, 0.1, 0.1]
    x[1000:, 1] += 100
    index = garlic.build(x, cells=2, seed=1)
    ax = plot.cells(index, deviations=2)
    assert len(ax.patches) == 2 and len(ax.collections[0].get_offsets()) == 2000
    for ellipse in ax.patches:
        angle = np.radians(ellipse.angle)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        local = (np.asarray(ax.collections[0].get_offsets()) - np.array(ellipse.center)) @ turn.T
        inside = ((2 * local / [ellipse.width, ellipse.height]) ** 2).sum(axis=1) <= 1
        # Two deviations of a plane Gaussian hold 86 % of it; each has half of the points.
        assert 0.36 < inside.mean() < 0.5


def test_sizes_and_spectra(built):
    heights = [bar.get_height() for bar in plot.sizes(built).patches]
    assert sum(heights) == 4000 and heights == sorted(heights, reverse=True)
    middle = plot.spectra(built).get_lines()[0].get_ydata()
    assert (np.diff(middle) <= 0).all() and middle[0] > 0


def test_given_axes_and_other_metrics(points, queries):
    _, ax = pyplot.subplots()
    index = garlic.build(points[:500], metric="inner_product")
    assert plot.cells(index, ax=ax) is ax and not ax.collections
    paper = garlic.build(points[:500], preset="paper", epochs=2, initial_cells=5)
    assert sum(bar.get_height() for bar in plot.sizes(paper).patches) >= 400
    with pytest.raises(ValueError, match="published method"):
        plot.cells(paper)
