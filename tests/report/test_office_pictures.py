"""Pages of an office: a regression table in its usual form, Lorenz curves, areas in order, who is left out."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import statistics as ask
from tacit.curator.intervals import Estimate
from tacit.curator.release import Release
from tacit.noise import SeededSource
from tacit.report.building import report_of, view_of
from tacit.report.pictures import draw
from tacit.report.releases import finding
from tacit.report.verifying import _fit
from tacit.report.view import ReleaseView

DRAW = np.random.default_rng(8)
N = 3000
STAFF = DRAW.integers(0, 21, N)
BLOCKS = [f"{county}{k:02}" for county in ("A1", "A2", "B1") for k in range(30)]
FRAME = pd.DataFrame(
    {
        "staff": STAFF,
        "pay": np.clip(500 + 60 * STAFF + DRAW.normal(0, 300, N), 0, 3000),
        "income": DRAW.lognormal(8, 0.8, N),
        "sex": DRAW.choice(["f", "m"], N),
        "block": DRAW.choice(BLOCKS, N),
        "w": DRAW.uniform(0.5, 4, N),
        "grade": DRAW.integers(0, 20, N),
    }
)
SCHEMA = {
    "staff": tacit.integer(0, 20),
    "pay": tacit.number(0, 3000),
    "income": tacit.number(0, 100_000),
    "sex": tacit.category(["f", "m"]),
    "block": tacit.category(BLOCKS),
    "w": tacit.number(0, 4),
    "grade": tacit.category(list(range(20))),
}


def shown(query: Any) -> tuple[ReleaseView, str, Release]:
    """The release as a page has it, the whole page, and the release."""
    budget = tacit.Approximate(epsilon=9.0, delta=1e-4)
    with tacit.Curator(
        FRAME, protect=tacit.rows(), schema=SCHEMA, budget=budget, ledger=None, source=SeededSource(seed=5)
    ) as curator:
        plan = curator.preview(query, epsilon=4, delta=1e-6)
        release = curator.release(plan)[0]
    view = view_of(plan, [release], budget=plan.charge).releases[0]
    return view, report_of(plan, [release], budget=plan.charge), release


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_regression_table_has_a_line_for_each_term() -> None:
    view, page, release = shown([tacit.query(ask.regression("pay", on=["staff", "sex"]))])
    assert draw(view).kind == "regression"
    assert "term coefficient standard error low high" in text_of(page)
    cells = {c.keys: c for c in view.cells}
    slope, error = cells["staff", "coefficient"], cells["staff", "standard error"]
    assert f"staff {slope.figures.value} {error.figures.value} {slope.figures.low}" in text_of(page)
    assert f"R squared {cells['(model)', 'R squared'].figures.value}" in text_of(page)
    lines = [re.split(r"\s{2,}", line.strip()) for line in str(release).splitlines()]
    (line,) = [words for words in lines if words[0] == "staff"]
    assert line[1:5] == [slope.figures.value, error.figures.value, slope.figures.low, slope.figures.high]
    assert "R squared" in [words[0] for words in lines]


def test_a_table_of_many_terms_is_printed_whole() -> None:
    _, _, release = shown([tacit.query(ask.regression("pay", on=["staff", "grade"]))])
    lines = str(release).splitlines()
    assert sum(line.startswith("grade = ") for line in lines) == 19
    assert not any(line.startswith("and ") for line in lines)


def test_inequality_is_told_by_its_gini_coefficients_and_drawn_as_curves() -> None:
    view, page, _ = shown([tacit.query(ask.inequality("income", by="sex", top=[0.1, 0.01]))])
    assert draw(view).kind == "lorenz"
    told = finding(view)
    gini = next(c for c in view.cells if c.keys[:2] == ("f", "gini"))
    assert told.startswith(
        f"f: Gini coefficient {gini.figures.value} ({gini.figures.interval}), share of the top 1%"
    )
    assert page.count('class="band"') >= 1
    assert "Largest:" not in told


def test_a_calibrated_mean_and_its_total_are_no_bars_of_one_scale() -> None:
    asked = ask.calibrated("pay", population=9000, totals={"staff": 90_000}, survey_weight="w")
    view, page, _ = shown([tacit.query(asked)])
    assert draw(view).kind == "table"
    assert finding(view).startswith("Mean ")
    for name in ("pay", "staff", "w"):
        assert f"rows without a value of {name}" in page


@pytest.mark.parametrize("large", [False, True])
def test_areas_stand_in_their_order(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr("tacit.report.building.MOST_LISTED", 5)
        monkeypatch.setattr("tacit.report.building.MOST_POINTS", 5)
    areas = {"state": [b[0] for b in BLOCKS], "county": [b[:2] for b in BLOCKS], "block": BLOCKS}
    view, page, release = shown([tacit.query(ask.geography(["state", "county", "block"], areas, by="sex"))])
    assert (view.rest is not None) == large
    cells = draw(view).cells
    order = [
        (level, area)
        for level, area, sex in zip(*(release.columns[n] for n in ("level", "area", "sex")), strict=True)
        if sex == "all"
    ]
    assert [c.keys[:2] for c in cells if c.keys[2] == "all"] == order[: len(cells) // 3]
    assert "Shown: the first 40 of" in page


def test_who_is_left_out_names_weights_and_units() -> None:
    _, page, _ = shown([tacit.query(ask.mean("income", survey_weight="w", design={"psu": "block"}))])
    assert "rows without a value of w" in page
    assert "rows without one of the declared keys of block" in page
    assert "<h2" in page
    assert "Weighted mean income" in text_of(page)


def test_tables_without_numbers_have_pages() -> None:
    """No regression table at this price, and a group without rows: pages say so, and are made."""
    budget = tacit.Approximate(epsilon=9.0, delta=1e-4)
    schema = SCHEMA | {"sex": tacit.category(["f", "m", "x"])}
    asked = [
        tacit.query(ask.regression("pay", on=["staff", "grade"]), epsilon=0.001, delta=1e-9),
        tacit.query(ask.inequality("income", by="sex"), epsilon=0.5),
    ]
    with tacit.Curator(
        FRAME, protect=tacit.rows(), schema=schema, budget=budget, ledger=None, source=SeededSource(seed=5)
    ) as curator:
        plan = curator.preview(asked)
        releases = curator.release(plan)
    page = text_of(report_of(plan, releases, budget=plan.charge))
    assert "There is no table" in page
    assert "x: Gini coefficient unknown" in page or "x: Gini coefficient too noisy to use" in page
    assert "staff" in str(releases[0])


@pytest.mark.parametrize("price", [{"epsilon": 0.1}, {"epsilon": 0.1, "delta": 1e-6}])
@pytest.mark.parametrize("kind", ["table", "geography"])
def test_intervals_shorter_than_the_noise_are_noticed_in_the_file_alone(
    kind: str, price: dict[str, float]
) -> None:
    areas = {"state": [b[0] for b in BLOCKS], "county": [b[:2] for b in BLOCKS], "block": BLOCKS}
    asked: Any = (
        ask.table("sex", "grade", importance={"cells": 1, "total": 1})
        if kind == "table"
        else ask.geography(["state", "county", "block"], areas, by="sex")
    )
    budget = tacit.Approximate(epsilon=9.0, delta=1e-4)
    with tacit.Curator(
        FRAME, protect=tacit.rows(), schema=SCHEMA, budget=budget, ledger=None, source=SeededSource(seed=5)
    ) as curator:
        release = curator.release(asked, **price)
    assert _fit(release).holds
    found = release.estimate
    for share, holds in ((1.1, True), (0.8, False)):
        low, high = (np.rint(found.value + share * (end - found.value)) for end in (found.low, found.high))
        forged = Estimate(value=found.value, low=low, high=high, reach=found.reach)
        result = _fit(dataclasses.replace(release, estimate=forged))
        assert result.holds is holds
        assert ("shorter than the noise allows" in result.why) is not holds
