"""Losses known by their four tails: P(L>l), P(L<=l), Q(L>l), Q(L<=l)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.pld.distributions.base import PrivacyLossDistribution, sampled_loss, unsampled_loss
from tacit.pld.grid import LARGEST_LOSS, Gridded

__all__ = ["Cells", "TailPLD", "Tails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Rows: P(L>l), P(L<=l), Q(L>l), Q(L<=l), each (pairs, points); absolute errors of each; slack: how far
    the points at which they were really taken may lie from those asked for (the same for all four rows)."""

    values: Floats
    errors: Floats
    slack: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """P- and Q-masses of the cells between rising edges, with absolute errors."""

    p: Floats
    q: Floats
    p_error: Floats
    q_error: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPLD(PrivacyLossDistribution):
    """A law without mass at infinity, given by its four tails as vectorised functions of (1, points)."""

    tails: Callable[[Floats], Tails]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    closed_cells: Callable[[Floats], Cells] | None = None
    """Masses of the cells between rising edges in closed form, where the tails would cancel."""

    def cells(self, edges: Floats) -> Cells:
        """P- and Q-mass of each cell."""
        return self.tail_cells(edges) if self.closed_cells is None else self.closed_cells(edges)

    def tail_cells(self, edges: Floats) -> Cells:
        """P- and Q-mass of each cell, from the smaller of the two tails, so that far cells keep digits."""
        got = self.tails(edges)
        values, errors = got.values, got.errors

        def from_tails(above: int, below: int) -> tuple[Floats, Floats]:
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

        def cells(edges: Floats) -> Cells:
            assert closed is not None
            back = closed(-edges[:, ::-1])
            return Cells(
                p=back.q[:, ::-1],
                q=back.p[:, ::-1],
                p_error=back.q_error[:, ::-1],
                q_error=back.p_error[:, ::-1],
            )

        def tails(losses: Floats) -> Tails:
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

        def cells(edges: Floats) -> Cells:
            assert closed is not None
            got = closed(unsampled_loss(edges, rate))
            p = (1 - rate) * got.q + rate * got.p
            error = (1 - rate) * got.q_error + rate * got.p_error + 4 * UNIT * p
            return Cells(p=p, q=got.q, p_error=error, q_error=got.q_error)

        def tails(losses: Floats) -> Tails:
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

        def tails(losses: Floats) -> Tails:
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

        def cells(edges: Floats) -> Cells:
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

            def both(one: Floats, other: Floats) -> Floats:
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

        def search(grid: Floats) -> tuple[float, float, float, float]:
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

    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        edges = np.arange(first, last + 1, dtype=np.float64)[None, :] * step
        ends = self.tails(edges[:, [0, -1]])
        whole_slack = self.tails(edges).slack if self.closed_cells is None else ends.slack
        cells = self.cells(edges)
        p, q, p_error, q_error = cells.p, cells.q, cells.p_error, cells.q_error
        left = edges[:, :-1]
        ratio = np.exp(np.clip(left, -700.0, LARGEST_LOSS))
        slack = whole_slack + 4 * UNIT * (abs(first) + abs(last)) * step
        noise = p_error + ratio * q_error + 8 * UNIT * (1 + np.abs(left)) * (p + ratio * q) + 2 * slack * p
        total = p + p_error
        far = left > LARGEST_LOSS - 1
        raised = np.clip((p - ratio * q + noise) / -math.expm1(-step), 0.0, total)
        raised = np.where(far, total, raised)
        masses = np.zeros((len(p), p.shape[1] + 1))
        masses[:, 1:] += raised
        masses[:, :-1] += total - raised
        bottom = ends.values[1][:, 0] + ends.errors[1][:, 0]
        masses[:, 0] += bottom
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kappa = np.where(p > p_error, (4 * noise + 4 * p_error) / np.maximum(p - p_error, 1e-320), np.inf)
            # Beyond the range of e^l all mass is lifted to the upper end: at most a step too high.
            kappa = np.where(far & (p > p_error), math.expm1(min(step, 600.0)) + 8 * p_error / p, kappa)
        return Gridded(
            start=first,
            masses=masses * (1 + 8 * UNIT),
            infinite_high=np.minimum(1.0, ends.values[0][:, 1] + ends.errors[0][:, 1]),
            infinite_low=np.zeros(len(p)),
            slack=slack,
            kappa=kappa + 4 * slack + 16 * UNIT,
            cell_masses=total,
            bottom=bottom,
        )

    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        got = self.tails(epsilons[None, :])
        p, q, p_error, q_error = got.values[0][0], got.values[2][0], got.errors[0][0], got.errors[2][0]
        value = p - t * q
        error = p_error + t * q_error + 8 * UNIT * (p + t * q) + got.slack * p
        high = np.where(epsilons > LARGEST_LOSS, p + p_error, value + error)
        low = np.where(epsilons > LARGEST_LOSS, 0.0, value - error)
        high = np.where(epsilons > self.bounds[1] + 1e-12 * (1 + abs(self.bounds[1])), 0.0, high)
        return low, high

    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        cells = self.cells(edges[None, :])
        p, q = np.maximum(cells.p[0], 1e-300), np.maximum(cells.q[0], 1e-300)
        # The merged cell's loss lies between its edges, wherever round-off puts it.
        return np.clip(np.log(p) - np.log(q), edges[:-1], edges[1:]), p / p.sum()
