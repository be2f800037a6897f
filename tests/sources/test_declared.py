"""Schemas as a plan file writes them: both ways, and what is said about typing errors."""

from __future__ import annotations

import datetime
import tomllib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidInput, InvalidParameter, UnknownName
from tacit.sources.schema import (
    Schema,
    category,
    date,
    flag,
    integer,
    number,
    schema_from_tables,
    schema_to_tables,
)

PLAN = """
[schema.age]
kind = "number"
low = 0
high = 120

[schema.income]
kind = "number"
low = 0
high = 250_000
spacing = 0.25
missing = 0
outside = "missing"

[schema.rooms]
kind = "integer"
low = 1
high = 20

[schema.region]
kind = "category"
keys = ["north", "south"]
missing = "south"

[schema.diagnosis]
kind = "category"

[schema.insured]
kind = "flag"
missing = false

[schema.seen]
kind = "date"
low = 2020-01-01
high = "2021-12-31"
"""


def test_a_plan_declares_what_the_constructors_do() -> None:
    assert schema_from_tables(tomllib.loads(PLAN)["schema"]) == Schema(
        {
            "age": number(0, 120),
            "income": number(0, 250_000, spacing=0.25, missing=0, outside="missing"),
            "rooms": integer(1, 20),
            "region": category(["north", "south"], missing="south"),
            "diagnosis": category(),
            "insured": flag(missing=False),
            "seen": date(datetime.date(2020, 1, 1), "2021-12-31"),
        }
    )


def test_tables_hold_only_what_was_said() -> None:
    said = {"age": number(0, 120), "income": number(0, 8, spacing=Fraction(1, 1024)), "who": category()}
    assert schema_to_tables(Schema(said)) == {
        "age": {"kind": "number", "low": 0, "high": 120},
        "income": {"kind": "number", "low": 0, "high": 8, "spacing": "1/1024"},
        "who": {"kind": "category"},
    }


# --- both ways ------------------------------------------------------------------------------------------
OUTSIDE = st.sampled_from(["clamp", "missing"])


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    low = draw(st.floats(-1e6, 1e6))
    high = low + draw(st.floats(1e-2, 1e9))
    if draw(st.booleans()):
        return number(outside=draw(OUTSIDE))
    missing = draw(st.none() | st.floats(low, high))
    return number(low, high, missing=missing, outside=draw(OUTSIDE))


@st.composite
def integers(draw: st.DrawFn) -> Any:
    low = draw(st.integers(-(10**12), 10**12))
    high = low + draw(st.integers(1, 10**12))
    return integer(low, high, missing=draw(st.none() | st.integers(low, high)), outside=draw(OUTSIDE))


@st.composite
def dates(draw: st.DrawFn) -> Any:
    low = draw(st.dates(max_value=datetime.date(3000, 1, 1)))
    high = low + datetime.timedelta(days=draw(st.integers(1, 10_000)))
    return date(low, high, missing=draw(st.none() | st.dates(low, high)), outside=draw(OUTSIDE))


@st.composite
def categories(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from([st.text(max_size=5), st.integers(-(2**63), 2**63 - 1)]))
    values: Any = draw(st.none() | st.lists(kind, min_size=1, max_size=5, unique=True))
    return category(values, missing=draw(st.sampled_from([None, *(values or [])])))


COLUMNS = numbers() | integers() | dates() | categories() | st.builds(flag, missing=st.none() | st.booleans())


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), COLUMNS, min_size=1, max_size=4)
    .filter(lambda columns: len({name.casefold() for name in columns}) == len(columns))
    .map(Schema)
)
@settings(max_examples=200, deadline=None)
def test_to_tables_and_back_is_the_same_schema(schema: Schema) -> None:
    tables = schema_to_tables(schema)
    assert schema_from_tables(tables) == schema
    assert schema_to_tables(schema_from_tables(tables)) == tables


# --- typing errors --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("table", "column_and_word"),
    [
        ({"kind": "nubmer"}, "'number'"),
        ({"kind": "int"}, "'integer'"),
        ({"kind": "boolean"}, "'flag'"),
        ({"kind": "number", "lwo": 0, "high": 1}, "'low'"),
        ({"kind": "number", "min": 0, "high": 1}, "'low'"),
        ({"kind": "category", "values": ["a"]}, "'keys'"),
        ({"kind": "category", "kyes": ["a"]}, "'keys'"),
        ({"type": "number", "low": 0, "high": 1}, "'kind'"),
        ({"kind": "number", "low": 0, "high": 1, "outside": "clam"}, "'clamp'"),
        ({"kind": "category", "keys": ["north", "south"], "missing": "souht"}, "'south'"),
    ],
)
def test_the_nearest_right_word_and_the_column_are_named(table: dict[str, Any], column_and_word: str) -> None:
    with pytest.raises((UnknownName, InvalidParameter)) as told:
        schema_from_tables({"age": table})
    assert "schema.age" in str(told.value)
    assert f"did you mean {column_and_word}" in str(told.value)


@pytest.mark.parametrize(
    "table",
    [
        "number", 5, [], None, {}, {"kind": 5}, {"kind": None},
        {"kind": "number", "low": 0}, {"kind": "number", "low": 1, "high": 0},
        {"kind": "number", "low": "0", "high": 1}, {"kind": "number", "low": float("nan"), "high": 1},
        {"kind": "number", "low": 0, "high": 1, "missing": 2},
        {"kind": "number", "low": 0, "high": 1, "missing": "none"},
        {"kind": "number", "low": 0, "high": 1, "spacing": 0.3},
        {"kind": "number", "low": 0, "high": 1, "spacing": "1/0"},
        {"kind": "number", "low": 0, "high": 1, "spacing": float("inf")},
        {"kind": "number", "low": 0, "high": 1, "spacing": True},
        {"kind": "number", "low": 0, "high": 1, "outside": ["clamp"]},
        {"kind": "integer", "low": 0.5, "high": 2}, {"kind": "integer", "low": 0, "high": 2, "spacing": 1},
        {"kind": "integer", "low": 0, "high": 2, "missing": "x"},
        {"kind": "category", "keys": "abc"}, {"kind": "category", "keys": [1, "a"]},
        {"kind": "category", "keys": [["a"]]}, {"kind": "category", "keys": ["a", "a"]},
        {"kind": "category", "keys": ["a"], "missing": ["a"]},
        {"kind": "flag", "missing": "no"}, {"kind": "flag", "low": 0},
        {"kind": "date"}, {"kind": "date", "low": "2020-01-01"}, {"kind": "date", "low": 1, "high": 2},
        {"kind": "date", "low": "2020-01-01", "high": "2019-01-01"},
        {"kind": "date", "low": "2020-01-01", "high": "2021-01-01", "missing": "x"},
    ],
)  # fmt: skip
def test_what_is_not_a_declaration_is_refused_with_its_column(table: Any) -> None:
    with pytest.raises(InvalidInput, match=r"schema\.age"):
        schema_from_tables({"age": table})


def test_an_empty_list_of_keys_is_not_the_same_as_none() -> None:
    with pytest.raises(EmptyComposition, match=r"schema\.age\.keys"):
        schema_from_tables({"age": {"kind": "category", "keys": []}})
    with pytest.raises(InvalidParameter):
        schema_from_tables([("age", {"kind": "flag"})])  # type: ignore[arg-type]
