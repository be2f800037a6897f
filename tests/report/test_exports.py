"""Files for others: a workbook, SDMX-CSV and CSVW metadata; and a tutorial in ten lines."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from tacit.cli import main
from tacit.curator.cells import original
from tacit.curator.intervals import Estimate
from tacit.curator.text import PublicWords
from tacit.errors import InvalidParameter
from tacit.noise.source import SeededSource
from tacit.report.exports import csvw_text, export_files, sdmx_text, workbook, write_workbook
from tacit.report.exports.tables import code_of, codes, id_of, ids, numbered, sheet_name, sheets
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
    odd = ["About", "a" * 40, "A" * 40, "x/y:z*?[1]\\", "x-y-z---1--", "history", "'", "=1+1", "plain", "a b"]
    names = sheets(odd)
    assert len({n.casefold() for n in names}) == len(names)
    assert names == [sheet_name(n) for n in odd], "whatever other sheets there are"
    assert [n for n in names if n in odd] == ["x-y-z---1--", "=1+1", "plain", "a b"]
    assert sheet_name(names[0]) != names[0], "a name that looks like another one's"
    with pytest.raises(InvalidParameter, match="different names"):
        sheets(["a", "a"])
    with pytest.raises(InvalidParameter, match="different codes"):
        sheets(["a", "A"])
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


def test_exports_say_level_quality_and_ends_as_released(released: Any) -> None:
    """Each cell's own word, the whole level, the right end where there is none, and that a seed is no secret."""
    one = released[0]
    at = dataclasses.replace(
        one.planned, ask=dataclasses.replace(one.planned.ask, confidence=Fraction(975, 1000))
    )
    rows = list(csv.DictReader(io.StringIO(sdmx_text(dataclasses.replace(one, planned=at), WORDS))))
    assert {row["CONF_LEVEL"] for row in rows} == {"0.975"}
    book = openpyxl.load_workbook(io.BytesIO(workbook(released, WORDS)))
    for sheet, mine in zip(book.worksheets[1:], released, strict=True):
        assert [row[-1] for row in sheet.iter_rows(min_row=2, values_only=True)] == mine.quality
    assert any(len(set(r.quality)) > 1 and r.quality != r.quality[::-1] for r in released), (
        "marks that differ"
    )
    told = {row[0]: row[1] for row in book.worksheets[0].iter_rows(values_only=True) if row[0]}
    assert "seeded source" in told["NOT FOR PUBLICATION"]
    ratio = released[4]
    ends = {"value": [1.5] * 7, "low": [-np.inf] * 7, "high": [np.inf] * 7}
    wide = dataclasses.replace(ratio, estimate=Estimate(**{n: np.array(v) for n, v in ends.items()}))
    sheet = openpyxl.load_workbook(io.BytesIO(workbook([wide], WORDS))).worksheets[1]
    assert [row[1:4] for row in sheet.iter_rows(min_row=2, values_only=True)] == [(1.5, "−∞", "∞")] * 7


def test_what_is_published_does_not_say_that_it_is_for_a_test(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2] * 50})
    with tacit.Curator(
        frame, protect=tacit.rows(), schema={"n": integer(0, 9)}, budget=tacit.Pure(epsilon=2)
    ) as one:
        made = [one.release(tacit.count(), epsilon=1.0)]
    cover = openpyxl.load_workbook(io.BytesIO(workbook(made, PublicWords()))).worksheets[0]
    assert "NOT FOR PUBLICATION" not in {row[0] for row in cover.iter_rows(values_only=True)}


# --- a code is a function of its key alone ---------------------------------------------------------------
MEAN = [
    "東京", "大阪", "St Paul", "St. Paul", "St_Paul", "St__Paul", "st paul", "a b c", "a_b c", "a b_c", "a__b", "", " ",
    "_T", "_U", "all", "missing", "-5", "-5a", "5", "5.0", "5_0", "x" * 61, "x" * 62, "é", "e\u0301", "A", "a",
    "true", "=1",
]  # fmt: skip


def test_codes_do_not_move_with_other_keys() -> None:
    """東京 was `_` in one version and `__2` in the next; St Paul and St. Paul changed places with the noise."""
    first, then = codes(["東京", "St Paul", "St. Paul"]), codes(["大阪", "St. Paul", "東京", "St Paul"])
    assert first == {k: then[k] for k in first}
    assert numbered(["St Paul", "St. Paul"]) == ["St_Paul", "St_Paul_2"], (
        "form 1, which is kept for comparing"
    )


def test_codes_of_different_keys_are_different() -> None:
    told = [code_of(k) for k in MEAN]
    told += [code_of(code) for code in told if code not in MEAN]
    again = list(dict.fromkeys([*MEAN, *(code_of(k) for k in MEAN)]))
    assert len({code_of(k) for k in again}) == len(again), "keys that look like codes of others, too"
    assert all(re.fullmatch(r"-?\d+|[A-Za-z0-9_][A-Za-z0-9_-]*", code) for code in told)
    assert not {"_T", "_U"} & set(told), "the total and what is missing"
    for key in ("CA", "2024-Q1", "high_school", "-5", "north-west"):
        assert code_of(key) == key, "what is a code already is its own"
    assert code_of("St Paul") == "St__Paul"
    names = ["age", "Age", "AGE", "obs_value", "a b", "a_b", "東京", "x_x0123456789abcdef"]
    assert len(set(ids(names, taken=("OBS_VALUE",)))) == len(names)
    assert id_of("age") == "AGE"
    assert "OBS_VALUE" not in ids(names, taken=("OBS_VALUE",))
    assert all(re.fullmatch(r"[A-Z0-9_-]+", id_of(n)) for n in names)


def test_codes_that_fall_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.report.exports.tables.digits_of", lambda text, count: "0" * count)
    assert len(codes(["é", "plain"])) == 2
    with pytest.raises(InvalidParameter, match="different codes"):
        codes(["é", "ü"])


def test_no_heading_of_sdmx_stands_twice() -> None:
    """A label that is called like the column of the values is not read for it."""
    frame = pd.DataFrame({"obs_value": ["a", "b"] * 50, "region": ["N", "S"] * 50})
    schema = {"obs_value": tacit.category(["a", "b"]), "region": tacit.category(["N", "S"])}
    with tacit.Curator(frame, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=2)) as one:
        made = one.release(tacit.count(by=["obs_value", "region"]), epsilon=1.0)
    words = PublicWords(columns={"region": "OBS_VALUE", "obs_value": "REGION"})
    heads = sdmx_text(made, words).partition("\n")[0].split(",")
    assert len(set(heads)) == len(heads)
    assert heads.count("OBS_VALUE") == 1


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
    assert main(["verify", str(place / "out"), *ledger, "--all"]) == 0
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
