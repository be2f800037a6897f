"""What a plan's price is divided by: what every statistic gains from it, quantiles and unknown keys included."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.curator.charging import Price
from tacit.mechanisms.rank_selection import ranges_around

FLAGS = [f"f{i}" for i in range(8)]
SCHEMA: dict[str, Any] = {
    "x": tacit.number(0, 100_000),
    "y": tacit.integer(0, 7),
    "z": tacit.integer(0, 100),
    "t": tacit.category(),
    "u": tacit.number(),
} | {f: tacit.flag() for f in FLAGS}
BUDGET = tacit.Approximate(epsilon=1e3, delta=0.5)


def curator(neighbours: str, budget: Any = BUDGET) -> tacit.Curator:
    columns: dict[str, Any] = {"x": [1.0], "y": [2], "z": [3], "t": ["k"], "u": [1.0]}
    return tacit.Curator(
        pa.table(columns | {f: [True] for f in FLAGS}), protect=tacit.rows(neighbours=neighbours), schema=SCHEMA,
        budget=budget,
    )  # fmt: skip


def errors(plan: Any) -> list[float]:
    return [r.expected.within for r in plan.releases]


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("column", ["x", "y", "z"])
@pytest.mark.parametrize("count", [2, 5])
def test_medians_get_the_better_of_pure_and_gaussian_shares(column: str, neighbours: str, count: int) -> None:
    """At (1, 1e-6): the shares are epsilon / k, or the mu of the whole over the root of k."""
    asked = [tacit.median(column, where=f"z > {i}") for i in range(count)]
    with curator(neighbours) as held:
        found = errors(held.preview(asked, epsilon=1, delta=1e-6))
        pure = errors(held.preview(asked[0], epsilon=Fraction(1, count)))[0]
        mu = tacit.gaussian_budget(epsilon=1.0, delta=1e-6).mu / math.sqrt(count)
        paid = tacit.query(asked[0], mu=Fraction(mu).limit_denominator(10**12))
        normal = errors(held.preview([paid], epsilon=1, delta=1e-6))[0]
    assert max(found) <= 1.001 * min(pure, normal)
    assert len(set(found)) == 1


def test_two_medians_of_few_bins_are_as_near_as_pure_shares_let_them() -> None:
    with curator("add-or-remove") as held:
        plan = held.preview([tacit.median("y"), tacit.median("y", where="z > 3")], epsilon=1, delta=1e-6)
    assert max(errors(plan)) < 13
    assert all("tree" in r.assignment.reason for r in plan.releases)


def test_each_statistic_pays_in_the_way_it_gains_by() -> None:
    """Counts gain by epsilon, a hundred counts that a row moves together by mu: neither pays like the other."""
    counts = [tacit.count(where=f"z > {i}") for i in range(3)]
    with curator("add-or-remove") as held:
        plan = held.preview([*counts, tacit.margins(FLAGS, order=3)], epsilon=1, delta=1e-6)
        alone = held.preview(counts[0], epsilon=Fraction(1, 4))
    *pure, normal = plan.releases
    assert {r.assignment.price for r in pure} == {Price(epsilon=Fraction(1, 4))}
    assert {r.expected.within for r in pure} == {alone.releases[0].expected.within}
    # A quarter of epsilon, and all of delta.
    mu = tacit.gaussian_budget(epsilon=0.25, delta=1e-6).mu
    assert float(normal.assignment.price.mu) == pytest.approx(mu, rel=1e-9)
    assert plan.charged.exact["epsilon"] <= 1
    assert plan.charged.exact["delta"] <= Fraction(1, 10**6)


def test_a_delta_that_nobody_else_needs_goes_to_the_keys() -> None:
    with curator("add-or-remove") as held:
        plan = held.preview([tacit.count(by="t"), tacit.count()], epsilon=1, delta=1e-6)
    keys, count = plan.releases
    assert count.assignment.price == Price(epsilon=Fraction(1, 2))
    assert keys.assignment.price == Price(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6))
    assert plan.charged.exact == {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}


def test_shares_of_any_mixture_add_up_to_the_price() -> None:
    asked: list[Any] = [
        tacit.count(by="t"), tacit.median("x"), tacit.median("y"), tacit.count(), tacit.mean("x"),
        tacit.clamping_bounds("u"),
        tacit.margins(FLAGS), tacit.sparse_histogram(["y"]), tacit.ratio("x", "y"),
    ]  # fmt: skip
    with curator("replace-one") as held:
        plan = held.preview(asked, epsilon=1, delta=1e-6)
    prices = [r.assignment.price for r in plan.releases]
    epsilon = sum((p.epsilon for p in prices if p.epsilon is not None), Fraction(0))
    delta = sum((p.delta for p in prices if p.delta is not None), Fraction(0))
    mus = [float(p.mu) ** 2 for p in prices if p.mu is not None]
    assert epsilon + Fraction(len(mus), len(prices)) == 1
    rest = tacit.GaussianDP(mu=math.sqrt(sum(mus)) * (1 - 1e-9)) if mus else tacit.Pure(epsilon=0.0)
    assert float(delta) + rest.delta(float(1 - epsilon)) <= 1e-6
    assert plan.charged.exact["epsilon"] <= 1


@pytest.mark.parametrize("rows", [2, 10, 10_000, 10**8])
def test_a_public_number_of_rows_makes_ranges_that_are_released(rows: int) -> None:
    """The counts around the choices are over the ranges that they were made for, whatever their size."""
    with curator("add-or-remove") as held:
        plan = held.preview([tacit.query(tacit.median("x"), rows=rows, epsilon=1)])
        (found,) = held.release([tacit.query(tacit.median("x"), rows=rows, epsilon=1)])
    assignment = plan.releases[0].assignment
    assert assignment.counts.bins == ranges_around(
        1, bins=assignment.selection.bins, finest=assignment.finest
    )
    low, high = found.interval
    assert 0 <= low <= found.value <= high <= 100_000


@pytest.mark.parametrize("paid", [{"rho": 0.05}, {"mu": 0.3}])
def test_ranks_take_pure_noise_inside_any_price_where_it_is_better(paid: dict[str, Any]) -> None:
    budget = tacit.Concentrated(rho=1e3) if "rho" in paid else tacit.GaussianDP(mu=1e3)
    deciles_of_x = tacit.quantiles("x", at=[i / 10 for i in range(1, 10)])
    asked = (tacit.median("x"), tacit.median("y"), deciles_of_x)
    with curator("add-or-remove", budget) as held:
        fine, coarse, deciles = (held.preview(s, **paid) for s in asked)
    taken = [plan.releases[0].assignment.reason.split(":")[0] for plan in (fine, deciles)]
    assert taken[0] == "selections by rank"
    assert "Gaussian" in taken[1]
    for plan in (fine, coarse, deciles):
        (release,) = plan.releases
        errors = release.assignment.candidates
        assert len(errors) == 2
        assert release.assignment.reason.split(":")[0] == min(errors, key=lambda n: errors[n])
        charged = plan.charged.bound
        assert charged.rho <= 0.05 * (1 + 1e-12) if "rho" in paid else charged.mu <= 0.3 * (1 + 1e-12)
