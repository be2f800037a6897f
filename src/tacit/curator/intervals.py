"""Intervals for the noise: value, low, high of every cell, from the noisy parts and the known laws of their noise.

They cover the statistic of the declared, clamped and bounded data with at least the stated probability, whatever these
data are. Every certificate names the limits of the intervals: clamping, rounding and dropping of values, and
the sampling of people from a population. All of this is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.spreads import CellNoise, PartNoise, Pivot
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Form, Linear, Quotient, Root, Share, Spread, reals
from tacit.statistics.population import NoiseMoments, PopulationForm, laplace_moments

# The ends of confidence sets, many cells at once: what exact intervals of ratios need.
#
# A statistic r that is a ratio of parts has coefficients c_i(r) with sum c_i part_i = 0. Then sum c_i noisy_i is the
# noise alone, T = sum c_i X_i, and {r : |T(r)| <= t(r)} with Pr[|T| > t] <= 1 - confidence is a confidence set.
#
# Laplace: a discrete draw of scale b is a continuous one L, moved by at most `laplace_move(b)`, a little above 1/2,
# and sums of continuous ones of scales s_i have Pr[|T| > t] = sum_i e^(-t/s_i) prod_{j != i} s_i^2 / (s_i^2 - s_j^2).
# Gaussian: rounding moves a draw by at most 1/2. So t_discrete <= t_continuous + sum |c_i| move_i. Theorem `pivot-
# intervals`. Each mechanism knows the pivot of its own noise (`CellNoise.pivot`).

STEPS = 60
CLOSE = 1e-13
"""Ends are computed to this relative accuracy, and rounded outwards."""


def last_inside(margin: Callable[[Floats], Floats], start: Floats, end: Floats) -> Floats:
    """The point where the margin, at least 0 at start, turns negative on the way to end; end if it does not.

    Bracketing with inverse quadratic steps (Chandrupatla 1997), all cells at once. It returns the outer end of the
    bracket, so that an error of the search only widens an interval.
    """
    near, far = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    at_near, at_far = margin(near), margin(far)
    done = at_far >= 0
    # a is the newest point, b the other end of the bracket, c the one before.
    a, b, fa, fb = far, near, at_far, at_near
    c, fc = b, fb
    share = np.full(a.shape, 0.5)
    reach = np.abs(far - near) * CLOSE + np.abs(far) * 1e-15
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(STEPS):
            x = a + share * (b - a)
            fx = margin(x)
            same = (fx >= 0) == (fa >= 0)
            c, fc = np.where(same, a, b), np.where(same, fa, fb)
            b, fb = np.where(same, b, a), np.where(same, fb, fa)
            a, fa = x, fx
            width = np.abs(b - a)
            if bool(np.all(done | (width <= reach))):
                break
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            least = np.minimum(reach / np.maximum(2 * width, 1e-300), 0.5)
            share = np.clip(np.where(smooth & np.isfinite(step), step, 0.5), least, 1 - least)
    return np.where(done, end, np.where(fa >= 0, b, a))


DOUBLINGS = 60
MEANS = 9
HIDDEN = 0.25
"""A variance with this share of noise in its divisor cannot be distinguished from any other."""
MEAN_MISS = Fraction(1, 50)
"""The share of the error probability for the mean of a variance; the rest is for the variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Value and interval of every cell; `reach` is the distance from the value to the interval's end before it was cut.

    It is given if an interval was cut at 0 or at a declared bound, and can be shorter than the noise: 0 in [0, 0].
    """

    value: Floats
    low: Floats
    high: Floats
    reach: Floats | None = None

    @property
    def farthest(self) -> Floats:
        """The distance from the value to the farther end, before any cut, which decides the quality of a cell."""
        with np.errstate(invalid="ignore", over="ignore"):
            shown = np.maximum(self.high - self.value, self.value - self.low)
        return shown if self.reach is None else np.maximum(shown, self.reach)


def estimate(
    question: Question,
    noise: Sequence[tuple[tuple[str, ...], PartNoise]],
    noisy: Mapping[str, Any],
    confidence: Fraction,
    *,
    coordinates: int = 1,
) -> Estimate:
    """The statistic of each cell with its interval; with `coordinates` > 1 this many cells hold at once."""
    form = question.form
    if question.statistic.layout == "listed":
        # Independent or not, the misses of the cells add up to at most the whole.
        level = float(1 - (1 - confidence) / coordinates)
        value, low, high, *cut = question.statistic.answers(question, noise_by_part(noise), noisy, level)
        return Estimate(value=value, low=low, high=high, reach=cut[0] if cut else None)
    if form is None or question.tables is not None:  # counts, of one table or of several in a row
        return _counts(question, noise, noisy, confidence, coordinates)
    if coordinates > 1 and not isinstance(form, Linear):
        # Independent or not, the misses of the cells add up to at most the whole.
        confidence = 1 - (1 - confidence) / coordinates
        coordinates = 1
    return _of(form, noise_by_part(noise), noisy, confidence, coordinates)


def noise_by_part(noise: Sequence[tuple[tuple[str, ...], PartNoise]]) -> dict[str, PartNoise]:
    """The mechanism that gives noise to each part."""
    return {name: mechanism for parts, mechanism in noise for name in parts}


def _counts(
    question: Question,
    noise: Sequence[tuple[tuple[str, ...], PartNoise]],
    noisy: Mapping[str, Any],
    confidence: Fraction,
    coordinates: int,
) -> Estimate:
    """Every count with the bound on its own noise."""
    halves: dict[str, Floats] = {}
    for parts, mechanism in noise:
        found = mechanism.half_widths(len(parts), confidence, coordinates=coordinates)
        halves |= dict(zip(parts, found, strict=True))
    value = question.assemble(noisy)
    zero = np.zeros(1)
    each = [
        np.broadcast_to(np.ravel(halves.get(p.name, zero)), np.size(noisy[p.name])) for p in question.parts
    ]
    half = np.concatenate(each).reshape(np.shape(value)) if each else np.zeros(0)
    # Counts are whole numbers; an interval is rounded outwards, and never gets shorter.
    return Estimate(value=np.rint(value), low=np.floor(value - half), high=np.ceil(value + half))


def _of(
    form: Form, by_part: Mapping[str, PartNoise], noisy: Mapping[str, Any], level: Fraction, coordinates: int
) -> Estimate:
    if isinstance(form, PopulationForm):
        found = form.population(noisy, {n: noise_moments(m) for n, m in by_part.items()}, float(level))
        return Estimate(value=found.value, low=found.low, high=found.high, reach=found.reach)
    value = form.value(noisy)
    match form:
        case Linear():
            half = _half(by_part.get(form.part), level, coordinates) * float(form.spacing)
            return Estimate(value=value, low=value - half, high=value + half)
        case Average():
            steps = _half(by_part.get(form.part), level)
            top = reals(noisy[form.part])
            shifted = [form.value({**noisy, form.part: top + s}) for s in (-steps, steps)]
            # Value and ends are cut at the declared bounds: [0, 0] is as uncertain as its noise.
            reach = steps * form.gradient(noisy)[form.part]
            return Estimate(value=value, low=shifted[0], high=shifted[1], reach=reach)
        case Share():
            low, high = _share(form, by_part, noisy, float(level))
        case Quotient():
            low, high = _quotient(form, by_part, noisy, float(level))
        case Spread():
            low, high = _spread(form, by_part, noisy, level)
        case Root():
            inner = _of(form.of, by_part, noisy, level, 1)
            return Estimate(value=value, low=np.sqrt(inner.low), high=np.sqrt(inner.high))
        case _:
            raise NoLaw(operation=f"an interval of a {type(form).__name__}", reason="its pivot is not known")
    return Estimate(value=value, low=np.fmin(low, value), high=np.fmax(high, value))


def noise_moments(mechanism: PartNoise) -> NoiseMoments:
    """Variance and fourth cumulant of the noise of one number: that of Laplace noise, unless it is Gaussian."""
    (variance,) = mechanism.mean_variances(1)
    if isinstance(mechanism, RoundedGaussian):
        return NoiseMoments(variance=variance)
    return laplace_moments(variance)


def _half(mechanism: PartNoise | None, level: Fraction, coordinates: int = 1) -> float:
    """The bound on the noise of one cell, in steps."""
    return 0.0 if mechanism is None else float(mechanism.half_widths(1, level, coordinates=coordinates)[0])


def margin_of(noises: Sequence[PartNoise | None]) -> Pivot:
    """At least 0 where |sum w_i X_i| = |value| is within its quantile; continuous, for a search.

    The noises of one assignment are of one kind, whose class has the distribution of their sums.
    """
    held = [(i, n) for i, n in enumerate(noises) if isinstance(n, CellNoise)]
    if not held:
        return lambda weights, value, confidence: np.where(value == 0, 0.0, -1.0)
    pivot = held[0][1].pivot([n for _, n in held])

    def margin(weights: Sequence[Floats], value: Floats, confidence: float) -> Floats:
        return pivot([np.abs(weights[i]) for i, _ in held], value, confidence)

    return margin


def _share(
    form: Share, by_part: Mapping[str, PartNoise], noisy: Mapping[str, Any], confidence: float
) -> tuple[Floats, Floats]:
    """Shares s with |(1 - s) above - s below| <= t(s); parts below 0 count as 0, which only adds shares to the set."""
    a, b = (np.maximum(np.ravel(reals(noisy[n])), 0.0) for n in (form.above, form.below))
    pivot = margin_of([by_part.get(n) for n in (form.above, form.below)])

    def margin(s: Floats) -> Floats:
        return pivot([1 - s, s], (1 - s) * a - s * b, confidence)

    total = a + b
    anchor = np.divide(a, total, where=total > 0, out=np.full(total.shape, 0.5))
    hidden = total <= 0
    ends = _both_ends(margin, anchor, 0.0, 1.0)
    low, high = np.where(hidden, 0.0, ends[0]), np.where(hidden, 1.0, ends[1])
    shape = np.shape(noisy[form.above])
    return (form.low + form.width * low).reshape(shape), (form.low + form.width * high).reshape(shape)


def _quotient(
    form: Quotient, by_part: Mapping[str, PartNoise], noisy: Mapping[str, Any], confidence: float
) -> tuple[Floats, Floats]:
    """Ratios r with |scale * numerator - r * denominator| <= t(r); unbounded if noise hides the divisor."""
    shape = np.shape(noisy[form.numerator])
    top, bottom = np.ravel(reals(noisy[form.numerator])), np.ravel(reals(noisy[form.denominator]))
    noises = [by_part.get(n) for n in (form.numerator, form.denominator)]
    pivot = margin_of(noises)

    def margin(r: Floats) -> Floats:
        weights = [np.full(r.shape, form.scale), np.abs(r)]
        return pivot(weights, form.scale * top - r * bottom, confidence)

    one = np.ones_like(bottom)
    certain = margin_of(noises[1:])([one], bottom, confidence) < 0
    anchor = form.scale * top / np.where(certain, bottom, 1.0)
    bounds = []
    for sign in (-1.0, 1.0):
        step = np.maximum(np.abs(anchor), form.scale) * 1e-6
        end = anchor + sign * step
        for _ in range(DOUBLINGS):
            grow = (margin(end) >= 0) & certain
            if not grow.any():
                break
            step = np.where(grow, step * 4, step)
            end = anchor + sign * step
        bounds.append(np.where(certain, last_inside(margin, anchor, end), sign * np.inf).reshape(shape))
    return bounds[0], bounds[1]


def _spread(
    form: Spread, by_part: Mapping[str, PartNoise], noisy: Mapping[str, Any], level: Fraction
) -> tuple[Floats, Floats]:
    """Variances v for which some mean m in its own interval makes sum (y - m)^2 - v n unsurprising.

    In Bernstein parts sum (y - m)^2 - v n = (m^2 - v) b0 + (m^2 - m - v) b1 + ((1 - m)^2 - v) b2, with b1 counted so
    that y^2 = b2 and y = b2 + b1 / 2. The mean gets a small share of the error probability, the variance the rest.
    """
    miss = 1 - level
    shape = np.shape(noisy[form.names[0]])
    noises = [by_part.get(n) for n in form.names]
    pivot = margin_of(noises)
    parts = np.stack([np.ravel(reals(noisy[n])) for n in form.names])
    total = parts.sum(axis=0)
    mean_level, own = float(1 - miss * MEAN_MISS), float(1 - miss * (1 - MEAN_MISS))
    # The noise of one part, as a share of the divisor: how well anything is known here.
    noise = max(_half(x, level) for x in noises) / np.where(total > 0, total, 1.0)
    low, high = np.zeros(total.shape), np.full(total.shape, 0.25)
    seen = (total > 0) & (noise < HIDDEN)
    b, anchor = parts[:, seen], ((parts[2] + parts[1] / 2)[seen] / total[seen]).clip(0.0, 1.0)
    inside = _mean_margin(pivot, b, anchor, mean_level) >= 0
    seen[seen] = inside
    if seen.any():
        low[seen], high[seen] = _spread_seen(
            pivot, b[:, inside], anchor[inside], noise[seen], mean_level=mean_level, own=own
        )
    scale = form.width**2
    return (scale * low).reshape(shape), (scale * high).reshape(shape)


def _mean_margin(pivot: Pivot, b: Floats, m: Floats, mean_level: float) -> Floats:
    weights = [-m, 0.5 - m, 1 - m]
    value = weights[0] * b[0] + weights[1] * b[1] + weights[2] * b[2]
    return pivot(weights, value, mean_level)


def _spread_seen(
    pivot: Pivot, b: Floats, anchor: Floats, noise: Floats, *, mean_level: float, own: float
) -> tuple[Floats, Floats]:
    """The ends, if noise does not hide the variance, on [0, 1]."""
    total = b.sum(axis=0)
    first, last = _both_ends(lambda m: _mean_margin(pivot, b, m, mean_level), anchor, 0.0, 1.0)
    m = first + (last - first) * np.linspace(0.0, 1.0, MEANS)[:, None]

    # sum (y - m)^2 is never negative; where the noise makes it so, 0 in its place only adds variances to the set.
    square = np.maximum(m * m * b[0] + (m * m - m) * b[1] + (1 - m) ** 2 * b[2], 0.0)

    def margin(v: Floats) -> Floats:
        return pivot([m * m - v, m * m - m - v, (1 - m) ** 2 - v], square - v * total, own)

    point = np.minimum(square / total, 0.25)
    empty = margin(point) < 0
    lows, highs = (np.where(empty, point, end) for end in _both_ends(margin, point, 0.0, 0.25))
    # Between two means, h apart, an end bends by at most h^2/8 times its second derivative (`pivot-intervals`).
    bend = (0.25 + 2 * noise) / (1 - 2 * noise)
    slack = ((last - first) / (MEANS - 1)) ** 2 * bend
    return (lows.min(axis=0) - slack).clip(0.0, 0.25), (highs.max(axis=0) + slack).clip(0.0, 0.25)


def _both_ends(margin: Callable[[Floats], Floats], start: Floats, low: float, high: float) -> Floats:
    """The points where the margin turns negative on the way down to `low` and up to `high`, both in one search."""
    ends = np.stack([np.full(start.shape, low), np.full(start.shape, high)])
    return last_inside(margin, np.stack([start, start]), ends)
