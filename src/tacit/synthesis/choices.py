"""A free bound on margins that were never measured, from the choices of a synthesis.

Round t chooses margin s among the candidates that fit, by the score ||t_c - M_c||_1 - penalty_c, and measures it. The
exponential mechanism seldom passes over a candidate with a much larger score. So every candidate c that fitted is at
most as far from the drawn rows M of the round as

    ||t_c - M_c||_1  <=  D - penalty_s + ln(2 T (m - 1) / miss) / rate + penalty_c,

with D an upper bound of ||t_s - M_s||_1 by the measurement, T rounds and m candidates. Adding ||M_c - S_c||_1, a public
number, gives a bound for the finished rows S (theorem `synthesis-choices`). The bound is about the rows before the
round. After the fit the chosen margin is near, and carries no information about the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Integers
from tacit.exact.data_classes import dataclass
from tacit.sources.margins import counts_of
from tacit.synthesis.schedule import Schedule
from tacit.synthesis.trees import Margin, cells_of

PENALTY = math.sqrt(2 / math.pi) / 2
"""Half of E |noise| of a cell over its standard deviation; half did better than the whole on Adult and two other
tables.
"""
WINDOW = 10
"""A bound uses the best of this many rounds: the last one in which its margin fitted, and those before it."""
USUAL_MISS = 0.05
"""The rounds are compared at this miss; any rule that looks at released numbers alone is allowed."""
UP = 1 + 1e-9
"""Covers the rounding of the few floats of a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """||y - M||_1 of the chosen margin, by rounds; and by candidates a round (-1: none) and ||M_c - S_c||_1."""

    distances: Integers
    rounds: Integers
    drifts: Integers


@dataclass(slots=True, kw_only=True)
class ChoiceLog:
    """The drawn rows of each round, the fitting candidates, and the distance of its measurement; all public."""

    sizes: tuple[int, ...]
    drawn: list[npt.NDArray[Any]] = field(default_factory=list)
    allowed: list[frozenset[Margin]] = field(default_factory=list)
    chosen: list[Margin] = field(default_factory=list)
    distances: list[int] = field(default_factory=list)

    def add(
        self,
        rows: npt.NDArray[Any],
        allowed: Sequence[Margin],
        chosen: Margin,
        noisy: Integers,
        drawn: Integers,
    ) -> None:
        """One round: rows of the model, the fitting candidates, and the chosen and measured one."""
        self.drawn.append(rows.astype(np.min_scalar_type(max(self.sizes))))
        self.allowed.append(frozenset(allowed))
        self.chosen.append(chosen)
        self.distances.append(int(np.abs(noisy - drawn).sum()))

    def settled(
        self,
        candidates: Sequence[Margin],
        finished: Mapping[Margin, Integers],
        schedule: Schedule,
        *,
        total: int,
    ) -> Choices:
        """The round of each candidate's bound, and the distance of that round's rows from the finished ones."""
        excess = [
            largest_excess(d, c, self.sizes, schedule, miss=USUAL_MISS)
            for d, c in zip(self.distances, self.chosen, strict=True)
        ]
        rounds = [self._round(c, excess) for c in candidates]
        drifts = [0] * len(rounds)
        for t in sorted(set(rounds) - {-1}):
            places = [k for k, r in enumerate(rounds) if r == t]
            held = scaled_margins(self.drawn[t], self.sizes, [candidates[k] for k in places], total)
            for k in places:
                drifts[k] = int(np.abs(held[candidates[k]] - finished[candidates[k]]).sum())
        return Choices(
            distances=np.array(self.distances, dtype=np.int64),
            rounds=np.array(rounds, dtype=np.int64),
            drifts=np.array(drifts, dtype=np.int64),
        )

    def _round(self, candidate: Margin, excess: Sequence[float]) -> int:
        """The round with the least excess among the last ones in which the candidate fitted; -1 if there is
        none.
        """
        last = max((t for t, some in enumerate(self.allowed) if candidate in some), default=-1)
        near = [t for t in range(max(0, last - WINDOW + 1), last + 1) if candidate in self.allowed[t]]
        return min(near, key=lambda t: excess[t], default=-1)


def scaled_margins(
    rows: npt.NDArray[Any], sizes: tuple[int, ...], margins: Sequence[Margin], total: int
) -> dict[Margin, Integers]:
    """Counts of rows by margin, as whole numbers that stand for `total` rows."""
    columns = [rows[:, i] for i in range(len(sizes))]
    found = counts_of(columns, sizes, margins)
    if len(rows) == total:
        return found
    scale = total / max(len(rows), 1)
    return {m: np.rint(c * scale).astype(np.int64) for m, c in found.items()}


def choice_bounds(
    choices: Choices,
    chosen: Sequence[Margin],
    candidates: Sequence[Margin],
    sizes: Sequence[int],
    schedule: Schedule,
    *,
    miss: float,
) -> dict[Margin, float]:
    """Upper bounds of ||t_c - S_c||_1 of the finished rows, which all hold except with probability `miss`."""
    excess = [
        largest_excess(int(d), c, sizes, schedule, miss=miss)
        for d, c in zip(choices.distances, chosen, strict=True)
    ]
    passed = passed_over(len(candidates), schedule, miss=miss)
    return {
        c: UP * max(0.0, excess[t] + passed + penalty_of(cells_of(c, sizes), schedule)) + int(drift)
        for c, t, drift in zip(candidates, choices.rounds.tolist(), choices.drifts, strict=True)
        if t >= 0
    }


def passed_over(candidates: int, schedule: Schedule, *, miss: float) -> float:
    """The largest excess of a score over the chosen one, in all rounds at once except with probability miss / 2."""
    if candidates < 2:
        return 0.0
    return math.log(2 * schedule.rounds * (candidates - 1) / miss) / float(schedule.choosing.rate)


def largest_excess(
    distance: int, chosen: Margin, sizes: Sequence[int], schedule: Schedule, *, miss: float
) -> float:
    """An upper bound of the chosen margin's score, for all rounds at once, except with probability miss / 2."""
    cells = cells_of(chosen, sizes)
    std = float(schedule.measuring.noise_std)
    far = largest_distance(distance, cells, std, miss=miss / (2 * schedule.rounds))
    return far - penalty_of(cells, schedule)


def largest_distance(noisy: int, cells: int, noise_std: float, *, miss: float) -> float:
    """An upper bound of ||d||_1 from ||d + noise||_1, rounded normal noise on each cell, but with probability `miss`.

    With h(x) = E |x + N(0, s^2)|, convex and even, the mean of the noisy distance is at least cells h(||d||_1 / cells),
    less half a unit a cell for the rounding; the noisy distance falls below its mean by s sqrt(2 cells ln(1/miss)) with
    at most this probability. Solved for ||d||_1.
    """
    goal = (noisy + noise_std * math.sqrt(2 * cells * math.log(1 / miss)) + cells / 2) / cells
    low, high = 0.0, goal  # h(x) >= x
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if folded_mean(middle, noise_std) <= goal else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return high * cells


def folded_mean(x: float, noise_std: float) -> float:
    """E |x + N(0, noise_std^2)|."""
    z = x / noise_std
    return x * math.erf(z / math.sqrt(2)) + noise_std * math.sqrt(2 / math.pi) * math.exp(-z * z / 2)


def penalty_of(cells: int, schedule: Schedule) -> float:
    """Half of the L1 distance that noise alone would add to this many cells; a public number."""
    return PENALTY * float(schedule.measuring.noise_std) * cells
