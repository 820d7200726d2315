"""Wrong input: the documented exception, never a crash."""

import garlic_ann as garlic
import numpy as np
import pytest


def test_builds():
    cases = [
        (np.zeros((0, 4)), "no vectors"),
        (np.zeros((4, 0)), "dimension given is 0"),
        ([[1, 2], [3]], "not equally long"),
        ([["a", "b"]], "numbers are needed"),
        (np.zeros((2, 2), complex), "numbers are needed"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([[1, np.nan]]), "NaN at coordinate 1"),
        (np.array([[1, np.inf]]), "inf at coordinate 1"),
        (np.array([[1, 1e300]]), "inf at coordinate 1"),
        (np.array([[1, 1e20]]), "squared distances would overflow"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            garlic.build(given)
    with pytest.raises(ValueError, match="vector 1 is zero"):
        garlic.build([[1, 2], [0, 0]], metric="cosine")


def test_settings():
    for settings, message in [
        ({"metric": "manhattan"}, "the metrics are: euclidean, cosine, inner_product"),
        ({"preset": "fast"}, "the presets are: default, paper"),
        ({"seed": -1}, "seed"),
        ({"cels": 5}, "did you mean `cells`"),
        ({"cells": "many"}, "cells"),
        ({"code_bits": 5}, "must be 8, 4 or 0"),
        ({"recall": 1.0}, "above 0 and below 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            garlic.Index(4, **settings)
        with pytest.raises(ValueError, match=message):
            garlic.build(np.eye(4), **settings)
    for dim in (0, -1, 2.5, True, "4"):
        with pytest.raises(ValueError, match="dimension"):
            garlic.Index(dim)
    with pytest.raises(ValueError, match="threads"):
        garlic.build(np.eye(4), threads=0)


def test_settings_take_python_values():
    x = np.random.default_rng(1).normal(size=(500, 4))
    index = garlic.build(x, cells=np.int64(7), bin_size=10.0, store="f16")
    config = index.inspect()["config"]
    assert (config["cells"], config["bin_size"], index.stats()["stored_as"]) == (7, 10, "f16")
    quick = {"preset": "paper", "epochs": 2, "initial_cells": 4}
    config = garlic.build(x, **quick, rotate=False, mean_rate=(1e-6, 0.01, 0.001)).inspect()["config"]
    assert not config["rotate"] and config["mean_rate"] == [1e-6, 0.01, 0.001]


def test_settings_of_the_other_preset():
    x = np.random.default_rng(1).normal(size=(50, 4))
    with pytest.raises(ValueError, match="`tau`: belongs to preset paper"):
        garlic.build(x, tau=2.0)
    with pytest.raises(ValueError, match="`bin_size`: belongs to preset default"):
        garlic.build(x, preset="paper", bin_size=10)
    with pytest.raises(ValueError, match="unknown configuration key `gradient_epochs`"):
        garlic.build(x, gradient_epochs=1)


def test_what_the_published_method_cannot_do():
    x = np.random.default_rng(1).normal(size=(200, 4))
    index = garlic.build(x, preset="paper", epochs=2, initial_cells=4)
    for call in (index.drift, index.retrain, index.compact):
        with pytest.raises(ValueError, match="neither tuned nor trained again"):
            call()
    with pytest.raises(ValueError, match="cannot be empty"):
        index.remove(range(200))
    with pytest.raises(ValueError, match="is there already"):
        index.add(x[:1], [7])


def test_options_of_searches_are_keywords(built, queries):
    for call in (
        lambda: built.search(queries, 10, 0.95),
        lambda: built.range_search(queries, 1.0, 0.9),
    ):
        with pytest.raises(TypeError, match="positional argument"):
            call()
    assert built.search(queries, 3)[1].shape == (len(queries), 3)


def test_the_old_name_of_return_stats(built, queries):
    new = built.search(queries, return_stats=True)[2]
    with pytest.warns(DeprecationWarning, match="return_stats"):
        assert built.search(queries, return_work=True)[2] == new
    with pytest.warns(DeprecationWarning):
        assert len(built.search(queries, return_work=False)) == 2


def test_searches(built, queries):
    for arguments, message in [
        ({"k": 0}, "`k` is 0: must be at least 1"),
        ({"k": -3}, "`k` is -3"),
        ({"recall": 1.0}, "`recall` is 1"),
        ({"recall": float("nan")}, "`recall` is NaN"),
        ({"probes": 0}, "`probes` is 0"),
        ({"bins": 1.5}, "`bins` is 1.5"),
        ({"rerank": -1}, "`rerank` is -1"),
        ({"threads": 0}, "`threads` is 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            built.search(queries, **arguments)
    with pytest.raises(TypeError):
        built.search(queries, k=2.5)
    with pytest.raises(MemoryError):
        built.search(queries, k=2**55)
    with pytest.raises(ValueError, match="built for dimension 24, the query has 3"):
        built.search([1, 2, 3])
    with pytest.raises(ValueError, match="query 1 has the value NaN"):
        built.search(np.stack([queries[0], queries[0] * np.nan]))
    with pytest.raises(ValueError, match="radius"):
        built.range_search(queries, float("nan"))
    with pytest.raises(ValueError, match="dimension 5, the query has 3"):
        garlic.Index(5).search([1, 2, 3])
    with pytest.raises(ValueError, match="no points yet"):
        garlic.Index(5, preset="paper").save("nowhere")
    with pytest.raises(ValueError, match="`threads` is 0"):
        garlic.Index(5, threads=0)


def test_files(tmp_path, built, queries):
    with pytest.raises(FileNotFoundError, match="missing.garlic: No such file") as caught:
        garlic.open(tmp_path / "missing.garlic")
    assert caught.value.errno == 2
    with pytest.raises(OSError, match="is not a file"):
        garlic.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        built.save(tmp_path / "no" / "place.garlic")
    path = tmp_path / "an.garlic"
    path.write_bytes(b"something else, long enough to have a header" * 10)
    with pytest.raises(garlic.FormatError, match="not a GARLIC index"):
        garlic.open(path)
    with pytest.raises(ValueError):
        garlic.from_bytes(b"")
    data = bytearray(built.to_bytes())
    with pytest.raises(garlic.FormatError, match="truncated"):
        garlic.from_bytes(bytes(data[:-1]))
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(garlic.FormatError, match="checksum"):
        garlic.open(path, mmap=False)
    with pytest.raises(garlic.FormatError, match="checksum"):
        garlic.verify(path)
    garlic.open(path).search(queries)


def test_a_file_that_is_moved_or_deleted_stays_open(tmp_path, built, queries):
    path = tmp_path / "an.garlic"
    built.save(path)
    wanted = built.search(queries)[1]
    index = garlic.open(path)
    path.rename(tmp_path / "other.garlic")
    np.testing.assert_array_equal(index.search(queries)[1], wanted)
    (tmp_path / "other.garlic").unlink()
    np.testing.assert_array_equal(index.search(queries)[1], wanted)
    index.save(path)
    assert garlic.verify(path)["points"] == len(index)
