"""Pairs with a density: Gaussian, Laplace, the bounded-range pair of the exponential mechanism, mixtures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, up
from tacit.pld.distributions import UNIT, Cells, Column, PrivacyLossDistribution, TailPLD, Tails
from tacit.pld.pair import UNBOUNDED, FloatArray, Pair

__all__ = [
    "ExponentialPair",
    "GaussianPair",
    "LaplacePair",
    "exponential_pld",
    "gaussian_pld",
    "laplace_pld",
    "normal_cdf",
]

_TINY = 1e-307


def normal_cdf(x: Any) -> Any:
    """The ball of the standard normal distribution function."""
    return (-x / ball(2).sqrt()).erfc() / 2


def check_order(order: float) -> None:
    """Rényi orders are real and > 1; infinity is the largest loss."""
    require(order > 1, parameter="order", value=order, must="be greater than 1")


def float_normal_cdf(z: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
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


def _normal_cells(x: FloatArray, half: Column, wide: Callable[[slice], Cells]) -> Cells:
    """Masses of N(half, 1) and N(-half, 1) between edges x, by Gauss's rule of four nodes in narrow cells.

    The rule's error for a cell of width w is at most w^9 max|phi^(8)| 4!^4/(9 8!^3), and |He_8(z)| is at most
    (|z| + 4.15)^8, as its roots lie within 4.15: relatively, 5.7e-10 (w (|z| + 4.15))^8 times the variation
    of phi over the cell. `wide` gives those between the edges of a slice from tails: where cells are wide,
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
    return Cells(p=rows[0], q=rows[1], p_error=rows[2], q_error=rows[3])


def gaussian_pld(mu: Column) -> TailPLD:
    """The loss of N(mu, 1) against N(0, 1): N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q."""
    widest = float(np.max(mu))

    def tails(losses: FloatArray) -> Tails:
        shift = losses / mu
        spread = np.where(np.isfinite(shift), np.abs(shift), 0.0) + mu / 2
        rows = [mu / 2 - shift, shift - mu / 2, -mu / 2 - shift, shift + mu / 2]
        got = [float_normal_cdf(z, spread) for z in rows]
        finite = losses[np.isfinite(losses)]
        slack = 8 * UNIT * (float(np.max(np.abs(finite), initial=0.0)) + widest**2)
        return Tails(values=np.array([g[0] for g in got]), errors=np.array([g[1] for g in got]), slack=slack)

    def cells(edges: FloatArray) -> Cells:
        return _normal_cells(edges / mu, mu / 2, lambda at: law.tail_cells(edges[:, at]))

    law = TailPLD(tails=tails, closed_cells=cells)
    return law


def laplace_pld(top: Column) -> TailPLD:
    """Atoms at both ends of [-epsilon, epsilon]; between them the P-density e^((l - epsilon)/2)/4."""
    widest = float(np.max(top))

    def tails(losses: FloatArray) -> Tails:
        inside = np.clip(losses, -top, top)
        p_below = np.where(losses < -top, 0.0, np.where(losses >= top, 1.0, np.exp((inside - top) / 2) / 2))
        q_above = np.where(losses >= top, 0.0, np.where(losses < -top, 1.0, np.exp((-inside - top) / 2) / 2))
        values = np.array([1 - p_below, p_below, q_above, 1 - q_above])
        return Tails(values=values, errors=values * (8 + 4 * widest) * UNIT)

    def cells(edges: FloatArray) -> Cells:
        ends = np.clip(edges, -top, top)
        left, right = ends[:, :-1], ends[:, 1:]
        grown = np.expm1((right - left) / 2) / 2
        p = np.exp((left - top) / 2) * grown
        q = np.exp((-right - top) / 2) * grown
        at_top = (edges[:, :-1] < top) & (edges[:, 1:] >= top)
        at_bottom = (edges[:, :-1] < -top) & (edges[:, 1:] >= -top)
        p = p + 0.5 * at_top + 0.5 * np.exp(-top) * at_bottom
        q = q + 0.5 * np.exp(-top) * at_top + 0.5 * at_bottom
        relative = (16 + 8 * widest) * UNIT
        return Cells(p=p, q=q, p_error=relative * p, q_error=relative * q)

    return TailPLD(tails=tails, bounds=(-widest, widest), closed_cells=cells)


def exponential_pld(top: Column) -> TailPLD:
    """P(L > l) = (1 - e^((l - epsilon)/2))/(1 - e^-epsilon), Q(L > l) = P(L <= -l)."""
    widest = float(np.max(top))

    def tails(losses: FloatArray) -> Tails:
        inside = np.clip(losses, -top, top)
        norm = -np.expm1(-top)
        p_above = -np.expm1((inside - top) / 2) / norm
        p_below = np.exp(-top) * np.expm1((inside + top) / 2) / norm
        q_above = np.exp(-top) * np.expm1((top - inside) / 2) / norm
        q_below = -np.expm1(-(inside + top) / 2) / norm
        values = np.array([p_above, p_below, q_above, q_below])
        return Tails(values=values, errors=values * (16 + 8 * widest) * UNIT + UNIT * 1e-16)

    return TailPLD(tails=tails, bounds=(-widest, widest))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplacePair(Pair):
    """Laplace noise, epsilon = l1 sensitivity / noise_scale: h(t) = max(0, 1 - t, 1 - sqrt(t e^-epsilon))."""

    epsilon: float

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def top_mass(self) -> float:
        return 0.5

    def curve(self, t: Any) -> Any:
        middle = -((t.log() - ball(self.epsilon)) / 2).expm1()
        return positive_ball(middle.max(1 - t))

    def pld(self) -> PrivacyLossDistribution:
        return laplace_pld(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln[a/(2a-1) e^((a-1)e) + (a-1)/(2a-1) e^(-ae)] / (a-1) (Mironov 2017, Table II)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = ball(order), ball(self.epsilon)
            inner = (a * ((a - 1) * e).expm1() + (a - 1) * (-a * e).expm1()) / (2 * a - 1)
            return inner.log1p() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialPair(Pair):
    """The least pair above every epsilon-bounded-range mechanism, the exponential mechanism among them:
    h(t) = (1 - sqrt(t e^-epsilon))^2 / (1 - e^-epsilon) for e^-epsilon <= t <= e^epsilon."""

    epsilon: float
    # The curve is the supremum over the class, which no one mechanism reaches at every t at once:
    # products of it are upper bounds only.
    exact_in_products = False

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    def curve(self, t: Any) -> Any:
        e = ball(self.epsilon)
        bottom = (-e).exp()
        root = positive_ball(-((t.log() - e) / 2).expm1())
        middle = root**2 / -(-e).expm1()
        if bool(t > bottom):
            return middle
        # Below e^-epsilon every output is more likely under Q; at the seam both forms agree.
        return 1 - t if bool(t < bottom) else middle.union(1 - t)

    def pld(self) -> PrivacyLossDistribution:
        return exponential_pld(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln(E_Q Z^a)/(a-1) with the tail Q(Z > t) = (sqrt(e^-epsilon/t) - e^-epsilon)/(1 - e^-epsilon)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = ball(order), ball(self.epsilon)
            half = ((a - ball(1) / 2) * e).exp() - (-(a - ball(1) / 2) * e).exp()
            whole = (a * e).exp() - (-a * e).exp()
            tail = (a / (a - ball(1) / 2) * (-e / 2).exp() * half - (-e).exp() * whole) / -(-e).expm1()
            return ((-a * e).exp() + tail).log() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, self.epsilon)
