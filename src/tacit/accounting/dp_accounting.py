"""Events of Google's dp-accounting as ours, and ours as theirs. dp-accounting need not be installed: classes are
recognised by name.

    from_dp_accounting(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(30.0), 1000))
    dp_accounting_source(event)    # the expression that makes the same event there

A conversion is exact or on the safe side. An event that dp-accounting cannot express exactly becomes one whose
privacy-loss distribution dominates ours (any pure epsilon as binary randomised response).
Events without a counterpart are refused.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tacit.accounting.events import (
    ComposedEvent,
    ConcentratedEvent,
    DiscreteLaplaceEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PermuteAndFlipEvent,
    PoissonSampledEvent,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedEvent,
    SampledWithoutReplacementEvent,
    StaircaseEvent,
)
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.rounding import up

KNOWN = (
    "ComposedDpEvent", "DiscreteLaplaceDpEvent", "GaussianDpEvent", "LaplaceDpEvent", "PoissonSampledDpEvent",
    "RandomizedResponseDpEvent", "SampledWithoutReplacementDpEvent", "SelfComposedDpEvent", "ZCDpEvent",
)  # fmt: skip
MOST_DEPTH = 30
_PURE = (PureEvent, ExponentialEvent, PermuteAndFlipEvent, StaircaseEvent)


def from_dp_accounting(event: Any, *, depth: int = 0) -> Event:
    """Our event for one of theirs. Numbers that cannot be kept exactly are rounded against us."""
    name = type(event).__name__
    if depth > MOST_DEPTH:
        raise InvalidParameter(parameter="event", value=name, must=f"be nested at most {MOST_DEPTH} deep")
    if name not in KNOWN:
        raise UnknownName(what="event of dp-accounting", name=name, known=KNOWN)
    if name == "GaussianDpEvent":
        return GaussianEvent(noise_multiplier=-up(-_fraction("noise_multiplier", event.noise_multiplier)))
    if name == "LaplaceDpEvent":
        return LaplaceEvent(epsilon=up(1 / _fraction("noise_multiplier", event.noise_multiplier)))
    if name == "DiscreteLaplaceDpEvent":
        moved = _whole("sensitivity", event.sensitivity)
        exact = _fraction("noise_parameter", event.noise_parameter) * moved
        return DiscreteLaplaceEvent(epsilon=up(exact), sensitivity=moved)
    if name == "RandomizedResponseDpEvent":
        return _response(float(event.noise_parameter), _whole("num_buckets", event.num_buckets))
    if name == "ZCDpEvent":
        if event.xi:
            raise NoLaw(
                operation="zCDP with an additive constant xi", reason="an event here has rho alone",
                hint="a bound on the Renyi divergence with xi can be given as tacit.Renyi",
            )  # fmt: skip
        return ConcentratedEvent(rho=float(event.rho))
    if name == "ComposedDpEvent":
        return ComposedEvent(events=tuple(from_dp_accounting(e, depth=depth + 1) for e in event.events))
    inner = from_dp_accounting(event.event, depth=depth + 1)
    if name == "SelfComposedDpEvent":
        return RepeatedEvent(event=inner, times=_whole("count", event.count))
    if name == "PoissonSampledDpEvent":
        return PoissonSampledEvent(event=inner, sampling_rate=_share(event.sampling_probability))
    share = _fraction("sample_size", event.sample_size) / _fraction("size", event.source_dataset_size)
    return SampledWithoutReplacementEvent(event=inner, sampling_rate=up(share))  # type: ignore[arg-type]


def _fraction(name: str, value: Any) -> Fraction:
    """The given number; a fraction stays a fraction."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidParameter(parameter=name, value=number, must="be positive and finite")
    return value if isinstance(value, Fraction) else Fraction(number)


def _share(value: Any) -> float:
    """A probability, rounded up if it is a fraction that no float is."""
    return up(value) if isinstance(value, Fraction) else float(value)


def _whole(name: str, value: Any) -> int:
    """A whole number. Cutting 2.9 off to 2 would claim more privacy than there is."""
    if isinstance(value, bool) or value != value or value in (math.inf, -math.inf) or int(value) != value:
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")
    return int(value)


def _response(share: float, buckets: int) -> Event:
    """Odds of the true answer: (1 - p + p/k) / (p/k); rounded up."""
    from tacit.exact.rounding import ball, upper

    if not 0 < share < 1:
        raise InvalidParameter(parameter="noise_parameter", value=share, must="be between 0 and 1")
    epsilon = upper(lambda: (1 + ball(buckets) * (1 - ball(share)) / ball(share)).log())
    return RandomizedResponseEvent(epsilon=epsilon, categories=buckets)


def dp_accounting_source(event: Event) -> str:
    """The Python expression for the same event, or for one that dominates it, given `dp_event` of dp_accounting."""
    if isinstance(event, GaussianEvent):
        return f"dp_event.GaussianDpEvent({event.noise_multiplier!r})"
    if isinstance(event, LaplaceEvent):
        return f"dp_event.LaplaceDpEvent({_down(1, event.epsilon)!r})"
    if isinstance(event, DiscreteLaplaceEvent):
        rate = up(_fraction("epsilon", event.epsilon) / event.sensitivity)
        return f"dp_event.DiscreteLaplaceDpEvent({rate!r}, {event.sensitivity})"
    if isinstance(event, _PURE):
        return _as_response(float(event.pure()))
    if isinstance(event, RandomizedResponseEvent) and event.categories == 2:
        return _as_response(float(event.epsilon))
    if isinstance(event, ConcentratedEvent):
        return f"dp_event.ZCDpEvent({event.rho!r})"
    if isinstance(event, ComposedEvent):
        return f"dp_event.ComposedDpEvent([{', '.join(map(dp_accounting_source, event.events))}])"
    if isinstance(event, RepeatedEvent):
        return f"dp_event.SelfComposedDpEvent({dp_accounting_source(event.event)}, {event.times})"
    if isinstance(event, PoissonSampledEvent):
        inner = dp_accounting_source(event.event)
        return f"dp_event.PoissonSampledDpEvent({event.sampling_rate!r}, {inner})"
    raise NoLaw(
        operation=f"writing the event {event.kind!r} for dp-accounting",
        reason="it has no event that is the same or dominates it",
        hint="give it the stated bound: a pure epsilon, a rho, or mu as Gaussian noise with multiplier 1/mu",
    )


def _down(numerator: int, denominator: float) -> float:
    """A quotient rounded down, so that it states less noise than the event has."""
    return -up(-numerator / _fraction("epsilon", denominator))


def _as_response(epsilon: float) -> str:
    """Binary randomised response with this epsilon: p = 2 / (1 + e^epsilon), rounded down."""
    from tacit.exact.rounding import ball, upper

    share = -upper(lambda: -2 / (1 + ball(epsilon).exp()))
    return f"dp_event.RandomizedResponseDpEvent({share!r}, 2)"
