"""`tacit noiseless regression` as it is typed."""

from __future__ import annotations

import json

import pytest

from tacit.cli import main

LAWS = ["--regressor", "uniform(-1, 1)", "--error", "uniform(-1, 1)"]


def test_the_rows_of_the_thesis(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["noiseless", "regression", "--sizes", "5000,70000", *LAWS, "--delta", "1.35e-8", "--json"]
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["epsilon"] <= 0.165 < 0.295
    assert told["epsilon_pair"] > told["epsilon"]
    assert [p["rows"] for p in told["parts"]] == [5000, 70000]
    assert told["sentence"].startswith("This is private provided that ")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--n", "1000", "--regressor", "uniform(2, 2)", "--error", "uniform(-1, 1)"], 2),
        (["--n", "1000", "--regressor", "normal(0, 1)", "--error", "uniform(-1, 1)"], 2),
        (["--sizes", "5,x", *LAWS], 2),
        (["--n", "40", *LAWS], 1),
    ],
)
def test_refusals_are_one_sentence(options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noiseless", "regression", *options, "--delta", "1e-8"]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert told.err.count("\n") == 1
