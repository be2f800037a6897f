"""Events of dp-accounting and ours: the same numbers, and never less than theirs.

Reference values: dp-accounting 0.6.0, `pld.PLDAccountant(value_discretization_interval=1e-4)`, epsilon at delta = 1e-6,
of the events that `dp_accounting_source` writes. Its epsilon is an upper end of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tacit.accounting import account, dp_accounting_source, events, from_dp_accounting
from tacit.errors import InvalidParameter, NoLaw, UnknownName

GAUSSIAN = events.GaussianEvent(noise_multiplier=11.7)
CASES = [
    (GAUSSIAN, "add-or-remove", 0.335542),
    (events.LaplaceEvent(epsilon=0.3), "add-or-remove", 0.299998),
    (events.PureEvent(epsilon=0.7), "replace-one", 0.699999),
    (
        events.RepeatedEvent(event=events.GaussianEvent(noise_multiplier=30.0), times=100),
        "add-or-remove",
        1.447988,
    ),
    (
        events.RepeatedEvent(
            event=events.PoissonSampledEvent(
                event=events.GaussianEvent(noise_multiplier=1.1), sampling_rate=0.01
            ),
            times=500,
        ),
        "add-or-remove",
        1.275163,
    ),
]


def theirs(name: str, **fields: Any) -> Any:
    """An object of a class with that name, as dp-accounting has it."""
    return type(name, (SimpleNamespace,), {})(**fields)


def read_source(text: str) -> Any:
    """The object that an expression makes, with stand-ins for the classes of dp-accounting."""
    shapes = {
        "GaussianDpEvent": ["noise_multiplier"],
        "LaplaceDpEvent": ["noise_multiplier"],
        "DiscreteLaplaceDpEvent": ["noise_parameter", "sensitivity"],
        "RandomizedResponseDpEvent": ["noise_parameter", "num_buckets"],
        "ZCDpEvent": ["rho"],
        "ComposedDpEvent": ["events"],
        "SelfComposedDpEvent": ["event", "count"],
        "PoissonSampledDpEvent": ["sampling_probability", "event"],
    }

    def maker(name: str, fields: list[str]) -> Any:
        return lambda *given: theirs(name, xi=0.0, **dict(zip(fields, given, strict=True)))

    known = {name: maker(name, fields) for name, fields in shapes.items()}
    return eval(text, {"dp_event": SimpleNamespace(**known)})


@pytest.mark.parametrize(("event", "neighbours", "expected"), CASES)
def test_their_epsilon_lies_at_our_two_ends(event: events.Event, neighbours: str, expected: float) -> None:
    found = account(event, delta=1e-6, neighbours=neighbours).epsilon
    assert found.low - 2e-6 <= expected <= found.high + 2e-6


@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN,
        events.LaplaceEvent(epsilon=0.3),
        events.DiscreteLaplaceEvent(epsilon=0.7, sensitivity=3),
        events.PureEvent(epsilon=0.7),
        events.ExponentialEvent(epsilon=0.4),
        events.RandomizedResponseEvent(epsilon=0.9),
        events.ConcentratedEvent(rho=0.02),
        events.ComposedEvent(events=(GAUSSIAN, events.LaplaceEvent(epsilon=0.2))),
        events.RepeatedEvent(event=events.LaplaceEvent(epsilon=0.2), times=7),
        events.PoissonSampledEvent(event=GAUSSIAN, sampling_rate=0.25),
    ],
)
def test_there_and_back_is_never_less_private_on_paper(event: events.Event) -> None:
    back = from_dp_accounting(read_source(dp_accounting_source(event)))
    ours, returned = (account(e, delta=1e-6, neighbours="replace-one").epsilon for e in (event, back))
    assert returned.high >= ours.low
    if not isinstance(event, events.ExponentialEvent):
        assert returned.high <= ours.high * (1 + 1e-6) + 1e-9


def test_odds_of_randomised_response_come_from_their_share() -> None:
    found = from_dp_accounting(theirs("RandomizedResponseDpEvent", noise_parameter=0.5, num_buckets=4))
    assert isinstance(found, events.RandomizedResponseEvent)
    assert found.categories == 4
    assert found.epsilon == pytest.approx(math.log((0.5 + 0.125) / 0.125), rel=1e-12)
    assert found.epsilon >= math.log(5) * (1 - 1e-15)


def test_a_fixed_sample_is_a_share() -> None:
    inner = theirs("GaussianDpEvent", noise_multiplier=2.0)
    found = from_dp_accounting(
        theirs("SampledWithoutReplacementDpEvent", source_dataset_size=300, sample_size=100, event=inner)
    )
    assert isinstance(found, events.SampledWithoutReplacementEvent)
    assert found.sampling_rate >= 100 / 300
    assert found.sampling_rate == pytest.approx(1 / 3)


def test_what_has_no_counterpart_is_refused() -> None:
    with pytest.raises(UnknownName, match="MixtureOfGaussiansDpEvent"):
        from_dp_accounting(theirs("MixtureOfGaussiansDpEvent"))
    with pytest.raises(NoLaw, match="xi"):
        from_dp_accounting(theirs("ZCDpEvent", rho=0.1, xi=0.2))
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        from_dp_accounting(theirs("LaplaceDpEvent", noise_multiplier=0.0))
    with pytest.raises(InvalidParameter, match="noise_parameter"):
        from_dp_accounting(theirs("RandomizedResponseDpEvent", noise_parameter=1.0, num_buckets=2))
    with pytest.raises(NoLaw, match="approximate"):
        dp_accounting_source(events.ApproximateEvent(epsilon=1.0, delta=1e-6))
    deep: Any = theirs("GaussianDpEvent", noise_multiplier=2.0)
    for _ in range(40):
        deep = theirs("SelfComposedDpEvent", event=deep, count=1)
    with pytest.raises(InvalidParameter, match="nested"):
        from_dp_accounting(deep)


@pytest.mark.parametrize("epsilon", [2.255332209740299, 0.3, 0.1, 1.1, 3.7, 0.7, 4.9, 1e-3])
def test_laplace_noise_is_written_with_no_more_noise_than_there_is(epsilon: float) -> None:
    written = read_source(dp_accounting_source(events.LaplaceEvent(epsilon=epsilon)))
    assert 1 - 1e-15 < Fraction(written.noise_multiplier) * Fraction(epsilon) <= 1
    assert from_dp_accounting(written).epsilon >= epsilon  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "event",
    [
        theirs("SelfComposedDpEvent", event=theirs("GaussianDpEvent", noise_multiplier=1.0), count=2.9),
        theirs("DiscreteLaplaceDpEvent", noise_parameter=1.0, sensitivity=1.9),
        theirs("RandomizedResponseDpEvent", noise_parameter=0.5, num_buckets=2.9),
        theirs("SelfComposedDpEvent", event=theirs("GaussianDpEvent", noise_multiplier=1.0), count=math.nan),
    ],
)
def test_a_broken_number_of_times_is_refused_and_not_cut_off(event: Any) -> None:
    with pytest.raises(InvalidParameter, match="whole number"):
        from_dp_accounting(event)


def test_a_fraction_is_rounded_against_us() -> None:
    for third in (Fraction(1, 3), Fraction(2, 3)):
        read = from_dp_accounting(theirs("GaussianDpEvent", noise_multiplier=third))
        assert Fraction(read.noise_multiplier) <= third  # type: ignore[attr-defined]
    share = Fraction(10**17 + 1, 3 * 10**17)
    inner = theirs("GaussianDpEvent", noise_multiplier=1.0)
    sampled = from_dp_accounting(theirs("PoissonSampledDpEvent", sampling_probability=share, event=inner))
    assert Fraction(sampled.sampling_rate) >= share  # type: ignore[attr-defined]
