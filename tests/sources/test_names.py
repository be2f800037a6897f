"""Names of columns: ours cannot be taken, case does not make two of one, and quoting is total."""

from __future__ import annotations

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, flag, integer, open_table

KEY = b"an ordinary secret of the tests."
OURS = ["__tacit_rank", "__tacit_hash", "__tacit_k0", "__TACIT_RANK", "__Tacit", "__tacit"]


@pytest.mark.parametrize("name", OURS)
def test_names_of_our_own_are_refused(name):
    with pytest.raises(InvalidParameter, match="__tacit"):
        Schema({"a": flag(), name: flag()})
    with pytest.raises(InvalidParameter, match="__tacit"):
        people(name, at_most=1)


@pytest.mark.parametrize("pair", [("Age", "age"), ("STATE", "state"), ("Straße", "STRASSE")])
def test_names_that_differ_in_case_only_are_refused(pair):
    with pytest.raises(InvalidParameter, match="case"):
        Schema(dict.fromkeys(pair, flag()))
    table = pa.table({pair[0]: [1], "x": [1]})
    with pytest.raises(TacitError):
        open_table(table, schema={pair[0]: flag()}, unit=people(pair[1], at_most=1))
    both = pa.table({pair[0]: [1], pair[1]: [0]})
    with pytest.raises(TacitError):
        open_table(both, schema={pair[0]: flag()}, unit=rows())


def test_a_parquet_file_with_two_names_that_are_one_is_refused(tmp_path):
    """DuckDB would call the second one `age_1`, and that name may be declared."""

    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"Age": [1], "age": [0], "age_1": [5]}), path)
    for name in ("Age", "age", "age_1"):
        with pytest.raises(TacitError):
            open_table(path, schema={name: integer(0, 9)}, unit=rows())


ODD = [
    "k0",
    "v0",
    "K1",
    'a"b',
    "a'b",
    "a b",
    "a;--",
    "é",
    "select",
    "t0",
    "x\\y",
    "a.b",
    "`",
    "{}",
    "%s",
    "$1",
    "?",
]


@pytest.mark.parametrize("portable", [False, True])
def test_any_other_name_and_any_word_is_only_a_name_and_a_word(portable):
    """Columns named like our aliases, with quotes in their names and in their categories."""
    words = ["'", "''", '"', "\\", "a'); drop table x; --", "%", "_", "\n", "", "ü", "NULL", "{}", ":x"]
    unit = people('who "is" it', at_most=20, groups=15)
    n = len(words)
    table = pa.table({'who "is" it': list(range(n)), **dict.fromkeys(ODD, words)})
    schema = Schema({name: category(words[:-1], missing=words[0]) for name in ODD})
    with open_table(table, schema=schema, unit=unit, portable=portable) as opened:
        questions = [ask.count(by=name).on(schema, unit) for name in ODD]
        questions += [ask.count(where=f"`{name.replace('`', '``')}` = ''''").on(schema, unit) for name in ODD]
        read = ask.read(opened, questions, key=KEY)
    for parts in read[: len(ODD)]:
        assert parts["count"].tolist() == [2] + [1] * (n - 2)
    assert [int(parts["count"]) for parts in read[len(ODD) :]] == [2] * len(ODD)


ATTRIBUTES = [
    "private", "open_to_all", "public", "table", "other", "on", "path", "paths", "more", "pattern", "sheet", "view",
    "partitions", "columns", "column_names", "collect_schema", "schema", "metadata", "names", "load", "refresh",
]  # fmt: skip


def lazy(columns):
    return ibis.memtable(pa.table(columns))


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table, lazy])
def test_a_column_is_never_taken_for_an_attribute_of_the_table(tmp_path, monkeypatch, form):
    """Frames have their columns as attributes: their values would be places of ledgers, and names of files."""
    from tacit.sources.facts import MARK, is_made_up

    monkeypatch.chdir(tmp_path)
    names = [n for n in ATTRIBUTES if form is not lazy or n not in dir(ibis.expr.types.Table)]
    said = []
    for number, value in enumerate((MARK, str(tmp_path / "zoe"))):
        data = form({**{name: [value, "b"] for name in names}, "x": [1, 2]})
        with tacit.Curator(data, protect=rows(), schema={"x": integer(0, 3)}, budget=tacit.Pure(epsilon=2),
                           ledger=f"{number}.ledger") as survey:  # fmt: skip
            made_up = survey.release(tacit.count(), epsilon=1).certificate["data"].get("made_up", False)
        said.append((made_up, is_made_up(data), is_made_up(data[:0] if form is pd.DataFrame else data)))
    assert said == [(False, False, False)] * 2
    assert {path.name.split(".")[0] for path in tmp_path.iterdir()} == {"0", "1"}
