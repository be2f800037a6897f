"""The risk of a remap of the truncated geometric, and a lower bound for every mechanism: both certified.

For any prior on the counts, sum_y min_r sum_x prior(x) G(x, y) L(x, r) is a lower bound of the Bayes risk of every
epsilon-private mechanism, if L grows outwards (theorem `optimal-count-remap`). So it is a lower bound of the minimax
risk. For any other loss, the same sum for the largest loss below it that grows outwards is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass

# The truncated geometric distribution of a count, and certified sums over it.
#
#     G(x, y) = c_y q^|x-y|,  q = e^-epsilon,  c_y = (1-q)/(1+q) inside 0..n and 1/(1+q) at both ends.
#
# All sums below are of terms of one sign, so that a float sum of m terms is wrong by a factor of at most
# 1 + (m + 1024) 2^-51, powers and weights included. `inflate` and `deflate` apply that factor against us.

CHUNK_ENTRIES = 1 << 21


def inflate(value: float, terms: int) -> float:
    """A float not below the exact sum of non-negative terms of which `value` is the float sum."""
    return value * (1 + (terms + 1024) * 2.0**-51)


def deflate(value: float, terms: int) -> float:
    """A float not above the exact sum."""
    return value * (1 - (terms + 1024) * 2.0**-51)


def settle_down(value: float) -> float:
    """A lower bound of a risk is never negative."""
    return max(value, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricKernel:
    """The distribution of the truncated geometric mechanism with range 0..n, row by row."""

    n: int
    epsilon: float
    weights: Floats = field(init=False, repr=False, compare=False)
    powers: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # tanh keeps every digit of (1-q)/(1+q) for small epsilon; 1/(1+q) needs no such care.
        weights = np.full(self.n + 1, np.tanh(self.epsilon / 2))
        weights[[0, -1]] = 1 / (1 + np.exp(-self.epsilon))
        powers = np.exp(-self.epsilon * np.arange(self.n + 1))
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "powers", powers)

    def decay(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Floats:
        """q^|x-y| for all pairs."""
        return np.asarray(self.powers[np.abs(rows[:, None] - columns)])

    def probabilities(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Floats:
        """G(x, y) for all pairs."""
        return self.decay(rows, columns) * self.weights[columns]

    def chunks(self) -> Iterator[npt.NDArray[np.int64]]:
        """0..n in runs whose blocks of the matrix fit the cache."""
        size = max(1, CHUNK_ENTRIES // (self.n + 1))
        for start in range(0, self.n + 1, size):
            yield np.arange(start, min(start + size, self.n + 1))

    def full(self, rows: npt.NDArray[np.int64]) -> Floats:
        """q^|x-y| for these x and every y (or the reverse): rows of one Toeplitz matrix, copied not computed."""
        band = np.concatenate([self.powers[::-1], self.powers[1:]])
        return np.asarray(np.lib.stride_tricks.sliding_window_view(band, self.n + 1)[self.n - rows])

    def risks(self, expected: Callable[[npt.NDArray[np.int64]], Floats]) -> Floats:
        """sum_y G(x, y) e(x, y) for every x; `expected(rows)` gives e, non-negative, for a run of rows."""
        parts = [(self.full(rows) * expected(rows)) @ self.weights for rows in self.chunks()]
        return np.concatenate(parts)

    def joint(self, prior: Floats) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
        """Runs of outputs y with the weights prior(x) G(x, y): y in rows, x in columns."""
        for outputs in self.chunks():
            yield outputs, self.full(outputs) * prior * self.weights[outputs][:, None]


# Losses on a count: what it costs to say r when the truth is x.

LOSSES = ("absolute", "squared", "zero-one")
# A loss read from a file carries rounding errors; a step back this small, relative to the largest, is one.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """L(x, r) >= 0: a named loss for every range, or a matrix with a row a count and a column an output."""

    name: str
    table: Floats | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.table is None:
            if self.name not in LOSSES:
                raise UnknownName(what="loss", name=self.name, known=LOSSES)
            return
        if self.table.ndim != 2 or self.table.shape[0] < 2 or self.table.shape[1] < 1:
            raise InvalidParameter(
                parameter="loss",
                value=f"array of shape {self.table.shape}",
                must="be a matrix with at least two rows",
                hint="row x, column r: the loss of the answer r when the truth is x",
            )
        if not np.isfinite(self.table).all() or (self.table < 0).any():
            raise InvalidParameter(
                parameter="loss",
                value="a matrix with entries that are negative or not finite",
                must="be finite and at least 0",
                hint="add a constant to each row: it changes no comparison",
            )

    def at(self, rows: Any, outputs: Any) -> Floats:
        """L(x, r) for integer arrays that broadcast."""
        if self.table is not None:
            return np.asarray(self.table[rows, outputs])
        # Both as floats first: they broadcast, and would else be converted once for each pair.
        distance = np.asarray(np.asarray(rows, dtype=np.float64) - np.asarray(outputs, dtype=np.float64))
        np.abs(distance, out=distance)
        if self.name == "absolute":
            return distance
        return np.asarray(distance * distance if self.name == "squared" else distance > 0, dtype=np.float64)

    def between(self, rows: npt.NDArray[np.int64], h: Floats) -> Floats:
        """The expected loss when h is rounded to a neighbouring integer at random, with h as the mean."""
        if self.table is None and self.name == "absolute":
            # No count lies strictly between two neighbours, so that the loss is linear there: |x - h|.
            return self.at(rows[:, None], h)
        low = np.floor(h).astype(np.int64)
        share = h - low
        high = np.minimum(low + 1, self.last if self.table is not None else low + 1)
        column = rows[:, None]
        return np.asarray((1 - share) * self.at(column, low) + share * self.at(column, high))

    @property
    def last(self) -> int:
        """The largest output of a tabled loss."""
        assert self.table is not None
        return int(self.table.shape[1]) - 1

    def matrix(self, n: int) -> Floats:
        """The whole table on 0..n."""
        if self.table is not None:
            return self.table
        x = np.arange(n + 1)
        return self.at(x[:, None], x)

    def fit(self, n: int) -> None:
        """Refuse a table that is for another range."""
        if self.table is not None and self.table.shape[0] != n + 1:
            raise InvalidParameter(
                parameter="loss",
                value=f"array of shape {self.table.shape}",
                must=f"have a row for each of the counts 0..{n}",
            )

    def grows_outwards(self) -> bool:
        """Whether every step of the output away from the truth raises the loss.

        The condition of theorem `optimal-count-remap`; it also asks that the outputs are the counts.
        """
        if self.table is None:
            return True
        count, outputs = self.table.shape
        return count == outputs and bool(
            (self.table - self.minorant()).max(initial=0.0) <= ROUNDING * self.table.max(initial=0.0)
        )

    def minorant(self) -> Floats:
        """The largest table below this one that grows outwards; a lower bound for it is one for this table."""
        assert self.table is not None
        best = self.table.copy()
        for x in range(best.shape[0]):
            best[x, x:] = np.minimum.accumulate(best[x, x:][::-1])[::-1]
            best[x, : x + 1] = np.minimum.accumulate(best[x, : x + 1])
        return best

    def is_convex(self) -> bool:
        """Whether the loss is convex in the output, for every count."""
        if self.table is None:
            return self.name != "zero-one"
        if self.table.shape[1] < 3:
            return True
        bend = np.diff(self.table, n=2, axis=1)
        return bool(bend.min() >= -ROUNDING * self.table.max())

    def is_symmetric(self) -> bool:
        """Whether L(n-x, n-r) = L(x, r)."""
        return self.table is None or bool((self.table == self.table[::-1, ::-1]).all())


def as_loss(loss: str | Loss | Sequence[Sequence[float]] | npt.NDArray[Any]) -> Loss:
    """A loss from its name or from a matrix."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return Loss(name=loss)
    try:
        table = np.array(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            parameter="loss", value=type(loss).__name__, must="be a name or a matrix of numbers"
        ) from None
    return Loss(name="matrix", table=table)


# What the caller typed, checked without loading more than numpy: the command line answers at once.

CRITERIA = ("bayes", "minimax")
LARGEST_EPSILON = 600.0
SMALLEST_EPSILON = 2.0**-1000


def range_parameter(n: object) -> int:
    """The largest count, at least 1."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidParameter(
            parameter="n", value=n, must="be an integer that is at least 1", hint="counts go from 0 to n"
        )
    return int(n)


def epsilon_level(epsilon: object) -> float:
    """A finite epsilon above 0, as a float."""
    number = isinstance(epsilon, int | float | Fraction | np.integer | np.floating)
    if isinstance(epsilon, bool) or not number or not 0 < epsilon < math.inf:  # type: ignore[operator]
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must="be a finite number above 0",
            hint="epsilon is the privacy loss; 0 would need infinite noise: then release nothing",
        )
    # Compared before it is converted: a float holds neither 10^400 nor a fraction of 10^-400.
    level = float(epsilon) if epsilon <= 2 * LARGEST_EPSILON else math.inf  # type: ignore[arg-type, operator]
    if level < SMALLEST_EPSILON:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must=f"be at least {SMALLEST_EPSILON:g}",
            hint="release nothing",
        )
    if level > LARGEST_EPSILON:
        raise InvalidParameter(
            parameter="epsilon",
            value=epsilon,
            must=f"be at most {LARGEST_EPSILON:g}",
            hint="publish the count itself",
        )
    return level


def criterion_parameter(criterion: str) -> str:
    """bayes or minimax."""
    if criterion not in CRITERIA:
        raise UnknownName(what="criterion", name=str(criterion), known=CRITERIA)
    return criterion


def prior_parameter(prior: Any, states: int) -> Floats:
    """Non-negative numbers that sum to 1 (to within rounding), one for each state."""
    from tacit.exact.checks import unmasked

    try:
        values = np.array(unmasked(prior, name="prior"), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            parameter="prior", value=type(prior).__name__, must="be a list of numbers"
        ) from None
    if values.shape != (states,):
        raise InvalidParameter(
            parameter="prior",
            value=f"{values.size} numbers",
            must=f"have one number for each of {states} states",
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InvalidParameter(
            parameter="prior", value="numbers that are negative or not finite", must="be at least 0"
        )
    if abs(values.sum() - 1) > 1e-9:
        raise InvalidParameter(
            parameter="prior", value=float(values.sum()), must="sum to 1", hint="divide it by its sum first"
        )
    return np.asarray(values / values.sum())


SOLVED = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The risk of a mechanism (rounded up), a lower bound for every mechanism (rounded down), and the proof: a prior.

    `risk` is the largest expected loss over the counts (minimax), or the expected loss under the prior (Bayes).
    """

    criterion: str
    method: str
    risk: float
    lower_bound: float
    prior: Floats = field(repr=False, compare=False)
    theorem: str = "optimal-count-remap"

    @property
    def gap(self) -> float:
        """The largest distance of the mechanism from the best one."""
        return max(0.0, self.risk - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the risk."""
        return self.gap / self.risk if self.risk > 0 else 0.0

    @property
    def solved(self) -> bool:
        """Whether the gap is at most a millionth of the risk; if not, the solver stopped early."""
        return self.relative_gap <= SOLVED


def height_risks(kernel: GeometricKernel, loss: Loss, h: Floats) -> Floats:
    """The expected loss at every count of the randomised rounding of h, rounded up."""
    values = kernel.risks(lambda rows: loss.between(rows, h))
    return np.asarray(inflate(1.0, kernel.n) * values)


def best_outputs(kernel: GeometricKernel, loss: Loss, prior: Floats) -> tuple[Floats, Floats]:
    """For each output y of the geometric mechanism the best answer r(y), and the remaining loss f_y(r(y))."""
    chosen, cost = np.empty(kernel.n + 1), np.empty(kernel.n + 1)
    x = np.arange(kernel.n + 1)
    table = None if loss.table is None else loss.minorant()
    for outputs, joint in kernel.joint(prior):
        if table is not None:
            every = joint @ table
            r = every.argmin(axis=1)
            chosen[outputs], cost[outputs] = r, every[np.arange(r.size), r]
            continue
        if loss.name == "zero-one":
            r = joint.argmax(axis=1)
        elif loss.name == "absolute":
            below = np.cumsum(joint, axis=1)
            r = (below < below[:, -1:] / 2).sum(axis=1)
        else:
            offset = x - outputs[:, None]
            total = joint.sum(axis=1)
            mean = (joint * offset).sum(axis=1) / np.where(total > 0, total, 1.0)
            r = np.clip(outputs + np.rint(mean), 0, kernel.n).astype(np.int64)
        r = np.minimum(r, kernel.n)
        chosen[outputs] = r
        cost[outputs] = (joint * loss.at(x, r[:, None])).sum(axis=1)
    return chosen, cost


def bayes_floor(kernel: GeometricKernel, loss: Loss, prior: Floats) -> float:
    """A lower bound of the Bayes risk under this prior, for every epsilon-private mechanism, rounded down.

    The float search for the median (or mean) can stop one place aside only if the two sides agree within the
    rounding of their sums. Then both places cost the same up to that rounding.
    """
    scaled = prior / (prior.sum() * inflate(1.0, kernel.n))
    return max(0.0, deflate(float(best_outputs(kernel, loss, scaled)[1].sum()), 4 * kernel.n))
