"""Digests, declarations as text, clamping bounds, and one pass for many questions."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tacit.statistics as ask
from tacit.errors import InvalidParameter
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, flag, integer, number, open_table, query
from tacit.sources import tables as digests

KEY = b"0123456789abcdef-secret"
SCHEMA = Schema({"g": category(["a", "b"]), "x": integer(0, 9)})


def frame(values, groups=None):
    return pa.table({"g": groups or ["a", "b"] * (len(values) // 2), "x": pa.array(values, pa.int64())})


def digest(data, key=KEY, schema=SCHEMA):
    with open_table(data, schema=schema, unit=rows()) as table:
        return table.digest(key)


def test_digests_change_with_the_data_the_key_and_the_schema_only(tmp_path):
    base = digest(frame([1, 2, 3, 4]))
    assert base == digest(frame([1, 2, 3, 4]))
    assert base == digest(frame([2, 1, 4, 3], ["b", "a", "b", "a"])), "the order of rows does not matter"
    others = [frame([1, 2, 3, 5]), frame([1, 2, 3, 4, 4, 4]), frame([1, 2]), frame([1, 2, 4, 3])]
    seen = {base, *(digest(o) for o in others), digest(frame([1, 2, 3, 4]), key=b"another key of 16")}
    seen.add(digest(frame([1, 2, 3, 4]), schema=Schema({**SCHEMA, "x": integer(0, 8)})))
    assert len(seen) == 7
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(frame([1, 2, 3, 4]), path)
    first = digest(path)
    os.utime(path, (1, 1))
    assert digest(path) == first, "a small file is read whole, its times do not matter"
    pa.parquet.write_table(frame([1, 2, 3, 5]), path)
    assert digest(path) != first


def test_large_files_are_sampled_with_their_edges_and_times(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "WHOLE", 1 << 10)
    monkeypatch.setattr(digests, "EDGE", 1 << 8)
    monkeypatch.setattr(digests, "BLOCK", 1 << 4)
    path = tmp_path / "big"
    content = bytearray(os.urandom(5000))
    path.write_bytes(content)
    os.utime(path, ns=(10**18, 10**18))
    first = digests.of_files([path], KEY, "")
    assert digests.of_files([path], KEY, "") == first
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(10**18, 10**18))
    assert digests.of_files([path], KEY, "") != first
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(10**18, 10**18 + 1))
    assert digests.of_files([path], KEY, "") != first


def test_many_questions_take_one_pass(monkeypatch):
    calls = []
    original = query._one_pass
    monkeypatch.setattr(query, "_one_pass", lambda *a: calls.append(1) or original(*a))
    questions = [
        s.on(SCHEMA, rows())
        for s in (
            ask.count(),
            ask.count(by="g"),
            ask.mean("x", by="g"),
            ask.variance("x"),
            ask.count(by="x", where="g = 'a'"),
            ask.count(by=["g", "x"]),
        )
    ]
    with open_table(frame([1, 2, 3, 4, 9, 11]), schema=SCHEMA, unit=rows()) as table:
        read = ask.read(table, questions)
    assert len(calls) == 1
    assert read[0]["count"] == 6
    assert list(read[1]["count"]) == [3, 3]
    assert list(read[2]["above"]) == [13, 15]
    assert read[3]["squares_above"] == 1 + 4 + 9 + 16 + 81 + 81
    assert list(read[4]["count"]) == [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]


def test_undeclared_keys_do_not_stay():
    many = [f"k{i}" for i in range(300_000)]
    with open_table(frame([1] * 300_000, many), schema=SCHEMA, unit=rows()) as table:
        read = ask.read(table, [ask.count(by="g").on(SCHEMA, rows())])
    assert list(read[0]["count"]) == [0, 0]


def test_clamping_bounds_count_magnitudes():
    schema = Schema({"x": number()})
    values = [0.0, -0.0, 1.0, 1.5, 2.0, -3.0, 2.0**-30, 1e300, -math.inf, math.nan, None]
    question = ask.clamping_bounds("x").on(schema, rows())
    with open_table(pa.table({"x": values}), schema=schema, unit=rows()) as table:
        counts = ask.read(table, [question])[0]["count"]
    labels = question.axes[0].labels
    assert len(labels) == len(counts) == question.axes[0].size
    assert counts.sum() == 9
    found = {labels[i]: int(n) for i, n in enumerate(counts) if n}
    least = 2.0**-20
    assert found == {
        (-least, least): 3,
        (1.0, 2.0): 2,
        (2.0, 4.0): 1,
        (-4.0, -2.0): 1,
        (2.0**59, 2.0**60): 1,
        (-(2.0**60), -(2.0**59)): 1,
    }
    assert question.sensitivity.l1 == 1
    assert ask.clamping_bounds("x").on(schema, people("id", at_most=4)).sensitivity.linf == 4


def test_default_grids_are_powers_of_two_with_a_million_steps():
    for low, high in [(0, 1), (0, 250_000), (-3, 1e-5), (0, 3e12), (1e6, 1e6 + 1)]:
        column = number(low, high)
        assert 2**20 <= column.width <= 2**21
        assert math.log2(column.spacing) == int(math.log2(column.spacing))
    assert number(0, 250_000).spacing == 0.125


def test_declarations_are_plain_values():
    schema = Schema(
        {
            "a": number(0, 1),
            "b": integer(),
            "c": category(),
            "d": flag(missing=True),
            "e": date("2020-01-01", "2020-02-01"),
        }
    )
    assert json.loads(json.dumps(schema.to_dict()))["e"]["high"] == "2020-02-01"
    assert schema == Schema(dict(schema))
    assert hash(schema) == hash(Schema(dict(schema)))
    assert "a" in schema
    assert len(schema) == 5


@pytest.mark.parametrize("text", ["yes", "No", " TRUE ", "0", "f", "1", "perhaps", ""])
def test_flags_read_from_text(text):
    schema = Schema({"f": flag()})
    with open_table(pa.table({"f": [text]}), schema=schema, unit=rows()) as table:
        no, yes = ask.read(table, [ask.count(by="f").on(schema, rows())])[0]["count"]
    word = text.strip().lower()
    assert (yes, no) == (word in ("yes", "true", "1"), word in ("no", "0", "f"))


def test_bins_between_edges_are_closed_below_and_the_last_one_above():
    schema = Schema({"x": number(0, 10, spacing=0.5)})
    question = ask.histogram("x", [0, 2.25, 5, 10]).on(schema, rows())
    values = [0.0, 2.0, 2.25, 2.5, 4.9, 5.0, 10.0, 99.0, -1.0]
    with open_table(pa.table({"x": values}), schema=schema, unit=rows()) as table:
        counts = ask.read(table, [question])[0]["count"]
    # 2.25 is rounded to 2.0 (ties to even) and 4.9 to 5.0 before they are binned.
    assert list(counts) == [4, 1, 4]
    assert question.axes[0].labels == ((0, 2.25), (2.25, 5), (5, 10))
    assert np.shape(counts) == (3,)


@pytest.mark.parametrize("memory", [-1, 1.5, True, "", "-1GB", "0GB", "lots", "1e9", "9" * 400 + "GB"])
def test_memory_is_a_size_or_refused_at_once(memory):
    frame = pa.table({"x": [1]})
    with pytest.raises(InvalidParameter, match="memory"):
        open_table(frame, schema={"x": integer(0, 9)}, unit=rows(), memory=memory)
