"""The losses of a mechanism that is chosen by a public coin: each member's law, by its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.pld.arrays import UNIT, Column, FloatArray
from tacit.pld.distributions.base import PrivacyLossDistribution
from tacit.pld.grid import Gridded

__all__ = ["MixedPLD"]

_UP, _DOWN = 1 + 8 * UNIT, 1 - 8 * UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedPLD(PrivacyLossDistribution):
    """Laws of one pair each, and their weights, which are right to a few units."""

    laws: tuple[PrivacyLossDistribution, ...]
    weights: tuple[float, ...]

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

        def placed(part: Gridded, values: FloatArray, width: int) -> FloatArray:
            out = np.zeros((values.shape[0], width))
            at = part.start - start
            out[:, at : at + values.shape[1]] = values
            return out

        def added(values: list[FloatArray], factor: float) -> FloatArray:
            return np.asarray(sum(w * factor * v for w, v in zip(self.weights, values, strict=True)))

        kappas = [placed(p, np.broadcast_to(p.kappa, p.cell_masses.shape), cells) for p in parts]
        return Gridded(
            start=start,
            masses=added([placed(p, p.masses, nodes) for p in parts], _UP),
            infinite_high=added([p.infinite_high for p in parts], _UP),
            infinite_low=added([p.infinite_low for p in parts], _DOWN),
            slack=max(p.slack for p in parts),
            kappa=np.maximum.reduce(kappas) + 32 * UNIT,
            cell_masses=added([placed(p, p.cell_masses, cells) for p in parts], _UP),
            bottom=added([p.bottom for p in parts], _UP),
        )

    def ends(self, epsilons: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = np.zeros_like(epsilons), np.zeros_like(epsilons)
        for law, weight in zip(self.laws, self.weights, strict=True):
            below, above = law.ends(epsilons, t)
            low = low + weight * _DOWN * np.maximum(below, 0.0)
            high = high + weight * _UP * np.clip(above, 0.0, 1.0)
        return low, high

    def _between(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = [law._between(edges) for law in self.laws]
        losses = np.concatenate([losses for losses, _ in found])
        masses = np.concatenate([w * m for (_, m), w in zip(found, self.weights, strict=True)])
        order = np.argsort(losses, kind="stable")
        return losses[order], masses[order]
