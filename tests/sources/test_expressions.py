"""The filter language: its grammar, its checks, and its logic against a plain evaluator."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit.statistics as ask
from support.naive import test as evaluate
from tacit.errors import BadExpression, InvalidInput, UnknownColumn, UnknownName, WrongType
from tacit.guarantees import rows
from tacit.sources import Schema, category, date, flag, integer, number, open_table, parse
from tacit.sources.expressions import And, Compare, Constant, IsIn, IsMissing, IsTrue, Not, Or

SCHEMA = Schema(
    {
        "age": integer(0, 99),
        "state": category(["CA", "NY", "it's"]),
        "odd name": number(-5, 5),
        "sick": flag(),
        "day": date("2020-01-01", "2020-12-31"),
        "ward": category([1, 2]),
        "and": flag(missing=False),
    }
)
TYPES = [
    ("age", pa.int64()),
    ("state", pa.string()),
    ("odd name", pa.float64()),
    ("sick", pa.bool_()),
    ("day", pa.string()),
    ("ward", pa.int64()),
    ("and", pa.bool_()),
]


def leaves():
    order = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    equal = st.sampled_from(["=", "!="])
    return st.one_of(
        st.builds(lambda o, v: Compare(column="age", operator=o, value=v), order, st.integers(-3, 110)),
        st.builds(
            lambda o, v: Compare(column="odd name", operator=o, value=v), order, st.sampled_from([-2.5, 0, 3])
        ),
        st.builds(
            lambda o, v: Compare(column="state", operator=o, value=v), equal, st.sampled_from(["CA", "it's"])
        ),
        st.builds(lambda o, v: Compare(column="day", operator=o, value=v), order, st.just("2020-05-05")),
        st.builds(
            lambda v: IsIn(column="ward", values=tuple(v)), st.lists(st.sampled_from([1, 2]), min_size=1)
        ),
        st.builds(lambda v: IsIn(column="state", values=tuple(v)), st.lists(st.just("NY"), min_size=1)),
        st.sampled_from(
            [IsTrue(column="sick"), IsTrue(column="and"), Constant(value=True), Constant(value=False)]
        ),
        st.sampled_from([IsMissing(column=c) for c in SCHEMA]),
    )


def joined(kind, parts):
    flat = [q for p in parts for q in (p.parts if isinstance(p, kind) else (p,))]
    return kind(parts=tuple(flat))


TREES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda x: Not(inner=x), inner),
        st.builds(lambda xs: joined(And, xs), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda xs: joined(Or, xs), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=8,
)
DATA = [
    {"age": a, "state": s, "odd name": x, "sick": f, "day": d, "ward": w, "and": b}
    for a, s, x, f, d, w, b in [
        (5, "CA", -2.5, True, "2020-05-05", 1, None),
        (None, None, None, None, None, None, None),
        (40, "it's", 3.0, False, "2020-06-01", 2, True),
        (120, "ZZ", float("nan"), None, "no date", 3, False),
        (-7, "NY", 0.0, True, "1999-01-01", None, True),
        (99, "CA", 9.0, False, None, 1, None),
    ]
]


@given(TREES)
def test_text_and_tree_are_one(tree):
    assert parse(str(tree)) == tree
    tree.check(SCHEMA)


@pytest.fixture(scope="module")
def table():
    arrow = pa.Table.from_pylist(DATA, schema=pa.schema(TYPES))
    with open_table(arrow, schema=SCHEMA, unit=rows()) as opened:
        yield opened


@settings(max_examples=60)
@given(TREES)
def test_the_engine_keeps_the_rows_that_the_logic_keeps(table, tree):
    import datetime

    data = []
    for row in DATA:
        try:
            day = datetime.date.fromisoformat(row["day"] or "")
        except ValueError:
            day = None
        data.append({**row, "day": day})
    question = ask.count(where=tree).on(SCHEMA, rows())
    seen = ask.read(table, [question])[0]["count"]
    assert seen == sum(evaluate(tree, SCHEMA, r) is True for r in data)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text):
    tree = None
    with contextlib.suppress(BadExpression):
        tree = parse(text)
    if tree is not None:
        assert parse(str(tree)) == tree


WORDS = [
    "age",
    "state",
    "sick",
    "and",
    "or",
    "not",
    "in",
    "is",
    "missing",
    "between",
    "(",
    ")",
    ",",
    "<=",
    "=",
    "3",
    "'CA'",
    "true",
    "`odd name`",
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_words_are_parsed_or_refused(text):
    with contextlib.suppress(InvalidInput):
        parse(text).check(SCHEMA)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", BadExpression),
        ("age >=", BadExpression),
        ("age >= 18 and", BadExpression),
        ("(age > 1", BadExpression),
        ("age > state", BadExpression),
        ("age; drop table", BadExpression),
        ("age in ()", BadExpression),
        ("age + 1 > 2", BadExpression),
        ("sum(age) > 2", BadExpression),
        ("age > 1e999", BadExpression),
        ("state = 'CA", BadExpression),
        ("not " * 100 + "sick", BadExpression),
        ("(" * 100 + "sick" + ")" * 100, BadExpression),
        ("x" * 30_000, BadExpression),
        ("state = 'a\0'", BadExpression),
        ("agee > 1", UnknownColumn),
        ("age = 'x'", WrongType),
        ("age", WrongType),
        ("state > 'CA'", WrongType),
        ("sick = 1", WrongType),
        ("day > 'yesterday'", WrongType),
        ("state = 'ZZ'", UnknownName),
        ("ward = 7", UnknownName),
        ("ward = '1'", WrongType),
        ("age = true", WrongType),
    ],
)
def test_what_is_outside_the_language_is_refused(text, error):
    with pytest.raises(error):
        ask.count(where=text).on(SCHEMA, rows())


def test_precedence_and_case():
    assert parse("a or b and not c") == Or(
        parts=(IsTrue(column="a"), And(parts=(IsTrue(column="b"), Not(inner=IsTrue(column="c")))))
    )
    assert parse("NOT a Or TRUE") == parse("not a or true")
    assert parse("18 <= age") == parse("age >= 18")
    assert parse('state = "CA"') == parse("state = 'CA'")
    assert str(parse("age not between 1 and 2")) == "not (age >= 1 and age <= 2)"


@pytest.mark.parametrize("operator", [">= 3 or age <", "=>", "", ">= 3 or"])
def test_a_tree_has_no_text_of_another_one(operator):
    """Its text would be that of another filter, and the digest of a question is made of it."""
    with pytest.raises(UnknownName, match="comparison"):
        Compare(column="age", operator=operator, value=5).check(SCHEMA)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_constant_is_finite(value):
    with pytest.raises(WrongType):
        Compare(column="odd name", operator="<", value=value).check(SCHEMA)


def test_the_nearest_column_is_named():
    with pytest.raises(UnknownColumn, match="did you mean 'age'"):
        ask.count(where="aeg > 1").on(SCHEMA, rows())
