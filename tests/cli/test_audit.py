"""`tacit audit`: answers, exits, bad input, code that misbehaves, the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.audit.house import mechanism_of_file
from tacit.cli import main

MISBEHAVING = '''
import os, random, time, sys

def fine(x):
    print("noise on standard output")
    return x + random.choice([-1, 0, 1])

def raises(x):
    raise RuntimeError("always")

def hangs(x):
    if x > 0.5:
        while True:
            pass
    return 0

def ends(x):
    if x > 0.5:
        os._exit(3)
    return 0

def greedy(x):
    if x > 0.5:
        return len(bytearray(1 << 40))
    return 0

def strange(x):
    return object()

pairs = [(0.0, 1.0)]
not_pairs = 7
'''  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "given.py"
    path.write_text(MISBEHAVING)
    return path


def test_a_broken_mechanism_exits_with_one_and_writes_a_page(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "audit.html"
    line = [
        "audit",
        f"{file}::fine",
        "--claim",
        "epsilon=1",
        "--neighbours",
        f"{file}::pairs",
        "--outputs",
        "800",
    ]
    assert main([*line, "--json", "--out", str(page)]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["rejected"]
    assert said["could_not_see"]["sentences"]
    text = page.read_text()
    for part in (
        "Wealth over time",
        "The event that tells most",
        "could not have seen",
        "<polyline",
        "<rect",
    ):
        assert part in text
    assert "pass" not in text.replace("encompass", "").lower()


@pytest.mark.parametrize("name", ["hangs", "ends", "greedy"])
def test_code_that_hangs_or_ends_is_an_output(file: Path, name: str) -> None:
    found = mechanism_of_file(
        f"{file}::{name}",
        claim="epsilon=9",
        neighbours="number",
        outputs=16,
        seconds_a_run=0.05,
        memory=2 << 30,
    )
    assert found.notes
    assert any(word in found.notes[0] for word in ("took longer", "ended", "MemoryError"))


@pytest.mark.parametrize(
    ("target", "more", "word"),
    [
        ("{}::nothing", ["--neighbours", "number"], "unknown"),
        ("{}::raises", ["--neighbours", "number"], "always"),
        ("{}::strange", ["--neighbours", "number"], "compared"),
        ("{}::fine", [], "for whom"),
        ("{}::fine", ["--neighbours", "rows"], "unknown"),
        ("{}::fine", ["--neighbours", "{}::not_pairs"], "pairs"),
        ("{}", ["--neighbours", "number"], "FILE.py::function"),
        ("missing.py::fine", ["--neighbours", "number"], "no such file"),
        ("{}::fine", ["--neighbours", "number", "--level", "0"], "level"),
        ("{}::fine", ["--neighbours", "number", "--outputs", "1"], "outputs"),
        ("{}::fine", ["--neighbours", "number", "--out", "page.txt"], "html"),
        ("{}::fine", ["--neighbours", "answers size=1"], "size"),
    ],
)
def test_bad_input_exits_with_two_and_one_sentence(
    file: Path, target: str, more: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["audit", target.format(file), "--claim", "epsilon=1", *[m.format(file) for m in more]]
    assert main(line) == 2
    said = capsys.readouterr()
    assert word in said.err
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) == 1
