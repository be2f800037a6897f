"""Calibration asks for few accounts, ends at a certified one, and stops no sooner than it says."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import pytest

from tacit.accounting import account, calibrate, events
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


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The plans of which an account is asked."""
    module, calls = importlib.import_module("tacit.accounting.calibrate"), []

    def asked(plan: Made, **values: Any) -> Any:
        calls.append(plan)
        return account(plan, **values)

    monkeypatch.setattr(module, "account", asked)
    return calls


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 1e-9), (1.8, 1e-4), (8.0, 1e-6)])
@pytest.mark.parametrize("name", PLANS)
def test_few_accounts_find_a_certified_one(
    name: str, epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    found = calibrate(PLANS[name], epsilon=epsilon, delta=delta)
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


# Every account of a plan that is far from the target may take a thousand times as long as one near it.
LONG = {
    "integers": (lambda v: repeated(events.DiscreteGaussianEvent(noise_multiplier=v), 10**6), True),
    "Laplace": (lambda v: repeated(events.LaplaceEvent(epsilon=v), 100), False),
    "rate": (
        lambda v: repeated(events.PoissonSampledEvent(event=gaussian(1.0), sampling_rate=v), 1000),
        False,
    ),
}


def repeated(event: events.Event, times: int) -> events.Event:
    return events.RepeatedEvent(event=event, times=times)


@pytest.mark.parametrize("name", LONG)
def test_no_account_is_far_from_the_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, more_noise = LONG[name]
    calls = counted(monkeypatch)
    found = calibrate(
        plan, epsilon=1.0, delta=1e-6, more_noise=more_noise, most=1.0 if name == "rate" else None
    )
    assert found.account.epsilon.high <= 1.0
    assert len(calls) <= 7
    assert all(account(one, delta=1e-6).epsilon.high < 10 for one in calls)  # type: ignore[call-overload]


@pytest.mark.parametrize("least", [1, 7])
def test_whole_numbers_take_few_accounts(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    step = events.PoissonSampledEvent(event=gaussian(1.0), sampling_rate=0.01)
    found = calibrate(
        lambda v: repeated(step, int(v)), epsilon=2.0, delta=1e-6, more_noise=False, whole=True, least=least
    )
    assert len(calls) <= 9
    assert account(repeated(step, int(found.value) + 1), delta=1e-6).epsilon.high > 2.0
    calls.clear()
    response = events.RandomizedResponseEvent(epsilon=1.0)  # of shuffled answers there is no rough look
    found = calibrate(
        lambda v: events.ShuffledEvent(event=response, people=int(v)),
        epsilon=0.5,
        delta=1e-3,
        whole=True,
        neighbours="replace-one",
    )
    assert len(calls) <= 12
    fewer = events.ShuffledEvent(event=response, people=int(found.value) - 1)
    assert account(fewer, delta=1e-3, neighbours="replace-one").epsilon.high > 0.5
    with pytest.raises(NoLaw):
        calibrate(
            lambda v: repeated(gaussian(0.1), int(v)), epsilon=2.0, delta=1e-6, more_noise=False, whole=True
        )
