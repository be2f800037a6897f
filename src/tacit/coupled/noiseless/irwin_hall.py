"""The Irwin-Hall law (a sum of uniform numbers), and the epsilon and delta that Groce 2014 reads off it.

    pdf(y) = (1/2 pi) int M(t + iu)^n e^{-(t + iu) y} du,   M(s) = (e^s - 1)/s,

along a line through the saddle point t, where the integrand falls like a Gaussian: the trapezoidal rule is exact to
twelve digits, deep in the tail too. The tables of the thesis are computed from it; certificates do not rest on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import InvalidParameter

__all__ = ["PrintedForm", "irwin_hall_cdf", "irwin_hall_pdf", "prism_forms"]

_POINTS = 4001
_WIDE = 12.0


def _saddle(n: int, y: float) -> float:
    """t with K'(t) = y/n, K = ln M: increasing in t, by bisection."""
    target = y / n
    low, high = -1e4, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(middle) < target else (low, middle)
    return (low + high) / 2


def _slope(t: float) -> float:
    """K'(t) = 1/(1 - e^{-t}) - 1/t."""
    if abs(t) < 1e-4:
        return 0.5 + t / 12
    return (1.0 if t > 700 else 1 / -math.expm1(-t) if t > -700 else 0.0) - 1 / t


def _integral(n: int, y: float, *, cumulative: bool) -> float:
    if not 0 < y < n:
        raise InvalidParameter(parameter="a", value=y, must=f"lie strictly between 0 and {n}")
    t = _saddle(n, y)
    if cumulative and t > -1e-3:
        raise InvalidParameter(parameter="a", value=y, must="lie well below the middle, in the lower tail")
    h = 1e-4 * max(1.0, abs(t))
    curvature = (_slope(t + h) - _slope(t - h)) / (2 * h)
    u = np.linspace(0.0, _WIDE / math.sqrt(n * curvature), _POINTS)
    s = t + 1j * u
    with np.errstate(invalid="ignore", divide="ignore"):
        log_m = np.where(np.abs(s) < 1e-8, s / 2, np.log(np.expm1(s) / s))
    exponent = n * log_m - s * y
    peak = float(exponent[0].real)
    values = np.exp(exponent - peak)
    if cumulative:
        values = values / (-s)
    # The integrand at -u is the conjugate of the one at u.
    total = (np.sum(values.real) - (values[0].real + values[-1].real) / 2) * (u[1] - u[0])
    return math.exp(peak) * float(total) / math.pi


def irwin_hall_pdf(n: int, y: float) -> float:
    """The density of the sum of n uniform numbers at y, to twelve digits or so."""
    return _integral(n, y, cumulative=False)


def irwin_hall_cdf(n: int, y: float) -> float:
    """The probability of a sum of at most y, for y in the lower tail."""
    return _integral(n, y, cumulative=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedForm:
    """Cor. 6.2 with chosen a and r: epsilon, the delta of the theorem, and the delta that Tables 6.3 and 6.4 print."""

    epsilon: float
    delta: float
    printed_delta: float


def prism_forms(*, n: int, mass: float, widths: Sequence[float], a: float, r: float) -> PrintedForm:
    """Groce 2014, Cor. 6.2, for a prism of this mass; `widths` are w_j/(t_j - s_j), one a coordinate.

        epsilon = sum_j ln( pdf(a) / pdf(a - w_j/2) ),
        delta   = 2 sum_j cdf(a + w_j/2) + (1 + e^epsilon) e^{-2 n v^2 (1 - r)^2},

    both for ceil(r v n) - 1 uniform numbers. The tables print cdf(a - w_j/2).
    """
    # r v n may be a whole number that floats miss.
    count = math.ceil(r * mass * n - 1e-9) - 1
    epsilon = math.fsum(
        math.log(irwin_hall_pdf(count, a) / irwin_hall_pdf(count, a - 0.5 * w)) for w in widths
    )
    failing = (1 + math.exp(epsilon)) * math.exp(-2 * n * mass**2 * (1 - r) ** 2)
    above, below = (
        2 * math.fsum(irwin_hall_cdf(count, a + sign * 0.5 * w) for w in widths) for sign in (1, -1)
    )
    return PrintedForm(epsilon=epsilon, delta=above + failing, printed_delta=below + failing)
