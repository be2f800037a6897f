"""Noise for the parts of a question: tables of integers in, as many noisy ones out, with the errors of every cell.

`CellNoise` is independent and alike on any number of cells (Laplace, Gaussian, staircase). Mechanisms for several
tables at once (`tacit.mechanisms.tables`) answer the same questions, so that whoever runs them needs not know which
it is. All lengths are in steps of the grid.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import NoLaw
from tacit.exact.arrays import AnyArray, Floats
from tacit.mechanisms.base import Mechanism
from tacit.noise.source import Source

__all__ = ["CellNoise", "Floats", "PartNoise", "Pivot"]

Pivot = Callable[[Sequence[Floats], Floats, float], Floats]
"""(weights, value, confidence): at least 0 where |sum w_i X_i| = |value| is within its quantile; continuous."""


class PartNoise(Mechanism):
    """Noise for some parts of a question at once."""

    __slots__ = ()

    @abstractmethod
    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """The parts with noise, in order; `cells` gives the finest table, for noise that is on its cells."""

    @abstractmethod
    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        """What the noise of each cell of each part stays within, `coordinates` of them at once."""

    @abstractmethod
    def mean_errors(self, parts: int) -> list[float]:
        """E |noise| of a cell, for each part the mean over its cells."""

    @abstractmethod
    def mean_variances(self, parts: int) -> list[float]:
        """The variance of a cell, for each part the mean over its cells."""

    def stated(self, parts: Sequence[str]) -> dict[str, Any]:
        """What a certificate states of the noise of these parts."""
        return self.noise_distribution


class CellNoise(PartNoise):
    """Independent noise of one law on each of any number of integers."""

    __slots__ = ()

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of one draw, in steps."""

    @abstractmethod
    def step_error(self) -> float:
        """E |noise| of one number, in steps."""

    @abstractmethod
    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        """The least whole number of steps within which all coordinates stay, with this probability."""

    @abstractmethod
    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        """The integers of one vector with noise."""

    def pivot(self, noises: Sequence[Any]) -> Pivot:
        """The quantile of weighted sums of noises of this one's kind, for intervals of ratios."""
        raise NoLaw(
            operation=f"an interval of a ratio under {type(self).__name__} noise",
            reason="its pivot is not known",
        )

    def release_parts(
        self, parts: Sequence[AnyArray], *, cells: Callable[[], AnyArray], source: Source | None
    ) -> list[AnyArray]:
        """One draw for all parts, as one vector."""
        flat = [np.ravel(np.asarray(part)) for part in parts]
        wide = any(a.dtype == object for a in flat)
        joined = np.concatenate([a.astype(object) if wide else a for a in flat])
        if joined.size == 0:
            return [np.zeros(np.shape(part), dtype=np.int64) for part in parts]
        noisy = np.asarray(self.release_cells(joined, source=source))
        split = np.split(noisy, np.cumsum([a.size for a in flat])[:-1])
        return [some.reshape(np.shape(part)) for some, part in zip(split, parts, strict=True)]

    def half_widths(self, parts: int, confidence: Fraction, *, coordinates: int = 1) -> list[Floats]:
        half = np.asarray(float(_steps_within(self, confidence, coordinates)))
        return [half] * parts

    def mean_errors(self, parts: int) -> list[float]:
        return [self.step_error()] * parts

    def mean_variances(self, parts: int) -> list[float]:
        return [self.variance] * parts


@lru_cache(maxsize=1024)
def _steps_within(noise: CellNoise, confidence: Fraction, coordinates: int) -> int:
    """Certified by a search in ball arithmetic, and asked for several times in one release."""
    return noise.steps_within(confidence, coordinates)
