"""A fixed share of the fuzzer: neighbours behave alike outside of the noise. `make fuzz` goes on from here.

The share is small and the same every time. That it can fail is shown below by breaches that are planted, and in the
list of mutants.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fuzz.run import Report, fuzz, parsed, summary
from support.spark import needs_spark
from tacit.sources import query
from tacit.statistics import base as sensitivity

FAMILIES = {
    "frames": "arrow,pandas,pandas objects,polars",
    "files": "parquet,parquet pattern,parquet path,parquet name",
    "text": "csv,csv.gz,csv.tsv",
    "written": "csv written,csv list",
    "holders": "xlsx,sqlite,duckdb file,sqlite seen,duckdb seen",
    "statistics": "stata,spss,sas,several",
    "joins": "joined",
    "engine": "ibis table,ibis collation,ibis view",
}


RUNS, SEED = 110, "1"
"""For each family: together about half a minute of one processor, in worlds where the kept mutants show."""


def ran(*arguments: str) -> Report:
    """The fuzzer with these arguments, and no limit on time."""
    return fuzz(parsed(["--seconds", "1e9", "--pairs", "3", *arguments]))


def planted() -> Report:
    """The same with a breach that was planted, until something is found."""
    return ran("--runs", "400", "--seed", "6", "--forms", "arrow", "--long", "0", "--plans", "0", "--first")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_neighbours_behave_alike(family: str) -> None:
    # Mutated plan files follow from the seed alone: they are the same for every family.
    plans = [] if family == "frames" else ["--plans", "0"]
    report = ran("--runs", str(RUNS), "--seed", SEED, "--forms", FAMILIES[family], *plans)
    assert report.runs >= RUNS
    assert len(report.kinds) >= 8
    assert report.outcomes["released"] >= report.pairs / 3
    assert not report.oracles, summary(report)


def test_an_id_with_blanks_behind_is_nobody_new_in_files_that_drop_them() -> None:
    # SPSS fills texts up with blanks: "p4 " and "p4" are one person there, two in Parquet.
    report = ran("--seed", "111", "--batch", "63", "--pairs", "10")
    assert report.forms["spss"] >= 1
    assert not report.oracles, summary(report)


@pytest.mark.parametrize(
    ("kind", "seed", "batch"), [("regression", "94", "13"), ("regression_by_test", "95", "12")]
)
def test_statistics_of_whole_rows_are_compared(kind: str, seed: str, batch: str) -> None:
    # A regression empties the rows it has added up; the fuzzer takes the true sums of a copy.
    report = ran("--seed", seed, "--batch", batch, "--pairs", "1")
    assert report.kinds[kind] >= 1
    assert not report.oracles, summary(report)


@needs_spark
@pytest.mark.slow
def test_neighbours_behave_alike_on_spark() -> None:
    report = ran(
        "--runs", "18", "--seed", "2026", "--engine", "spark", "--most", "6", "--long", "0", "--plans", "0"
    )
    assert report.runs >= 18
    assert not report.oracles, summary(report)


def test_a_claim_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several rows of a person only one is allowed for."""
    monkeypatch.setattr(sensitivity, "row_limit", lambda unit: 1)
    report = planted()
    assert report.oracles["moved"] >= 1


def test_an_error_that_one_row_decides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector stumbles over a key that is not declared."""
    plain = query._Collector.add

    def stumbling(self: Any, batch: Any) -> None:
        if any(column.null_count for column in batch.columns):
            raise ValueError("a key that is null")
        plain(self, batch)

    monkeypatch.setattr(query._Collector, "add", stumbling)
    report = planted()
    assert report.oracles["error"] >= 1


def test_a_type_that_one_row_decides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noisy numbers are let out in a type that depends on the true ones."""
    from tacit.curator.assignments import Assignment

    plain = Assignment.run

    def typed(self: Any, question: Any, cells: Any, *, source: Any) -> Any:
        noisy = plain(self, question, cells, source=source)
        large = any(int(np.max(np.abs(v), initial=0)) > 9 for v in question.integers(cells).values())
        parts = {n: v.astype(object if large else "int64") for n, v in noisy.parts.items()}
        return dataclasses.replace(noisy, parts=parts)

    monkeypatch.setattr(Assignment, "run", typed)
    report = planted()
    assert report.oracles["shapes"] >= 1
