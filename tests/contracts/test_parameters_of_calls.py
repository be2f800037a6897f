"""Every parameter of a method, a curator, a ledger and a reading is taken as what it is, or refused.

The same strange values as for constructors; what is called is in `tests/support/call_examples.py`. What a class has
of other constructors is found by looking, and must be named there.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import call_examples as examples
from tests.support.parameters import problems

ROOMS = {"Mechanisms": "tacit.mechanisms", "Noise": "tacit.noise"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "3" and "no" are names of files."""
    monkeypatch.chdir(tmp_path)


def other_constructors() -> dict[str, Callable[..., Any]]:
    """The class methods of what is public in these rooms."""
    found: dict[str, Callable[..., Any]] = {}
    for room in ROOMS.values():
        module = importlib.import_module(room)
        for name in module.__all__:
            kind = getattr(module, name)
            if not inspect.isclass(kind):
                continue
            for verb, member in inspect.getmembers_static(kind):
                # The old name of for_target is for whoever wrote it earlier.
                old = verb == "for_epsilon"
                if isinstance(member, classmethod) and not verb.startswith("_") and not old:
                    found[f"{name}.{verb}"] = getattr(kind, verb)
    return found


def test_every_other_constructor_has_an_example() -> None:
    assert sorted(other_constructors()) == sorted(examples.NAMED)


def hold(make: Callable[..., Any], example: dict[str, Any], **how: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(**example)
        found = list(problems(make, example, **how))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", examples.NAMED)
def test_other_constructors(name: str) -> None:
    hold(other_constructors()[name], examples.NAMED[name], light=True)


@pytest.mark.parametrize("name", examples.READINGS)
def test_readings_and_filters(name: str) -> None:
    hold(*examples.READINGS[name], light=True)


@pytest.mark.parametrize("name", examples.CURATOR)
def test_curators_and_prices(name: str) -> None:
    hold(*examples.CURATOR[name], decimals=True)


@pytest.mark.parametrize("name", examples.LEDGER)
def test_ledgers_and_shares(name: str) -> None:
    hold(*examples.LEDGER[name])
