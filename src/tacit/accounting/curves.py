"""The whole curve of a plan as arrays: delta over epsilon, the power of tests over their size, the best guess."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.accounting.accountants import profile_of
from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, upper
from tacit.guarantees import Profile
from tacit.guarantees.arguments import how_many
from tacit.guarantees.units import Neighbours

__all__ = ["PrivacyCurve", "far_end", "privacy_curve"]


_ROUNDED = 64 * 2.0**-52
"""What a handful of float operations may lose, relative to 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyCurve:
    """What a plan reveals, as arrays.

    At `epsilon` the smallest delta lies between `delta_low` and `delta`; the latter is the promise. A test of "the
    unit's data are x" against "they are x'" whose false alarms have probability `size` finds the unit with probability
    at most `power` (the trade-off curve: its type II errors are at least 1 - power).
    """

    epsilon: Floats
    delta_low: Floats
    delta: Floats
    size: Floats
    power: Floats
    neighbours: Neighbours
    at_zero: float

    @property
    def advantage(self) -> float:
        """The most by which membership is told better than by chance: power - size, at most delta(0)."""
        return self.at_zero

    @property
    def best_guess(self) -> float:
        """The largest probability of guessing rightly, at even odds, whether the unit is in: (1 + delta(0)) / 2."""
        return upper(lambda: (1 + ball(self.at_zero)) / 2)

    def as_array(self) -> Floats:
        """Rows (epsilon, delta_low, delta)."""
        return np.column_stack([self.epsilon, self.delta_low, self.delta])

    def trade_off(self) -> Floats:
        """Rows (size, power)."""
        return np.column_stack([self.size, self.power])

    def to_csv(self, *, trade_off: bool = False) -> str:
        """The curve as CSV with a header: epsilon, delta_low, delta; or size, power."""
        names = ("size", "power") if trade_off else ("epsilon", "delta_low", "delta")
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for row in zip(*(getattr(self, name) for name in names), strict=True):
            writer.writerow([repr(float(x)) for x in row])
        return out.getvalue()

    def to_record(self, *, trade_off: bool = False) -> dict[str, Any]:
        """The curve as plain data, for JSON."""
        names = ("size", "power") if trade_off else ("epsilon", "delta_low", "delta")
        return {
            "neighbours": self.neighbours.value,
            "advantage": self.advantage,
            "best_guess": self.best_guess,
            **{name: getattr(self, name).tolist() for name in names},
        }

    def to_json(self, *, trade_off: bool = False) -> str:
        """The curve as one JSON object; infinities do not occur."""
        return json.dumps(self.to_record(trade_off=trade_off), indent=2, allow_nan=False)


def privacy_curve(
    events: Event | Sequence[Event],
    *,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
    epsilons: ArrayLike | None = None,
    points: int = 81,
) -> PrivacyCurve:
    """The composed curve of a plan fixed in advance: at these epsilons, or from 0 to where it has all but vanished."""
    relation = Neighbours.parse(neighbours)
    curve = profile_of(events, neighbours=relation)
    count = how_many("points", points, least=2)
    asked = _own(curve, count) if epsilons is None else _given(epsilons)
    ends = [curve.delta_between(float(e)) for e in asked]
    low, high = np.array([i.low for i in ends]), np.array([i.high for i in ends])
    at_zero = curve.delta_between(0.0).high
    sizes = np.linspace(0.0, 1.0, count)
    with_zero = np.concatenate([[0.0], asked]), np.concatenate([[at_zero], high])
    return PrivacyCurve(
        epsilon=asked,
        delta_low=low,
        delta=high,
        size=sizes,
        power=_power(sizes, *with_zero),
        neighbours=relation,
        at_zero=at_zero,
    )


def _given(epsilons: ArrayLike) -> Floats:
    try:
        found = np.asarray(epsilons, dtype=np.float64).reshape(-1)
    except (OverflowError, TypeError, ValueError):
        raise InvalidParameter(
            parameter="epsilons", value=type(epsilons).__name__, must="be an array of numbers"
        ) from None
    if not found.size:
        raise EmptyComposition(what="the array of epsilons", hint="name at least one epsilon, or none at all")
    if not np.all(np.isfinite(found)) or np.any(found < 0):
        raise InvalidParameter(
            parameter="epsilons", value="an array", must="hold finite numbers of at least 0"
        )
    return found


def _own(curve: Profile, count: int) -> Floats:
    """From 0 on, denser near 0, to where delta is about 1e-12 (or as low as it gets)."""
    return np.asarray(far_end(curve) * np.linspace(0.0, 1.0, count) ** 2)


def far_end(curve: Profile) -> float:
    """An epsilon at which delta has all but vanished: about 1e-12, or as low as it gets."""
    for level in (1e-12, 1e-10, 1e-6, 1e-3):
        try:
            found = curve.epsilon_between(level).high
        except NotCertified:
            continue
        if 0 < found < math.inf:
            return found
    return 1.0


def _power(sizes: Floats, epsilons: Floats, deltas: Floats) -> Floats:
    """The least over the points of e^e s + delta and 1 - e^-e (1 - delta - s), rounded up: each is a bound."""
    e, d, s = epsilons[:, None], deltas[:, None], sizes[None, :]
    with np.errstate(over="ignore"):
        first = np.exp(e) * s + d
    second = 1 - np.exp(-e) * (1 - d - s)
    least = np.minimum(first, second).min(axis=0)
    return np.asarray(np.clip(least * (1 + _ROUNDED) + _ROUNDED * (sizes > 0), sizes, 1.0))
