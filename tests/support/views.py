"""A report with every kind of picture, made of fixed numbers: what the page's tests look at."""

from __future__ import annotations

import datetime
import math
from typing import Any

from tacit.curator.cells import QualityRule
from tacit.report.view import BudgetPart, BudgetView, CellView, Key, ReleaseView, ReportView

RULE = QualityRule()
REGIONS = (
    "Ashford", "Brackwater", "Coldharbour", "Dunmere", "Eastmarch", "Fenwick and the Isles", "Greyhaven",
    "Highmoor", "Ironvale", "Juniper Coast", "Kingsbridge", "Lowlands", "Millbrook", "Northreach",
)  # fmt: skip
MEANING = (
    "What is published would change only within limits if the data of any one person had been added or left out: "
    "no event becomes more than 1.23 times as likely, give or take a probability of 1e-06.",
    "Somebody who knows everything else, and must tell two versions of those data apart, is right at most 55.1% of "
    "the time where a coin is right 50%.",
)
ASSUMPTIONS = (
    "Each person's visits beyond 12 are left out at random; what that takes away is not in the interval.",
    "Values outside their declared bounds are clamped to them.",
)


def cell(
    keys: tuple[Key, ...], value: float | None, half: float, error: float = 0.3, rule: QualityRule = RULE
) -> CellView:
    """A cell whose truth lies `error` half-widths away."""
    if value is None:
        return CellView(keys=keys, value=None, flag="absent")
    low, high = value - half, value + half
    return CellView(
        keys=keys,
        value=value,
        low=low,
        high=high,
        flag=rule.flag(value, low, high),
        truth=value + error * half,
    )


def release(name: str, kind: str, title: str, cells: list[CellView], **more: Any) -> ReleaseView:
    """A release with the usual facts."""
    facts: dict[str, Any] = {
        "question": f"How it stands with {title.lower()}, over all visits of the last three years.",
        "price": "ε = 0.1", "condition": "",
        "mechanism": "discrete Laplace noise of scale 120 on each cell",
        "theorems": ("discrete-laplace", "post-processing"),
        "expected_error": 120.0, "lower_bound": 118.4, "ratio": 1.0135,
        "certificate": f"certificates/{name}.json", "values": f"values/{name}.csv",
    }  # fmt: skip
    return ReleaseView(name=name, kind=kind, title=title, cells=tuple(cells), **(facts | more))


def wave(k: float) -> float:
    return math.sin(1.7 * k + 0.4)


def releases() -> tuple[ReleaseView, ...]:
    """One of each kind."""
    regions = [
        cell((r,), round(9000 * (1.2 + wave(k)) ** 2 + 40), 950, wave(3 * k)) for k, r in enumerate(REGIONS)
    ]
    income = [
        cell((r,), 31_482.7 + 6_000 * wave(k), 800 + 90 * k, wave(k)) for k, r in enumerate(REGIONS[:8])
    ]
    quantiles = [
        cell((p,), 18 + 62 * p**1.1, 0.8 + abs(p - 0.5), wave(9 * p), QualityRule(of=120))
        for p in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    ]
    ages = [
        cell(((5 * k, 5 * k + 5),), round(26_000 * math.exp(-(((k - 8) / 7) ** 2)) + 60), 420, wave(5 * k))
        for k in range(24)
    ]
    days = [
        cell(
            (datetime.date(2023, 1, 1) + datetime.timedelta(days=7 * k),),
            round(5_200 + 1800 * wave(k / 15)),
            260,
            wave(k),
        )
        for k in range(150)
    ]
    table = [
        cell((r, s), round(4000 * (1.3 + wave(3 * i + j)) ** 2), 900, wave(i * j))
        for i, r in enumerate(REGIONS)
        for j, s in enumerate(("0–17", "18–39", "40–64", "65–79", "80+"))
    ]
    three_way = [
        cell((r, s, i), round(900 * (1.5 + wave(k + 2 * m)) + 500 * n), 300 - 100 * n, wave(k))
        for k, r in enumerate(REGIONS[:5])
        for m, s in enumerate(("female", "male"))
        for n, i in enumerate((True, False))
    ]
    margins = [
        cell((r, "all", "all"), round(6_000 * (1.4 + wave(k))), 240, wave(k)) for k, r in enumerate(REGIONS)
    ]
    margins += [
        cell(("all", s, i), 31_000 + 900 * k, 240)
        for k, (s, i) in enumerate((s, i) for s in ("female", "male") for i in ("yes", "no"))
    ]
    margins += [cell(("all", "all", "all"), 128_000, 240)]
    many = [cell((f"J{k:03d}",), round(8000 / (k + 1) ** 1.1), 95, wave(k)) for k in range(90)]
    absent = [cell(("rare",), None, 0), cell(("common",), 41.25, 2.5), cell(("scarce",), -3.5, 17)]
    spread = "a spread has no smallest possible error that is known"
    return (
        release("visits", "count", "All visits", [cell((), 812_345, 390, 0.4)], measure="visits"),
        release("by-region", "count", "People by region", regions, columns=("region",), measure="people"),
        release("income", "mean", "Mean income by region", income, columns=("region",), measure="EUR a year"),
        release(
            "age-quantiles", "quantile", "Quantiles of age", quantiles, columns=("share of people",),
            rule=QualityRule(of=120), measure="years", ratio=None, ratio_reason=spread, lower_bound=None,
        ),
        release("age", "histogram", "Visits by age", ages, columns=("age",), measure="visits"),
        release("weeks", "count", "Visits by week", days, columns=("week",), measure="visits"),
        release("region-age", "margins", "Visits by region and age group", table, columns=("region", "age group")),
        release("three", "margins", "Region, sex and insurance", three_way, columns=("region", "sex", "insured")),
        release("margins", "margins", "margins", margins, columns=("region", "sex", "insured"), measure="rows"),
        release("codes", "count", "Visits by diagnosis", many, columns=("diagnosis",), measure="visits"),
        release("stay", "mean", "Length of stay by rarity", absent, columns=("rarity",), measure="days"),
    )  # fmt: skip


def report(*, synthetic: bool = True) -> ReportView:
    """The whole report; without truths if the data are not synthetic."""
    made = releases() if synthetic else tuple(without_truth(r) for r in releases())
    parts = tuple(BudgetPart(release=r.name, amount=0.1, words=r.price) for r in made)
    return ReportView(
        title="Hospital survey 2021–2023: released statistics",
        made_at=datetime.datetime(2024, 3, 1, 9, 30, tzinfo=datetime.UTC),
        unit_sentence="Protected: each person with all of their visits, of whom at most 12 count, added or taken away.",
        budget=BudgetView(
            kind="epsilon, at delta = 10⁻⁶", total=1.5, spent=0.83, remaining=0.67, earlier=0.12,
            total_words="ε = 1.5 at δ = 10⁻⁶", spent_words="ε = 0.83", remaining_words="ε = 0.67",
            parts=parts, meaning=MEANING,
        ),
        releases=made,
        methods=("gaussian-profile",),
        about_you=MEANING,
        synthetic=synthetic,
        files=(("plan.toml", "the plan"), ("survey.ledger", "what was spent")),
    )  # fmt: skip


def without_truth(view: ReleaseView) -> ReleaseView:
    """The same release of data that are not made up."""
    from dataclasses import replace

    return replace(view, cells=tuple(replace(c, truth=None) for c in view.cells))
