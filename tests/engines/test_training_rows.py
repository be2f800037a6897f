"""Rows for training are the same rows in every engine, declared, clamped and bounded; odd ones count as missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import tacit
from tacit.sources.expressions import parse
from tacit.sources.query import RowsWanted, read_rows

KEY = b"an ordinary secret of the tests."
TYPES = {"id": pa.int64(), "x": pa.float64(), "n": pa.int64(), "k": pa.string(), "f": pa.bool_()}
SCHEMA = {
    "x": tacit.number(0, 8, spacing=0.5),
    "n": tacit.integer(-2, 5, outside="missing"),
    "k": tacit.category(["a", "b"]),
    "f": tacit.flag(missing=False),
}
ROWS = [
    {"id": 1, "x": 1.0, "n": 0, "k": "a", "f": True},
    {"id": 1, "x": 99.0, "n": 5, "k": "b", "f": True},
    {"id": 2, "x": -3.0, "n": 6, "k": "z", "f": None},
    {"id": 2, "x": None, "n": None, "k": None, "f": False},
    {"id": 3, "x": 2.24, "n": -2, "k": "b", "f": True},
]
NONE = float("nan")
# x in halves, n above -2, the place of k; rows that do not pass f count as missing.
EXPECTED = [(2.0, 2.0, 0.0), (16.0, 7.0, 1.0), (NONE, NONE, NONE), (NONE, NONE, NONE), (4.0, 0.0, 1.0)]


def found(table, where=None):
    wanted = RowsWanted(columns=("x", "n"), categories=("k",), where=parse(where) if where else None)
    (read,) = read_rows(table, [wanted], key=KEY)
    return sorted(map(str, zip(*(read.rows[c] for c in ("x", "n", "k")), strict=True)))


def shown(rows):
    return sorted(str(tuple(np.float64(v) for v in row)) for row in rows)


def test_rows_are_declared_clamped_and_filtered(opened):
    table = opened(ROWS, TYPES, schema=SCHEMA, unit=tacit.rows())
    assert found(table, "f") == shown(EXPECTED)
    assert found(table) == shown([*EXPECTED[:2], (0.0, NONE, NONE), EXPECTED[3], EXPECTED[4]])


def test_people_have_at_most_as_many_rows_as_declared(opened):
    table = opened(ROWS * 7, TYPES, schema=SCHEMA, unit=tacit.people("id", at_most=2))
    assert len(found(table)) == 6


def test_a_table_without_rows(opened):
    table = opened([], TYPES, schema=SCHEMA, unit=tacit.rows())
    assert found(table) == []
