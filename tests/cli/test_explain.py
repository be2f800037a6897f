"""`tacit explain` of a guarantee by its numbers, as a program would run it and as a person would."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
from tacit.cli import main
from tacit.guarantees import Approximate, Guarantee, Pure, rows
from tacit.guarantees.guarantee import from_record

SCRIPT = Path(sys.executable).parent / "tacit"
KEYS = ["guarantee", "explanation", "power_at_size_0.05", "best_guess", "plot"]
ONE = ["--epsilon", "1", "--delta", "1e-6"]
PNG = b"\x89PNG\r\n\x1a\n"


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def script(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    assert SCRIPT.exists(), "tacit is not installed beside this Python: run `make .venv/.installed`"
    return subprocess.run([SCRIPT, *arguments], cwd=cwd, capture_output=True, text=True)


# --- done ----------------------------------------------------------------------------------------------
def test_it_writes_the_picture_that_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["explain", *ONE, "--plot", str(out / "guarantee.png")]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    picture = Path(re.search(r"drawn in (\S+)$", told.out.strip()).group(1))  # type: ignore[union-attr]
    assert picture == out / "guarantee.png"
    assert picture.read_bytes()[:8] == PNG
    assert files(tmp_path) == [picture], "something else was left behind"


def test_it_says_in_words_what_the_library_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--epsilon", "0.5"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    promise = Guarantee(bound=Pure(epsilon=0.5), unit=rows())
    assert promise.explain() in told
    assert "added or taken away" in told
    assert "8.25%" in told  # e^0.5 * 5% = 8.243...%, rounded up


def test_json_is_one_object_with_stable_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *ONE, "--json", "--plot", str(tmp_path / "guarantee.png")]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    answer = json.loads(told.out)
    assert list(answer) == KEYS
    promise = Guarantee(bound=Approximate(epsilon=1, delta=1e-6), unit=rows())
    assert from_record(answer["guarantee"]) == promise
    assert list(answer["guarantee"]) == ["version", "bound", "unit", "condition", "declared"]
    assert answer["explanation"] == promise.explain()
    # The definitions, once more: e s + delta, and (1 + delta(0))/2 of the worst (epsilon, delta) pair.
    assert answer["power_at_size_0.05"] == pytest.approx(math.e * 0.05 + 1e-6, rel=1e-12)
    assert answer["best_guess"] == pytest.approx((1 + 1e-6 + (1 - 1e-6) * math.tanh(0.5)) / 2, rel=1e-12)
    assert Path(answer["plot"]).read_bytes()[:8] == PNG


def test_the_installed_script_does_the_same(tmp_path: Path) -> None:
    done = script("explain", *ONE, "--json", "--plot", "drawn/guarantee.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert list(answer) == KEYS
    assert files(tmp_path) == [tmp_path / answer["plot"]]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0", "0"), ("1e-12", "0"), ("1000", "0"), ("0", "1e-6"), ("1000", "1e-300")]
)
def test_extreme_guarantees_are_drawn(
    tmp_path: Path, epsilon: str, delta: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                *["explain", "--json", "--plot"],
                str(tmp_path / "guarantee.png"),
                "--epsilon",
                epsilon,
                "--delta",
                delta,
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert 0.5 <= answer["best_guess"] <= 1
    assert 0.05 <= answer["power_at_size_0.05"] <= 1
    assert (tmp_path / "guarantee.png").read_bytes()[:8] == PNG


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    import tacit

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == tacit.__version__
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
    assert main(["explain", "--help"]) == 0
    assert "--epsilon" in capsys.readouterr().out


@pytest.mark.parametrize("group", [[], ["ledger"], ["optimal"], ["key"]])
def test_no_command_is_summed_up_in_a_cut_sentence(
    group: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*group, "--help"]) == 0
    told = capsys.readouterr().out
    assert "Commands:" in told
    assert [line for line in told.split("Commands:")[1].splitlines() if line.endswith("..")] == []


# --- bad input -----------------------------------------------------------------------------------------
BAD = [
    (["--epsilon", "-1"], "epsilon must"),
    (["--epsilon", "nan"], "epsilon must"),
    (["--epsilon", "inf"], "epsilon must"),
    (["--epsilon", "much"], "--epsilon"),
    (["--delta", "1"], "delta must"),
    (["--delta", "-0.1"], "delta must"),
    (["--delta", "nan"], "delta must"),
    (["--delta", "inf"], "delta must"),
    (["--gamma", "1"], "--gamma"),
    (["stray"], "certificate must"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=lambda v: "_".join(v) if isinstance(v, list) else "")
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *ONE, "--plot", str(tmp_path / "out" / "a.png"), *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("tacit: ")
    assert says in told.err
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err
    assert files(tmp_path) == []


def test_bad_input_to_the_script(tmp_path: Path) -> None:
    done = script("explain", "--epsilon", "nan", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"tacit: epsilon must [^\n]+\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("kept")
    assert main(["explain", *ONE, "--plot", str(occupied / "a.png")]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("tacit: output must be writable")
    assert told.err.count("\n") == 1
    assert occupied.read_text() == "kept"
    assert files(tmp_path) == [occupied]


@pytest.mark.parametrize(("typed", "nearest"), [("dmo", "demo"), ("demos", "demo"), ("Demo", "demo")])
def test_an_unknown_command_names_the_nearest(
    typed: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert repr(typed) in told.err
    assert repr(nearest) in told.err


def test_an_earlier_picture_survives_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "guarantee.png"
    picture.write_bytes(b"an earlier picture")
    assert main(["explain", "--epsilon", "1", "--plot", str(picture), "--delta", "2"]) == 2
    assert picture.read_bytes() == b"an earlier picture"
    assert "delta must" in capsys.readouterr().err


def test_the_belief_panel_pays_for_both_sides() -> None:
    """Odds leave the band upwards or downwards: each side has half of the probability that is named."""
    from tacit.report.figures import _working_epsilon

    guarantee = tacit.Guarantee(bound=tacit.GaussianDP(mu=1.0), unit=tacit.rows())
    loss, note = _working_epsilon(guarantee)
    # the loss is N(1/2, 1) under the truth: both tails beyond the band, exactly
    upper = 0.5 * math.erfc((loss - 0.5) / math.sqrt(2))
    lower = 0.5 * math.erfc((loss + 0.5) / math.sqrt(2))
    assert "1e-05" in note
    assert upper + lower <= 1e-5
