"""The whole curve of a plan as arrays: delta over epsilon, the power of tests over their size, the best guess."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.accounting.accountants import profile_of
from tacit.accounting.events import Event, TabulatedEvent
from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import how_many, instance, listed, positive, probability, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, down, precision, up, upper
from tacit.guarantees import Profile
from tacit.guarantees.units import Neighbours

if TYPE_CHECKING:
    from flint import arb

_ROUNDED = 64 * 2.0**-52
"""A handful of float operations loses at most this much, relative to 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivacyCurve:
    """The privacy loss of a plan, as arrays.

    At `epsilon` the smallest delta lies between `delta_low` and `delta`; `delta` is the guaranteed one. A test of "the
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
        """The largest advantage of a membership test over chance: power - size, at most delta(0)."""
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

    def to_dict(self, *, trade_off: bool = False) -> dict[str, Any]:
        """The curve as plain data, for JSON."""
        names = ("size", "power") if trade_off else ("epsilon", "delta_low", "delta")
        return {
            "neighbours": self.neighbours.value,
            "advantage": self.advantage,
            "best_guess": self.best_guess,
            **{name: getattr(self, name).tolist() for name in names},
        }

    to_record = formerly("to_record", method=True)

    def to_json(self, *, trade_off: bool = False) -> str:
        """The curve as one JSON object; infinities do not occur."""
        return json.dumps(self.to_dict(trade_off=trade_off), indent=2, allow_nan=False)


def privacy_curve(
    events: Event | Sequence[Event],
    *,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
    epsilons: ArrayLike | None = None,
    points: int = 81,
) -> PrivacyCurve:
    """The composed curve of a plan fixed in advance: at these epsilons, or from 0 until it has nearly vanished."""
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
    """Epsilons from 0, denser near 0, up to a delta of about 1e-12 (or as low as it gets)."""
    return np.asarray(far_end(curve) * np.linspace(0.0, 1.0, count) ** 2)


def far_end(curve: Profile) -> float:
    """An epsilon at which delta has nearly vanished: about 1e-12, or as low as it gets."""
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


# Privacy-loss distributions (PLDs) as numbers: a plan's own, for other programs; and one that another program made.
#
# A PLD says with which probability, under the data with the unit, the loss ln(dP/dQ) takes each value. Exported is
# one that lies above the plan's curve: on the grid t_i = e^{i step} the curve h(t) = sup_S P(S) - t Q(S) is replaced
# by the straight lines between its certified upper ends. Where their slope rises by q, Q has an outcome of mass q and
# P one of mass t_i q; P alone has what is left at the end (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). Both
# orders of neighbours lie below it: it is its own swap.

WHOLE = Fraction(1, 10**9)
"""The allowed distance of a sum of floats from 1. Missing mass counts as an infinite loss."""
ROUNDING_SLACK = Fraction(1, 2**40)
"""The reduction of Q's masses for rounding, so that no sum makes a loss smaller."""
BITS = 256
MOST = 1_000_000
"""No grid reaches further from 0 than this many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossDistribution:
    """A privacy-loss distribution on a grid: the loss (lowest + i) * step has `probabilities[i]`, and `infinite` is
    the probability of outcomes that only occur with the unit."""

    step: float
    lowest: int
    probabilities: tuple[float, ...]
    infinite: float = 0.0

    def __post_init__(self) -> None:
        lowest = whole("lowest", self.lowest, least=-MOST)
        refuse_if(lowest > MOST, "lowest", "a large number", f"be at most {MOST} steps")
        given = tuple(probability("probabilities", p) for p in listed("probabilities", self.probabilities))
        set_fields(
            self,
            step=positive("step", self.step),
            lowest=lowest,
            probabilities=given,
            infinite=probability("infinite", self.infinite),
        )
        total = sum(map(Fraction, given), Fraction(self.infinite))
        if not given or not 0 < total <= 1 + WHOLE:
            raise InvalidParameter(
                parameter="probabilities", value=float(total), must="be at least one, with a sum in (0, 1]",
                hint="what is missing of 1 is taken as an infinite loss",
            )  # fmt: skip

    @property
    def losses(self) -> tuple[float, ...]:
        """The values of the loss, as floats."""
        return tuple((self.lowest + i) * self.step for i in range(len(self.probabilities)))

    def as_mapping(self) -> dict[int, float]:
        """Step number to probability, the form in which other accountants take a PLD; None if the account has none."""
        return {self.lowest + i: p for i, p in enumerate(self.probabilities) if p > 0}

    def as_event(self, *, other: LossDistribution | None = None) -> TabulatedEvent:
        """An event with this distribution, for composition with other events.

        The distribution counts for the worse order of neighbours at every epsilon of at least 0, and its mirror
        image for the other order: a distribution with rounded-up losses is no bound for its swap. If the
        orders differ, `other` belongs to the other order,
        and the larger curve counts. Raises if no two distributions have these losses.
        """
        if other is not None:
            instance("other", other, LossDistribution, must="be a loss distribution")
        with precision(BITS):
            curves = [_points(one, self.step) for one in (self, other) if one is not None]
            most = max(map(len, curves))
            last = [[*c, *[c[-1]] * (most - len(c))] for c in curves]
            both = _from_points(self.step, [max(values) for values in zip(*last, strict=True)])
            shadow = [
                down(
                    ball(Fraction(p))
                    * (-(both.lowest + i) * ball(Fraction(self.step))).exp()
                    * ball(1 - ROUNDING_SLACK)
                )
                for i, p in enumerate(both.probabilities)
            ]
        rest = 1 - sum(map(Fraction, shadow), Fraction(0))
        p = (*both.probabilities, both.infinite, 0.0)
        return TabulatedEvent(p=p, q=(*(max(x, 0.0) for x in shadow), 0.0, max(up(rest), 0.0)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "step": self.step,
            "lowest": self.lowest,
            "probabilities": list(self.probabilities),
            "infinite": self.infinite,
        }

    to_record = formerly("to_record", method=True)

    def to_json(self) -> str:
        """One JSON object: step, lowest, probabilities, infinite."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> LossDistribution:
        """The distribution that `to_json` wrote, here or elsewhere."""
        instance("text", text, str, must="be JSON text")
        try:
            found = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise InvalidParameter(parameter="text", value="text", must="be JSON") from None
        if not isinstance(found, dict) or set(found) != {"step", "lowest", "probabilities", "infinite"}:
            raise InvalidParameter(
                parameter="text", value="an object", must="have step, lowest, probabilities and infinite"
            )
        return cls(**found)


def _no_number(word: str) -> Any:
    raise ValueError(word)


def loss_distribution(
    events: Event | Sequence[Event],
    *,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
    step: float | None = None,
    points: int = 200,
) -> LossDistribution:
    """The privacy-loss distribution of a plan fixed in advance, above both orders of neighbours: `points` grid points
    on either side of 0, so far out that delta has all but vanished; or `step` apart."""
    count = how_many("points", points, least=2)
    curve = profile_of(events, neighbours=neighbours)
    width = positive("step", step) if step is not None else up(Fraction(far_end(curve)) / count)
    ends = [Fraction(curve.delta_between(i * width * (1 - 2.0**-50)).high) for i in range(count + 1)]
    with precision(BITS):
        return _from_points(width, ends)


def _points(found: LossDistribution, width: float) -> list[Fraction]:
    """Upper ends of delta = Pr[infinite] + E (1 - e^{epsilon - loss})+ at the multiples of `width` from 0 on."""
    masses, own = [ball(Fraction(p)) for p in found.probabilities], ball(Fraction(found.step))
    missing = 1 - sum(map(Fraction, found.probabilities), Fraction(0))
    infinite_mass = ball(max(missing, Fraction(found.infinite)))
    if sum((p * (-(found.lowest + i) * own).exp() for i, p in enumerate(masses)), ball(0)) > ball(1 + WHOLE):
        raise InvalidParameter(
            parameter="probabilities", value="a sum above 1", must="leave the sum of p e^{-loss} at most 1",
            hint="no two distributions have these losses",
        )  # fmt: skip
    top = found.lowest + len(masses) - 1
    count = max(1, math.ceil(Fraction(found.step) * top / Fraction(width)))
    refuse_if(count > MOST, "step", width, "be a larger part of the other's range")
    if found.step == width:
        return _at_its_own_points(found, masses, infinite_mass, count)
    wide = ball(Fraction(width))
    ends = []
    for k in range(count + 1):
        parts = (p * (1 - (k * wide - (found.lowest + i) * own).exp()) for i, p in enumerate(masses))
        ends.append(Fraction(up(sum((part for part in parts if not part <= 0), infinite_mass))))
    return ends


def _at_its_own_points(
    found: LossDistribution, masses: Sequence[arb], infinite_mass: arb, count: int
) -> list[Fraction]:
    """The same in one pass from above: at a grid point, the sums of p and of p e^{-loss} over the higher points."""
    fall, above, discounted = (-ball(Fraction(found.step))).exp(), ball(0), ball(0)
    ends = [ball(0)] * (count + 1)
    for k in range(count, -1, -1):
        ends[k] = infinite_mass + above - discounted
        here = masses[k - found.lowest] if 0 <= k - found.lowest < len(masses) else ball(0)
        above, discounted = above + here, (discounted + here) * fall
    return [Fraction(max(0.0, up(end))) for end in ends]


def _from_points(width: float, ends: Sequence[Fraction]) -> LossDistribution:
    """The lines between the points (e^{i step}, end_i), and of their mirror images (theorem `dominating-pair`)."""
    count, step = len(ends) - 1, ball(Fraction(width))
    above = {i: ball(end) for i, end in enumerate(ends)}
    values = {**{-i: 1 - (-i * step).exp() * (1 - h) for i, h in above.items()}, **above}
    corners = _convex([(i, (i * step).exp(), values[i]) for i in range(-count, count + 1)])
    rises: dict[int, arb] = {}
    left = (corners[0][2] - 1) / corners[0][1]
    for (i, t, value), (_, after, following) in pairwise(corners):
        right = (following - value) / (after - t)
        rises[i] = t * (right - left)
        left = right
    last, t, infinite_mass = corners[-1]
    rises[last] = -t * left
    return _rounded(width, count, rises, infinite_mass)


def _rounded(width: float, count: int, rises: dict[int, arb], infinite_mass: arb) -> LossDistribution:
    """Masses above the mode are rounded up, and those below it down. The mode takes the rest, so that mass only
    moves up.
    """
    mode = max(rises, key=lambda i: float(rises[i].mid()))
    floats = [0.0] * (2 * count + 1)
    for i, mass in rises.items():
        floats[i + count] = max(0.0, up(mass) if i > mode else down(mass))
    infinite = max(0.0, up(infinite_mass))
    others = sum((Fraction(f) for k, f in enumerate(floats) if k != mode + count), Fraction(infinite))
    floats[mode + count] = max(0.0, up(1 - others))
    return LossDistribution(step=width, lowest=-count, probabilities=tuple(floats), infinite=infinite)


def _convex(points: list[tuple[int, arb, arb]]) -> list[tuple[int, arb, arb]]:
    """The points on the lower hull, together with (0, 1). A point is kept only if it is certainly below the chord."""
    kept: list[tuple[int, arb, arb]] = []
    for point in points:
        while kept:
            before = (kept[-2][1], kept[-2][2]) if len(kept) > 1 else (ball(0), ball(1))
            (_, t, h), (_, after, end) = kept[-1], point
            if (h - before[1]) * (after - t) < (end - h) * (t - before[0]):
                break
            kept.pop()
        kept.append(point)
    return kept
