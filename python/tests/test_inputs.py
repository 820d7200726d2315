"""Vectors of other packages: columns of lists, tensors, DLPack; and what is refused with advice."""

import garlic_ann as garlic
import numpy as np
import pytest
from garlic_ann._inputs import read

X = np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32)
INDEX = garlic.build(X, seed=1)


def same(given):
    """The index, the answers and what is stored are those of the array."""
    assert garlic.build(given, seed=1).to_bytes() == INDEX.to_bytes()
    np.testing.assert_array_equal(INDEX.search(given, 3)[1], INDEX.search(X, 3)[1])
    index = garlic.Index(6)
    index.add(given)
    np.testing.assert_array_equal(index.get(np.arange(300)), X)


def test_lists_of_arrays_and_columns_of_objects():
    same([row for row in X])
    column = np.empty(300, object)
    column[:] = [row.tolist() for row in X]
    same(column)


def test_pandas():
    pd = pytest.importorskip("pandas")
    same(pd.Series(list(X)))
    same(pd.Series(X.tolist(), index=range(1000, 1300)))
    same(pd.DataFrame(X))
    frame = pd.DataFrame({"embedding": list(X), "year": 1})
    same(frame["embedding"])
    with pytest.raises(ValueError, match="give its column of lists"):
        garlic.build(frame[["embedding"]])
    ids = pd.Series(range(7, 307))
    assert garlic.build(X, ids=ids).ids().tolist() == ids.tolist()


def test_polars():
    pl = pytest.importorskip("polars")
    lists = pl.Series("v", X.tolist(), dtype=pl.List(pl.Float32))
    same(lists)
    same(pl.Series("v", X.tolist(), dtype=pl.Array(pl.Float32, 6)))
    same(pl.DataFrame(X))
    same(pl.DataFrame({"v": lists})["v"])
    rows = X[:4].tolist()
    for broken, message in [
        ([rows[0], rows[1][:5]], "row 1 has 5 numbers, row 0 has 6"),
        ([rows[0], None], "row 1 has no vector"),
        ([rows[0], [None] * 6], "row 1 has a missing number"),
        ([[], []], "the rows are empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            garlic.build(pl.Series("v", broken, dtype=pl.List(pl.Float32)))


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 6)
    lists = pa.array(X.tolist(), pa.list_(pa.float32()))
    for column in (fixed, lists, pa.array(X.tolist(), pa.large_list(pa.float32()))):
        same(column)
        same(pa.chunked_array([column[:100], column[100:100], column[100:]]))
        same(pa.table({"v": column})["v"])
        np.testing.assert_array_equal(read(column[17:40], "x"), X[17:40])
    same(pa.array(X.astype(np.float64).tolist(), pa.list_(pa.float64())))
    # One chunk of fixed lists is read where it lies.
    assert np.shares_memory(read(fixed, "x"), fixed.flatten().to_numpy())
    if hasattr(pa, "fixed_shape_tensor"):
        tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), (6,)), fixed)
        same(tensors)
    rows = X[:4].tolist()
    for broken, message in [
        ([rows[0], rows[1][:5]], "row 1 has 5 numbers, row 0 has 6"),
        ([rows[0], None], "row 1 has no vector"),
        ([rows[0], [None] * 6], "row 1 has a missing number"),
        ([[], []], "the rows are empty"),
    ]:
        array = pa.array(broken, pa.list_(pa.float32()))
        with pytest.raises(ValueError, match=message):
            garlic.build(array)
        with pytest.raises(ValueError, match=message.replace("row 1", "row 101").replace("row 0", "row 100")):
            garlic.build(pa.chunked_array([lists[:100], array]))
    with pytest.raises(ValueError, match="are not equally long"):
        garlic.build(pa.chunked_array([lists[:3], pa.array([[1.0, 2.0]], pa.list_(pa.float32()))]))
    with pytest.raises(ValueError, match=r"one of its columns \(id, v\)"):
        garlic.build(pa.table({"id": [1], "v": [[1.0]]}))
    ids = pa.array(range(7, 307))
    assert garlic.build(X, ids=ids).ids().tolist() == list(range(7, 307))


class Elsewhere:
    """An array that has DLPack and nothing else, as the array API asks for."""

    def __init__(self, array, error=None):
        self.array, self.error = array, error

    def __dlpack__(self, **options):
        if self.error:
            raise self.error
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (2, 0) if self.error else self.array.__dlpack_device__()


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.kept = array


def test_dlpack_and_the_array_interface():
    same(Elsewhere(X))
    same(Interface(X))
    assert np.shares_memory(read(Elsewhere(X), "x"), X)
    with pytest.raises(ValueError, match="memory of the processor"):
        garlic.build(Elsewhere(X, BufferError("unsupported device")))


def test_tensors():
    torch = pytest.importorskip("torch")
    same(torch.tensor(X))
    same(torch.tensor(X, requires_grad=True))


def test_masked_arrays():
    masked = np.ma.masked_array(X, mask=False)
    same(masked)
    masked[3, 2] = np.ma.masked
    for use in (garlic.build, INDEX.search, INDEX.copy().add):
        with pytest.raises(ValueError, match=r"masked.*x\.filled\(value\)"):
            use(masked)


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    for matrix in (sparse.csr_matrix(X), sparse.coo_array(X)):
        for use in (garlic.build, INDEX.search):
            with pytest.raises(ValueError, match=r"sparse.*toarray\(\).*TruncatedSVD"):
                use(matrix)


def test_memory_mapped_files(tmp_path):
    np.save(tmp_path / "x.npy", X)
    same(np.load(tmp_path / "x.npy", mmap_mode="r"))
