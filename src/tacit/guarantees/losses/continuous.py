"""Pairs with a density: Gaussian, Laplace, the bounded-range pair of the exponential mechanism, mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.guarantees.losses.balls import bracket, exact_ball, positive_ball, require
from tacit.guarantees.losses.laws import UNIT, Cells, Column, LossLaw, TailLaw, Tails
from tacit.guarantees.losses.pair import FloatArray, Pair
from tacit.guarantees.losses.roots import rising_root
from tacit.guarantees.rounding import Interval, up

__all__ = [
    "ExponentialPair",
    "GaussianPair",
    "LaplacePair",
    "MixturePair",
    "exponential_law",
    "gaussian_law",
    "laplace_law",
    "normal_cdf",
]

_TINY = 1e-307
_UNBOUNDED = Interval(low=math.inf, high=math.inf)


def normal_cdf(x: Any) -> Any:
    """The ball of the standard normal distribution function."""
    return (-x / exact_ball(2).sqrt()).erfc() / 2


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


def _normal_cells(x: FloatArray, half: Column, wide: Cells) -> Cells:
    """Masses of N(half, 1) and N(-half, 1) between edges x, by Gauss's rule of four nodes in narrow cells.

    The rule's error for a cell of width w is at most w^9 max|phi^(8)| 4!^4/(9 8!^3), and |He_8(z)| is at most
    (|z| + 4.15)^8, as its roots lie within 4.15: relatively, 5.7e-10 (w (|z| + 4.15))^8 times the variation
    of phi over the cell. Wide cells, where differences of tails do not cancel, keep those.
    """
    left, right = x[:, :-1], x[:, 1:]
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(left) & np.isfinite(right), right - left, np.inf)
        reach = np.maximum(np.abs(left), np.abs(right)) + half + 4.15
    narrow = width * reach < 0.25
    masses, errors = [], []
    middle, size = np.where(narrow, (left + right) / 2, 0.0), np.where(narrow, width, 0.0)
    for shift, mass, error in ((-half, wide.p, wide.p_error), (half, wide.q, wide.q_error)):
        total = np.zeros_like(middle)
        for node, share in zip(_NODES, _SHARES, strict=True):
            z = middle + size * (node / 2) + shift
            total += share * np.exp(-z * z / 2)
        total *= size * 0.3989422804014327
        z = np.abs(middle + shift)
        relative = UNIT * (32 + 4 * z * z + 4 * z * (np.abs(middle) + half)) + 8e-10 * (width * reach) ** 8
        masses.append(np.where(narrow, total, mass))
        errors.append(np.where(narrow, total * np.where(narrow, relative, 0.0) + 1e-307, error))
    return Cells(p=masses[0], q=masses[1], p_error=errors[0], q_error=errors[1])


def gaussian_law(mu: Column) -> TailLaw:
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
        return _normal_cells(edges / mu, mu / 2, law.tail_cells(edges))

    law = TailLaw(tails=tails, closed_cells=cells)
    return law


def laplace_law(top: Column) -> TailLaw:
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

    return TailLaw(tails=tails, bounds=(-widest, widest), closed_cells=cells)


def exponential_law(top: Column) -> TailLaw:
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

    return TailLaw(tails=tails, bounds=(-widest, widest))


@dataclass(frozen=True, slots=True, init=False)
class GaussianPair(Pair):
    """N(mu, 1) against N(0, 1), mu = l2 sensitivity / noise_std, kept as the exact rational mu^2.

    h(e^e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) (Balle, Wang 2018). Several Gaussian releases are one
    whose mu^2 is the sum of theirs: `GaussianPair(squared=...)`.
    """

    squared: Fraction

    def __init__(self, *, mu: float | None = None, squared: Fraction | None = None) -> None:
        given = mu if mu is not None else squared
        ok = given is not None and 0 < given < math.inf
        require(ok, parameter="mu", value=given, must="be positive and finite")
        exact = Fraction(mu) ** 2 if mu is not None else squared
        object.__setattr__(self, "squared", exact)

    @property
    def mu(self) -> float:
        """mu, rounded up where it is no float."""
        near = math.sqrt(self.squared) if self.squared < Fraction(10) ** 300 else math.inf
        if math.isfinite(near) and Fraction(near) ** 2 == self.squared:
            return near
        return bracket(lambda: exact_ball(self.squared).sqrt(), what="mu").high

    def ball(self) -> Any:
        """The ball of mu."""
        return exact_ball(self.squared).sqrt()

    @property
    def largest_loss(self) -> Interval:
        return _UNBOUNDED

    def curve(self, t: Any) -> Any:
        mu, epsilon = self.ball(), t.log()
        return positive_ball(normal_cdf(mu / 2 - epsilon / mu) - t * normal_cdf(-mu / 2 - epsilon / mu))

    def law(self) -> LossLaw:
        return gaussian_law(float(self.ball().mid()))

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

    def curve(self, t: Any) -> Any:
        middle = -((t.log() - exact_ball(self.epsilon)) / 2).expm1()
        return positive_ball(middle.max(1 - t))

    def law(self) -> LossLaw:
        return laplace_law(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln[a/(2a-1) e^((a-1)e) + (a-1)/(2a-1) e^(-ae)] / (a-1) (Mironov 2017, Table II)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = exact_ball(order), exact_ball(self.epsilon)
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
        e = exact_ball(self.epsilon)
        root = positive_ball(-((t.log() - e) / 2).expm1())
        return positive_ball((root**2 / -(-e).expm1()).max(1 - t)) if bool(t < e.exp()) else root * 0

    def law(self) -> LossLaw:
        return exponential_law(self.epsilon)

    def renyi(self, order: float) -> float:
        """ln(E_Q Z^a)/(a-1) with the tail Q(Z > t) = (sqrt(e^-epsilon/t) - e^-epsilon)/(1 - e^-epsilon)."""
        check_order(order)
        if order == math.inf:
            return self.epsilon

        def value() -> Any:
            a, e = exact_ball(order), exact_ball(self.epsilon)
            half = ((a - exact_ball(1) / 2) * e).exp() - (-(a - exact_ball(1) / 2) * e).exp()
            whole = (a * e).exp() - (-a * e).exp()
            tail = (a / (a - exact_ball(1) / 2) * (-e / 2).exp() * half - (-e).exp() * whole) / -(-e).expm1()
            return ((-a * e).exp() + tail).log() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePair(Pair):
    """A mixture of Gaussians against one: sum_i weight_i N(shift_i, 1) against N(0, 1), shifts >= 0.

    The likelihood ratio rises with the output, so that the best test is a threshold x on it.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        ok = len(self.shifts) == len(self.weights) > 0
        require(ok, parameter="weights", value=self.weights, must="match the shifts, at least one")
        require(
            all(0 <= s < math.inf for s in self.shifts) and max(self.shifts) > 0,
            parameter="shifts",
            value=self.shifts,
            must="be finite, non-negative and not all zero",
        )
        total = abs(sum((Fraction(w) for w in self.weights), Fraction(0)) - 1)
        require(
            all(w >= 0 for w in self.weights) and total <= Fraction(1, 10**12),
            parameter="weights",
            value=self.weights,
            must="be non-negative and sum to 1",
        )
        positive = any(w > 0 and s > 0 for w, s in zip(self.weights, self.shifts, strict=True))
        require(positive, parameter="weights", value=self.weights, must="put mass on a positive shift")

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def largest_loss(self) -> Interval:
        return _UNBOUNDED

    @property
    def smallest_loss(self) -> Interval:
        still = [w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0]
        if not still:
            return Interval(low=-math.inf, high=-math.inf)
        return bracket(lambda: exact_ball(sum(still, Fraction(0))).log(), what="a loss")

    def _weights(self) -> list[Fraction]:
        exact = [Fraction(w) for w in self.weights]
        total = sum(exact)
        return [w / total for w in exact]

    def _loss(self, x: Any) -> Any:
        ratio = exact_ball(0)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            ratio += exact_ball(w) * (exact_ball(s) * x - exact_ball(s) ** 2 / 2).exp()
        return ratio

    def curve(self, t: Any) -> Any:
        """sup over thresholds x of P(X > x) - t Q(X > x): any x bounds below, the root above too."""
        still = sum((w for w, s in zip(self._weights(), self.shifts, strict=True) if s == 0), Fraction(0))
        if not bool(t > exact_ball(still)):
            return 1 - t if bool(t <= exact_ball(still)) else positive_ball(1 - t)
        ends = rising_root(self._loss, t)
        if ends is None:
            return positive_ball(1 - t)
        low, high = ends
        # The gain is flat at the root: over [low, high] it varies by at most (the ratio's change) Q(X in it).
        middle = ((low + high) / 2).mid()
        value = -t * normal_cdf(-middle)
        for w, s in zip(self._weights(), self.shifts, strict=True):
            value += exact_ball(w) * normal_cdf(exact_ball(s) - middle)
        excess = (self._loss(high) - self._loss(low)) * (normal_cdf(high) - normal_cdf(low))
        return positive_ball(value.union(value + positive_ball(excess)))

    def law(self) -> LossLaw:
        shifts, weights = np.array(self.shifts), np.array([float(w) for w in self._weights()])

        def loss_at(x: FloatArray) -> FloatArray:
            terms = shifts[:, None] * x - shifts[:, None] ** 2 / 2
            peak = np.max(terms, axis=0, keepdims=True)
            with np.errstate(divide="ignore"):
                total = np.sum(weights[:, None] * np.exp(terms - peak), axis=0, keepdims=True)
                return np.asarray(peak + np.log(total))

        def tails(losses: FloatArray) -> Tails:
            low = np.full_like(losses, -(2.0**12))
            high = np.full_like(losses, 2.0**12)
            for _ in range(80):
                middle = (low + high) / 2
                up_here = loss_at(middle) < losses
                low, high = np.where(up_here, middle, low), np.where(up_here, high, middle)
            x = (low + high) / 2
            reached = np.abs(loss_at(x) - losses)
            inside = np.abs(x) < 2.0**11
            reach = float(np.max(np.abs(x[inside]), initial=0.0))
            spread = np.full_like(x, 1.0 + reach)
            slack = float(np.max(reached[inside], initial=0.0)) + 64 * UNIT * (
                1 + reach * float(shifts.max())
            )
            q = [float_normal_cdf(-x, spread), float_normal_cdf(x, spread)]
            above = [float_normal_cdf(s - x, spread) for s in shifts]
            below = [float_normal_cdf(x - s, spread) for s in shifts]
            values = np.array(
                [
                    sum(w * a[0] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[0] for w, b in zip(weights, below, strict=True)),
                    q[0][0],
                    q[1][0],
                ]
            )
            errors = np.array(
                [
                    sum(w * a[1] for w, a in zip(weights, above, strict=True)),
                    sum(w * b[1] for w, b in zip(weights, below, strict=True)),
                    q[0][1],
                    q[1][1],
                ]
            )
            return Tails(values=values, errors=errors + 8 * UNIT * values, slack=slack)

        still = float(weights[shifts == 0].sum())
        return TailLaw(tails=tails, bounds=(math.log(still) if still > 0 else -np.inf, np.inf))

    def renyi(self, order: float) -> float:
        from tacit.guarantees.losses.renyi import mixture_renyi

        return mixture_renyi(self, order)
