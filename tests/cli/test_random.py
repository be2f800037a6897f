"""`tacit random`: answers, keys, the words that must not be missing, and what is refused."""

from __future__ import annotations

import json
import math

import pytest

from tacit.cli import main
from tacit.random_data import SampledSensitivity


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["random", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_a_proportion(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["proportion", "--n", "1000", "--epsilon", "1", "--gamma", "0.05", "--count"]
    found = told(capsys, *few, "3")
    assert found["exact"] is True
    assert found["exact_up_to"] == 24
    assert found["expected_error"] == 0
    assert told(capsys, *few, "24")["exact"] is True
    other = told(capsys, *few, "25")
    assert other["exact"] is False
    assert other["expected_error"] == other["plain_expected_error"] == pytest.approx(1 / math.sinh(1))
    assert "except with probability 0.05" in str(other["condition"])
    added = told(capsys, *few, "49", "--neighbours", "add-or-remove")
    assert added["exact"] is True
    assert added["exact_up_to"] == 49
    assert added["differentially_private"] is False
    none = told(capsys, *[w.replace("0.05", "0.0001") for w in few], "0")
    assert (none["exact_up_to"], none["differentially_private"]) == (None, True)


def test_a_histogram(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["histogram", "--n", "8000", "--cells", "400", "--epsilon", "0.2", "--gamma", "0.1"]
    found = told(capsys, *words, "--occupied", "16")
    assert found["exact"] is True
    assert float(str(found["plain_expected_error"])) == pytest.approx(
        25 * float(str(found["expected_error"]))
    )
    wide = told(capsys, *[w.replace("8000", "80000") for w in words], "--small-cells")
    assert wide["exact_below"] == 10
    none = told(capsys, *[w.replace("8000", "7999") for w in words], "--occupied", "16")
    assert none["exact"] is False
    assert none["noisy_cells"] == 400
    assert none["expected_error"] == none["plain_expected_error"]
    assert (found["differentially_private"], none["differentially_private"]) == (False, True)
    assert main(["random", *[w.replace("8000", "7999") for w in words]]) == 0
    assert "this is plain DP, epsilon = 0.2, whatever the data are" in capsys.readouterr().out


def test_a_sensitivity(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sensitivity", "--epsilon", "1", "--gamma", "0.01", "--n"]
    found = told(capsys, *words, "100000")
    assert (found["exact"], found["draws"], found["draws_by_dkw"]) == (False, 99, 41_971)
    assert isinstance(found["pairs"], dict)
    assert found["pairs"]["delta"] <= 1e-6
    assert told(capsys, *words, "100")["pairs"] is None
    assert told(capsys, *words, "100", "--confidence", "0.99")["draws"] == 459
    assert (found["expected_error"], found["plain_expected_error"]) == (None, None)
    mean = told(capsys, *words, "100000", "--change", "100", "--width", "1000000")
    assert mean["expected_error"] == pytest.approx(0.001)
    assert mean["plain_expected_error"] == pytest.approx(10)
    assert mean["pairs"]["expected_error"] == pytest.approx(0.002)  # type: ignore[index]
    # Beside the noise itself, with the bounds as the declared change.
    noise = SampledSensitivity(rows=100_000, draws=1, rank=1, epsilon=1).noise([100 / 100_000])
    assert noise.expected_error() == pytest.approx(0.001, rel=1e-2)


@pytest.mark.parametrize(
    "words",
    [
        ["proportion", "--n", "1000", "--count", "3", "--epsilon", "1", "--gamma", "0.05"],
        ["histogram", "--n", "100", "--cells", "400", "--epsilon", "1", "--gamma", "0.05"],
        ["sensitivity", "--n", "100", "--epsilon", "1", "--gamma", "0.05"],
    ],
)
def test_sentences_say_what_it_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random", *words]) == 0
    text = capsys.readouterr().out
    assert "random differential privacy, not differential privacy" in text
    assert "except with probability 0.05" in text
    assert "outlier" in text
    assert "differentially private" not in text


@pytest.mark.parametrize("gamma", ["0", "1", "nan", "-1", "2"])
def test_gammas_that_are_none(gamma: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random", "proportion", "--n", "9", "--count", "1", "--epsilon", "1", "--gamma", gamma]) == 2
    assert "gamma must" in capsys.readouterr().err


def test_other_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["--epsilon", "1", "--gamma", "0.1"]
    assert main(["random", "proportion", "--n", "1", "--count", "1", *base]) == 2
    assert main(["random", "proportion", "--n", "10", "--count", "11", *base]) == 2
    assert main(["random", "histogram", "--n", "900", "--cells", "3", "--occupied", "4", *base]) == 2
    assert main(["random", "histogram", "--n", "10", "--cells", "3", "--neighbours", "both", *base]) == 2
    assert main(["random", "histogram", "--n", "10", "--cells", "3", "--occupied", "-1", *base]) == 2
    assert main(["random", "sensitivity", "--n", "900", "--levels", "0", *base]) == 2
    for more in (
        ["--delta", "0"],
        ["--delta", "nan"],
        ["--delta", "1"],
        ["--change", "-1"],
        ["--width", "inf"],
    ):
        assert main(["random", "sensitivity", "--n", "900", *more, *base]) == 2
    assert capsys.readouterr().err.count("tacit:") == 11
    assert main(["random", "sensitivity", "--n", "900", "--epsilon", "1", "--gamma", "1e-300"]) == 0
