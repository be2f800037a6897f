"""What was mistyped is told with the likeliest right word: files, options, tables and words of a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.errors import InvalidParameter, NoSuchFile

Say = Callable[..., tuple[int, str, str]]
PLAN = """[data]
path = "t.csv"

[protect]
unit = "rows"

[schema.x]
kind = "integer"
low = 0
high = 9

[budget]
epsilon = 1.0

[[release]]
kind = "sum"
column = "x"
epsilon = 0.25
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    return tmp_path


def test_a_missing_plan_is_no_such_file(folder: Path, say: Say) -> None:
    assert say("plan", "survey.toml") == (2, "", "tacit: no such file: survey.toml\n")
    (folder / "survey2.toml").write_text(PLAN)
    (folder / "survey.csv").write_text("x\n")
    code, _, err = say("release", "survey.toml", "--out", "out")
    assert (code, err) == (2, "tacit: no such file: survey.toml; did you mean 'survey2.toml'?\n")
    with pytest.raises(NoSuchFile) as caught:
        tacit.read_plan(folder / "survy2.toml")
    assert isinstance(caught.value, InvalidParameter)
    assert caught.value.nearest == str(folder / "survey2.toml")
    assert say("plan", "nowhere/survey.toml")[2] == "tacit: no such file: nowhere/survey.toml\n"


def test_a_folder_or_bytes_are_no_text(folder: Path, say: Say) -> None:
    (folder / "bytes.toml").write_bytes(b"\xff\xfe")
    for name in (".", "bytes.toml"):
        assert "must be a readable text file" in say("plan", name)[2]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("release", "plan.toml", "--otu", "x"), "--out"),
        (("explain", "--epsilom", "1"), "--epsilon"),
        (("account", "--evnet", "gaussian noise_multiplier=1"), "--event"),
        (("ledger", "show", "--jsn"), "--json"),
    ],
)
def test_an_option_is_told_with_the_likeliest_one(typed: tuple[str, ...], meant: str, say: Say) -> None:
    code, out, err = say(*typed)
    assert (code, out) == (2, "")
    wrong = next(word for word in typed if word.startswith("--"))
    assert err == f"tacit: unknown option '{wrong}'; did you mean '{meant}'?\n"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[budget]", "[budgte]"),
        ("[schema.x]", "[shcema.x]"),
        ("unit", "unti"),
        ("low", "lwo"),
        ("column", "colunm"),
        ("path", "paht"),
        ('"sum"', '"smu"'),
        ('"integer"', '"interger"'),
    ],
)
def test_a_word_of_a_plan_is_told_with_the_likeliest_one(
    right: str, wrong: str, folder: Path, say: Say
) -> None:
    (folder / "plan.toml").write_text(PLAN.replace(right, wrong, 1))
    code, _, err = say("plan", "plan.toml")
    assert code == 2
    meant = right.strip('[]"').removesuffix(".x")
    assert f"did you mean '{meant}'?" in err
