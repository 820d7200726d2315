"""Indexes that begin empty: trained on a sample, or by themselves as they grow."""

import copy
import pickle
import threading

import brute
import garlic_ann as garlic
import numpy as np
import pytest

POINTS = 12_000


def growing(metric):
    """Points of clusters, longer and longer for inner products, and a query for every tenth of them."""
    random = np.random.default_rng(11)
    centres = random.normal(size=(24, 16)) * 3
    cluster = random.integers(24, size=POINTS + POINTS // 10)
    x = centres[cluster] + random.normal(size=(len(cluster), 16))
    if metric == "inner_product":
        x *= np.linspace(1, 20, len(x))[:, None]
    x = x.astype(np.float32)
    is_query = np.arange(len(x)) % 11 == 10
    return x[~is_query], x[is_query]


def check(index, x, queries, metric):
    """The target is kept, within a point and what chance does to so few queries, for queries like the points so far."""
    count = len(index)
    queries = queries[: max(10, count // 10)]
    distances, ids = index.search(queries, k=10, recall=0.95)
    true = np.argsort(brute.distances(queries, x[:count], metric), axis=1)[:, :10]
    found = np.array([len(set(a) & set(b)) / 10 for a, b in zip(ids.tolist(), true.tolist())])
    error = found.std() / np.sqrt(len(found))
    assert found.mean() >= 0.94 - 2 * error, (count, found.mean())
    assert (ids >= 0).all() and (ids < count).all()
    assert (np.diff(distances, axis=1) >= -1e-5).all()


KINDS = [(metric, chunk) for metric in ("euclidean", "cosine", "inner_product") for chunk in (1, 100, 5000)]


@pytest.mark.parametrize(("metric", "chunk"), KINDS)
def test_an_empty_index_keeps_its_targets_as_it_grows(metric, chunk):
    x, queries = growing(metric)
    # One by one it takes longer, and says no more after the first two trainings.
    count = 9000 if chunk == 1 else POINTS
    index = garlic.Index(16, metric=metric, seed=1)
    checked = {100, 4000, 4200, 5000, 7000, 9000, 10_000, 12_000}
    for start in range(0, count, chunk):
        index.add(x[start : min(start + chunk, count)])
        if len(index) in checked:
            check(index, x, queries, metric)
    assert len(index) == count and index.ids().tolist() == list(range(count))
    check(index, x, queries, metric)
    stats = index.stats()
    # A first chunk of more than 4,096 points is a build.
    assert stats["trainings"] >= (1 if chunk == 5000 else 2)
    assert count < 2 * stats["trained_points"] <= 2 * count
    assert stats["training"] == {"running": False, "failed": None}


def test_chunks_of_any_size_from_one_to_all(points):
    whole = garlic.Index(24, seed=1)
    x = np.concatenate([points, points + 1])
    whole.add(x)
    assert whole.to_bytes() == garlic.build(x, seed=1).to_bytes()
    assert whole.stats()["trainings"] == 0 and whole.stats()["trained_points"] == 8000
    again = [garlic.Index(24, seed=1) for _ in range(2)]
    for index in again:
        for part in np.array_split(x, 7):
            index.add(part)
    assert again[0].to_bytes() == again[1].to_bytes()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_a_sample_trains_the_index(metric):
    x, queries = growing(metric)
    index = garlic.Index(16, metric=metric, seed=1)
    assert not index.is_trained and index.stats()["trained_points"] == 0
    sample = x[np.random.default_rng(1).permutation(POINTS)[:6000]]
    index.train(sample)
    stats = index.stats()
    assert index.is_trained and len(index) == 0 and stats["cells"] > 1
    assert stats["trained_points"] == 6000 and stats["trains_at"] == 12_000
    assert (index.search(queries, k=3)[1] == -1).all()
    for start in range(0, 11_000, 1000):
        index.add(x[start : start + 1000])
    if metric != "inner_product":
        # There, vectors longer than those of the sample need another embedding.
        assert index.stats()["trainings"] == 0, "the sample still serves"
    check(index, x, queries, metric)
    index.add(x[11_000:])
    assert index.stats()["trainings"] >= 1
    check(index, x, queries, metric)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_points_unlike_the_sample_cost_work_not_recall(metric):
    x, queries = growing(metric)
    index = garlic.Index(16, metric=metric, seed=1)
    index.train(np.random.default_rng(2).normal(size=(5000, 16)) + 9)
    index.add(x)
    check(index, x, queries, metric)


def test_an_index_with_points_is_trained_by_retrain(points):
    index = garlic.Index(24, seed=1)
    with pytest.raises(ValueError, match="no vectors"):
        index.retrain()
    index.add(points[:10])
    with pytest.raises(ValueError, match="retrain"):
        index.train(points)
    index.add(points[10:])
    assert index.stats()["trained_points"] == 0 and index.stats()["reads_everything"]
    assert brute.recall(index.search(points[:50], k=10, recall=0.5)[1], points[:50], points) > 0.999
    index.remove([3999])
    index.retrain()
    stats = index.stats()
    assert stats["trainings"] == 1 and stats["trained_points"] == 3999 and stats["cells"] > 1
    # Identifiers are not given again because cells were trained.
    index.add(points[0])
    assert index.ids()[-1] == 4000
    told = index.inspect()["exhaustive"]
    assert {t["why"] for t in told} == {"4,096 points or fewer are read whole"}


@pytest.mark.parametrize("trained", [False, True])
def test_empty_indexes_are_kept_like_others(tmp_path, points, trained):
    index = garlic.Index(24, metric="cosine", seed=5, recall=0.9)
    if trained:
        index.train(points)
    index.save(tmp_path / "an.garlic")
    assert garlic.verify(tmp_path / "an.garlic")["points"] == 0
    x = np.concatenate([points, points * 1.5 + 1])
    for again in (
        index,
        index.copy(),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
        garlic.from_bytes(index.to_bytes()),
        garlic.open(tmp_path / "an.garlic"),
        garlic.open(tmp_path / "an.garlic", mmap=False),
        garlic.Live.create(tmp_path / "live", index).snapshot(),
        garlic.Live.open(tmp_path / "live", read_only=True).snapshot(),
    ):
        assert len(again) == 0 and again.metric == "cosine" and again.is_trained == trained
        assert again.range_search(points[:2], 0.5)[0].tolist() == [0, 0, 0]
        config = again.inspect()["config"]
        assert config["seed"] == 5 and config["recall"] == 0.9
        assert again.drift()["built"] == (4000 if trained else 0)
        again.compact()
        again.recalibrate()
        assert again.remove([1]) == 0
        with pytest.raises(KeyError):
            again.update(points[:1], [0])
        again.add(x)
        assert len(again) == 8000 and again.stats()["trained_points"] == 8000
    assert len(pickle.loads(pickle.dumps(garlic.Index(3)))) == 0


def test_the_published_method_is_built_by_its_first_add(points):
    index = garlic.Index(24, preset="paper", initial_cells=8, epochs=3)
    index.train(points)
    assert index.is_trained and len(index) == 0
    with pytest.raises(ValueError, match="no points yet"):
        index.stats()
    index.add(points)
    assert len(index) == 4000
    spilled = garlic.Index(24, spill=1.2)
    spilled.add(points[:500])
    assert len(spilled) == 500


def test_threads_that_add_chunks_of_all_sizes(points):
    x = np.concatenate([points, points + 1])
    index = garlic.Index(24, seed=1)
    parts = [x[:5000], x[5000:5001], x[5001:5100], *np.array_split(x[5100:], 5)]
    threads = [threading.Thread(target=index.add, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 8000 and index.ids().tolist() == list(range(8000))
    assert (index.search(x, k=1, exact=True)[0] == 0).all()


def test_a_directory_begins_empty_and_trains_beside_its_writers(tmp_path):
    x, queries = growing("euclidean")
    place = tmp_path / "index"
    with garlic.Live.create(place, dim=16, seed=1, recall=0.9) as live:
        assert len(live) == 0 and (live.search(queries, k=2)[1] == -1).all()
        for start in range(0, POINTS, 500):
            live.add(x[start : start + 500])
            if start in (4000, 5000, 9000):
                # Whether the training has ended or not.
                check(live, x, queries, "euclidean")
        live.wait()
        assert live.training() == {"running": False, "failed": None}
        stats = live.stats()
        assert stats["trainings"] >= 1 and stats["trained_points"] > 4096
        check(live, x, queries, "euclidean")
        wanted = live.search(queries, k=10, exact=True)[1]
    with garlic.Live.open(place) as live:
        live.wait()
        assert len(live) == POINTS and live.inspect()["config"]["recall"] == 0.9
        np.testing.assert_array_equal(live.search(queries, k=10, exact=True)[1], wanted)
        check(live, x, queries, "euclidean")
        before = live.stats()["trainings"]
        live.retrain()
        assert live.stats()["trainings"] == before + 1
        assert live.stats()["trained_points"] == POINTS
    with garlic.Live.open(place, read_only=True) as live:
        assert live.stats()["trained_points"] == POINTS
        check(live, x, queries, "euclidean")


def test_closing_gives_a_training_up(tmp_path):
    x, queries = growing("cosine")
    live = garlic.Live.create(tmp_path / "index", dim=16, metric="cosine")
    live.add(x)
    live.close()
    with pytest.raises(ValueError, match="closed"):
        live.wait()
    with garlic.Live.open(tmp_path / "index", read_only=True) as live:
        check(live, x, queries, "cosine")
    with garlic.Live.open(tmp_path / "index") as live:
        live.wait()
        assert live.stats()["trained_points"] == POINTS
        check(live, x, queries, "cosine")


def test_what_a_directory_is_made_of(tmp_path, points):
    place = tmp_path / "index"
    with pytest.raises(TypeError, match="dim="):
        garlic.Live.create(place)
    for more in ({"dim": 24}, {"metric": "cosine"}, {"seed": 3}, {"recall": 0.9}):
        with pytest.raises(TypeError, match="its own"):
            garlic.Live.create(place, garlic.build(points[:100]), **more)
    with pytest.raises(ValueError, match="dimension"):
        garlic.Live.create(place, dim=0)
    with pytest.raises(ValueError, match="no points yet"):
        garlic.Live.create(place, dim=24, preset="paper")
    assert not place.exists()
