"""Every fact that a proof rests on has a place that establishes it at every read, and a test that breaks it.

A theorem about a release is about numbers of rows. What lies between the rows and those numbers is not in the theorem:
that a file is read once, that a public key is there once, that a row has one record. The list below names each such
fact, the code that establishes it, and the test that changes the data between two calls and looks at what comes of it.
"""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tacit.guarantees import rows
from tacit.sources import integer, open_table
from tacit.sources.facts import Facts, FileState
from tacit.sources.opening import files as words
from tacit.sources.opening.files import files

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "tacit"


@dataclass(frozen=True)
class Fact:
    """What is believed, who establishes it, which test takes it away."""

    what: str
    where: str
    broken_by: str


FACTS = [
    Fact(
        "each file is read once",
        "sources.facts:states_of",
        "test_a_file_that_becomes_another_is_not_counted_twice",
    ),
    Fact(
        "all files of a pattern are read",
        "sources.opening.files:Files.states",
        "test_a_pattern_is_what_it_matches_when_it_is_read",
    ),
    Fact(
        "every file that is read has the ledger that is charged",
        "curator.ledgers:LedgerResolver.for_charging",
        "test_a_file_that_comes_after_the_ledger_was_found_has_it_too",
    ),
    Fact(
        "no file that is read has another ledger",
        "curator.ledgers:Home.admits",
        "test_a_file_with_a_ledger_of_its_own_does_not_slip_into_a_pattern",
    ),
    Fact(
        "every file of a pattern has a note of its ledger",
        "curator.ledgers:home_of",
        "test_every_file_of_a_pattern_has_the_one_ledger",
    ),
    Fact(
        "a note that cannot be written is refused",
        "curator.ledgers:Home.remember",
        "test_no_note_is_lost_silently",
    ),
    Fact(
        "the files that were charged are those that were read",
        "curator.curator:Curator._read",
        "test_real_rows_in_the_place_of_a_twin_are_not_charged_to_a_rehearsal",
    ),
    Fact(
        "a public table has each key once",
        "sources.opening.joining:_Other.repeats",
        "test_repeated_keys_of_a_public_table_are_found_at_every_read",
    ),
    Fact(
        "a public table is not the protected one",
        "sources.opening.joining:open_joined",
        "test_a_public_table_that_becomes_the_protected_one_is_refused",
    ),
    Fact(
        "no row decides how many rows there are",
        "sources.tables:Table._take",
        "test_a_transport_file_has_no_public_number_of_rows",
    ),
    Fact(
        "whether a row counts depends on it alone",
        "sources.opening.statfiles:_records",
        "test_a_blank_row_of_a_transport_file_counts_nowhere",
    ),
    Fact(
        "a row without a value is a row",
        "sources.opening.textfiles:records",
        "test_a_row_without_a_value_is_a_row",
    ),
    Fact(
        "stored types fit what was declared",
        "sources.compiling:selected",
        "test_types_may_change_between_two_reads",
    ),
    Fact(
        "no row decides whether files can be read together",
        "sources.opening.parquet:_common",
        "test_files_may_store_a_column_in_different_types",
    ),
    Fact(
        "the types of a view are those of now",
        "sources.tables:_bound",
        "test_a_view_that_was_made_anew_is_read_in_its_new_types",
    ),
    Fact(
        "the types of a frame are those of the copy",
        "sources.opening.frames:open_frame",
        "test_a_frame_that_gets_another_type_before_it_is_copied",
    ),
    Fact(
        "columns stand where the header says",
        "sources.opening.textfiles:open_text",
        "test_columns_that_changed_places_are_not_taken_for_each_other",
    ),
    Fact(
        "one release is of one state of files",
        "sources.tables:Table.together",
        "test_a_file_that_is_replaced_while_it_is_read_is_read_again",
    ),
    Fact(
        "one release is of one state of a table of others",
        "sources.tables:Table._snapshot",
        "test_a_table_of_others_is_read_in_one_transaction",
    ),
    Fact(
        "a copy is of one state",
        "sources.tables:Table.ready",
        "test_a_copy_that_was_made_while_somebody_wrote_is_made_again",
    ),
    Fact(
        "a change is seen, whatever times a file was given",
        "sources.facts:FileState",
        "test_times_that_were_set_back_hide_no_change",
    ),
    Fact(
        "what is wrong is said before the charge",
        "sources.tables:Table.renew",
        "test_a_curator_says_what_is_wrong_before_it_charges",
    ),
    Fact(
        "after the charge one sentence is said",
        "sources.error_boundary:rows",
        "test_what_changes_after_the_charge_ends_in_the_fixed_sentence",
    ),
    Fact(
        "rows that were made up are all made up",
        "sources.facts:is_twin",
        "test_one_real_file_among_many_twins_is_no_twin",
    ),
    Fact(
        "a header is whole",
        "sources.opening.textfiles:header_line",
        "test_a_header_behind_the_limit_is_refused",
    ),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.what)
def test_every_fact_has_its_place_and_its_test(fact: Fact) -> None:
    module, _, path = fact.where.partition(":")
    found: object = importlib.import_module(f"tacit.{module}")
    for name in path.split("."):
        found = getattr(found, name)
    tests = (ROOT / "tests" / "sources" / "test_facts.py").read_text()
    assert f"def {fact.broken_by}(" in tests


def test_every_test_of_a_fact_is_in_the_list_or_about_the_same_fact() -> None:
    """The list is not shorter than what the facts carry: each field of `Facts` is broken by some test."""
    tests = (ROOT / "tests" / "sources" / "test_facts.py").read_text()
    for field in Facts.__dataclass_fields__:
        words_of = {
            "state": "facts.files",
            "protected": "second budget",
            "counted_if": "ENDED",
            "counted": "how many",
        }
        assert words_of.get(field, f"facts.{field}") in tests, field


WRITTEN = {
    "Parquet": "t.parquet", "text": "t.csv", "Stata": "t.dta", "SPSS": "t.sav", "SAS": "t.xpt", "Excel": "t.xlsx",
    "DuckDB": "t.duckdb", "SQLite": "t.sqlite",
}  # fmt: skip


@pytest.mark.parametrize("kind", words.ENDINGS)
def test_every_kind_of_file_is_opened_with_its_facts(tmp_path: Path, kind: str) -> None:
    import duckdb

    pyreadstat = pytest.importorskip("pyreadstat")
    pytest.importorskip("openpyxl")
    path, frame = tmp_path / WRITTEN[kind], pd.DataFrame({"age": [1.0, 2.0], "x": [1.0, 2.0]})
    if kind in ("DuckDB", "SQLite"):
        import sqlite3

        if kind == "SQLite":
            with sqlite3.connect(path) as base:
                frame.to_sql("t", base, index=False)
            base.close()
        else:
            with duckdb.connect(str(path)) as made:
                made.register("given", frame)
                made.execute("CREATE TABLE t AS SELECT * FROM given")
    else:
        write = {"Parquet": frame.to_parquet, "text": frame.to_csv, "Excel": frame.to_excel}
        stored = {"Stata": pyreadstat.write_dta, "SPSS": pyreadstat.write_sav, "SAS": pyreadstat.write_xport}
        write[kind](path, index=False) if kind in write else stored[kind](frame, str(path))
    data = files(path, view="t") if kind in ("DuckDB", "SQLite") else path
    with open_table(data, schema={"age": integer(0, 9)}, unit=rows()) as table:
        assert [type(state) for state in table.facts.state] == [FileState]
        assert [state.path for state in table.facts.files] == [path] == list(table.facts.protected)
        assert table._opened.now is not None
        assert table._opened.now() == table.facts.state


ASKS = re.compile(r"\.(stat|lstat|exists|is_file|iterdir|glob|rglob|samefile|lexists|scandir|listdir)\(")
MAY_ASK = {
    "curator/ledgers.py": "where ledgers lie",
    "curator/certificate.py": "keys of who signs",
    "curator/key_files.py": "public lists beside a plan, and whether one is the table itself",
    "curator/plan_files.py": "names of plans beside one that is missing",
    "curator/verifying.py": "what was published",
}


def test_nothing_downstream_asks_the_file_system_about_the_data() -> None:
    """From the table on there are its facts; rooms behind it look at ledgers and keys, not at data."""
    for room in ("statistics", "functions", "random_data", "curator"):
        for path in sorted((SOURCES / room).rglob("*.py")):
            name = path.relative_to(SOURCES).as_posix()
            calls = [
                ast.unparse(node)
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and ASKS.search(ast.unparse(node.func) + "(")
            ]
            assert not calls or name in MAY_ASK, (name, calls)


CAP = re.compile(r"\[ *: *[A-Z][A-Z_]{2,} *\]")
CAPS = {
    "curator/custodian.py": "what the custodian may look at; names of releases, numbered where two are alike",
    "curator/rehearsing.py": "values that an audit of a plan compares; no release is made from them",
    "curator/sentences.py": "names in a hint, with how many more there are",
    "curator/text.py": "a key on a terminal, with dots behind it; the files have it whole",
    "ledger/encrypted_store.py": "bytes of a nonce",
    "parties/holder.py": "bytes of a share",
    "parties/session.py": "bytes of a signature",
    "sources/proposing.py": "the cells that the custodian is shown first",
}
ROOMS = ("accounting", "curator", "guarantees", "ledger", "mechanisms", "parties", "sources", "statistics")


def test_no_cap_drops_anything_silently() -> None:
    """A slice by a constant drops what is behind it: nothing that a proof or a budget rests on may be cut so."""
    for path in sorted(path for room in ROOMS for path in (SOURCES / room).rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        found = CAP.findall(path.read_text())
        assert not found or name in CAPS, (name, found)
