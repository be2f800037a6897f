"""Keys become places on the axes in the same way, however they come in batches and in whatever order."""

from __future__ import annotations

import json
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from tacit.exact.canonical import canonical, canonical_table
from tacit.guarantees import rows
from tacit.sources import Schema, category, flag, integer, number, open_table
from tacit.sources import engines as engines_room
from tacit.sources.axes import CountRows, Listed, axes_of, positions, texts
from tacit.sources.query import Aggregation, run

WORDS = [f"word {i * 7919 % 1000}" for i in range(1000)]


def read(table: pa.Table, schema: Schema, *by: str, sparse: bool = False) -> Any:
    request = Aggregation(axes=axes_of(by, schema), aggregates=(CountRows(),), sparse=sparse)
    with open_table(table, schema=schema, unit=rows()) as opened:
        return run(opened, [request])[0]


@pytest.mark.parametrize("batch", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("words", [True, False])
def test_a_long_list_is_the_same_in_batches_of_any_size(monkeypatch: Any, batch: int, words: bool) -> None:
    monkeypatch.setattr(engines_room, "BATCH", batch)
    declared = WORDS if words else [i * 7919 % 1000 for i in range(1000)]
    held = [declared[i % 990] for i in range(2500)] + ["no such word" if words else 5000] * 3 + [None]
    cells = read(pa.table({"k": held}), Schema({"k": category(declared)}), "k")
    expected = [sum(1 for h in held if h == d) for d in declared]
    assert cells.values[CountRows()].tolist() == expected


@pytest.mark.parametrize("batch", [1, 7, 100_000])
def test_more_cells_than_the_list_is_long_are_counted_once(monkeypatch: Any, batch: int) -> None:
    """They are looked up in several goes, each for as many as the list is long."""
    monkeypatch.setattr(engines_room, "BATCH", batch)
    schema = Schema({"k": category(WORDS), "f": flag()})
    held = {"k": [WORDS[i % 990] for i in range(2970)], "f": [i // 990 != 1 for i in range(2970)]}
    cells = read(pa.table(held), schema, "k", "f")
    expected = np.zeros((1000, 2), dtype=int)
    for word, f in zip(held["k"], held["f"], strict=True):
        expected[WORDS.index(word), int(f)] += 1
    assert cells.values[CountRows()].reshape(1000, 2).tolist() == expected.tolist()


@pytest.mark.parametrize("batch", [1, 7, 100_000])
def test_occupied_cells_of_a_long_list_are_the_same_in_batches_of_any_size(
    monkeypatch: Any, batch: int
) -> None:
    monkeypatch.setattr(engines_room, "BATCH", batch)
    held = [WORDS[i % 500] for i in range(1200)] + ["no such word", None]
    schema = Schema({"k": category(WORDS), "f": flag()})
    cells = read(pa.table({"k": held, "f": [i % 2 == 0 for i in range(1202)]}), schema, "k", "f", sparse=True)
    found = dict(
        zip(np.asarray(cells.keys[0]).astype(int).tolist(), cells.values[CountRows()].tolist(), strict=True)
    )
    expected: dict[int, int] = {}
    for i, h in enumerate(held[:1200]):
        place = WORDS.index(h) * 2 + (i % 2 == 0)
        expected[place] = expected.get(place, 0) + 1
    assert found == expected


@pytest.mark.parametrize("sorts", ["by hash", "by a number that keys share", "not"])
def test_unknown_keys_come_in_an_order_of_their_own(monkeypatch: Any, sorts: str) -> None:
    """Which follows from the keys, whatever the order of the rows; that of their text where hashes do not tell."""
    if sorts == "not":
        monkeypatch.setattr(engines_room.DuckDB, "in_order", lambda self, query, keys: query)
    elif sorts != "by hash":
        order = {engines_room.ORDER: ibis.literal(7, type="uint64")}
        monkeypatch.setattr(engines_room.DuckDB, "in_order", lambda self, query, keys: query.mutate(**order))
    held = ["b", "B", "é", "zz", "", "a\0", "a", "\U0001f600", "￿", "10", "9", None] * 3
    words = sorted({h for h in held if h is not None})
    cells = read(pa.table({"k": held}), Schema({"k": category()}), "k")
    assert sorted(cells.keys[0].tolist()) == words
    assert cells.values[CountRows()].tolist() == [3] * 11
    if sorts != "by hash":
        assert cells.keys[0].tolist() == words
    for moved in (held[::-1], sorted(held, key=str), held[5:] + held[:5]):
        again = read(pa.table({"k": moved}), Schema({"k": category()}), "k")
        assert again.keys[0].tolist() == cells.keys[0].tolist()
    n = [i % 12 for i in range(len(held))]
    both = read(pa.table({"k": held, "n": n}), Schema({"k": category(), "n": integer(0, 11)}), "n", "k")
    pairs = list(zip(both.keys[0].tolist(), both.keys[1].tolist(), strict=True))
    assert pairs == sorted({(m, h) for m, h in zip(n, held, strict=True) if h is not None})


def test_bytes_that_are_no_text_have_no_key() -> None:
    raw = pa.chunked_array([pa.array([b"a", b"\xff", None]), pa.array([b"\xc3\xa9"])])
    assert texts(raw).to_pylist() == ["a", None, None, "é"]
    assert texts(pa.chunked_array([pa.array([b"a", None])])).to_pylist() == ["a", None]


def test_a_list_is_made_once_for_a_table() -> None:
    axis, lists = Listed(column="k", values=tuple(WORDS)), {}
    first = positions(axis, pa.array(["word 7919"]), coded=False, lists=lists)
    kept = dict(lists)
    positions(Listed(column="k", values=tuple(WORDS)), pa.array(["x"]), coded=False, lists=lists)
    assert list(map(id, kept.values())) == list(map(id, lists.values()))
    assert first[1].tolist() == [False]
    other = Listed(column="k", values=(*WORDS[:1], "in between", *WORDS[2:]))
    assert positions(other, pa.array(["in between"]), coded=False, lists=lists)[0].tolist() == [1]


def test_a_table_of_canonical_texts_is_the_canonical_text_of_the_table() -> None:
    value = {"b": [1, "x", None], "a": {"d": 1.5, "c": True}, "é": "ü", "": []}
    assert canonical_table({k: canonical(v) for k, v in value.items()}) == canonical(value)


def test_the_text_of_a_schema_says_all_that_it_declares() -> None:
    schema = Schema({"k": category(["b", "a"]), "n": category([3, 1]), "x": number(0, 1), "y": integer(0, 9)})
    said = json.loads(schema.text)
    assert said["k"] == {"type": "category", "values": ["b", "a"], "missing": None}
    assert said["n"]["values"] == [3, 1]
    assert said["x"]["low"] == "0.0", "a float is written as its text"
    assert said["y"]["high"] == 9
    assert schema.text == Schema(dict(schema)).text
