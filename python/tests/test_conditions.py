"""Conditions on metadata mean the same in Python and as an expression of the index."""

import enum

import garlic_ann as garlic
import numpy as np
import pytest
from garlic_ann._conditions import holds, of_dict, sql
from hypothesis import given
from hypothesis import strategies as st

LANGS = ["en", "de", "it's", "100%", ""]
ROWS = [
    {key: value for key, value in (("lang", lang), ("year", year), ("weight", weight), ("flag", flag)) if value is not None}
    for lang in [*LANGS, None]
    for year, weight, flag in [(1990, 0.5, True), (2000, None, False), (None, -1.25, None), (2010, 2.0, True)]
]
COLUMNS = ["lang", "year", "weight", "flag"]
INDEX = garlic.build(
    np.random.default_rng(1).normal(size=(len(ROWS), 4)),
    columns={name: [row.get(name) for row in ROWS] for name in COLUMNS},
)

years, weights = st.sampled_from([1990, 1995, 2000, 2010]), st.sampled_from([-1.25, 0.5, 1.0, 2.0])
numbers = st.one_of(
    st.tuples(st.just("year"), years | weights), st.tuples(st.just("weight"), years | weights)
)
compared = st.builds(
    lambda pair, operator: {pair[0]: {operator: pair[1]}},
    numbers | st.tuples(st.just("lang"), st.sampled_from(LANGS)),
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
)
listed = st.builds(
    lambda name, operator, values: {name: {operator: values}},
    st.just("lang"),
    st.sampled_from(["$in", "$nin"]),
    st.lists(st.sampled_from(LANGS), max_size=3),
)
others = st.sampled_from(
    [{name: {"$exists": there}} for name in COLUMNS for there in (True, False)]
    + [{"year": None}, {"lang": {"$ne": None}}, {"flag": True}, {"flag": {"$ne": True}}, {"lang": ["de", "en"]}, {}]
)
conditions = st.recursive(
    compared | listed | others,
    lambda inner: st.builds(
        lambda joint, parts: {joint: parts}, st.sampled_from(["$and", "$or", "$not"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@given(conditions)
def test_expressions_and_functions_agree(filter):
    condition = of_dict(filter)
    expression = sql(condition, COLUMNS)
    assert expression is not None
    expected = [number for number, row in enumerate(ROWS) if holds(condition, row)]
    assert INDEX.ids(filter=expression).tolist() == expected, expression


def test_text_that_contains_text():
    for operator, text, expected in [
        ("contains", "%", [row for row in range(24) if ROWS[row].get("lang") == "100%"]),
        ("contains", "E", []),
        ("icontains", "E", [row for row in range(24) if ROWS[row].get("lang") in ("en", "de")]),
        ("contains", "'s", [row for row in range(24) if ROWS[row].get("lang") == "it's"]),
    ]:
        condition = (operator, "lang", text)
        assert INDEX.ids(filter=sql(condition, COLUMNS)).tolist() == expected
        assert [number for number, row in enumerate(ROWS) if holds(condition, row)] == expected


class Year(enum.IntEnum):
    OLD = 1990


class Weight(float):
    def __repr__(self):
        return "heavy"


@pytest.mark.parametrize("weight", [np.float64(0.5), np.float32(0.5), np.float16(0.5), Weight(0.5)])
def test_values_of_other_numeric_types(weight):
    assert sql(of_dict({"weight": {"$gte": weight}}), COLUMNS) == '"weight" >= 0.5'
    assert sql(of_dict({"weight": [weight, np.float64(2)]}), COLUMNS) == '"weight" IN (0.5, 2.0)'
    assert INDEX.ids(filter=sql(of_dict({"weight": weight}), COLUMNS)).tolist() == list(range(0, 24, 4))


def test_values_of_other_types():
    for value in (np.int64(1990), np.uint16(1990), Year.OLD):
        assert sql(of_dict({"year": value}), COLUMNS) == '"year" = 1990'
    assert sql(of_dict({"flag": np.bool_(True)}), COLUMNS) == '"flag" = TRUE'
    assert sql(of_dict({"lang": np.str_("it's")}), COLUMNS) == "\"lang\" = 'it''s'"
    assert sql(of_dict({"weight": np.float64("nan")}), COLUMNS) is None
