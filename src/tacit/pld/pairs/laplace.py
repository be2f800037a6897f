"""The Laplace pair."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import UNIT, Column, Floats, column
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import (
    MOST_TERMS,
    Interval,
    ball,
    bisected,
    bracket,
    down,
    positive_ball,
    precision,
    skellam_masses,
    skellam_reach,
    up,
    working_precision,
)
from tacit.pld.distributions import AtomicPLD, LossCells, PrivacyLossDistribution, TailPLD, Tails
from tacit.pld.pairs.base import UNBOUNDED, Pair, check_order
from tacit.pld.pairs.responses import ListedPair
from tacit.pld.quadrature import (
    LARGEST_EPSILON,
    MOST_ATOMS,
    AtomRows,
    QuadratureRange,
    Rule,
    WithoutReplacementRule,
    bounded_half,
    bounded_rule,
)


def laplace_pld(top: Column) -> TailPLD:
    """Atoms at both ends of [-epsilon, epsilon]; between them the P-density e^((l - epsilon)/2)/4."""
    widest = float(np.max(top))

    def tails(losses: Floats) -> Tails:
        inside = np.clip(losses, -top, top)
        p_below = np.where(losses < -top, 0.0, np.where(losses >= top, 1.0, np.exp((inside - top) / 2) / 2))
        q_above = np.where(losses >= top, 0.0, np.where(losses < -top, 1.0, np.exp((-inside - top) / 2) / 2))
        values = np.array([1 - p_below, p_below, q_above, 1 - q_above])
        return Tails(values=values, errors=values * (8 + 4 * widest) * UNIT)

    def cells(edges: Floats) -> LossCells:
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
        return LossCells(p=p, q=q, p_error=relative * p, q_error=relative * q)

    return TailPLD(tails=tails, bounds=(-widest, widest), closed_cells=cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DensePair(Pair):
    """A pair whose losses have a density within [-epsilon, epsilon], with or without an atom at either end."""

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

    has_density = True
    ends: ClassVar[bool]
    """Whether there are atoms at the two ends."""

    @staticmethod
    @abstractmethod
    def law(top: Column) -> TailPLD:
        """The distribution of the loss for these epsilons."""

    def pld(self) -> PrivacyLossDistribution:
        return self.law(self.epsilon)

    def batch_key(self) -> tuple[Any, ...] | None:
        return (type(self).__name__,)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        return cls.law(column([p.epsilon for p in pairs]))

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        return bounded_rule(column([p.epsilon for p in pairs]), cls.ends, reach)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return bounded_half(column([p.epsilon for p in pairs]), cls.ends, rates, reach)

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return type(self).__name__, (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return type(self)(epsilon=next(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplacePair(_DensePair):
    """Laplace noise, epsilon = l1 sensitivity / noise_scale: h(t) = max(0, 1 - t, 1 - sqrt(t e^-epsilon))."""

    ends: ClassVar[bool] = True

    @property
    def top_mass(self) -> float:
        return 0.5

    def curve(self, t: Any) -> Any:
        middle = -((t.log() - ball(self.epsilon)) / 2).expm1()
        return positive_ball(middle.max(1 - t))

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

    @staticmethod
    def law(top: Column) -> TailPLD:
        return laplace_pld(top)


# The discrete Laplace (geometric) pair.


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

    def pld(self) -> AtomicPLD:
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

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        first = pairs[0]
        zero = np.zeros((len(pairs), 1))
        a = column([p.rate for p in pairs])
        s = first.sensitivity
        x = np.arange(s, -1, -1, dtype=np.float64)[None, :]
        p = -np.expm1(-a) * np.exp(-a * x)
        p[:, :1], p[:, -1:] = np.exp(-a * s), 1.0
        return a * (s - 2 * x), p / (1 + np.exp(-a)), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        far = self.atom_count > MOST_ATOMS or self.rate * self.sensitivity > LARGEST_EPSILON
        return None if far else self.atom_count


# The pair of bounded noise.

MOST_MOVED = 1 << 12


@lru_cache(maxsize=1024)
def _beyond(pair: TruncatedLaplacePair) -> Interval:
    """The mass of outputs that only one side has."""
    return bracket(pair.beyond, what="the delta of bounded noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplacePair(ListedPair):
    """Integer noise with mass q^|x| / Z on -A..A, q = e^(-epsilon/s), and the same moved by an integer sensitivity s.

    Of the outputs -A..A the first s are beyond the other side; the next A - s + 1 have loss epsilon, s - 1 in the
    middle epsilon (1 - 2x/s), the last A - s + 1 loss -epsilon. For s = 1 it is the worst pair of its (epsilon, delta).
    """

    epsilon: float
    largest_noise: int
    sensitivity: int = 1

    def __post_init__(self) -> None:
        ok = 0 < self.epsilon < math.inf
        require(ok, parameter="epsilon", value=self.epsilon, must="be positive and finite")
        ok = isinstance(self.sensitivity, int) and 1 <= self.sensitivity <= MOST_MOVED
        must = f"be an integer from 1 to {MOST_MOVED}"
        require(ok, parameter="sensitivity", value=self.sensitivity, must=must)
        ok = isinstance(self.largest_noise, int) and self.largest_noise >= self.sensitivity
        must = f"be an integer of at least the sensitivity, {self.sensitivity}"
        require(ok, parameter="largest_noise", value=self.largest_noise, must=must)

    def _power(self, k: int) -> Any:
        return (-ball(Fraction(self.epsilon) * k / self.sensitivity)).exp()

    def _gap(self, k: int) -> Any:
        """1 - q^k."""
        return -(-ball(Fraction(self.epsilon) * k / self.sensitivity)).expm1()

    def _whole(self) -> Any:
        """(1 - q) Z."""
        return self._gap(self.largest_noise + 1) + self._power(1) * self._gap(self.largest_noise)

    def beyond(self) -> Any:
        """The ball of the mass at infinity: q^(A-s+1) (1 - q^s) / ((1 - q) Z)."""
        s = self.sensitivity
        return self._power(self.largest_noise - s + 1) * self._gap(s) / self._whole()

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def infinite_mass(self) -> Interval:
        return _beyond(self)

    @property
    def atom_count(self) -> int:
        return self.sensitivity + 1

    def atoms(self) -> list[tuple[Any, Any]]:
        e, s, whole = ball(self.epsilon), self.sensitivity, self._whole()
        end = self._gap(self.largest_noise - s + 1) / whole
        one = self._gap(1) / whole
        inner = [(e * (s - 2 * x) / s, one * self._power(x)) for x in range(s - 1, 0, -1)]
        return [(-e, end * self._power(s)), *inner, (e, end)]

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        s = pairs[0].sensitivity
        e, a = column([p.epsilon for p in pairs]), column([float(p.largest_noise) for p in pairs])
        r = e / s
        x = np.arange(s, -1, -1, dtype=np.float64)[None, :]
        p = -np.expm1(-r) * np.exp(-r * x)
        end = -np.expm1(-r * (a - s + 1))
        p[:, :1], p[:, -1:] = end * np.exp(-e), end
        whole = -np.expm1(-r * (a + 1)) - np.exp(-r) * np.expm1(-r * a)
        lost = column([pair.infinite_mass.high for pair in pairs])
        return r * (s - 2 * x), p / whole, lost, lost

    def rule_key(self, *, sampled: bool) -> Hashable:
        far = self.atom_count > MOST_ATOMS or self.epsilon > LARGEST_EPSILON
        return None if far else self.atom_count


# The staircase pair.


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

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        zero = np.zeros((len(pairs), 1))
        rows = np.array([(p.epsilon, p.gamma) for p in pairs])
        e, g = rows[:, :1], rows[:, 1:]
        decay = np.exp(-e)
        inside = np.where(g >= 0.5, 1.0, 2 * (g + (0.5 - g) * decay))
        top = inside / (2 * (g + decay * (1 - g)))
        middle = np.maximum(1 - top - top * decay, 0.0)
        return (
            np.concatenate([-e, zero, e], axis=1),
            np.concatenate([top * decay, middle, top], axis=1),
            zero,
            zero,
        )

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else 0


# The Skellam pair: the noise that several holders add, from its own probabilities.

FLOAT_BITS = 1000
"""Masses beyond this are below the float range, and are counted at infinity."""
FAR = 8192
"""The largest length of a sum for the Rényi divergence; for larger orders the divergence is left at infinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamPair(Pair):
    """Skellam noise, Pr[X = x] = e^-v I_x(v), and the same moved by an integer sensitivity s.

    The distribution is log-concave, so the loss L(x) = ln Pr[x] / Pr[x - s] falls with x, and H = F(m) - e^e
    F(m - s) with m
    the largest integer whose loss exceeds e. A larger s has a larger curve, since F(m - s) only falls.
    """

    noise_variance: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        ok = 0 < self.noise_variance < math.inf
        require(ok, parameter="noise_variance", value=self.noise_variance, must="be positive and finite")
        ok = isinstance(self.sensitivity, int) and self.sensitivity >= 1
        require(ok, parameter="sensitivity", value=self.sensitivity, must="be a positive integer")

    @property
    def variance(self) -> Fraction:
        """The variance, exactly."""
        return Fraction(self.noise_variance)

    @property
    def largest_loss(self) -> Interval:
        return UNBOUNDED

    def _table(self, tail_bits: int) -> tuple[list[Any], list[Any]]:
        return skellam_masses(self.variance, working_precision(), tail_bits)

    def curve(self, t: Any) -> Any:
        # Far out the curve is as small as the tail at the threshold: the table grows with the precision.
        masses, tails = self._table(2 * working_precision())
        s, size = self.sensitivity, len(masses)

        def mass(x: int) -> Any:
            return masses[abs(x)] if abs(x) < size else ball(0).union(tails[-1])

        def below(m: int) -> Any:
            """Pr[X <= m]."""
            if m < 0:
                return tails[-m] if -m < len(tails) else ball(0).union(tails[-1])
            return 1 - (tails[m + 1] if m + 1 < len(tails) else ball(0).union(tails[-1]))

        low, _ = bisected(lambda x: not mass(x).mid() > t.mid() * mass(x - s).mid(), -size, size + s)
        best = positive_ball(1 - t)
        for m in (low - 1, low, low + 1):
            best = best.max(below(m) - t * below(m - s))
        if -size + s + 1 < low < size - 1:
            return best
        # Next to the ends of the table the threshold is not seen; what either tail holds bounds what it could add.
        return best.union(best + tails[max(size - s - 2, 0)])

    def pld(self) -> PrivacyLossDistribution:
        s, reach = self.sensitivity, skellam_reach(self.variance, FLOAT_BITS)
        if reach + s > MOST_TERMS:
            raise NotCertified(
                what="the privacy loss of Skellam noise",
                reason=f"its variance of {self.noise_variance:g} needs more than a million atoms",
                hint="use a coarser grid",
            )
        half = [float(m.mid()) for m in skellam_masses(self.variance, 96, FLOAT_BITS)[0]]
        reach = len(half) - 1
        law = np.array([0.0] * s + half[:0:-1] + half + [0.0] * s)
        # Losses ascend as x falls: P at x, Q at x - s.
        p, q = law[s:][::-1], law[: law.size - s][::-1]
        keep = (p > 1e-290) & (q > 1e-290)
        losses = np.log(p[keep] / q[keep])
        rest, reverse = 1.001 * float(p[~keep].sum()) + 1e-280, 1.001 * float(q[~keep].sum()) + 1e-280
        return AtomicPLD.single(
            losses=np.maximum.accumulate(losses),
            p=p[keep],
            q=q[keep],
            infinite=Interval(low=0.0, high=min(1.0, rest)),
            reverse_infinite=Interval(low=0.0, high=min(1.0, reverse)),
            error=16 * UNIT,
            slack=16 * UNIT * (1 + float(np.max(np.abs(losses), initial=0.0))),
        )

    def renyi(self, order: float) -> float:
        """ln(sum P^a Q^(1-a)) / (a-1), summed; a geometric series bounds the omitted terms.

        With r_k = I_{k+1}/I_k the recurrence gives 1/r_k = 2(k+1)/v + r_{k+1}, so r_k <= v/(2(k+1)) and
        r_k/r_{k+s} <= c = (k+s+1)/(k+1) + v^2/(4(k+1)(k+s+2)); towards large losses a term is at most r_k c^(a-1)
        of the one before, and towards small ones P <= Q.
        """
        check_order(order)
        v, s = self.variance, self.sensitivity
        wide = 8 * float(v)
        start = max(wide, 8 * s * order) + 64
        # Orders far above what this variance is used at are left out: sampling asks for thousands of them.
        if order == math.inf or not start <= MOST_TERMS / 8 or 8 * s * order > max(wide, FAR):
            return math.inf
        bits = 64
        while skellam_reach(v, bits) < start + s + 8:
            bits *= 2
        logs, off, tails = _logarithms(v, bits)
        size = logs.size - s - 1
        x = np.arange(-size, size)
        p, q = logs[np.abs(x)], logs[np.abs(x - s)]
        terms = p + (order - 1) * (p - q)
        most = float(terms.max())
        # Every logarithm is off by `off` at most, and a float by half a unit in its last place at each of five steps.
        widest = float(np.abs(logs).max())
        off = (2 * order + 1) * off + 16 * UNIT * (order + 1) * (widest + 1) + (x.size + 32) * UNIT
        inside = most + math.log(float(np.exp(terms - most).sum())) + off
        with precision(64):
            c = ball(Fraction(size + s + 1, size + 1) + v * v / (4 * (size + 1) * (size + s + 2)))
            fall = ball(v / (2 * (size + 1))) * ((ball(order) - 1) * c.log()).exp()
            if not fall < 1:
                return math.inf
            last = (ball(float(terms[0])) + ball(off)).exp() * fall / (1 - fall)
            whole = ((ball(0).union(last) + tails[size]) / ball(inside).exp()).log1p() + ball(inside)
            return max(up((whole / (ball(order) - 1)).upper()), 0.0)


@lru_cache(maxsize=16)
def _logarithms(v: Fraction, bits: int) -> tuple[Any, float, list[Any]]:
    """ln Pr[X = k] as floats, how far they may be off, and the balls of Pr[X >= k]."""
    with precision(64):
        masses, tails = skellam_masses(v, 128, bits)
        logs = [mass.log() for mass in masses]
        middles = np.array([float(one.mid()) for one in logs])
        off = up(max(float(one.rad()) for one in logs)) + UNIT * (float(np.abs(middles).max()) + 1)
    return middles, 1.001 * off, tails


# The bounded-range pair of the exponential mechanism.


def exponential_pld(top: Column) -> TailPLD:
    """P(L > l) = (1 - e^((l - epsilon)/2))/(1 - e^-epsilon), Q(L > l) = P(L <= -l)."""
    widest = float(np.max(top))

    def tails(losses: Floats) -> Tails:
        inside = np.clip(losses, -top, top)
        norm = -np.expm1(-top)
        p_above = -np.expm1((inside - top) / 2) / norm
        p_below = np.exp(-top) * np.expm1((inside + top) / 2) / norm
        q_above = np.exp(-top) * np.expm1((top - inside) / 2) / norm
        q_below = -np.expm1(-(inside + top) / 2) / norm
        values = np.array([p_above, p_below, q_above, q_below])
        return Tails(values=values, errors=values * (16 + 8 * widest) * UNIT + UNIT * 1e-16)

    return TailPLD(tails=tails, bounds=(-widest, widest))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialPair(_DensePair):
    """The least pair above every epsilon-bounded-range mechanism, the exponential mechanism among them:
    h(t) = (1 - sqrt(t e^-epsilon))^2 / (1 - e^-epsilon) for e^-epsilon <= t <= e^epsilon."""

    ends: ClassVar[bool] = False
    # The curve is the supremum over the class, which no one mechanism reaches at every t at once:
    # products of it are upper bounds only.
    exact_in_products = False

    def curve(self, t: Any) -> Any:
        e = ball(self.epsilon)
        bottom = (-e).exp()
        root = positive_ball(-((t.log() - e) / 2).expm1())
        middle = root**2 / -(-e).expm1()
        if bool(t > bottom):
            return middle
        # Below e^-epsilon every output is more likely under Q; at the seam both forms agree.
        return 1 - t if bool(t < bottom) else middle.union(1 - t)

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

    @staticmethod
    def law(top: Column) -> TailPLD:
        return exponential_pld(top)
