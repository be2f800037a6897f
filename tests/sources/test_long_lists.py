"""Long declared lists, whose words the engine looks up: the same integers as for short ones, whatever the rows hold."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit.statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, flag, open_table
from tacit.sources import query as query_room
from tacit.sources.engines import DuckDB

KEY = b"0123456789abcdef-secret"
WORDS = ["CA", "ca", "é", "e\u0301", "", " ", "CA ", "a\0b", "a", "\U0001f600", "NULL", "'", "w" * 300]
ODD = [b"CA\xff", b"CA\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"Ca", b"CA  ", "É".encode(), b"a\0c", b"null"]


@pytest.fixture(params=[1, 1 << 30], ids=["in the engine", "in Arrow"])
def looked_up(request: Any, monkeypatch: Any) -> Iterator[list[Any]]:
    """Either way of looking words up; and the lists that were shown to the engine."""
    shown: list[Any] = []
    whole = DuckDB.listed
    monkeypatch.setattr(query_room, "LONG", request.param)
    monkeypatch.setattr(DuckDB, "listed", lambda *a: shown.append(a[1]) or whole(*a))
    yield shown
    assert bool(shown) == (request.param == 1)


def text_of(values: list[bytes | None]) -> pa.Array:
    """Text of any bytes, as a file may hold it."""
    ends = np.cumsum([0, *(len(v or b"") for v in values)])
    known = np.packbits([v is not None for v in values], bitorder="little").tobytes()
    data = b"".join(v or b"" for v in values)
    buffers = [pa.py_buffer(b) for b in (known, struct.pack(f"{len(ends)}i", *ends), data)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def rows_of(repeats: int = 3) -> list[bytes | None]:
    good = [w.encode() for i, w in enumerate(WORDS) for _ in range(i + 1)]
    return [*good, *ODD * repeats, None, None]


def read(data: Any, schema: Schema, *asked: Any, unit: Any = None) -> list[Any]:
    unit = unit or rows()
    with open_table(data, schema=schema, unit=unit) as table:
        found = ask.read(table, [s.on(schema, unit) for s in asked], key=KEY)
    return [np.asarray(f["count"]).tolist() for f in found]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_words_are_their_bytes(tmp_path: Any, looked_up: Any, kind: str) -> None:
    data: Any = pa.table({"s": text_of(rows_of())})
    if kind == "parquet":
        pq.write_table(data, tmp_path / "t.parquet")
        data = tmp_path / "t.parquet"
    [found] = read(data, Schema({"s": category(WORDS)}), ask.count(by="s"))
    assert found == [i + 1 for i in range(len(WORDS))]


@pytest.mark.parametrize("setting", ["column", "session"])
def test_no_collation_makes_two_words_one(looked_up: Any, setting: str) -> None:
    connection = ibis.duckdb.connect()
    if setting == "session":
        connection.con.execute("SET default_collation = 'NOCASE.NOACCENT'")
    how = "COLLATE NOCASE.NOACCENT" if setting == "column" else ""
    connection.con.execute(f"CREATE TABLE t (s VARCHAR {how})")
    held = ["ca"] * 2 + ["CA"] * 5 + ["Ca"] * 7 + ["É"] * 3 + ["é"]
    connection.con.executemany("INSERT INTO t VALUES (?)", [(v,) for v in held])
    schema = Schema({"s": category(["CA", "e", "é", "ca"])})
    for _ in range(2):
        assert read(connection.table("t"), schema, ask.count(by="s")) == [[5, 0, 1, 2]]
    left = connection.con.execute("SELECT count(*) FROM duckdb_views() WHERE view_name LIKE '__tacit%'")
    assert left.fetchone() == (0,), "nothing stays behind in somebody else's session"


def test_a_word_outside_the_list_counts_where_the_list_is_not_asked_for(looked_up: Any) -> None:
    """Two questions in one pass: who has no place on one axis has one on the other."""
    schema = Schema({"s": category(WORDS), "f": flag(), "t": category(["x", "y"])})
    held = rows_of()
    n = len(held)
    data = pa.table({"s": text_of(held), "f": [i % 2 == 0 for i in range(n)], "t": ["y"] * (n - 1) + ["z"]})
    asked = [ask.count(by=["s", "f", "t"]), ask.count(by="f"), ask.count(), ask.count(by="t")]
    fine, coarse, all_rows, other = read(data, schema, *asked)
    expected = np.zeros((len(WORDS), 2, 2), dtype=int)
    for i, v in enumerate(held):
        if v in [w.encode() for w in WORDS]:
            expected[[w.encode() for w in WORDS].index(v), int(i % 2 == 0), 1] += 1
    assert fine == expected.tolist()
    assert (coarse, all_rows, other) == ([n // 2, n - n // 2], n, [0, n - 1])


def test_a_missing_word_counts_as_declared(looked_up: Any) -> None:
    words = [w for w in WORDS if "\0" not in w]
    schema = Schema({"s": category(words, missing="ca")})
    held = [*(w.encode() for w in words), *ODD, None, None]
    [found] = read(pa.table({"s": text_of(held)}), schema, ask.count(by="s"))
    assert found == [1 + (len(ODD) + 2) * (w == "ca") for w in words]


def test_numbers_that_were_declared_as_words(looked_up: Any) -> None:
    schema = Schema({"s": category(["1", "2", "10"])})
    for held in ([1, 2, 2, 7, None], [1.0, 2.0, 2.0, 2.5, None]):
        assert read(pa.table({"s": held}), schema, ask.count(by="s")) == [[1, 2, 0]]


def test_a_list_is_shown_once(looked_up: Any, tmp_path: Any) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT 'k' || i AS s, i % 2 = 0 AS f FROM range(9) r(i)) TO '{path}' (FORMAT parquet)")
    schema = Schema({"s": category([f"k{i}" for i in range(5)]), "f": flag()})
    with open_table(path, schema=schema, unit=rows()) as table:
        for by in ("s", ["s", "f"], "s"):
            found = ask.read(table, [ask.count(by=by).on(schema, rows())], key=KEY)
            assert int(np.sum(found[0]["count"])) == 5
        assert len(looked_up) <= 1


def test_the_person_may_be_a_declared_word(looked_up: Any) -> None:
    """Her own column is the only list of words that is not kept as places."""
    schema = Schema({"s": category(["a", "b"])})
    data = pa.table({"s": ["a", "a", "a", "b", "c", None]})
    assert read(data, schema, ask.count(by="s"), unit=people("s", at_most=2)) == [[2, 1]]


def test_people_in_a_long_list_are_counted(monkeypatch: Any) -> None:
    """Bounded rows hold places already: nothing is looked up twice."""
    monkeypatch.setattr(query_room, "LONG", 1)
    schema = Schema({"s": category(["10", "0", "1"])})
    data = pa.table({"s": ["10", "0", "0", "1", "2", None], "id": [1, 1, 2, 3, 3, 4]})
    assert read(data, schema, ask.count(by="s"), unit=people("id", at_most=2)) == [[1, 2, 1]]
