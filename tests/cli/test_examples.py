"""The examples that help and docs/cli.md show: one a command, each is read, most are run, and their keys are told."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import _commands, main
from tacit.cli.examples import EXAMPLES, commands

ROOT = Path(__file__).parents[2]
# Needs messages of other holders; tests/cli/test_joint.py runs such a session.
READ_ONLY = {name for name in EXAMPLES if name.startswith("joint ")}
# What an example needs of others comes first.
FIRST = [
    "demo",
    "key make",
    "ledger make",
    "ledger person",
    "ledger request",
    "ledger approve",
    "release",
    "ledger rule",
    "ledger share",
    "ledger note",
    "ledger supersede",
    "ledger withdraw",
]
RELEASED = "zip,age,condition\n13012,28,flu\n13012,28,flu\n13014,41,asthma\n13014,41,heart disease\n"
FILES = {
    "mechanism.py": "import random\n\n\ndef release(x):\n    return random.randint(0, 1)\n",
    "answers.csv": "count\n6.5\n7.25\n7.25\n",
    "totals.csv": "with,without\n10,9\n",
    "published.csv": "value\n0.5\n",
    "histories.csv": "person,item,film,stars\na,x,x,3\nb,x,y,4\n",
    "known.csv": "person,film,stars\nAnn,x,3\n",
    "released.csv": RELEASED,
    "later.csv": RELEASED,
    "voters.csv": "name,zip,age\nAnn,13014,41\nBob,13012,28\n",
    "study.csv": "published,reference,Ann\n0.5,0.4,1\n0.25,0.3,0\n",
    "synthetic.csv": "age,income\n30,2000\n41,2500\n99,90000\n",
    "suspects.csv": "name,age,income\nAnn,99,90000\nBob,50,2400\n",
    "others.csv": "age,income\n" + "".join(f"{age},{50 * age + 7}\n" for age in range(20, 60, 2)),
    "cases.toml": """
data = { path = "cases.csv" }
protect = { unit = "rows" }
schema.week = { kind = "integer", low = 1, high = 4 }
budget = { epsilon = 2, delta = 1e-5 }
running = { by = "week", epsilon = 1, delta = 1e-6 }
""",
    "cases.csv": "week\n1\n1\n2\n3\n",
    "people.toml": """
[data]
path = "survey.csv"
[protect]
unit = "rows"
[budget]
epsilon = 1.0
delta = 1e-6
[ledger]
path = "people.ledger"
another = true
[schema.age]
kind = "integer"
low = 0
high = 120
[schema.region]
kind = "category"
keys = ["north", "south"]
[[release]]
name = "people"
kind = "synthetic_table"
columns = [{ column = "age", bins = 4 }, "region"]
rounds = 2
""",
    "survey.csv": "age,region\n30,north\n41,south\n",
    "survey.toml": """
[data]
path = "survey.csv"
[protect]
unit = "rows"
[budget]
epsilon = 1.0
analyst = "bob"
[spend]
epsilon = 0.25
[schema.age]
kind = "integer"
low = 0
high = 120
[[release]]
name = "mean age"
kind = "mean"
column = "age"
rows = 100
""",
}


def parsed(line: str) -> Any:
    """The innermost context of a line; an unknown option or a missing value raises."""
    words = shlex.split(line)
    command, context = _commands(), None
    while True:
        context = command.make_context(words[0] if words else "tacit", words, parent=context)
        if not hasattr(command, "commands"):
            return context
        _, command, words = command.resolve_command(context, context._protected_args + context.args)


def test_every_command_has_an_example_and_json() -> None:
    leaves = {name: c for name, c in commands(_commands()) if not hasattr(c, "commands")}
    assert set(EXAMPLES) == set(leaves)
    assert list(EXAMPLES) == sorted(EXAMPLES)
    for name, command in leaves.items():
        assert EXAMPLES[name].line.startswith(name)
        assert any("--json" in p.opts for p in command.params), name


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_a_line_that_is_not_run_is_read(name: str) -> None:
    assert parsed(EXAMPLES[name].line).params


def test_an_option_that_is_gone_is_noticed() -> None:
    import typer

    with pytest.raises(typer.TyperException):
        parsed("joint init agreement.toml --into session")


def test_help_ends_with_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("calibrate", "ledger approve"):
        assert main([*name.split(), "--help"]) == 0
        told = capsys.readouterr().out
        assert f"    tacit {EXAMPLES[name].line}\n" in told
        assert f"Keys of --json: {EXAMPLES[name].keys.split(', ')[0]}, " in told


@pytest.mark.slow
def test_examples_run_and_print_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for file, text in FILES.items():
        Path(file).write_text(text, encoding="utf-8")
    assert main(["key", "make", "ada.key"]) == 0
    wrong: dict[str, str] = {}
    for name in [*FIRST, *(n for n in EXAMPLES if n not in FIRST and n not in READ_ONLY)]:
        capsys.readouterr()
        more = ["--people", "60"] if name == "demo" else []
        code = main([*shlex.split(EXAMPLES[name].line), *more, "--json"])
        told = capsys.readouterr()
        if code:
            wrong[name] = f"exit {code}: {told.err}"
        elif set(found := json.loads(told.out)) != set(EXAMPLES[name].keys.split(", ")):
            wrong[name] = f"keys are {', '.join(found)}"
        if (
            name == "ledger make"
        ):  # a second plan of the same table, for the releases that replace one another
            text = FILES["survey.toml"].replace("mean age", "mean of age").replace("0.25", "0.125")
            Path("second.toml").write_text(text, encoding="utf-8")
            assert main(["ledger", "person", "survey.ledger", "bob", "--role", "analyst"]) == 0
        if name == "release":
            assert main(["release", "second.toml", "--out", "out/second"]) == 0
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
