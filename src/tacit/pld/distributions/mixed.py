"""The losses of mechanisms that a public coin chooses: each member's law, by its weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import UNIT, Column, Floats
from tacit.pld.distributions.base import PrivacyLossDistribution
from tacit.pld.grid import Gridded

__all__ = ["MixedPLD"]

_UP, _DOWN = 1 + 8 * UNIT, 1 - 8 * UNIT
_RESOLVED = 1e-6
"""A member's mass in a cell whose relative excess is larger counts above and not below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedPLD(PrivacyLossDistribution):
    """Laws of equally many pairs each, and their weights as columns, which are right to a few units."""

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
