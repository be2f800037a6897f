"""Any two tabulated distributions, as exact fractions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Self

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, bracket, positive_ball
from tacit.exact.checks import require
from tacit.exact.rounding import Interval, down, up
from tacit.pld.distributions import (
    AtomicPLD,
)
from tacit.pld.pairs.base import Pair
from tacit.pld.pairs.listed import ListedPair
from tacit.pld.quadrature_rules import (
    LEAST_MASS,
    MOST_ATOMS,
    AtomRows,
    QuadratureRange,
    Rule,
    atoms_rule,
)
from tacit.pld.without_replacement_rules import WithoutReplacementRule, larger_half, positive_half

__all__ = ["FinitePair"]

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
        """From exact laws whose outcomes are in order already, by rising and different likelihood ratios."""
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
