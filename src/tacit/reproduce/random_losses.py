"""L1 losses of histograms: plain Laplace noise, random differential privacy, and the plain-DP threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.exact.arrays import Floats
from tacit.mechanisms import L1, Laplace, hall_threshold
from tacit.noise import SeededSource
from tacit.random_data import RandomHistogram
from tacit.statistics import nearest_histogram

__all__ = ["METHODS", "PROJECTIONS", "Setting", "losses"]

METHODS = ("laplace", "random", "threshold")
METHOD_NAMES = {
    "laplace": "Laplace noise on every cell (DP)",
    "random": "exact empty cells (random DP)",
    "threshold": "threshold (2/epsilon) ln k (DP)",
}


def _clip(noisy: Floats, rows: int) -> Floats:
    """Negatives to 0, then scaled to the known total."""
    kept = np.maximum(noisy, 0.0)
    total = kept.sum()
    return kept * (rows / total) if total else np.full(noisy.shape, rows / noisy.size)


def _simplex(noisy: Floats, rows: int) -> Floats:
    """The nearest point in L2 with no negative entry and the known total."""
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - rows) / np.arange(1, noisy.size + 1)
    lift = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(noisy - lift, 0.0))


def _smallest_first(noisy: Floats, rows: int) -> Floats:
    """A nearest point in L1 too: what is too much is taken from the smallest cells first, what lacks goes to one."""
    kept = np.maximum(noisy, 0.0)
    order = np.argsort(kept, kind="stable")
    excess = float(kept.sum()) - rows
    if excess <= 0:
        kept[order[-1]] -= excess
        return np.asarray(kept)
    before = np.cumsum(kept[order]) - kept[order]
    kept[order] -= np.clip(excess - before, 0.0, kept[order])
    return np.asarray(kept)


PROJECTIONS: dict[str, Callable[[Floats, int], Floats]] = {
    "none": lambda noisy, rows: noisy,
    "clip and renormalise": _clip,
    "l2 (simplex)": _simplex,
    "l1, the paper's (2)": lambda noisy, rows: nearest_histogram(
        noisy.astype(np.int64), total=rows, norm="l1"
    ).astype(np.float64),
    "l1, the paper's (2), smallest cells first": _smallest_first,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A histogram, and the numbers of a release."""

    counts: tuple[int, ...]
    epsilon: float
    gamma: float
    trials: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.counts)

    @property
    def mechanism(self) -> RandomHistogram:
        """The release under random differential privacy."""
        return RandomHistogram(rows=self.rows, cells=len(self.counts), epsilon=self.epsilon, gamma=self.gamma)


def released(setting: Setting, seed: int) -> dict[str, Floats]:
    """One release by each method, in counts."""
    noise = Laplace.for_epsilon(epsilon=setting.epsilon, sensitivity=L1(2))
    plain = np.asarray(noise.release(list(setting.counts), source=SeededSource(seed=2 * seed)).values)
    random = setting.mechanism.release(list(setting.counts), source=SeededSource(seed=2 * seed + 1)).counts
    level = hall_threshold(noise, cells=len(setting.counts))
    return {
        "laplace": plain.astype(np.float64),
        "random": np.asarray(random).astype(np.float64),
        "threshold": np.where(plain > level, plain, 0).astype(np.float64),
    }


def losses(setting: Setting) -> dict[tuple[str, str], Floats]:
    """The L1 loss of the proportions, for each method and projection and trial."""
    true = np.asarray(setting.counts, dtype=np.float64)
    found: dict[tuple[str, str], list[float]] = {(m, p): [] for m in METHODS for p in PROJECTIONS}
    for trial in range(setting.trials):
        for method, noisy in released(setting, trial).items():
            for name, project in PROJECTIONS.items():
                made = project(noisy, setting.rows)
                found[method, name].append(float(np.abs(made - true).sum()) / setting.rows)
    return {key: np.array(values) for key, values in found.items()}
