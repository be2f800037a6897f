"""Pairs with finitely many losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import UNIT, Floats
from tacit.exact.balls import ball, bracket, positive_ball, precision
from tacit.exact.rounding import down
from tacit.pld.distributions import (
    AtomicPLD,
)
from tacit.pld.pairs.base import Pair, check_order
from tacit.pld.quadrature_rules import (
    AtomRows,
    QuadratureRange,
    Rule,
    atoms_rule,
)
from tacit.pld.without_replacement_rules import WithoutReplacementRule, positive_half

__all__ = ["ListedPair"]


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
