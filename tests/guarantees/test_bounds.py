"""Each bound's curve against its definition, against published values, and at the edges of the floats."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed, concentrated, deltas, epsilons, gaussian, orders
from tacit.errors import InvalidParameter
from tacit.guarantees import Bound, Renyi


def test_published_values_of_the_closed_forms() -> None:
    # Canonne, Kamath, Steinke 2020 conversion at delta = 1e-6; exact Gaussian beside it (Balle, Wang 2018).
    assert tacit.Concentrated(rho=0.1).epsilon(1e-6) == pytest.approx(2.142, abs=5e-4)
    assert tacit.Concentrated(rho=0.5).epsilon(1e-6) == pytest.approx(5.222, abs=5e-4)
    assert tacit.GaussianDP(mu=math.sqrt(0.2)).epsilon(1e-6) == pytest.approx(1.995, abs=5e-4)
    assert tacit.GaussianDP(mu=1.0).epsilon(1e-6) == pytest.approx(4.887, abs=5e-4)
    # Noise multiplier 4.2247 for (1, 1e-6).
    assert tacit.GaussianDP(mu=1 / 4.2247).delta(1.0) <= 1.0001e-6
    assert tacit.GaussianDP(mu=1 / 4.2246).delta(1.0) > 1e-6
    # Hall's classic constant: sqrt(2 ln(2/delta)) / epsilon = 5.3868; with 1.25 in place of 2: 5.2988.
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.2988, abs=5e-5)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 2.5])
def test_gaussian_curve_is_the_integral_of_the_densities(mu: float, epsilon: float) -> None:
    assert tacit.GaussianDP(mu=mu).delta(epsilon) == pytest.approx(
        second.gaussian_hockey_stick(mu, epsilon), rel=1e-7, abs=1e-12
    )


@given(epsilons, deltas, epsilons)
def test_approximate_curve_is_that_of_the_worst_pair(epsilon: float, delta: float, at: float) -> None:
    exact = second.both(*second.worst_approximate(epsilon, delta), at)
    value = tacit.Approximate(epsilon=epsilon, delta=delta).delta(at)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-10)


@given(epsilons.filter(lambda e: e < 15), orders.filter(lambda a: a < 40))
def test_pure_divergence_is_that_of_randomised_response(epsilon: float, order: float) -> None:
    value = tacit.Pure(epsilon=epsilon).renyi(order)
    assert value == pytest.approx(
        second.renyi(*second.randomized_response(epsilon), order), rel=1e-7, abs=1e-14
    )
    assert value <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-15)


@given(any_closed, st.floats(0, 10), st.floats(0, 10))
def test_delta_does_not_increase_with_epsilon(bound: Bound, one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert bound.delta_at(high) <= bound.delta_at(low)
    assert 0 <= bound.delta_at(low) <= 1


@given(any_closed, st.floats(1e-14, 1))
def test_epsilon_inverts_delta_on_the_safe_side(bound: Bound, delta: float) -> None:
    epsilon = bound.epsilon_at(delta)
    if math.isinf(epsilon):
        assert bound.delta_at(1e6) > delta
    else:
        assert bound.delta_at(epsilon) <= delta * (1 + 1e-9)
        if epsilon > 1e-9:  # and it is the smallest, to within rounding
            assert bound.delta_at(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-9)


@given(any_closed, orders, orders)
def test_divergence_does_not_decrease_with_the_order(bound: Bound, one: float, two: float) -> None:
    low, high = sorted((one, two))
    try:
        assert bound.renyi(low) <= bound.renyi(high) * (1 + 1e-14)
    except tacit.NoLaw:
        assert bound.kind in ("approximate", "pointwise", "renyi")


@given(concentrated, gaussian)
def test_concentrated_curve_is_above_the_gaussian_with_the_same_rho(
    wide: tacit.Concentrated, tight: tacit.GaussianDP
) -> None:
    bound = tacit.Concentrated(rho=tight.mu**2 / 2 * (1 + 1e-15))
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        assert bound.delta(epsilon) >= tight.delta(epsilon)
    assert wide.delta(0.0) <= 1


def test_every_order_of_the_concentrated_curve_was_no_better() -> None:
    bound = tacit.Concentrated(rho=0.3)
    for epsilon in (0.5, 1.0, 3.0):
        grid = [1 + 10 ** (k / 50) for k in range(-100, 80)]
        brute = min(math.exp((a - 1) * (a * 0.3 - epsilon)) / (a - 1) * (1 - 1 / a) ** a for a in grid)
        assert bound.delta(epsilon) <= brute * (1 + 1e-12)
        assert bound.delta(epsilon) == pytest.approx(brute, rel=1e-3)


@given(any_closed)
def test_bounds_survive_copying(bound: Bound) -> None:
    for twin in (pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound)):
        assert twin == bound
        assert hash(twin) == hash(bound)
        assert twin.delta_at(0.7) == bound.delta_at(0.7)
        assert twin.epsilon(0.1) == bound.epsilon(0.1)  # type: ignore[attr-defined]


def test_stated_numbers_are_numbers_and_answer_too() -> None:
    bound = tacit.Approximate(epsilon=1, delta=1e-6)
    assert bound.epsilon == 1.0
    assert bound.delta == 1e-6
    assert bound.epsilon(1e-6) == 1.0
    assert bound.delta(2.0) == 1e-6
    assert repr(bound) == "Approximate(epsilon=1.0, delta=1e-06)"


def test_extremes_are_right() -> None:
    assert tacit.Pure(epsilon=1e-12).delta(0.0) == pytest.approx(5e-13, rel=1e-9)
    assert tacit.Pure(epsilon=1e3).delta(999.0) == pytest.approx(1 - math.exp(-1), rel=1e-12)
    assert tacit.Pure(epsilon=1e3).renyi(3.0) == 1000.0
    assert tacit.GaussianDP(mu=1e-12).epsilon(1e-6) == 0.0
    assert tacit.GaussianDP(mu=1.0).delta(1e3) == 5e-324  # positive, and rounded up to the least float
    assert tacit.GaussianDP(mu=1e3).epsilon(1e-300) == pytest.approx(537046.114, rel=1e-8)
    assert tacit.Concentrated(rho=1e-12).epsilon(1e-6) < 1e-5
    assert tacit.Concentrated(rho=1e3).epsilon(1e-6) < 1e3 + 2 * math.sqrt(1e3 * math.log(1e6))
    assert math.isinf(tacit.Concentrated(rho=0.1).epsilon(0.0))
    assert math.isinf(tacit.Approximate(epsilon=1, delta=1e-6).epsilon(1e-7))
    assert tacit.Pure(epsilon=0).delta(0.0) == 0.0


def test_renyi_between_and_beyond_its_orders() -> None:
    curve = Renyi(orders=(2.0, 8.0), epsilons=(1.0, 2.0))
    # (a-1) D_a is convex: at a = 5 the chord gives (1 + (14-1)/6*3)/4
    assert curve.renyi(5.0) == pytest.approx((1 + 13 / 6 * 3) / 4)
    assert curve.renyi(1.5) == 1.0
    with pytest.raises(tacit.NoLaw):
        curve.renyi(9.0)
    # a point above the chord of its neighbours is not used
    clumsy = Renyi(orders=(2.0, 4.0, 8.0), epsilons=(1.0, 1.9, 2.0))
    assert clumsy.renyi(4.0) == pytest.approx((1 + 13 / 6 * 2) / 3)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (tacit.Pure, {"epsilon": -1}),
        (tacit.Pure, {"epsilon": math.nan}),
        (tacit.Pure, {"epsilon": math.inf}),
        (tacit.Pure, {"epsilon": "1"}),
        (tacit.Pure, {"epsilon": True}),
        (tacit.Approximate, {"epsilon": 1, "delta": 1}),
        (tacit.Approximate, {"epsilon": 1, "delta": 1.5}),
        (tacit.Approximate, {"epsilon": 1, "delta": -1e-9}),
        (tacit.guarantees.Pointwise, {"epsilon": 1, "delta": math.nan}),
        (tacit.Concentrated, {"rho": -0.1}),
        (tacit.Concentrated, {"rho": math.inf}),
        (tacit.GaussianDP, {"mu": math.nan}),
        (tacit.GaussianDP, {"mu": -1}),
        (tacit.Renyi, {"orders": (1.0,), "epsilons": (1.0,)}),
        (tacit.Renyi, {"orders": (0.5,), "epsilons": (1.0,)}),
        (tacit.Renyi, {"orders": (2.0, 2.0), "epsilons": (1.0, 1.0)}),
        (tacit.Renyi, {"orders": (2.0, 3.0), "epsilons": (1.0,)}),
        (tacit.Renyi, {"orders": (), "epsilons": ()}),
    ],
)
def test_bad_bounds_cannot_exist(kind: type[Bound], wrong: dict[str, object]) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        kind(**wrong)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("bad", [-1.0, math.nan, "1", None])
def test_bad_questions_are_refused(bad: object) -> None:
    bound = tacit.GaussianDP(mu=1.0)
    for ask in (bound.delta, bound.epsilon, bound.renyi):
        with pytest.raises(InvalidParameter):
            ask(bad)  # type: ignore[operator]
    with pytest.raises(InvalidParameter):
        bound.epsilon(1.1)
    with pytest.raises(InvalidParameter):
        bound.renyi(0.5)


@pytest.mark.parametrize(
    "bound",
    [
        tacit.Pure(epsilon=1),
        tacit.Approximate(epsilon=1, delta=1e-6),
        tacit.guarantees.Pointwise(epsilon=1, delta=1e-6),
        tacit.Concentrated(rho=0.1),
        tacit.Renyi(orders=(2.0, 8.0), epsilons=(0.2, 0.8)),
        tacit.GaussianDP(mu=0.5),
        tacit.Profile.of(tacit.Pure(epsilon=1)),
    ],
    ids=lambda b: b.kind,
)
def test_curves_are_read_by_one_name_on_every_bound_and_guarantee(bound: Bound) -> None:
    promise = tacit.Guarantee(bound=bound, unit=tacit.rows())
    for epsilon in (0.1, 0.5, 2.0):
        delta = bound.delta_at(epsilon)
        assert bound.delta(epsilon) == promise.delta_at(epsilon) == promise.delta(epsilon) == delta
        assert (
            bound.epsilon(0.01) == promise.epsilon_at(0.01) == promise.epsilon(0.01) == bound.epsilon_at(0.01)
        )
        assert bound.epsilon_at(delta) <= epsilon * (1 + 1e-9)
    for wrong in (-0.1, 1.5, "1", True):
        with pytest.raises(tacit.TacitError):
            bound.epsilon_at(wrong)
