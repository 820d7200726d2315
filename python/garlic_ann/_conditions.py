"""Conditions on metadata: as SQL where an index has the columns, else as a function of the metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Union

import numpy as np

# ("and" | "or" | "not", conditions), or (operator, name, value).
Condition = Union[tuple[str, list["Condition"]], tuple[str, str, Any]]

# Operators of dictionaries, as MongoDB and most vector stores write them.
_WRITTEN = {
    "$eq": "=", "$ne": "<>", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=",
    "$in": "in", "$nin": "not in", "$exists": "exists", "$like": "like", "$ilike": "ilike",
}  # fmt: skip
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
}


def of_dict(filter: Mapping[str, Any]) -> Condition:
    """The condition of a dictionary such as ``{"lang": "en", "year": {"$gte": 2015}}``.

    >>> of_dict({"lang": "en", "$or": [{"year": {"$gt": 2015}}, {"year": None}]})
    ('and', [('=', 'lang', 'en'), ('or', [('>', 'year', 2015), ('=', 'year', None)])])
    """
    parts: list[Condition] = []
    for key, value in filter.items():
        if key in ("$and", "$or", "$not"):
            inner = value if isinstance(value, list) else [value]
            if not all(isinstance(entry, Mapping) for entry in inner):
                raise ValueError(f"filter: {key} takes a list of conditions, this is {value!r}")
            # $not of several conditions negates all of them together.
            parts.append((key[1:], [of_dict(entry) for entry in inner]))
        elif key.startswith("$"):
            raise ValueError(f"filter: {key} is not known; conditions are joined by $and, $or and $not")
        elif isinstance(value, Mapping):
            for operator, operand in value.items():
                if operator not in _WRITTEN:
                    known = ", ".join(_WRITTEN)
                    raise ValueError(f"filter: {operator} of `{key}` is not known; the operators are {known}")
                parts.append((_WRITTEN[operator], key, operand))
        elif isinstance(value, (list, tuple, set, frozenset)):
            parts.append(("in", key, list(value)))
        else:
            parts.append(("=", key, value))
    return parts[0] if len(parts) == 1 else ("and", parts)


def sql(condition: Condition, columns: Collection[str]) -> str | None:
    """The condition as an expression over columns; nothing where there is none.

    A missing value is equal to none, as in :func:`holds`.

    >>> sql(of_dict({"lang": {"$ne": "it's"}, "year": {"$in": [1999, 2000]}}), ["lang", "year"])
    '("lang" IS NULL OR "lang" <> \\'it\\'\\'s\\') AND ("year" IN (1999, 2000))'
    >>> sql(of_dict({"author": "x"}), ["lang", "year"]) is None
    True
    """
    if len(condition) == 2:
        joint, parts = condition
        texts = [sql(part, columns) for part in parts]
        if any(text is None for text in texts):
            return None
        if joint == "not":
            return "(" + " AND ".join(f"({text})" for text in texts) + ") IS NOT TRUE"
        if not texts:
            return "TRUE" if joint == "and" else "FALSE"
        return f" {joint.upper()} ".join(f"({text})" for text in texts)
    operator, name, value = condition
    if name not in columns:
        return None
    column = '"' + name.replace('"', '""') + '"'
    if operator == "exists":
        return f"{column} IS NOT NULL" if value else f"{column} IS NULL"
    if operator in ("=", "<>") and value is None:
        return f"{column} IS NULL" if operator == "=" else f"{column} IS NOT NULL"
    if operator in ("contains", "icontains"):
        escaped = "".join("!" + letter if letter in "!%_" else letter for letter in str(value))
        word = "LIKE" if operator == "contains" else "ILIKE"
        return f"{column} {word} {_literal('%' + escaped + '%')} ESCAPE '!'"
    if operator in ("in", "not in"):
        literals = [_literal(entry) for entry in value]
        if not all(literals):
            return None
        if not literals:
            return "FALSE" if operator == "in" else "TRUE"
        listed = ", ".join(literal for literal in literals if literal)
        found = f"{column} IN ({listed})"
        return found if operator == "in" else f"{column} IS NULL OR NOT {found}"
    literal = _literal(value)
    if literal is None or operator not in ("=", "<>", *_ORDERED, "like", "ilike"):
        return None
    if operator == "<>":
        return f"{column} IS NULL OR {column} <> {literal}"
    return f"{column} {operator.upper()} {literal}"


def _literal(value: Any) -> str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    # Types made of these, such as members of an IntEnum, write themselves in another way.
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    return None


def holds(condition: Condition, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata meet the condition. Values of another type meet none that orders them.

    >>> [holds(of_dict({"year": {"$gt": 2015}}), m) for m in ({"year": 2020}, {"year": "new"}, {})]
    [True, False, False]
    """
    if len(condition) == 2:
        joint, parts = condition
        found = (holds(part, metadata) for part in parts)
        if joint == "not":
            return not all(found)
        return all(found) if joint == "and" else any(found)
    operator, name, wanted = condition
    value = metadata.get(name)
    if operator == "exists":
        return (value is not None) == bool(wanted)
    if operator == "=":
        return bool(value == wanted)
    if operator == "<>":
        return bool(value != wanted)
    if operator == "not in":
        return value not in wanted
    if operator == "empty":
        return value in (None, "", [])
    if operator == "in":
        return value in wanted
    if value is None:
        return False
    if operator in _ORDERED:
        try:
            return _ORDERED[operator](value, wanted)
        except TypeError:
            return False
    return _text_or_list(operator, value, wanted)


def _text_or_list(operator: str, value: Any, wanted: Any) -> bool:
    if operator in ("any", "all") and isinstance(value, Iterable):
        have = [entry in value for entry in wanted]
        return any(have) if operator == "any" else all(have)
    if operator == "has":
        return isinstance(value, (str, list)) and wanted in value
    if not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    if operator == "contains":
        return wanted in value
    if operator == "icontains":
        return wanted.lower() in value.lower()
    if operator in ("like", "ilike"):
        raise ValueError("filter: $like and $ilike need a column; name it when the store is made (columns=)")
    return False
