"""`tacit noiseless`: answers, keys, the sentence, the picture, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main

KEYS = {"epsilon", "epsilon_pair", "delta", "threshold", "assumptions", "theorem"}
GAUSSIAN = "normal(0, 1, clamp=(-2.5, 2.5))"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["noiseless", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= KEYS
    assert str(found["sentence"]).startswith("This is private provided that ")
    return dict(found)


def test_a_sum(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sum", "--n", "1000", "--rows", "uniform(0, 1)", "--delta", "1.31e-5"]
    found = told(capsys, *words)
    assert 0.17 < float(str(found["epsilon"])) <= 0.176
    fewer = told(capsys, *words, "--unknown-rows", "900")
    assert float(str(fewer["epsilon"])) > float(str(found["epsilon"]))
    assert fewer["unknown_rows"] == 900
    assert main(["noiseless", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("This is private provided that ")
    assert "not differential privacy" in out


def test_a_mean_by_a_rectangle(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mean", "--n", "1000", "--rows", GAUSSIAN, "--delta", "1.24e-5", "--assume"]
    known = float(str(told(capsys, *words, "known")["epsilon"]))
    same = float(str(told(capsys, *words, "rectangle", "--rectangle=-1.5,1.5")["epsilon"]))
    best = float(str(told(capsys, *words, "rectangle")["epsilon"]))
    assert known <= 0.27 < best <= 0.50
    assert best < same <= 0.515


def test_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "count", "--n", "1000", "--probability", "0.1", "--delta", "1e-6")
    assert 0.483 < float(str(found["epsilon_pair"])) <= 0.4834
    assert "to somebody who knows the distribution" in str(found["epsilon_pair_is"])
    assert main(["noiseless", "count", "--n", "100", "--probability", "0.1,0.9", "--delta", "1e-6"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "3.35" in said.err
    assert said.err.count("\n") == 1


def test_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["count", "--n", "500", "--probability", "0.5", "--delta", "1e-5", "--plot"]
    found = told(capsys, *words, str(tmp_path / "curves.png"))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert found["plot"] == str(tmp_path / "curves.png")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sum", "--n", "100", "--rows", "normal(0, 1)", "--delta", "1e-5"], 1),
        (["sum", "--n", "3", "--rows", "bernoulli(0.5)", "--delta", "1e-5"], 1),
        (["sum", "--n", "100", "--rows", "table(0: 0.3, 1: 0.3)", "--delta", "1e-5"], 2),
        (["sum", "--n", "100", "--rows", "uniform(0, 1)", "--delta", "1e-5", "--unknown-rows", "200"], 2),
        (
            [
                "sum",
                "--n",
                "100",
                "--rows",
                GAUSSIAN,
                "--delta",
                "1e-5",
                "--assume",
                "rectangle",
                "--rectangle=2,9",
            ],
            2,
        ),
        (["mean", "--n", "100", "--rows", "uniform(0, 1)", "--delta", "1e-5", "--rectangle=1"], 2),
        (["count", "--n", "100", "--probability", "0.9,0.1", "--delta", "1e-3"], 2),
        (["count", "--n", "100", "--probability", "", "--delta", "1e-3"], 2),
    ],
)
def test_what_is_refused(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noiseless", *words]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip()
    assert "Traceback" not in said.err


def test_the_pair_is_for_somebody_who_knows_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several laws a value may tell which one holds: the number says nothing to those who do not know it."""
    laws = ["--hypothesis", "bernoulli(0.4)", "--hypothesis", "bernoulli(0.6)"]
    assert main(["noiseless", "map", *laws, "--n", "1000", "--delta", "1e-6"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "epsilon_pair" in x]
    assert "to somebody who knows the distribution" in line
