"""Rows that sharded indexes are built from: their types, what is wrong with them, and sources that change meanwhile."""

import os

import garlic_ann as garlic
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from garlic_ann import sharded
from garlic_ann.sharded import _build, _hash, _manifest, _steps
from garlic_ann.sharded._engine import Local
from garlic_ann.sharded._lock import together
from shards import brute, clusters, parquet, shard_bytes, table

POINTS = clusters(3000)
QUERIES = clusters(20, seed=9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An index that no test changes, with identifiers that are not row numbers."""
    data = table(POINTS, pa.array(np.arange(3000) * 2))
    return sharded.build(data, tmp_path_factory.mktemp("sharded") / "index", ids="id", shards=3)


def wrapped(monkeypatch, name, before):
    """Calls ``before`` when a step of a build begins."""
    step = getattr(_steps, name)

    def first(*args):
        before()
        return step(*args)

    first.__name__ = name
    monkeypatch.setattr(_steps, name, first)


@pytest.mark.parametrize("make", [iter, set, dict.fromkeys, lambda ids: (id for id in ids), np.array, lambda ids: map(int, ids)])
def test_every_segment_sees_all_identifiers(whole, make):
    ids = [0, 1000, 2000, 3000, 4000, 5998]
    expected = np.sort(ids)
    found = whole.search(QUERIES, 6, filter=make(ids))[1]
    assert np.array_equal(np.sort(found, axis=1), np.broadcast_to(expected, found.shape))
    assert whole.contains(make([*ids, 1])).sum() == 6
    assert whole.get(make(ids)).shape == (6, 16)
    with pytest.raises(KeyError, match="no point 3'"):
        whole.get(make([2, 3]))


def test_masks_functions_and_shared_filters_are_refused(whole):
    mask = np.ones(3000, bool)
    for filter in (mask, mask.tolist(), iter(mask.tolist()), lambda id: True, garlic.filter(mask), garlic.filter([2, 4])):
        with pytest.raises(TypeError, match="takes an expression"):
            whole.search(QUERIES, 3, filter=filter)


def test_a_source_that_changes_during_a_build_is_an_error(tmp_path, monkeypatch):
    folder = parquet(tmp_path / "data", table(POINTS), files=2)
    wrapped(monkeypatch, "train", lambda: pq.write_table(table(POINTS[1500:] + 1), f"{folder}/part-001.parquet", row_group_size=700))
    with pytest.raises(RuntimeError, match="part-001.parquet: the rows changed"):
        sharded.build(folder, tmp_path / "index", shards=2)
    assert not (tmp_path / "index").exists()
    wrapped(monkeypatch, "first_layout", lambda: pq.write_table(table(POINTS[:9]), f"{folder}/part-000.parquet", row_group_size=3))
    with pytest.raises(RuntimeError, match="part-000.parquet: the rows changed"):
        sharded.build(folder, tmp_path / "index", shards=2)


def test_a_source_that_changes_during_an_append_is_an_error(tmp_path, monkeypatch):
    index = sharded.build(POINTS[:2000], tmp_path / "index", shards=2)
    before = shard_bytes(index.path)
    folder = parquet(tmp_path / "data", table(POINTS[2000:]), files=2)
    wrapped(monkeypatch, "hold_out", lambda: pq.write_table(table(POINTS[2500:] + 1), f"{folder}/part-001.parquet"))
    with pytest.raises(RuntimeError, match="part-001.parquet: the rows changed"):
        sharded.append(folder, index.path)
    assert shard_bytes(index.path) == before


def test_an_append_reads_the_rows_twice(tmp_path, monkeypatch):
    """Once to check them and once to write them, beside the first block for its layout."""
    index = sharded.build(table(POINTS[:2000], pa.array(np.arange(2000))), tmp_path / "index", ids="id", shards=2)
    folder = parquet(tmp_path / "data", table(POINTS[2000:], pa.array(np.arange(2000, 3000))), files=4)
    reads = []
    read = sharded._source._read_file
    monkeypatch.setattr(sharded._source, "_read_file", lambda file, parts: reads.append(file) or read(file, parts))
    index = sharded.append(folder, index.path, ids="id")
    assert len(reads) == 4 * 2 + 1
    assert np.array_equal(index.search(QUERIES, 5, exact=True)[1], brute(POINTS, QUERIES, 5))
    assert 0.8 < index.drift()["spread"] < 1.2


def test_columns_of_other_types_are_not_cast(tmp_path):
    first = {"year": pa.array([1, 2], pa.int32()), "name": pa.array(["a", "b"]), "weight": pa.array([1, 2], pa.float32())}
    good = table(POINTS[:2], **first)
    cases = {
        "`year` is of type string": {"year": pa.array(["1", "2"])},
        "`year` is of type double": {"year": pa.array([1.0, 2.0])},
        "`year` is of type bool": {"year": pa.array([True, False])},
        "`year` is of type int64.*not in range": {"year": pa.array([1, 2**40])},
        "`name` is of type int64": {"name": pa.array([1, 2])},
        "`weight` is of type double": {"weight": pa.array([0.1, 0.2], pa.float64())},
    }
    for number, (message, columns) in enumerate(cases.items()):
        folder = parquet(tmp_path / str(number), good, files=1)
        pq.write_table(table(POINTS[2:4], **{**first, **columns}), f"{folder}/z.parquet")
        with pytest.raises(ValueError, match=f"z.parquet.*{message}"):
            sharded.build(folder, tmp_path / "index", shards=1)
    folder = parquet(tmp_path / "good", good, files=1)
    wide = {"year": pa.array([3, None], pa.int64()), "name": pa.array(["c", None], pa.large_string()), "weight": pa.nulls(2)}
    pq.write_table(table(POINTS[2:4], **wide), f"{folder}/z.parquet")
    index = sharded.build(folder, tmp_path / "index", shards=1)
    columns = index.search(POINTS[2], 1, columns=["year", "name", "weight"])[2]
    assert columns["year"][0] == 3 and columns["name"][0] == "c" and np.isnan(columns["weight"][0])


def test_dictionaries_are_what_they_encode(tmp_path):
    names = pa.array([f"page {i}" for i in range(3000)])
    langs = pa.array(["en", "de", None] * 1000)
    plain = sharded.build(table(POINTS, names, lang=langs), tmp_path / "plain", ids="id", shards=2)
    encoded = table(POINTS, names.dictionary_encode(), lang=langs.dictionary_encode())
    index = sharded.build(parquet(tmp_path / "data", encoded), tmp_path / "encoded", ids="id", shards=2)
    assert shard_bytes(index.path) == shard_bytes(plain.path)
    mixed = parquet(tmp_path / "mixed", table(POINTS, names, lang=langs), files=2)
    pq.write_table(encoded.slice(1500), f"{mixed}/part-001.parquet")
    assert shard_bytes(sharded.build(mixed, tmp_path / "index", ids="id", shards=2).path) == shard_bytes(plain.path)


@pytest.mark.parametrize("values", [[3, None, 5, -1], [0.5, None, 2.0, -0.0], ["None", None, "", "x"], [True, None, False, True]])
def test_hashes_do_not_depend_on_the_other_rows(values):
    all_at_once, alone = _hash._of_column(pa.array(values)), [_hash._of_column(pa.array([v], pa.array(values).type)) for v in values]
    assert all_at_once.tolist() == [hashes[0] for hashes in alone]
    assert len(set(all_at_once.tolist())) == len(set(values))


def test_blocks_do_not_change_the_fingerprint_of_missing_values(tmp_path):
    data = table(POINTS, year=pa.array([None, *range(2999)]), weight=pa.array([*np.arange(2999.0), None]))
    made = [sharded.build(parquet(tmp_path / str(n), data, files=n), tmp_path / f"index{n}", shards=2) for n in (1, 5)]
    assert made[0].manifest.fingerprint == made[1].manifest.fingerprint


def test_repeated_identifiers_are_named_with_file_and_row(tmp_path):
    folder = parquet(tmp_path / "data", table(POINTS[:100], pa.array(np.arange(100))), files=1, rows=30)
    pq.write_table(table(POINTS[:3], pa.array([100, 101, 57])), f"{folder}/z.parquet")
    with pytest.raises(ValueError, match=r"z.parquet: row 2: the identifier 57 .* first in .*part-000.parquet: row 57;"):
        sharded.build(folder, tmp_path / "index", ids="id", shards=2)
    names = parquet(tmp_path / "names", table(POINTS[:4], pa.array(["a", "b", "c", "b"])), files=1)
    with pytest.raises(ValueError, match=r"part-000.parquet: row 3: the identifier 'b' .* first in .*part-000.parquet: row 1;"):
        sharded.build(names, tmp_path / "index", ids="id")
    zero = parquet(tmp_path / "zero", table(np.eye(5, dtype=np.float32) - np.eye(5, k=0, dtype=np.float32)[2]), files=1)
    with pytest.raises(ValueError, match="part-000.parquet: row 2: the vector is zero"):
        sharded.build(zero, tmp_path / "index", metric="cosine")
    os.unlink(f"{folder}/z.parquet")
    index = sharded.build(folder, tmp_path / "index", ids="id", shards=2)
    more = parquet(tmp_path / "more", table(POINTS[:80], pa.array([*range(100, 160), 57, *range(161, 180)])), files=1, rows=30)
    with pytest.raises(ValueError, match=r"part-000.parquet: row 60: the identifier 57 exists"):
        sharded.append(more, index.path, ids="id")


def test_values_and_names_that_an_index_refuses_are_named_with_file_and_row(tmp_path):
    large = POINTS[:100].copy()
    large[71, 3] = -2e15
    folder = parquet(tmp_path / "large", table(large), files=1, rows=30)
    with pytest.raises(ValueError, match="part-000.parquet: row 71: .*larger than 1e"):
        sharded.build(folder, tmp_path / "index")
    names = [f"page {i}" for i in range(100)]
    names[64] = ""
    folder = parquet(tmp_path / "names", table(POINTS[:100], pa.array(names)), files=1, rows=30)
    with pytest.raises(ValueError, match="part-000.parquet: .*row 64 has an empty identifier"):
        sharded.build(folder, tmp_path / "index", ids="id")


def test_options_may_be_scalars_of_numpy(tmp_path):
    given = {"shards": np.int64(2), "cells": np.int32(8), "sample": np.uint16(900), "recall": np.float32(0.9), "seed": np.int8(1)}
    index = sharded.build(POINTS, tmp_path / "index", bin_size=np.int64(40), threads=np.int64(1), **given)
    assert index.manifest.seed == 1 and index.manifest.settings["bin_size"] == 40 and len(index.manifest.shards) == 2
    plain = {name: value.item() for name, value in given.items()}
    again = sharded.build(POINTS, tmp_path / "again", bin_size=40, **plain)
    assert again.manifest == index.manifest
    with pytest.raises(ValueError, match="`shards`"):
        sharded.build(POINTS, tmp_path / "other", shards=2.5)
    assert not (tmp_path / "other").exists()


def test_held_out_points_of_different_histories_have_different_names(tmp_path):
    """The same rows, appended to other held-out points as the same generation."""
    ids = pa.array(np.arange(3000))
    names = []
    for number, first in enumerate([(1000, 1500), (1500, 2000)]):
        index = sharded.build(table(POINTS[:1000], ids.slice(0, 1000)), tmp_path / str(number), ids="id", shards=2)
        sharded.append(table(POINTS[first[0] : first[1]], ids.slice(first[0], 500)), index.path, ids="id")
        index = sharded.append(table(POINTS[2000:], ids.slice(2000)), index.path, ids="id")
        names.append(index.manifest.held_out)
    assert names[0].sha256 != names[1].sha256 and names[0].file != names[1].file


def test_a_build_that_fails_leaves_the_files_of_its_twin(tmp_path):
    mark = "0123456789abcdef"

    def failing():
        with pytest.raises(KeyError), _build.cleared_on_failure(Local(), str(tmp_path), mark, mark) as place:
            open(place.path(place.shard(0)), "w").close()
            raise KeyError

    with together(f"{tmp_path}/.{mark}-build.lock"):
        failing()
        assert os.listdir(tmp_path).count(f"{mark}-00000.garlic") == 1
        os.unlink(f"{tmp_path}/{mark}-00000.garlic")
    assert os.listdir(tmp_path) == []
    failing()
    assert os.listdir(tmp_path) == []


def test_a_manifest_is_written_only_while_its_files_are_there(whole, tmp_path, monkeypatch):
    """Files are looked for within the lock, so that nobody deletes them in between."""
    manifest, _ = _manifest.read(whole.path)
    order = []
    alone, check = _manifest.alone, _manifest.check_files
    monkeypatch.setattr(_manifest, "alone", lambda place: order.append("lock") or alone(place))
    monkeypatch.setattr(_manifest, "check_files", lambda *args: order.append("check") or check(*args))
    with pytest.raises(FileNotFoundError):
        _manifest.write(tmp_path, manifest)
    assert order == ["lock", "check"]
