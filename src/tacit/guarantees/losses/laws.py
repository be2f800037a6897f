"""The law of the privacy loss L = ln(dP/dQ) under P and under Q, in floats with error bounds.

`AtomicLaw` lists the atoms; `TailLaw` gives the four tails P(L>l), P(L<=l), Q(L>l), Q(L<=l). Both know
how to swap P and Q and how to mix P into Q (Poisson sampling), so that every pair needs one law only.
Rounding errors of the vectorised functions are bounded by the stated multiples of the unit round-off,
which the tests hold against ball arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.guarantees.losses.pair import FloatArray
from tacit.guarantees.rounding import Interval

__all__ = ["UNIT", "AtomicLaw", "Cells", "LossLaw", "TailLaw", "Tails", "sampled_loss", "unsampled_loss"]

UNIT = 2.0**-53
_ZERO = Interval(low=0.0, high=0.0)


class LossLaw(ABC):
    """The law of the loss under both distributions of a pair."""

    __slots__ = ()

    @abstractmethod
    def swapped(self) -> LossLaw:
        """The law for (Q, P)."""

    @abstractmethod
    def sampled(self, rate: float) -> LossLaw:
        """The law for ((1 - rate) Q + rate P, Q)."""

    @abstractmethod
    def extent(self, right: float, left: float) -> tuple[float, float]:
        """Losses (low, high) with about P(L < low) <= left and P(L > high) <= right (not certified)."""


def sampled_loss(losses: FloatArray, rate: float) -> FloatArray:
    """ln(1 - rate + rate e^L), without overflow."""
    big = losses > 30.0
    safe = np.where(big, 0.0, losses)
    with np.errstate(divide="ignore"):
        small = np.log1p(rate * np.expm1(safe))
    return np.where(big, losses + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.abs(losses))), small)


def unsampled_loss(losses: FloatArray, rate: float) -> FloatArray:
    """The inverse of `sampled_loss`; -infinity at and below ln(1 - rate)."""
    big = losses > 30.0
    inner = 1.0 + np.expm1(np.where(big, 0.0, losses)) / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.where(
            inner > 0.0, np.log1p(np.maximum(np.expm1(np.where(big, 0.0, losses)) / rate, -1.0)), -np.inf
        )
    return np.where(big, losses - np.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.abs(losses))), small)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicLaw(LossLaw):
    """Atoms at `losses` (ascending) with masses p, q; masses are right to the relative error `error`,
    losses to `slack`; the rest of P lies at +infinity and the rest of Q at -infinity."""

    losses: FloatArray
    p: FloatArray
    q: FloatArray
    infinite: Interval = _ZERO
    reverse_infinite: Interval = _ZERO
    error: float = 16 * UNIT
    slack: float = 0.0

    def swapped(self) -> AtomicLaw:
        return AtomicLaw(
            losses=-self.losses[::-1],
            p=self.q[::-1],
            q=self.p[::-1],
            infinite=self.reverse_infinite,
            reverse_infinite=self.infinite,
            error=self.error,
            slack=self.slack,
        )

    def sampled(self, rate: float) -> AtomicLaw:
        losses, q = self.losses, self.q
        p = (1 - rate) * self.q + rate * self.p
        if self.reverse_infinite.high > 0.0:
            # Q-mass that P cannot reach becomes an atom at ln(1 - rate).
            extra = self.reverse_infinite.high
            with np.errstate(divide="ignore"):
                bottom = float(np.log1p(-rate))
            if np.isfinite(bottom):
                mapped = np.concatenate([[bottom], sampled_loss(losses, rate)])
                p, q = np.concatenate([[(1 - rate) * extra], p]), np.concatenate([[extra], q])
            else:
                mapped = sampled_loss(losses, rate)
        else:
            mapped = sampled_loss(losses, rate)
        return AtomicLaw(
            losses=mapped,
            p=p,
            q=q,
            infinite=Interval(
                low=rate * self.infinite.low, high=min(1.0, rate * self.infinite.high * 1.000001)
            ),
            reverse_infinite=self.reverse_infinite if rate >= 1.0 else _ZERO,
            error=self.error + 8 * UNIT,
            slack=self.slack + 8 * UNIT * (1.0 + float(np.max(np.abs(mapped)))),
        )

    def extent(self, right: float, left: float) -> tuple[float, float]:
        above = np.cumsum(self.p[::-1])[::-1]
        below = np.cumsum(self.p)
        top = int(np.searchsorted(-above, -right, side="left"))
        bottom = int(np.searchsorted(below, left, side="right"))
        top = min(max(top, 1), len(self.losses)) - 1
        bottom = min(bottom, top)
        return float(self.losses[bottom]), float(self.losses[top])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Rows: P(L>l), P(L<=l), Q(L>l), Q(L<=l); absolute errors of each; slack: how far the points l at
    which they were really taken may lie from those asked for (the same points for all four rows)."""

    values: FloatArray
    errors: FloatArray
    slack: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """P- and Q-masses of the cells between rising edges, with absolute errors."""

    p: FloatArray
    q: FloatArray
    p_error: FloatArray
    q_error: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLaw(LossLaw):
    """A law given by its four tails as vectorised functions."""

    tails: Callable[[FloatArray], Tails]
    infinite: Interval = _ZERO
    reverse_infinite: Interval = _ZERO
    bounds: tuple[float, float] = (-np.inf, np.inf)
    closed_cells: Callable[[FloatArray], Cells] | None = None
    """Masses of the cells between rising edges in closed form, where the tails would cancel."""

    def cells(self, edges: FloatArray) -> Cells:
        """P- and Q-mass of each cell."""
        return self.tail_cells(edges) if self.closed_cells is None else self.closed_cells(edges)

    def tail_cells(self, edges: FloatArray) -> Cells:
        """P- and Q-mass of each cell, from the smaller of the two tails, so that far cells keep digits."""
        got = self.tails(edges)
        values, errors = got.values, got.errors

        def from_tails(above: int, below: int) -> tuple[FloatArray, FloatArray]:
            use_above = values[above][:-1] < values[below][1:]
            from_above = values[above][:-1] - values[above][1:]
            from_below = values[below][1:] - values[below][:-1]
            error_above = errors[above][:-1] + errors[above][1:]
            error_below = errors[below][1:] + errors[below][:-1]
            mass = np.maximum(np.where(use_above, from_above, from_below), 0.0)
            return mass, np.where(use_above, error_above, error_below) + 2 * UNIT * mass

        p, p_error = from_tails(0, 1)
        q, q_error = from_tails(2, 3)
        return Cells(p=p, q=q, p_error=p_error, q_error=q_error)

    def swapped(self) -> TailLaw:
        inner = self.tails
        closed = self.closed_cells

        def cells(edges: FloatArray) -> Cells:
            assert closed is not None
            back = closed(-edges[::-1])
            return Cells(
                p=back.q[::-1], q=back.p[::-1], p_error=back.q_error[::-1], q_error=back.p_error[::-1]
            )

        def tails(losses: FloatArray) -> Tails:
            got = inner(-losses)
            return Tails(values=got.values[[3, 2, 1, 0]], errors=got.errors[[3, 2, 1, 0]], slack=got.slack)

        return TailLaw(
            tails=tails,
            infinite=self.reverse_infinite,
            reverse_infinite=self.infinite,
            bounds=(-self.bounds[1], -self.bounds[0]),
            closed_cells=None if closed is None else cells,
        )

    def sampled(self, rate: float) -> TailLaw:
        inner = self.tails
        closed = self.closed_cells

        def cells(edges: FloatArray) -> Cells:
            assert closed is not None
            got = closed(unsampled_loss(edges, rate))
            p = (1 - rate) * got.q + rate * got.p
            error = (1 - rate) * got.q_error + rate * got.p_error + 4 * UNIT * p
            return Cells(p=p, q=got.q, p_error=error, q_error=got.q_error)

        def tails(losses: FloatArray) -> Tails:
            base = unsampled_loss(losses, rate)
            got = inner(base)
            values, errors = got.values.copy(), got.errors.copy()
            values[:2] = (1 - rate) * got.values[2:] + rate * got.values[:2]
            errors[:2] = (1 - rate) * got.errors[2:] + rate * got.errors[:2] + 4 * UNIT * values[:2]
            finite = np.isfinite(base)
            reach = float(np.max(np.abs(base[finite]), initial=0.0)) + float(np.max(np.abs(losses)))
            # The map is a contraction where the loss is positive; below, its inverse steepens exactly
            # as fast as the loss flattens, so that the error seen in the loss stays a few units.
            slack = got.slack + 16 * UNIT * (1.0 + reach) * float(np.exp(max(0.0, -float(np.min(losses)))))
            return Tails(values=values, errors=errors, slack=slack)

        low, high = self.bounds
        ends = sampled_loss(np.array([low, high]), rate)
        return TailLaw(
            tails=tails,
            infinite=Interval(
                low=rate * self.infinite.low, high=min(1.0, rate * self.infinite.high * 1.000001)
            ),
            bounds=(float(ends[0]), float(ends[1])),
            closed_cells=None if closed is None else cells,
        )

    def extent(self, right: float, left: float) -> tuple[float, float]:
        scales = np.concatenate([[0.0], np.exp2(np.arange(-60.0, 24.0, 0.5))])
        points = np.unique(np.concatenate([-scales, scales]))
        low_bound, high_bound = self.bounds
        points = points[(points > low_bound) & (points < high_bound)]
        if len(points) == 0:
            return low_bound, high_bound

        def search(grid: FloatArray) -> tuple[float, float, float, float]:
            values = self.tails(grid).values
            over = np.flatnonzero(values[0] <= right)
            under = np.flatnonzero(values[1] <= left)
            top = int(over[0]) if len(over) else len(grid)
            bottom = int(under[-1]) if len(under) else -1
            return (
                float(grid[top - 1]) if top > 0 else low_bound,
                float(grid[top]) if top < len(grid) else min(high_bound, 2.0**24),
                float(grid[bottom]) if bottom >= 0 else max(low_bound, -(2.0**24)),
                float(grid[bottom + 1]) if bottom + 1 < len(grid) else high_bound,
            )

        inner_top, outer_top, outer_bottom, inner_bottom = search(points)
        fine = np.unique(
            np.concatenate(
                [np.linspace(inner_top, outer_top, 33), np.linspace(outer_bottom, inner_bottom, 33)]
            )
        )
        fine = fine[np.isfinite(fine)]
        _, high, low, _ = search(fine)
        return max(low, low_bound), min(high, high_bound)
