"""Stata, SPSS and SAS files, workbooks and databases: the same table as a CSV, and no value that stops the others."""

from __future__ import annotations

import datetime
import re
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from tacit.errors import BadData, InvalidParameter, UnknownColumn, UnknownName
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, date, flag, integer, number, open_table
from tacit.sources.microdata import open_microdata
from tacit.sources.opening.files import files

pyreadstat = pytest.importorskip("pyreadstat")
openpyxl = pytest.importorskip("openpyxl")
KEY = b"0123456789abcdef-secret"
SCHEMA = Schema(
    {
        "age": integer(0, 120), "income": number(0, 1000, spacing=0.25), "sex": category([1, 2]),
        "town": category(["Zürich", "Bern"]), "seen": date("2000-01-01", "2024-12-31"),
    }
)  # fmt: skip
FRAME = pd.DataFrame(
    {
        "who": [1.0, 1.0, 2.0, 3.0],
        "age": [30.0, 40.0, np.nan, 50.0],
        "income": [12.5, np.nan, 100.0, 3.25],
        "sex": [1.0, 2.0, 1.0, np.nan],
        "town": ["Zürich", "Bern", "", "Bern"],
        "seen": [datetime.date(2020, 1, 31), None, datetime.date(2001, 2, 3), datetime.date(2024, 12, 31)],
    }
)


def everything(data, schema=SCHEMA):
    """What the engine holds of the declared columns, in steps or words."""
    names = {"age": "sum", "income": "sum"}
    schema = Schema(schema)
    asked = [ask.sum(c) for c in names if c in schema]
    asked += [ask.count(by=c) for c in ("sex", "town") if c in schema]
    asked += [ask.histogram("seen", 5)] if "seen" in schema else []
    with open_table(data, schema=schema, unit=people("who", at_most=2)) as table:
        found = ask.read(table, [a.on(schema, table.unit) for a in asked], key=KEY)
    return [np.ravel(v).tolist() for one in found for v in one.values()]


def stata(path):
    pyreadstat.write_dta(FRAME, str(path), variable_value_labels={"sex": {1: "man", 2: "woman"}})
    return path


def spss(path):
    pyreadstat.write_sav(FRAME, str(path), variable_value_labels={"sex": {1: "man", 2: "woman"}})
    return path


def sas(path):
    pyreadstat.write_xport(FRAME, str(path), table_name="T")
    return path


def book(path, frame=FRAME, sheets=("people",)):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name in sheets:
        sheet = made.create_sheet(name)
        sheet.append(list(frame.columns))
        for row in frame.itertuples(index=False):
            sheet.append([None if v is None or v != v or v == "" else v for v in row])
    made.save(path)
    return path


def lite(path):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE raw (who, age, income, sex, town, seen)")
        told = [
            tuple(
                None if v is None or v != v or v == "" else str(v) if isinstance(v, datetime.date) else v
                for v in r
            )
            for r in FRAME.itertuples(index=False)
        ]
        base.executemany("INSERT INTO raw VALUES (?, ?, ?, ?, ?, ?)", told)
        base.execute("CREATE VIEW adults AS SELECT * FROM raw WHERE 1")
    base.close()
    return files(path, view="adults")


def duck(path):
    import duckdb

    with duckdb.connect(str(path)) as base:
        base.register("given", FRAME.assign(seen=pd.to_datetime(FRAME["seen"])))
        base.execute("CREATE TABLE raw AS SELECT * FROM given")
        base.execute("CREATE VIEW adults AS SELECT * FROM raw")
    return files(path, view="adults")


WAYS = {
    "t.dta": stata, "t.sav": spss, "t.xpt": sas, "t.xlsx": book, "t.sqlite": lite, "t.duckdb": duck,
    "t.zsav": lambda path: (pyreadstat.write_sav(FRAME, str(path), compress=True), path)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_the_same_table_in_every_form(tmp_path, name):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    plain = everything(tmp_path / "t.csv")
    assert plain[0] == [120]
    data = WAYS[name](tmp_path / name)
    assert everything(data) == plain
    with open_microdata(data) as table:
        assert set(table.columns) == set(FRAME.columns)


@pytest.mark.parametrize("name", ["t.dta", "t.sav"])
def test_labels_are_meant_where_words_are_declared(tmp_path, name):
    schema = {"sex": category(["woman", "man"])}
    assert everything(WAYS[name](tmp_path / name), schema) == [[1, 2]]


@pytest.mark.parametrize("name", WAYS)
def test_headings_are_the_columns_of_the_metadata(tmp_path, name):
    from tacit.sources.headings import headings

    found = {h.name: h for h in headings(WAYS[name](tmp_path / name))}
    assert set(found) == set(FRAME.columns)
    if name in ("t.dta", "t.sav"):
        assert found["sex"].keys == ("man", "woman")
        assert found["seen"].kind == "date"


@pytest.mark.parametrize("name", WAYS)
def test_what_the_metadata_show_is_refused_and_names_no_row(tmp_path, name):
    data = WAYS[name](tmp_path / name)
    with pytest.raises(UnknownColumn):
        open_table(data, schema={"wage": integer(0, 9)}, unit=rows())
    path = tmp_path / name
    path.write_bytes(b"Zebulon" * 100)
    with pytest.raises(BadData) as caught:
        open_table(data, schema={"age": integer(0, 9)}, unit=rows())
    assert "Zebulon" not in str(caught.value)


@pytest.mark.parametrize("name", ["t.dta", "t.sav", "t.xpt"])
def test_text_that_is_none_is_missing_alone(tmp_path, name):
    """The reader by itself would stop at it, for everybody."""
    path = WAYS[name](tmp_path / name)
    content = path.read_bytes()
    assert "Zürich".encode() in content
    path.write_bytes(content.replace("Zürich".encode(), b"Z\xff\xfe\xfdric"[:7]))
    if name != "t.xpt":
        with pytest.raises(Exception, match=r"encoding|codec"):
            (pyreadstat.read_dta if name == "t.dta" else pyreadstat.read_sav)(str(path))
    assert everything(path, {"town": category(["Zürich", "Bern"])}) == [[0, 2]]
    assert everything(path, {"age": integer(0, 120)})[0] == [120]


def test_days_outside_of_the_calendar_are_missing_alone(tmp_path):
    frame = FRAME.assign(seen=[21945.0, 1e300, -1e9, 22000.0])
    pyreadstat.write_dta(frame, str(tmp_path / "t.dta"), variable_format={"seen": "%td"})
    with open_table(
        tmp_path / "t.dta", schema={"seen": date("2000-01-01", "2024-12-31")}, unit=rows()
    ) as table:
        found = table.read(lambda: table.relation.to_pyarrow())["seen"].to_pylist()
    assert sorted(map(str, found)) == ["2020-01-31", "2020-03-26", "None", "None"]


def test_a_sheet_is_named_where_there_are_several(tmp_path):
    path = book(tmp_path / "t.xlsx", sheets=("a", "b"))
    with pytest.raises(BadData, match="2 sheets"):
        open_table(path, schema=SCHEMA, unit=rows())
    with pytest.raises(UnknownName):
        open_table(files(path, sheet="c"), schema=SCHEMA, unit=rows())
    assert everything(files(path, sheet="b"))[0] == [120]


def test_no_cell_stops_a_sheet(tmp_path):
    """A number that is none, a string that is not there, a date out of range, an error, a stray cell far below."""
    plain = pd.DataFrame({"who": ["a", "b", "c"], "age": [1, 2, 4]})
    path = book(tmp_path / "t.xlsx", plain)
    with zipfile.ZipFile(path) as packed:
        parts = {n: packed.read(n) for n in packed.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    cell = re.search(rb'<c r="B3"[^>]*><v>2</v></c>', parts[sheet])[0]
    for odd in (
        b'<c r="B3"><v>Zebulon</v></c>', b'<c r="B3" t="s"><v>99999</v></c>', b'<c r="B3" t="e"><v>#N/A</v></c>',
        b'<c r="!!"><v>2</v></c>', b'<c r="B3" t="b"><v>x</v></c>', b'<c r="B3" t="d"><v>x</v></c>',
    ):  # fmt: skip
        with zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as packed:
            for name, content in parts.items():
                packed.writestr(name, content.replace(cell, odd) if name == sheet else content)
        assert everything(tmp_path / "odd.xlsx", {"age": integer(0, 9)})[0] == [5]
    far = b'<row r="900000"><c r="B900000"><v>3</v></c></row></sheetData>'
    with zipfile.ZipFile(tmp_path / "odd.xlsx", "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content.replace(b"</sheetData>", far) if name == sheet else content)
    with open_table(tmp_path / "odd.xlsx", schema={"age": integer(0, 9)}, unit=rows()) as table:
        (found,) = ask.read(table, [ask.count().on(table.schema, rows())], key=KEY)
    assert int(next(iter(found.values()))) == 4


def test_no_value_stops_a_database_without_types(tmp_path):
    data = lite(tmp_path / "t.sqlite")
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("INSERT INTO raw VALUES (9, CAST(x'ff' AS TEXT), x'00ff', 1e400, 'NaN', -1)")
        base.execute("INSERT INTO raw VALUES (10, 'x', 'y', 'z', 5, 'w')")
    base.close()
    assert everything(data)[0] == [120]


def test_a_view_is_named_and_looked_up_exactly(tmp_path):
    for data in (lite(tmp_path / "t.db"), duck(tmp_path / "t.duckdb")):
        with pytest.raises(BadData, match="none of its tables"):
            open_table(data.path, schema=SCHEMA, unit=rows())
        with pytest.raises(UnknownName):
            open_table(files(data.path, view='adults"; DROP TABLE raw; --'), schema=SCHEMA, unit=rows())
        assert any("fails for none" in c for c in open_table(data, schema=SCHEMA, unit=rows()).conditions)


def test_words_belong_to_kinds_of_files():
    for wrong in (("t.xlsx", {"separator": ";"}), ("t.csv", {"sheet": "a"}), ("t.dta", {"decimal": ","})):
        with pytest.raises(InvalidParameter, match="left out"):
            files(wrong[0], **wrong[1])
    with pytest.raises(InvalidParameter, match="be a name"):
        files("t.xlsx", sheet="")


def test_a_release_from_a_stata_file(tmp_path):
    """As the pages show it: a file, whom it protects, what may be asked, a price."""
    schema = {"sex": tacit.category(["man", "woman"]), "income": tacit.number(0, 1000)}
    survey = tacit.Curator(
        stata(tmp_path / "survey.dta"),
        protect=tacit.people("who", at_most=2),
        schema=schema,
        budget=tacit.Pure(epsilon=9),
    )
    release = survey.release(tacit.mean("income", by="sex"), epsilon=4)
    assert list(release.columns["sex"]) == ["man", "woman"]
    assert flag is tacit.flag
