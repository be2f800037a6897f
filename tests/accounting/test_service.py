"""A service that answers as it goes: filters that take events, say what is left, and are never passed."""

from __future__ import annotations

import math
import re
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tacit
import tacit.accounting
from tacit.accounting import AdvancedFilter, GaussianFilter, RenyiFilter, filter_for
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw

E = tacit.events


def test_a_filter_in_a_threaded_service() -> None:
    """Ten thousand charges by eight threads: what is admitted is the budget and no more."""
    budget = filter_for(tacit.Concentrated(rho=1.0))
    event, admitted = E.GaussianEvent(noise_multiplier=32.0), []

    def work() -> None:
        for _ in range(1250):
            try:
                budget.admit(event)
                admitted.append(1)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    # rho = 1/(2 * 32^2) = 1/2048 each.
    assert len(admitted) == 2048
    assert budget.spent == tacit.Concentrated(rho=1.0)


@pytest.mark.parametrize(
    ("budget", "event", "fit"),
    [
        (tacit.Pure(epsilon=1.0), E.LaplaceEvent(epsilon=0.25), 4),
        (tacit.GaussianDP(mu=1.0), E.GaussianEvent(noise_multiplier=2.0), 4),
        (tacit.Approximate(epsilon=1.0, delta=1e-5), E.ApproximateEvent(epsilon=0.25, delta=2.0**-18), 2),
        (tacit.Renyi(orders=(4.0,), epsilons=(2.0,)), E.GaussianEvent(noise_multiplier=2.0), 4),
    ],
)
def test_events_are_charged_in_the_budgets_terms(
    budget: tacit.guarantees.Bound, event: E.Event, fit: int
) -> None:  # type: ignore[name-defined]
    running = filter_for(budget)
    for _ in range(fit):
        assert running.fits(event)
        running.admit(event)
    assert not running.fits(event)
    with pytest.raises(BudgetExceeded):
        running.admit(event)


def test_a_repeated_event_is_charged_as_often_as_it_is_run() -> None:
    running = filter_for(tacit.Pure(epsilon=1.0))
    running.admit(E.RepeatedEvent(event=E.LaplaceEvent(epsilon=0.25), times=3))
    assert running.spent == tacit.Pure(epsilon=0.75)
    assert running.left == tacit.Pure(epsilon=0.25)


def test_what_has_no_bound_of_the_kind_is_refused_and_costs_nothing() -> None:
    running = filter_for(tacit.Pure(epsilon=1.0))
    with pytest.raises(NoLaw, match="pure budget"):
        running.admit(E.GaussianEvent(noise_multiplier=1.0))
    assert running.spent == tacit.Pure(epsilon=0.0)


def test_the_neighbour_relation_of_an_event_is_used() -> None:
    event = E.PoissonSampledEvent(event=E.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.1)
    costs = []
    for neighbours in ("add-or-remove", "replace-one"):
        running = RenyiFilter(order=2.0, epsilon=10.0)
        running.admit(event, neighbours=neighbours)
        costs.append(running.spent.renyi(2.0))
    assert costs[1] > 1.5 * costs[0]


def test_what_is_left_fits_and_a_hair_more_does_not() -> None:
    for running, more in (
        (filter_for(tacit.Pure(epsilon=1.0)), lambda b: tacit.Pure(epsilon=float(b.epsilon) * (1 + 1e-15))),
        (filter_for(tacit.Concentrated(rho=1.0)), lambda b: tacit.Concentrated(rho=b.rho * (1 + 1e-15))),
        (GaussianFilter(tacit.GaussianDP(mu=1.0)), lambda b: tacit.GaussianDP(mu=b.mu * (1 + 1e-15))),
        (
            AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=1e-5)),
            lambda b: tacit.Approximate(epsilon=float(b.epsilon) * (1 + 1e-9), delta=0.0),
        ),
    ):
        running.admit(tacit.Pure(epsilon=0.03))
        left = running.left
        assert not running.fits(more(left))
        running.admit(left)


def test_a_refusal_never_contradicts_itself() -> None:
    """What was asked reads larger than what is left, however near they are."""
    for k in (3, 8, 15, 30):
        running = filter_for(tacit.Pure(epsilon=1.0))
        asked = float(Fraction(1) + Fraction(1, 2**52)) if k == 15 else 1 + 10.0**-k
        running.admit(tacit.Pure(epsilon=1e-30 if k == 30 else 0.0))
        with pytest.raises(BudgetExceeded) as refused:
            running.admit(tacit.Pure(epsilon=asked))
        numbers = [
            Decimal(re.sub("[^0-9.e-]", "", str(x))[1:]) for x in (refused.value.asked, refused.value.left)
        ]
        assert numbers[0] > numbers[1]


def test_a_filter_is_as_exact_as_the_ledger() -> None:
    """Ten tenths fill a budget of 1; a budget of 0.3 is three tenths, as it is in a ledger."""
    tenth = {"epsilon": Fraction(1, 10)}
    running = filter_for(tacit.Pure(epsilon=1.0))
    for _ in range(10):
        running.admit(tacit.Pure(epsilon=0.1), exact=tenth)
    assert running.left == tacit.Pure(epsilon=0.0)
    with pytest.raises(BudgetExceeded):
        running.admit(tacit.Pure(epsilon=5e-324))
    three = filter_for(tacit.Pure(epsilon=0.6))
    for _ in range(3):
        three.admit(tacit.Pure(epsilon=0.2), exact={"epsilon": Fraction(1, 5)})
    for wrong in (
        {"epsilon": Fraction(1, 11)},
        {"rho": Fraction(1, 10)},
        {"epsilon": 0.1},
        {"epsilon": True},
    ):
        with pytest.raises(InvalidParameter):
            running.fits(tacit.Pure(epsilon=0.1), exact=wrong)  # type: ignore[arg-type]


# --- arrays ----------------------------------------------------------------------------------------------
BOUNDS = [
    tacit.Pure(epsilon=1.0),
    tacit.Approximate(epsilon=1.0, delta=1e-6),
    tacit.Concentrated(rho=0.1),
    tacit.GaussianDP(mu=0.5),
    tacit.Renyi(orders=(2.0, 4.0), epsilons=(0.1, 0.2)),
    tacit.Profile.laplace(epsilon=1.0),
    tacit.Guarantee(bound=tacit.Pure(epsilon=1.0), unit=tacit.rows()),
]


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda b: type(b).__name__)
def test_arrays_are_answered_one_by_one(bound: tacit.guarantees.Bound) -> None:
    deltas = np.array([[0.0, 1e-6], [0.1, 1.0]])
    found = bound.epsilon_at(deltas)
    assert found.shape == (2, 2)
    assert found.tolist() == [[bound.epsilon_at(float(d)) for d in row] for row in deltas]
    assert bound.delta_at(np.array([0.0, 0.5])).tolist() == [bound.delta_at(0.0), bound.delta_at(0.5)]
    assert bound.delta_at(np.array([])).size == 0
    for bad in (
        np.array([0.1, math.nan]),
        np.array([0.5, -1.0]),
        np.ma.masked_array([0.1], mask=[True]),
        ["x"],
    ):
        with pytest.raises(InvalidParameter):
            bound.delta_at(bad)
        with pytest.raises(InvalidParameter):
            bound.epsilon_at(bad)


# --- Rényi order 1 ---------------------------------------------------------------------------------------
def kl(p: list[float], q: list[float]) -> float:
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def test_order_one_is_the_kullback_leibler_divergence() -> None:
    e = math.exp(1.0)
    response = kl([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)])
    assert tacit.Pure(epsilon=1.0).renyi(1) == pytest.approx(response, rel=1e-14)
    assert tacit.GaussianDP(mu=0.5).renyi(1) == 0.125
    assert tacit.Concentrated(rho=0.3).renyi(1) == 0.3
    assert tacit.Renyi(orders=(2.0, 4.0), epsilons=(0.1, 0.2)).renyi(1) == 0.1
    with pytest.raises(NoLaw):
        tacit.Approximate(epsilon=1.0, delta=1e-9).renyi(1)
    for wrong in (0.99, 0, -1, math.nan, True):
        with pytest.raises(InvalidParameter):
            tacit.Pure(epsilon=1.0).renyi(wrong)


@pytest.mark.parametrize("p", [[0.5, 0.3, 0.2], [0.9, 0.09, 0.01], [0.3334, 0.3333, 0.3333]])
def test_order_one_of_tables(p: list[float]) -> None:
    """From above, and close: theorem `kullback-leibler`."""
    q = [0.3, 0.3, 0.4]
    truth = max(kl(p, q), kl(q, p))
    found = tacit.Profile.from_pair(p, q).renyi(1)
    assert truth <= found * (1 + 1e-12)
    assert found <= truth * (1 + 1e-6)


def test_order_one_of_sampled_noise_is_the_integral() -> None:
    from scipy.integrate import quad

    def normal(x: float) -> float:
        return math.exp(-x * x / 8) / math.sqrt(8 * math.pi)

    def mixed(x: float) -> float:
        return 0.99 * normal(x) + 0.01 * normal(x - 1)

    truth = quad(lambda x: mixed(x) * math.log(mixed(x) / normal(x)), -24, 26, points=[0, 1], epsabs=1e-16)[0]
    event = E.PoissonSampledEvent(event=E.GaussianEvent(noise_multiplier=2.0), sampling_rate=0.01)
    once = tacit.accounting.profile_of(event, neighbours="add-or-remove").renyi(1)
    assert truth * (1 - 1e-8) <= once <= truth * (1 + 1e-5)
    often = E.RepeatedEvent(event=event, times=1000)
    assert tacit.accounting.profile_of(often, neighbours="add-or-remove").renyi(1) == pytest.approx(
        1000 * once
    )


SAMPLED = E.PoissonSampledEvent(event=E.LaplaceEvent(epsilon=1.0), sampling_rate=0.1)


@pytest.mark.parametrize(
    "event",
    [
        SAMPLED,
        E.MixedEvent(events=(SAMPLED, E.LaplaceEvent(epsilon=0.01)), weights=(0.5, 0.5)),
        E.MixedEvent(events=(E.RepeatedEvent(event=SAMPLED, times=2),), weights=(1.0,)),
        E.RepeatedEvent(event=SAMPLED, times=2),
    ],
)
@pytest.mark.parametrize(
    "budget",
    [
        tacit.Pure(epsilon=9.0),
        tacit.Approximate(epsilon=9.0, delta=0.1),
        tacit.Concentrated(rho=9.0),
        tacit.GaussianDP(mu=9.0),
        tacit.Renyi(orders=(2.0,), epsilons=(9.0,)),
    ],
    ids=lambda b: b.kind,
)
def test_the_gain_of_poisson_sampling_is_no_gain_for_replaced_units(
    event: E.Event, budget: tacit.guarantees.Bound
) -> None:
    """Poisson sampling of noise that hides a replaced record: who tells the sample's size gives all of epsilon away.

    With the record in the sample (probability q) the outputs P and P' differ by e^1 and say "one more"; without it the
    output R says "one less". On the former the ratio of q P + (1 - q) R to q P' + (1 - q) R is e^1, not 1 + q (e - 1).
    """
    running = filter_for(budget)
    with pytest.raises(NoLaw, match="replace-one"):
        running.admit(event, neighbours="replace-one")
    with pytest.raises(NoLaw, match="replace-one"):
        running.fits(event, neighbours="replace-one")
    running.admit(event)
    for accountant in ("pure", "zcdp"):
        with pytest.raises(NoLaw, match="replace-one"):
            tacit.account(event, delta=1e-6, neighbours="replace-one", accountant=accountant)


def test_no_sample_and_members_of_no_weight_are_no_obstacle() -> None:
    never = E.PoissonSampledEvent(event=E.LaplaceEvent(epsilon=1.0), sampling_rate=0.0)
    mixed = E.MixedEvent(events=(SAMPLED, E.LaplaceEvent(epsilon=0.25)), weights=(0.0, 1.0))
    running = filter_for(tacit.Pure(epsilon=1.0))
    running.admit(never, neighbours="replace-one")
    running.admit(mixed, neighbours="replace-one")
    assert running.spent == tacit.Pure(epsilon=0.25)


def test_what_a_refusal_tells_fits_together() -> None:
    """In mu as well, whose square is what is added up; and a budget with something left does not read as spent."""

    def words(text: str, name: str) -> list[Fraction]:
        return [Fraction(found) for found in re.findall(rf"{name} ([0-9.e-]+)", text)]

    for budget, event, name in (
        (tacit.GaussianDP(mu=1), E.GaussianEvent(noise_multiplier=14), "mu"),
        (tacit.Pure(epsilon=1), E.PureEvent(epsilon=0.00999951), "epsilon"),
        (
            tacit.Approximate(epsilon=1, delta=1e-6),
            E.ApproximateEvent(epsilon=0.0499993, delta=1e-9),
            "epsilon",
        ),
    ):
        running = filter_for(budget)
        with pytest.raises(BudgetExceeded) as refused:  # noqa: PT012
            while True:
                running.admit(event)
        spent, asked, left, _ = words(str(refused.value), name)
        assert asked > left
        assert spent < 1
        spent, of, left = words(repr(running), name)
        assert spent < of == 1
        assert left > 0
    advanced = repr(AdvancedFilter(tacit.Approximate(epsilon=1, delta=1e-6)))
    assert advanced.startswith("AdvancedFilter: spent rho 0 and delta 0 of rho")
