"""The Gaussian pair (Gaussian DP, GDP): N(mu, 1) against N(0, 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT, Column, Floats, column
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bracket, positive_ball, up, working_precision
from tacit.pld.distributions import AtomicPLD, LossCells, PrivacyLossDistribution, TailPLD, Tails
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order
from tacit.pld.quadrature import (
    QuadratureRange,
    Rule,
    WithoutReplacementRule,
    integer_half,
    integer_rule,
    normal_half,
    normal_rule,
    soften,
)

# The normal distribution: in balls, and in floats with error bounds.

_TINY = 1e-307


def normal_cdf(x: Any) -> Any:
    """The ball of the standard normal distribution function."""
    return (-x / ball(2).sqrt()).erfc() / 2


def float_normal_cdf(z: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Phi(z) and its error bound, where z carries an absolute error of at most 4 units of `spread`.

    The relative error of the library's function stays below (16 + 4 z^2) units for z < 0 (tested).
    """
    from scipy.special import ndtr

    value = ndtr(z)
    below = np.clip(z, -40.0, 0.0)
    relative = UNIT * (16 + 4 * below * below + 8 * (np.abs(below) + 1) * spread)
    return value, value * relative + _TINY


_NODES = np.array([-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526])


_SHARES = np.array([0.34785484513745385, 0.6521451548625461, 0.6521451548625461, 0.34785484513745385]) / 2


def normal_cells(x: Floats, half: Column, wide: Callable[[slice], LossCells]) -> LossCells:
    """Masses of N(half, 1) and N(-half, 1) between edges x, by Gauss's rule of four nodes in narrow cells.

    The rule's error for a cell of width w is at most w^9 max|phi^(8)| 4!^4/(9 8!^3), and |He_8(z)| is at most
    (|z| + 4.15)^8, as its roots lie within 4.15: relatively, 5.7e-10 (w (|z| + 4.15))^8 times the variation
    of phi over the cell. `wide` gives the masses between the edges of a slice from tails: in wide cells,
    differences of tails do not cancel.
    """
    left, right = x[:, :-1], x[:, 1:]
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(left) & np.isfinite(right), right - left, np.inf)
        reach = np.maximum(np.abs(left), np.abs(right)) + half + 4.15
        grade = width * reach
    narrow = grade < 0.25
    rows = [np.zeros_like(grade) for _ in range(4)]
    used = np.flatnonzero(np.any(narrow, axis=0))
    if len(used):
        at = slice(int(used[0]), int(used[-1]) + 1)
        chosen, power = narrow[:, at], np.where(narrow[:, at], grade[:, at], 0.0)
        middle = np.where(chosen, (left[:, at] + right[:, at]) / 2, 0.0)
        size = np.where(chosen, width[:, at], 0.0)
        power *= power
        power *= power
        power *= power * 8e-10
        for k, shift in enumerate((-half, half)):
            total = np.zeros_like(middle)
            for node, share in zip(_NODES, _SHARES, strict=True):
                z = size * (node / 2)
                z += middle
                z += shift
                z *= z
                z *= -0.5
                total += share * np.exp(z, out=z)
            total *= size * 0.3989422804014327
            z = np.abs(middle + shift)
            relative = UNIT * (32 + 4 * z * (z + np.abs(middle) + half)) + power
            rows[k][:, at] = total
            rows[k + 2][:, at] = total * relative + 1e-307
    used = np.flatnonzero(~np.all(narrow, axis=0))
    if len(used):
        at = slice(int(used[0]), int(used[-1]) + 1)
        known = wide(slice(at.start, at.stop + 1))
        for k, values in enumerate((known.p, known.q, known.p_error, known.q_error)):
            rows[k][:, at] = np.where(narrow[:, at], rows[k][:, at], values)
    return LossCells(p=rows[0], q=rows[1], p_error=rows[2], q_error=rows[3])


# The total variation of the density of a tilted loss, for normal noise that is sampled.
#
# A density f of total variation V has |integral of f e^(iwl) dl| <= V/|w|: `docs/theory/negligible-frequencies.md`
# (f). With x normal under Q, Z = e^(mu x - mu^2/2), g = 1 - q + q Z and the loss ln g (or its negative), all
# densities that are needed are phi(x) g^k/(mu q Z) as functions of the loss, for some real k.

_CELLS = 256


def log_variation(mu: Floats, rate: Floats, power: float, start: Floats | None = None) -> Floats:
    """Upper bounds on ln V of each row (columns mu and rate), over all x or over x >= `start`.

    ln f = -x^2/2 + k ln g - mu x + const has the derivative mu (k s - 1) - x with s = q Z/g in (0, 1): its zeros, at
    most three, lie between -mu and (k - 1) mu, and its second derivative between -1 - |k| mu^2/4 and |k| mu^2/4.
    """
    low, high = (min(power, 0.0) - 1) * mu, (max(power, 0.0) - 1) * mu
    if start is not None:
        low, high = np.maximum(low, start), np.maximum(high, start)
    width = (high - low) / _CELLS
    x = low + width * np.arange(_CELLS + 1.0)
    log_z = mu * x - mu * mu / 2
    log_g = np.logaddexp(np.log1p(-rate), np.log(rate) + log_z)
    logs = power * log_g - x * x / 2 - log_z - np.log(mu * rate) - math.log(2 * math.pi) / 2
    peak = np.max(logs, axis=1, keepdims=True)
    heights = np.exp(logs - peak)
    moves = np.abs(np.diff(heights, axis=1))
    bend = abs(power) * mu[:, 0] ** 2 / 4
    part = width[:, 0] ** 2 / 8
    # Two maxima and one minimum may hide between the points; a cell that has both counts three times.
    hidden = 4 * np.expm1(np.minimum((1 + bend) * part, 600.0)) - 2 * np.expm1(-bend * part)
    total = heights[:, 0] + heights[:, -1] + np.sum(moves, axis=1) + 2 * np.max(moves, axis=1) + hidden
    size = np.max(np.abs(power * log_g) + x * x / 2 + np.abs(log_z), axis=1)
    return np.asarray(peak[:, 0] + np.log(total) + 1e-9 + 1e-14 * size)


def gaussian_pld(mu: Column) -> TailPLD:
    """The loss of N(mu, 1) against N(0, 1): N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""
    widest = float(np.max(mu))

    def tails(losses: Floats) -> Tails:
        shift = losses / mu
        spread = np.where(np.isfinite(shift), np.abs(shift), 0.0) + mu / 2
        rows = [mu / 2 - shift, shift - mu / 2, -mu / 2 - shift, shift + mu / 2]
        got = [float_normal_cdf(z, spread) for z in rows]
        finite = losses[np.isfinite(losses)]
        slack = 8 * UNIT * (float(np.max(np.abs(finite), initial=0.0)) + widest**2)
        return Tails(values=np.array([g[0] for g in got]), errors=np.array([g[1] for g in got]), slack=slack)

    def cells(edges: Floats) -> LossCells:
        return normal_cells(edges / mu, mu / 2, lambda at: law.tail_cells(edges[:, at]))

    law = TailPLD(tails=tails, closed_cells=cells)
    return law


@dataclass(frozen=True, slots=True, init=False)
class GaussianPair(Pair):
    """N(mu, 1) against N(0, 1), mu = l2 sensitivity / noise_std, kept as the exact rational mu^2.

    h(e^e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) (Balle, Wang 2018). Several Gaussian releases are one
    whose mu^2 is the sum of theirs: `GaussianPair(squared=...)`.
    """

    squared: Fraction
    near: float = field(repr=False, compare=False)
    """mu to two units in the last place."""

    def __init__(self, *, mu: float | None = None, squared: Fraction | None = None) -> None:
        if mu is not None:
            require(0 < mu < math.inf, parameter="mu", value=mu, must="be positive and finite")
            squared = Fraction(mu) ** 2
        top, bottom = (0, 1) if squared is None else squared.as_integer_ratio()
        require(top > 0, parameter="mu", value=squared, must="be positive and finite")
        object.__setattr__(self, "squared", squared)
        # Division of integers rounds to nearest; the square root halves its error and adds its own.
        moderate = abs(top.bit_length() - bottom.bit_length()) < 600
        object.__setattr__(self, "near", math.sqrt(top / bottom) if moderate else self.mu)

    def __hash__(self) -> int:
        return hash(self.near)

    @property
    def mu(self) -> float:
        """mu, rounded up where it is no float."""
        near = math.sqrt(self.squared) if self.squared < Fraction(10) ** 300 else math.inf
        if math.isfinite(near) and Fraction(near) ** 2 == self.squared:
            return near
        return bracket(lambda: ball(self.squared).sqrt(), what="mu").high

    @property
    def sort_key(self) -> tuple[Any, ...]:
        # Floats are compared first: fractions are slow, and settle ties only.
        return (type(self).__name__, self.near, self.squared)

    def ball(self) -> Any:
        """The ball of mu."""
        return ball(self.squared).sqrt()

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def curve(self, t: Any) -> Any:
        mu, epsilon = self.ball(), t.log()
        return positive_ball(normal_cdf(mu / 2 - epsilon / mu) - t * normal_cdf(-mu / 2 - epsilon / mu))

    def pld(self) -> PrivacyLossDistribution:
        return gaussian_pld(float(self.ball().mid()))

    def renyi(self, order: float) -> float:
        """order mu^2 / 2."""
        check_order(order)
        if order == math.inf:
            return math.inf
        return up(Fraction(order) * self.squared / 2)

    has_density = True

    @property
    def gaussian_squared(self) -> Fraction | None:
        return self.squared

    def sampled_fractional_renyi(self, rate: float, order: float) -> float | None:
        from tacit.pld.renyi import mixture_integral

        # With hardly any noise the integrand is too steep to integrate; convexity in the order serves instead.
        if self.mu > 40:
            return None
        q = Fraction(rate)
        return mixture_integral(lambda: [ball(0), self.ball()], (1 - q, q), order, False)

    @property
    def magnitude(self) -> float | None:
        return self.near

    def batch_key(self) -> tuple[Any, ...] | None:
        return ("GaussianPair",)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return gaussian_pld(column([p.mu for p in pairs]))

    def rule_key(self, *, sampled: bool) -> Hashable:
        return 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        mu = column([p.near for p in pairs])
        rule = normal_rule(mu, rates, reach)
        if rule is None:
            return None

        def variation(tilt: float) -> tuple[Floats, Floats]:
            return log_variation(mu, rates, 1 - tilt if reach.swapped else tilt + 2), np.zeros(len(mu))

        squares = column([float(p.squared) for p in pairs]) * (1 + 1e-9)
        return replace(soften(rule, mu), cancelled=squares, variation=variation)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        mu = column([p.near for p in pairs])
        half = normal_half(mu, rates, reach)
        if half is None:
            return None

        def variation(tilt: float) -> Floats:
            """The total variation of both halves, which begin at the loss 0."""
            both = [log_variation(mu, rates, power, mu / 2) for power in (tilt + 2, 1 - tilt)]
            return np.asarray(np.logaddexp(*both))

        return replace(half, variation=variation)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return "GaussianPair", (self.mu,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return GaussianPair(mu=next(values))


# The discrete Gaussian pair, from its own summed probabilities (never the continuous profile).

_MOST_TERMS = 4_000_000


_BALL_TERMS = 40_000


@lru_cache(maxsize=64)
def _weights(noise_std: float, bits: int) -> tuple[list[Any], Any]:
    """Balls of e^(-x^2/2 noise_std^2) for x = 0..R, and of their two-sided sum with its tail."""
    rate = -1 / (2 * ball(noise_std) ** 2)
    reach = math.ceil(noise_std * math.sqrt(2 * math.log(2) * (bits + 40))) + 2
    weights = [(rate * (x * x)).exp() for x in range(reach + 1)]
    edge = (rate * (reach + 1) ** 2).exp()
    # Beyond the edge the terms fall at least geometrically with the ratio of the next two.
    ratio = (rate * (2 * reach + 3)).exp()
    tail = edge / (1 - ratio)
    total = weights[0] + 2 * sum(weights[1:], ball(0))
    return weights, total + (ball(0)).union(2 * tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianPair(Pair):
    """Integer noise with mass proportional to e^(-x^2/(2 noise_std^2)), shifted by an integer sensitivity.

    L(x) = (s^2 - 2 s x)/(2 noise_std^2) falls with x, so H = F(m) - e^e F(m - s) with m the largest integer
    below s/2 - noise_std^2 e/s (Canonne, Kamath, Steinke 2020).
    """

    noise_std: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require(
            0 < self.noise_std < math.inf,
            parameter="noise_std",
            value=self.noise_std,
            must="be positive, finite",
        )
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    @property
    def has_closed_form(self) -> bool:
        return self.noise_std <= _BALL_TERMS / 40

    def _terms(self) -> int:
        return math.ceil(2 * 40 * self.noise_std + self.sensitivity + 10)

    def curve(self, t: Any) -> Any:
        if not self.has_closed_form:
            raise NotCertified(
                what="the profile of a discrete Gaussian",
                reason=f"its noise_std of {self.noise_std:g} needs too many terms in ball arithmetic",
                hint="use a coarser grid, or the concentrated bound rho = sensitivity^2/(2 noise_std^2)",
            )
        s, variance = self.sensitivity, ball(self.noise_std) ** 2
        middle = float((ball(s) / 2 - variance * t.log() / s).mid())
        # Far out the threshold moves by more than a term's bits can show: more of them are summed there.
        bits = working_precision() + min(
            int(middle * middle / (2 * self.noise_std**2) / math.log(2)) + 64, 1 << 14
        )
        weights, total = _weights(self.noise_std, bits)
        if abs(middle) > len(weights) + s + 2:
            return self._far(t, middle, weights, total)
        best = positive_ball(1 - t)
        near = math.ceil(middle) - 1
        lower, shifted = self._cdf(near - 2, weights), self._cdf(near - 2 - s, weights)
        for m in range(near - 1, near + 3):
            lower += self._weight(m, weights)
            shifted += self._weight(m - s, weights)
            best = best.max((lower - t * shifted) / total)
        return best

    @staticmethod
    def _weight(x: int, weights: list[Any]) -> Any:
        return weights[abs(x)] if abs(x) < len(weights) else ball(0).union(weights[-1])

    def _cdf(self, m: int, weights: list[Any]) -> Any:
        """Sum of the weights at x <= m, with the two-sided tail inside the ball."""
        reach = len(weights) - 1
        rate = -1 / (2 * ball(self.noise_std) ** 2)
        tail = (rate * (reach + 1) ** 2).exp() / (1 - (rate * (2 * reach + 3)).exp())
        tail = ball(0).union(tail)
        if m < -reach:
            return tail
        out = tail
        for x in range(-reach, min(m, reach) + 1):
            out += weights[abs(x)]
        return out + tail if m > reach else out

    def _far(self, t: Any, middle: float, weights: list[Any], total: Any) -> Any:
        """Beyond all summed terms: P below m is at most its first term over (1 - ratio)."""
        if middle > 0:
            return positive_ball(1 - t)
        rate = -1 / (2 * ball(self.noise_std) ** 2)
        m = -int(-middle) + 1
        bound = (rate * (m * m)).exp() / (1 - (rate * (2 * abs(m) + 1)).exp()) / total
        return ball(0).union(bound)

    def pld(self) -> PrivacyLossDistribution:
        s, std = self.sensitivity, self.noise_std
        if self._terms() > _MOST_TERMS:
            raise NotCertified(
                what="the privacy loss of a discrete Gaussian",
                reason=f"its noise_std of {std:g} needs more than {_MOST_TERMS} atoms",
                hint="use a coarser grid, or the concentrated bound rho = sensitivity^2/(2 noise_std^2)",
            )
        reach = math.ceil(38 * std) + s + 2
        x = np.arange(reach, -reach - 1, -1, dtype=np.float64)
        exponents = -(x**2) / (2 * std**2)
        weights = np.exp(exponents)
        total = math.fsum(weights.tolist())
        shifted = np.exp(-((x - s) ** 2) / (2 * std**2))
        p, q = weights / total, shifted / total
        # Masses of less than the float range are dropped as atoms and counted at infinity.
        keep = (p > 1e-290) & (q > 1e-290)
        losses = (s * s - 2 * s * x) / (2 * std**2)
        relative = (32 + 8 * 700.0) * UNIT
        rest, reverse = 1.001 * float(p[~keep].sum()) + 1e-280, 1.001 * float(q[~keep].sum()) + 1e-280
        return AtomicPLD.single(
            losses=losses[keep],
            p=p[keep],
            q=q[keep],
            infinite=Interval(low=0.0, high=min(1.0, rest)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, reverse)),
            error=relative,
            slack=8 * UNIT * float(np.max(np.abs(losses[keep]), initial=0.0)),
        )

    def renyi(self, order: float) -> float:
        """order s^2 / (2 noise_std^2), as for the continuous Gaussian (Canonne, Kamath, Steinke 2020)."""
        check_order(order)
        if order == math.inf:
            return math.inf
        s = self.sensitivity
        return bracket(lambda: ball(order) * s * s / (2 * ball(self.noise_std) ** 2), what="a Rényi").high

    def rule_key(self, *, sampled: bool) -> Hashable:
        # Far-spread integer noise sums like its integral; otherwise its integers are the nodes.
        narrow = self.noise_std < 3 * self.sensitivity and self.sensitivity > 8
        return None if self.noise_std < 0.3 or narrow else self.sensitivity

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        std, shift = column([float(p.noise_std) for p in pairs]), float(pairs[0].sensitivity)
        rule = integer_rule(std, shift, rates, reach)
        if rule is None:
            return None
        lattice = (std[:, 0], shift) if float(np.min(std)) >= 1 else None
        return replace(rule, cancelled=(shift / std) ** 2, integers=lattice)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return integer_half(column([float(p.noise_std) for p in pairs]), pairs[0].sensitivity, rates, reach)
