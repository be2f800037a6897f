"""Files for others: a workbook, SDMX-CSV and CSVW metadata; and a tutorial in ten lines."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from tacit.cli import main
from tacit.curator.public_words import PublicWords
from tacit.curator.spreadsheet import original
from tacit.noise.source import SeededSource
from tacit.report.exports import csvw_text, export_files, sdmx_text, workbook, write_workbook
from tacit.report.exports.workbook import sheet_names
from tacit.sources import Schema, category, date, integer, number

NASTY = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "plain", "<b>&"]


# --- the tutorial: an Excel workbook for publication -----------------------------------------------------
def test_a_workbook_for_publication(tmp_path: Path) -> None:
    stays = pd.DataFrame({"region": ["N", "S"] * 2000, "nights": [1, 2, 3, 4] * 1000})

    schema = {"region": tacit.category(["N", "S"]), "nights": tacit.integer(0, 60)}
    curator = tacit.Curator(stays, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=2))
    plan = curator.preview([tacit.count(by="region"), tacit.mean("nights", by="region")], epsilon=1.0)
    words = PublicWords(
        title="Hospital stays 2024", publisher="Office", keys={"region": {"N": "North", "S": "South"}}
    )
    write_workbook(tmp_path / "stays.xlsx", curator.release(plan), words=words)

    book = openpyxl.load_workbook(tmp_path / "stays.xlsx")
    assert book.sheetnames == ["About", "count-by-region", "mean-nights-by-region"]
    assert book["About"]["A1"].value == "Hospital stays 2024"
    rows = list(book["count-by-region"].values)
    assert rows[0] == ("region", "value", "low", "high", "quality")
    assert [(r[0], type(r[1]), r[4]) for r in rows[1:]] == [("North", int, "good"), ("South", int, "good")]
    curator.close()


# --- made of what was released ---------------------------------------------------------------------------
SCHEMA = Schema(
    {
        "key": category(NASTY), "flag": tacit.flag(), "x": number(0, 10), "born": date("1990-01-01", "1990-12-31"),
        "n": integer(0, 9),
    }
)  # fmt: skip
WORDS = PublicWords(
    title="=HYPERLINK(1)", publisher="+office", period="2024-Q1", columns={"key": "=key", "n": "Number"},
    keys={"key": {"plain": "@label"}},
)  # fmt: skip


@pytest.fixture(scope="module")
def released() -> Any:
    table = pd.DataFrame(
        {
            "key": NASTY * 20, "flag": [True, False] * 70, "x": [1.25] * 140, "born": ["1990-05-05"] * 140,
            "n": [1, 2] * 70,
        }
    )  # fmt: skip
    with tacit.Curator(
        table, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=10), source=SeededSource(seed=3)
    ) as one:
        plan = one.preview(
            [
                ask.count(by="key"), ask.median("born"), ask.mean("x", by=["flag", "n"]), ask.margins(["flag", "n"]),
                ask.ratio("x", "n", by="key"), ask.histogram("x", bins=4),
            ],
            epsilon=3.0,
        )  # fmt: skip
        return one.release(plan)


def test_no_cell_is_a_formula_and_numbers_are_numbers(released: Any) -> None:
    data = workbook(released, WORDS)
    book = openpyxl.load_workbook(io.BytesIO(data))
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "f", cell.value
                if isinstance(cell.value, str):
                    assert not re.match(r"\s*[=+@-]", cell.value), cell.value
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [archive.read(n) for n in archive.namelist() if "sheets/" in n]
    assert sheets
    assert not any(b"<f>" in body or b"<f " in body for body in sheets)
    rows = list(book.worksheets[1].values)[1:]
    shown = [original(str(r[0])) for r in rows]
    assert shown == [k if k != "plain" else "@label" for k in NASTY]
    for row, own in zip(rows, zip(*released[0].columns.values(), strict=True), strict=True):
        assert all(isinstance(v, int) for v in row[1:4])
        assert [int(v) for v in row[1:4]] == [int(v) for v in own[1:]]
    assert list(book.worksheets[2].values)[1][1].date() == released[1].columns["value"][0]


def test_the_same_releases_give_the_same_bytes(released: Any) -> None:
    first, second = (export_files(released, words=WORDS, exports=["xlsx", "sdmx"]) for _ in range(2))
    assert first == second
    assert len(first) == 2 * len(released) + 1


def test_sheets_have_names_that_excel_takes() -> None:
    names = sheet_names(["About", "a" * 40, "A" * 40, "x/y:z*?[1]\\", "history", "'", "=1+1"])
    assert len({n.casefold() for n in names}) == len(names)
    assert all(0 < len(n) <= 31 and not re.search(r"[\[\]:*?/\\]", n) for n in names)
    assert "about" not in {n.casefold() for n in names}


def test_metadata_describe_the_file_that_they_stand_beside(released: Any) -> None:
    for one in released:
        said = json.loads(csvw_text(one, WORDS))
        lines = list(csv.reader(io.StringIO(one.to_csv())))
        columns = said["tableSchema"]["columns"]
        assert [c["titles"][0] for c in columns] == lines[0]
        assert len({c["name"] for c in columns}) == len(columns)
        for c in columns:
            # https://www.w3.org/TR/tabular-metadata/#columns: names are variables of RFC 6570, and none begins with _
            assert re.fullmatch(r"(?!_)([A-Za-z0-9_]|%[0-9A-F]{2})+", c["name"])
        keys = said["tableSchema"].get("primaryKey", [])
        at = [i for i, c in enumerate(columns) if c["name"] in keys]
        assert len({tuple(row[i] for i in at) for row in lines[1:]}) == len(lines) - 1 or not keys
        for i, c in enumerate(columns):
            kind = c["datatype"]
            for row in lines[1:]:
                if row[i] in c.get("null", [""]):
                    continue
                if kind in ("integer", "double"):
                    assert re.fullmatch(
                        r"[-+]?\d+" if kind == "integer" else r"[-+]?[\d.]+(e[-+]?\d+)?", row[i]
                    )
                elif kind == "date":
                    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row[i])
                elif isinstance(kind, dict):
                    assert re.fullmatch(kind["format"], row[i])
    assert json.loads(csvw_text(released[0], WORDS))["dc:publisher"] == {"schema:name": "+office"}


def test_sdmx_has_codes_names_and_the_released_numbers(released: Any) -> None:
    for one in released:
        rows = list(csv.DictReader(io.StringIO(sdmx_text(one, WORDS))))
        own = list(csv.DictReader(io.StringIO(one.to_csv())))
        assert len(rows) == len(own)
        heads = list(rows[0])
        assert heads[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
        dimensions = heads[3 : heads.index("TIME_PERIOD") : 2]
        assert len({tuple(r[d] for d in dimensions) for r in rows}) == len(rows), "a key stands for one row"
        for row, values in zip(rows, own, strict=True):
            assert re.fullmatch(r"TACIT:[A-Z0-9_-]+\(1\.0\)", row["STRUCTURE_ID"])
            assert row["TIME_PERIOD"] == "2024-Q1"
            for name in dimensions:
                assert re.fullmatch(r"-?\d+|[A-Za-z0-9_][A-Za-z0-9_-]*", row[name]), row[name]
            for text in row.values():
                assert not re.match(r"\s*[=+@]", text)
            for name, mine in (("OBS_VALUE", "value"), ("CONF_LOW", "low"), ("CONF_HIGH", "high")):
                assert row[name] == ("" if values[mine] in ("nan", "inf", "-inf") else values[mine])
            assert row["QUALITY"] == values["quality"]
            assert row["OBS_STATUS"] == {"good": "A", "no value": "O"}.get(values["quality"], "U")
    margins = sdmx_text(released[3], WORDS)
    assert "_T" in margins
    assert "TIME_PERIOD" not in sdmx_text(released[0], PublicWords(period="last spring"))


# --- from a plan -----------------------------------------------------------------------------------------
PLAN = """
[data]
path = "stays.csv"
[protect]
unit = "rows"
[schema.region]
kind = "category"
keys = ["N", "S"]
[budget]
epsilon = 1.0
[ledger]
path = "stays.ledger"
[report]
title = "Stays"
exports = ["xlsx"]
[[release]]
name = "stays"
kind = "count"
by = "region"
"""


def folder(place: Path, plan: str = PLAN) -> Path:
    (place / "stays.csv").write_text("region\n" + "N\nS\nS\n" * 200, encoding="utf-8")
    (place / "plan.toml").write_text(plan, encoding="utf-8")
    return place


def test_exports_are_in_the_manifest_and_are_verified(tmp_path: Path, capsys: Any) -> None:
    place = folder(tmp_path)
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "out"), "--export", "sdmx"]) == 0
    listed = set(json.loads((place / "out" / "manifest.json").read_text())["files"])
    assert {"tables.xlsx", "sdmx/stays.csv", "values/stays.csv-metadata.json"} <= listed
    page = (place / "out" / "report.html").read_text()
    assert 'href="tables.xlsx"' in page
    assert "<h1>Stays</h1>" in page
    ledger = ["--ledger", str(place / "stays.ledger")]
    assert main(["verify", str(place / "out"), *ledger]) == 0
    assert "holds: tables.xlsx has the numbers of all files of values" in capsys.readouterr().out
    path = place / "out" / "sdmx" / "stays.csv"
    text = path.read_text()
    path.write_text(re.sub(r",(\d+),A,", ",1234567,A,", text))
    assert path.read_text() != text
    assert main(["verify", str(place / "out")]) == 1
    assert "DOES NOT HOLD: sdmx/stays.csv has the numbers of values/stays.csv" in capsys.readouterr().out
    path.write_text(text)
    book = openpyxl.load_workbook(place / "out" / "tables.xlsx")
    book.worksheets[1]["B2"] = 7654321
    book.save(place / "out" / "tables.xlsx")
    assert main(["verify", str(place / "out")]) == 1
    assert "DOES NOT HOLD: tables.xlsx has the numbers" in capsys.readouterr().out


def test_a_better_label_is_free_and_changes_no_number(tmp_path: Path) -> None:
    place = folder(tmp_path)
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "a")]) == 0
    folder(
        tmp_path, PLAN.replace('title = "Stays"', 'title = "Hospital stays"\nkeys.region = { N = "North" }')
    )
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "b")]) == 0
    for name in ("values/stays.csv", "certificates/stays.json"):
        assert (place / "a" / name).read_bytes() == (place / "b" / name).read_bytes()
    assert "North" in (place / "b" / "report.html").read_text()
    assert main(["verify", str(place / "b"), "--ledger", str(place / "stays.ledger")]) == 0


@pytest.mark.parametrize(
    ("plan", "options"),
    [
        (PLAN, ["--export", "pdf"]),
        (PLAN.replace('["xlsx"]', '["word"]'), []),
        (PLAN.replace('title = "Stays"', 'keys.region = { X = "North" }'), []),
        (PLAN.replace('title = "Stays"', 'columns.regio = "Region"'), []),
        (PLAN.replace('title = "Stays"', 'releases.other = "Other"'), []),
        (PLAN.replace('title = "Stays"', 'subtitle = "x"'), []),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_or_called_so_is_refused_before_it_is_paid(
    tmp_path: Path, plan: str, options: list[str], capsys: Any
) -> None:
    place = folder(tmp_path, plan)
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "out"), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (place / "stays.ledger").exists()
    assert not (place / "out").exists()


def test_without_openpyxl_a_workbook_is_refused_before_it_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    place = folder(tmp_path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert main(["release", str(place / "plan.toml"), "--out", str(place / "out")]) == 2
    assert "tacit[formats]" in capsys.readouterr().err
    assert not (place / "stays.ledger").exists()
