"""Correlated Gaussian noise on running totals: matrix factorisation, with schedules of who takes part when.

The steps' sums x_1..x_n (clipped gradients, weekly counts) are turned into C x, Gaussian noise is added, and every
running total is read from the result: A = B C, A the triangle of ones. The release is C x + noise. It is a Gaussian
release, and its sensitivity is the distance that one unit moves C x. A unit takes part at most `participations` times,
any two at least `separation` steps apart, and moves each x_t by a norm of at most 1. Source: Denisov, McMahan, Rush,
Smith, Thakurta 2022; Kalinin, Lampert 2024; Kairouz et al. 2021 (trees).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from tacit.accounting.events import GaussianEvent
from tacit.errors import InvalidParameter, NoLaw, UnknownName
from tacit.exact.checks import check_fields, how_many, listed, positive, refuse_if, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, down, exact_parameter, upper

NAMED = ("banded_square_root", "normalised_square_root", "square_root", "tree")
STRATEGIES = (*NAMED, "toeplitz")
MOST_STEPS = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedNoise:
    """A strategy for `steps` running totals, and the number of times that a unit takes part.

    `square_root`: C is the square root of the triangle of ones, Toeplitz with c_k = C(2k, k)/4^k;
    `banded_square_root`: its first `bands` diagonals; `normalised_square_root`: its columns scaled to norm 1;
    `tree`: the sums over all nodes of a binary tree; `toeplitz`: diagonals of one's own, `coefficients` c_0 >= c_1 >=
    ... >= 0 with 0 beyond them, such as those of a factorisation that was optimised elsewhere.
    """

    strategy: str
    steps: int
    participations: int = 1
    separation: int = 1
    bands: int | None = None
    coefficients: Sequence[Exact] | None = None

    def __post_init__(self) -> None:
        if text("strategy", self.strategy) not in STRATEGIES:
            raise UnknownName(what="strategy", name=self.strategy, known=STRATEGIES)
        check_fields(self, steps=how_many, participations=how_many, separation=how_many)
        refuse_if(self.steps > MOST_STEPS, "steps", self.steps, f"be at most {MOST_STEPS}")
        banded = self.strategy == "banded_square_root"
        if banded != (self.bands is not None):
            raise InvalidParameter(
                parameter="bands", value=self.bands, must="be given for banded_square_root, and only for it"
            )
        if banded:
            set_fields(self, bands=how_many("bands", self.bands))
        if (self.strategy == "toeplitz") != (self.coefficients is not None):
            raise InvalidParameter(
                parameter="coefficients",
                value=None if self.coefficients is None else "given",
                must="be given for toeplitz, and only for it",
            )
        if self.coefficients is not None:
            set_fields(self, coefficients=_diagonals(self.coefficients, self.steps))
        if self.strategy == "normalised_square_root" and self.times > 1:
            raise NoLaw(
                operation="several participations under the normalised square root",
                reason="the largest sensitivity over schedules is proved for Toeplitz strategies and trees only",
                hint="use square_root or banded_square_root, or the tree",
            )

    @property
    def times(self) -> int:
        """The largest number of participations of a unit, given the distance between its steps."""
        return min(self.participations, -(-self.steps // self.separation))

    @property
    def sensitivity(self) -> float:
        """The largest move of C x by one unit, in the L2 norm, rounded up (theorem `participation-schedules`)."""
        return _sensitivity(
            self.strategy, self.steps, self.times, self.separation, self.bands, self._coefficients
        )

    @property
    def _coefficients(self) -> tuple[Fraction, ...] | None:
        return None if self.coefficients is None else tuple(Fraction(c) for c in self.coefficients)

    def as_event(self, *, noise_multiplier: float) -> GaussianEvent:
        """The release as an event; `noise_multiplier` is noise_std over the largest norm of one contribution."""
        noise = positive("noise_multiplier", noise_multiplier)
        return GaussianEvent(noise_multiplier=down(Fraction(noise) / Fraction(self.sensitivity)))

    @property
    def largest_error(self) -> float:
        """The largest standard deviation of a running total where noise_std is the sensitivity (mu = 1).

        Computed in floats: it is an expectation for people, no part of a promise.
        """
        if self.strategy == "tree":
            nodes = max((t + 1).bit_count() for t in range(self.steps))
            return self.sensitivity * math.sqrt(nodes)
        return _toeplitz_error(self.strategy, self.steps, self.bands, self._coefficients) * self.sensitivity


def _diagonals(given: object, steps: int) -> tuple[Fraction, ...]:
    """The typed diagonals of C, checked: the first is above 0, and each next one is between 0 and the one before."""
    found = tuple(exact_parameter("coefficients", c, positive=False) for c in listed("coefficients", given))
    falling = all(a >= b >= 0 for a, b in pairwise(found))
    if not found or found[0] <= 0 or not falling or len(found) > steps:
        raise InvalidParameter(
            parameter="coefficients",
            value=f"{len(found)} numbers",
            must="be at most one a step, the first above 0, each at least 0 and no larger than the one before",
            hint="only then is the largest sensitivity over schedules known",
        )
    return found


@lru_cache(maxsize=256)
def _sensitivity(
    strategy: str,
    steps: int,
    times: int,
    separation: int,
    bands: int | None,
    coefficients: tuple[Fraction, ...] | None,
) -> float:
    if strategy == "normalised_square_root":
        return 1.0
    if strategy == "tree":
        levels = range((steps - 1).bit_length() + 1)
        squares = sum(times * min(times, -(-(1 << level) // separation)) for level in levels)
        return upper(lambda: ball(squares).sqrt())

    def norm() -> object:
        """Participations at steps 0, b, 2b, ...: the row r gets the sum of c_(r - jb)."""
        c = [ball(1)] if coefficients is None else [ball(x) for x in coefficients]
        for k in range(1, min(steps, bands or steps) if coefficients is None else 0):
            c.append(c[-1] * (2 * k - 1) / (2 * k))
        total = ball(0)
        for row in range(steps):
            entry = ball(0)
            for j in range(min(times, row // separation + 1)):
                if row - j * separation < len(c):
                    entry += c[row - j * separation]
            total += entry * entry
        return total.sqrt()

    return upper(norm)


@lru_cache(maxsize=64)
def _toeplitz_error(
    strategy: str, steps: int, bands: int | None, coefficients: tuple[Fraction, ...] | None
) -> float:
    """The largest row norm of B = A C^-1 (with the columns of C scaled to norm 1, if the strategy is normalised)."""
    import numpy as np

    c = np.zeros(steps)
    known = _float_coefficients(steps) if coefficients is None else list(map(float, coefficients))
    c[: len(known)] = known
    if bands is not None:
        c[bands:] = 0.0
    inverse = np.zeros(steps)
    inverse[0] = 1 / c[0]
    for k in range(1, steps):
        inverse[k] = -float(np.dot(c[1 : k + 1], inverse[k - 1 :: -1][:k])) / c[0]
    b = np.cumsum(inverse)  # without scaling, row r of B is b_r, ..., b_0
    if strategy != "normalised_square_root":
        return float(np.sqrt(np.sum(b * b)))
    norms = np.sqrt(np.cumsum(c * c)[::-1])  # column t of C has the entries c_k, k < n - t
    row, worst = np.zeros(steps), 0.0
    for r in range(steps):  # B = A D C^-1: a running total of the rows of D C^-1
        row[: r + 1] += norms[r] * inverse[r::-1]
        worst = max(worst, float(np.dot(row, row)))
    return math.sqrt(worst)


def _float_coefficients(steps: int) -> list[float]:
    found, last = [], 1.0
    for k in range(steps):
        last = last if k == 0 else last * (2 * k - 1) / (2 * k)
        found.append(last)
    return found
