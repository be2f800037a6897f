"""Progress: seen by a person at a terminal, and by nobody else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest

from tacit.report.progress import progress, shows_progress

CODE = """
from tacit.report.progress import progress
with progress("Releasing", total=3) as step:
    for name in ("counts", "means", "quantiles"):
        step(name)
print("done")
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_quiet_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Releasing", total=2) as step:
        step("a")
        step("b")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")


def test_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert shows_progress(Terminal())
    assert not shows_progress(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not shows_progress(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("CI", "true")
    assert not shows_progress(Terminal())


def test_shown_on_standard_error_of_a_terminal() -> None:
    told, standard_error = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "CI": "", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        stdout=subprocess.PIPE,
        stderr=standard_error,
        env=environment,
        timeout=60,
    )
    os.close(standard_error)
    seen = b""
    try:
        while part := os.read(told, 65536):
            seen += part
    except OSError:
        pass  # Linux ends a pseudo-terminal that was closed with an error.
    os.close(told)
    assert done.stdout == b"done\n"
    assert b"Releasing: quantiles" in seen
    assert b"3/3" in seen


def test_an_error_passes_through() -> None:
    def interrupted() -> None:
        with progress("Releasing", total=1) as step:
            step("a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


WATCHED = """
import tacit
from tacit.report.progress import watched
from tacit.sources.error_boundary import tell
with watched("Looking") as step:
    tell("looking at [/bold]\\x1b[2J", 3, 4)
    tell("rows read", 12345)
print("done")
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_rows_are_told_to_a_terminal_and_to_nothing_else(terminal: bool) -> None:
    told, other = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "CI": "", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], stdout=subprocess.PIPE, stderr=other, env=environment, timeout=60
    )
    os.close(other)
    seen = b""
    try:
        while part := os.read(told, 65536):
            seen += part
    except OSError:
        pass
    os.close(told)
    assert done.stdout == b"done\n"
    assert (b"rows read, 12,345" in seen) is terminal
    assert (rb"[/bold]\u{1b}[2J" in seen) is terminal
    assert terminal or not seen
