"""The first hour, as the documentation tells it: from a file that somebody sent to a table that can be published.

Each test is a task that a custodian has, in at most ten lines of plan or Python, on data made up in the shape of the
real table.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.cli import main

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> tuple[int, str, str]:
        import shlex

        code = main(shlex.split(line))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def survey(
    *, separator: str = ",", decimal: str = ".", encoding: str = "utf-8", day: str = "{y}-{m:02}-{d:02}"
) -> None:
    """500 people in the shape of a health survey, as R writes it: quoted, with row names in a nameless first column."""
    draw = random.Random(7)
    lines = [separator.join(['""', '"person"', '"canton"', '"age"', '"income"', '"asked"'])]
    for i in range(1, 501):
        canton = draw.choice(["Zürich", "Bern", "Genève"])
        income = f"{draw.lognormvariate(10.5, 0.6):.2f}".replace(".", decimal)
        asked = day.format(y=2023, m=draw.randint(1, 12), d=draw.randint(1, 28))
        lines.append(
            separator.join(
                [f'"{i}"', f'"p{i}"', f'"{canton}"', str(draw.randint(18, 90)), income, f'"{asked}"']
            )
        )
    Path("survey.csv").write_bytes("\n".join([*lines, ""]).encode(encoding))


ANSWERS = (
    "--person person --at-most 1 --category canton=Zürich,Bern,Genève --integer age=0:110 "
    "--number income=0:200000 --date asked=2023-01-01:2023-12-31 --epsilon 2"
)


def test_from_rs_csv_to_a_published_table(say: Say) -> None:
    """write.csv of R's; init, plan, inspect, release, verify: each is one line."""
    survey()
    assert say(f"tacit init survey.csv {ANSWERS}".removeprefix("tacit "))[0] == 0
    code, told, _ = say("plan survey.toml --record")
    assert code == 0
    assert "nothing was read" in told
    code, told, _ = say("inspect survey.toml")
    assert code == 0
    assert "canton: no row is outside of the declared keys" in told
    assert say("release survey.toml --out published")[0] == 0
    code, told, _ = say("verify published --ledger survey.ledger --all")
    assert code == 0
    assert "the ledger knows of no look before this plan" in told
    assert Path("published/report.html").is_file()


def test_init_asks_by_comments_and_the_filled_in_plan_is_one(say: Say) -> None:
    survey()
    code, told, _ = say("init survey.csv")
    assert code == 0
    for flag in ("--protect", "--epsilon", "canton", "income"):
        assert flag in told
    text = Path("survey.toml").read_text()
    assert set(tomllib.loads(text)) == {"data", "release"}, "what is not answered is a comment"
    assert say("plan survey.toml")[0] == 2
    filled = text.replace("# [schema.canton]", "[schema.canton] #").replace("# [protect]", "[protect]")
    filled = filled.replace('# unit = "people"', 'unit = "people"').replace(
        "# column = ...", 'column = "person"'
    )
    filled = filled.replace("# at_most = ...", "at_most = 1").replace("# [budget]", "[budget]")
    filled = filled.replace("# epsilon = ...", "epsilon = 1")
    at = filled.index("[schema.canton]")
    rest = (
        filled[at:].replace("# kind", "kind", 1).replace('# keys = ["..."]', 'keys = ["Bern", "Genève"]', 1)
    )
    Path("survey.toml").write_text(filled[:at] + rest)
    code, told, error = say("plan survey.toml")
    assert (code, error) == (0, "")


def test_a_misspelt_key_is_shown(say: Say) -> None:
    survey()
    say(f"init survey.csv {ANSWERS.replace('Genève', 'Geneve')}")
    told = say("inspect survey.toml")[1]
    line = next(line for line in told.splitlines() if "outside of the declared keys" in line)
    assert line.startswith("NOT FOR PUBLICATION | ! canton")
    assert "'Genève' (" in line
    assert "declared is 'Geneve')" in line
    assert "1 of the 3 declared keys occur in no row" in told


def test_bounds_that_cut_everything_off_are_named(say: Say) -> None:
    survey()
    say(f"init survey.csv {ANSWERS.replace('income=0:200000', 'income=0:2')}")
    told = say("inspect survey.toml")[1]
    assert "income: 100.0% of the rows are outside of the declared bounds" in told
    assert "the bounds cut everything off" in told
    assert "and of the declared ones 2" in told


def test_a_wrong_decimal_sign_is_named(say: Say) -> None:
    survey(separator=";", decimal=",")
    text = Path("survey.csv").read_text()
    say(f"init survey.csv {ANSWERS}")
    told = say("inspect survey.toml")[1]
    assert "income: 100.0% of the rows have a text that parses as no number" in told
    assert 'try decimal = ","' in told
    assert text == Path("survey.csv").read_text()


def test_day_first_dates_are_named(say: Say) -> None:
    survey(day="{d:02}.{m:02}.{y}")
    say(f"init survey.csv {ANSWERS}")
    told = say("inspect survey.toml")[1]
    assert "asked: 100.0% of the rows have a text that parses as no date" in told
    assert 'try dates = "day-first"' in told


def test_a_wrong_encoding_is_named(say: Say) -> None:
    survey(encoding="latin-1")
    say(f"init survey.csv {ANSWERS}")
    told = say("inspect survey.toml")[1]
    assert "lines are not utf-8" in told
    assert 'try encoding = "cp1252"' in told


@pytest.mark.parametrize(
    "made",
    [
        {"separator": ";", "decimal": ","},
        {"day": "{d:02}.{m:02}.{y}"},
        {"encoding": "latin-1"},
    ],
)
def test_the_road_of_a_release_stays_silent_about_all_of_that(say: Say, made: dict[str, str]) -> None:
    """A stop that depends on the data is an answer about them: what cannot be read is missing, and nothing is said."""
    survey(**made)
    say(f"init survey.csv {ANSWERS.replace('Genève', 'Geneve').replace('0:200000', '0:2')}")
    code, told, error = say("release survey.toml --out published")
    assert (code, error) == (0, "")
    for word in ("decimal", "encoding", "day-first", "outside of", "Genève"):
        assert word not in told


def test_the_same_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    survey()
    schema = {"canton": tacit.category(["Zürich", "Bern", "Genf"]), "age": tacit.integer(0, 110)}
    print(tacit.suggest("survey.csv", person="person", at_most=1, schema=schema, epsilon=2).unanswered)
    with tacit.Curator(
        "survey.csv", protect=tacit.people("person", at_most=1), schema=schema,
        budget=tacit.Pure(epsilon=2.0), ledger="survey.ledger",
    ) as curator:  # fmt: skip
        seen = tacit.inspect(curator, curator.preview(tacit.count(by="canton"), epsilon=1))
        assert any("'Genève'" in note.sentence for note in seen.attention)
        assert "someone who had seen the data" in str(curator.release(tacit.count(by="canton"), epsilon=1))


def test_the_page_of_the_documentation_runs_as_it_stands(
    say: Say, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands on the survey that it speaks of, and then its Python on another copy of it."""
    import os
    import re
    import shlex

    text = (Path(__file__).parents[2] / "docs" / "first-hour.md").read_text(encoding="utf-8")
    survey()
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if line != "tacit init survey.csv"
    ]
    assert len(lines) == 6
    for line in lines:
        assert say(" ".join(shlex.quote(word) for word in shlex.split(line)[1:]))[0] == 0, line
    os.mkdir("again")
    os.chdir("again")
    survey()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    exec(compile(code, "first-hour.md", "exec"), {})
    assert "releases done 1" in capsys.readouterr().out
