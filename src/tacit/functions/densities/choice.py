"""Private choice of a bandwidth or an order among candidates, by least-squares cross-validation.

A candidate's score is minus an estimate of its integrated squared error: cross-validation on all pairs of rows, plus
what the noise of the release to come costs, which is public. The choice is one event and the release another: their
prices add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import members, settle
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.functions.bases.families import BITS, BLOCK
from tacit.functions.bases.rows import as_rows, cells_of
from tacit.functions.bases.series import SeriesBasis
from tacit.functions.densities.kde import GaussianKDE
from tacit.functions.densities.plan import DensityPlan
from tacit.guarantees import Bound, Neighbours
from tacit.mechanisms import PermuteAndFlip, Score
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source

__all__ = ["ChosenDensity", "DensityChoice"]

SPACING = Fraction(1, 1 << 40)
Candidate = GaussianKDE | SeriesBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDensity:
    """The plan with the chosen family; `publishable` is False for a seeded source."""

    plan: DensityPlan
    index: int
    publishable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityChoice:
    """One family of a public list, by noisy cross-validation; the plan says size and noise of the release to come.

    Guarantee: Pure(epsilon). The score is a mean of q(x_i, x_j) over all pairs, so that one replaced row moves it by at
    most 2 (sup q - inf q) / size and a little more; permute-and-flip sized by the largest such move of the candidates.
    Assumption: one row replaced, of `size` >= 2 rows. Theorem `density-choice`. Source: Hall 2012, 1.2.3, for the
    choice; Rudemo 1982, Bowman 1984 for the score.
    """

    plan: DensityPlan
    candidates: Sequence[Candidate]
    epsilon: Exact

    def __post_init__(self) -> None:
        if not isinstance(self.plan, DensityPlan):
            raise InvalidParameter(parameter="plan", value=type(self.plan).__name__, must="be a DensityPlan")
        if self.plan.neighbours is not Neighbours.REPLACE_ONE:
            raise NoLaw(
                operation="a private choice of a bandwidth under add-or-remove neighbours",
                reason="the score is a mean over pairs of rows, and how many rows there are is not public then",
                hint="choose under replace-one neighbours, or take public_bandwidth(...)",
            )
        if self.plan.rows != 1:
            raise NoLaw(
                operation="a private choice of a bandwidth for units of several rows",
                reason="the score is a mean over pairs of rows, and how many rows there are is not public then",
                hint="take public_bandwidth(...)",
            )
        if self.plan.size < 2:
            raise InvalidParameter(
                parameter="plan", value=f"{self.plan.size} row", must="have two rows or more"
            )
        given = members("candidates", self.candidates)
        if not given:
            raise EmptyComposition(what="the list of candidates", hint="name at least one family")
        for one in given:
            if not isinstance(one, GaussianKDE | SeriesBasis):
                raise InvalidParameter(
                    parameter="candidates",
                    value=type(one).__name__,
                    must="hold GaussianKDE or orthonormal bases",
                )
            if one.box != self.plan.family.box:
                raise InvalidParameter(
                    parameter="candidates", value=one.box, must="have the domain of the plan's family"
                )
        epsilon_parameter(self.epsilon)
        settle(self, candidates=given, epsilon=self.epsilon)

    def _plans(self) -> list[DensityPlan]:
        return [replace(self.plan, family=one) for one in self.candidates]

    @property
    def score_sensitivity(self) -> float:
        """How far one row, replaced, can move any candidate's score: theorem `density-choice`."""
        moves = [_move(one, self.plan.size) for one in self.candidates]
        return up(Fraction(max(moves)) * Fraction(1 + 2**20, 2**20) + 4 * SPACING)

    @property
    def mechanism(self) -> PermuteAndFlip:
        """The noisy choice."""
        return PermuteAndFlip(epsilon=self.epsilon, sensitivity=Score(Fraction(self.score_sensitivity)))

    @property
    def bound(self) -> Bound:
        """Pure epsilon, for the choice alone."""
        return self.mechanism.bound

    @property
    def event(self) -> Event:
        """The choice alone; the release is an event of its own."""
        return self.mechanism.event

    def expected_error(self) -> float:
        """A bound on how much larger the chosen candidate's score error is than the best one's, on average."""
        return self.mechanism.expected_error(candidates=len(self.candidates))

    def scores(self, rows: Any) -> list[Fraction]:
        """The true scores, on the grid: never to be shown."""
        table = as_rows(rows, self.plan.family.dimension)
        if table.shape[0] != self.plan.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.plan.size}, as planned"
            )
        found = []
        for one, plan in zip(self.candidates, self._plans(), strict=True):
            score = _cross_validation(one, table, plan.size, plan.outside)
            cost = plan.expected_noise_error()
            found.append(-round(Fraction(score + cost) / SPACING) * SPACING)
        return found

    def choose(self, rows: Any, *, source: Source | None = None) -> ChosenDensity:
        """The chosen family's plan; run its release next."""
        chosen = self.mechanism.choose(self.scores(rows), source=source)
        return ChosenDensity(
            plan=self._plans()[chosen.index], index=chosen.index, publishable=chosen.publishable
        )

    @property
    def words(self) -> dict[str, Any]:
        """The choice in plain values, for a certificate."""
        return {
            "candidates": [one.describe() for one in self.candidates],
            "score": "least-squares cross-validation, plus the cost of the noise",
            "score_sensitivity": self.score_sensitivity,
            **self.mechanism.noise_distribution,
        }


def _move(family: Candidate, size: int) -> float:
    """2 (sup q - inf q) / size + sup B2(x, x) / size^2, what rounding phi to its grid adds to q counted."""
    low, high = family.pair_range(size)
    length = math.sqrt(family._ends()[0])
    off = math.sqrt(family.coefficients) * 2.0 ** (1 - BITS)
    widened = 3 * family.height * (2 * length * off + off * off)
    inexact = 2.0**-40 * (family.square_top() + 4 * family.height * length**2)
    return 2 * (high - low + 2 * widened) / size + (family.square_top() + widened) / size**2 + 2 * inexact


def _cross_validation(family: Candidate, rows: Floats, size: int, outside: str) -> float:
    """The integral of f_D^2 minus twice the mean of f_D at each row, made without that row."""
    sums = family.sums(rows, outside=outside).astype(np.float64) * 2.0**-BITS
    where, counts = cells_of(rows, family.box, family.cells, outside)
    step = max(1, BLOCK // family.coefficients)
    own = math.fsum(
        float((family.features(where[s : s + step]) ** 2).sum(axis=1) @ counts[s : s + step])
        for s in range(0, where.shape[0], step)
    )
    square = math.fsum((family.square_weights() * sums**2).tolist()) / size**2
    pairs = family.height * (math.fsum((sums**2).tolist()) - own)
    return square - 2 * pairs / (size * (size - 1))
