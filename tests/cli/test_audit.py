"""`tacit audit`: answers, exits, bad input, code that misbehaves, the page."""

from __future__ import annotations

import json
import os
import random
import secrets
from pathlib import Path

import pytest

from tacit.audit.black_box import system_coins
from tacit.audit.house import mechanism, mechanism_of_file
from tacit.cli import main
from tacit.guarantees import Pure

MISBEHAVING = '''
import os, random, time, sys

def fine(x):
    print("noise on standard output")
    return x + random.choice([-1, 0, 1])

def raises(x):
    raise RuntimeError("always")

def hangs(x):
    if x > 0.5:
        while True:
            pass
    return 0

def ends(x):
    if x > 0.5:
        os._exit(3)
    return 0

def greedy(x):
    if x > 0.5:
        return len(bytearray(1 << 40))
    return 0

def strange(x):
    return object()

def writes(x):
    for fd in range(3, 40):
        try:
            os.write(fd, b"\\x04\\x00\\x00\\x00K\\x05..")
        except OSError:
            pass
    return x

def floods(x):
    for fd in range(3, 40):
        try:
            os.write(fd, b"\\xff" * 64)
        except OSError:
            pass
    return x

pairs = [(0.0, 1.0)]
not_pairs = 7
'''  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "given.py"
    path.write_text(MISBEHAVING)
    return path


def test_a_broken_mechanism_exits_with_one_and_writes_a_page(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "audit.html"
    line = [
        "audit",
        f"{file}::fine",
        "--claim",
        "epsilon=1",
        "--neighbours",
        f"{file}::pairs",
        "--outputs",
        "800",
    ]
    assert main([*line, "--json", "--out", str(page)]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["rejected"]
    assert said["could_not_see"]["sentences"]
    text = page.read_text()
    for part in (
        "Wealth over time",
        "The event that tells most",
        "could not have seen",
        "<polyline",
        "<rect",
    ):
        assert part in text
    assert "pass" not in text.replace("encompass", "").lower()


@pytest.mark.parametrize("name", ["hangs", "ends", "greedy"])
def test_code_that_hangs_or_ends_is_an_output(file: Path, name: str) -> None:
    found = mechanism_of_file(
        f"{file}::{name}",
        claim="epsilon=9",
        neighbours="number",
        outputs=16,
        seconds_a_run=0.05,
        memory=2 << 30,
    )
    assert found.notes
    assert any(word in found.notes[0] for word in ("took longer", "ended", "MemoryError"))


@pytest.mark.parametrize(
    ("target", "more", "word"),
    [
        ("{}::nothing", ["--neighbours", "number"], "unknown"),
        ("{}::raises", ["--neighbours", "number"], "always"),
        ("{}::strange", ["--neighbours", "number"], "compared"),
        ("{}::writes", ["--neighbours", "number"], "channel"),
        ("{}::floods", ["--neighbours", "number"], "channel"),
        ("{}::fine", [], "for whom"),
        ("{}::fine", ["--neighbours", "rows"], "unknown"),
        ("{}::fine", ["--neighbours", "{}::not_pairs"], "pairs"),
        ("{}", ["--neighbours", "number"], "FILE.py::function"),
        ("missing.py::fine", ["--neighbours", "number"], "no such file"),
        ("{}::fine", ["--neighbours", "number", "--level", "0"], "level"),
        ("{}::fine", ["--neighbours", "number", "--outputs", "1"], "outputs"),
        ("{}::fine", ["--neighbours", "number", "--out", "page.txt"], "html"),
        ("{}::fine", ["--neighbours", "answers size=1"], "size"),
    ],
)
def test_bad_input_exits_with_two_and_one_sentence(
    file: Path, target: str, more: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["audit", target.format(file), "--claim", "epsilon=1", *[m.format(file) for m in more]]
    assert main(line) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) == 1


PLAN = """
[data]
path = "nobody-reads-this.csv"
[protect]
unit = "people"
column = "person"
at_most = 2
[budget]
epsilon = 2.0
[schema.age]
kind = "integer"
low = 0
high = 9
[[release]]
kind = "count"
name = "{}"
[[release]]
kind = "sum"
column = "age"
"""


def test_a_plan_is_audited_without_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, page = tmp_path / "plan.toml", tmp_path / "page.html"
    plan.write_text(PLAN.format("people counted"))
    line = ["audit", str(plan), "--engine", "duckdb", "--outputs", "60", "--neighbours", "3"]
    assert main([*line, "--json", "--out", str(page)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert not said["broken"]
    assert [r["pairs"] for r in said["releases"]] == [3, 3]
    assert said["together"]["bets"]["outputs"] <= 60
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".ledger"] == [], "nothing is charged"
    text = page.read_text()
    for part in (
        "At a glance",
        "people counted",
        "all releases together",
        "<polyline",
        "could not have seen",
    ):
        assert part in text
    assert main([*line[:-4], "--outputs", "0", "--neighbours", "1"]) == 0
    shown = capsys.readouterr().out
    assert "no proof" in shown
    assert "bets:" not in shown
    assert main(["audit", str(tmp_path), *line[2:4], "--outputs", "0", "--neighbours", "1"]) == 0, (
        "a release folder"
    )


def test_repeated_answers_of_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("count\n" + "\n".join(str(10 + v) for v in (0.1, -0.2, 0.05, 0.4, -0.3, 0.2)) + "\n")
    line = ["audit", str(file), "--sensitivity", "1"]
    assert main([*line, "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["value"]
    assert 0 < low < high
    assert main([*line, "--claim", f"epsilon={low * 0.9}"]) == 1
    assert "rejected" in capsys.readouterr().out
    assert main([*line, "--claim", f"epsilon={low * 1.1}"]) == 0
    assert main([*line, "--noise", "gaussian", "--claim", "mu=1e9"]) == 0


@pytest.mark.parametrize(
    ("name", "more", "word"),
    [
        ("plan.toml", ["--claim", "epsilon=1"], "claim"),
        ("plan.toml", ["--neighbours", "rows added"], "number of pairs"),
        ("plan.toml", ["--engine", "sqlite"], "sqlite"),
        ("plan.toml", ["--engine", "duckdb", "--level", "2"], "level"),
        ("plan.toml", ["--engine", "duckdb", "--outputs", "-1"], "outputs"),
        ("missing.toml", ["--engine", "duckdb"], "missing.toml"),
        ("missing.csv", ["--sensitivity", "1"], "missing.csv"),
        ("answers.csv", [], "sensitivity"),
        ("answers.csv", ["--sensitivity", "0"], "sensitivity"),
        ("answers.csv", ["--sensitivity", "1", "--noise", "cauchy"], "cauchy"),
        ("answers.csv", ["--sensitivity", "1", "--claim", "mu=1"], "epsilon"),
        ("answers.csv", ["--sensitivity", "1", "--claim", "epsilon=1, delta=1e-6"], "epsilon"),
        ("answers.csv", ["--sensitivity", "1", "--out", "page.html"], "--out"),
        ("few.csv", ["--sensitivity", "1"], "at least 4"),
        ("words.csv", ["--sensitivity", "1"], "line 3"),
    ],
)
def test_plans_and_answers_that_are_none(
    tmp_path: Path, name: str, more: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format("x"))
    (tmp_path / "answers.csv").write_text("1\n2\n3\n5\n")
    (tmp_path / "few.csv").write_text("1\n2\n")
    (tmp_path / "words.csv").write_text("count\n1\ntwo\n3\n")
    assert main(["audit", str(tmp_path / name), *more]) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ("epsilon=1, delta=1", "delta must lie in [0, 1)"),
        ("epsilon=nan", "epsilon must be a finite number"),
        ("eps=1", "did you mean 'epsilon'"),
    ],
)
def test_a_claim_that_is_none_is_no_fault_of_the_function(
    file: Path, claim: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", f"{file}::fine", "--claim", claim, "--neighbours", "number"]) == 2
    said = capsys.readouterr().err
    assert word in said
    assert "mechanism" not in said


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 800.0])
def test_claims_of_any_size_have_an_answer(epsilon: float) -> None:
    coins = random.Random(5)
    found = mechanism(
        lambda x: x + coins.random(),
        claim=Pure(epsilon=epsilon),
        neighbours="number",
        outputs=200,
        level=1e-3,
    )
    assert found.rejected == (epsilon < 1)
    assert found.lines()


def test_a_mechanism_that_replaces_the_system_s_randomness_has_no_say_in_the_coins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noise = random.Random(7)
    for where, name in ((os, "urandom"), (secrets, "token_bytes"), (random, "_urandom")):
        monkeypatch.setattr(where, name, lambda n: bytes([255]) * n)
    found = mechanism(
        lambda x: int(x) ^ (noise.random() < 0.25),
        claim="epsilon=1.1",
        neighbours="bit",
        outputs=64,
        level=1e-9,
    )
    told = found.event
    assert told is None or min(told.of_first, told.of_second) > 0
    assert 10 < int(system_coins(1000).sum()) < 990


def test_fresh_runs_share_nothing(tmp_path: Path) -> None:
    """A number that is drawn when the file is loaded is the same in all runs of one process, and new in a new one."""
    from tacit.audit.isolation import Isolated
    from tacit.audit.neighbours import named_neighbours

    (tmp_path / "loads.py").write_text(
        "import os\n\nDRAWN = int.from_bytes(os.urandom(6))\n\n\ndef f(x):\n    return DRAWN\n"
    )
    place, pairs = f"{tmp_path / 'loads.py'}::f", named_neighbours("number")
    for fresh, different in ((False, 1), (True, 4)):
        with Isolated(place, pairs, fresh=fresh) as run:
            found = [*run([(0, 0), (0, 1), (0, 0)]), *run([(0, 1)])]
        assert len({out for _, out in found}) == different
        assert all(kind == found[0][0] for kind, _ in found)
    answer = mechanism_of_file(place, claim="epsilon=9", neighbours="number", outputs=4, fresh=True)
    assert answer.outputs == 4
