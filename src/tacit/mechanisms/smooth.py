"""Smooth bounds on how far one unit can move a statistic *on these data*: the median and other order statistics.

The local sensitivity of the data may be far below the global one, but noise of its size would tell it. A bound S
with S(D) <= e^beta S(D') for neighbours can size the noise (Nissim, Raskhodnikova, Smith 2007). A smooth bound is
computed from the data and is as secret as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.balls import precision
from tacit.exact.checks import settle, whole
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact, exact_parameter
from tacit.mechanisms.sensitivity import Sensitivity, rounding
from tacit.noise import grid_spacing

__all__ = ["SmoothBound", "local_sensitivity_at", "median_rank", "smooth_bound"]

# The computed maximum is within this share of the true one; beta is lowered by as much beforehand.
SLACK = Fraction(1, 1 << 30)
DEEP = 4096
BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothBound(Sensitivity):
    """A beta-smooth upper bound on the local sensitivity, in the unit of the statistic.

    Assumptions (the caller's proof, or `smooth_bound`): value >= |f(D) - f(D')| for all neighbours D' of these data,
    and value(D) <= e^beta value(D') for all neighbours. The value is data and is not printed.
    """

    value: Exact = field(repr=False)
    beta: Exact

    def __post_init__(self) -> None:
        exact = exact_parameter("value", 1 if _bad(self.value) else self.value, positive=False, any_size=True)
        if _bad(self.value) or exact <= 0:
            raise InvalidParameter(
                parameter="value", value="a smooth bound that is not above 0", must="be finite and above 0",
                hint="a smooth bound of 0 would publish the exact value; add a public floor, which keeps it smooth",
            )  # fmt: skip
        object.__setattr__(self, "value", exact)
        if exact_parameter("beta", self.beta, positive=False) < 0:
            raise InvalidParameter(parameter="beta", value=self.beta, must="be at least 0")
        settle(self, beta=self.beta)

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> SmoothBound:
        """A constant may be added: (S + c)(D) <= e^beta (S + c)(D')."""
        return SmoothBound(value=self.exact + rounding(spacing, dimension, records)[0], beta=self.beta)


def _bad(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def median_rank(count: int) -> int:
    """The rank (from 1) of the lower median."""
    return (whole("count", count, least=1) + 1) // 2


def _padded(values: npt.ArrayLike, low: int, high: int) -> npt.NDArray[Any]:
    low, high = whole("low", low, least=None), whole("high", high, least=None)
    array = integer_array(values).ravel()
    if array.size == 0:
        raise EmptyComposition(
            what="the data", hint="the number of rows is public here and must be at least 1"
        )
    if not low < high:
        raise InvalidParameter(
            parameter="high", value=high, must=f"be above low = {low}", hint="bounds are public"
        )
    if array.dtype != object and not -(1 << 63) <= low < high < 1 << 63:
        array = array.astype(object)
    clamped = np.sort(np.minimum(np.maximum(array, low), high))
    return np.concatenate([np.array([low], array.dtype), clamped, np.array([high], array.dtype)])


def local_sensitivity_at(padded: npt.NDArray[Any], rank: int, distance: int) -> int:
    """A_k = max over t in 0..k+1 of x_(m+t) - x_(m+t-k-1): the largest local sensitivity within k replacements."""
    last = padded.size - 1
    upper = np.minimum(np.arange(rank, rank + distance + 2), last)
    lower = np.maximum(np.arange(rank - distance - 1, rank + 1), 0)
    return int(gaps(padded, upper, lower).max())


def gaps(ordered: npt.NDArray[Any], later: Any, earlier: Any) -> npt.NDArray[Any]:
    """x_later - x_earlier of increasing integers, exactly.

    They are subtracted as integers and only then read as anything else. A difference of two 64-bit integers in
    order lies in [0, 2^64), where unsigned subtraction is exact; signed subtraction would wrap around, and floats
    would lose the last digits of large numbers before these could cancel.
    """
    if ordered.dtype == object:
        return np.asarray(ordered[later] - ordered[earlier])
    return np.asarray(ordered[later].astype(np.uint64) - ordered[earlier].astype(np.uint64))


def smooth_bound(
    values: npt.ArrayLike, *, beta: Exact, low: int, high: int, rank: int | None = None, spacing: Exact = 1
) -> SmoothBound:
    """The smallest beta-smooth bound for an order statistic (the lower median by default), replace-one neighbours.

    S = max over k of e^(-beta k) A_k = max over i <= m <= j of (x_j - x_i) e^(-beta (j - i - 1)), with x_0 = low and
    x_(n+1) = high; values, low and high are integers in grid steps. O(n log n): the best j does not fall as i
    grows. Computed in floats to one part in 2^30, with beta lowered by as much, so that it is beta-smooth for sure.
    Theorem `smooth-sensitivity`. Source: Nissim, Raskhodnikova, Smith 2007, Prop. 3.4.
    """
    exact_beta, step = exact_parameter("beta", beta), grid_spacing(spacing)
    padded = _padded(values, low, high)
    low, high = int(low), int(high)
    n = padded.size - 2
    m = median_rank(n) if rank is None else whole("rank", rank, least=1)
    if m > n:
        raise InvalidParameter(parameter="rank", value=rank, must=f"be at most the number of rows, {n}")
    inner = exact_beta - 2 * SLACK
    if inner < 64 * SLACK:
        # So small a beta allows next to no fall-off: the whole range is smooth for every beta.
        return SmoothBound(value=(high - low) * step, beta=exact_beta)
    i, j = _best_pair(padded, m, float(inner))
    with precision(128):
        import flint

        rate = flint.arb(flint.fmpq(inner.numerator, inner.denominator))
        found = int(padded[j]) - int(padded[i])
        # Terms beyond e^-4096 of the range are covered by that constant, which is smooth.
        floor = (high - low) * (-flint.arb(DEEP)).exp()
        size = (found * (-rate * (j - i - 1)).exp() if found else floor).max(floor)
        mantissa, exponent = (size * (1 + flint.arb(flint.fmpq(1, 1 << 31)))).upper().mid().man_exp()
    top = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return SmoothBound(value=min(top, Fraction(high - low)) * step, beta=exact_beta)


def _logs(sizes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Natural logarithms of integers that are at least 0, of any length; -inf for 0."""
    if sizes.dtype == object:
        logs = np.vectorize(lambda v: math.log(v) if v > 0 else -math.inf, otypes=[np.float64])
        return np.asarray(logs(sizes))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sizes.astype(np.float64)))


def _block(
    x: npt.NDArray[Any], beta: float, i_low: int, i_high: int, j_low: int, j_high: int
) -> tuple[float, int, int]:
    """All pairs of a small block at once."""
    i, j = np.arange(i_low, i_high + 1)[:, None], np.arange(j_low, j_high + 1)[None, :]
    # i <= m <= j throughout, so that no difference is negative.
    value = _logs(gaps(x, j, i)) - beta * (j - i - 1)
    value = np.where(j > i, value, -np.inf)
    at = np.unravel_index(int(np.argmax(value)), value.shape)
    return float(value[at]), i_low + int(at[0]), j_low + int(at[1])


def _best_pair(x: npt.NDArray[Any], m: int, beta: float) -> tuple[int, int]:
    """The pair i <= m <= j, i < j, with the largest (x_j - x_i) e^(-beta (j - i - 1)), by divide and conquer."""
    reach = int(min(DEEP / beta + 2, x.size))
    first, last = max(0, m - reach), min(x.size - 1, m + reach)
    best = (-math.inf, m - 1, m)
    stack = [(first, m, m, last)]
    while stack:
        i_low, i_high, j_low, j_high = stack.pop()
        if i_low > i_high:
            continue
        if (i_high - i_low + 1) * (j_high - j_low + 1) <= BLOCK:
            best = max(best, _block(x, beta, i_low, i_high, j_low, j_high))
            continue
        i = (i_low + i_high) // 2
        js = np.arange(max(j_low, i + 1), j_high + 1)
        if js.size == 0:
            j = j_high
        else:
            value = _logs(gaps(x, js, i)) - beta * (js - i - 1)
            at = int(np.argmax(value))
            j = int(js[at])
            if value[at] > best[0]:
                best = (float(value[at]), i, j)
            if not math.isfinite(value[at]):
                # No gap above i, hence none above later ones; earlier ones may still have their best anywhere.
                stack.append((i_low, i - 1, j_low, j_high))
                continue
        stack.append((i_low, i - 1, j_low, j))
        stack.append((i + 1, i_high, j, j_high))
    return best[1], best[2]
