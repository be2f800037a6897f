"""Exact sums as the thesis has them (Groce 2014, Thm 6.6, 6.7, Cor. 6.2, 6.3), with its parameters found automatically.

Rows have densities here, and the simulator fills in the middle of the range. This statement about continuous
data is kept for comparison; `exact_sum` certifies recorded data. Irwin-Hall distributions are exact, never a
normal distribution:

    pdf_n(y) = (1/n) (1 + 2 sum_k s_k cos(2 pi k (y - n/2)/n)),   s_k = (sin(pi k/n)/(pi k/n))^n,

since the distribution lies in [0, n] and so is its own period (theorem `irwin-hall-sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from tacit.errors import NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, ball, bisected, precision, up

_BITS = 192
_LAST = 110.0
_FEW = 30
"""Fewer rows use the finite sum of Def. 6.2, in rationals, because their series falls too slowly."""


class IrwinHall:
    """The distribution of a sum of n independent uniform variables on [0, 1]: balls around its density and
    distribution.
    """

    def __init__(self, n: int) -> None:
        self.n = whole("n", n, least=2)
        # Beyond these frequencies all terms together are below e^-_LAST.
        count = 1
        while self.n >= _FEW and self._log_term(count) > -_LAST:
            count = count + 1 + count // 16
        self.count = count
        self._terms: list[Ball] | None = None

    def _log_term(self, k: int) -> float:
        """An upper end of ln |s_j| for all j >= k, with room for the sum over them."""
        x = math.pi * k / self.n
        near = self.n * math.log(max(math.sin(x) / x, 1e-300)) if x < math.pi else -math.inf
        far = -self.n * math.log(max(x, math.pi))
        return max(near, far) + math.log(4.0 * self.n + 4.0)

    def _coefficients(self) -> list[Ball]:
        import flint

        if self._terms is None:
            self._terms = []
            for k in range(1, self.count + 1):
                angle = flint.arb(flint.fmpq(k, self.n))
                self._terms.append((angle.sin_pi() / (angle * flint.arb.pi())) ** self.n)
        return self._terms

    def _series(self, y: object, wave: Callable[[Ball, int], Ball]) -> Ball:
        turn = ball(2) * (_exact(y) - ball(Fraction(self.n, 2))) / self.n
        total = ball(0)
        for k, s in enumerate(self._coefficients(), 1):
            total += s * wave(turn * k, k)
        import flint

        return total + flint.arb(0, math.exp(-_LAST))

    def _finite(self, y: object, power: int) -> Ball:
        """Def. 6.2: (1/power!) sum over k <= y of (-1)^k C(n, k) (y - k)^power."""
        at = y if isinstance(y, Fraction | int) else Fraction(repr(float(y)))  # type: ignore[arg-type]
        last = min(math.floor(at), self.n)
        terms = ((-1) ** k * math.comb(self.n, k) * (at - k) ** power for k in range(last + 1))
        return ball(sum(terms, Fraction(0)) / math.factorial(power))

    def density(self, y: object) -> Ball:
        """pdf_n(y)."""
        with precision(_BITS):
            if self.n < _FEW:
                return self._finite(y, self.n - 1)
            return (1 + 2 * self._series(y, lambda t, k: t.cos_pi())) / self.n

    def distribution(self, y: object) -> Ball:
        """cdf_n(y)."""
        import flint

        with precision(_BITS):
            if self.n < _FEW:
                return self._finite(y, self.n)
            waves = self._series(y, lambda t, k: t.sin_pi() / (flint.arb.pi() * k))
            return _exact(y) / self.n + waves


def _exact(y: object) -> Ball:
    return ball(y if isinstance(y, Fraction | int) else Fraction(repr(float(y))))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The result of a theorem for chosen parameters: epsilon, its delta, and delta as the tables print it."""

    epsilon: float
    delta: float
    delta_printed: float
    shift: tuple[float, ...]
    share: float | None = None


def uniform_theorem(n: int, *, shift: object | None = None, delta: float | None = None) -> Printed:
    """Thm 6.6: uniform rows on [0, 1] with a known distribution; for the thesis's a (`shift`), or the best one for a
    delta.

    epsilon = ln pdf(a - .5)/pdf(a - 1), delta = cdf(a - .5) + cdf(a), with n - 1 rows.
    """
    law = IrwinHall(whole("n", n, least=3) - 1)

    def at(a: Fraction) -> Printed:
        half = Fraction(1, 2)
        with precision(_BITS):
            ratio = law.density(a - half) / law.density(a - 1)
            epsilon = ratio.log()
            total = law.distribution(a - half) + law.distribution(a)
            return Printed(epsilon=up(epsilon), delta=up(total), delta_printed=up(total), shift=(float(a),))

    if shift is not None:
        a = Fraction(repr(positive("shift", shift)))
        refuse_if(not 1 < a < Fraction(n, 2), "shift", shift, "lie between 1 and n/2")
        return at(a)
    target = probability("delta", delta, below_one=True)
    return at(_largest(lambda a: at(a).delta <= target, Fraction(9, 8), Fraction(n, 2)))


def rectangle_theorem(
    n: int,
    *,
    volume: float,
    widths: Sequence[float],
    shift: object | None = None,
    share: object | None = None,
    delta: float | None = None,
    known: int = 0,
) -> Printed:
    """Cor. 6.2 and 6.3: rows in R^d whose density contains a prism of this volume, `widths` the range over its sides.

    epsilon = sum_j ln pdf(a)/pdf(a - .5 w_j), delta = 2 sum_j cdf(a + .5 w_j) + (1 + e^epsilon) e^{-2 n v^2 (1 - r)^2},
    with ceil(r v n) - 1 rows. The result for the thesis's a (`shift`) and r (`share`), or for the best ones at
    a delta. `delta_printed` has Table 6.2's cdf(a + .5 w) and + Pr[fail] for d = 1; for d > 1 Tables 6.3 and
    6.4's cdf(a
    - .5 w) and the right factor.
    """
    size, v = whole("n", n, least=3) - whole("known", known, least=0), probability("volume", volume)
    ratios = [Fraction(repr(positive("widths", w))) / 2 for w in widths]
    refuse_if(size < 3 or not ratios or v == 0, "volume", volume, "be above 0, with rows left and a range")

    def at(a: Fraction, r: Fraction, law: IrwinHall) -> Printed:
        with precision(_BITS):
            epsilon = sum(((law.density(a) / law.density(a - h)).log() for h in ratios), ball(0))
            fail = (-2 * size * (ball(Fraction(repr(v))) * (1 - ball(r))) ** 2).exp()
            near = 2 * sum((law.distribution(a + h) for h in ratios), ball(0))
            far = 2 * sum((law.distribution(a - h) for h in ratios), ball(0))
            whole_delta = near + (1 + epsilon.exp()) * fail
            printed = near + fail if len(ratios) == 1 else far + (1 + epsilon.exp()) * fail
            return Printed(
                epsilon=up(epsilon),
                delta=up(whole_delta),
                delta_printed=up(printed),
                shift=(float(a),) * len(ratios),
                share=float(r),
            )

    def rows(r: Fraction) -> int:
        return math.ceil(r * Fraction(repr(v)) * size) - 1

    if shift is not None and share is not None:
        r = Fraction(repr(positive("share", share)))
        return at(Fraction(repr(positive("shift", shift))), r, IrwinHall(rows(r)))
    target = probability("delta", delta, below_one=True)
    best: Printed | None = None
    for r in _shares(size, v, target):
        if rows(r) < 4:
            continue
        law = IrwinHall(rows(r))
        lowest, top = max(ratios) + Fraction(1, 8), Fraction(law.n, 2) - max(ratios)

        def tails(x: Fraction, law: IrwinHall = law) -> float:
            return up(2 * sum((law.distribution(x + h) for h in ratios), ball(0)))

        if top <= lowest or tails(lowest) > target / 2:
            continue
        # epsilon, and with it the factor of the failures, falls in a while the tails grow: begin between them.
        start = _largest(lambda x, tails=tails: tails(x) <= target / 2, lowest, top)  # type: ignore[misc]
        if at(start, r, law).delta > target:
            continue
        a = _largest(lambda x, r=r, law=law: at(x, r, law).delta <= target, start, top)  # type: ignore[misc]
        found = at(a, r, law)
        if best is None or found.epsilon < best.epsilon:
            best = found
    if best is None:
        raise NoLaw(
            operation=f"Cor. 6.2 with delta = {target:g}",
            reason="no share r and no a reach it: too few rows, or too small a prism",
        )
    return best


def _shares(size: int, v: float, delta: float) -> list[Fraction]:
    """Shares r whose probability of failure is a small part of delta: the largest ones are the best."""
    shares = np.array([1e-4, 1e-3, 1e-2, 0.05, 0.2, 0.3]) * delta
    found: Floats = 1 - np.sqrt(np.log(1 / shares) / (2 * size)) / v
    return [Fraction(round(float(r) * 1e6), 10**6) for r in found if r > 0]


def _largest(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """About the largest a that still does, on a grid of a thousandth."""
    if not holds(low):
        raise NoLaw(operation="the theorem at this delta", reason="its smallest delta is larger")
    while high - low > Fraction(1, 100):
        middle = Fraction(math.floor((low + high) / 2 * 1000), 1000)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# The Irwin-Hall distribution (a sum of uniform numbers), and the epsilon and delta that Groce 2014 reads off it.
#
#     pdf(y) = (1/2 pi) int M(t + iu)^n e^{-(t + iu) y} du,   M(s) = (e^s - 1)/s,
#
# along a line through the saddle point t, where the integrand falls like a Gaussian: the trapezoidal rule is exact to
# twelve digits, deep in the tail too. The tables of the thesis are computed from it; certificates do not rest on it.

_POINTS = 4001
_WIDE = 12.0


def _saddle(n: int, y: float) -> float:
    """t with K'(t) = y/n, K = ln M: increasing in t, by bisection."""
    target = y / n
    low, high = bisected(lambda t: not _slope(t) < target, -1e4, 1e4, halvings=200)
    return (low + high) / 2


def _slope(t: float) -> float:
    """K'(t) = 1/(1 - e^{-t}) - 1/t."""
    if abs(t) < 1e-4:
        return 0.5 + t / 12
    return (1.0 if t > 700 else 1 / -math.expm1(-t) if t > -700 else 0.0) - 1 / t


def _integral(n: int, y: float, *, cumulative: bool) -> float:
    refuse_if(not 0 < y < n, "a", y, f"lie strictly between 0 and {n}")
    t = _saddle(n, y)
    refuse_if(cumulative and t > -1e-3, "a", y, "lie well below the middle, in the lower tail")
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
