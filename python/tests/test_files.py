"""Files that other programs write and read."""

import garlic_ann as garlic
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMES = ["a", "b", "é", "d"]
COLUMNS = {"year": [1999, None, 2020, 2021], "title": ["x", "y", None, "z"]}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    for ids in (None, NAMES, [7, 2**62, 0, 3]):
        for columns in (None, COLUMNS):
            garlic.write(path, X, ids=ids, columns=columns)
            read = garlic.read(path, ids=None if ids is None else "id")
            np.testing.assert_array_equal(read.vectors, X)
            assert (read.ids is None) == (ids is None) and (ids is None or read.ids.tolist() == ids)
            assert (read.columns is None) == (columns is None)
    index = garlic.build(read.vectors, columns=read.columns)
    assert index.rows([0, 1])["title"].tolist() == ["x", "y"] and index.ids(filter="year IS NULL").tolist() == [1]
    assert garlic.read(path, columns=[]).columns is None
    assert garlic.read(path, "vector", columns=["title"]).columns.column_names == ["title"]


def test_other_packages_read_what_is_written(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    garlic.write(path, X.astype(np.float64), ids=NAMES, columns=COLUMNS)
    table = parquet.read_table(path)
    assert table.column_names == ["id", "vector", "year", "title"]
    assert table["vector"].to_pylist() == X.tolist() and table["year"].to_pylist() == COLUMNS["year"]


def test_more_than_one_group_of_rows(tmp_path):
    x = np.random.default_rng(1).normal(size=(300, 60_000)).astype(np.float32)
    garlic.write(tmp_path / "wide.parquet", x, ids=range(300))
    read = garlic.read(tmp_path / "wide.parquet", ids="id")
    assert (read.vectors == x).all() and read.ids.tolist() == list(range(300))


def test_files_of_other_formats(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", x=X, names=np.array(NAMES), bytes=np.array([b"a", b"bc", b"d", b"e"]))
    assert garlic.read(tmp_path / "x.npy").vectors.tolist() == X.tolist()
    read = garlic.read(tmp_path / "x.npz", "x", ids="names")
    assert (read.vectors == X).all() and read.ids.tolist() == NAMES and read.columns is None
    assert garlic.read(tmp_path / "x.npz", "x", ids="bytes").ids.tolist() == ["a", "bc", "d", "e"]


def test_mistakes_are_told(tmp_path):
    path = tmp_path / "x.parquet"
    garlic.write(path, X, ids=NAMES, columns=COLUMNS)
    for wrong, told in [
        ({"vectors": "vektor"}, "no column `vektor`"),
        ({"ids": "name"}, "no column `name`"),
        ({"columns": ["yeer"]}, "no column `yeer`"),
        ({"vectors": "title"}, "not lists of numbers"),
    ]:
        with pytest.raises(ValueError, match=told):
            garlic.read(path, **wrong)
    with pytest.raises(TypeError, match="list of names"):
        garlic.read(path, columns="year")
    with pytest.raises(FileNotFoundError):
        garlic.read(tmp_path / "none.parquet")
    for given, told in [
        ({"ids": ["a"]}, "identifiers"),
        ({"columns": {"year": [1]}}, "rows of columns"),
        ({"columns": {"id": [1, 2, 3, 4]}}, "`id` is a column of its own"),
    ]:
        with pytest.raises(ValueError, match=told):
            garlic.write(path, X, **given)
    with pytest.raises(ValueError, match="NaN|not finite"):
        garlic.write(path, np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="ends in .parquet"):
        garlic.write(tmp_path / "x.csv", X)
    # Nothing that failed has touched the file.
    assert garlic.read(path, ids="id").ids.tolist() == NAMES
