"""Empirical Bayes: a prior of the cells' counts fitted to the noisy ones, and each cell's posterior (free of charge).

The prior is a mixture of point masses at 0 and on a grid of counts, fitted by maximum likelihood (EM). Cells below
the release's floor enter by their number, with the chance of being below it; cells so far above 0 that no noise
explains them keep their noisy value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.mechanisms.sparse_choices import SparseTable, _quiet_level
from tacit.mechanisms.sparse_risk import Tails, tails

if TYPE_CHECKING:
    from tacit.mechanisms.sparse import SparseReleased

__all__ = ["FittedPrior", "fit", "shrunk"]

ROUNDS = 400
POINTS_A_SCALE = 6
TOLERANCE = 1e-3
UNSEEN_SCALES = 4
PSEUDO_CELLS = 64.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedPrior:
    """Point masses `weights` at `counts`, and `far` beyond them all; `cells` cells in total."""

    distribution: Tails
    cells: int
    counts: Floats
    weights: Floats
    far: float
    quiet: int

    def posterior(self, noisy: Any) -> Floats:
        """The weights of the counts given each noisy value: one row each."""
        likely = self.distribution.probability(
            np.asarray(noisy, dtype=np.float64)[:, None] - self.counts[None, :]
        )
        joint = likely * self.weights
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(joint, total, where=total > 0, out=np.zeros_like(joint)))

    def threshold_risks(self, thresholds: npt.NDArray[np.int64]) -> Floats:
        """The expected sum of absolute errors of each threshold under the prior (far cells err by E|Z| under all)."""
        risk = self.distribution.risk(thresholds[:, None], self.counts[None, :])
        return np.asarray(self.cells * (risk @ self.weights))


def fit(released: SparseReleased) -> FittedPrior:
    """The prior that makes the released values, and the number of cells that were not, most likely."""
    mechanism = released.mechanism
    law, floor = tails(mechanism.noise), mechanism.threshold
    quiet = max(_quiet_level(law, mechanism.cells), floor + 1)
    step = max(1, int(law.scale / POINTS_A_SCALE))
    # Counts so small that they are hardly ever above the floor look like 0 and are left to it.
    lowest = max(step, int(floor - UNSEEN_SCALES * law.scale))
    counts = np.append(0.0, np.arange(lowest, quiet + int(20 * law.scale) + step, step).astype(np.float64))
    # Values are gathered in bins of one grid step; the bin's middle stands for them.
    near = released.values[np.asarray(released.values <= quiet, dtype=np.bool_)].astype(np.float64)
    places, times = np.unique(np.floor((near - floor - 1) / step), return_counts=True)
    middles = floor + 1 + places * step + (step - 1) / 2
    likely = law.probability(middles[:, None] - counts[None, :])
    low = 1 - law.upper(floor + 1 - counts)
    high = law.upper(quiet + 1 - counts)
    rows = np.vstack([likely, low[None, :], high[None, :]])
    # Binned likelihoods are per value, the two tails per cell: the scale of a row does not matter to EM.
    rows = np.hstack([rows, np.append(np.zeros(rows.shape[0] - 1), 1.0)[:, None]])
    distant = released.values.size - near.size
    seen = np.append(times.astype(np.float64), [mechanism.cells - released.values.size, distant])
    # As if this many more empty cells had been seen: in a small table a few large draws are then not a prior.
    seen = seen + PSEUDO_CELLS * np.append(rows[:-2, 0] * step, [low[0], high[0]])
    present = seen > 0
    rows, seen = rows[present], seen[present]
    share = seen / seen.sum()
    others = min(0.1, (released.values.size + 1) / mechanism.cells)
    weights = np.full(rows.shape[1], others / (rows.shape[1] - 1))
    weights[0] = 1 - others
    for _ in range(ROUNDS):
        mixed = np.maximum(rows @ weights, 1e-300)
        new = weights * (rows.T @ (share / mixed))
        moved = float(np.abs(new - weights).sum()) * mechanism.cells
        weights = new
        if moved < TOLERANCE:
            break
    weights = weights / weights.sum()
    return FittedPrior(
        distribution=law,
        cells=mechanism.cells,
        counts=counts,
        weights=weights[:-1],
        far=float(weights[-1]),
        quiet=quiet,
    )


def shrunk(released: SparseReleased, loss: Literal["absolute", "squared"] = "absolute") -> SparseTable:
    """The posterior median of each released cell, which has the least expected absolute error; or the mean."""
    if loss not in ("absolute", "squared"):
        raise InvalidParameter(parameter="loss", value=loss, must="be absolute or squared")
    prior = fit(released)
    near = np.asarray(released.values <= prior.quiet, dtype=np.bool_)
    noisy, where = np.unique(released.values[near].astype(np.float64), return_inverse=True)
    posterior = prior.posterior(noisy)
    values: npt.NDArray[Any] = released.values.copy()
    if loss == "squared":
        estimates: npt.NDArray[Any] = posterior @ prior.counts
        values = values.astype(np.float64)
    else:
        middle = np.argmax(np.cumsum(posterior, axis=1) >= 0.5, axis=1)
        estimates = prior.counts[middle].astype(np.int64)
    values[near] = estimates[where.ravel()]
    keep = np.asarray(values > 0, dtype=np.bool_)
    return SparseTable(
        keys=released.keys[keep],
        values=values[keep],
        choice="posterior median" if loss == "absolute" else "posterior mean",
        threshold=released.mechanism.threshold,
        publishable=released.publishable,
        details={"share_of_empty_cells": float(prior.weights[0])},
    )
