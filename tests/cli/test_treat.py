"""`tacit treat`: what it writes, what it says was lost and is left, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from tacit.cli import main

ROWS = "id,age,sex,town,income,ill\n" + "\n".join(
    f"p{i},{20 + i * 7 % 60},{'fm'[i % 2]},t{i * i % 3},{1000 + 37 * i % 900},{'uv'[i * 3 % 5 % 2]}"
    for i in range(200)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "\n", encoding="utf-8")
    (tmp_path / "age.csv").write_text("".join(f"{a};{a // 10 * 10}s;*\n" for a in range(20, 80)))
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n")
    return path


def test_the_table_is_never_overwritten(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even where a file may be replaced, or by another name."""
    before = table.read_bytes()
    other = tmp_path / "other.csv"
    other.symlink_to(table)
    for out in (table, other, tmp_path / "." / "t.csv"):
        assert main(["treat", str(table), "--out", str(out), "--overwrite", "--remove", "id"]) == 2
        assert "another file" in capsys.readouterr().err
    assert table.read_bytes() == before


def test_coded_numbers_have_their_places_in_a_hierarchy(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    given = ["treat", str(table), "--out", str(out), "--top", "age=70", "--collapse", "age=1"]
    assert main([*given, "--hierarchy", f"age={tmp_path / 'age.csv'}"]) == 0, capsys.readouterr().err
    ages = set(pyarrow.csv.read_csv(out).column("age").to_pylist())
    assert ages == {"20s", "30s", "40s", "50s", "60s", "70s"}


def test_treatments_of_the_list(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.parquet"
    given = [
        "treat",
        str(table),
        "--out",
        str(out),
        "--remove",
        "id",
        "--top",
        "age=70",
        "--bottom",
        "age=25",
    ]
    given += [
        "--round",
        "age=5",
        "--swap",
        "ill=0.2",
        "--match",
        "sex",
        "--disturb",
        "income=0.1",
        "--sample",
        "0.5",
    ]
    assert main([*given, "--quasi", "age,sex", "--sensitive", "ill", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 100
    assert found["lost"]["columns_removed"] == ["id"]
    assert len(found["done"]) == 7
    assert found["left"]["properties"]["k-anonymity"] >= 1
    made = pyarrow.parquet.read_table(out)
    assert set(made.column("age").to_pylist()) <= set(range(25, 75, 5))
    assert main([*given]) == 2
    assert "not be there yet" in capsys.readouterr().err
    assert main([*given, "--overwrite"]) == 0
    assert "What is still wrong with it" in capsys.readouterr().out


def test_several_columns(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    given = ["treat", str(table), "--out", str(out), "--quasi", "age,income", "--k", "4"]
    assert main([*given, "--average", "age,income", "--model", "ill=sex", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"]["properties"]["k-anonymity"] >= 4
    assert pyarrow.csv.read_csv(out).num_rows == 200
    assert main([*given, "--mask", "age,income", "--overwrite"]) == 0
    assert "masked by a random orthogonal matrix" in capsys.readouterr().out


@pytest.mark.parametrize("search", ["--generalise", "--mondrian"])
def test_searches(table: Path, tmp_path: Path, search: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    given = [
        "treat",
        str(table),
        "--out",
        str(out),
        "--quasi",
        "age,sex",
        "--sensitive",
        "ill",
        "--k",
        "6",
        "--l",
        "2",
    ]
    given += ["--hierarchy", f"age={tmp_path / 'age.csv'}", "--hierarchy", f"sex={tmp_path / 'sex.csv'}"]
    assert main([*given, search, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["left"]["properties"]["k-anonymity"] >= 6
    assert found["left"]["sensitive"]["ill"]["distinct l-diversity"] >= 2
    assert found["for_publication"] is False


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ([], 2, "must be named"),
        (["--top", "age"], 2, "COLUMN=VALUE"),
        (["--top", "age=old"], 2, "COLUMN=NUMBER"),
        (["--round", "nope=3"], 2, "unknown column"),
        (["--collapse", "age=1"], 2, "have a --hierarchy"),
        (["--generalise", "--quasi", "age"], 2, "--hierarchy age=FILE"),
        (["--mondrian", "--quasi", "age", "--k", "500"], 2, "at most the 200 rows"),
        (["--mondrian", "--quasi", "age", "--sensitive", "ill", "--l", "5"], 1, "cannot be reached"),
        (["--mondrian", "--generalise"], 2, "not go with"),
        (["--sample", "0"], 2, "share"),
        (["--top", "age=nan"], 2, "finite number"),
        (["--remove", "sex", "--quasi", "agee,sex"], 2, "did you mean 'age'"),
        (["--remove", "sex", "--l", "2"], 2, "go with --generalise"),
        (["--mondrian", "--quasi", "age", "--suppress", "0.1"], 2, "go with --generalise"),
        (["--mondrian", "--quasi", "age", "--sensitive", "ill,sex", "--l", "2"], 2, "name one column"),
    ],
)
def test_it_refuses(
    table: Path, tmp_path: Path, given: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert main(["treat", str(table), "--out", str(out), *given]) == code
    told = capsys.readouterr()
    assert words in told.err
    assert told.err.count("\n") == 1
    assert not out.exists()
    assert main(["treat", str(table), "--out", str(tmp_path / "x.png"), *given]) == 2


def test_bytes_are_not_written_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "out.csv"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": [b"\xff", b"\xfe"]}), table)
    assert main(["treat", str(table), "--out", str(out), "--top", "a=1"]) == 2
    told = capsys.readouterr().err
    assert "text, for a CSV file" in told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    assert main(["treat", str(table), "--out", str(tmp_path / "out.parquet"), "--top", "a=1"]) == 0
