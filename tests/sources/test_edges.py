"""Rows beyond the first chunk, moments before a zero, cells with errors, and what can be unknown in a row."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.guarantees import rows
from tacit.sources import Schema, axes, category, date, flag, integer, number, open_table
from tacit.sources.expressions import parse
from tacit.sources.opening import statfiles
from tacit.sources.opening.frames import _fit
from tacit.sources.tables import of_files

KEY = b"0123456789abcdef-secret"


def read(data: Any, schema: dict[str, Any], *asked: Any) -> list[list[int]]:
    declared = Schema(schema)
    with open_table(data, schema=declared, unit=rows()) as table:
        found = ask.read(table, [a.on(declared, table.unit) for a in asked], key=KEY)
    return [np.ravel(v).tolist() for one in found for v in one.values()]


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("kind", ["dta", "sav", "xpt"])
def test_every_chunk_of_a_file_is_read_once(
    kind: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of fewer, as many, more and twice as many rows as one chunk has."""
    pyreadstat = pytest.importorskip("pyreadstat")
    monkeypatch.setattr(statfiles, "CHUNK", 3)
    frame = pd.DataFrame({"x": [float(2**i) for i in range(count)]})
    path = tmp_path / f"t.{kind}"
    {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[kind](
        frame, str(path)
    )
    found = read(path, {"x": integer(0, 1000)}, ask.count(), ask.sum("x"))
    assert found == [[count], [2**count - 1]]


def test_a_moment_is_of_the_day_it_lies_in() -> None:
    """One hour before a zero is the day before it, and a whole day before is that day."""
    zero, day = 100_000, 86_400.0
    for value, wanted in (
        (0.0, 0),
        (1.0, 0),
        (-1.0, -1),
        (-3600.0, -1),
        (-day, -1),
        (-day - 1, -2),
        (day, 1),
    ):
        assert statfiles._day(value, day, zero) == zero + wanted, value


def test_moments_before_1960_in_a_real_file(tmp_path: Path) -> None:
    """Stata counts milliseconds from 1960: an hour before New Year is 31 December 1959."""
    moments = [datetime.datetime(1959, 12, 31, 23), datetime.datetime(1960, 1, 1, 1)]
    path = tmp_path / "t.dta"
    pd.DataFrame({"seen": moments}).to_stata(path, convert_dates={"seen": "tc"}, write_index=False)
    schema = {"seen": date("1959-12-30", "1960-01-02")}
    assert read(path, schema, ask.histogram("seen", 4)) == [[0, 1, 1, 0]]


def test_a_cell_with_an_error_is_missing(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["word", "x"])
    for row in (["a", 1], ["#DIV/0!", 2], ["b", 4], ["#N/A", 8]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    keys = category(["a", "b", "#DIV/0!", "#N/A"])
    found = read(tmp_path / "t.xlsx", {"word": keys, "x": integer(0, 9)}, ask.count(by="word"), ask.sum("x"))
    assert found == [[1, 1, 0, 0], [15]]


NULLABLE = {"f": flag(), "g": flag(), "x": integer(0, 9), "s": category(["a", "b"])}
SURE = {
    "f": flag(missing=False), "g": flag(missing=True), "x": integer(0, 9, missing=0),
    "s": category(["a", "b"], missing="a"),
}  # fmt: skip
TEXTS = [
    "f", "not f", "not (not f)", "x > 3", "not x > 3", "s in ('a')", "not s in ('a')", "f and g", "f or g",
    "not (f and g)", "f and x > 3", "(not f) or g",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_is_known_in_every_row_only_if_every_column_is(text: str) -> None:
    made = parse(text)
    assert made.never_unknown(Schema(SURE)) is True
    assert made.never_unknown(Schema(NULLABLE)) is False
    for name in made.columns():
        assert made.never_unknown(Schema({**SURE, name: NULLABLE[name]})) is False, name
    assert parse("f is missing").never_unknown(Schema(NULLABLE)) is True
    assert parse("not f is missing").never_unknown(Schema(NULLABLE)) is True


def test_a_share_of_a_flag_that_may_be_missing_publishes_no_exact_number() -> None:
    """not f is unknown where f is: the number of rows in which it is known is nobody's to publish."""
    unit = tacit.rows(neighbours="replace-one")
    for words, schema, exact in (("not f", SURE, True), ("not f", NULLABLE, False), ("f", NULLABLE, False)):
        question = ask.proportion(words).on(Schema(schema), unit)
        moved = [part.name for part in question.parts if question.sensitivities[part.name].l1 > 0]
        assert (len(moved) < len(question.parts)) is exact, (words, exact)


def test_the_digest_of_files_knows_how_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    paths = [tmp_path / "a", tmp_path / "b"]
    one = of_files(paths, KEY, "csv, comma")
    assert one == of_files(paths, KEY, "csv, comma")
    others = [
        of_files(paths, KEY, "csv, semicolon"), of_files(paths[::-1], KEY, "csv, comma"),
        of_files(paths[:1], KEY, "csv, comma"), of_files(paths, b"another key", "csv, comma"),
    ]  # fmt: skip
    assert len({one, *others}) == 5


def test_a_place_that_a_dictionary_does_not_have_is_missing() -> None:
    for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.int64()):
        places = pa.array([0, 1, 2, 7, None, 1], kind)
        array = pa.DictionaryArray.from_arrays(places, pa.array(["a", "b"]), safe=False)
        assert _fit(array, pa.large_string()).to_pylist() == ["a", "b", None, None, None, "b"]
    low = pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int8()), pa.array(["a", "b"]), safe=False)
    assert _fit(low, pa.large_string()).to_pylist() == ["a", None]


@pytest.mark.parametrize("missing", [False, True])
def test_bins_hold_every_row_only_if_each_value_lies_in_one(missing: bool) -> None:
    """Integers 0 to 9, fractions of a half, and days; edges below, at and above both ends."""
    columns = {
        "n": (integer(0, 9, **({} if missing else {"missing": 0})), range(10)),
        "x": (number(0, 2, spacing=0.5, **({} if missing else {"missing": 0})), np.arange(0, 2.5, 0.5)),
    }
    for name, (column, values) in columns.items():
        top = max(values)
        for low in (-1, 0, 0.5 if name == "x" else 1):
            for high in (top - 0.5 if name == "x" else top - 1, top, top + 1):
                low_, high_ = (float(low), float(high)) if name == "x" else (int(low), int(high))
                axis = axes.axis_of(axes.bins(name, (low_, high_)), Schema({name: column}))
                every = all(low_ <= v <= high_ for v in values)
                assert axis.always is (every and not missing), (name, low, high)
