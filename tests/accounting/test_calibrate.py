"""Calibration asks for few accounts, ends at a certified one, and stops no sooner than it says.

A plan is made once for each account, so that counting its calls counts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import pytest

from tacit import events
from tacit.accounting import account, calibrate
from tacit.errors import NoLaw

Made = events.Event | Sequence[events.Event]


def gaussian(multiplier: float) -> events.GaussianEvent:
    return events.GaussianEvent(noise_multiplier=multiplier)


def sampled(multiplier: float, times: int) -> events.Event:
    one = events.PoissonSampledEvent(event=gaussian(multiplier), sampling_rate=0.01)
    return events.RepeatedEvent(event=one, times=times)


PLANS: dict[str, Callable[[float], Made]] = {
    "Gaussian": gaussian,
    "ten Gaussian": lambda v: events.RepeatedEvent(event=gaussian(v), times=10),
    "sampled": lambda v: sampled(v, 10_000),
    "different Laplace": lambda v: [events.LaplaceEvent(epsilon=(0.1 + 0.05 * i) / v) for i in range(10)],
    "beside fixed ones": lambda v: [sampled(v, 1000), events.LaplaceEvent(epsilon=0.3), gaussian(4.0)],
}


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 1e-9), (1.8, 1e-4), (8.0, 1e-6)])
@pytest.mark.parametrize("name", PLANS)
def test_few_accounts_find_a_certified_one(name: str, epsilon: float, delta: float) -> None:
    calls: list[float] = []

    def plan(value: float) -> Made:
        calls.append(value)
        return PLANS[name](value)

    found = calibrate(plan, epsilon=epsilon, delta=delta)
    assert len(calls) <= 7
    assert found.account.epsilon.high <= epsilon
    again = account(PLANS[name](found.value), delta=delta).epsilon
    assert again == found.account.epsilon
    # Less noise by a little more than what is allowed would not do.
    near = epsilon - found.account.epsilon.high <= 1.1e-5 * max(1.0, epsilon)
    assert near or account(PLANS[name](found.value * (1 - 2e-6)), delta=delta).epsilon.high > epsilon


def test_one_gaussian_by_its_own_formula() -> None:
    """delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), by the standard library."""
    phi = NormalDist().cdf
    for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-6), (20.0, 1e-4)):
        found = calibrate(gaussian, epsilon=epsilon, delta=delta)
        for value, inside in ((found.value, True), (found.value * (1 - 3e-6), False)):
            mu = 1 / value
            curve = phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
            assert (curve <= delta * (1 + 1e-9)) is inside


def test_falling_parameters_and_targets_out_of_reach() -> None:
    found = calibrate(lambda v: events.LaplaceEvent(epsilon=v), epsilon=0.5, delta=0.0, more_noise=False)
    assert 0.5 * (1 - 2e-6) <= found.value <= 0.5
    with pytest.raises(NoLaw):
        calibrate(lambda v: [gaussian(v), events.LaplaceEvent(epsilon=2.0)], epsilon=1.0, delta=0.0)
    # However little noise there is, the target is met.
    assert (
        calibrate(lambda v: events.PureEvent(epsilon=0.1), epsilon=1.0, delta=0.0).account.epsilon.high
        <= 0.1 + 1e-9
    )
