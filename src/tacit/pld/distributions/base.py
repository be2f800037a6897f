"""The law of the privacy loss L = ln(dP/dQ) under P and under Q, in floats with error bounds.

`AtomicPLD` lists the atoms; `TailPLD` gives the four tails P(L>l), P(L<=l), Q(L>l), Q(L<=l). Both know
how to swap P and Q and how to mix P into Q (Poisson sampling), so that every pair needs one law only.
A law may stand for many pairs of one kind at once: arrays are (pairs, points), parameters are columns.
Rounding errors of the vectorised functions are bounded by the stated multiples of the unit round-off,
which the tests hold against ball arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from tacit.exact.arrays import Column, Floats
from tacit.pld.grid import Gridded

__all__ = ["PrivacyLossDistribution", "sampled_loss", "unsampled_loss"]


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

        For laws with P(L > 0) + Q(L > 0) <= 1 (`docs/theory/without-replacement-pair.md`).
        """
        raise NotImplementedError

    @abstractmethod
    def extent(self, right: float, left: float) -> tuple[float, float]:
        """Losses (low, high) with about P(L < low) <= left and P(L > high) <= right (not certified)."""

    known_from_below: ClassVar[bool] = True
    """False where only an upper curve is known."""

    @abstractmethod
    def on_grid(self, step: float, first: int, last: int) -> Gridded:
        """On the multiples of `step` from the first-th to the last-th, rounded up: connect-the-dots."""

    @abstractmethod
    def ends(self, epsilons: Floats, t: Floats) -> tuple[Floats, Floats]:
        """Lower and upper values of H_epsilon of the first row, before they are clipped; t = e^epsilon."""

    def coarse(self, right: float, left: float) -> tuple[Floats, Floats]:
        """Losses and P-masses of a coarse version of the first row, fine near 0: only says where to look."""
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
