"""`tacit twin`: what it writes, what it says, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from tacit.cli import main

PLAN = """
[protect]
unit = "people"
column = "who"

[schema.age]
kind = "number"
low = 0
high = 120

[schema.region]
kind = "category"
keys = ["north", "south"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


def test_it_writes_what_it_names(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "twin.parquet"
    assert main(["twin", str(plan), "--rows", "400", "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "400 rows of 100 people" in told.out
    assert str(out) in told.out
    table = pyarrow.parquet.read_table(out)
    assert table.column_names == ["who", "age", "region", "__tacit_twin"]
    assert table.num_rows == 400
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["new", "plan.toml", "twin.parquet"]


def test_json_and_csv(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "twin.csv"
    command = [
        "twin",
        str(plan),
        "--rows",
        "50",
        "--people",
        "5",
        "--person-column",
        "id",
        "--out",
        str(out),
        "--json",
    ]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"out": str(out), "rows": 50, "people": 5, "columns": ["id", "age", "region"], "seed": 0}
    first = out.read_bytes()
    assert pyarrow.csv.read_csv(out).num_rows == 50
    assert main([*command, "--overwrite"]) == 0
    assert out.read_bytes() == first, "the same seed gives the same file"
    assert main([*command, "--overwrite", "--seed", "1"]) == 0
    assert out.read_bytes() != first


def test_an_existing_file_is_not_touched(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "twin.csv"
    out.write_text("precious", encoding="utf-8")
    assert main(["twin", str(plan), "--out", str(out)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--overwrite" in told.err
    assert out.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("[schema.age]\nkind = 'nubmer'\n", [], "did you mean 'number'"),
        ("[schema.age]\nkind = 'number'\nlwo = 1\nhigh = 2\n", [], "did you mean 'low'"),
        ("[schema]\n", [], "schema is empty"),
        ("x = 1\n", [], "[schema.*]"),
        ("schema = 1\n", [], "table of columns"),
        ("x = [", [], "well-formed TOML"),
        (None, [], "no such file"),
        (PLAN, ["--rows", "0"], "rows must be"),
        (PLAN, ["--rows", "ten"], "--rows"),
        (PLAN, ["--people", "-4"], "people must be"),
        (PLAN, ["--people", "999999"], "people must be"),
        (PLAN, ["--missing", "1.5"], "missing_share must"),
        (PLAN, ["--seed", "-1"], "seed must"),
        (PLAN, ["--out", "twin.xlsx"], "unknown kind of file"),
        (PLAN, ["--out", "/proc/nowhere/twin.csv"], "writable"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    text: str | None, options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["twin", str(path), "--out", str(tmp_path / "twin.csv"), *options]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert told.err.count("\n") == 1
    assert words in told.err
    assert not (tmp_path / "twin.csv").exists()
