"""The chain of promises where plans are made: the account of the events is at most the stated bound and the charge."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import statistics as st
from tacit.accounting import account, bound_of, covers, events
from tacit.curator import charging as charges
from tacit.curator.charging import price
from tacit.curator.planning import Plan, make_plan
from tacit.curator.request import Query
from tacit.errors import InternalError, TacitError
from tacit.exact.rounding import up
from tacit.guarantees import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Neighbours,
    Pure,
    Renyi,
    Unit,
    group_of,
    people,
    rows,
)
from tacit.guarantees.running_sum import GAUSSIAN, summed
from tacit.mechanisms import L2, Gaussian
from tacit.sources import category, flag, integer, number
from tacit.sources.schema import Schema

SCHEMA = Schema(
    {
        "s": category(["a", "b", "c"]), "r": category(["u", "v"]), "o": category(), "x": integer(0, 9),
        "y": number(-4.0, 4.0, spacing=0.25), "z": number(), "f": flag(), "zip": integer(0, 99_999),
    }
)  # fmt: skip
STATISTICS: dict[str, Any] = {
    "count": st.count(by="s"),
    "count of people": st.count(of="people"),
    "unknown keys": st.count(by="o"),
    "unknown keys of people": st.count(by="o", of="people"),
    "sum": st.sum("x", by="s"),
    "sum, unknown keys": st.sum("x", by="o"),
    "mean": st.mean("y"),
    "mean, unknown keys": st.mean("y", by="o"),
    "variance": st.variance("y"),
    "ratio": st.ratio("x", "y"),
    "proportion": st.proportion("f", by="s"),
    "quantiles": st.quantiles("x", at=(0.25, 0.5)),
    "histogram": st.histogram("x"),
    "ranges": st.ranges("x", 4),
    "contingency": st.contingency(["s", "r"]),
    "margins": st.margins(["s", "r", "f"], order=2),
    "hierarchy": st.hierarchy(["s", "r"]),
    "sparse": st.sparse_histogram(["zip", "s"]),
    "sparse, people": st.sparse_histogram(["zip", "s"], of="people"),
    "clamping bounds": st.clamping_bounds("z"),
    "regression moments": st.regression_moments(["x"], "y"),
    "density": tacit.density(["x"], size=1000, points=3),
    "pure density": tacit.density(["x"], size=1000, points=3, guarantee="pure"),
    "classifier": tacit.classifier(["y"], "f", size=1000, points=3, pairs=3),
    "regression function": tacit.regression_function(["y"], "x", size=1000, points=3, pairs=3),
}
PRICES: list[dict[str, Any]] = [
    {"epsilon": 0.1},
    {"epsilon": 0.1, "delta": 5e-4},
    {"epsilon": 2, "delta": 1e-6},
    {"rho": 0.01},
    {"mu": 0.7},
    {"within": 60, "delta": 1e-6},
]
BUDGETS: list[Bound] = [
    Pure(epsilon=1e9),
    Approximate(epsilon=1e6, delta=0.5),
    Concentrated(rho=1e6),
    GaussianDP(mu=1e4),
    Renyi(orders=(2.0, 8.0), epsilons=(1e6, 1e6)),
]


def units(relation: str) -> list[Unit]:
    return [
        rows(neighbours=relation),
        people("p", at_most=3, neighbours=relation),
        people("p", at_most=4, groups=2, neighbours=relation),
        group_of(people("p", at_most=2, neighbours=relation), size=2),
    ]


def plan_of(statistic: Any, unit: Unit, budget: Bound, **words: Any) -> Plan:
    ask = Query(statistic=statistic, price=price(**words))
    return make_plan([ask], schema=SCHEMA, unit=unit, budget=budget)


def ratio(bound: Bound, what: tuple[events.Event, ...], relation: Neighbours) -> float:
    """The account by the public accountants, not by `covers`, as a multiple of the stated number."""
    if not what:
        return 0.0
    if isinstance(bound, Pure):
        return (
            float(bound_of(what, accountant="pure", neighbours=relation).parameters["epsilon"])
            / bound.epsilon
        )
    if isinstance(bound, Concentrated):
        return float(bound_of(what, accountant="zcdp", neighbours=relation).parameters["rho"]) / bound.rho
    if isinstance(bound, GaussianDP):
        parts = [(GAUSSIAN.of_release(e, neighbours=relation), n) for e, n in events.flatten(what)]
        known = [(own, n) for own, n in parts if own is not None]
        assert len(known) == len(parts)
        return float(GAUSSIAN.bound(summed(GAUSSIAN, known)).parameters["mu"]) / bound.mu
    if isinstance(bound, Renyi):
        each = events.flatten(what)
        return max(
            sum((e.renyi(a, neighbours=relation) or 0.0) * n for e, n in each) / stated
            for a, stated in zip(bound.orders, bound.epsilons, strict=True)
        )
    assert isinstance(bound, Approximate)
    return account(what, delta=bound.delta, neighbours=relation).epsilon.high / bound.epsilon


@pytest.mark.parametrize("relation", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize("name", STATISTICS)
def test_the_account_of_a_plan_is_at_most_what_it_states(name: str, relation: str) -> None:
    """Every statistic, unit, price and budget: the release's bound, and what is charged for it."""
    made = 0
    sparse = name.startswith("sparse")
    for unit in units(relation):
        for words in PRICES[1:4] if sparse else PRICES:
            for budget in BUDGETS[1:2] if sparse else BUDGETS:
                try:
                    plan = plan_of(STATISTICS[name], unit, budget, **words)
                except InternalError:
                    raise
                except TacitError:
                    continue
                made += 1
                (planned,) = plan.releases
                for bound in (planned.guarantee.bound, plan.charged.bound):
                    found = ratio(bound, planned.assignment.events, unit.neighbours)
                    assert found <= 1 + 1e-9, (unit, words, budget.kind, bound, found)
    assert made or name == "regression moments"


def test_the_event_of_a_sparse_histogram_has_its_bound() -> None:
    """A concentrated event with its rho would have 0.119 here."""
    plan = plan_of(STATISTICS["sparse"], rows(neighbours="replace-one"), BUDGETS[1], epsilon=0.1, delta=5e-4)
    (event,) = plan.releases[0].assignment.events
    assert isinstance(event, events.DiscreteGaussianVectorEvent)
    assert event.squared_sensitivity == 2
    assert 0.0999 < account(event, delta=5e-4, neighbours="replace-one").epsilon.high <= 0.1
    rho = events.ConcentratedEvent(rho=event.concentrated())
    assert account(rho, delta=5e-4, neighbours="replace-one").epsilon.high > 0.118


def test_a_plan_whose_events_say_more_than_its_bound_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a sparse histogram as it was: its rho, whose epsilon is above the stated one."""
    monkeypatch.setattr(Gaussian, "event", property(lambda self: events.ConcentratedEvent(rho=self.rho)))
    with pytest.raises(InternalError, match="bound of 'sparse_histogram-zip-s'"):
        plan_of(STATISTICS["sparse"], rows(neighbours="replace-one"), BUDGETS[1], epsilon=0.1, delta=5e-4)


def test_a_charge_below_the_account_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge that forgets one of two releases is noticed, whatever the kind of the budget."""
    asks = [Query(statistic=st.count(by=k), price=price(epsilon=0.5)) for k in ("s", "r")]
    for budget in BUDGETS:
        whole = make_plan(asks, schema=SCHEMA, unit=rows(), budget=budget).charged
        half = make_plan(asks[:1], schema=SCHEMA, unit=rows(), budget=budget).charged
        assert whole.bound != half.bound
        with monkeypatch.context() as patch:
            patch.setattr(charges, "_priced", lambda *a, half=half: half)
            with pytest.raises(InternalError, match="the charge of a plan"):
                make_plan(asks, schema=SCHEMA, unit=rows(), budget=budget)


def test_a_shared_price_and_one_beside_it_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaussian releases that divide a price, and one with its own: the sum passes, and less than it does not."""
    asks = [
        Query(statistic=tacit.density(["x"], size=1000, points=3), price=None),
        Query(statistic=tacit.density(["y"], size=1000, points=3), price=None),
        Query(statistic=st.count(by="r"), price=price(epsilon=0.5, delta=1e-7)),
    ]
    total = price(epsilon=1, delta=1e-6)
    made = make_plan(asks, schema=SCHEMA, unit=rows(), budget=BUDGETS[1], total=total)
    bound = made.charged.bound
    assert isinstance(bound, Approximate)
    assert bound.epsilon <= 1.5
    less = charges.Charged(
        bound=Approximate(epsilon=up(Fraction(bound.epsilon) * Fraction(9, 10)), delta=bound.delta),
        exact={}, theorem=made.charged.theorem,
    )  # fmt: skip
    monkeypatch.setattr(charges, "_priced", lambda *a: less)
    with pytest.raises(InternalError):
        make_plan(asks, schema=SCHEMA, unit=rows(), budget=BUDGETS[1], total=total)


COVERED: list[tuple[Bound, list[events.Event], bool]] = [
    (Pure(epsilon=0.5), [events.LaplaceEvent(epsilon=0.2), events.PureEvent(epsilon=0.3)], True),
    (Pure(epsilon=0.49), [events.LaplaceEvent(epsilon=0.2), events.PureEvent(epsilon=0.3)], False),
    (Pure(epsilon=9.0), [events.GaussianEvent(noise_multiplier=5.0)], False),
    (Concentrated(rho=0.02), [events.GaussianEvent(noise_multiplier=5.0)], True),
    (Concentrated(rho=0.0199), [events.GaussianEvent(noise_multiplier=5.0)], False),
    (Concentrated(rho=9.0), [events.ApproximateEvent(epsilon=0.1, delta=1e-9)], False),
    (GaussianDP(mu=0.2), [events.GaussianEvent(noise_multiplier=5.0)], True),
    (GaussianDP(mu=0.199), [events.GaussianEvent(noise_multiplier=5.0)], False),
    (GaussianDP(mu=9.0), [events.ConcentratedEvent(rho=0.01)], False),
    (Renyi(orders=(2.0,), epsilons=(0.04,)), [events.GaussianEvent(noise_multiplier=5.0)], True),
    (Renyi(orders=(2.0, 4.0), epsilons=(0.04, 0.079)), [events.GaussianEvent(noise_multiplier=5.0)], False),
    (Renyi(orders=(2.0,), epsilons=(9.0,)), [events.ApproximateEvent(epsilon=0.1, delta=1e-9)], False),
    (Approximate(epsilon=0.3, delta=1e-6), [events.ApproximateEvent(epsilon=0.3, delta=1e-6)], True),
    (
        Approximate(epsilon=0.5, delta=1e-6),
        [events.ApproximateEvent(epsilon=0.3, delta=1e-6), events.LaplaceEvent(epsilon=0.2)],
        True,
    ),
    (Approximate(epsilon=0.3, delta=9e-7), [events.ApproximateEvent(epsilon=0.3, delta=1e-6)], False),
    (
        Approximate(epsilon=0.1, delta=5e-4),
        [events.DiscreteGaussianVectorEvent(noise_std=27.78, squared_sensitivity=2, coordinates=9)],
        True,
    ),
    (
        Approximate(epsilon=0.1, delta=5e-4),
        [events.DiscreteGaussianVectorEvent(noise_std=27.7, squared_sensitivity=2, coordinates=9)],
        False,
    ),
]


@pytest.mark.parametrize(("bound", "what", "holds"), COVERED)
def test_a_bound_covers_its_events_or_not(bound: Bound, what: list[events.Event], holds: bool) -> None:
    assert covers(bound, what, neighbours="replace-one") is holds


def test_nothing_is_covered_by_everything() -> None:
    assert covers(Pure(epsilon=0.0), [], neighbours="add-or-remove")


def test_a_vector_has_the_curve_of_its_worst_move() -> None:
    """Theorem `discrete-gaussian`: the largest over the moves, summed from the law's probabilities."""
    noise = Gaussian(sensitivity=L2.root(6), noise_std=4, dimension=50)
    event = noise.event
    assert isinstance(event, events.DiscreteGaussianVectorEvent)
    assert set(event.moves) == {(2, 1, 1), (1, 1, 1, 1, 1, 1)}
    for epsilon in (0.3, 1.0):
        found = account(event, epsilon=epsilon, neighbours="add-or-remove").delta.high
        assert found == pytest.approx(noise.profile.delta(epsilon), rel=1e-12)


def test_a_vector_is_summed_from_the_definition() -> None:
    """Two integers that move by 2 and 1: every pair of outcomes, from the weights e^(-k^2/(2 std^2))."""
    std, epsilon = 1.5, 0.7
    k = np.arange(-24, 25)
    law = np.exp(-(k**2) / (2 * std**2)) / np.exp(-(k**2) / (2 * std**2)).sum()

    def joint(a: int, b: int) -> Any:
        return np.outer(np.roll(law, a), np.roll(law, b))

    true = float(np.maximum(joint(2, 1) - math.exp(epsilon) * joint(0, 0), 0).sum())
    event = events.DiscreteGaussianVectorEvent(noise_std=std, squared_sensitivity=5, coordinates=2)
    assert event.moves == ((2, 1),)
    found = account(event, epsilon=epsilon).delta.high
    assert true * (1 - 1e-9) <= found <= true * (1 + 1e-3)
    # Beside other events one worst move is its coordinates, and several are their rho.
    again = account([event, events.PureEvent(epsilon=1e-6)], epsilon=epsilon).delta.high
    assert true * (1 - 1e-3) <= again <= true * (1 + 1e-2)
    several = events.DiscreteGaussianVectorEvent(noise_std=std, squared_sensitivity=6, coordinates=6)
    assert several.beside_others() == events.ConcentratedEvent(rho=several.concentrated())
