"""A table that is too large for a page: what is told of all cells is what walking through them would tell."""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from tacit.curator.cells import QualityRule, keys_at, raw_keys, rule_of
from tacit.curator.intervals import Estimate
from tacit.noise.source import SeededSource
from tacit.report.building import _cell, report_of, view_of
from tacit.report.pictures import MOST_CELLS, draw, largest
from tacit.sources import Schema, bins, category, integer, number

SCHEMA = Schema(
    {
        "a": integer(0, 39),
        "value": integer(0, 29),
        "x": number(0, 10),
        "c": category([f"key {i}" for i in range(900)]),
    }
)


def released(statistic: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "a": rng.integers(0, 40, 5000), "value": rng.integers(0, 30, 5000), "x": rng.uniform(0, 10, 5000),
            "c": [f"key {i}" for i in rng.integers(0, 900, 5000)],
        }
    )  # fmt: skip
    with tacit.Curator(
        table, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Pure(epsilon=10), source=SeededSource(seed=3)
    ) as one:
        plan = one.preview(statistic, epsilon=1.0)
        return plan, one.release(plan)[0]


STATISTICS = [
    ask.count(by=["a", "value"]),
    ask.count(by="c"),
    ask.mean("x", by=["a", "value"]),
    ask.count(by=["a", bins("x", 40)]),
    ask.margins(["c", "a"]),
]


def _flag(rule: QualityRule, value: float, low: float, high: float) -> str:
    """The flag of one cell from its value and its interval; no interval here was cut."""
    if not math.isfinite(value):
        return "absent"
    return "noisy" if math.isnan(low) or math.isnan(high) else rule.flag(value, low, high)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: f"{s.kind}-{len(s.by)}")
def test_what_is_told_of_all_cells_is_what_each_of_them_says(statistic: Any, odd: bool) -> None:
    plan, release = released(statistic)
    if odd:
        rng = np.random.default_rng(9)
        ends = {
            n: np.ravel(getattr(release.estimate, n)).astype(float).copy() for n in ("value", "low", "high")
        }
        for held, worst in (
            ("value", np.nan),
            ("value", np.inf),
            ("low", -np.inf),
            ("high", np.nan),
            ("low", np.nan),
        ):
            ends[held][rng.integers(0, ends[held].size, 9)] = worst
        release = dataclasses.replace(release, estimate=Estimate(**ends))
    view = view_of(plan, [release], budget=plan.charge, title="large").releases[0]
    columns = raw_keys(release.planned.question, release.noisy)
    values = [np.ravel(getattr(release.estimate, n)).tolist() for n in ("value", "low", "high")]
    every = [
        _cell(keys, *ends, flag=_flag(rule_of(release), *ends), truth=None)
        for keys, *ends in zip(zip(*columns.values(), strict=True), *values, strict=True)
    ]
    assert view.rest is not None
    assert view.total == len(every) > 400
    assert view.columns == tuple(columns)
    assert view.cells == largest(every)
    assert len(view.cells) == MOST_CELLS
    for flag in ("care", "noisy", "absent"):
        assert view.flag_counts.get(flag, 0) == sum(c.flag == flag for c in every)
    wide = [c.high - c.low for c in every if c.low is not None and c.high is not None]
    assert view.typical_width is not None
    assert math.isclose(view.typical_width, statistics.median(wide))
    whole = dataclasses.replace(view, cells=tuple(every), rest=None)
    assert draw(view).kind == draw(whole).kind
    assert draw(view).cells == draw(whole).cells


def test_the_page_of_a_large_table_says_how_many_cells_it_leaves_to_the_file() -> None:
    plan, release = released(STATISTICS[0])
    page = report_of(plan, [release], budget=plan.charge, title="large")
    assert "the largest 40 of 1,200 cells, and 1,160 more" in page
    assert release._certified == {}, "no digest of all cells was needed for it"


@pytest.mark.parametrize(
    "statistic", [*STATISTICS, ask.quantiles("x", by="a"), ask.hierarchy(["a", "value"])]
)
def test_keys_of_some_cells_are_those_of_all(statistic: Any) -> None:
    _, release = released(statistic)
    every = raw_keys(release.planned.question, release.noisy)
    size = len(next(iter(every.values())))
    places = np.random.default_rng(2).integers(0, size, 25)
    some = keys_at(release.planned.question, release.noisy, places)
    assert some == {name: [column[i] for i in places] for name, column in every.items()}
