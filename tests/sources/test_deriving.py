"""Derived columns: total on every value, the same on every engine, and what the language says they are."""

from __future__ import annotations

import datetime
import math
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from support.spark import frame as spark_frame
from support.spark import needs_spark
from tacit.errors import BadExpression, InvalidParameter, UnknownColumn, UnknownName
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, derived, flag, integer, number, open_table
from tacit.sources import deriving as language
from tacit.sources.deriving import Binary, Call, DerivedConstant, Negative, Reference, Test, parse
from tacit.sources.schema import schema_from_tables, schema_to_tables

BASE = {
    "a": number(), "b": number(-50, 50), "i": integer(-9, 9), "k": category([1, 2, 3]), "t": category(), "f": flag(),
    "u": category(["x", "Ab", "é"]), "d": date("2000-01-01", "2030-12-31"),
}  # fmt: skip
ODD = {
    "a": [
        0.0,
        -0.0,
        1.5,
        2.0,
        -3.25,
        1e308,
        -1e308,
        5e-324,
        0.1,
        1e17,
        2.0**53,
        math.inf,
        -math.inf,
        math.nan,
        None,
    ],
    "b": [0.0, 1.0, -7.125, 0.3, 100.0, -1e300, math.nan, None, 49.99],
    "i": [0, 1, -9, 5, 2**31 - 1, None],
    "k": [1, 2, 3, 4, None],
    "t": ["", "x", "Ab", " Ab\t", "éÉß", "12", " 1e400", "-3.5", "NaN", "𝄞x", "İI", "a'b\\c", None],
    "u": ["x", "Ab", "é", "y", None],
    "f": [True, False, None],
    "d": [datetime.date(2000, 2, 29), datetime.date(1990, 1, 1), datetime.date(2024, 12, 31), None],
}
EXPRESSIONS = [
    "a * b", "a / b", "a / b / i", "1 / (a * a)", "(a + b) * 0.1 - i", "-a + 3 * -i", "a - a", "abs(a) + abs(b)",
    "floor(a)", "ceil(b / 3)", "sqrt(a)", "min(a, b, i)", "max(a, -b)", "bin(a, -1, 0, 1.5)", "bin(b, 0)",
    "case(a > 1, 1, a < 0, -1, 0)", "case(f, a, b)", "coalesce(a, b, 7)", "length(t)", "number(t) * 2",
    "year(d) * 10000 + month(d) * 100 + day(d)", "days_between(d, '2020-01-01')", "k * 2", "k + i",
    "case(u = 'x', 1, u in ('Ab', 'é'), 2, 0)", "length(concat(t, u, 'z'))", "1e308 * 10 * a", "0.1 + 0.2 + a",
    "max(a * 1e300 * 1e300, 0)", "case(a / b > 1, 1, 0)", "a * 0.30000000000000004", "case(d is missing, 1, 0)",
]  # fmt: skip
TEXTS = [
    "lower(t)", "upper(t)", "trim(t)", "left(t, 2)", "part(t, 2, 3)", "replace(t, 'b', 'xy')", "concat(t, u)",
    "text(a)", "text(i)", "case(f, 'yes', t)", "coalesce(u, t)", "left(t, 0)", "part(t, 3, 0)", "concat(t, 'a''b')",
]  # fmt: skip
FLAGS = [
    "a > b", "a = b or f", "not f and k != 2", "t = u", "begins(t, 'A')", "ends(t, 'b')", "contains(t, 'x')",
    "d >= '2010-01-01'", "d between '2000-01-01' and '2001-01-01'", "i in (1, -9)", "a is missing", "f = true",
    "not a between 0 and 2", "t is not missing", "f or a > 0", "f and a > 0", "not t in ('x', 'Ab')",
]  # fmt: skip
DAYS = ["coalesce(d, '2001-02-03')", "case(f, d, '2005-06-07')"]


def declared(name, value):
    """The declared value of a cell, from the words of the page on data."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if name == "b":
        return min(max(value, -50.0), 50.0)
    if name == "i":
        return float(min(max(value, -9), 9))
    if name == "k":
        return float(value) if value in (1, 2, 3) else None
    if name == "u":
        return value if value in ("x", "Ab", "é") else None
    if name == "d":
        return min(max(value, datetime.date(2000, 1, 1)), datetime.date(2030, 12, 31))
    return value


SPACE = " \t\n\r\v\f"


def finite(x):
    return x if x is not None and math.isfinite(x) else None


def meaning(node, row):
    """What a part is, from the definition of the language, in Python."""

    def value(one):
        return meaning(one, row)

    match node:
        case DerivedConstant(value=v):
            return v
        case Reference(name=name):
            return declared(name, row[name])
        case Negative(sign="-", inner=inner):
            x = value(inner)
            return None if x is None else -x
        case Negative(inner=inner):
            x = value(inner)
            return None if x is None else not x
        case Binary(sign="and"):
            both = [value(node.left), value(node.right)]
            return False if False in both else None if None in both else True
        case Binary(sign="or"):
            both = [value(node.left), value(node.right)]
            return True if True in both else None if None in both else False
        case Test(values=()):
            return firm(node.inner, row) is None
        case Test(values=values):
            x = firm(node.inner, row)
            return None if x is None else any(x == alike(v.value, x) for v in values)
        case Binary(sign=sign) if sign in "+-*/":
            x, y = value(node.left), value(node.right)
            if x is None or y is None:
                return None
            with np.errstate(all="ignore"):
                if sign == "/":
                    return None if y == 0 or not math.isfinite(y) else float(np.float64(x) / np.float64(y))
                x, y = np.float64(x), np.float64(y)
                return float(x + y if sign == "+" else x - y if sign == "-" else x * y)
        case Binary(sign=sign):
            x, y = firm(node.left, row), firm(node.right, row)
            if x is None or y is None:
                return None
            x, y = alike(x, y), alike(y, x)
            return (
                {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]
                if (not isinstance(x, str | bool))
                else {"=": x == y, "!=": x != y}[sign]
            )
    return called(node, row)


def alike(x, other):
    return datetime.date.fromisoformat(x) if isinstance(other, datetime.date) and isinstance(x, str) else x


def firm(node, row):
    x = meaning(node, row)
    return finite(x) if isinstance(x, float) else x


def called(node, row):
    assert isinstance(node, Call)
    name, given = node.name, node.arguments
    if name == "case":
        for test, then in zip(given[0:-1:2], given[1:-1:2], strict=True):
            if meaning(test, row) is True:
                return firm(then, row)
        return firm(given[-1], row)
    values = [firm(g, row) for g in given]
    if name == "coalesce":
        return next((v for v in values if v is not None), None)
    if None in values:
        return None
    x, *rest = values
    small = {chr(c): chr(c + 32) for c in range(65, 91)}
    match name:
        case "abs":
            return abs(x)
        case "floor":
            return float(math.floor(x))
        case "ceil":
            return float(math.ceil(x))
        case "sqrt":
            return math.sqrt(x) if x >= 0 else None
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "bin":
            return float(sum(x >= edge for edge in rest))
        case "length":
            return float(len(x))
        case "number":
            x = x.strip(SPACE)
            return float(x) if x and set(x) <= set("0123456789.+-eE") else math.inf if x == "inf" else None
        case "year" | "month" | "day":
            return float(getattr(x, name))
        case "days_between":
            last = alike(rest[0], datetime.date.min)
            return float((last - x).days)
        case "lower":
            return "".join(small.get(c, c) for c in x)
        case "upper":
            return "".join({b: a for a, b in small.items()}.get(c, c) for c in x)
        case "trim":
            return x.strip(SPACE)
        case "left":
            return x[: int(rest[0])]
        case "part":
            return x[int(rest[0]) - 1 :][: int(rest[1])]
        case "replace":
            return x.replace(rest[0], rest[1])
        case "concat":
            return "".join(values)
        case "text":
            return str(int(x)) if x == int(x) and abs(x) < 2**53 else None
        case "begins":
            return x.startswith(rest[0])
        case "ends":
            return x.endswith(rest[0])
    return rest[0] in x


def table_of(chance, size=400):
    rows_ = [{name: chance.choice(cells) for name, cells in ODD.items()} for _ in range(size)]
    types = {
        "a": pa.float64(), "b": pa.float64(), "i": pa.int64(), "k": pa.int64(), "t": pa.string(), "u": pa.string(),
        "f": pa.bool_(), "d": pa.date32(),
    }  # fmt: skip
    return rows_, pa.table({n: pa.array([r[n] for r in rows_], t) for n, t in types.items()})


def schema_of():
    made = {f"n{i}": derived(e, number()) for i, e in enumerate(EXPRESSIONS)}
    made |= {f"s{i}": derived(e, category()) for i, e in enumerate(TEXTS)}
    made |= {f"q{i}": derived(e, flag()) for i, e in enumerate(FLAGS)}
    made |= {f"z{i}": derived(e, date("2000-01-01", "2030-12-31")) for i, e in enumerate(DAYS)}
    return Schema(BASE | made)


def compare(data, rows_):
    schema = schema_of()
    with open_table(data, schema=schema, unit=rows()) as table:
        numbered = table.read(lambda: table.relation.to_pyarrow())
    for name in schema.derived:
        tree = parse(schema[name].derived)
        wanted = [alike(firm(tree, r), datetime.date.min if name[0] == "z" else None) for r in rows_]
        found = numbered[name].to_pylist()
        counts = [
            sorted(map(repr, ((x + 0.0) if isinstance(x, float) else x for x in side)))
            for side in (found, wanted)
        ]
        assert counts[0] == counts[1], schema[name].derived


def test_every_part_is_what_the_definition_says():
    rows_, table = table_of(random.Random(3))
    compare(table, rows_)


@needs_spark
@pytest.mark.slow
def test_spark_gives_the_same_values():
    rows_, table = table_of(random.Random(4), 120)
    compare(spark_frame(table), rows_)


def test_a_canonical_text_reads_as_itself():
    chance = random.Random(9)

    def grown(depth):
        if depth == 0:
            return chance.choice(["a", "b", "i", "2", "0.5", "-1"])
        left, right = grown(depth - 1), grown(depth - 1)
        return chance.choice(
            [f"({left}) {chance.choice('+-*/')} ({right})", f"-({left})", f"max({left}, {right})"]
        )

    for text in [*EXPRESSIONS, *TEXTS, *FLAGS, *DAYS, *(grown(chance.randrange(4)) for _ in range(300))]:
        tree = parse(text)
        assert parse(str(tree)) == tree
        assert str(parse(str(tree))) == str(tree)
    assert str(parse("a-(b-i)*2")) == "a - (b - i) * 2"
    assert parse("`a b` + 1").columns() == {"a b"}


@pytest.mark.parametrize(
    ("text", "column", "error"),
    [
("a +", number(0, 1), BadExpression), ("a; drop table t", number(0, 1), BadExpression),
        ("", number(0, 1), None), ("exp(a)", number(0, 1), BadExpression),
        ("t + 1", number(0, 1), BadExpression), ("a", flag(), BadExpression), ("t < u", flag(), BadExpression),
        ("wage * 2", number(0, 1), UnknownColumn), ("t", number(0, 1), BadExpression),
        ("case(f, 1)", number(0, 1), BadExpression), ("case(f, 1, 'x')", number(0, 1), BadExpression),
        ("bin(a, 2, 1)", number(0, 1), BadExpression), ("left(t, a)", category(), BadExpression),
        ("left(t, 1.5)", category(), BadExpression), ("part(t, 0, 1)", category(), BadExpression),
        ("replace(t, '', 'x')", category(), BadExpression), ("x + 1", number(0, 1), BadExpression),
        ("sqrt(" * 7 + "a" + ")" * 7, number(0, 1), BadExpression),
        ("(" * 60 + "a" + ")" * 60, number(0, 1), BadExpression),
        ("a" + " + a" * 3000, number(0, 1), BadExpression), ("1e999", number(0, 1), BadExpression),
        ("min(a)", number(0, 1), BadExpression), ("a in (b)", flag(), BadExpression),
        ("a b", number(0, 1), BadExpression), ("d = 'no day'", flag(), BadExpression),
        ("a is 3", flag(), BadExpression), ("a\0", number(0, 1), BadExpression),
    ],
)  # fmt: skip
def test_what_is_not_in_the_language_is_an_error_before_anything_is_read(text, column, error):
    with pytest.raises(error or InvalidParameter):
        Schema(BASE | {"x": derived(text, column)})


def test_columns_are_derived_from_derived_ones_and_never_in_a_ring():
    with pytest.raises(BadExpression, match="ring"):
        Schema({"x": derived("y", number(0, 1)), "y": derived("x", number(0, 1))})
    schema = Schema(
        {"z": derived("y * 2", number(0, 9)), "y": derived("a + 1", number(0, 3)), "a": number(0, 100)}
    )
    assert list(schema.derived) == ["y", "z"]
    assert schema.behind(["z"]) == {"a", "y", "z"}
    with open_table(pa.table({"a": [0.0, 1.0, 50.0]}), schema=schema, unit=rows()) as table:
        found = table.read(lambda: table.relation.to_pyarrow())["z"].to_pylist()
    assert sorted(found) == [2.0, 4.0, 6.0]  # y is clamped to 3 before it is doubled


def test_bounds_are_those_of_the_derived_column_and_one_row_moves_no_more():
    schema = Schema({"a": number(), "b": number(), "x": derived("a * b", number(0, 10))})
    base = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    sums = []
    for a, b in ((0.0, 0.0), (1e200, 1e200), (5.0, 100.0), (-1.0, 7.0), (math.inf, 0.0), (math.nan, 1.0)):
        table = pd.concat([base, pd.DataFrame({"a": [a], "b": [b]})])
        with open_table(table, schema=schema, unit=rows()) as opened:
            (found,) = ask.read(opened, [ask.sum("x").on(schema, rows())])
        sums.append(float(next(iter(found.values()))) * float(schema.measured("x").spacing))
    assert max(sums) - min(sums) == 10.0
    assert sums[1] == sums[4] == sums[5] == 11.0  # no finite number: missing


def test_a_plan_writes_it_beside_the_kind_and_a_schema_comes_back():
    tables = {
        "w": {"kind": "number"},
        "x": {"kind": "number", "low": 0, "high": 9, "from": "w*2"},
        "old": {"kind": "flag", "from": "x > 5"},
    }
    schema = schema_from_tables(tables)
    assert schema["x"].derived == "w * 2"
    assert schema_from_tables(schema_to_tables(schema)) == schema
    assert schema.to_dict()["x"]["from"] == "w * 2"
    assert schema.text != schema_from_tables({**tables, "x": {**tables["x"], "from": "w*3"}}).text
    with pytest.raises(InvalidParameter, match=r"schema\.x\.from"):
        schema_from_tables({"x": {"kind": "flag", "from": 3}})
    with pytest.raises(BadExpression, match=r"schema\.x\.from"):
        schema_from_tables({"x": {"kind": "flag", "from": "a +"}})
    with pytest.raises(UnknownName):
        schema_from_tables({"x": {"kind": "flag", "form": "a"}})


def test_the_person_is_a_stored_column():
    schema = {"a": number(), "p": derived("a + 1", integer(0, 9))}
    with pytest.raises(InvalidParameter, match="not a derived one"):
        open_table(pa.table({"a": [1.0]}), schema=schema, unit=people("p", at_most=1))


def test_people_are_bounded_after_columns_are_derived():
    schema = Schema({"t": category(), "x": derived("upper(t)", category(["A", "B"]))})
    table = pa.table({"who": ["p", "p", "p", "q"], "t": ["a", "a", "b", "b"]})
    for portable in (False, True):
        with open_table(table, schema=schema, unit=people("who", at_most=2), portable=portable) as opened:
            (found,) = ask.read(
                opened, [ask.count(by="x").on(schema, opened.unit)], key=b"0123456789abcdef-secret"
            )
        counts = np.ravel(next(iter(found.values()))).tolist()
        assert sum(counts) == 3
        assert counts[1] >= 1


def test_a_twin_has_no_derived_column():
    from tacit.sources.synthetic.twin import twin

    schema = Schema({"a": number(0, 1), "x": derived("a + 1", number(0, 2))})
    made = twin(schema, rows=20)
    assert made.column_names == ["a"]
    assert tacit.derived is derived
    with open_table(made, schema=schema, unit=rows()) as table:
        assert set(table.columns) == {"a", "x"}
    assert language.FUNCTIONS


MANY = "a" * 2000
LONG_TEXTS = [
    "",
    "a",
    "aaaa",
    "aaaaa",
    "aaaaaa",
    "b" * 9_999,
    "b" * 10_000,
    "b" * 10_001,
    "ab" * 550,
    None,
    "é" * 9_999,
]
GROWING = {
    f"replace(t, 'a', '{MANY}')": lambda t: t.replace("a", MANY),
    "replace(t, 'ab', 'xyz')": lambda t: t.replace("ab", "xyz"),
    "concat(t, 'a')": lambda t: t + "a",
    "concat('ab', t, t)": lambda t: "ab" + t + t,
}


def bounded(made):
    return made if made is not None and len(made) <= 10_000 else None


def compare_growing(frame_of):
    schema = Schema({"t": category()} | {f"x{i}": derived(e, category()) for i, e in enumerate(GROWING)})
    with open_table(
        frame_of(pa.table({"t": pa.array(LONG_TEXTS, pa.string())})), schema=schema, unit=rows()
    ) as table:
        found = table.read(lambda: table.relation.to_pyarrow())
    for i, made in enumerate(GROWING.values()):
        wanted = [None if t is None else bounded(made(t)) for t in LONG_TEXTS]
        assert sorted(map(repr, found[f"x{i}"].to_pylist())) == sorted(map(repr, wanted)), i
    # A text that nothing makes longer is not bounded: it is in memory already.
    schema = Schema({"t": category(), "x": derived("replace(t, 'bb', 'c')", category())})
    with open_table(
        frame_of(pa.table({"t": pa.array(LONG_TEXTS, pa.string())})), schema=schema, unit=rows()
    ) as table:
        found = table.read(lambda: table.relation.to_pyarrow())["x"].to_pylist()
    assert "c" * 5_000 + "b" in found


def test_a_text_that_would_be_too_long_is_missing():
    compare_growing(lambda table: table)


@needs_spark
@pytest.mark.slow
def test_spark_knows_the_same_texts_as_too_long():
    compare_growing(spark_frame)


def test_one_short_row_takes_no_memory():
    """Two nested replacements would make 4.4e9 characters of 1,100: known before one of them is made."""
    import resource

    deep = f"length(replace(replace(t, 'a', '{MANY}'), 'a', '{MANY}'))"
    schema = Schema({"t": category(), "x": derived(deep, number(0, 9_999))})
    data = pa.table({"t": ["a" * 1_100, "a" * 5, "b", "ab" * 2]})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_table(data, schema=schema, unit=rows()) as table:
        found = table.read(lambda: table.relation.to_pyarrow())["x"].to_pylist()
    assert sorted(found, key=str) == [1.0, None, None, None]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes


def test_a_length_that_declarations_bound_is_not_looked_at():
    from tacit.sources.deriving import longest

    schema = Schema(BASE | {"v": derived("left(t, 3)", category())})
    for text, wanted in (
        ("'abc'", 3), ("u", 2), ("t", math.inf), ("left(t, 7)", 7), ("part(u, 1, 9)", 2), ("text(a)", 20),
        ("concat(u, u, 'x')", 5), ("concat(t, u)", 10_000), ("replace(u, 'x', 'yz')", 4), ("lower(upper(t))", math.inf),
        ("replace(t, 'xx', 'y')", math.inf), ("case(f, u, 'long word')", 9), ("coalesce(u, v)", math.inf),
        ("replace(left(t, 9000), 'x', 'yy')", 10_000),
    ):  # fmt: skip
        assert longest(parse(text), schema) == wanted, text
