"""A plan file over a small table with markers: values that must never show up in any text."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli import main

WORD, NUMBER, WHOLE = "Zerzura-7731", 98765.4375, 31415926
MARKS = (WORD, "98765.4", "31415926")

PLAN = """
[data]
path = "{data}"

[protect]
{protect}

[schema.state]
kind = "category"
keys = ["CA", "NY", "TX"]

[schema.income]
kind = "number"
{bounds}

[schema.age]
kind = "integer"
low = 0
high = 9999

[budget]
{budget}

[ledger]
path = "survey.ledger"

{releases}
"""
COUNT = """
[[release]]
kind = "count"
by = "state"
epsilon = 0.25
"""
MEAN = """
[[release]]
kind = "mean"
column = "income"
name = "mean income"
by = "state"
epsilon = 0.25
"""


def table(rows: int = 300) -> pa.Table:
    """Rows in which every column holds a marker."""
    return pa.table(
        {
            "person_id": [WORD] + [f"p{i % 50}" for i in range(1, rows)],
            "state": [WORD] + [("CA", "NY", "TX")[i % 3] for i in range(1, rows)],
            "income": [NUMBER] + [1000.0 * (i % 90) for i in range(1, rows)],
            "age": [WHOLE] + [i % 100 for i in range(1, rows)],
        }
    )


def write(folder: Path, **changes: Any) -> Path:
    """A plan in a folder, its table beside it."""
    parts = {
        "data": "survey.parquet", "protect": 'unit = "rows"', "bounds": "low = 0\nhigh = 250000",
        "budget": "epsilon = 1.0\ndelta = 1e-6", "releases": COUNT + MEAN,
    } | changes  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "survey.parquet").exists():
        pq.write_table(table(), folder / "survey.parquet")
    path = folder / "plan.toml"
    path.write_text(PLAN.format(**parts))
    tomllib.loads(path.read_text())
    return path


class Runner:
    """Runs a command and holds on to what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: object) -> int:
        self.capsys.readouterr()
        code = main([str(a) for a in arguments])
        told = self.capsys.readouterr()
        self.out, self.err = told.out, told.err
        return code

    def one_sentence(self) -> str:
        """The error: one line, no traceback, nothing of the data, nothing on standard output."""
        assert self.out == ""
        assert self.err.startswith("tacit: ")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        assert len(self.err) < 600
        for mark in MARKS:
            assert mark not in self.err
        return self.err
