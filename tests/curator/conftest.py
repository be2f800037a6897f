"""A small public table of visits, and a curator over it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from support import engine

from .plans import Runner

STATES = ["CA", "NY", "TX"]
SCHEMA = {
    "state": tacit.category(STATES),
    "age": tacit.integer(0, 99),
    "income": tacit.number(0, 250_000),
    "insured": tacit.flag(),
    "town": tacit.category(),
    "free": tacit.number(),
}


def visits(rows: int = 2000, people: int = 400, seed: int = 3) -> pa.Table:
    """Several visits for each person."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "person_id": random.integers(0, people, rows),
            "state": random.choice(STATES, rows, p=[0.5, 0.3, 0.2]),
            "age": random.integers(0, 100, rows),
            "income": random.lognormal(10.4, 0.7, rows),
            "insured": random.random(rows) < 0.8,
            "town": random.choice(["a", "b", "c", "d"], rows, p=[0.6, 0.3, 0.099, 0.001]),
            "free": random.normal(0, 100, rows),
        }
    )


@pytest.fixture(autouse=True)
def one_engine() -> Iterator[None]:
    """These tests are about what is done with a table, not about reading it."""
    with engine.shared():
        yield


@pytest.fixture(scope="session")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(visits(), path)
    return path


@pytest.fixture
def make(parquet: Path, tmp_path: Path) -> Any:
    """A curator with the given budget and options, over a copy of the table: a table has one ledger."""

    def copied() -> Path:
        copy = tmp_path / "visits.parquet"
        if not copy.exists():
            shutil.copyfile(parquet, copy)
        return copy

    def made(budget: Any = None, protect: Any = None, **more: Any) -> tacit.Curator:
        given = {"ledger": tmp_path / "visits.ledger", "schema": SCHEMA} | more
        data = given.pop("data") if "data" in given else copied()
        return tacit.Curator(
            data,
            protect=protect or tacit.people("person_id", at_most=4),
            budget=budget or tacit.Approximate(epsilon=1.0, delta=1e-6),
            **given,
        )

    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    """The command line, called in this process."""
    return Runner(capsys)
