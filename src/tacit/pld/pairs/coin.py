"""Pairs chosen by a public coin."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from tacit.exact.arrays import column
from tacit.exact.balls import ball, bracket
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.distributions import PrivacyLossDistribution
from tacit.pld.distributions.mixed import MixedPLD
from tacit.pld.pairs.base import Pair, batch_pld, check_order

if TYPE_CHECKING:
    from tacit.pld.quadrature import Quadrature
    from tacit.pld.quadrature_rules import QuadratureRange

__all__ = ["CoinPair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPair(Pair):
    """(sum_i w_i (i, P_i), sum_i w_i (i, Q_i)): a coin of these weights chooses the pair and is told.

    h(t) = sum_i w_i h_i(t). A coin that is kept secret gives no more (`docs/theory/coin-mixture.md`).
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
