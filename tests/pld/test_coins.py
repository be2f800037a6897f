"""Compositions of mixtures, and of shuffled answers whose atoms are gathered: both from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.accounting import account, accountants
from tacit.accounting import events as e
from tacit.pld import ShuffledPair
from tacit.pld.pairs import laplace as bounded_range
from tacit.pld.pairs import shuffled


def split(
    plan: tuple[e.SimpleEvent, e.SimpleEvent], weights: tuple[float, float], n: int, epsilon: float
) -> list[float]:
    """Both ends of delta by the coins' outcomes: k of n times the first, in C(n, k) ways."""
    ends = [0.0, 0.0]
    for k in range(n + 1):
        parts = [e.RepeatedEvent(event=one, times=t) for one, t in zip(plan, (k, n - k), strict=True) if t]
        chance = math.comb(n, k) * weights[0] ** k * weights[1] ** (n - k)
        found = account(parts, epsilon=epsilon).delta
        ends = [ends[0] + chance * found.low, ends[1] + chance * found.high]
    return ends


LAPLACE, GAUSSIAN = e.LaplaceEvent(epsilon=0.4), e.GaussianEvent(noise_multiplier=4.0)
INTEGERS = e.DiscreteGaussianEvent(noise_multiplier=3.0)
PAIRS = (
    (LAPLACE, e.LaplaceEvent(epsilon=0.9)),
    (LAPLACE, GAUSSIAN),
    (INTEGERS, e.RandomizedResponseEvent(epsilon=0.3)),
)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("n", [2, 7])
def test_coins_by_their_outcomes(pair: tuple[e.SimpleEvent, e.SimpleEvent], n: int) -> None:
    """Theorem `coin-mixture`, for a composition: the transforms of members add up by their weights."""
    weights = (0.3, 0.7)
    coin = e.MixedEvent(events=pair, weights=weights)
    for epsilon in (0.2, 1.1):
        found = account([e.RepeatedEvent(event=coin, times=n)], epsilon=epsilon).delta
        low, high = split(pair, weights, n, epsilon)
        assert found.low <= high * (1 + 1e-9)
        assert low * (1 - 1e-9) <= found.high
        assert found.width <= 0.01 * found.high + 1e-12


@pytest.mark.parametrize("n", [2, 10, 40])
@pytest.mark.parametrize("delta", [1e-4, 1e-10])
def test_different_coins_have_both_ends(n: int, delta: float) -> None:
    plan = [
        e.MixedEvent(
            events=(
                e.LaplaceEvent(epsilon=x / n**0.5),
                e.GaussianEvent(noise_multiplier=n**0.5 / x),
                LAPLACE,
            ),
            weights=(0.5, 0.3, 0.1),
        )
        for x in np.linspace(0.5, 1.0, n).tolist()
    ]
    found = account(plan, delta=delta).epsilon
    assert found.width <= 1e-3 * max(1.0, found.high)


def test_members_that_have_no_mass_do_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the grid of losses: the narrow member has no mass where the wide one decides."""
    from tacit.pld.characteristic import CharacteristicComposition

    monkeypatch.setattr(CharacteristicComposition, "of", staticmethod(lambda parts, exact: None))
    coin = e.MixedEvent(events=(LAPLACE, e.GaussianEvent(noise_multiplier=3.0)), weights=(0.5, 0.5))
    found = account([coin, e.MixedEvent(events=(LAPLACE, GAUSSIAN), weights=(0.9, 0.1))], delta=1e-7).epsilon
    assert 0 < found.width <= 1e-3 * max(1.0, found.high)


@pytest.mark.parametrize("case", [(1.0, 400, 0), (2.0, 300, 10), (3.0, 5000, 2)])
def test_gathered_atoms_lie_above_and_near(
    case: tuple[float, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilon, people, outcomes = case
    pair = ShuffledPair(epsilon=epsilon, people=people, outcomes=outcomes)

    def curve(few: int) -> list[float]:
        monkeypatch.setattr(shuffled, "_FEW", few)
        shuffled._atoms.cache_clear()
        return [pair.hockey_stick(x * shuffled._deviation(pair)).high for x in (0.0, 0.5, 1.0, 3.0, 6.0)]

    apart, gathered = curve(10**9), curve(0)
    shuffled._atoms.cache_clear()
    for one, other in zip(apart, gathered, strict=True):
        assert one * (1 - 1e-8) <= other <= one * (1 + 2e-4) + 1e-25


def test_masses_of_fair_coins() -> None:
    c = np.array([0, 1, 2, 5, 79, 80, 81, 200, 2001])
    values, masses, beyond, error = shuffled._fair(c)
    for row, trials in enumerate(c.tolist()):
        for value, mass in zip(values[row].tolist(), masses[row].tolist(), strict=True):
            if mass > 0:
                assert mass == pytest.approx(math.comb(trials, value) / 2**trials, rel=error)
        assert masses[row].sum() + beyond[row] == pytest.approx(1.0, abs=1e-12)


def test_sums_of_divergences_are_left_where_both_ends_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """A width of a thousandth of epsilon is enough above 1: nothing else can improve on it by more."""

    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(accountants, "TOLERANCE", 4e-3)
    monkeypatch.setattr(accountants, "_renyi_below", refused)
    plan = [e.RepeatedEvent(event=e.LaplaceEvent(epsilon=0.5), times=400), e.LaplaceEvent(epsilon=0.3)]
    found = account(plan, delta=1e-6).epsilon
    assert 1e-3 < found.width <= 1e-3 * found.high


def test_each_divergence_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expansion of every order needs the divergences of all orders below it."""
    asked: list[float] = []
    real = bounded_range.ExponentialPair.renyi

    def counted(self: bounded_range.ExponentialPair, order: float) -> float:
        asked.append(order)
        return real(self, order)

    monkeypatch.setattr(bounded_range.ExponentialPair, "renyi", counted)
    event = e.PoissonSampledEvent(event=e.ExponentialEvent(epsilon=0.731), sampling_rate=0.0371)
    accountants.bound_of([event], accountant="renyi")
    whole = [order for order in asked if order == int(order)]
    assert len(whole) <= 1.1 * len(set(whole))


@pytest.mark.parametrize("noise", [1200.0, 5000.0])
def test_one_wide_discrete_gaussian_is_known_from_both_sides(noise: float) -> None:
    """At this width it is the continuous curve to a millionth; its rho alone gives a sixth more."""
    found = account(e.DiscreteGaussianEvent(noise_multiplier=noise), delta=1e-6).epsilon
    near = account(e.GaussianEvent(noise_multiplier=noise), delta=1e-6).epsilon.high
    assert found.low <= near * (1 + 1e-6)
    assert near * (1 - 1e-6) <= found.high <= 1.01 * near
    at = account(e.DiscreteGaussianEvent(noise_multiplier=noise), epsilon=near).delta
    assert at.low <= 1e-6 * (1 + 1e-4)
    assert 1e-6 * (1 - 1e-4) <= at.high <= 1.01e-6


def test_frequencies_that_cannot_be_paid_for_take_no_memory() -> None:
    """Many releases of little noise: 2^34 frequencies were held before it was seen that they are too many."""
    from tacit.pld.fourier import Piece, _gone

    size = 1 << 18
    piece = Piece(
        start=0, weights=np.full((1, size), 1 / size), counts=np.ones(1), variances=np.ones(1), unit=1e-15
    )
    assert not _gone([piece], 1e-3, 1.0, 65536, 1e8)
