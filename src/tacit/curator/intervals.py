"""Errors by the noise: the interval of every released number, and the error that a release is expected to have.

Intervals give value, low, high of every cell, from the noisy parts and the known laws of their noise. They cover the
statistic of the declared, clamped and bounded data with at least the stated probability, whatever these data are. Every
certificate names the limits of the intervals: clamping, rounding and dropping of values, and the sampling of people
from a population. All of this is post-processing. Expected errors, before a row is read, follow below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.curator.guesses import Guess
from tacit.errors import NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Approximate, Concentrated, GaussianDP, Neighbours, Rows
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.base import CellNoise, PartNoise, Pivot
from tacit.mechanisms.spreads import normal_quantile
from tacit.risk import decompose
from tacit.risk.releases import release_price
from tacit.statistics.base import Question, base_unit, row_limit
from tacit.statistics.forms import Average, Form, Linear, Quotient, Root, Share, Spread, reals
from tacit.statistics.population import NoiseMoments, PopulationForm, RatioOfSums, laplace_moments

if TYPE_CHECKING:
    from tacit.curator.assignments import Assignment


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


# The expected error of a release, before a row is read: from the noise and, if needed, a guess at the number of rows.
#
# The error of a count or a sum is the noise itself. The error of a mean, a share, a ratio or a variance is roughly the
# noise divided by the number of rows, which is unknown in advance. With `rows`, a public guess, the preview shows it
# for a cell with that many rows and values in the middle of the declared range, or around a guessed value. The error
# of a quantile is an error of ranks; with `rows` and a guessed spread the preview shows it in values.


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected absolute error of a cell, its bound at the confidence, and the quantity that it is about.

    `mean` is None without a closed form; both are None if they depend on the data.
    """

    mean: float | None
    within: float | None
    confidence: float
    about: str
    floor: float | None = None
    floor_reason: str = ""
    sampling: float | None = None
    ranks: bool = False
    """Whether the error is one of ranks, in rows, and not of values."""
    plain: Expected | None = None
    """Under another condition: the error of differential privacy at the same price."""

    def beside(self, plain: Expected) -> Expected:
        """The same, with the error of differential privacy at the same price."""
        about = f"{self.about}; plain DP errs within {_shown(plain.within)} in every cell"
        return replace(self, plain=plain, about=about)

    @property
    def floor_record(self) -> dict[str, Any]:
        """The error that no mechanism could beat, and how near this one is."""
        ratio = None if self.floor is None or self.mean is None else self.mean / self.floor
        return {"lower_bound": self.floor, "ratio": ratio, "reason": self.floor_reason}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "expected_absolute_error": self.mean,
            "within": self.within,
            "confidence": self.confidence,
            "about": self.about,
            **({} if self.sampling is None else {"sampling_within": self.sampling}),
            **({} if self.plain is None else {"differential_privacy": self.plain.to_dict()}),
        }

    record = formerly("record")


NO_GUESS = Guess()


def expected(
    question: Question,
    assignment: Assignment,
    *,
    confidence: Fraction,
    rows: int | None,
    sampling: bool = False,
    guess: Guess | None = None,
) -> Expected:
    """The error of one cell, and beside it a lower bound for every mechanism.

    If rows are declared draws from a population, also the sampling error alone, in the worst case of a value in
    its range (theorem `risk-decomposition`: the two errors add up).
    """
    found = _expected(question, assignment, confidence=confidence, rows=rows, guess=guess or NO_GUESS)
    found = _with_floor(found, question, assignment, rows)
    form = question.form
    if isinstance(form, RatioOfSums) and (form.total or not math.isfinite(form.most - form.least)):
        return found
    if not sampling or rows is None or not isinstance(form, Share | Average | RatioOfSums):
        return found
    worst = form.width / 2 / math.sqrt(rows)
    parts = decompose(privacy=found.within or 0.0, sampling=normal_quantile(float(confidence)) * worst)
    verdict = (
        "privacy adds less than sampling does" if parts.benign else "privacy adds more than sampling does"
    )
    about = f"{found.about}; sampling alone: within {parts.sampling:.3g}; {verdict}"
    return replace(found, sampling=parts.sampling, about=about)


NO_BOUND = "no lower bound is known for this statistic"


def _with_floor(found: Expected, question: Question, assignment: Assignment, rows: int | None) -> Expected:
    """The largest valid lower bound of the worst expected error, from public numbers alone (tacit.risk).

    A mean or a proportion over a public number of rows has that of its sum, divided by the number.
    """
    problem = question.statistic.problem
    unit, size = base_unit(question.unit)
    average = question.form if isinstance(question.form, Average) and rows is not None else None
    if average is not None:
        problem = "mean"
    reason = ""
    if problem is None or found.mean is None or not question.known_keys or question.cells is None:
        reason = NO_BOUND
    elif not found.mean:
        reason = "it is exact"
    elif assignment.gamma:
        reason = "the bounds are for differential privacy; random differential privacy may go below them"
    elif (promise := _promise(assignment)) is None:
        reason = "no lower bound is known for a promise of this kind"
    elif size > 1:
        reason = "no lower bound is known for groups of units"
    if reason:
        return replace(found, floor_reason=reason)
    assert problem is not None
    statistic: Any = question.statistic
    people = getattr(statistic, "of", "rows") == "people"
    about: dict[str, Any] = {
        "cells": sum(p.cells or 0 for p in question.parts),
        "at_most": 1 if people else row_limit(unit),
    }
    if average is not None:
        about |= {"n": rows, "cells": 1, "low": average.low, "high": average.low + average.width}
    elif problem == "margins":
        about["attributes"] = len(question.parts)
    elif problem == "sum":
        column = question.schema.measured(statistic.column)
        about |= {
            "low": float(column.lowest * column.spacing),
            "high": float(column.highest * column.spacing),
        }
    elif about["cells"] > 1:
        problem = "histogram"
    assert promise is not None
    price = release_price(
        problem,
        error=float(found.mean or 0),
        **promise,
        neighbours=unit.neighbours,
        **about,
    )
    from_n = "" if price.least_n is None else f"the lower bound holds from {price.least_n:,} units on"
    if average is not None:
        from_n = f"the lower bound is that of the sum, divided by {rows:,} rows"
    return replace(found, floor=price.lower_bound, floor_reason=price.reason or from_n)


def _promise(assignment: Assignment) -> dict[str, Any] | None:
    """The bound that a rival must promise as well: the assignment's own. A larger number makes a smaller floor."""
    pure = assignment.pure()
    if pure is not None:
        return {"epsilon": pure or 1}
    bound = assignment.bound
    if isinstance(bound, Approximate) and bound.epsilon > 0:
        return {"epsilon": Fraction(bound.epsilon), "delta": Fraction(bound.delta)}
    if isinstance(bound, GaussianDP) and bound.mu > 0:
        return {"mu": Fraction(bound.mu)}
    return {"rho": Fraction(bound.rho)} if isinstance(bound, Concentrated) and bound.rho > 0 else None


def _shown(value: float | None) -> str:
    return "an unknown error" if value is None else f"{value:.3g}"


def _expected(
    question: Question, assignment: Assignment, *, confidence: Fraction, rows: int | None, guess: Guess
) -> Expected:
    level = float(confidence)
    own = assignment.own_error(question, confidence, rows)
    if own is not None:
        mean, within, about = own
        if question.statistic.fits == "ranks" and within is not None:
            return _of_ranks(question, within, level, about, rows, guess)
        return Expected(mean=mean, within=within, confidence=level, about=about)
    if not assignment.noise:
        return Expected(mean=0.0, within=0.0, confidence=level, about="each cell: it is exact")
    if question.statistic.layout == "listed":
        by_part = noise_by_part(assignment.noise)
        mean, within, about = question.statistic.expects(question, by_part, level, rows)
        return Expected(mean=mean, within=within, confidence=level, about=about)
    if question.form is None or isinstance(question.form, Linear):
        return _of_cells(question, assignment, confidence)
    if rows is None:
        said = "depends on the number of rows of a cell: give rows= for a guess"
        return Expected(mean=None, within=None, confidence=level, about=said)
    if isinstance(question.form, PopulationForm):
        form = question.form.noise_only()
        if form is None:
            said = "depends on how much primary sampling units differ"
            return Expected(mean=None, within=None, confidence=level, about=said)
        question = replace(question, form=form)
    assert question.form is not None
    from tacit.curator.assignments import Assignment, NoisyParts

    parts = _typical(question, question.form, rows, guess)
    # Given random data, the error of cells that have noise.
    reading = Assignment.read if assignment.gamma else type(assignment).read
    found = reading(assignment, question, NoisyParts(parts=parts), confidence)
    # Near a bound the interval is cut there, and its farther end counts.
    half = float(np.max(np.maximum(found.high - found.value, found.value - found.low)))
    if not math.isfinite(half):
        said = f"at {rows:,} rows the noise hides the divisor: there would be no interval"
        return Expected(mean=None, within=None, confidence=level, about=said)
    about = f"a cell with {rows:,} rows {_lying(question.form, guess)}"
    if isinstance(question.form, Average):
        # The number of rows is public and has no noise: the error is that of the sum, divided by it.
        mean = assignment.mean_errors()[question.form.part] * float(question.form.spacing) / rows
        return Expected(mean=mean, within=half, confidence=level, about=f"{rows:,} rows, a public number")
    if hidden_rows(question):
        about = f"{about}; {PUBLIC_ROWS}"
    return Expected(mean=None, within=half, confidence=level, about=about)


PUBLIC_ROWS = (
    "declare missing= for the column (missing=False for a flag), and the number of rows needs no noise: the error is "
    "then smaller"
)


def hidden_rows(question: Question) -> bool:
    """Whether the number of rows has noise only because values may be missing. Then declaring `missing` removes it."""
    unit, _ = base_unit(question.unit)
    return (
        isinstance(question.form, Share)
        and isinstance(unit, Rows)
        and unit.neighbours is Neighbours.REPLACE_ONE
        and question.cells == 1
        and not question.axes
        and getattr(question.statistic, "where", None) is None
    )


def _lying(form: Form, guess: Guess) -> str:
    if isinstance(form, Share | Average) and guess.value is not None:
        return f"whose mean is about {guess.value:g}: a declared guess"
    if isinstance(form, Share):
        return f"whose values lie in the middle of their range; {ASK_GUESS}"
    return "whose values lie in the middle of their range"


ASK_GUESS = "if they do not, guess = { value = ... } gives a better number"


def _of_ranks(
    question: Question, within: float, level: float, about: str, rows: int | None, guess: Guess
) -> Expected:
    """The error of a quantile, in values if both rows and spread are guessed; the largest over the requested shares."""
    statistic: Any = question.statistic
    if rows is None or guess.spread is None:
        return Expected(mean=None, within=within, confidence=level, about=about, ranks=True)
    each = [guess.in_values(within, share=float(q), rows=rows) or 0.0 for q in statistic.at]
    said = (
        f"a quantile of {rows:,} values that lie about as a normal distribution with standard deviation "
        f"{guess.spread:g}: a declared guess; its rank: ± {within:.3g} rows"
    )
    return Expected(mean=None, within=max(each), confidence=level, about=said)


def _of_cells(question: Question, assignment: Assignment, confidence: Fraction) -> Expected:
    """The noise itself: means over the cells of a table, and over the tables."""
    spacing = 1.0 if question.form is None else float(question.parts[0].spacing)
    halves = list(assignment.half_widths(confidence).values())
    alike = len({float(x) for h in halves for x in (h.min(), h.max())}) == 1
    largest = max(float(h.max()) for h in halves) * spacing
    return Expected(
        mean=assignment.mean_error * spacing,
        within=float(np.mean([h.mean() for h in halves])) * spacing,
        confidence=float(confidence),
        about="each cell" if alike else f"a cell, on average; the largest ± {largest:.3g}",
    )


def _typical(question: Question, form: Form, rows: int, guess: Guess) -> dict[str, Any]:
    """Parts of one cell with this many rows, values in the middle or at a guess; uses no data."""
    spacing = {p.name: p.spacing for p in question.parts}
    match form:
        case PopulationForm():
            return form.typical_of(rows)
        case Root():
            return _typical(question, form.of, rows, guess)
        case Share():
            # Post-stratified weights of a cell add up to its members, however many rows stand for them.
            members = question.details.get("a_cell", Fraction(form.width) * rows)
            whole, at = members / spacing[form.above], _placed(form, guess)
            return {form.above: np.array([int(whole * at)]), form.below: np.array([int(whole * (1 - at))])}
        case Average():
            whole = Fraction(form.width) / spacing[form.part] * rows
            return {form.part: np.array([int(whole * _placed(form, guess))]), form.rows: np.array([rows])}
        case Spread():
            third = Fraction(form.width) ** 2 / spacing[form.names[0]] * rows / 3
            return {name: np.array([float(third)]) for name in form.names}
        case Quotient():
            statistic: Any = question.statistic
            columns = (statistic.numerator, statistic.denominator)
            found = {}
            for name, column in zip((form.numerator, form.denominator), columns, strict=True):
                measured = question.schema.measured(column)
                found[name] = np.array([(measured.lowest + measured.highest) * rows // 2])
            return found
    raise NoLaw(operation=f"the error of a {type(form).__name__}", reason="no typical parts are known for it")


def _placed(form: Share | Average, guess: Guess) -> Fraction:
    """The place of the mean in its range: the middle, or the guess."""
    if guess.value is None or not form.width:
        return Fraction(1, 2)
    at = (Fraction(guess.value) - Fraction(form.low)) / Fraction(form.width)
    return min(max(at, Fraction(0)), Fraction(1))
