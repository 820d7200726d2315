"""Files, bytes, pickles, directories."""

import copy
import pickle

import garlic_ann as garlic
import numpy as np
import pytest


@pytest.mark.parametrize("mmap", [True, False])
def test_files(tmp_path, built, queries, mmap):
    path = tmp_path / "an.garlic"
    built.save(path)
    index = garlic.open(path, mmap=mmap)
    assert (index.stats()["mapped_bytes"] > 0) == mmap
    for a, b in zip(index.search(queries), built.search(queries)):
        np.testing.assert_array_equal(a, b)
    assert path.read_bytes() == index.to_bytes() == built.to_bytes()
    index.add(queries)
    assert len(index) == 4060 and len(garlic.open(str(path))) == 4000
    assert garlic.verify(path)["cells"] == index.stats()["cells"]


def test_pickle_and_copy(points, built, queries):
    for again in (pickle.loads(pickle.dumps(built)), copy.deepcopy(built), copy.copy(built)):
        np.testing.assert_array_equal(again.search(queries)[1], built.search(queries)[1])
    changed = built.copy()
    changed.remove(range(100))
    assert len(pickle.loads(pickle.dumps(changed))) == 3900
    empty = pickle.loads(pickle.dumps(garlic.Index(24, metric="cosine", seed=5)))
    empty.add(points[:100])
    assert empty.metric == "cosine" and empty.inspect()["config"]["seed"] == 5


def test_a_directory_keeps_every_change(tmp_path, points, queries):
    place = tmp_path / "index"
    with garlic.Live.create(place, garlic.build(points[:1000])) as live:
        live.add(points[1000:1500])
        live.remove(range(10))
        live.update(points[2000:2001], [999])
        assert live.status()["log_batches"] == 3
        with pytest.raises(OSError, match="another writer"):
            garlic.Live.open(place)
        reader = garlic.Live.open(place, read_only=True)
        wanted = live.search(queries, exact=True)[1]
        snapshot = live.snapshot()
    np.testing.assert_array_equal(reader.search(queries, exact=True)[1], wanted)
    with pytest.raises(OSError, match="read-only"):
        reader.add(points[:1])
    with garlic.Live.open(place, sync=False) as live:
        np.testing.assert_array_equal(live.search(queries, exact=True)[1], wanted)
        live.checkpoint()
        assert live.status()["log_batches"] == 0 and live.status()["generation"] == 2
        live.compact()
        live.sync()
    assert len(live.__repr__()) and len(snapshot) == 1490
    for closed in (
        lambda: live.search(queries),
        lambda: live.range_search(queries, 1.0),
        lambda: len(live),
        lambda: 3 in live,
        lambda: live.ids(),
        lambda: live.add(points[:1]),
        lambda: live.remove([1]),
        lambda: live.compact(),
        lambda: live.snapshot(),
    ):
        with pytest.raises(ValueError, match="closed"):
            closed()


def test_directories_that_are_none(tmp_path, points):
    with pytest.raises(OSError):
        garlic.Live.open(tmp_path / "nothing")
    with pytest.raises(TypeError):
        garlic.Live()
    place = tmp_path / "index"
    index = garlic.build(points[:100])
    garlic.Live.create(place, index).close()
    with pytest.raises(OSError):
        garlic.Live.create(place, index)
    log = next(p for p in place.iterdir() if "log" in p.name)
    log.write_bytes(b"nonsense" * 8)
    with pytest.raises(garlic.FormatError):
        garlic.Live.open(place)
