"""`tacit distance`: a right distance, wrong ones, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main

ROOT = Path(__file__).parents[2]
RIGHT = (ROOT / "examples" / "majority.py").read_text()
WORDS = ["--values", "0,1", "--rows", "5", "--proposed", "0"]


def test_a_right_distance_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RIGHT)
    assert main(["distance", str(path), *WORDS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tables"], told["rows"], told["epsilon"], told["delta"]) == (2 + 3 + 4 + 5 + 6, 5, 2.0, 1e-6)
    assert "checked on all 20 tables" in told["assumption"]
    assert main(["distance", str(path), *WORDS, "--delta", "0.0123456"]) == 0
    out = capsys.readouterr().out
    assert "holds on all 20 tables of up to 5 rows" in out
    assert "delta = 0.0124" in out


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (
            RIGHT.replace("half = len(rows) // 2", "half = len(rows) // 3"),
            WORDS,
            "be 0 where the statistic is",
        ),
        (RIGHT.replace("- half - 1,", "* 3,"), WORDS, "move by at most 1"),
        (RIGHT.replace("def distance", "def far"), WORDS, "define distance"),
        ("raise ValueError('no\\x1b[2J')", WORDS, "run as Python"),
        ("def statistic(", WORDS, "run as Python"),
        (RIGHT, ["--values", "0", "--rows", "5", "--proposed", "0"], "two different"),
        (RIGHT, [*WORDS, "--neighbours", "next door"], "neighbour relation"),
        (RIGHT, [*WORDS, "--delta", "2"], "delta"),
    ],
)
def test_wrong_ones_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: list[str], said: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    assert main(["distance", str(path), *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "\x1b" not in told
    assert "Traceback" not in told


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distance", str(tmp_path / "none.py"), *WORDS]) == 2
    assert "no such file" in capsys.readouterr().err


def test_texts_and_lists_are_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def statistic(rows):\n    return 0\n\n\ndef distance(rows):\n    return 3\n")
    for given in ("a,b", '["a", "b"]', "[[0, 1], [1, 0]]", "0.5,1"):
        assert main(["distance", str(path), "--values", given, "--rows", "3", "--proposed", "0"]) == 0
    assert "holds on all 9 tables" in capsys.readouterr().out
