"""Profiles: exact where they are closed, certified from both sides where they are composed."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, deltas, epsilons
from tacit.exact.rounding import sum_up
from tacit.guarantees import Bound

AT = (0.0, 0.1, 0.5, 1.0, 2.0)


@given(any_closed)
def test_the_profile_of_a_bound_is_its_curve(bound: Bound) -> None:
    if not any(bound.parameters.values()) or bound.delta_at(0.0) == 0:
        return
    curve = tacit.Profile.of(bound)
    for epsilon in AT:
        assert curve.delta(epsilon) == pytest.approx(bound.delta_at(epsilon), rel=1e-9, abs=1e-15)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0.05, 1.5), deltas), min_size=2, max_size=5), st.floats(0, 3))
def test_optimal_composition_encloses_the_enumerated_product(
    parts: list[tuple[float, float]], at: float
) -> None:
    """Kairouz, Oh, Viswanath: the product of the worst pairs, enumerated, for unequal (epsilon, delta)."""
    pair: tuple[list[float], list[float]] = ([1.0], [1.0])
    for epsilon, delta in parts:
        pair = second.product(pair, second.worst_approximate(epsilon, delta))
    exact = second.both(*pair, at)
    bounds = [tacit.Approximate(epsilon=e, delta=d) for e, d in parts]
    curve = tacit.compose(*bounds, law="optimal")
    assert isinstance(curve, tacit.Profile)
    found = curve.delta_between(at)
    assert found.low <= exact * (1 + 1e-9) + 1e-14
    assert found.high >= exact * (1 - 1e-9) - 1e-14
    assert found.high <= exact * 1.01 + 1e-6
    with_basic = sum(d for _, d in parts)
    if with_basic < 1:
        total = sum_up(e for e, _ in parts)
        assert curve.delta(total) <= with_basic * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(
    ("epsilon", "delta", "times"), [(0.1, 1e-8, 100), (0.5, 0.0, 30), (0.01, 1e-9, 1000)]
)
def test_homogeneous_composition_against_the_closed_sum(epsilon: float, delta: float, times: int) -> None:
    """1 - (1-delta)^k (1 - sum_i C(k,i) p^i q^(k-i) (1 - e^{at - (2i-k) epsilon})+)."""
    curve = tacit.repeat(tacit.Approximate(epsilon=epsilon, delta=delta), times, law="optimal")
    assert isinstance(curve, tacit.Profile)
    p = 1 / (1 + math.exp(-epsilon))
    for target in (1e-5, 1e-3):
        found = curve.epsilon_between(target)
        assert 0 <= found.width <= 2e-3

        def exact(at: float) -> float:
            total = 0.0
            for i in range(times + 1):
                loss = (2 * i - times) * epsilon
                if loss > at:
                    log_mass = (
                        math.lgamma(times + 1)
                        - math.lgamma(i + 1)
                        - math.lgamma(times - i + 1)
                        + i * math.log(p)
                        + (times - i) * math.log1p(-p)
                    )
                    total += math.exp(log_mass) * -math.expm1(at - loss)
            return 1 - (1 - delta) ** times * (1 - total)

        assert exact(found.high) <= target * (1 + 1e-7)
        assert exact(found.low * (1 - 1e-9)) >= target * (1 - 1e-7)


def test_composition_is_exactly_associative_and_commutative() -> None:
    a, b, c = (
        tacit.Profile.laplace(epsilon=0.3),
        tacit.Profile.gaussian(mu=0.5),
        tacit.Profile.of(tacit.Pure(epsilon=0.2)),
    )
    together = tacit.compose(a, b, c)
    for order in itertools.permutations((a, b, c)):
        assert tacit.compose(*order) == together
        assert tacit.compose(tacit.compose(order[0], order[1]), order[2]) == together
    assert tacit.repeat(a, 5) == tacit.compose(a, a, a, a, a)
    assert tacit.repeat(tacit.compose(a, b), 2) == tacit.compose(a, b, a, b)
    assert tacit.compose(
        tacit.Profile.gaussian(mu=3), tacit.Profile.gaussian(mu=4)
    ) == tacit.Profile.gaussian(mu=5)


@settings(max_examples=15)
@given(st.floats(0.1, 1), st.floats(0.1, 1), st.floats(0, 2))
def test_two_laplace_releases_against_integration(one: float, two: float, at: float) -> None:
    """The loss of the first integrated against the curve of the second, from the densities."""
    import numpy as np

    curve = tacit.compose(tacit.Profile.laplace(epsilon=one), tacit.Profile.laplace(epsilon=two))
    x = np.linspace(-40 / one, 1 + 40 / one, 400_001)
    p = 0.5 * one * np.exp(-one * np.abs(x - 1))
    loss = one * (np.abs(x) - np.abs(x - 1))
    rest = at - loss
    inner = np.where(
        rest >= two, 0.0, np.where(rest <= -two, -np.expm1(np.minimum(rest, 0)), -np.expm1((rest - two) / 2))
    )
    exact = float(np.trapezoid(p * inner, x))
    found = curve.delta_between(at)  # type: ignore[attr-defined]
    assert found.low - 1e-6 <= exact <= found.high + 1e-6


@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_poisson_sampling_keeps_the_directions_apart(rate: float, mu: float) -> None:
    sampled = tacit.subsample(tacit.GaussianDP(mu=mu), rate=rate, scheme="poisson")
    assert isinstance(sampled, tacit.Profile)
    assert len(sampled.directions) == 2
    removal, addition = sampled.directions

    def density(x: float, m: float) -> float:
        return math.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)

    def mixed(x: float) -> float:
        return (1 - rate) * density(x, 0) + rate * density(x, mu)

    points = [-30.0, *(x / 4 for x in range(-40, 80)), 40.0]
    for at in (0.0, 0.2, 0.8):
        removed = second.integrated_hockey_stick(mixed, lambda x: density(x, 0), at, points)
        added = second.integrated_hockey_stick(lambda x: density(x, 0), mixed, at, points)
        assert removal.delta(at).high == pytest.approx(removed, rel=1e-6, abs=1e-10)
        assert addition.delta(at).high == pytest.approx(added, rel=1e-6, abs=1e-10)
        assert sampled.delta(at) == pytest.approx(max(removed, added), rel=1e-6, abs=1e-10)


def test_group_and_sampled_curves_are_above_the_exact_ones() -> None:
    noise = tacit.Profile.laplace(epsilon=0.5)
    for at in AT:
        exact = tacit.Profile.laplace(epsilon=1.0).delta(at)  # two steps move the mean by two
        assert tacit.group(noise, size=2).delta_at(at) >= exact - 1e-12
    assert tacit.group(tacit.Profile.gaussian(mu=0.5), size=2) == tacit.Profile.gaussian(mu=1.0)
    sampled = tacit.subsample(tacit.GaussianDP(mu=1.0), rate=0.25, scheme="without-replacement")
    for at in AT:
        inner = math.log1p(math.expm1(at) / 0.25)
        assert sampled.delta_at(at) == pytest.approx(0.25 * tacit.GaussianDP(mu=1.0).delta(inner), rel=1e-6)
    assert tacit.repeat(sampled, 4).delta_at(0.5) >= sampled.delta_at(0.5)
    assert tacit.repeat(tacit.group(noise, size=2), 3).delta_at(1.0) >= tacit.group(noise, size=2).delta_at(
        1.0
    )


def test_across_kinds_the_profile_is_the_common_ground() -> None:
    mixed = tacit.compose(tacit.Concentrated(rho=0.02), tacit.Approximate(epsilon=0.1, delta=1e-7))
    assert isinstance(mixed, tacit.Profile)
    # not below either part, and not above the plain addition of the two conversions
    assert mixed.delta(0.5) >= tacit.Approximate(epsilon=0.1, delta=1e-7).delta(0.5)
    apart = tacit.Concentrated(rho=0.02).epsilon(1e-6) + 0.1
    assert mixed.epsilon(1.2e-6) <= apart * 1.01
    renyi = tacit.convert(tacit.GaussianDP(mu=0.3), tacit.Renyi)
    assert tacit.compose(renyi, tacit.Approximate(epsilon=0.1, delta=1e-7)).delta_at(1.0) >= (
        tacit.GaussianDP(mu=0.3).delta(1.0)
    )


def test_tabulated_pairs() -> None:
    curve = tacit.Profile.from_pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    for at in AT:
        assert curve.delta(at) == pytest.approx(second.both([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], at), abs=1e-15)
    assert curve.renyi(2.0) == pytest.approx(second.renyi([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2.0))
    lopsided = tacit.Profile.from_pair([0.9, 0.1, 0.0], [0.5, 0.25, 0.25])
    for at in AT:
        assert lopsided.delta(at) == pytest.approx(
            second.both([0.9, 0.1, 0.0], [0.5, 0.25, 0.25], at), abs=1e-15
        )
    for bad in (([0.5, 0.6], [0.5, 0.5]), ([0.5], [0.5, 0.5]), ([], []), ([-0.5, 1.5], [0.5, 0.5])):
        with pytest.raises(tacit.TacitError):
            tacit.Profile.from_pair(*bad)


@given(epsilons.filter(lambda e: 0 < e < 5), deltas)
def test_profiles_from_a_loss_distribution(epsilon: float, delta: float) -> None:
    p, q = second.randomized_response(epsilon)
    curve = tacit.Profile.from_losses(
        [epsilon, -epsilon], [(1 - delta) * p[0], (1 - delta) * p[1]], infinite=delta
    )
    bound = tacit.Approximate(epsilon=epsilon, delta=delta)
    for at in AT:
        assert curve.delta(at) == pytest.approx(bound.delta(at), rel=1e-9, abs=1e-15)
    assert q[0] == p[1]


@pytest.mark.parametrize(
    ("losses", "probabilities"),
    [([], []), ([1.0], [0.5, 0.5]), ([math.inf], [1.0]), ([1.0], [-1.0]), ([1.0], [0.5]), ([-1.0], [1.0])],
)
def test_impossible_loss_distributions(losses: list[float], probabilities: list[float]) -> None:
    with pytest.raises(tacit.TacitError):
        tacit.Profile.from_losses(losses, probabilities)


@given(epsilons.filter(lambda e: 0 < e < 5), deltas)
def test_implications_to_and_from_profiles(epsilon: float, delta: float) -> None:
    def promise(bound: Bound) -> tacit.Guarantee:
        return tacit.Guarantee(bound=bound, unit=tacit.rows())

    point = tacit.Approximate(epsilon=epsilon, delta=delta)
    curve = tacit.Profile.of(point)
    assert promise(curve).implies(promise(curve))
    assert promise(curve).implies(promise(point))
    smaller = tacit.Approximate(epsilon=epsilon * 0.9, delta=delta * 0.9)
    assert promise(smaller).implies(promise(curve))
    larger = tacit.Approximate(epsilon=epsilon * 1.1, delta=min(0.9, delta + 0.01))
    assert not promise(larger).implies(promise(curve))
    assert promise(tacit.GaussianDP(mu=0.5)).implies(promise(tacit.Profile.gaussian(mu=0.6)))
    assert not promise(tacit.GaussianDP(mu=0.7)).implies(promise(tacit.Profile.gaussian(mu=0.6)))


def test_extreme_profiles() -> None:
    many = tacit.repeat(tacit.Profile.laplace(epsilon=1e-3), 10**6)
    found = many.epsilon_between(1e-6)  # type: ignore[attr-defined]
    assert 0 < found.low <= found.high < 1000
    assert math.isinf(
        tacit.compose(tacit.GaussianDP(mu=1), tacit.Approximate(epsilon=1, delta=1e-6)).epsilon(1e-7)
    )  # type: ignore[attr-defined]
    assert (
        tacit.compose(tacit.Profile.laplace(epsilon=0.5), tacit.Profile.laplace(epsilon=0.25)).epsilon(0.0)
        == 0.75
    )  # type: ignore[attr-defined]
