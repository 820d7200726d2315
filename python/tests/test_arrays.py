"""Shapes, types, orders and strides of what comes in."""

import garlic_ann as garlic
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

WHOLE = np.random.default_rng(3).integers(0, 100, size=(300, 6))
INDEX = garlic.build(WHOLE.astype(np.float32), seed=1)


@given(
    dtype=st.sampled_from("f2 f4 f8 >f4 >f8 u1 i1 u2 i2 i4 i8 u8 ?".split()),
    order=st.sampled_from("CF"),
    step=st.sampled_from([1, 2, 3, -1]),
    column_step=st.sampled_from([1, 2, -1]),
    rows=st.integers(0, 12),
    k=st.integers(1, 8),
)
def test_any_layout_gives_the_answers_of_float32(dtype, order, step, column_step, rows, k):
    dtype = np.dtype(dtype)
    whole = WHOLE % 2 if dtype.kind == "b" else WHOLE
    large = np.zeros((rows * abs(step), 6 * abs(column_step)), dtype, order=order)
    view = large[::step, ::column_step]
    view[...] = whole[:rows]
    plain = np.ascontiguousarray(whole[:rows], np.float32)
    before = large.copy()
    got, wanted = INDEX.search(view, k), INDEX.search(plain, k)
    assert got[1].shape == (rows, k)
    for a, b in zip(got, wanted):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(large, before)


@given(dtype=st.sampled_from("f2 f4 f8 u1 i4".split()), order=st.sampled_from("CF"))
def test_any_layout_builds_the_same_index(dtype, order):
    given = np.asarray(WHOLE, dtype=dtype, order=order)
    assert garlic.build(given, seed=1).to_bytes() == INDEX.to_bytes()


def test_bfloat16_arrays_are_taken():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = (WHOLE / 8).astype(ml_dtypes.bfloat16)
    plain = given.astype(np.float32)
    index = garlic.build(given, seed=1)
    assert index.to_bytes() == garlic.build(plain, seed=1).to_bytes()
    assert (index.search(given[:5], 1)[0] == 0).all()
    index.add(given[:2], ids=[1000, 1001])
    np.testing.assert_array_equal(index.get([1000, 1001]), plain[:2])


class Tensor:
    """What is used of a bfloat16 tensor of torch, which numpy cannot read."""

    dtype = "torch.bfloat16"

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def to(self, device):
        assert device == "cpu"
        return self

    def float(self):
        return self.values.astype(np.float32)

    def __array__(self, *_, **__):
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_bfloat16_tensors_are_taken():
    assert (INDEX.search(Tensor(WHOLE[:3]), 1)[0] == 0).all()
    assert garlic.build(Tensor(WHOLE), seed=1).to_bytes() == INDEX.to_bytes()


def test_real_bfloat16_tensors_are_taken():
    torch = pytest.importorskip("torch")
    given = torch.tensor(WHOLE.tolist(), dtype=torch.bfloat16)
    plain = given.float().numpy()
    assert garlic.build(given, seed=1).to_bytes() == garlic.build(plain, seed=1).to_bytes()


@pytest.mark.parametrize("store", ["f32", "f16", "int8"])
def test_stored_vectors_are_found_and_near_the_given_ones(store):
    x = np.random.default_rng(3).normal(size=(300, 6)).astype(np.float16)
    index = garlic.build(x, seed=1, store=store)
    assert index.stats()["stored_as"] == store
    kept = index.get(np.arange(300))
    tolerance = {"f32": 0, "f16": 0, "int8": 1 / 253}[store] * np.abs(x).max(axis=1, keepdims=True).astype(np.float32)
    assert (np.abs(kept - x.astype(np.float32)) <= tolerance).all()
    assert (index.search(kept, 1, exact=True)[0] == 0).all()


def test_unaligned_and_read_only():
    raw = np.zeros(6 * 4 + 1, np.uint8)
    unaligned = raw[1:].view(np.float32)
    assert not unaligned.flags.aligned
    unaligned[:] = WHOLE[4]
    assert INDEX.search(unaligned, 1)[0][0] == 0
    locked = WHOLE[:5].astype(np.float32)
    locked.flags.writeable = False
    assert (INDEX.search(locked, 1)[0] == 0).all()


def test_lists_and_iterables():
    assert INDEX.search(WHOLE[3].tolist(), 1)[0].tolist() == [0.0]
    assert INDEX.search([tuple(row) for row in WHOLE[:2].tolist()], 1)[1].shape == (2, 1)
    assert len(garlic.build([[0, 1], [2, 3]], ids=range(4, 6)).ids()) == 2


def test_contiguous_float32_is_not_copied():
    from garlic_ann._arrays import vectors

    x = WHOLE.astype(np.float32)
    assert vectors(x) is x
    assert np.shares_memory(vectors(x[2:5]), x)
    assert not np.shares_memory(vectors(x[:, ::2]), x)


@given(
    shape=st.one_of(
        st.just(()), st.tuples(st.integers(0, 7)), st.tuples(st.integers(1, 3), st.integers(0, 7)), st.just((1, 2, 6))
    )
)
def test_wrong_shapes_are_value_errors(shape):
    given = np.zeros(shape, np.float32)
    if len(shape) in (1, 2) and shape[-1] == 6:
        INDEX.search(given, 1)
    else:
        with pytest.raises(ValueError):
            INDEX.search(given, 1)


@given(ids=st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=4))
def test_identifiers_are_taken_whole_or_refused(ids):
    good = all(0 <= i < 2**63 for i in ids) and len(set(ids)) == len(ids)
    rows = np.arange(len(ids) * 2.0).reshape(-1, 2)
    if good:
        assert garlic.build(rows, ids=ids).ids().tolist() == sorted(ids)
    else:
        with pytest.raises(ValueError):
            garlic.build(rows, ids=ids)


@pytest.mark.parametrize("dtype", "u1 i2 i8 u8".split())
def test_identifiers_of_any_whole_type(dtype):
    ids = np.arange(20, 0, -2, dtype=dtype)[::2]
    index = garlic.build(np.eye(5), ids=ids)
    assert index.search(np.eye(5), k=1, exact=True)[1].ravel().tolist() == ids.tolist()
