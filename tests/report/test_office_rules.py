"""Rounding, a minimum size, own thresholds, a second language: what page and workbook print, and files do not."""

from __future__ import annotations

import csv
import html
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from tacit.cli import main
from tacit.curator.text import OfficeRules, PublicWords, words_in
from tacit.errors import InvalidParameter, UnknownName

PLAN = """
data = { path = "stays.csv" }
protect = { unit = "rows" }
schema.region = { kind = "category", keys = ["N", "S", "E"] }
schema.days = { kind = "number", low = 0, high = 40 }
budget = { epsilon = 6 }
release = [
  { kind = "count", by = "region", name = "stays", epsilon = 3 },
  { kind = "mean", column = "days", by = "region", name = "length", epsilon = 3 },
]
[report]
title = "Stays"
exports = ["xlsx"]
columns = { region = "Region" }
keys = { region = { N = "North" } }
releases = { stays = "Stays by region" }
"""
RULES = """
[report.rules]
round_to = 5
minimum = 30
care = 0.02
noisy = 0.04
[report.second]
title = "Séjours"
columns = { region = "Région" }
keys = { region = { N = "Nord", S = "Sud" } }
releases = { stays = "Séjours par région" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("office")
    draw = np.random.default_rng(1)
    regions = ["N"] * 203 + ["S"] * 88 + ["E"] * 7
    lines = [f"{r},{draw.uniform(0, 40):.1f}" for r in regions]
    (place / "stays.csv").write_text("region,days\n" + "\n".join(lines) + "\n")
    for name, text in (("plain", PLAN), ("ruled", PLAN + RULES)):
        (place / f"{name}.toml").write_text(text)
        assert main(["release", str(place / f"{name}.toml"), "--out", str(place / name)]) == 0
    return place


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_files_are_the_same_and_the_second_folder_is_free(folder: Path, capsys: Any) -> None:
    """Rules are no part of the question: the same answer, from the record, in the same bytes."""
    for name in ("stays", "length"):
        one, other = ((folder / f / "values" / f"{name}.csv").read_bytes() for f in ("plain", "ruled"))
        assert one == other
    capsys.readouterr()
    assert main(["verify", str(folder / "ruled")]) == 0
    assert "everything that could be checked holds" in capsys.readouterr().out


def test_a_workbook_that_was_changed_does_not_hold(folder: Path, capsys: Any) -> None:
    import shutil

    shutil.copytree(folder / "ruled", folder / "forged")
    book = openpyxl.load_workbook(folder / "forged" / "tables.xlsx")
    book["stays"]["B2"] = 999_995
    book.save(folder / "forged" / "tables.xlsx")
    capsys.readouterr()
    assert main(["verify", str(folder / "forged")]) == 1
    told = capsys.readouterr().out
    assert "tables.xlsx" in "".join(line for line in told.splitlines() if line.startswith("DOES NOT HOLD"))


def test_the_page_prints_counts_by_the_rules(folder: Path) -> None:
    page = html.unescape((folder / "ruled" / "report.html").read_text(encoding="utf-8"))
    true = {row["region"]: row for row in cells(folder / "ruled" / "values" / "stays.csv")}
    assert float(true["E"]["value"]) < 30
    assert "fewer than 30" in page
    assert "Counts are rounded to multiples of 5, ends of intervals outwards." in page
    assert "Released counts below 30 are not printed." in page
    assert "4% of the value" in page
    assert "Stays by region / Séjours par région" in page
    assert "North / Nord" in page
    assert "Region / Région" in page
    assert "Stays / Séjours" in page
    (first, *_) = re.findall(r'<th scope="row">North / Nord</th>(.*?)</tr>', page)
    shown = [int(v) for v in re.findall(r">([\d,]+)<", first)]
    assert [v % 5 for v in shown] == [0, 0, 0]
    assert abs(shown[0] - float(true["N"]["value"])) <= 2.5
    assert "Smallest: S / Sud" in page  # what is not printed is not spoken of either
    assert "E, none" not in page


def test_the_workbook_prints_the_same(folder: Path) -> None:
    book = openpyxl.load_workbook(folder / "ruled" / "tables.xlsx")
    plain = openpyxl.load_workbook(folder / "plain" / "tables.xlsx")
    true = {row["region"]: row for row in cells(folder / "ruled" / "values" / "stays.csv")}
    told = {row[0]: row[1:] for row in book["stays"].iter_rows(min_row=2, values_only=True)}
    assert set(told) == {"North / Nord", "S / Sud", "E"}
    for key, name in (("N", "North / Nord"), ("S", "S / Sud")):
        value, low, high, _ = told[name]
        assert [value % 5, low % 5, high % 5] == [0, 0, 0]
        assert low <= float(true[key]["low"]) < low + 5
        assert high - 5 < float(true[key]["high"]) <= high
        assert abs(value - float(true[key]["value"])) <= 2.5
    assert told["E"] == (None, None, None, "fewer than 30")
    means = {row[0]: row[1:] for row in book["length"].iter_rows(min_row=2, values_only=True)}
    before = {row[0]: row[1:] for row in plain["length"].iter_rows(min_row=2, values_only=True)}
    assert means["North / Nord"][:3] == before["North"][:3]  # means are neither rounded nor left out
    assert "too noisy to use" in [row[-1] for row in means.values()]
    cover = [" ".join(map(str, filter(None, row))) for row in book.worksheets[0].iter_rows(values_only=True)]
    assert any("rounded to multiples of 5" in line for line in cover)
    assert cover[0] == "Stays / Séjours"


def test_thresholds_decide_about_quality_from_both_sides(folder: Path) -> None:
    """A mean whose interval reaches 3% of its value: good by ours, with care by the office's."""
    books = {name: openpyxl.load_workbook(folder / name / "tables.xlsx") for name in ("plain", "ruled")}
    words = {
        name: [row[-1] for row in book["length"].iter_rows(min_row=2, values_only=True)]
        for name, book in books.items()
    }
    for row, ours, theirs in zip(
        cells(folder / "plain" / "values" / "length.csv"), words["plain"], words["ruled"], strict=True
    ):
        value, low, high = (float(row[n]) for n in ("value", "low", "high"))
        far = max(high - value, value - low) / value
        assert ours == ("good" if far <= 0.25 else "use with care" if far <= 0.5 else "too noisy to use")
        assert theirs == ("good" if far <= 0.02 else "use with care" if far <= 0.04 else "too noisy to use")


def test_no_rule_changes_nothing() -> None:
    assert words_in({"rules": {}}) == PublicWords()
    assert OfficeRules().sentences == []


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"rules": {"round_to": 0}}, InvalidParameter),
        ({"rules": {"round_to": 2.5}}, InvalidParameter),
        ({"rules": {"minimum": True}}, InvalidParameter),
        ({"rules": {"minimum": -1}}, InvalidParameter),
        ({"rules": {"care": 0}}, InvalidParameter),
        ({"rules": {"care": 0.6}}, InvalidParameter),
        ({"rules": {"care": 0.3, "noisy": 0.2}}, InvalidParameter),
        ({"rules": {"noisy": math.inf}}, InvalidParameter),
        ({"rules": {"round": 5}}, UnknownName),
        ({"rules": 5}, InvalidParameter),
        ({"second": {"publisher": "x"}}, UnknownName),
        ({"second": {"second": {}}}, UnknownName),
        ({"second": "fr"}, InvalidParameter),
    ],
)
def test_wrong_rules_are_refused(table: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        words_in(table)


def test_a_label_of_an_unknown_column_is_refused_in_the_second_language_too(
    folder: Path, capsys: Any
) -> None:
    plan = folder / "wrong.toml"
    plan.write_text(PLAN + '[report.second]\ncolumns = { nowhere = "Nulle part" }\n')
    assert main(["plan", str(plan)]) == 2
    assert "nowhere" in capsys.readouterr().err
