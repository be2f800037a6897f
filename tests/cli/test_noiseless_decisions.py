"""`tacit noiseless map` and `tacit noiseless test` as they are typed."""

from __future__ import annotations

import json

import pytest

from tacit.cli import main


def test_the_most_likely_law(capsys: pytest.CaptureFixture[str]) -> None:
    laws = ["--hypothesis", "bernoulli(0.4)", "--hypothesis", "bernoulli(0.6)"]
    assert main(["noiseless", "map", *laws, "--n", "1000", "--delta", "1e-6", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["epsilon"] == 0
    assert told["stability"] < told["thesis_delta"] < 1e-8


def test_a_decision(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--null", "bernoulli(0.5)", "--alternative", "bernoulli(0.6)", "--n", "1000", "--level", "0.05"]
    assert main(["noiseless", "test", *asked, "--delta", "1e-6"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("This is private provided that ")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["map", "--hypothesis", "bernoulli(0.4)", "--n", "10", "--delta", "0.1"], 2),
        (["map", "--hypothesis", "uniform(0, 1)", "--hypothesis", "uniform(0, 2)", "--n", "9", "--delta", ".1"], 2),
        (
            [
                "map", "--hypothesis", "table(0: 1/2, 1: 1/4, 2: 1/4)", "--hypothesis", "table(0: 1/4, 1: 1/4, 2: 1/2)",
                "--hypothesis", "table(0: 1/4, 1: 1/2, 2: 1/4)", "--n", "20", "--unknown-rows", "15", "--delta", "1e-6",
            ],
            1,
        ),
        (["test", "--null", "bernoulli(0.5)", "--alternative", "bernoulli(0.6)", "--n", "9", "--level", "2",
          "--delta", "0.1"], 2),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noiseless", *options]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert told.err.count("\n") == 1


def test_the_largest_column_the_mode_and_a_sum_in_coarse_steps(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {"epsilon", "epsilon_pair", "delta", "threshold", "assumptions", "theorem"}
    for asked in (
        ["argmax", "--column", "bernoulli(0.5)", "--column", "bernoulli(0.4)", "--unknown-rows", "900"],
        ["mode", "--category", "bus: 0.7", "--category", "a : b: 0.3"],
        ["rounded", "--rows", "uniform(0, 1)", "--steps", "1000"],
    ):
        assert main(["noiseless", *asked, "--n", "1000", "--delta", "1e-6", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert wanted <= set(told)
        assert told["sentence"].startswith("This is private provided that ")
    for wrong in (
        ["mode", "--category", "bus"],
        ["mode", "--category", "bus: 1/2", "--category", "bus: 1/2"],
    ):
        assert main(["noiseless", *wrong, "--n", "100", "--delta", "0.1"]) == 2
        assert capsys.readouterr().err.count("\n") == 1
