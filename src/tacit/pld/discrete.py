"""Pairs with atoms: randomised response, (epsilon, delta), staircase, discrete Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.exact.balls import ball, bracket, positive_ball, precision
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.continuous import check_order
from tacit.pld.distributions import UNIT, AtomicPLD, PrivacyLossDistribution
from tacit.pld.pair import Pair

__all__ = [
    "ApproximatePair",
    "DiscreteLaplacePair",
    "ListedPair",
    "RandomizedResponsePair",
    "StaircasePair",
    "atomic",
]


def atomic(pair: Pair) -> int | None:
    """How many finite losses the pair has, where it lists them; else None."""
    if not isinstance(pair, ListedPair):
        return None
    return pair.atom_count


class ListedPair(Pair):
    """Finitely many losses: h(t) = P(infinity) + sum_i p_i max(0, 1 - t e^(-loss_i))."""

    __slots__ = ()

    def atoms(self) -> list[tuple[Any, Any]]:
        """(loss, P-mass) of each atom as balls, losses ascending."""
        raise NotImplementedError

    @property
    def top_mass(self) -> float:
        with precision(96):
            return max(0.0, down(self.atoms()[-1][1]))

    def curve(self, t: Any) -> Any:
        total, log = ball(Fraction(self.infinite_mass.low)), t.log()
        for loss, p in self.atoms():
            total += p * positive_ball(-(log - loss).expm1())
        return total

    @property
    def atom_count(self) -> int:
        with precision(64):
            return len(self.atoms())

    def kinks(self) -> list[float] | None:
        with precision(120):
            return [float(loss.mid()) for loss, _ in self.atoms()]

    def pld(self) -> PrivacyLossDistribution:
        with precision(120):
            rows = [(float(x.mid()), float(p.mid()), float((p * (-x).exp()).mid())) for x, p in self.atoms()]
        losses, p, q = np.array(rows).T
        return AtomicPLD.single(
            losses=losses,
            p=p,
            q=q,
            infinite=self.infinite_mass,
            reverse_infinite=self.reverse_infinite_mass,
            slack=4 * UNIT * float(np.max(np.abs(losses))),
        )

    def renyi(self, order: float) -> float:
        """ln(sum_i p_i e^((a-1) loss_i)) / (a-1), infinite where P reaches what Q cannot."""
        check_order(order)
        if self.infinite_mass.high > 0:
            return math.inf
        if order == math.inf:
            return self.largest_loss.high

        def value() -> Any:
            a = ball(order)
            # Around 1 rather than 0, so that losses of 1e-12 keep their digits.
            inner = ball(0)
            for loss, p in self.atoms():
                inner += p * ((a - 1) * loss).expm1()
            return inner.log1p() / (a - 1)

        high = bracket(value, what="a Rényi divergence").high
        return min(max(high, 0.0), self.largest_loss.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponsePair(ListedPair):
    """k-ary randomised response: truth with e^epsilon/(e^epsilon + k - 1), each other answer with 1/(...)."""

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        require(self.categories >= 2, parameter="categories", value=self.categories, must="be at least 2")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def atom_count(self) -> int:
        return 2 if self.categories == 2 else 3

    def atoms(self) -> list[tuple[Any, Any]]:
        e = ball(self.epsilon)
        norm = e.exp() + (self.categories - 1)
        out = [(-e, 1 / norm), (e, e.exp() / norm)]
        if self.categories > 2:
            out.insert(1, (ball(0), (self.categories - 2) / norm))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximatePair(ListedPair):
    """The pair that dominates every (epsilon, delta) mechanism (Kairouz, Oh, Viswanath 2015): delta at
    infinity, the rest randomised response with epsilon. delta = 0 is pure epsilon."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        require(0 <= self.delta <= 1, parameter="delta", value=self.delta, must="lie in [0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def infinite_mass(self) -> Interval:
        return Interval(low=self.delta, high=self.delta)

    @property
    def atom_count(self) -> int:
        return 2

    def atoms(self) -> list[tuple[Any, Any]]:
        e, rest = ball(self.epsilon), 1 - ball(self.delta)
        norm = e.exp() + 1
        return [(-e, rest / norm), (e, rest * e.exp() / norm)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaircasePair(ListedPair):
    """Staircase noise (Geng, Viswanath 2016) with steps of width gamma: losses -epsilon, 0, epsilon.

    Every shift up to the sensitivity gives losses in {-epsilon, 0, epsilon}, and such pairs are ordered by
    P(loss = epsilon) = TV/(1 - e^-epsilon); the noise is symmetric and unimodal, so the full shift is worst.
    TV = integral of the density over half a sensitivity on each side of 0.
    """

    epsilon: float
    gamma: float

    def __post_init__(self) -> None:
        require(
            0 < self.epsilon < math.inf,
            parameter="epsilon",
            value=self.epsilon,
            must="be positive and finite",
        )
        require(0 <= self.gamma <= 1, parameter="gamma", value=self.gamma, must="lie in [0, 1]")

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def atom_count(self) -> int:
        return 3

    def atoms(self) -> list[tuple[Any, Any]]:
        e, g = ball(self.epsilon), ball(self.gamma)
        decay = (-e).exp()
        height = 1 / (2 * (g + decay * (1 - g)))
        inside = ball(1) if self.gamma >= 0.5 else 2 * (g + (ball(1) / 2 - g) * decay)
        top = height * inside
        out = [(-e, top * decay), (e, top)]
        middle = 1 - top - top * decay
        out.insert(1, (ball(0), positive_ball(middle)))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplacePair(ListedPair):
    """Integer noise with mass proportional to e^(-rate |x|), shifted by an integer sensitivity."""

    rate: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require(0 < self.rate < math.inf, parameter="rate", value=self.rate, must="be positive and finite")
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")
        require(
            self.sensitivity <= 10**6,
            parameter="sensitivity",
            value=self.sensitivity,
            must="be at most a million",
            hint="for a finer grid the continuous Laplace pair with epsilon + 2 ln cosh(rate/2) dominates",
        )

    @property
    def largest_loss(self) -> Interval:
        if self.sensitivity == 1:
            return Interval(low=self.rate, high=self.rate)
        exact = Fraction(self.rate) * self.sensitivity
        return Interval(low=down(exact), high=up(exact))

    @property
    def top_mass(self) -> float:
        return 1 / (1 + math.exp(-self.rate)) * (1 - 4 * UNIT)

    @property
    def atom_count(self) -> int:
        return self.sensitivity + 1

    def atoms(self) -> list[tuple[Any, Any]]:
        a, s = ball(self.rate), self.sensitivity
        norm = 1 + (-a).exp()
        inner = [(a * (s - 2 * x), -(-a).expm1() / norm * (-a * x).exp()) for x in range(s - 1, 0, -1)]
        return [(-a * s, (-a * s).exp() / norm), *inner, (a * s, 1 / norm)]

    def pld(self) -> PrivacyLossDistribution:
        a, s = self.rate, self.sensitivity
        x = np.arange(s, -1, -1, dtype=np.float64)
        norm = 1 + math.exp(-a)
        p = -math.expm1(-a) / norm * np.exp(-a * x)
        p[0], p[-1] = math.exp(-a * s) / norm, 1 / norm
        losses = a * (s - 2 * x)
        nothing = Interval(low=0.0, high=0.0)
        return AtomicPLD.single(
            losses=losses,
            p=p,
            q=p[::-1].copy(),
            infinite=nothing,
            reverse_infinite=nothing,
            error=(16 + 4 * a * s) * UNIT,
            slack=4 * UNIT * a * s,
        )

    def curve(self, t: Any) -> Any:
        """max over thresholds m of F(m) - t F(m - s): the best is next to x* = (s - ln t / a)/2."""
        a, s = ball(self.rate), self.sensitivity
        norm = 1 + (-a).exp()
        best = positive_ball(1 - t)
        log = t.log()
        middle = float(((s - log / a) / 2).mid())
        near = min(max(math.floor(middle), 0), s)
        for m in range(max(0, near - 2), min(s, near + 3)):
            # F(m) - t F(m - s) = 1 - e^(-a(m+1))/norm - t e^(a(m-s))/norm for 0 <= m < s
            gain = 1 - ((-a * (m + 1)).exp() + (log + a * (m - s)).exp()) / norm
            best = best.max(gain)
        return best
