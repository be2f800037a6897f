"""The law of the privacy loss L = ln(dP/dQ) under P and under Q, in floats with error bounds.

`AtomicPLD` lists the atoms; `TailPLD` gives the four tails P(L>l), P(L<=l), Q(L>l), Q(L<=l). Both know
how to swap P and Q and how to mix P into Q (Poisson sampling), so that every pair needs one law only.
A law may stand for many pairs of one kind at once: arrays are (pairs, points), parameters are columns.
Rounding errors of the vectorised functions are bounded by the stated multiples of the unit round-off,
which the tests hold against ball arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tacit.exact.rounding import Interval
from tacit.pld.pair import FloatArray

__all__ = [
    "UNIT",
    "AtomicPLD",
    "Cells",
    "Column",
    "PrivacyLossDistribution",
    "TailPLD",
    "Tails",
    "sampled_loss",
    "unsampled_loss",
]

UNIT = 2.0**-53
Column: TypeAlias = "float | FloatArray"
"""A parameter: one number, or one for each pair, as a column."""


class PrivacyLossDistribution(ABC):
    """The law of the loss under both distributions of a pair, or of many pairs."""

    __slots__ = ()

    @abstractmethod
    def swapped(self) -> PrivacyLossDistribution:
        """The law for (Q, P)."""

    @abstractmethod
    def sampled(self, rate: Column) -> PrivacyLossDistribution:
        """The law for ((1 - rate) Q + rate P, Q)."""

    def mirrored(self) -> PrivacyLossDistribution:
        """The law whose losses above 0 are these, those below 0 their mirror image, and the rest at 0.

        For laws with P(L > 0) + Q(L > 0) <= 1 (`docs/theory/without-replacement-law.md`).
        """
        raise NotImplementedError

    @abstractmethod
    def extent(self, right: float, left: float) -> tuple[float, float]:
        """Losses (low, high) with about P(L < low) <= left and P(L > high) <= right (not certified)."""


def sampled_loss(losses: FloatArray, rate: Column) -> FloatArray:
    """ln(1 - rate + rate e^L), without overflow."""
    big = losses > 30.0
    safe = np.where(big, 0.0, losses)
    with np.errstate(divide="ignore"):
        small = np.log1p(rate * np.expm1(safe))
    large = losses + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.abs(losses)))
    return np.asarray(np.where(big, large, small))


def unsampled_loss(losses: FloatArray, rate: Column) -> FloatArray:
    """The inverse of `sampled_loss`; -infinity at and below ln(1 - rate)."""
    big = losses > 30.0
    ratio = np.expm1(np.where(big, 0.0, losses)) / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.where(ratio > -1.0, np.log1p(np.maximum(ratio, -1.0)), -np.inf)
        large = losses - np.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.abs(losses)))
    return np.asarray(np.where(big, large, small))


def _ends(interval: Interval) -> FloatArray:
    return np.array([[interval.low, interval.high]])


NONE = _ends(Interval(low=0.0, high=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicPLD(PrivacyLossDistribution):
    """Atoms at `losses` (ascending) with masses p, q, each (pairs, atoms); masses are right to the relative
    error `error`, losses to `slack`; P-mass at +infinity and Q-mass at -infinity as rows (low, high)."""

    losses: FloatArray
    p: FloatArray
    q: FloatArray
    infinite: FloatArray
    reverse_infinite: FloatArray
    error: float = 16 * UNIT
    slack: float = 0.0

    @staticmethod
    def single(
        *,
        losses: FloatArray,
        p: FloatArray,
        q: FloatArray,
        infinite: Interval,
        reverse_infinite: Interval,
        error: float = 16 * UNIT,
        slack: float = 0.0,
    ) -> AtomicPLD:
        """The law of one pair."""
        return AtomicPLD(
            losses=losses[None, :],
            p=p[None, :],
            q=q[None, :],
            infinite=_ends(infinite),
            reverse_infinite=_ends(reverse_infinite),
            error=error,
            slack=slack,
        )

    @staticmethod
    def stacked(laws: list[AtomicPLD]) -> AtomicPLD:
        """Many laws with equal numbers of atoms as one."""
        return AtomicPLD(
            losses=np.concatenate([law.losses for law in laws]),
            p=np.concatenate([law.p for law in laws]),
            q=np.concatenate([law.q for law in laws]),
            infinite=np.concatenate([law.infinite for law in laws]),
            reverse_infinite=np.concatenate([law.reverse_infinite for law in laws]),
            error=max(law.error for law in laws),
            slack=max(law.slack for law in laws),
        )

    def swapped(self) -> AtomicPLD:
        return AtomicPLD(
            losses=-self.losses[:, ::-1],
            p=self.q[:, ::-1],
            q=self.p[:, ::-1],
            infinite=self.reverse_infinite,
            reverse_infinite=self.infinite,
            error=self.error,
            slack=self.slack,
        )

    def sampled(self, rate: Column) -> AtomicPLD:
        column = np.broadcast_to(np.asarray(rate, dtype=np.float64).reshape(-1, 1), (len(self.losses), 1))
        # Q-mass that P cannot reach becomes an atom at ln(1 - rate).
        extra = self.reverse_infinite[:, 1:]
        losses = np.concatenate([np.log1p(-column), sampled_loss(self.losses, column)], axis=1)
        q = np.concatenate([extra, self.q], axis=1)
        p = np.concatenate([(1 - column) * extra, (1 - column) * self.q + column * self.p], axis=1)
        return AtomicPLD(
            losses=losses,
            p=p,
            q=q,
            infinite=np.clip(self.infinite * column * np.array([1 - 1e-12, 1 + 1e-12]), 0.0, 1.0),
            reverse_infinite=np.zeros_like(self.reverse_infinite),
            error=self.error + 8 * UNIT,
            slack=self.slack + 8 * UNIT * (1.0 + float(np.max(np.abs(losses)))),
        )

    def mirrored(self) -> AtomicPLD:
        above = self.losses > 0
        columns = np.any(above, axis=0)
        losses = np.where(above, self.losses, 0.0)[:, columns]
        p, q = np.where(above, self.p, 0.0)[:, columns], np.where(above, self.q, 0.0)[:, columns]
        rest = np.maximum(1 - np.sum(p + q, axis=1, keepdims=True) - self.infinite[:, 1:], 0.0)
        size = 2 * self.error + 4 * UNIT * (4 + p.shape[1])
        # The rest is rounded up, both where it counts as P and where it counts as Q.
        rest = rest + size
        return AtomicPLD(
            losses=np.concatenate([-losses[:, ::-1], np.zeros_like(rest), losses], axis=1),
            p=np.concatenate([q[:, ::-1], rest, p], axis=1),
            q=np.concatenate([p[:, ::-1], rest, q], axis=1),
            infinite=self.infinite,
            reverse_infinite=self.infinite,
            error=self.error,
            slack=self.slack,
        )

    def extent(self, right: float, left: float) -> tuple[float, float]:
        above = np.cumsum(self.p[:, ::-1], axis=1)[:, ::-1]
        below = np.cumsum(self.p, axis=1)
        tops = np.where(above > right, self.losses, -np.inf)
        bottoms = np.where(below > left, self.losses, np.inf)
        low, high = float(np.min(bottoms)), float(np.max(tops))
        if not (np.isfinite(low) and np.isfinite(high)):
            return float(np.min(self.losses)), float(np.max(self.losses))
        return min(low, high), high


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Rows: P(L>l), P(L<=l), Q(L>l), Q(L<=l), each (pairs, points); absolute errors of each; slack: how far
    the points at which they were really taken may lie from those asked for (the same for all four rows)."""

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
class TailPLD(PrivacyLossDistribution):
    """A law without mass at infinity, given by its four tails as vectorised functions of (1, points)."""

    tails: Callable[[FloatArray], Tails]
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
            use_above = values[above][:, :-1] < values[below][:, 1:]
            from_above = values[above][:, :-1] - values[above][:, 1:]
            from_below = values[below][:, 1:] - values[below][:, :-1]
            error_above = errors[above][:, :-1] + errors[above][:, 1:]
            error_below = errors[below][:, 1:] + errors[below][:, :-1]
            mass = np.maximum(np.where(use_above, from_above, from_below), 0.0)
            return mass, np.where(use_above, error_above, error_below) + 2 * UNIT * mass

        p, p_error = from_tails(0, 1)
        q, q_error = from_tails(2, 3)
        return Cells(p=p, q=q, p_error=p_error, q_error=q_error)

    def swapped(self) -> TailPLD:
        inner = self.tails
        closed = self.closed_cells

        def cells(edges: FloatArray) -> Cells:
            assert closed is not None
            back = closed(-edges[:, ::-1])
            return Cells(
                p=back.q[:, ::-1],
                q=back.p[:, ::-1],
                p_error=back.q_error[:, ::-1],
                q_error=back.p_error[:, ::-1],
            )

        def tails(losses: FloatArray) -> Tails:
            got = inner(-losses)
            return Tails(values=got.values[[3, 2, 1, 0]], errors=got.errors[[3, 2, 1, 0]], slack=got.slack)

        return TailPLD(
            tails=tails,
            bounds=(-self.bounds[1], -self.bounds[0]),
            closed_cells=None if closed is None else cells,
        )

    def sampled(self, rate: Column) -> TailPLD:
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
            slack = got.slack + 16 * UNIT * (1.0 + reach) * float(
                np.exp(min(max(0.0, -float(np.min(losses))), 700.0))
            )
            return Tails(values=values, errors=errors, slack=slack)

        low, high = self.bounds
        bottom = float(np.min(sampled_loss(np.array([[low]]), rate)))
        top = float(np.max(sampled_loss(np.array([[high]]), rate)))
        return TailPLD(tails=tails, bounds=(bottom, top), closed_cells=None if closed is None else cells)

    def mirrored(self) -> TailPLD:
        inner, whole = self.tails, self.cells

        def tails(losses: FloatArray) -> Tails:
            got = inner(np.abs(losses))
            over, under = losses >= 0, losses < 0
            tops, lows = (
                np.where(over, got.values[0], got.values[2]),
                np.where(over, got.values[2], got.values[0]),
            )
            top_errors = np.where(over, got.errors[0], got.errors[2])
            low_errors = np.where(over, got.errors[2], got.errors[0])
            rows = [(tops, top_errors), (1 - tops, top_errors + 2 * UNIT)]
            rows += [(lows, low_errors), (1 - lows, low_errors + 2 * UNIT)]
            values = np.array([np.where(under, rows[k ^ 1][0], rows[k][0]) for k in range(4)])
            errors = np.array([np.where(under, rows[k ^ 1][1], rows[k][1]) for k in range(4)])
            return Tails(values=values, errors=errors, slack=got.slack)

        def cells(edges: FloatArray) -> Cells:
            row = edges[0]
            first = int(np.searchsorted(row, 0.0))
            # On a grid around 0 both sides have the same edges: one look serves both.
            above = np.concatenate([[0.0], row[first:][row[first:] > 0]])
            below = np.concatenate([[0.0], -row[:first][::-1]])
            same = min(len(above), len(below))
            if np.array_equal(above[:same], below[:same]):
                up = down = whole(max(above, below, key=len)[None, :])
            else:
                up, down = whole(above[None, :]), whole(below[None, :])
            ends = inner(np.zeros((1, 1)))
            inside = (row[:-1] < 0) & (row[1:] >= 0)
            rest = np.maximum(1 - ends.values[0] - ends.values[2], 0.0) * inside
            error = (ends.errors[0] + ends.errors[2] + 2 * UNIT) * inside

            def both(one: FloatArray, other: FloatArray) -> FloatArray:
                """The cells below 0, mirrored from `other`, beside those above 0; a cell around 0 has of both."""
                shape = len(one), len(row) - 1
                total = np.zeros(shape)
                # Where all edges lie on one side of 0, the cell next to it is not asked for.
                right = one[:, : len(above) - 1][:, -shape[1] :]
                left = other[:, : len(below) - 1][:, -shape[1] :]
                total[:, shape[1] - right.shape[1] :] += right
                total[:, : left.shape[1]] += left[:, ::-1]
                return total

            return Cells(
                p=both(up.p, down.q) + rest,
                q=both(up.q, down.p) + rest,
                p_error=both(up.p_error, down.q_error) + error,
                q_error=both(up.q_error, down.p_error) + error,
            )

        return TailPLD(tails=tails, bounds=(-self.bounds[1], self.bounds[1]), closed_cells=cells)

    def extent(self, right: float, left: float) -> tuple[float, float]:
        low_bound, high_bound = self.bounds
        scales = np.concatenate([[0.0], np.exp2(np.arange(-60.0, 24.0, 0.5))])
        points = np.unique(np.concatenate([-scales, scales]))
        points = points[(points > low_bound) & (points < high_bound)]
        if len(points) == 0:
            return low_bound, high_bound

        def search(grid: FloatArray) -> tuple[float, float, float, float]:
            values = self.tails(grid[None, :]).values
            over = np.flatnonzero(np.all(values[0] <= right, axis=0))
            under = np.flatnonzero(np.all(values[1] <= left, axis=0))
            top = int(over[0]) if len(over) else len(grid)
            bottom = int(under[-1]) if len(under) else -1
            return (
                float(grid[top - 1]) if top > 0 else low_bound,
                float(grid[top]) if top < len(grid) else min(high_bound, 2.0**24),
                float(grid[bottom]) if bottom >= 0 else max(low_bound, -(2.0**24)),
                float(grid[bottom + 1]) if bottom + 1 < len(grid) else high_bound,
            )

        inner_top, outer_top, outer_bottom, inner_bottom = search(points)
        tops = np.linspace(max(inner_top, -(2.0**24)), outer_top, 33)
        bottoms = np.linspace(outer_bottom, min(inner_bottom, 2.0**24), 33)
        fine = np.unique(np.concatenate([tops, bottoms]))
        _, high, low, _ = search(fine)
        return max(min(low, high), low_bound), min(high, high_bound)
