"""Losses that are atoms: listed, with masses under P and under Q."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.exact.rounding import Interval
from tacit.pld.distributions.base import PrivacyLossDistribution, sampled_loss
from tacit.pld.grid import LARGEST_LOSS, Gridded

__all__ = ["AtomicPLD"]


def _ends(interval: Interval) -> Floats:
    return np.array([[interval.low, interval.high]])


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicPLD(PrivacyLossDistribution):
    """Atoms at `losses` (ascending) with masses p, q, each (pairs, atoms); masses are right to the relative
    error `error`, losses to `slack`; P-mass at +infinity and Q-mass at -infinity as rows (low, high)."""

    losses: Floats
    p: Floats
    q: Floats
    infinite: Floats
    reverse_infinite: Floats
    error: float = 16 * UNIT
    slack: float = 0.0

    @staticmethod
    def single(
        *,
        losses: Floats,
        p: Floats,
        q: Floats,
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

    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        rows, count = len(self.losses), last - first + 1
        above = self.losses > last * step
        below = self.losses < first * step
        p = np.where(above | below, 0.0, self.p * (1 + self.error))
        clipped = np.clip(self.losses, first * step, last * step)
        cell = np.clip(np.floor(clipped / step).astype(np.int64), first, last - 1)
        offset = np.clip(clipped - cell * step, 0.0, step)
        unit = UNIT * (8 + 4 * (np.abs(clipped) + step)) + 2 * self.slack
        fraction = np.clip((np.expm1(-offset) - unit) / math.expm1(-step), 0.0, 1.0)
        place: NDArray[np.int64] = (cell - first) + count * np.arange(rows, dtype=np.int64)[:, None]

        def spread(index: NDArray[np.int64], weights: Floats) -> Floats:
            flat = np.bincount(index.ravel(), weights=weights.ravel(), minlength=rows * count)
            return np.asarray(flat, dtype=np.float64).reshape(rows, count)

        masses = np.asarray(spread(place + 1, p * fraction) + spread(place, p * (1 - fraction)))
        bottom = np.sum(np.where(below, self.p, 0.0), axis=1) * (1 + 1e-9)
        masses[:, 0] += bottom
        cut = np.sum(np.where(above, self.p, 0.0), axis=1) * (1 + 1e-9)
        return Gridded(
            start=first,
            masses=masses * (1 + 8 * UNIT),
            infinite_high=np.minimum(1.0, self.infinite[:, 1] + cut),
            infinite_low=self.infinite[:, 0],
            slack=self.slack + 4 * UNIT * (abs(first) + abs(last)) * step,
            kappa=np.full((rows, count - 1), 2 * self.error + 4 * float(np.max(unit)) + 16 * UNIT),
            cell_masses=spread(place, p)[:, :-1],
            bottom=bottom,
        )

    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        above = np.concatenate([np.cumsum(self.p[0, ::-1])[::-1], [0.0]])
        above_q = np.concatenate([np.cumsum(self.q[0, ::-1])[::-1], [0.0]])
        index = np.searchsorted(self.losses[0], epsilons, side="right")
        size = self.error + UNIT * (8 + 2 * self.p.shape[1]) + self.slack
        error = (above[index] + t * above_q[index]) * size
        # Where every atom above weighs tiny amounts the two sums cancel: the sum of P alone bounds it too.
        value = np.clip(above[index] - t * above_q[index], 0.0, None)
        high = np.minimum(value + error, above[index] * (1 + size)) + self.infinite[0, 1]
        low = value - error + self.infinite[0, 0]
        low = np.where(epsilons > LARGEST_LOSS, self.infinite[0, 0], low)
        return low, high

    def coarse(self, right: float, left: float) -> tuple[Floats, Floats]:
        if self.losses.shape[1] <= 4096:
            return self.losses[0], np.maximum(self.p[0], 1e-300)
        return PrivacyLossDistribution.coarse(self, right, left)

    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        low, high = float(edges[0]), float(edges[-1])
        step = (high - low + 1e-12) / 4000
        first = math.floor(low / step)
        grid = self.on_grid(step, first, max(math.ceil(high / step), first + 1))
        masses = np.maximum(grid.masses[0], 1e-300)
        return np.arange(grid.start, grid.start + len(masses), dtype=np.float64) * step, masses / masses.sum()
