"""What commands print under --json is JSON to the letter: every reader of JSON takes it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import tacit
from tacit.cli import main
from tacit.cli.output import print_json


def refused(word: str) -> float:
    raise AssertionError(f"{word} is not JSON")


def strict(text: str) -> object:
    return json.loads(text, parse_constant=refused)


def test_numbers_that_json_has_not_are_strings(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    odd = {
        "a": math.inf,
        "b": [-math.inf, {"c": (math.nan, 1.5)}],
        "d": np.float64("inf"),
        2.5: True,
        "e": None,
    }
    print_json(odd)  # type: ignore[arg-type]
    found = strict(capsys.readouterr().out)
    assert found == {"a": "inf", "b": ["-inf", {"c": ["nan", 1.5]}], "d": "inf", "2.5": True, "e": None}
    assert float(found["a"]) == math.inf  # type: ignore[index]


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", "--event", "gaussian noise_multiplier=1", "--delta", "0"],
        ["account", "--event", "approximate epsilon=1 delta=0.001", "--delta", "1e-6"],
        ["account", "--event", "gaussian noise_multiplier=1", "--epsilon", "3"],
        ["explain", "--mu", "1"],
        ["explain", "--rho", "0.5"],
        ["explain", "--epsilon", "800"],
    ],
)
def test_commands_with_endless_numbers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An epsilon at delta = 0 that does not exist, a delta that no epsilon reaches, odds beyond all floats."""
    assert main([*arguments, "--json"]) == 0
    assert isinstance(strict(capsys.readouterr().out), dict)


def test_every_command_prints_by_the_one_function() -> None:
    """No command writes JSON to standard output in its own way."""
    for path in (Path(tacit.__file__).parent / "cli").rglob("*.py"):
        if path.name != "output.py":
            assert not re.search(r"print\([^\n]*dumps", path.read_text()), path
