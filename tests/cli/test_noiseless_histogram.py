"""`tacit noiseless histogram` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main


def test_the_threshold_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["noiseless", "histogram", "--sampling", "poisson", "--epsilon", "1", "--delta", "1e-6", "--json"]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["threshold"] == 26
    assert {"epsilon", "epsilon_pair", "delta", "threshold", "assumptions", "theorem"} <= set(told)
    assert told["theorem"] == "truncated-histogram"


def test_sentences_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "t.png"
    asked = ["noiseless", "histogram", "--sampling", "binomial", "--rate", "0.1", "--epsilon", "1"]
    assert main([*asked, "--delta", "1e-4", "--plot", str(picture)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("This is private provided that ")
    assert "crowd-blending" in told
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["poisson"], ["binomial", "--rate", "0.1"], ["fixed", "--n", "100000"]])
def test_that_nothing_else_is_published_is_assumed(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two truncated histograms, of all rows and of all but one, tell the row."""
    asked = ["noiseless", "histogram", "--sampling", *options, "--epsilon", "1", "--delta", "1e-6", "--json"]
    assert main(asked) == 0
    assert "nothing else that depends on these rows is published" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--sampling", "poisson", "--epsilon", "1", "--delta", "0"], 2),
        (["--sampling", "binomial", "--rate", "0.8", "--threshold", "20", "--delta", "1e-6"], 1),
        (["--sampling", "fixed", "--n", "500", "--epsilon", "1", "--delta", "1e-6"], 1),
    ],
)
def test_refusals_are_one_sentence(options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noiseless", "histogram", *options]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert told.err.count("\n") == 1
