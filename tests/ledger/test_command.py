"""`tacit ledger`: the same calls, as sentences and as JSON, with exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.ledgers import ask, promise, tamper
from tacit.cli import main
from tacit.guarantees import Pure
from tacit.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> str:
    ledger = Ledger.create(tmp_path / "survey.ledger", budget=promise(1.0), shares={"bob": Pure(epsilon=0.5)})
    ledger.run(ask("mean income by state", 0.25), lambda: {"value": 3})
    ledger.reserve(ask("count", 0.125, analyst="bob"))
    return str(tmp_path / "survey.ledger")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["ledger", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "show", path)
    assert code == 0
    for part in (
        "budget  epsilon = 1",
        "spent   epsilon = 0.375",
        "left    epsilon = 0.625",
        "reserved",
        "committed",
    ):
        assert part in out
    assert "bob: epsilon = 0.125 of their epsilon = 0.5, charges: 1" in out
    code, out, _ = said(capsys, "show", path, "--json")
    found = json.loads(out)
    assert (code, found["spent"]["epsilon"], len(found["charges"])) == (0, 0.375, 2)


def test_verify(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "verify", path)
    assert code == 0
    anchor = out.split()[-1]
    assert said(capsys, "verify", path, "--anchor", anchor)[0] == 0
    tamper(Ledger.open(path), "DELETE FROM tacit_entries WHERE sequence = 2")
    code, out, _ = said(capsys, "verify", path, "--anchor", anchor)
    assert code == 1
    assert "missing from the chain: 2" in out
    code, out, _ = said(capsys, "verify", path, "--json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    assert {"sequence": None, "what": "missing from the chain: 2"} in found["problems"]
    for command in ("show", "export"):
        code, out, err = said(capsys, command, path)
        assert (code, out) == (2, "")
        assert "was changed: missing from the chain: 2" in err


def test_export(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "export", path)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, [line["kind"] for line in lines]) == (0, ["header", "entry", "entry", "entry"])
    assert lines[2]["answer"] == {"value": 3}
    target = tmp_path / "lines.jsonl"
    assert said(capsys, "export", path, "--out", str(target))[0] == 0
    assert target.read_text() == out
    code, out, _ = said(capsys, "export", path, "--json", "--no-answers")
    assert json.loads(out)["entries"] == 3
    assert "value" not in out
    assert json.loads(said(capsys, "export", path, "--json", "--out", str(target))[1])["entries"] == 3
    assert said(capsys, "export", path, "--out", "/proc/nowhere/x")[0] == 2


def test_help_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys)
    assert code == 0
    assert all(word in out for word in ("show", "verify", "export"))


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_what_is_not_there(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, command, str(tmp_path / "absent"))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "does not exist" in err
    assert said(capsys, command)[0] == 2
    assert said(capsys, command, str(tmp_path / "absent"), "--wait", "-1")[0] == 2


def test_a_long_ledger_shows_its_last_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "long.ledger")
    ledger = Ledger.create(path, budget=promise(1.0))
    for number in range(25):
        ledger.reserve(ask(f"q{number}", 2**-7, analyst="ann" if number == 3 else "bob"))
    ledger.close()
    code, out, _ = said(capsys, "show", path)
    assert code == 0
    assert "older ones are not shown: 5 charges (--all;" in out
    assert "request q4\n" not in out
    assert out.count("          request q") == 20
    assert f"spent   epsilon = {25 * 2**-7:.3g}"[:16] in out  # the totals are those of the whole ledger
    for words in (("--all",), ("--since", "2020-01-31", "--all")):
        code, out, _ = said(capsys, "show", path, *words)
        assert (code, out.count("          request q")) == (0, 25)
        assert "not shown" not in out
    code, out, _ = said(capsys, "show", path, "--analyst", "ann")
    assert (code, out.count("          request q")) == (0, 1)
    assert "request q3\n" in out
    assert json.loads(said(capsys, "show", path, "--json")[1])["charges"][0]["request"] == "q0"
    assert len(json.loads(said(capsys, "show", path, "--since", "9999-12-31", "--json")[1])["charges"]) == 0
    assert len(json.loads(said(capsys, "show", path, "--version", "v9", "--json")[1])["charges"]) == 0


def test_filters_of_show_are_checked(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, told = said(capsys, "show", path, "--since", "31.1.2026")
    assert (code, out) == (2, "")
    assert "must be a day such as 2026-01-31" in told
    code, out, told = said(capsys, "show", path, "--analyst", "bop")
    assert (code, out) == (2, "")
    assert "'bob'" in told
