"""`tacit init`: a plan from a header and from answers; whatever the header holds, it parses, and no row is read."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli import init as command
from tacit.cli import main
from tacit.curator.plan_files import read_plan
from tacit.errors import InvalidParameter, TacitError, UnknownColumn

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_nothing_of_a_row_is_in_the_plan(say: Say) -> None:
    """Values are planted where a guess would look: the first rows, the ends of the range, a footer's statistics."""
    table = pa.table(
        {"age": [98_765_431, 1], "name": ["Zerzura", "Zzyzx"], "ok": [True, False], "x": [1.5, 98765.4375]}
    )
    pq.write_table(table, "t.parquet")
    Path("t.csv").write_text("age,name,ok,x\n98765431,Zerzura,true,98765.4375\n1,Zzyzx,false,1.5\n")
    for data in ("t.parquet", "t.csv"):
        assert say("init", data, "--out", f"{data}.toml")[0] == 0
        text = Path(f"{data}.toml").read_text()
        for planted in ("98765", "Zerzura", "Zzyzx"):
            assert planted not in text
    assert not list(Path().glob("*.ledger*")), "nothing was charged or marked"


def test_types_come_from_metadata_and_a_flag_needs_no_answer(say: Say) -> None:
    import datetime

    pq.write_table(
        pa.table(
            {"n": [1], "r": [1.5], "b": [True], "s": ["a"], "d": [datetime.date(2020, 1, 1)], "l": [[1]]}
        ),
        "t.parquet",
    )
    code, out, _ = say("init", "t.parquet", "--json")
    assert code == 0
    told = json.loads(out)
    kinds = {c["name"]: c["kind"] for c in told["columns"]}
    assert kinds == {"n": "integer", "r": "number", "b": "flag", "s": "category", "d": "date", "l": None}
    assert set(tomllib.loads(Path("t.toml").read_text())["schema"]) == {"b"}
    assert "--integer n" in told["unanswered"]


def test_columns_of_text_are_text(say: Say) -> None:
    Path("t.csv").write_text("n,d\n1,2020-01-01\n")
    told = json.loads(say("init", "t.csv", "--json")[1])
    assert [c["kind"] for c in told["columns"]] == [None, None]


ODD = ['a"b', "a b", "ä", "a.b", "]", "#", "\u202e", "x=y", "x", "'", "\x7f", "😀", "\\u{1b}"]


def test_any_header_gives_a_plan_that_parses(say: Say) -> None:
    Path("t.csv").write_text(",".join('"' + n.replace('"', '""') + '"' for n in ODD) + "\n", encoding="utf-8")
    code, _, error = say("init", "t.csv", "--out", "open.toml")
    assert (code, error) == (0, "")
    tomllib.loads(Path("open.toml").read_text(encoding="utf-8"))
    flags = [part for name in ODD for part in ("--category", f"{name}=k,l")]
    code, _, error = say("init", "t.csv", "--protect", "rows", "--epsilon", "1", *flags)
    assert (code, error) == (0, "")
    assert set(read_plan("t.toml").schema) == set(ODD)
    for name in ("open.toml", "t.toml"):
        assert Path(name).read_text(encoding="utf-8").replace("\n", "").isprintable()


def test_every_answer_by_flags_is_a_plan(say: Say) -> None:
    Path("t.csv").write_text("who;income;n;day;state;level;sick;other\n")
    code, out, error = say(
        "init", "t.csv", "--person", "who", "--at-most", 4, "--number", "income=0:1e5", "--integer", "n=-5:5",
        "--date", "day=2020-01-01:2020-12-31", "--category", "state=CA, NY", "--category", "level=1,2,3", "--flag",
        "sick", "--skip", "other", "--epsilon", 1, "--delta", "1e-6", "--table", "survey", "--version", "2024",
        "--decimal", ",", "--missing", "NA",
    )  # fmt: skip
    assert (code, error) == (0, "")
    assert "not answered" not in out
    found = read_plan("t.toml")
    assert found.unit == tacit.people("who", at_most=4)
    assert found.schema["income"] == tacit.number(0, 1e5)
    assert found.schema["n"] == tacit.integer(-5, 5)
    assert found.schema["state"] == tacit.category(["CA", "NY"])
    assert found.schema["level"] == tacit.category([1, 2, 3])
    assert found.schema["sick"] == tacit.flag()
    assert found.schema["day"] == tacit.date("2020-01-01", "2020-12-31")
    assert (found.table, found.version) == ("survey", "2024")
    assert found.budget == tacit.Approximate(epsilon=1.0, delta=1e-6)
    assert say("plan", "t.toml")[0] == 0


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--number", "nothing=0:1"), "nothing"), (("--number", "age"), "--number age"),
        (("--number", "age=1"), "0:120"), (("--integer", "age=0.5:2"), "0:120"),
        (("--integer", "age=5:1"), "low below high"), (("--flag", "age=1"), "alone"),
        (("--date", "age=2020:2021"), "2020-01-01"), (("--protect", "everybody"), "people, rows"),
        (("--protect", "rows", "--at-most", "3"), "protect"), (("--person", "nobody"), "nobody"),
        (("--at-most", "0"), "at_most"), (("--epsilon", "-1"), "epsilon"), (("--epsilon", "1", "--rho", "1"), "rho"),
        (("--category", "age=a,a"), "different"), (("--skip", "nothing"), "nothing"),
        (("--number", "age=nan:1"), "age"),
    ],
)  # fmt: skip
def test_a_wrong_flag_is_one_sentence_and_no_file(say: Say, flags: tuple[str, ...], word: str) -> None:
    Path("t.csv").write_text("age,state\n")
    code, out, error = say("init", "t.csv", *flags)
    assert (code, out) == (2, "")
    assert word in error
    assert error.count("\n") == 1
    assert not Path("t.toml").exists()


def test_a_first_line_that_is_somebodys_row_is_not_written_down(say: Say) -> None:
    Path("t.csv").write_text("Zerzura,47,1977-05-01\nAda,36,1815-12-10\n")
    code, out, error = say("init", "t.csv")
    assert (code, out) == (2, "")
    assert "Zerzura" not in error
    assert not Path("t.toml").exists()
    assert say("init", "t.csv", "--trust-header")[0] == 0


def test_nothing_is_overwritten(say: Say) -> None:
    Path("t.csv").write_text("age\n")
    Path("t.toml").write_text("mine")
    assert say("init", "t.csv")[0] == 2
    assert Path("t.toml").read_text() == "mine"
    assert say("init", "t.csv", "--out", "no/where.toml")[0] == 2
    assert say("init", "absent.csv")[0] == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_questions_at_a_terminal(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong answers are asked again, empty ones stay comments, and no flag's question is asked."""
    Path("t.csv").write_text("who,age,state,town\n")
    given = iter(
        [
            "rows or what",
            "p",
            "whom",
            "wh",
            "who",
            "0",
            "3",
            "i",
            "high",
            "0:120",
            "Cat",
            "CA,NY",
            "",
            "1.5",
            "",
        ]
    )
    asked: list[str] = []

    def prompt(question: str, **_: Any) -> str:
        asked.append(question)
        return next(given)

    monkeypatch.setattr(command, "_terminal", lambda: True)
    monkeypatch.setattr(command.typer, "prompt", prompt)
    code, told, _ = say("init", "t.csv")
    assert code == 0
    assert "unknown answer 'rows or what'; known: people, rows" in told
    assert "unknown answer 'wh'" in told, "a column is named in full"
    found = read_plan("t.toml")
    assert found.unit == tacit.people("who", at_most=3)
    assert dict(found.schema) == {"age": tacit.integer(0, 120), "state": tacit.category(["CA", "NY"])}
    assert found.budget == tacit.Pure(epsilon=1.5)
    assert next(given, None) is None
    asked.clear()
    given = iter([])
    flags = [
        "--protect",
        "rows",
        "--epsilon",
        "1",
        "--skip",
        "town",
        "--skip",
        "who",
        "--flag",
        "age",
        "--category",
        "state",
    ]
    assert say("init", "t.csv", "--out", "b.toml", *flags)[0] == 0
    assert not asked


def answered(say: Say, monkeypatch: pytest.MonkeyPatch, *lines: str) -> str:
    """What is printed where somebody gives these answers, and no others are asked for."""
    given = iter(lines)
    monkeypatch.setattr(command, "_terminal", lambda: True)
    monkeypatch.setattr(command.typer, "prompt", lambda question, **_: next(given))
    code, told, _ = say("init", "t.csv")
    assert code == 0
    assert next(given, None) is None
    return told


def test_back_asks_the_question_before_again(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("who,age\n")
    protect = ("back", "people", "back", "people", "who", "back", "who", "2")
    column = ("integer", "0:9", "back", "integer", "back", "2", "integer", "0:120")
    told = answered(say, monkeypatch, *protect, *column, "1", "back", "2", "1e-6")
    assert told.count("this is the first question") == 1
    found = read_plan("t.toml")
    assert found.unit == tacit.people("who", at_most=2)
    assert dict(found.schema) == {"age": tacit.integer(0, 120)}
    assert found.budget == tacit.Approximate(epsilon=2.0, delta=1e-6)


def test_a_column_may_be_called_back(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("back,age\n")
    answered(say, monkeypatch, "people", "back", "1", "integer", "0:9", "1", "")
    assert read_plan("t.toml").unit == tacit.people("back", at_most=1)


def test_columns_are_skipped_and_declared_in_groups(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("item_1,note,item_2,item_3,year2,year\n")
    answered(
        say,
        monkeypatch,
        "rows",
        "integer",
        "1:5",
        "yes",
        "skip",
        "integer",
        "2000:2020",
        "skip",
        "1",
        "back",
        "2",
        "",
    )
    found = read_plan("t.toml")
    five = tacit.integer(1, 5)
    assert dict(found.schema) == {
        "item_1": five,
        "item_2": five,
        "item_3": five,
        "year2": tacit.integer(2000, 2020),
    }
    assert found.budget == tacit.Pure(epsilon=2.0)


def test_nobody_is_asked_where_nobody_sits(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("who\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("people\n"))
    assert say("init", "t.csv")[0] == 0
    assert "# [protect]" in Path("t.toml").read_text()


def test_the_same_from_python(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who;age\n")
    made = tacit.suggest(
        tacit.files(tmp_path / "t.csv", separator=";"), person="who", at_most=2, rho=0.5,
        schema={"age": tacit.integer(0, 9)}, beside=tmp_path,
    )  # fmt: skip
    assert made.unanswered == ()
    found = read_plan(made.write(tmp_path / "plan.toml"))
    assert found.budget == tacit.Concentrated(rho=0.5)
    assert tomllib.loads(made.text)["data"] == {"path": "t.csv", "separator": ";"}
    with pytest.raises(InvalidParameter):
        made.write(tmp_path / "plan.toml")
    with pytest.raises(UnknownColumn):
        tacit.suggest(tmp_path / "t.csv", skip=["nobody"])
    with pytest.raises(TacitError):
        tacit.suggest(tmp_path / "t.csv", epsilon=-1)
