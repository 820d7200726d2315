"""Sharded indexes in one process: format, routing, recall over all shards, append and compact, and what goes wrong."""

import json
import os
import shutil
import subprocess
import sys

import garlic_ann as garlic
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from garlic_ann import sharded
from shards import brute, clusters, parquet, recall, shard_bytes, table

POINTS = clusters(9000)
QUERIES = clusters(200, seed=9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An index of `POINTS` that no test changes."""
    return sharded.build(POINTS, tmp_path_factory.mktemp("sharded") / "index", shards=6, seed=1)


@pytest.fixture()
def copy(whole, tmp_path):
    return shutil.copytree(whole.path, tmp_path / "copy")


def test_every_point_is_in_one_shard_and_shards_hold_whole_cells(whole):
    manifest = whole.manifest
    assert (len(whole), whole.dim, whole.metric, len(manifest.shards)) == (9000, 16, "euclidean", 6)
    assert sorted(cell for shard in manifest.shards for cell in shard.cells) == list(range(len(manifest.cell_shards())))
    ids = [garlic.open(f"{whole.path}/{shard.segments[0].file}").ids() for shard in manifest.shards]
    assert np.array_equal(np.sort(np.concatenate(ids)), np.arange(9000))
    model = garlic.open(f"{whole.path}/{manifest.model.file}")
    cells, radii = garlic._garlic.assign(model._have(), POINTS)
    for shard, those in zip(manifest.shards, ids):
        assert set(cells[those]) <= set(shard.cells)
    assert max(map(len, ids)) < 2 * min(map(len, ids))


@pytest.mark.parametrize("target", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("k", [1, 10])
def test_recall_targets_hold_over_all_shards(whole, k, target):
    truth = brute(POINTS, QUERIES, k)
    _, ids = whole.search(QUERIES, k, recall=target)
    # Queries are another sample than the held-out points, hence the room of two standard errors.
    assert recall(ids, truth) >= target - 0.02
    calibration = whole.manifest.calibration
    at = calibration.neighbors.index(k), calibration.targets.index(target)
    assert calibration.measured[at[0]][at[1]] >= target


def test_queries_go_only_to_shards_of_their_cells(whole):
    looked = whole.shards_of(QUERIES, 1, recall=0.9)
    assert looked.any(axis=1).all()
    assert looked.mean() < 0.7
    _, ids = whole.search(QUERIES, 1, recall=0.9)
    held = {i: number for number, shard in enumerate(whole.manifest.shards)
            for i in garlic.open(f"{whole.path}/{shard.segments[0].file}").ids().tolist()}
    assert all(looked[row, held[i]] for row, i in enumerate(ids[:, 0].tolist()))
    assert whole.shards_of(QUERIES, 1, recall=0.995).all()


def test_exact_search_equals_brute_force_and_one_index(whole):
    distances, ids = whole.search(QUERIES, 10, exact=True)
    assert np.array_equal(ids, brute(POINTS, QUERIES, 10))
    one = garlic.build(POINTS, seed=1).search(QUERIES, 10, exact=True)
    assert np.array_equal(one[1], ids) and np.array_equal(one[0], distances)
    single = whole.search(QUERIES[0], 10, exact=True)
    assert np.array_equal(single[1], ids[0]) and single[0].shape == (10,)


def test_fewer_points_than_neighbours(tmp_path):
    index = sharded.build(POINTS[:5], tmp_path / "index", shards=2, cells=2)
    distances, ids = index.search(POINTS[:3], 8)
    assert ids[:, 0].tolist() == [0, 1, 2] and (ids[:, 5:] == -1).all() and np.isinf(distances[:, 5:]).all()


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_other_metrics(tmp_path, metric):
    index = sharded.build(POINTS[:4000], tmp_path / "index", shards=4, metric=metric)
    one = garlic.build(POINTS[:4000], metric=metric).search(QUERIES, 10, exact=True)
    assert recall(index.search(QUERIES, 10, exact=True)[1], one[1]) > 0.999
    assert recall(index.search(QUERIES, 10, recall=0.95)[1], one[1]) >= 0.93


def test_names_columns_and_filters(tmp_path):
    names = [f"page {i}" for i in range(3000)]
    data = table(POINTS[:3000], pa.array(names), year=pa.array(np.arange(3000) % 100), lang=pa.array(["en", "de", None] * 1000))
    index = sharded.build(parquet(tmp_path / "data", data), tmp_path / "index", ids="id", shards=4)
    assert index.columns == ["year", "lang"]
    distances, ids, columns = index.search(QUERIES, 5, filter="year < 10 AND lang = 'de'", columns=["year", "lang"], exact=True)
    allowed = np.flatnonzero((np.arange(3000) % 100 < 10) & (np.arange(3000) % 3 == 1))
    assert np.array_equal(ids, np.array(names, object)[allowed[brute(POINTS[allowed], QUERIES, 5)]])
    numbers = np.array([[int(name[5:]) for name in row] for row in ids])
    assert np.array_equal(columns["year"], numbers % 100) and set(columns["lang"].ravel()) == {"de"}
    assert recall(index.search(QUERIES, 5, filter="year < 10 AND lang = 'de'")[1], ids) >= 0.93
    assert index.search(QUERIES[:1], 2, filter=["page 7", "page 8"])[1][0].tolist() in (["page 7", "page 8"], ["page 8", "page 7"])
    assert index.contains(["page 1", "x"]).tolist() == [True, False]
    assert np.array_equal(index.get(["page 5", "page 2"]), POINTS[[5, 2]])
    with pytest.raises(KeyError, match="nobody"):
        index.get(["page 5", "nobody"])
    with pytest.raises(TypeError, match="expression"):
        index.search(QUERIES, 5, filter=lambda id: True)


def test_a_second_build_writes_the_same_bytes(whole, tmp_path):
    again = sharded.build(parquet(tmp_path / "data", table(POINTS), files=7, rows=333), tmp_path / "index", shards=6, seed=1, threads=2)
    assert shard_bytes(again.path) == shard_bytes(whole.path)


def test_other_data_or_parameters_have_another_fingerprint(whole, tmp_path):
    other = POINTS.copy()
    other[4321, 3] += 1e-3
    for number, (data, options) in enumerate([(other, {"seed": 1}), (POINTS, {"seed": 2}), (POINTS, {"seed": 1, "bin_size": 40})]):
        made = sharded.build(data, tmp_path / str(number), shards=6, **options)
        assert made.manifest.fingerprint != whole.manifest.fingerprint


def test_append_and_compact_give_the_index_of_all_points(tmp_path):
    data = table(POINTS, year=pa.array(np.arange(9000)))
    index = sharded.build(data.slice(0, 6000), tmp_path / "index", shards=5)
    index = sharded.append(data.slice(6000, 2000), index.path)
    index = sharded.append(data.slice(8000), index.path)
    assert (len(index), index.manifest.generation, index.drift()["segments"]) == (9000, 2, 15)
    truth = brute(POINTS, QUERIES, 10)
    distances, ids, columns = index.search(QUERIES, 10, exact=True, columns=["year"])
    assert np.array_equal(ids, truth) and np.array_equal(columns["year"], truth)
    assert recall(index.search(QUERIES, 10, recall=0.95)[1], truth) >= 0.93
    assert not index.drift()["retrain"] and 0.9 < index.drift()["spread"] < 1.1
    before = sharded.open(index.path)
    compacted = sharded.compact(index.path)
    assert (len(compacted), compacted.drift()["segments"], compacted.manifest.generation) == (9000, 5, 3)
    assert np.array_equal(compacted.search(QUERIES, 10, exact=True)[1], truth)
    # A reader of the former index goes on until it reloads.
    assert np.array_equal(before.search(QUERIES, 10, exact=True)[1], truth)
    assert before.reload() and not before.reload() and before.manifest.generation == 3
    assert sharded.verify(index.path)["points"] == 9000
    gone = sharded.clean(index.path)
    assert len(gone) == 17 and sharded.verify(index.path)["segments"] == 5


def test_compact_equals_a_build_of_the_same_model(tmp_path):
    """The segment that a merge writes has the bytes that a build of its points with its cells has."""
    some = POINTS[:3000]
    index = sharded.build(some[:2000], tmp_path / "index", shards=2)
    sharded.append(some[2000:], index.path)
    compacted = sharded.compact(index.path)
    model = garlic.open(f"{index.path}/{compacted.manifest.model.file}")
    cells, _ = garlic._garlic.assign(model._have(), some)
    for shard in compacted.manifest.shards:
        own = np.flatnonzero(np.isin(cells, shard.cells))
        expected = garlic.build(some[own], own, partition=cells[own], recall=0.95)
        assert open(f"{index.path}/{shard.segments[0].file}", "rb").read() == expected.to_bytes()


def test_drift_says_when_to_train_again(tmp_path):
    index = sharded.build(POINTS[:1500], tmp_path / "index", shards=2)
    index = sharded.append(POINTS[:500] + 30, index.path)
    assert index.drift()["spread"] > 2 and index.drift()["retrain"]
    doubled = sharded.build(POINTS[:1500], tmp_path / "other", shards=2)
    assert sharded.append(POINTS[1500:3000], doubled.path).drift()["retrain"]


def test_append_takes_only_new_identifiers_and_the_same_columns(tmp_path):
    ids = pa.array(np.arange(2000) * 3)
    data = table(POINTS[:2000], ids, year=pa.array(np.arange(2000)))
    index = sharded.build(data, tmp_path / "index", ids="id", shards=2)
    before = shard_bytes(index.path)
    with pytest.raises(ValueError, match="identifier 30 exists"):
        sharded.append(table(POINTS[:3], pa.array([1, 30, 2]), year=pa.array([1, 2, 3])), index.path, ids="id")
    with pytest.raises(ValueError, match="`year` is of type string"):
        sharded.append(table(POINTS[:1], pa.array([1]), year=pa.array(["x"])), index.path, ids="id")
    with pytest.raises(ValueError, match="no column `year`"):
        sharded.append(table(POINTS[:1], pa.array([1])), index.path, ids="id")
    with pytest.raises(ValueError, match="dimension 5"):
        sharded.append(table(POINTS[:1, :5].copy(), year=pa.array([1])), index.path)
    assert shard_bytes(index.path) == before
    longer = sharded.append(table(POINTS[2000:2010], year=pa.array(np.arange(10))), index.path)
    assert longer.contains([5997, 5998, 6007, 6008]).tolist() == [True, True, True, False]


def test_of_two_changes_at_once_the_second_fails(copy):
    from garlic_ann.sharded import _manifest

    manifest, before = _manifest.read(copy)
    sharded.append(POINTS[:50] + 1, copy)
    after = shard_bytes(copy)
    with pytest.raises(RuntimeError, match="meanwhile"):
        _manifest.write(copy, manifest.with_changes(next_id=1), before)
    assert shard_bytes(copy) == after


def test_a_lost_or_damaged_file_is_named(copy):
    manifest = sharded.open(copy).manifest
    lost, damaged = manifest.shards[2].segments[0].file, manifest.shards[4].segments[0].file
    opened = sharded.open(copy)
    with open(f"{copy}/{damaged}", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(garlic.FormatError, match=damaged):
        sharded.verify(copy)
    with open(f"{copy}/{damaged}", "r+b") as file:
        file.truncate(4000)
    with pytest.raises(garlic.FormatError, match=f"{damaged}.*4000 bytes"):
        sharded.open(copy)
    os.unlink(f"{copy}/{lost}")
    with pytest.raises(FileNotFoundError, match=f"{lost}.*lost"):
        sharded.open(copy)
    with pytest.raises(FileNotFoundError, match=lost):
        opened.search(QUERIES, 10, exact=True)


@pytest.mark.parametrize("content, message", [("{", "damaged"), ('{"format": "x"}', "not the manifest"),
                                              ('{"format": "garlic-shards", "version": 7}', "version 7"), ("[]", "damaged")])
def test_a_wrong_manifest_is_named(copy, content, message):
    with open(f"{copy}/manifest.json", "w") as file:
        file.write(content)
    with pytest.raises(garlic.FormatError, match=f"manifest.json.*{message}"):
        sharded.open(copy)


def test_a_manifest_cannot_name_files_elsewhere(copy):
    path = f"{copy}/manifest.json"
    body = json.load(open(path))
    body["shards"][0]["segments"][0]["file"] = "../secret"
    json.dump(body, open(path, "w"))
    with pytest.raises(garlic.FormatError, match="outside"):
        sharded.open(copy)


def test_without_manifest_there_is_no_index(tmp_path):
    with pytest.raises(FileNotFoundError, match="no sharded index"):
        sharded.open(tmp_path)


def test_resume_uses_finished_shards(copy):
    kept = sharded.open(copy)
    files = [shard.segments[0].file for shard in kept.manifest.shards]
    before = {name: (os.stat(f"{copy}/{name}").st_ino, data) for name, data in shard_bytes(copy).items()}
    os.unlink(f"{copy}/manifest.json")
    os.unlink(f"{copy}/{files[1]}")
    with open(f"{copy}/{files[3]}", "r+b") as file:
        file.truncate(3000)
    again = sharded.build(POINTS, copy, shards=6, seed=1, resume=True)
    assert again.manifest == kept.manifest
    after = {name: (os.stat(f"{copy}/{name}").st_ino, data) for name, data in shard_bytes(copy).items()}
    assert {name: data for name, (_, data) in after.items()} == {name: data for name, (_, data) in before.items()}
    rewritten = {name for name in files if after[name][0] != before[name][0]}
    assert rewritten == {files[1], files[3]}


def test_a_killed_build_leaves_only_whole_files_and_can_be_resumed(tmp_path, whole):
    """The process ends in the middle of the shards, as by a power cut."""
    code = """
import os, sys
import numpy as np
from garlic_ann import sharded
from garlic_ann.sharded import _steps
write, written = _steps.write_points, []
def dying(place, file, *rest):
    if len(written) == 3:
        os._exit(9)
    written.append(file)
    return write(place, file, *rest)
_steps.write_points = dying
sharded.build(np.load(sys.argv[1]), sys.argv[2], shards=6, seed=1)
"""
    np.save(tmp_path / "x.npy", POINTS)
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "x.npy", tmp_path / "index"])
    assert ran.returncode == 9
    left = os.listdir(tmp_path / "index")
    assert "manifest.json" not in left and len([n for n in left if n.endswith(".garlic")]) == 4
    with pytest.raises(FileNotFoundError):
        sharded.open(tmp_path / "index")
    sharded.build(POINTS, tmp_path / "index", shards=6, seed=1, resume=True)
    assert shard_bytes(tmp_path / "index") == shard_bytes(whole.path)


def test_two_builds_at_one_place_do_not_mix(copy, whole):
    """Shards of another build lie beside those of this one; the manifest names only its own."""
    other = sharded.build(POINTS[:5000], copy, shards=4)
    assert len(other) == 5000 and sharded.verify(copy)["points"] == 5000
    assert {name[:16] for name in (s.file for s in other.manifest.segments())} == {other.manifest.fingerprint}
    back = sharded.build(POINTS, copy, shards=6, seed=1, resume=True)
    assert back.manifest == whole.manifest


BAD = {
    "ragged": (pa.array([[1.0, 2.0], [1.0]], pa.list_(pa.float32())), "row 1 has 1 numbers"),
    "null vector": (pa.array([[1.0, 2.0], None], pa.list_(pa.float32())), "row 1 has no vector"),
    "null number": (pa.array([[1.0, 2.0], [None, 1.0]], pa.list_(pa.float32())), "row 1 has a missing number"),
    "text": (pa.array(["a", "b"]), "lists of numbers are needed"),
    "dimension": (pa.array([[1.0] * 3] * 2, pa.list_(pa.float32())), "row 0: the vectors have dimension 3"),
    "infinite": (pa.array([[1.0, 2.0], [1.0, np.inf]], pa.list_(pa.float64())), "row 1: .*infinite"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named_with_their_file_and_leave_nothing(tmp_path, kind):
    column, message = BAD[kind]
    folder = parquet(tmp_path / "data", pa.table({"v": pa.array([[0.5, 1.0]] * 600, pa.list_(pa.float32()))}), files=3)
    pa.parquet.write_table(pa.table({"v": column}), f"{folder}/part-009.parquet")
    with pytest.raises(ValueError, match=f"part-009.parquet.*{message}"):
        sharded.build(folder, tmp_path / "index", shards=2)
    assert not (tmp_path / "index").exists()


def test_bad_columns_and_identifiers_are_named(tmp_path):
    good = table(POINTS[:100], pa.array(np.arange(100)), year=pa.array(np.arange(100)))
    cases = {
        "`year` is of type string": table(POINTS[:2], pa.array([100, 101]), year=pa.array(["x", "y"])),
        "no column `year`": table(POINTS[:2], pa.array([100, 101])),
        "no column `vector`": pa.table({"id": [1], "year": [2]}),
        "row 1 has no identifier": table(POINTS[:2], pa.array([100, None]), year=pa.array([1, 2])),
        "type string, unlike": table(POINTS[:2], pa.array(["a", "b"]), year=pa.array([1, 2])),
        "-4 is not from 0": table(POINTS[:2], pa.array([100, -4]), year=pa.array([1, 2])),
    }
    for number, (message, bad) in enumerate(cases.items()):
        folder = parquet(tmp_path / str(number), good, files=1)
        pa.parquet.write_table(bad, f"{folder}/z.parquet")
        with pytest.raises(ValueError, match=f"z.parquet.*{message}"):
            sharded.build(folder, tmp_path / "index", ids="id", shards=2)
        assert not (tmp_path / "index").exists()
    twice = table(POINTS[:2], pa.array([100, 7]), year=pa.array([1, 2]))
    folder = parquet(tmp_path / "twice", good, files=1)
    pa.parquet.write_table(twice, f"{folder}/z.parquet")
    with pytest.raises(ValueError, match="identifier 7 occurs more than once"):
        sharded.build(folder, tmp_path / "index", ids="id", shards=2)
    assert not (tmp_path / "index").exists()


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sharded.build(tmp_path / "nowhere", tmp_path / "index")
    folder = parquet(tmp_path / "data", table(POINTS[:100]), files=2)
    with open(f"{folder}/part-002.parquet", "wb") as file:
        file.write(b"PAR1 no parquet PAR1")
    with pytest.raises((ValueError, OSError), match="part-002.parquet"):
        sharded.build(folder, tmp_path / "index")
    os.makedirs(tmp_path / "empty")
    with pytest.raises(ValueError, match="empty.*no file"):
        sharded.build(tmp_path / "empty", tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_disk_without_room_leaves_nothing(tmp_path):
    """A limit on the size of files stands in for a full disk: both make a write fail."""
    code = """
import resource, signal, sys
import numpy as np
from garlic_ann import sharded
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try:
    sharded.build(np.load(sys.argv[1]), sys.argv[2], shards=3)
except OSError as error:
    print(error)
"""
    np.save(tmp_path / "x.npy", POINTS)
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "x.npy", tmp_path / "index"], capture_output=True, text=True)
    assert "too large" in ran.stdout and ".garlic" in ran.stdout, ran.stdout + ran.stderr
    assert not (tmp_path / "index").exists()


def test_wrong_parameters_are_refused(tmp_path, whole):
    for options, message in [({"shards": 0}, "shards"), ({"shards": 5, "cells": 3}, "5 shards"), ({"recall": 2.0}, "recall"),
                             ({"metric": "manhattan"}, "manhattan"), ({"bin_size": -1}, "bin_size")]:
        with pytest.raises(ValueError, match=message):
            sharded.build(POINTS[:500], tmp_path / "index", **options)
    for options, message in [({"k": 0}, "`k`"), ({"recall": 1.0}, "`recall`")]:
        with pytest.raises(ValueError, match=message):
            whole.search(QUERIES, **options)
    with pytest.raises(ValueError, match="dimension 16"):
        whole.search(QUERIES[:, :3])
    assert not (tmp_path / "index").exists()
