"""Every conversion is an upper bound on an independently computed profile, and the sharper is sharper."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, epsilons, orders
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import COMMON_ORDERS, LAWS, Bound, Renyi, theorem

GAUSSIAN_MUS = (0.2, 1.0, 2.5)
AT = (0.0, 0.25, 1.0, 3.0)


@pytest.mark.parametrize("mu", GAUSSIAN_MUS)
def test_conversions_of_gaussian_noise_are_above_the_integrated_profile(mu: float) -> None:
    exact = {e: second.gaussian_hockey_stick(mu, e) for e in AT}
    start = tacit.GaussianDP(mu=mu)
    concentrated = tacit.convert(start, tacit.Concentrated)
    renyi = tacit.convert(start, tacit.Renyi)
    for bound in (start, concentrated, renyi, tacit.convert(concentrated, tacit.Renyi)):
        for epsilon, value in exact.items():
            assert bound.delta_at(epsilon) >= value - 1e-12
    for delta in (1e-3, 1e-6):
        for point in (
            tacit.convert(concentrated, tacit.Approximate, delta=delta),
            tacit.convert(renyi, tacit.Approximate, delta=delta),
            tacit.convert(concentrated, tacit.Approximate, delta=delta, law="zcdp-to-approximate-printed"),
            tacit.convert(renyi, tacit.Approximate, delta=delta, law="renyi-to-approximate-printed"),
        ):
            assert second.gaussian_hockey_stick(mu, float(point.epsilon)) <= delta * (1 + 1e-9)


@given(epsilons.filter(lambda e: e > 0))
def test_conversions_of_pure_are_above_randomised_response_and_nearly_reach_it(epsilon: float) -> None:
    if epsilon < 1e-4:
        return  # the second opinion, in floats, has no digits left there
    pair = second.randomized_response(epsilon)
    start = tacit.Pure(epsilon=epsilon)
    for bound in (
        tacit.convert(start, tacit.Approximate),
        tacit.convert(start, tacit.guarantees.Pointwise),
        tacit.convert(start, tacit.Concentrated),
        tacit.convert(start, tacit.Concentrated, law="pure-to-zcdp-printed"),
        tacit.convert(start, tacit.GaussianDP),
        tacit.convert(start, tacit.Renyi, orders=(1.5, 2.0, 4.0, math.inf)),
        tacit.convert(start, tacit.Renyi, law="pure-to-renyi-printed"),
    ):
        for at in (0.0, epsilon / 3, epsilon * 0.9):
            assert bound.delta_at(at) >= second.both(*pair, at) * (1 - 1e-9)
    # mu is the smallest possible: the Gaussian curve touches that of randomised response at epsilon = 0
    mu = tacit.convert(start, tacit.GaussianDP)
    assert mu.delta(0.0) == pytest.approx(second.both(*pair, 0.0), rel=1e-6)
    assert tacit.GaussianDP(mu=mu.mu * (1 - 1e-6)).delta(0.0) < second.both(*pair, 0.0)
    # rho is the smallest possible: the divergence at orders near 1 reaches a rho
    rho = tacit.convert(start, tacit.Concentrated).rho
    for order in (1.0001, 1.1, 2.0, 10.0):
        assert start.renyi(order) <= order * rho * (1 + 1e-12)
    assert start.renyi(1.0001) >= rho * (1 - 1e-3)
    assert rho <= epsilon**2 / 2 * (1 + 1e-15)


@given(any_closed, st.floats(1e-9, 0.5))
def test_sharper_is_never_worse_than_printed(bound: Bound, delta: float) -> None:
    if isinstance(bound, tacit.Concentrated):
        sharp = tacit.convert(bound, tacit.Approximate, delta=delta)
        printed = tacit.convert(bound, tacit.Approximate, delta=delta, law="zcdp-to-approximate-printed")
        assert sharp.epsilon <= printed.epsilon * (1 + 1e-12)
    if isinstance(bound, Renyi):
        sharp = tacit.convert(bound, tacit.Approximate, delta=delta)
        printed = tacit.convert(bound, tacit.Approximate, delta=delta, law="renyi-to-approximate-printed")
        assert sharp.epsilon <= printed.epsilon * (1 + 1e-12)


@given(st.floats(0.01, 5), st.floats(1e-12, 0.1))
def test_budgets_suffice(epsilon: float, delta: float) -> None:
    renyi = tacit.renyi_budget(epsilon=epsilon, delta=delta)
    assert renyi.orders[0] == pytest.approx(1 + 2 * math.log(1 / delta) / epsilon)
    assert tacit.convert(
        renyi, tacit.Approximate, delta=delta, law="renyi-to-approximate-printed"
    ).epsilon <= (epsilon * (1 + 1e-12))
    printed = tacit.concentrated_budget(epsilon=epsilon, delta=delta, printed=True)
    sharp = tacit.concentrated_budget(epsilon=epsilon, delta=delta)
    assert printed.rho <= sharp.rho
    assert sharp.delta(epsilon) <= delta
    assert printed.rho == pytest.approx(
        (math.sqrt(epsilon + math.log(1 / delta)) - math.sqrt(math.log(1 / delta))) ** 2, rel=1e-6
    )


def test_corrected_sensitivity_of_gaussian_noise() -> None:
    # Lecture 7, Thm 7.19 prints Delta/(2 sigma^2): at Delta = 2, sigma = 4 that would be 1/16, half the truth.
    mu = 2 / 4
    rho = tacit.convert(tacit.GaussianDP(mu=mu), tacit.Concentrated).rho
    assert rho == 2**2 / (2 * 4**2) == 0.125
    false = tacit.Concentrated(rho=2 / (2 * 4**2))
    # The printed constant under-reports: its divergence at order 8 is below the integrated one.
    exact = 8 * mu**2 / 2
    assert false.renyi(8) < exact <= tacit.Concentrated(rho=rho).renyi(8)
    assert false.delta(2.5) < second.gaussian_hockey_stick(mu, 2.5)


@given(st.floats(0.01, 5), st.floats(1e-9, 0.1))
def test_the_loss_is_small_with_the_probability_that_the_curve_shows(mu: float, tail: float) -> None:
    bound = tacit.convert(tacit.GaussianDP(mu=mu), tacit.guarantees.Pointwise, delta=tail)
    # the loss of Gaussian noise is N(mu^2/2, mu^2): its exact tail must be below the stated one
    exceeds = 0.5 * math.erfc((float(bound.epsilon) / mu - mu / 2) / math.sqrt(2))
    assert exceeds <= tail
    assert tacit.convert(bound, tacit.Approximate).delta >= tacit.GaussianDP(mu=mu).delta(
        float(bound.epsilon)
    )


def test_there_is_no_way_back() -> None:
    for start in (
        tacit.Approximate(epsilon=1, delta=1e-6),
        tacit.GaussianDP(mu=1),
        tacit.Concentrated(rho=1),
    ):
        with pytest.raises(tacit.NoLaw):
            tacit.convert(start, tacit.Pure)
    for target in (tacit.Concentrated, tacit.GaussianDP, tacit.Renyi):
        with pytest.raises(tacit.NoLaw):
            tacit.convert(tacit.Approximate(epsilon=1, delta=1e-6), target)
    with pytest.raises(tacit.NoLaw):
        tacit.convert(tacit.Concentrated(rho=1), tacit.GaussianDP)
    with pytest.raises(tacit.NoLaw, match="Rényi"):
        tacit.Approximate(epsilon=1, delta=1e-6).renyi(2)


def test_bad_conversions() -> None:
    rho = tacit.Concentrated(rho=0.1)
    with pytest.raises(InvalidParameter, match="one at a time"):
        tacit.convert(rho, tacit.Approximate)
    with pytest.raises(InvalidParameter, match="one at a time"):
        tacit.convert(rho, tacit.Approximate, delta=1e-6, epsilon=1.0)
    with pytest.raises(InvalidParameter):
        tacit.convert(rho, tacit.Approximate, delta=1.0)
    with pytest.raises(InvalidParameter):
        tacit.convert(rho, tacit.Renyi, orders=(1.0,))
    with pytest.raises(InvalidParameter, match="fit the law"):
        tacit.convert(rho, tacit.Renyi, delta=0.1)
    with pytest.raises(UnknownName):
        tacit.convert(rho, tacit.Approximate, delta=1e-6, law="nonsense")
    with pytest.raises(tacit.NoLaw, match="no finite epsilon"):
        tacit.convert(rho, tacit.Approximate, delta=0.0)


def test_every_law_names_a_theorem() -> None:
    assert len(LAWS) > 40
    for entry in LAWS.values():
        assert entry.theorem == theorem(entry.theorem.id)
    assert len(COMMON_ORDERS) == len(set(COMMON_ORDERS))


@given(any_closed, st.lists(orders, min_size=1, max_size=3, unique=True))
def test_a_bound_that_answers_at_an_order_converts_at_it(bound: Bound, at: list[float]) -> None:
    """`renyi(order)` and `convert(..., Renyi)` say the same, for curves too, or both refuse."""
    known: list[Bound] = [bound]
    if isinstance(bound, tacit.Pure | tacit.GaussianDP):
        known.append(tacit.Profile.of(bound))
    for one in known:
        try:
            wanted = [one.renyi(a) for a in at]
        except tacit.NoLaw:
            with pytest.raises(tacit.NoLaw):
                tacit.convert(one, tacit.Renyi, orders=at)
            continue
        if math.inf in wanted:
            continue
        assert [tacit.convert(one, tacit.Renyi, orders=at).renyi(a) for a in at] == wanted


def test_the_curve_of_laplace_noise_has_divergences() -> None:
    curve = tacit.Profile.laplace(epsilon=1.0)
    table = tacit.convert(curve, tacit.Renyi, orders=(2.0, 8.0))
    # Mironov 2017, Prop. 6: ln(a/(2a-1) e^(a-1) + (a-1)/(2a-1) e^-a) / (a-1)
    for a in (2.0, 8.0):
        exact = math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)
        assert table.renyi(a) == pytest.approx(exact, rel=1e-12)
        assert table.renyi(a) == curve.renyi(a)
    assert len(tacit.convert(curve, tacit.Renyi).orders) > 50
    given_away = tacit.Profile.of(tacit.Approximate(epsilon=1, delta=1e-6))
    with pytest.raises(tacit.NoLaw, match="give the data away"):
        tacit.convert(given_away, tacit.Renyi)
    with pytest.raises(tacit.NoLaw, match="give the data away"):
        tacit.convert(tacit.Approximate(epsilon=1, delta=1e-6), tacit.Renyi, orders=(2.0,))
    plain = tacit.convert(tacit.Approximate(epsilon=1, delta=0), tacit.Renyi, orders=(2.0,))
    assert plain.renyi(2.0) == tacit.Pure(epsilon=1).renyi(2.0)
    with pytest.raises(tacit.errors.EmptyComposition):
        tacit.convert(curve, tacit.Renyi, orders=())


def test_what_is_named_is_never_ignored() -> None:
    stated = tacit.Approximate(epsilon=1, delta=1e-6)
    assert tacit.convert(stated, tacit.Approximate) is stated
    assert tacit.convert(stated, tacit.Approximate, delta=1e-3).epsilon == stated.epsilon(1e-3) < 1
    assert tacit.convert(stated, tacit.Approximate, epsilon=0.5).delta == stated.delta(0.5)
    with pytest.raises(tacit.NoLaw):
        tacit.convert(stated, tacit.Approximate, delta=1e-9)
    for bound in (tacit.Pure(epsilon=1), tacit.GaussianDP(mu=1), stated):
        with pytest.raises(InvalidParameter):
            tacit.convert(bound, type(bound), orders=(2.0,))


@pytest.mark.parametrize(
    ("mu", "tail"), [(0.2**0.5, 1e-6), (1.0, 1e-3), (0.1, 1e-9), (3.0, 0.2), (2.0, 0.01)]
)
def test_the_loss_of_gaussian_noise_and_of_all_that_is_as_private(mu: float, tail: float) -> None:
    """Theorems `gaussian-loss-tail` and `profile-to-pointwise`: the normal law, and mechanisms that merge outputs."""
    from scipy.stats import norm

    from tacit.guarantees import GaussianDP, Pointwise, convert

    bound = GaussianDP(mu=mu)
    noise = convert(bound, Pointwise, delta=tail, law="gaussian-noise-to-pointwise").epsilon
    assert noise == pytest.approx(mu * mu / 2 + mu * norm.isf(tail), rel=1e-9)
    every = float(convert(bound, Pointwise, delta=tail).epsilon)
    assert every >= noise
    # Publish whether the loss is above a level: some level shows that the noise's own number fails, and none that
    # the other one does.
    seen = []
    for level in [every * k / 400 for k in range(401)]:
        p, q = norm.cdf(mu / 2 - level / mu), norm.cdf(-mu / 2 - level / mu)
        if p > tail:
            seen.append(math.log(p / q))
    assert max(seen) > noise
    assert max(seen) <= every * (1 + 1e-9)

    # The mechanism of two outcomes that the proof names has the curve, and its loss is that number.
    def curve(e: float) -> float:
        return float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu))

    q = tail * math.exp(-every)
    for e in [every * k / 200 for k in range(201)]:
        assert tail - math.exp(e) * q <= curve(e) * (1 + 1e-6) + 1e-15
        assert (1 - q) - math.exp(e) * (1 - tail) <= curve(e) * (1 + 1e-6) + 1e-15
