"""Standard output that is full, closed, read by nobody, or in another encoding; Ctrl-C at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import main

RUN = [sys.executable, "-c", "from tacit.cli import main; main()"]
SHOW = ["explain", "--epsilon", "1"]


def run(
    arguments: list[str], *, out: int = subprocess.DEVNULL, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RUN, *arguments], stdout=out, stderr=subprocess.PIPE, env={**os.environ, **variables}, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(SHOW, out=full.fileno())
    assert done.returncode == 1
    assert done.stderr.decode() == "tacit: the system refused: no space left on device\n"


def test_a_reader_who_left_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(SHOW, out=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_an_encoding_does_not_have_is_spelled_out(tmp_path: Path) -> None:
    strict = {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"}
    done = run(["plan", "\u2603"], out=subprocess.PIPE, **strict)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    assert b"\\u2603" in done.stderr
    # Python spells out by itself what goes to standard error, and only there.
    done = run(["key", "make", str(tmp_path / "\u2603")], out=subprocess.PIPE, **strict)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2603" in done.stdout


def test_an_interrupt_while_modules_load() -> None:
    code = (
        "import builtins, tacit.cli\nreal = builtins.__import__\n"
        "def load(name, *a, **k):\n    if name == 'tacit.cli.app': raise KeyboardInterrupt\n"
        "    return real(name, *a, **k)\nbuiltins.__import__ = load\ntacit.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *SHOW], capture_output=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert b"Traceback" not in done.stderr


PLAN = """
data = { path = "t.csv" }
protect = { unit = "rows" }
budget = { epsilon = 1.0 }
schema.x = { kind = "integer", low = 0, high = 9 }
release = [{ kind = "count" }]
"""


def test_to_be_told_to_end_is_an_interrupt(tmp_path: Path) -> None:
    """While files are written: no folder is left beside the place of the release, and what was paid for is free."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "t.csv").write_text("x\n1\n")
    code = (
        "import os, signal, tacit.cli, tacit.report.building as b\n"
        "b.report_of = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM)\ntacit.cli.main()"
    )
    words = ["release", "plan.toml", "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 130
    assert b"an earlier charge stays, and a recorded answer is free" in done.stderr
    assert {p.name for p in tmp_path.iterdir()} - {"t.ledger-data", "t.ledger-queue"} == {
        "plan.toml", "t.csv", "t.ledger",
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [["ledger", "show"], ["ledger", "verify"], ["ledger", "export"]])
def test_a_name_too_long_is_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "a" * 300]) == 2
    assert capsys.readouterr().err.startswith("tacit: ")


@pytest.mark.parametrize("ending", ["xyz", "", "raw\u2603"])
def test_a_picture_of_no_kind_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    assert main([*SHOW, "--plot", str(tmp_path / f"x.{ending}")]) == 2
    assert "kind of picture" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
