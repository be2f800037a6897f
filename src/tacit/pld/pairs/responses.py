"""Any two tabulated distributions, as exact fractions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Floats, column
from tacit.exact.checks import require
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval, ball, bracket, down, positive_ball, precision, up
from tacit.pld.distributions import AtomicPLD, MixedPLD, PrivacyLossDistribution
from tacit.pld.pairs.base import Pair, batch_pld, check_order
from tacit.pld.quadrature import (
    LARGEST_EPSILON,
    LEAST_MASS,
    MOST_ATOMS,
    AtomRows,
    QuadratureRange,
    Rule,
    WithoutReplacementRule,
    atoms_rule,
    larger_half,
    positive_half,
)

if TYPE_CHECKING:
    from tacit.pld.quadrature import Quadrature

# Pairs with finitely many losses.


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

    def beyond(self) -> Any:
        """The ball of P(infinity)."""
        return ball(Fraction(self.infinite_mass.low))

    def curve(self, t: Any) -> Any:
        total, log = self.beyond(), t.log()
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

    def pld(self) -> AtomicPLD:
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

    def batch_key(self) -> tuple[Any, ...] | None:
        return type(self).__name__, self.atom_count

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> AtomicPLD:
        return AtomicPLD.stacked([pair.pld() for pair in pairs])

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        """Losses, P-masses and the masses at infinity of pairs with equally many atoms, in floats."""
        raise NotImplementedError

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        return atoms_rule(cls.rows(pairs))

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        return positive_half(cls.rows(pairs))


# The pair of k-ary randomised response.


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

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        first = pairs[0]
        zero = np.zeros((len(pairs), 1))
        rows = np.array([(p.epsilon, p.categories) for p in pairs])
        e, k = rows[:, :1], rows[:, 1:]
        losses = np.concatenate([-e, zero, e] if first.categories > 2 else [-e, e], axis=1)
        ways = np.concatenate(
            [zero + 1, k - 2, zero + 1] if first.categories > 2 else [zero + 1, zero + 1], axis=1
        )
        return losses, ways * np.exp(np.maximum(losses, 0.0)) / (np.exp(e) + k - 1), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else self.atom_count

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return ("RandomizedResponsePair", self.categories), (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return RandomizedResponsePair(epsilon=next(values), categories=self.categories)


# The pair of local mechanisms whose categories are supported by equally many outcomes, two of them by equally many.


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedResponsePair(ListedPair):
    """Of the `outcomes`, `supporting` support a given category, and `shared` support two given categories.

    An outcome that supports the truth has odds e^epsilon against one that does not. With s, m and K for these numbers
    and Z = s e^epsilon + K - s, the loss is +epsilon with P-mass (s - m) e^epsilon / Z, -epsilon with (s - m) / Z, else
    0. Only the ratios of the three numbers matter.
    """

    epsilon: float
    outcomes: int
    supporting: int
    shared: int

    def __post_init__(self) -> None:
        require(
            0 <= self.epsilon < math.inf, parameter="epsilon", value=self.epsilon, must="be finite and >= 0"
        )
        ok = 0 <= self.shared < self.supporting and 2 * self.supporting - self.shared <= self.outcomes
        require(
            ok, parameter="shared", value=self.shared,
            must="be below supporting, and 2 supporting - shared at most outcomes",
        )  # fmt: skip

    @property
    def largest_loss(self) -> Interval:
        return Interval(low=self.epsilon, high=self.epsilon)

    @property
    def _idle(self) -> bool:
        """Whether some outcome is equally likely for two categories."""
        return self.shared > 0 or 2 * self.supporting < self.outcomes

    @property
    def atom_count(self) -> int:
        return 3 if self._idle else 2

    def atoms(self) -> list[tuple[Any, Any]]:
        e = ball(self.epsilon)
        own = self.supporting - self.shared
        norm = self.supporting * e.exp() + (self.outcomes - self.supporting)
        out = [(-e, own / norm), (e, own * e.exp() / norm)]
        if self._idle:
            rest = self.shared * e.exp() + (self.outcomes - 2 * self.supporting + self.shared)
            out.insert(1, (ball(0), rest / norm))
        return out

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        zero = np.zeros((len(pairs), 1))
        # Ratios of integers, each rounded once: the numbers themselves may be longer than floats.
        numbers = [(p.outcomes, p.supporting, p.shared) for p in pairs]
        own, shared, idle, out = np.array(
            [((s - m) / n, m / n, (n - 2 * s + m) / n, (n - s) / n) for n, s, m in numbers]
        ).T[:, :, None]
        e = np.array([[p.epsilon] for p in pairs])
        grown = np.exp(e)
        norm = (own + shared) * grown + out
        top = own * grown / norm
        if not pairs[0]._idle:
            return np.concatenate([-e, e], axis=1), np.concatenate([own / norm, top], axis=1), zero, zero
        losses = np.concatenate([-e, zero, e], axis=1)
        return losses, np.concatenate([own / norm, (shared * grown + idle) / norm, top], axis=1), zero, zero

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.epsilon > LARGEST_EPSILON else self.atom_count

    def family(self) -> tuple[Hashable, tuple[float, ...]] | None:
        return ("BalancedResponsePair", self.outcomes, self.supporting, self.shared), (self.epsilon,)

    def with_parameters(self, values: Iterator[float]) -> Pair:
        return BalancedResponsePair(
            epsilon=next(values), outcomes=self.outcomes, supporting=self.supporting, shared=self.shared
        )


# Pairs chosen by a public coin.


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPair(Pair):
    """(sum_i w_i (i, P_i), sum_i w_i (i, Q_i)): a coin of these weights chooses the pair and is published.

    h(t) = sum_i w_i h_i(t). A secret coin gives no more (`docs/theory/coin-mixture.md`).
    """

    pairs: tuple[Pair, ...]
    weights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        ok = len(self.pairs) == len(self.weights) > 0 and all(w > 0 for w in self.weights)
        require(
            ok and sum(self.weights) == 1,
            parameter="weights",
            value=len(self.weights),
            must="be positive, one a pair, with sum 1",
        )

    @property
    def sort_key(self) -> tuple[Any, ...]:
        return ("CoinPair", len(self.pairs), self.weights, *(pair.sort_key for pair in self.pairs))

    @property
    def symmetric(self) -> bool:
        return all(pair.symmetric for pair in self.pairs)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return all(pair.exact for pair in self.pairs)

    @property
    def measured(self) -> bool:  # type: ignore[override]
        return any(pair.measured for pair in self.pairs)

    @property
    def exact_in_products(self) -> bool:  # type: ignore[override]
        return all(pair.exact_in_products for pair in self.pairs)

    def swapped(self) -> Pair:
        if self.symmetric:
            return self
        return CoinPair(pairs=tuple(pair.swapped() for pair in self.pairs), weights=self.weights)

    def curve(self, t: Any) -> Any:
        total = ball(0)
        for pair, weight in zip(self.pairs, self.weights, strict=True):
            total += ball(weight) * pair.curve(t)
        return total

    def hockey_stick(self, epsilon: float) -> Interval:
        found = [pair.hockey_stick(epsilon) for pair in self.pairs]
        low = sum((w * Fraction(i.low) for w, i in zip(self.weights, found, strict=True)), Fraction(0))
        high = sum((w * Fraction(i.high) for w, i in zip(self.weights, found, strict=True)), Fraction(0))
        return Interval(low=down(low) if self.exact else 0.0, high=min(up(high), 1.0))

    def pld(self) -> PrivacyLossDistribution:
        return self.batch([self])

    def batch_key(self) -> tuple[Any, ...] | None:
        keys = [pair.batch_key() for pair in self.pairs]
        return None if None in keys else ("CoinPair", *keys)

    @classmethod
    def batch(cls, pairs: Sequence[Self]) -> PrivacyLossDistribution:
        places = range(len(pairs[0].pairs))
        return MixedPLD(
            laws=tuple(batch_pld([coin.pairs[i] for coin in pairs]) for i in places),
            weights=tuple(column([float(coin.weights[i]) for coin in pairs]) for i in places),
        )

    @property
    def largest_loss(self) -> Interval:
        tops = [pair.largest_loss for pair in self.pairs]
        return Interval(low=max(t.low for t in tops), high=max(t.high for t in tops))

    @property
    def smallest_loss(self) -> Interval:
        ends = [pair.smallest_loss for pair in self.pairs]
        return Interval(low=min(e.low for e in ends), high=min(e.high for e in ends))

    def _mass(self, masses: list[Interval]) -> Interval:
        low = sum((w * Fraction(m.low) for w, m in zip(self.weights, masses, strict=True)), Fraction(0))
        high = sum((w * Fraction(m.high) for w, m in zip(self.weights, masses, strict=True)), Fraction(0))
        return Interval(low=down(low), high=up(high))

    @property
    def infinite_mass(self) -> Interval:
        return self._mass([pair.infinite_mass for pair in self.pairs])

    @property
    def reverse_infinite_mass(self) -> Interval:
        return self._mass([pair.reverse_infinite_mass for pair in self.pairs])

    def renyi(self, order: float) -> float:
        """ln(sum_i w_i e^((a-1) D_i)) / (a-1)."""
        check_order(order)
        inner = [pair.renyi(order) for pair in self.pairs]
        if order == math.inf or math.inf in inner:
            return max(inner)

        def value() -> Any:
            a, total = ball(order), ball(0)
            for weight, divergence in zip(self.weights, inner, strict=True):
                total += ball(weight) * ((a - 1) * ball(divergence)).expm1()
            return total.log1p() / (a - 1)

        return min(bracket(value, what="a Rényi divergence").high, max(inner))

    # -- composition by transforms: each is the sum of the members', by their weights ----------------

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        return any(pair.has_density for pair in self.pairs)

    def quadrature_key(self) -> tuple[Hashable, ...] | None:
        keys = [pair.quadrature_key() for pair in self.pairs]
        return (
            None
            if None in keys
            else ("CoinPair", *((type(p), k) for p, k in zip(self.pairs, keys, strict=True)))
        )

    @classmethod
    def quadrature(cls, members: Sequence[tuple[Pair, int]], reach: QuadratureRange) -> Quadrature | None:
        from tacit.pld.quadrature import mixed, quadrature_of

        coins = [(pair, count) for pair, count in members if isinstance(pair, cls)]
        found, weights = [], []
        for place in range(len(coins[0][0].pairs)):
            nodes = quadrature_of([(pair.pairs[place], count) for pair, count in coins], reach)
            if nodes is None:
                return None
            found.append(nodes)
            weights.append([float(pair.weights[place]) for pair, _ in coins])
        return mixed(found, weights)


_NOTHING = Interval(low=0.0, high=0.0)


def _shares(values: Sequence[float | Fraction | int], name: str) -> tuple[list[int], int]:
    """Integers in the ratio of the values, and their sum."""
    ratios = []
    for value in values:
        ok = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
        ok = ok and (isinstance(value, Rational) or math.isfinite(value))
        require(ok and value >= 0, parameter=name, value=value, must="be finite and non-negative")
        # Python's own kinds, whose products have no width.
        exact = int(value) if isinstance(value, Integral) else value
        ratios.append((exact if isinstance(exact, Rational) else float(exact)).as_integer_ratio())
    common = math.lcm(*(b for _, b in ratios))
    out = [a * (common // b) for a, b in ratios]
    total = sum(out)
    require(
        bool(out) and abs(total - common) * 10**9 <= common,
        parameter=name,
        value=up(Fraction(total, common)),
        must="sum to 1 (to within 1e-9; the rest is divided out exactly)",
    )
    return out, total


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class FinitePair(ListedPair):
    """Any two tabulated distributions p and q on the same outcomes (floats are taken as exact rationals).

    Outcomes with the same likelihood ratio are merged (it is sufficient), so that equal pairs are equal.
    """

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    near: tuple[tuple[float, ...], tuple[float, ...]] = field(init=False, repr=False, compare=False)
    """The floats nearest to p and to q."""
    held: slice = field(init=False, repr=False, compare=False)
    """The outcomes with finite losses: only the first can be out of P's reach, only the last out of Q's."""

    def __init__(self, *, p: Sequence[float | Fraction | int], q: Sequence[float | Fraction | int]) -> None:
        require(
            len(p) == len(q) > 0, parameter="q", value=len(q), must=f"have as many outcomes as p ({len(p)})"
        )
        above, whole = _shares(p, "p")
        below, other = _shares(q, "q")
        merged: dict[tuple[int, int], tuple[int, int]] = {}
        for a, b in zip(above, below, strict=True):
            if divisor := math.gcd(a, b):
                ratio = (a // divisor, b // divisor)
                old = merged.get(ratio, (0, 0))
                merged[ratio] = (old[0] + a, old[1] + b)
        # Different ratios with denominators below 2^d are 2^-2d apart.
        digits = 2 * max(b.bit_length() for _, b in merged)
        order = sorted(merged, key=lambda r: (r[0] << digits) // r[1] if r[1] else math.inf)
        rows = [merged[ratio] for ratio in order]
        object.__setattr__(self, "p", tuple(Fraction(a, whole) for a, _ in rows))
        object.__setattr__(self, "q", tuple(Fraction(b, other) for _, b in rows))
        near = tuple(a / whole for a, _ in rows), tuple(b / other for _, b in rows)
        object.__setattr__(self, "near", near)
        held = slice(0 if rows[0][0] else 1, len(rows) if rows[-1][1] else len(rows) - 1)
        object.__setattr__(self, "held", held)

    @classmethod
    def rising(
        cls,
        *,
        p: tuple[Fraction, ...],
        q: tuple[Fraction, ...],
        near: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    ) -> FinitePair:
        """From exact distributions whose outcomes are in order already, by rising and different likelihood ratios."""
        made = object.__new__(cls)
        if near is None:
            floats = [tuple(x.numerator / x.denominator for x in side) for side in (p, q)]
            near = floats[0], floats[1]
        object.__setattr__(made, "p", p)
        object.__setattr__(made, "q", q)
        object.__setattr__(made, "near", near)
        object.__setattr__(made, "held", slice(0 if p[0] else 1, len(p) if q[-1] else len(p) - 1))
        return made

    def __hash__(self) -> int:
        # The hash of a Fraction is a modular inverse, and slow.
        return hash(self.near)

    @property
    def sort_key(self) -> tuple[Any, ...]:
        # Likewise Fractions are slow to compare: floats first, which seldom agree.
        return ("FinitePair", *self.near, self.p, self.q)

    @property
    def symmetric(self) -> bool:
        if self.near[0] != self.near[1][::-1]:
            return False
        # Likelihood ratios rise and are different, so that swapping turns their order round.
        return self.p == self.q[::-1]

    def swapped(self) -> Pair:
        if self.symmetric:
            return self
        near = self.near[1][::-1], self.near[0][::-1]
        return FinitePair.rising(p=self.q[::-1], q=self.p[::-1], near=near)

    @property
    def least(self) -> float:
        """The least mass of an outcome with a finite loss, under either distribution."""
        return min((*self.near[0][self.held], *self.near[1][self.held]), default=1.0)

    @property
    def atom_count(self) -> int:
        return max(int(self.held.stop - self.held.start), 1)

    def _finite(self) -> list[tuple[Fraction, Fraction]]:
        return list(zip(self.p[self.held], self.q[self.held], strict=True))

    def atoms(self) -> list[tuple[Any, Any]]:
        return [(ball(a / b).log(), ball(a)) for a, b in self._finite()]

    @property
    def top_mass(self) -> float:
        rows = self._finite()
        return down(rows[-1][0]) if rows else 0.0

    def curve(self, t: Any) -> Any:
        total = ball(0)
        for a, b in zip(self.p, self.q, strict=True):
            total += positive_ball(ball(a) - t * ball(b))
        return total

    def pld(self) -> AtomicPLD:
        if not self._finite():
            return AtomicPLD.single(
                losses=np.zeros(1),
                p=np.zeros(1),
                q=np.zeros(1),
                infinite=self.infinite_mass,
                reverse_infinite=self.reverse_infinite_mass,
            )
        return ListedPair.pld(self)

    @property
    def infinite_mass(self) -> Interval:
        return (
            _NOTHING if self.held.stop == len(self.p) else Interval(low=down(self.p[-1]), high=up(self.p[-1]))
        )

    @property
    def reverse_infinite_mass(self) -> Interval:
        return _NOTHING if self.held.start == 0 else Interval(low=down(self.q[0]), high=up(self.q[0]))

    def _extreme(self, index: int) -> Interval:
        if self.held.stop <= self.held.start:
            return _NOTHING
        at = self.held.stop - 1 if index else self.held.start
        (a, u), (b, v) = self.p[at].as_integer_ratio(), self.q[at].as_integer_ratio()
        # The quotient of integers is rounded once, and log1p is right to a few units.
        grown = (a * v - b * u) / (b * u) if a * v < 2 * b * u else math.inf
        if abs(grown) < 0.5:
            near = math.log1p(grown)
            return Interval(low=near - abs(near) * 2.0**-48, high=near + abs(near) * 2.0**-48)
        return bracket(lambda: ball(Fraction(a * v, b * u)).log(), what="a loss")

    @property
    def largest_loss(self) -> Interval:
        return self._extreme(-1)

    @property
    def smallest_loss(self) -> Interval:
        return self._extreme(0)

    meets_both_orders = True

    @classmethod
    def rows(cls, pairs: Sequence[Self]) -> AtomRows:
        p = np.array([t.near[0][t.held] or (0.0,) for t in pairs])
        q = np.array([t.near[1][t.held] or (1.0,) for t in pairs])
        with np.errstate(divide="ignore"):
            losses = np.where(p > 0, np.log(np.maximum(p, 1e-320) / q), 0.0)
        lost = np.array([[t.infinite_mass.high] for t in pairs])
        gone = np.array([[t.reverse_infinite_mass.high] for t in pairs])
        return losses, p, lost, gone

    def rule_key(self, *, sampled: bool) -> Hashable:
        return None if self.atom_count > MOST_ATOMS or self.least < LEAST_MASS else self.atom_count

    @classmethod
    def rule(cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange) -> Rule | None:
        # The ratio of two masses of a table is right to a unit, however near to 1.
        return replace(atoms_rule(cls.rows(pairs)), cancelled=1.0)

    @classmethod
    def without_replacement_rule(
        cls, pairs: Sequence[Self], rates: Floats, reach: QuadratureRange
    ) -> WithoutReplacementRule | None:
        rows = cls.rows(pairs)
        return positive_half(rows) if pairs[0].symmetric else larger_half(rows, rates, reach)
