"""Errors of sparse histograms on tables known by their counts of counts: exact by formula where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.mechanisms import L1, Laplace, SparseHistogram, SparseReleased, SparseTable, hall_threshold
from tacit.mechanisms.sparse_risk import tails
from tacit.noise import SeededSource
from tacit.noise.source import Source

__all__ = ["CHOICES", "Table", "chosen_errors", "exact_errors", "simulated_errors"]

CHOICES = ("false discovery rate", "least estimated risk", "posterior median")
BATCH = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A histogram with its cells in any order: how many cells hold each count."""

    name: str
    cells: int
    counts: Mapping[int, int]

    @property
    def occupied(self) -> int:
        """How many cells are not empty."""
        return sum(self.counts.values())

    @property
    def true(self) -> npt.NDArray[np.int64]:
        """The counts of the occupied cells."""
        return np.repeat(list(self.counts), list(self.counts.values())).astype(np.int64)


def noise_of(epsilon: float) -> Laplace:
    """Replace-one neighbours: L1 sensitivity 2."""
    return Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(2))


def exact_errors(table: Table, epsilon: float) -> dict[str, float]:
    """The expected sum of absolute errors of fixed thresholds; at threshold 0 it is noise with negatives set to 0."""
    noise = noise_of(epsilon)
    law, values = tails(noise), np.array([0, *table.counts])
    times = np.array([table.cells - table.occupied, *table.counts.values()], dtype=np.float64)

    def total(threshold: int) -> float:
        return float(law.risk(threshold, values) @ times)

    hall = hall_threshold(noise, cells=table.cells)
    known = hall_threshold(noise, cells=table.cells, occupied=table.occupied)
    tried = np.unique(np.linspace(0, 2 * hall + 1, 400).astype(int))
    best = min((int(t) for t in tried), key=total)
    return {
        "laplace_and_clip": total(0),
        "hall_threshold": float(hall),
        "hall": total(hall),
        "known_q_threshold": float(known),
        "known_q": total(known),
        "best_threshold": float(best),
        "best_fixed": total(best),
    }


def simulated_errors(table: Table, epsilon: float, trials: int, source: Source) -> tuple[Floats, Floats]:
    """Errors of each trial, of noise with negatives set to 0 and of Hall's threshold, on the same noise."""
    noise = noise_of(epsilon)
    true = np.zeros(table.cells, dtype=np.int64)
    true[: table.occupied] = table.true
    hall = hall_threshold(noise, cells=table.cells)
    clip, sparse = [], []
    rows = max(1, BATCH // table.cells)
    for start in range(0, trials, rows):
        many = np.broadcast_to(true, (min(rows, trials - start), table.cells))
        noisy = noise.release(many, source=source).values
        clip.append(np.abs(np.maximum(noisy, 0) - true).sum(axis=1))
        sparse.append(np.abs(np.where(noisy > hall, noisy, 0) - true).sum(axis=1))
    return np.concatenate(clip).astype(np.float64), np.concatenate(sparse).astype(np.float64)


def error_of(table: SparseTable, true: npt.NDArray[np.int64]) -> float:
    """The sum of absolute errors where the first keys are the occupied cells, and all others are empty."""
    here = np.asarray(table.keys < true.size)
    kept = np.zeros(true.size)
    kept[table.keys[here].astype(np.int64)] = table.values[here]
    return float(np.abs(kept - true).sum() + np.abs(table.values[~here]).sum())


def chosen_errors(table: Table, epsilon: float, trials: int, seed: int) -> dict[str, Floats]:
    """Errors of each trial for the choices that are made after the noise."""
    mechanism = SparseHistogram.with_rule(noise=noise_of(epsilon), domain=table.cells, rule="floor")
    true, source = table.true, SeededSource(seed=seed)
    errors: dict[str, list[float]] = {name: [] for name in CHOICES}
    for _ in range(trials):
        out: SparseReleased = mechanism.release(np.arange(true.size), true, source=source)
        for name, kept in zip(
            CHOICES, (out.by_false_discovery(), out.by_estimated_risk(), out.shrunk()), strict=True
        ):
            errors[name].append(error_of(kept, true))
    return {name: np.array(found) for name, found in errors.items()}
