"""Names of other libraries, options, pickles, notebooks, warnings, Ctrl-C."""

import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import typing
import warnings

import garlic_ann as garlic
import numpy as np
import pytest
from garlic_ann import _options


def test_short_names_of_metrics(points):
    for short, name in {"l2": "euclidean", "cos": "cosine", "ip": "inner_product", "dot": "inner_product"}.items():
        index = garlic.build(points[:200], metric=short)
        assert index.metric == name
        assert index.to_bytes() == garlic.build(points[:200], metric=name).to_bytes()
        assert garlic.Index(24, metric=short).metric == name


def test_names_of_other_libraries(points, built, queries):
    index = garlic.Index(24)
    index.add_with_ids(points[:50], range(100, 150))
    assert (index.ntotal, index.d) == (50, 24) and 149 in index
    distances, ids = built.search(queries, 5)
    for threads in (1, -1):
        labels, far = built.knn_query(queries, k=5, num_threads=threads)
        np.testing.assert_array_equal(labels, ids)
        np.testing.assert_array_equal(far, distances)


def test_parameters_are_typed():
    for preset, typed in (("default", _options.DefaultParameters), ("paper", _options.PaperParameters)):
        table = garlic.parameters(preset)
        assert set(typing.get_type_hints(typed)) | {"metric", "seed"} == set(table) - {"recall"}
        for name, entry in table.items():
            assert entry["about"] and set(entry) == {"group", "default", "about", "rule"}, name
            hint = typing.get_type_hints(typed).get(name)
            if typing.get_origin(hint) is typing.Literal:
                for value in typing.get_args(hint):
                    garlic.Index(8, preset=preset, **{name: value})
    for metric in typing.get_args(_options.Metric):
        garlic.Index(8, metric=metric)
    with pytest.raises(ValueError, match="the presets are"):
        garlic.parameters("fast")


def test_a_mapped_index_is_pickled_by_its_path(tmp_path, built, queries):
    path = tmp_path / "an.garlic"
    built.save(path)
    index = garlic.open(path)
    small = pickle.dumps(index)
    assert len(small) < 1000 and b"an.garlic" in small
    again = pickle.loads(small)
    assert again.stats()["mapped_bytes"] > 0 and pickle.dumps(again) == small
    np.testing.assert_array_equal(again.search(queries)[1], built.search(queries)[1])
    # Copies, changed indexes and those that were read do not need the file.
    for other in (index.copy(), garlic.open(path, mmap=False)):
        assert len(pickle.dumps(other)) > 10_000
    again.remove([3])
    assert len(pickle.loads(pickle.dumps(again))) == len(built) - 1
    # Nor do those whose file is another one.
    garlic.build(np.eye(24)).save(path)
    whole = pickle.dumps(index)
    assert len(whole) > 10_000 and len(pickle.loads(whole)) == len(built)
    with pytest.raises(ValueError, match="an.garlic: has changed since"):
        pickle.loads(small)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(small)


def test_notebooks(built, tmp_path):
    page = built._repr_html_()
    assert "4,000 of dimension 24" in page and page.count("<rect") >= 1
    from xml.etree import ElementTree

    ElementTree.fromstring(page)
    assert garlic.Index(3, preset="paper")._repr_html_() is None
    with garlic.Live.create(tmp_path / "live", dim=3) as live:
        assert "0 of dimension 3" in live._repr_html_()
    assert live._repr_html_() is None


def test_nothing_to_find(built, queries):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distances, ids = garlic.Index(24).search(queries, 3)
        assert (ids == -1).all() and np.isinf(distances).all()
        assert garlic.Index(24).range_search(queries, 1.0)[0].tolist() == [0] * (len(queries) + 1)
        built.search(queries, 3, filter=[7])
    for nothing in ([], [10**9], lambda id: False, np.zeros(4000, bool)):
        with pytest.warns(UserWarning, match="no point that the filter allows"):
            distances, ids = built.search(queries, 3, filter=nothing)
        assert (ids == -1).all() and np.isinf(distances).all()


def test_targets_that_read_everything(many_points):
    index = garlic.build(many_points, calibration_queries=0)
    with pytest.warns(UserWarning, match=r"recall=0\.97 reads all points"):
        index.search(many_points[:3], 5, recall=0.97)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(many_points[:3], 5, recall=0.97)
        index.search(many_points[:3], 5, exact=True)
        garlic.build(many_points[:500]).search(many_points[:3], 5, recall=0.999)


def test_errors_of_a_long_batch_count_from_its_beginning(built, points):
    queries = np.tile(points[:40], (3, 1))
    queries[100, 2] = np.nan
    with pytest.raises(ValueError, match="query 100 has the value NaN at coordinate 2"):
        built.search(queries)


LONG = """
    import os, signal, sys, threading, time
    import numpy as np, garlic_ann as garlic
    signal.signal(signal.SIGINT, signal.default_int_handler)
    x = np.random.default_rng(1).normal(size=(30_000, 48)).astype(np.float32)
    index = garlic.build(x, graph="off", calibration_queries=1800)
    many = np.tile(x, (40, 1))
    works = {
        "exact": lambda: index.search(many, 10, exact=True, threads=int(sys.argv[2])),
        "recall": lambda: index.search(many, 10, recall=0.99, threads=int(sys.argv[2])),
        "range": lambda: index.range_search(many, 5.0, threads=int(sys.argv[2])),
        "recalibrate": index.recalibrate,
        "retrain": index.retrain,
        "add": lambda: index.add(np.tile(x, (10, 1))),
    }
    before = len(index)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        works[sys.argv[1]]()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 2.3)
    assert index.search(x[5], 1, exact=True)[1][0] == 5
"""


@pytest.mark.parametrize(
    ("work", "threads"),
    [("exact", 1), ("exact", 2), ("recall", 1), ("range", 1), ("recalibrate", 1), ("retrain", 1), ("add", 1)],
)
def test_ctrl_c_ends_long_work(work, threads):
    command = [sys.executable, "-c", textwrap.dedent(LONG), work, str(threads)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout == "interrupted True\n", ran.stdout + ran.stderr


def test_ctrl_c_without_a_handler_ends_the_program():
    script = textwrap.dedent(LONG).replace("except KeyboardInterrupt", "except ZeroDivisionError")
    ran = subprocess.run([sys.executable, "-c", script, "exact", "1"], capture_output=True, text=True)
    assert ran.returncode == -signal.SIGINT and re.search("^KeyboardInterrupt", ran.stderr, re.M)
