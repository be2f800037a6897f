"""The truncated geometric law of a count, and certified sums over it.

    G(x, y) = c_y q^|x-y|,  q = e^-epsilon,  c_y = (1-q)/(1+q) inside 0..n and 1/(1+q) at both ends.

All sums below are of terms of one sign, so that a float sum of m terms is wrong by a factor of at most
1 + (m + 1024) 2^-51, powers and weights included. `inflate` and `deflate` apply that factor against us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats

__all__ = ["Floats", "GeometricKernel", "deflate", "inflate", "settle_down"]


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
    """The law of the truncated geometric mechanism with range 0..n, row by row."""

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
