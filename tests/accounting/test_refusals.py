"""Refusals of filters and of records of events, each reached by an input of its own; sums of unequal releases."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tacit import errors
from tacit.accounting import codec, events
from tacit.accounting import codec as text
from tacit.accounting.accountants import covers
from tacit.accounting.filters import AdvancedFilter, RenyiFilter, filter_for
from tacit.guarantees import Approximate, Concentrated, GaussianDP, Neighbours, Profile, Pure, Renyi

LAPLACE = events.LaplaceEvent(epsilon=0.25)
GAUSSIAN = events.GaussianEvent(noise_multiplier=2.0)
TENTH = Fraction(1, 10)


def spent(filter_: Any, *releases: Any) -> Any:
    for release in releases:
        filter_.admit(release)
    return filter_


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "one release too many": (
        lambda: spent(filter_for(Pure(epsilon=1)), Pure(epsilon=0.75), Pure(epsilon=0.26)), "would fit",
    ),
    "a delta too many": (
        lambda: spent(filter_for(Approximate(epsilon=9, delta=1e-6)), *[Approximate(epsilon=1, delta=6e-7)] * 2),
        "would fit",
    ),
    "a rho too many": (
        lambda: spent(filter_for(Concentrated(rho=1)), Concentrated(rho=0.75), Concentrated(rho=0.26)), "would fit",
    ),
    "a mu too many": (
        lambda: spent(filter_for(GaussianDP(mu=1)), GaussianDP(mu=0.8), GaussianDP(mu=0.61)), "would fit",
    ),
    "a divergence too many": (
        lambda: spent(RenyiFilter(order=2, epsilon=1), *[Renyi(orders=(2.0,), epsilons=(0.6,))] * 2), "would fit",
    ),
    "an event too many": (lambda: spent(filter_for(Pure(epsilon=1)), *[LAPLACE] * 5), "would fit"),
    "a filter for a curve": (lambda: filter_for(Profile.laplace(epsilon=1)), "Rényi at one order"),
    "a filter for two orders": (
        lambda: filter_for(Renyi(orders=(2.0, 3.0), epsilons=(1.0, 1.0))), "Rényi at one order",
    ),
    "a pickled filter": (lambda: pickle.dumps(filter_for(Pure(epsilon=1))), "admit the whole budget again"),
    "a copied filter": (lambda: copy.copy(filter_for(Pure(epsilon=1))), "admit the whole budget again"),
    "a deeply copied filter": (lambda: copy.deepcopy(filter_for(Pure(epsilon=1))), "admit the whole budget again"),
    "exact numbers of an event": (
        lambda: filter_for(Pure(epsilon=1)).admit(LAPLACE, exact={"epsilon": TENTH}), "its own numbers",
    ),
    "exact numbers of another bound": (
        lambda: filter_for(Pure(epsilon=1)).admit(Pure(epsilon=0.1), exact={"epsilon": Fraction(1, 11)}),
        "round to them",
    ),
    "exact numbers that are below": (
        lambda: filter_for(Pure(epsilon=1)).admit(Pure(epsilon=0.1), exact={"epsilon": Fraction(9, 100)}),
        "round to them",
    ),
    "exact numbers that are none of the bound": (
        lambda: filter_for(Pure(epsilon=1)).admit(Pure(epsilon=0.1), exact={"rho": TENTH}), "round to them",
    ),
    "exact numbers that are floats": (
        lambda: filter_for(Pure(epsilon=1)).admit(Pure(epsilon=0.1), exact={"epsilon": 0.1}),  # type: ignore[dict-item]
        "round to them",
    ),
    "a curve for a sum of pairs": (
        lambda: filter_for(Approximate(epsilon=1, delta=1e-6)).admit(GaussianDP(mu=0.1)), "single pairs",
    ),
    "Gaussian noise for a sum of pure epsilons": (lambda: filter_for(Pure(epsilon=1)).admit(GAUSSIAN), "noise"),
    "a delta for a sum of divergences": (
        lambda: RenyiFilter(order=2, epsilon=1).admit(Approximate(epsilon=0.1, delta=1e-6)), "every order",
    ),
    "advanced composition without a share": (
        lambda: AdvancedFilter(Approximate(epsilon=1, delta=1e-6), share=0), "lie in",
    ),
    "advanced composition without a delta": (lambda: AdvancedFilter(Approximate(epsilon=1, delta=0)), "lie in"),
    "events against a curve": (
        lambda: covers(Profile.laplace(epsilon=1), [LAPLACE], neighbours=Neighbours.ADD_OR_REMOVE), "list of numbers",
    ),
    "an event with a number that is none": (
        lambda: codec.loads('{"version": 1, "kind": "laplace", "epsilon": NaN}'), "be JSON",
    ),
    "a flag for a number": (lambda: text._number("epsilon", True), "be a number"),
    "a word for a number": (lambda: text._number("epsilon", "much"), "be a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_what_was_refused_is_not_charged() -> None:
    """A budget is filled to the last number by unequal parts, and a refusal in between costs nothing."""
    kept = filter_for(Pure(epsilon=1))
    kept.admit(Pure(epsilon=0.5))
    with pytest.raises(errors.BudgetExceeded):
        kept.admit(Pure(epsilon=0.75))
    assert not kept.fits(Pure(epsilon=0.75))
    kept.admit(Pure(epsilon=0.375))
    kept.admit(Pure(epsilon=0.125))
    assert kept.left.epsilon == 0  # type: ignore[attr-defined]
    assert not kept.fits(Pure(epsilon=1e-9))


def test_sums_of_each_kind_are_their_own() -> None:
    """epsilons, deltas and rhos add; mus add as squares; repeated events count as often as they run."""
    pairs = spent(
        filter_for(Approximate(epsilon=1, delta=1e-5)),
        Approximate(epsilon=0.25, delta=1e-6), Approximate(epsilon=0.5, delta=3e-6),
    )  # fmt: skip
    assert pairs.left.epsilon == pytest.approx(0.25)
    assert pairs.left.delta == pytest.approx(6e-6)
    rhos = spent(filter_for(Concentrated(rho=1)), Concentrated(rho=0.25), Concentrated(rho=0.5))
    assert rhos.left.rho == pytest.approx(0.25)
    mus = spent(filter_for(GaussianDP(mu=1)), GaussianDP(mu=0.6))
    assert mus.left.mu == pytest.approx(0.8)
    assert not mus.fits(GaussianDP(mu=0.81))
    ran = spent(filter_for(Pure(epsilon=1)), events.RepeatedEvent(event=LAPLACE, times=3))
    assert ran.left.epsilon == pytest.approx(0.25)
    both = events.ComposedEvent(events=(LAPLACE, events.LaplaceEvent(epsilon=0.5)))
    assert spent(filter_for(Pure(epsilon=1)), both).left.epsilon == pytest.approx(0.25)
    normal = spent(filter_for(GaussianDP(mu=1)), events.RepeatedEvent(event=GAUSSIAN, times=3))
    assert normal.left.mu == pytest.approx(0.5)


def test_ten_tenths_fill_a_budget_exactly() -> None:
    kept = filter_for(Pure(epsilon=1))
    for _ in range(10):
        kept.admit(Pure(epsilon=0.1), exact={"epsilon": TENTH})
    assert kept.left.epsilon == 0  # type: ignore[attr-defined]
    with pytest.raises(errors.BudgetExceeded):
        kept.admit(Pure(epsilon=2.0**-60))


def test_advanced_composition_keeps_both_deltas() -> None:
    """Half of delta is for the losses, what is left for the parts' own deltas: two of them fill it."""
    kept = AdvancedFilter(Approximate(epsilon=3, delta=1e-6), share=0.25)
    assert kept.left.delta == pytest.approx(0.75e-6)
    kept.admit(Approximate(epsilon=0.1, delta=0.5e-6))
    assert kept.left.delta == pytest.approx(0.25e-6)
    with pytest.raises(errors.BudgetExceeded):
        kept.admit(Approximate(epsilon=0.1, delta=0.3e-6))
    kept.admit(Approximate(epsilon=0.1, delta=0.2e-6))
    many = AdvancedFilter(Approximate(epsilon=3, delta=1e-6))
    count = 0
    while many.fits(Pure(epsilon=0.1)):
        many.admit(Pure(epsilon=0.1))
        count += 1
    # rho = epsilon tanh(epsilon/2) each; together their (epsilon, delta/2) must lie within 3.
    from tacit.guarantees import convert

    rho = 0.1 * 0.04995837495787997
    assert convert(Concentrated(rho=rho * count), Approximate, delta=0.5e-6).epsilon <= 3
    assert convert(Concentrated(rho=rho * (count + 2)), Approximate, delta=0.5e-6).epsilon > 3
