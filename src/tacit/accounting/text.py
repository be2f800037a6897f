"""Events in words: `gaussian noise_multiplier=30 times=1000`, for the command line and for files.

A word, then named values. `subsampled_` before a word is Poisson sampling, `without_replacement_` a uniform
sample of a fixed share; both take `sampling_rate`. `times` repeats. One value may be left out for calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting import events as e
from tacit.accounting.events import Event, RepeatedEvent, SimpleEvent
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact import checks

__all__ = ["WORDS", "Described", "describe", "parse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    make: Callable[..., SimpleEvent]
    noise: str
    more_noise: bool
    other: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()


WORDS: dict[str, _Word] = {
    "approximate": _Word(make=e.ApproximateEvent, noise="epsilon", more_noise=False, other=("delta",)),
    "concentrated": _Word(make=e.ConcentratedEvent, noise="rho", more_noise=False),
    "discrete_gaussian": _Word(
        make=e.DiscreteGaussianEvent, noise="noise_multiplier", more_noise=True, whole=("sensitivity",)
    ),
    "discrete_laplace": _Word(
        make=e.DiscreteLaplaceEvent, noise="epsilon", more_noise=False, whole=("sensitivity",)
    ),
    "exponential": _Word(make=e.ExponentialEvent, noise="epsilon", more_noise=False),
    "gaussian": _Word(make=e.GaussianEvent, noise="noise_multiplier", more_noise=True),
    "laplace": _Word(make=e.LaplaceEvent, noise="epsilon", more_noise=False),
    "permute_and_flip": _Word(make=e.PermuteAndFlipEvent, noise="epsilon", more_noise=False),
    "pure": _Word(make=e.PureEvent, noise="epsilon", more_noise=False),
    "randomized_response": _Word(
        make=e.RandomizedResponseEvent, noise="epsilon", more_noise=False, whole=("categories",)
    ),
    "skellam": _Word(make=e.SkellamEvent, noise="noise_variance", more_noise=True, whole=("sensitivity",)),
    "staircase": _Word(make=e.StaircaseEvent, noise="epsilon", more_noise=False, other=("gamma",)),
}
_SAMPLERS: dict[str, Callable[..., SimpleEvent]] = {
    "subsampled_": e.PoissonSampledEvent,
    "without_replacement_": e.SampledWithoutReplacementEvent,
}
_OPTIONAL = {"sensitivity", "categories"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A parsed line: the event, or a function of the one value that was left out."""

    word: str
    free: str | None
    more_noise: bool
    make: Callable[[float | None], Event]


def parse(text: str) -> Described:
    """The event that a line describes."""
    words = checks.text("event", text).split()
    if not words:
        raise InvalidParameter(parameter="event", value=text, must="begin with a word such as gaussian")
    values: dict[str, str] = {}
    for part in words[1:]:
        name, equals, value = part.partition("=")
        if not equals or not name or not value:
            raise InvalidParameter(
                parameter="event",
                value=part,
                must="be a named value",
                hint="for instance noise_multiplier=30",
            )
        if name in values:
            raise InvalidParameter(parameter=name, value=value, must="be given once")
        values[name] = value
    return describe(words[0], values)


def describe(word: str, values: Mapping[str, Any]) -> Described:
    """The event from a word and its values (texts or numbers), as files give them."""
    word = checks.text("event", word)
    if not isinstance(values, Mapping):
        raise InvalidParameter(
            parameter="values", value=type(values).__name__, must="be a table of named values"
        )
    sampler = next((s for s in _SAMPLERS if word.startswith(s)), None)
    base = word.removeprefix(sampler) if sampler else word
    if base not in WORDS:
        known = [*WORDS, *(s + w for s in _SAMPLERS for w in WORDS)]
        raise UnknownName(what="event", name=word, known=known)
    entry = WORDS[base]
    wanted = [entry.noise, *entry.other, *entry.whole, *(["sampling_rate"] if sampler else [])]
    for name in map(partial(checks.text, "name of a value"), values):
        if name not in (*wanted, "times"):
            raise UnknownName(what=f"value of {word}", name=name, known=[*wanted, "times"])
    given = {n: _number(n, values[n], whole=n in entry.whole) for n in wanted if n in values}
    missing = [n for n in wanted if n not in given and n not in _OPTIONAL]
    times = _number("times", values["times"], whole=True) if "times" in values else 1
    if missing not in ([], [entry.noise]):
        raise InvalidParameter(
            parameter=missing[-1], value=None, must="be given", hint=f"{word} needs {', '.join(wanted)}"
        )

    def make(value: float | None) -> Event:
        arguments = {**given, entry.noise: value} if missing else dict(given)
        if missing and value is None:
            raise InvalidParameter(
                parameter=entry.noise,
                value=None,
                must="be given",
                hint=f"{word} needs {', '.join(wanted)}; calibrate finds the one that is left out",
            )
        rate = arguments.pop("sampling_rate", None)
        event: Event = entry.make(**arguments)
        if sampler:
            event = _SAMPLERS[sampler](event=event, sampling_rate=rate)
        return event if times == 1 else RepeatedEvent(event=event, times=int(times))

    if not missing:
        make(None)  # a bad value is found where it stands
    return Described(word=word, free=entry.noise if missing else None, more_noise=entry.more_noise, make=make)


def _number(name: str, value: Any, *, whole: bool) -> float | int:
    try:
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise InvalidParameter(parameter=name, value=value, must="be a number") from None
    if not whole:
        return number
    if number != number or number in (float("inf"), float("-inf")) or number != int(number):
        raise InvalidParameter(parameter=name, value=value, must="be a whole number")
    try:
        return int(value)
    except ValueError:
        return int(number)  # written as a float, or with more digits than a number is read with
