"""Privacy-loss distributions: by atoms, by tails, or by an upper curve; each knows how to be put on a grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Interval

# Pairs on a grid of losses: connect-the-dots, with all that is needed to bound it from both sides.
#
# Each cell (l_k, l_k+1] of the loss keeps its P- and its Q-mass by splitting them between its two ends
# (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): in the variable t = e^l that joins the points of the
# convex curve h by chords, so the gridded pair dominates. Float errors only ever move mass upwards.
# Seen from below, the gridded ratio is Z~ = Z M with M in a set of two points whose logarithms lie a step
# apart and E[M|Z] <= 1 + kappa: what `below` in engine.py needs. Cells in which round-off is too large for
# that are unresolved: their mass counts above and not below.

LARGEST_LOSS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gridded:
    """Rows of P-masses at the losses (start + k) step, rounded up; the mass at infinity; error accounts."""

    start: int
    masses: Floats
    infinite_high: Floats
    infinite_low: Floats
    slack: float
    """True losses may lie this far above the stated ones."""
    kappa: Floats
    """For each cell (the k-th touches nodes k and k + 1), the relative excess of its mass."""
    cell_masses: Floats
    """P-mass of each cell: the unresolved mass if the cell's kappa is too large."""
    bottom: Floats
    """P-mass lifted from below the grid to its first node."""
    hidden: Floats | float = 0.0
    """The unresolved P-mass of each cell for any kappa: the mass of single members of a mixture."""


def gridded(law: PrivacyLossDistribution, step: float, low: float, high: float) -> Gridded:
    """Put a distribution on the multiples of `step` that cover [low, high]."""
    first, last = math.floor(low / step), math.ceil(high / step)
    return law.on_grid(step, first, max(last, first + 1))


def chord_masses(losses: Floats, values: Floats) -> tuple[Floats, float]:
    """P-masses, rounded up, of the chords of the lower convex hull of upper values at nodes (and 1 at t = 0)."""
    t = np.exp(np.clip(losses, -700.0, LARGEST_LOSS + 100))
    points_t = np.concatenate([[0.0], t])
    heights = np.concatenate([[1.0], np.minimum(values, 1.0)])
    keep = _hull(points_t, heights)
    tk, vk = points_t[keep], heights[keep]
    gaps = np.diff(tk)
    slopes = np.minimum(np.concatenate([np.diff(vk) / gaps, [0.0]]), 0.0)
    inner = slopes[1:] - slopes[:-1]
    scale = vk[1:] * 8 * UNIT / gaps + 8 * UNIT * np.abs(slopes[:-1])
    after = np.concatenate([scale[1:], [0.0]])
    masses = np.zeros(len(losses))
    masses[keep[1:] - 1] = tk[1:] * (np.maximum(inner, 0.0) + scale + after + 4 * UNIT * np.abs(slopes[1:]))
    return masses, float(vk[-1])


def _hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of points with rising x, first and last included, whose chords are convex.

    Chords between any upper values of a convex curve lie above it: points above the chord of their neighbours
    are left out, every other one at a time, until all fit.
    """
    keep = np.flatnonzero(np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > 0]))
    if len(keep) > 256:
        # Long bulges go at once: what lies above the chords of a coarser choice is of no use.
        coarse = keep[::16] if (len(keep) - 1) % 16 == 0 else np.append(keep[::16], keep[-1])
        coarse = coarse[_hull(x[coarse], y[coarse])]
        # A mask, since numpy's unions of long arrays are a hundred times as slow.
        chosen = np.zeros(len(x), dtype=bool)
        chosen[keep[y[keep] < np.interp(x[keep], x[coarse], y[coarse])]] = True
        chosen[coarse] = True
        keep = np.flatnonzero(chosen)
    while len(keep) > 2:
        a, b, c = keep[:-2], keep[1:-1], keep[2:]
        over = (y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a])
        if not np.any(over):
            break
        drop = np.flatnonzero(over)
        # Of neighbours that are both above, only those at even distance from the first of them go.
        starts = np.concatenate([[True], np.diff(drop) > 1])
        first = np.maximum.accumulate(np.where(starts, np.arange(len(drop)), 0))
        keep = np.delete(keep, drop[(np.arange(len(drop)) - first) % 2 == 0] + 1)
    return np.asarray(keep, dtype=np.int64)


def pld_curve(law: PrivacyLossDistribution, epsilons: Floats) -> tuple[Floats, Floats]:
    """Float enclosures of H_epsilon from the distribution of one pair: P(L > e) - e^e Q(L > e), with its errors."""
    low, high = law.ends(epsilons, np.exp(np.minimum(epsilons, 700.0)))
    floor = np.maximum(-np.expm1(np.minimum(epsilons, 0.0)) * (1 - 4 * UNIT), 0.0)
    low = np.clip(np.maximum(low, floor), 0.0, 1.0) if law.known_from_below else np.zeros_like(epsilons)
    return low, np.maximum(np.clip(high, 0.0, 1.0), low)


# The distribution of the privacy loss L = ln(dP/dQ) under P and under Q, in floats with error bounds.
#
# `AtomicPLD` lists the atoms; `TailPLD` gives the four tails P(L>l), P(L<=l), Q(L>l), Q(L<=l). Both know
# how to swap P and Q and how to mix P into Q (Poisson sampling), so that every pair needs one distribution only.
# A distribution may stand for many pairs of one kind at once: arrays are (pairs, points), parameters are columns.
# Rounding errors of the vectorised functions are bounded by the stated multiples of the unit round-off,
# which the tests hold against ball arithmetic.


class PrivacyLossDistribution(ABC):
    """The distribution of the loss under both distributions of a pair, or of many pairs."""

    __slots__ = ()

    @abstractmethod
    def swapped(self) -> PrivacyLossDistribution:
        """The distribution for (Q, P)."""

    @abstractmethod
    def sampled(self, rate: Column) -> PrivacyLossDistribution:
        """The distribution for ((1 - rate) Q + rate P, Q)."""

    def mirrored(self) -> PrivacyLossDistribution:
        """The distribution whose losses above 0 are these, those below 0 their mirror image, and the rest at 0.

        For distributions with P(L > 0) + Q(L > 0) <= 1 (`docs/theory/without-replacement-pair.md`).
        """
        raise NotImplementedError

    @abstractmethod
    def extent(self, right: float, left: float) -> tuple[float, float]:
        """Losses (low, high) with about P(L < low) <= left and P(L > high) <= right (not certified)."""

    known_from_below: ClassVar[bool] = True
    """False if only an upper curve is known."""

    @abstractmethod
    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        """On the multiples of `step` from the first-th to the last-th, rounded up: connect-the-dots."""

    @abstractmethod
    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Lower and upper values of H_epsilon of the first row, before they are clipped; t = e^epsilon."""

    def coarse(self, right: float, left: float) -> tuple[Floats, Floats]:
        """Losses and P-masses of a coarse version of the first row, fine near 0, which only guide a search."""
        low, high = self.extent(right, left)
        reach = max(abs(low), abs(high), 1e-300)
        scales = reach * np.concatenate([np.geomspace(1e-8, 1.0, 400), np.linspace(0.0, 1.0, 200)])
        edges = np.unique(np.concatenate([-scales, scales, [low, high]]))
        # An atom may sit on the lowest edge: begin just below it.
        edges = np.concatenate([[low - 1e-9 * reach], edges[(edges >= low) & (edges <= high)]])
        return self._between(edges)

    @abstractmethod
    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        """Losses and P-masses of cells between these edges, one loss each."""


def sampled_loss(losses: Floats, rate: Column) -> Floats:
    """ln(1 - rate + rate e^L), without overflow."""
    big = losses > 30.0
    safe = np.where(big, 0.0, losses)
    with np.errstate(divide="ignore"):
        small = np.log1p(rate * np.expm1(safe))
    large = losses + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.abs(losses)))
    return np.asarray(np.where(big, large, small))


def unsampled_loss(losses: Floats, rate: Column) -> Floats:
    """The inverse of `sampled_loss`; -infinity at and below ln(1 - rate)."""
    big = losses > 30.0
    ratio = np.expm1(np.where(big, 0.0, losses)) / rate
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.where(ratio > -1.0, np.log1p(np.maximum(ratio, -1.0)), -np.inf)
        large = losses - np.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.abs(losses)))
    return np.asarray(np.where(big, large, small))


# Losses that are atoms: listed, with masses under P and under Q.


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
        """The distribution of one pair."""
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
        """Many distributions with equal numbers of atoms, as one object."""
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


# Losses known only through an upper curve.


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePLD(PrivacyLossDistribution):
    """Upper values of h(e^l) at all real l, vectorised and rounded up."""

    values: Callable[[Floats], Floats]
    reverse: Callable[[Floats], Floats] | None = None
    """The same for the swapped pair, if it is known better than through 1 - t + t h(1/t)."""

    @staticmethod
    def two_sided(upper: Callable[[Floats], Floats]) -> CurvePLD:
        """From delta(epsilon >= 0) in both directions: 1 - t + t h(1/t) below t = 1."""

        def values(losses: Floats) -> Floats:
            bound = np.minimum(upper(np.abs(losses)), 1.0)
            below = -np.expm1(np.minimum(losses, 0.0)) + np.exp(np.minimum(losses, 0.0)) * bound
            return np.asarray(np.minimum(np.where(losses >= 0, bound, below) * (1 + 8 * UNIT), 1.0))

        return CurvePLD(values=values, reverse=values)

    def swapped(self) -> CurvePLD:
        inner = self.values

        def values(losses: Floats) -> Floats:
            t = np.exp(np.minimum(losses, 700.0))
            # Beyond e^700 the identity has no digits left: the value at that point bounds it.
            found = 1 - t + t * inner(-np.minimum(losses, 700.0)) + 16 * UNIT * t
            return np.asarray(np.clip(found, 0.0, 1.0))

        return CurvePLD(values=values if self.reverse is None else self.reverse, reverse=inner)

    def sampled(self, rate: Column) -> CurvePLD:
        inner, back = self.values, self.reverse

        def values(losses: Floats) -> Floats:
            base = unsampled_loss(losses, rate)
            inside = np.isfinite(base)
            # The argument is rounded; h is 1-Lipschitz in t, so a few units of t cover it.
            found = rate * inner(np.where(inside, base, 0.0)) + 32 * UNIT * np.exp(np.minimum(losses, 0.0))
            found = np.where(losses > 0, rate * inner(np.where(inside, base * (1 - 32 * UNIT), 0.0)), found)
            outside = -np.expm1(np.minimum(losses, 0.0)) + 8 * UNIT
            return np.asarray(np.minimum(np.where(inside, found, outside), 1.0))

        def reverse(losses: Floats) -> Floats:
            """(1 - (1-q) t) h'(q t/(1 - (1-q) t)), h' the curve of the swapped pair that is sampled; 0 from
            t = 1/(1-q) on. The value rises with the rest 1 - (1-q) t at equal t, which is rounded up."""
            assert back is not None
            moved = (1 - rate) * np.expm1(np.minimum(losses, 40.0))
            rest = rate - moved + 8 * UNIT * (rate + np.abs(moved))
            inside = (rest > 0) & (losses < 40.0)
            safe = np.where(inside, rest, 1.0)
            base = losses + np.log(rate) - np.log(safe)
            base = base - 32 * UNIT * (1 + np.abs(losses) + np.abs(np.log(rate)) + np.abs(np.log(safe)))
            found = safe * back(np.where(inside, base, 0.0)) * (1 + 8 * UNIT)
            return np.asarray(np.where(inside, np.minimum(found, 1.0), 0.0))

        return CurvePLD(values=values, reverse=None if back is None else reverse)

    def extent(self, right: float, left: float) -> tuple[float, float]:
        scales = np.exp2(np.arange(-60.0, 24.0, 0.125))

        def reach(values: Floats, tail: float) -> float:
            over = np.flatnonzero(values <= max(tail, 1e-290))
            return float(scales[over[0]]) if len(over) else float(scales[-1])

        above = self.values(scales)
        # P(L < -l) <= e^-l H_l(Q||P); where that is not known, about as small as the curve on this side.
        below = above if self.reverse is None else self.reverse(scales) * np.exp(-np.minimum(scales, 700.0))
        return max(-reach(below, left), -700.0), reach(above, right)

    known_from_below = False

    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        losses = np.arange(first, last + 1, dtype=np.float64) * step
        masses, infinite = chord_masses(losses, self.values(losses))
        return Gridded(
            start=first,
            masses=masses[None, :],
            infinite_high=np.array([infinite]),
            infinite_low=np.zeros(1),
            slack=4 * UNIT * (abs(first) + abs(last)) * step,
            kappa=np.full((1, len(losses) - 1), np.inf),
            cell_masses=np.ones((1, len(losses) - 1)),
            bottom=np.zeros(1),
        )

    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        return np.zeros_like(epsilons), self.values(epsilons)

    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        masses = np.maximum(chord_masses(edges, self.values(edges))[0], 1e-300)
        return edges, masses / masses.sum()


# Losses known by their four tails: P(L>l), P(L<=l), Q(L>l), Q(L<=l).


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Rows: P(L>l), P(L<=l), Q(L>l), Q(L<=l), each (pairs, points); absolute errors of each; slack: the largest
    distance of the evaluated points from the requested ones (the same for all four rows).
    """

    values: Floats
    errors: Floats
    slack: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCells:
    """P- and Q-masses of the cells between rising edges, with absolute errors."""

    p: Floats
    q: Floats
    p_error: Floats
    q_error: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPLD(PrivacyLossDistribution):
    """A distribution without mass at infinity, given by its four tails as vectorised functions of (1, points)."""

    tails: Callable[[Floats], Tails]
    bounds: tuple[float, float] = (-np.inf, np.inf)
    closed_cells: Callable[[Floats], LossCells] | None = None
    """Masses of the cells between rising edges in closed form, where the tails would cancel."""

    def cells(self, edges: Floats) -> LossCells:
        """P- and Q-mass of each cell."""
        return self.tail_cells(edges) if self.closed_cells is None else self.closed_cells(edges)

    def tail_cells(self, edges: Floats) -> LossCells:
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
        return LossCells(p=p, q=q, p_error=p_error, q_error=q_error)

    def swapped(self) -> TailPLD:
        inner = self.tails
        closed = self.closed_cells

        def cells(edges: Floats) -> LossCells:
            assert closed is not None
            back = closed(-edges[:, ::-1])
            return LossCells(
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

        def cells(edges: Floats) -> LossCells:
            assert closed is not None
            got = closed(unsampled_loss(edges, rate))
            p = (1 - rate) * got.q + rate * got.p
            error = (1 - rate) * got.q_error + rate * got.p_error + 4 * UNIT * p
            return LossCells(p=p, q=got.q, p_error=error, q_error=got.q_error)

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

        def cells(edges: Floats) -> LossCells:
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
                """The cells below 0, mirrored from `other`, beside those above 0; a cell around 0 has parts of both."""
                shape = len(one), len(row) - 1
                total = np.zeros(shape)
                # Where all edges lie on one side of 0, the cell next to it is not asked for.
                right = one[:, : len(above) - 1][:, -shape[1] :]
                left = other[:, : len(below) - 1][:, -shape[1] :]
                total[:, shape[1] - right.shape[1] :] += right
                total[:, : left.shape[1]] += left[:, ::-1]
                return total

            return LossCells(
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


# The losses of mechanisms that a public coin chooses: each member's distribution, by its weight.

_UP, _DOWN = 1 + 8 * UNIT, 1 - 8 * UNIT
_RESOLVED = 1e-6
"""A member's mass in a cell whose relative excess is larger counts above and not below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedPLD(PrivacyLossDistribution):
    """Distributions of equally many pairs each, and their weights as columns with errors of a few units."""

    laws: tuple[PrivacyLossDistribution, ...]
    weights: tuple[Floats, ...]

    @property
    def known_from_below(self) -> bool:  # type: ignore[override]
        return all(law.known_from_below for law in self.laws)

    def swapped(self) -> MixedPLD:
        return MixedPLD(laws=tuple(law.swapped() for law in self.laws), weights=self.weights)

    def sampled(self, rate: Column) -> MixedPLD:
        return MixedPLD(laws=tuple(law.sampled(rate) for law in self.laws), weights=self.weights)

    def mirrored(self) -> MixedPLD:
        return MixedPLD(laws=tuple(law.mirrored() for law in self.laws), weights=self.weights)

    def extent(self, right: float, left: float) -> tuple[float, float]:
        ends = [law.extent(right, left) for law in self.laws]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        parts = [law.on_grid(step, first, last) for law in self.laws]
        start = min(part.start for part in parts)
        nodes = max(part.start + part.masses.shape[1] for part in parts) - start
        cells = max(part.start + part.cell_masses.shape[1] for part in parts) - start

        def placed(part: Gridded, values: Floats, width: int) -> Floats:
            out = np.zeros((values.shape[0], width))
            at = part.start - start
            out[:, at : at + values.shape[1]] = values
            return out

        def added(values: list[Floats], factor: float) -> Floats:
            return np.asarray(sum(w * factor * v for w, v in zip(self.weights, values, strict=True)))

        def rows(values: list[Floats], factor: float) -> Floats:
            return added([value[:, None] for value in values], factor)[:, 0]

        # Given the member, the gridded ratio is the true one times a factor of mean at most 1 + kappa: a member without
        # mass in a cell must not hide the others'.
        masses = [placed(p, p.cell_masses, cells) for p in parts]
        kappas = [placed(p, np.broadcast_to(p.kappa, p.cell_masses.shape), cells) for p in parts]
        coarse = [kappa > _RESOLVED for kappa in kappas]
        resolved = [np.where(over, 0.0, kappa) for kappa, over in zip(kappas, coarse, strict=True)]
        hidden = [
            np.where(over, mass, placed(p, np.broadcast_to(p.hidden, p.cell_masses.shape), cells))
            for p, mass, over in zip(parts, masses, coarse, strict=True)
        ]
        return Gridded(
            start=start,
            masses=added([placed(p, p.masses, nodes) for p in parts], _UP),
            infinite_high=rows([p.infinite_high for p in parts], _UP),
            infinite_low=rows([p.infinite_low for p in parts], _DOWN),
            slack=max(p.slack for p in parts),
            kappa=np.maximum.reduce(resolved) + 32 * UNIT,
            cell_masses=added(masses, _UP),
            bottom=rows([p.bottom for p in parts], _UP),
            hidden=added(hidden, _UP),
        )

    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        low, high = np.zeros_like(epsilons), np.zeros_like(epsilons)
        for law, weight in zip(self.laws, self.weights, strict=True):
            below, above = law.ends(epsilons, t)
            low = low + weight[0] * _DOWN * np.maximum(below, 0.0)
            high = high + weight[0] * _UP * np.clip(above, 0.0, 1.0)
        return low, high

    def _between(self, edges: Floats) -> tuple[Floats, Floats]:
        found = [law._between(edges) for law in self.laws]
        losses = np.concatenate([losses for losses, _ in found])
        masses = np.concatenate([w[0] * m for (_, m), w in zip(found, self.weights, strict=True)])
        order = np.argsort(losses, kind="stable")
        return losses[order], masses[order]
