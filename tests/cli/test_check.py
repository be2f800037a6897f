"""`tacit check`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main

ROWS = "age,sex,town,illness\n" + "\n".join(
    f"{30 + i % 4},{'fm'[i % 2]},t{i % 3},{'abcd'[i * i % 4]}" for i in range(60)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "\n", encoding="utf-8")
    return path


def test_it_prints_and_writes(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    given = ["check", str(table), "--quasi", "age,sex", "--sensitive", "illness", "--people", "900"]
    assert main([*given, "--out", str(page)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "k-anonymity                       15" in told.out
    assert "no guarantees" in told.out
    text = page.read_text(encoding="utf-8")
    assert "have no protection" in text
    assert "<script" not in text
    assert "noindex" in text
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["properties"]["k-anonymity"] == 15
    assert found["for_publication"] is False
    assert found["attacks"][0]["exposed"] == "60 of 60 people"
    assert set(found["uniques"]["population"]) == {"pitman", "zayatz"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--quasi", ""], "quasi-identifiers is empty"),
        (["--quasi", "illness", "--sensitive", "illness"], "not be a quasi-identifier too"),
        (["--quasi", "agee"], "did you mean 'age'"),
        (["--quasi", "age", "--k", "0"], "k must"),
        (["--quasi", "age", "--out", "x.png"], ".html"),
        (["--quasi", "age", "--hierarchy", "nothing.csv", "--sensitive", "illness"], "cannot be read"),
    ],
)
def test_it_refuses(table: Path, given: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(table), *given]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err
    assert told.err.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "no.csv"), "--quasi", "a"]) == 2
    assert "is not there" in capsys.readouterr().err


def test_attacks_that_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four people in their thirties with one illness, and one person alone."""
    path, page = tmp_path / "t.csv", tmp_path / "p.html"
    rows = ["3*,cancer"] * 4 + ["2*,flu", "2*,cancer", "2*,flu", "2*,cold"] + ["9*,cold"]
    path.write_text("age,ill\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert (
        main(["check", str(path), "--quasi", "age", "--sensitive", "ill", "--json", "--out", str(page)]) == 0
    )
    found = {a["attack"]: a for a in json.loads(capsys.readouterr().out)["attacks"]}
    assert found["linkage"]["exposed"] == "1 of 9 people"
    assert found["homogeneity (ill)"]["exposed"] == "5 of 9 people"
    # cold: 2 of 9 in the table, 1 of 1 in the last class; flu: 2 of 9, and 2 of 4 in a class of four.
    assert found["skewness (ill)"]["exposed"] == "4 of 9 people"
    assert "Attacks that work" in page.read_text(encoding="utf-8")


def test_values_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "t.csv", tmp_path / "page.html"
    path.write_text("a,s\n" + "1,\x1b[31m<b>red\n" * 3 + "2,blue\n" * 9, encoding="utf-8")
    assert main(["check", str(path), "--quasi", "a", "--sensitive", "s", "--out", str(page)]) == 0
    told = capsys.readouterr().out
    assert "\\u{1b}[31m" in told
    assert "\x1b" not in told + page.read_text(encoding="utf-8")
    assert "<b>red" not in page.read_text(encoding="utf-8")
    assert main(["attack", "homogeneity", str(path), "--quasi", "a", "--sensitive", "s"]) == 0
    assert "\x1b" not in capsys.readouterr().out
