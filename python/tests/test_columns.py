"""Names and columns: what goes in comes out, through every change, file and directory."""

import datetime
import uuid

import garlic_ann as garlic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = [f"page {i}" for i in range(200)]
LANG = [None if i % 7 == 0 else ("en", "de", "fr")[i % 3] for i in range(200)]
YEAR = np.arange(1900, 2100)


@pytest.fixture
def x():
    return np.random.default_rng(5).normal(size=(200, 6)).astype(np.float32)


@pytest.fixture
def pages(x):
    return garlic.build(x, ids=NAMES, columns={"lang": LANG, "year": YEAR}, seed=1)


def test_answers_have_names_and_columns(pages, x):
    distances, ids, columns = pages.search(x[:3], k=2, columns=["year", "lang", "id"], exact=True)
    assert ids.shape == (3, 2) and ids.dtype == object and ids[:, 0].tolist() == NAMES[:3]
    assert columns["year"][:, 0].tolist() == [1900, 1901, 1902]
    assert columns["lang"][:, 0].tolist() == LANG[:3]
    assert (columns["id"] == ids).all()
    _, ids, columns = pages.search(x[4], k=1, columns=["year"])
    assert ids.tolist() == [NAMES[4]] and columns["year"].tolist() == [1904]
    *_, columns, stats = pages.search(x[4], k=1, columns=["year"], return_stats=True)
    assert columns["year"].shape == (1,) and stats["candidates"] > 0
    lims, _, ids = pages.range_search(x[:2], 0.001)
    assert lims.tolist() == [0, 1, 2] and ids.tolist() == NAMES[:2]


def test_missing_neighbours_have_neither(pages, x):
    _, ids, columns = pages.search(x[:2], k=3, filter="id = 'page 9'", columns=["year", "lang"])
    assert ids.tolist() == [["page 9", None, None]] * 2
    assert columns["year"].tolist() == [[1909, None, None]] * 2


@pytest.mark.parametrize("kind", ["names", "list", "set", "uuid", "array", "function"])
def test_filters_by_name(pages, x, kind):
    allowed = ["page 3", "page 77"]
    forms = {
        "names": tuple(allowed),
        "list": allowed + ["nobody"],
        "set": set(allowed),
        "uuid": [*allowed, uuid.UUID(int=5)],
        "array": np.array(allowed),
        "function": lambda name: name in allowed,
    }
    _, ids = pages.search(x[0], k=5, filter=forms[kind])
    assert set(ids) == {*allowed, None}


def test_every_change_by_name(pages, x):
    assert pages.add(x[:2] + 1, ids=["a", "b"], columns={"year": [1, 2]}).tolist() == ["a", "b"]
    assert "a" in pages and "c" not in pages and 3 not in pages
    assert pages.contains(["a", "c"]).tolist() == [True, False]
    np.testing.assert_array_equal(pages.get("a"), x[0] + 1)
    assert pages.rows("a") == {"lang": None, "year": 1}
    pages.update(x[:1] + 2, ["a"])
    assert pages.rows(["a"])["year"].tolist() == [1]
    pages.upsert(x[:2] + 3, ["a", "c"], columns={"year": [5, 6], "lang": ["it", None]})
    assert pages.rows(["a", "c"])["year"].tolist() == [5, 6]
    assert pages.search(x[0] + 3, k=1, filter="lang = 'it'")[1].tolist() == ["a"]
    assert pages.remove(["a", "page 0", "nobody"]) == 2 and len(pages) == 201
    with pytest.raises(KeyError, match="page 0"):
        pages.get(["page 0"])
    with pytest.raises(KeyError):
        pages.update(x[:1], ["page 0"])
    pages.retrain()
    pages.compact()
    assert pages.search(x[1], k=1)[1].tolist() == ["page 1"]
    assert pages.ids().tolist() == NAMES[1:] + ["b", "c"]
    assert len(pages.table()) == 201


def test_identifiers_are_anything_that_can_be_iterated_over(x):
    for names, other in ((["a", "b", "c"], "d"), ([5, 6, 7], 8)):
        keys = dict.fromkeys(names)
        index = garlic.build(x[:3], ids=keys.keys())
        assert index.add(x[3:5], ids=(f"{other}{i}" if other == "d" else other + i for i in range(2))).shape == (2,)
        for some in (set(names), frozenset(names), keys.keys(), iter(names)):
            assert index.get(some).shape == (3, 6)
        assert index.contains(set(names)).tolist() == [True] * 3 == (~garlic.Index(6).contains(keys.keys())).tolist()
        assert set(index.search(x[0], k=5, filter=iter(names))[1]) - {None, -1} == set(names)
        assert index.remove(name for name in names[1:]) == 2 and len(index) == 3
    many = garlic.Index(6)
    assert len(many.add(np.tile(x, (25, 1)), ids=(f"n{i}" for i in range(5000)))) == len(many) == 5000
    with pytest.raises(ValueError, match="whole numbers are needed"):
        garlic.build(x[:1], ids=b"a")


def test_files_and_directories_keep_them(pages, x, tmp_path):
    pages.remove(["page 5"])
    pages.save(tmp_path / "pages.garlic")
    assert garlic.verify(tmp_path / "pages.garlic")["sections"][-1]["kind"] == "TABLE"
    opened = [
        garlic.open(tmp_path / "pages.garlic"),
        garlic.open(tmp_path / "pages.garlic", mmap=False),
        garlic.from_bytes(pages.to_bytes()),
        pages.copy(),
    ]
    with garlic.Live.create(tmp_path / "live", pages) as live:
        live.add(x[:1], ids=["new"], columns={"year": [3000]})
        live.remove(["page 6"])
        opened.append(live.snapshot())
    for index in opened[:-1]:
        assert index.columns == ["lang", "year"] and "page 5" not in index and len(index) == 199
        assert index.search(x[7], k=1, filter="year = 1907")[1].tolist() == ["page 7"]
    for read_only in (True, False):
        with garlic.Live.open(tmp_path / "live", read_only=read_only) as live:
            assert live.rows(["new"])["year"].tolist() == [3000] and "page 6" not in live
            assert live.search(x[0], k=1, filter="year > 2500")[1].tolist() == ["new"]


def test_an_index_that_begins_empty(x):
    index = garlic.Index(6)
    assert index.add(x[:3]).tolist() == [0, 1, 2]
    index = garlic.Index(6)
    ids = [uuid.uuid5(uuid.NAMESPACE_URL, str(i)) for i in range(200)]
    assert index.add(x[:100], ids[:100], columns={"year": YEAR[:100]}).tolist() == [str(i) for i in ids[:100]]
    index.add(x[100:], ids[100:])
    assert ids[7] in index and str(ids[150]) in index
    assert index.search(x[150], k=1, filter="year IS NULL")[1].tolist() == [str(ids[150])]
    many = garlic.Index(6)
    data = np.random.default_rng(1).normal(size=(5000, 6))
    names = [f"n{i}" for i in range(5000)]
    assert many.add(data, ids=names, columns={"n": np.arange(5000)}).tolist() == names
    assert many.search(data[17], k=1, filter="n >= 17", exact=True)[1].tolist() == ["n17"]


def test_frames_of_other_libraries(x):
    import pandas
    import polars
    import pyarrow

    plain = {"lang": LANG, "year": YEAR.tolist(), "score": [None if i == 3 else i / 4 for i in range(200)]}
    expected = garlic.build(x, ids=NAMES, columns=plain, seed=1)
    for frame in (
        pyarrow.table(plain),
        pyarrow.table(plain).to_batches()[0],
        pandas.DataFrame(plain),
        polars.DataFrame(plain),
        pandas.DataFrame(plain).astype({"lang": "category"}),
    ):
        index = garlic.build(x, ids=NAMES, columns=frame, seed=1)
        assert index.columns == ["lang", "year", "score"]
        for text in ("lang = 'en' AND year > 1950", "score IS NULL", "score < 3"):
            got = index.search(x[:5], k=200, filter=text, exact=True)[1]
            np.testing.assert_array_equal(got, expected.search(x[:5], k=200, filter=text, exact=True)[1])
        back = pyarrow.table(index.table())
        assert back["id"].to_pylist() == NAMES and back["year"].to_pylist() == plain["year"]
        assert polars.DataFrame(index.table())["lang"].to_list() == LANG


def test_types_of_columns(x):
    day = datetime.date(2020, 1, 2)
    at = datetime.datetime(2020, 1, 2, 3, 4, 5)
    masked = np.ma.masked_array(np.arange(3), [False, True, False])
    columns = {
        "flag": [True, None, False],
        "small": np.array([1, 2, 3], np.int8),
        "f16": np.array([0.5, 1, 2], np.float16),
        "f": np.array([0.5, np.nan, 2]),
        "text": np.array(["a", "bb", "c"]),
        "bytes": [b"x", None, b"y"],
        "day": [day, None, day],
        "at": np.array([at, "NaT", at], "datetime64[us]"),
        "masked": masked,
        "mixed": [1, 2.5, None],
        "uuid": [uuid.UUID(int=1), None, uuid.UUID(int=2)],
        "nothing": [None, None, None],
    }
    index = garlic.build(x[:3], columns=columns)
    rows = index.rows([0, 1, 2])
    assert rows["flag"].tolist() == [True, None, False]
    assert rows["small"].dtype == np.int8 and rows["f16"].dtype == np.float32
    assert rows["text"].tolist() == ["a", "bb", "c"] and rows["bytes"].tolist() == [b"x", None, b"y"]
    assert rows["day"].dtype == "datetime64[D]" and rows["day"].tolist() == [day, None, day]
    assert rows["at"].tolist() == [at, None, at] and rows["masked"].tolist() == [0, None, 2]
    assert rows["mixed"][:2].tolist() == [1.0, 2.5] and np.isnan(rows["mixed"][2])
    assert rows["uuid"].tolist() == [str(uuid.UUID(int=1)), None, str(uuid.UUID(int=2))]
    for text, found in [
        ("flag", {0}),
        ("day = '2020-01-02'", {0, 2}),
        ("at > '2020-01-02 03:04:04'", {0, 2}),
        ("masked IS NULL", {1}),
        ("id >= 1 AND small < 3", {1}),
        ("nothing IS NULL", {0, 1, 2}),
    ]:
        _, ids = index.search(x[0], k=3, filter=text)
        assert set(ids.tolist()) - {-1} == found, text


def test_errors_say_what_to_do(pages, x):
    one = x[:1]
    for call, told in [
        (lambda: pages.add(one), "give each a name"),
        (lambda: pages.add(one, ids=[7]), "have names"),
        (lambda: pages.add(x[:2], ids=["a", "a"]), "`a` comes twice"),
        (lambda: pages.add(x[:2], ids=["a", 1]), "neither text nor a UUID"),
        (lambda: pages.add(one, ids=["page 1"]), "use upsert"),
        (lambda: pages.add(one, ids=["a"], columns={"title": ["t"]}), r"the columns are: lang \(text\), year \(int64\)"),
        (lambda: pages.add(one, ids=["a"], columns={"year": ["t"]}), "column `year` is int64"),
        (lambda: pages.add(one, ids=["a"], columns={"year": [1, 2]}), "1 vectors but 2 rows"),
        (lambda: pages.add(one, ids=["a"], columns={"year": [1], "lang": []}), "has 0 values"),
        (lambda: pages.search(one, filter="yaer > 3"), r"no column `yaer`.*id \(text\), lang \(text\), year"),
        (lambda: pages.search(one, filter="year > 'x'"), "int64 cannot be compared with text"),
        (lambda: pages.search(one, filter="year >"), "filter expression"),
        (lambda: pages.search(one, filter=[1, 2]), "have names"),
        (lambda: pages.search(one, columns=["title"]), "no column `title`"),
        (lambda: garlic.build(x, columns={"id": range(200)}), "must not be called `id`"),
        (lambda: garlic.build(x, columns={"a": [[1]] * 200}), "must be of one type"),
        (lambda: garlic.build(x, columns={"a": [1, "b"] * 100}), "must be of one type"),
        (lambda: garlic.build(x).add(one, columns={"a": [1]}), "has no columns"),
        (lambda: garlic.build(x).add(one, ids=["a"]), "are numbered"),
    ]:
        with pytest.raises(ValueError, match=told):
            call()
    with pytest.raises(TypeError, match="a data frame, a table of Arrow or a dictionary"):
        garlic.build(x, columns=[1, 2])
    with pytest.raises(TypeError, match="a list of names"):
        pages.search(one, columns="year")
    assert len(pages) == 200


COMPARISONS = st.tuples(
    st.sampled_from(["a", "b", "c"]), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(-3, 3)
).map(lambda t: " ".join(map(str, t)))
TEXTS = st.tuples(st.just("s"), st.sampled_from(["==", "!=", "<", ">="]), st.sampled_from(["'x'", "'y'", "''"])).map(" ".join)


def combined(conditions):
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
            inner.map(lambda q: f"not ({q})"),
        ),
        max_leaves=6,
    )


def frame_of(random):
    import pandas

    return pandas.DataFrame(
        {
            "a": random.integers(-3, 4, 50),
            "b": random.integers(-3, 4, 50).astype(np.int8),
            "c": random.integers(-3, 4, 50) / 2,
            "s": random.choice(["x", "y", "", "z"], 50),
        }
    )


@settings(max_examples=150, deadline=None)
@given(query=combined(st.one_of(COMPARISONS, TEXTS)), seed=st.integers(0, 5))
def test_expressions_allow_what_pandas_queries_allow(query, seed):
    random = np.random.default_rng(seed)
    check_as_in_pandas(query, frame_of(random), random)


@settings(max_examples=100, deadline=None)
@given(query=combined(COMPARISONS), seed=st.integers(0, 5))
def test_missing_values_are_unknown_as_in_pandas(query, seed):
    random = np.random.default_rng(seed)
    frame = frame_of(random)[["a", "b", "c"]].astype({"a": "Int64", "b": "Int8", "c": "Float64"})
    check_as_in_pandas(query, frame.mask(random.random(frame.shape) < 0.3), random)


def check_as_in_pandas(query, frame, random):
    x = random.normal(size=(50, 2))
    ids = [f"r{i}" for i in range(50)]
    index = garlic.build(x, ids=ids, columns=frame, threads=1)
    sql = query.replace("==", "=").replace("!=", "<>")
    _, found = index.search(x[0], k=50, filter=sql, exact=True)
    assert {name for name in found if name is not None} == {f"r{i}" for i in frame.query(query).index}


def test_recall_under_an_expression(x):
    random = np.random.default_rng(3)
    data = random.normal(size=(8000, 8)).astype(np.float32)
    part = random.integers(0, 4, 8000)
    index = garlic.build(data, columns={"part": part}, seed=1)
    for wanted in range(4):
        allowed = np.flatnonzero(part == wanted)
        by_ids = index.search(data[:100], k=10, filter=allowed, recall=0.9)[1]
        by_columns = index.search(data[:100], k=10, filter=f"part = {wanted}", recall=0.9)[1]
        np.testing.assert_array_equal(by_ids, by_columns)


def test_plain_indexes_are_as_they_were(x):
    plain = garlic.build(x, seed=1)
    assert plain.to_bytes() == garlic.build(x, ids=range(200), seed=1).to_bytes()
    assert [s["kind"] for s in _sections(plain)][-1] in ("IDS", "GRAPH")
    assert plain.search(x[3], k=1, filter="id > 3 AND id % 2 = 0", exact=True)[1][0] % 2 == 0
    assert plain.columns == [] and plain.table().column_names == ["id"]


def _sections(index):
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        index.save(place + "/x.garlic")
        return garlic.verify(place + "/x.garlic")["sections"]


def test_an_empty_list_allows_nothing():
    for ids in (["a", "b"], [5, 6]):
        index = garlic.build(np.eye(2), ids=ids)
        with pytest.warns(UserWarning, match="no point that the filter allows"):
            distances, found = index.search([1, 0], k=1, filter=[])
        assert np.isinf(distances).all() and found.tolist() in ([None], [-1])
        assert index.ids(filter="id = 'nobody'" if ids == ["a", "b"] else "id > 9").tolist() == []
