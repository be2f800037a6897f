"""Commands read small tables, from one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support import engine
from tacit.cli import main


@pytest.fixture(autouse=True)
def one_engine() -> Iterator[None]:
    """These tests are about what is said of a table, not about reading it."""
    with engine.shared():
        yield


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A command, word by word: its exit code, and what it printed."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run
