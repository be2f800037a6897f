"""Mutated plan files, run through the command line: an exit code of 0, 1 or 2, one sentence, no traceback."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curator.mutated import plans
from fuzz.oracles import Finding
from tacit.cli import main

ROWS = 40


def survey(folder: Path) -> None:
    """A small table that the plans are about."""
    columns = {
        "person_id": [f"p{i % 17}" for i in range(ROWS)],
        "state": [("CA", "NY", "TX")[i % 3] for i in range(ROWS)],
        "ward": [1 + i % 3 for i in range(ROWS)],
        "town": [("a", "b")[i % 2] for i in range(ROWS)],
        "age": [i % 90 for i in range(ROWS)],
        "income": [1000.0 * i for i in range(ROWS)],
        "insured": [i % 2 == 0 for i in range(ROWS)],
        "day": [f"2020-01-{1 + i % 28:02}" for i in range(ROWS)],
    }
    pq.write_table(pa.table(columns), folder / "survey.parquet")


def mutated(folder: Path, *, seed: int, count: int, released: int = 10) -> list[tuple[str, Finding]]:
    """What `count` mutated plans find; every so often (`released`) a plan is released too, not only priced."""
    survey(folder)
    found = []
    for number, text in enumerate(plans(count, seed)):
        home = folder / f"plan {number}"
        home.mkdir()
        path = home / "plan.toml"
        path.write_text(
            text.replace("survey.parquet", "../survey.parquet"), encoding="utf-8", errors="replace"
        )
        told = ended("plan", path)
        if not told and number % released == 0:
            told = ended("release", path, "--out", str(home / "out"))
        if told:
            found.append((text, Finding("plan", told)))
    return found


def ended(command: str, path: Path, *rest: str) -> str:
    """How a command ended, where that is not as promised; else nothing."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            code = main([command, str(path), *rest])
    except BaseException as problem:
        return f"{command}: {type(problem).__name__}: {problem}"[:300]
    said = err.getvalue()
    if code not in (0, 1, 2):
        return f"{command}: exit code {code}"
    if code == 1 and not said and "it DOES NOT FIT" in out.getvalue():
        return ""  # the plan is right, and dearer than what is left
    if code and (said.count("\n") != 1 or not said.startswith("tacit: ") or "Traceback" in said):
        return f"{command}: {said[:300]!r}"
    return ""
