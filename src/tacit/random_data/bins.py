"""The number of bins chosen privately, then a histogram under random differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.checks import flag, members, settle, whole
from tacit.exact.integers import integer_array
from tacit.exact.rationals import Exact
from tacit.guarantees import Pure
from tacit.mechanisms import Exponential, Score
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.budgets import sum_of_epsilons
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.histogram import RandomHistogram, ReleasedHistogram

__all__ = ["ChosenBins", "ReleasedBins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedBins:
    """The chosen number of bins, and the histogram with them."""

    bins: int
    histogram: ReleasedHistogram


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBins(RandomMechanism):
    """A histogram whose number of bins is chosen from a public list, each a divisor of the largest.

    The score of k bins is minus (the L1 distance of the finest histogram from the coarse one spread evenly, plus the
    noise of its occupied cells); one replaced row moves it by at most 4 + 2/release_epsilon. Each candidate has
    gamma/L: a later mechanism chosen by an earlier output needs the gammas of all it might have been. Guarantee:
    (choice_epsilon + release_epsilon, 0) under RandomData(gamma). Theorem `random-chosen-bins`.
    Assumptions: independent draws; the finest bins are fixed in advance.
    """

    rows: int
    candidates: tuple[int, ...]
    choice_epsilon: Exact
    release_epsilon: Exact
    gamma: Exact
    independent: bool = True

    def __post_init__(self) -> None:
        settle(self, rows=rows_parameter(self.rows))
        found = tuple(
            sorted({whole("candidates", k, least=2) for k in members("candidates", self.candidates)})
        )
        if not found or any(found[-1] % k for k in found):
            raise InvalidParameter(
                parameter="candidates", value=f"{len(found)} numbers", must="be divisors of the largest of them",
                hint="such as 8, 16, 32, 64",
            )  # fmt: skip
        object.__setattr__(self, "candidates", found)
        epsilon_parameter(self.choice_epsilon, "choice_epsilon")
        epsilon_parameter(self.release_epsilon, "release_epsilon")
        gamma_parameter(self.gamma)
        settle(
            self, choice_epsilon=self.choice_epsilon, release_epsilon=self.release_epsilon, gamma=self.gamma
        )
        independent(self.independent)
        settle(self, independent=flag("independent", self.independent))

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=sum_of_epsilons(self.choice_epsilon, self.release_epsilon))

    @property
    def _gamma(self) -> Fraction:
        return gamma_parameter(self.gamma)

    def histogram(self, bins: int) -> RandomHistogram:
        """The release with so many bins: gamma divided by the number of candidates."""
        return RandomHistogram(
            rows=self.rows,
            cells=bins,
            epsilon=self.release_epsilon,
            gamma=gamma_parameter(self.gamma) / len(self.candidates),
            small_cells=True,
            sharp=True,
        )

    @property
    def _weight(self) -> Fraction:
        """What one noisy cell costs in the score: the expected size of its noise, as a public constant."""
        return Fraction(2) / epsilon_parameter(self.release_epsilon, "release_epsilon")

    @property
    def choice(self) -> Exponential:
        """The choice of the number of bins."""
        return Exponential(epsilon=self.choice_epsilon, sensitivity=Score(4 + self._weight))

    def coarse(self, finest: npt.ArrayLike, bins: int) -> npt.NDArray[np.int64]:
        """The counts with so many bins."""
        array = integer_array(finest).astype(np.int64)
        return np.asarray(array.reshape(bins, -1).sum(axis=1))

    def score(self, finest: npt.ArrayLike, bins: int) -> Fraction:
        """Minus the error that so many bins are expected to have: a secret."""
        array = integer_array(finest).astype(np.int64)
        coarse, width = self.coarse(array, bins), self.candidates[-1] // bins
        distance = Fraction(int(np.abs(width * array - np.repeat(coarse, width)).sum()), width)
        return -(distance + self._weight * int((coarse > 0).sum()))

    def release(self, finest: npt.ArrayLike, *, source: Source | None = None) -> ReleasedBins:
        """Choose the number of bins from the counts of the finest ones, then release the histogram with it."""
        source = source if source is not None else default_source()
        array = integer_array(finest)
        if array.size != self.candidates[-1]:
            raise InvalidParameter(
                parameter="finest", value=f"{array.size} cells", must=f"have {self.candidates[-1]} cells"
            )
        scores = [self.score(array, k) for k in self.candidates]
        bins = self.candidates[self.choice.choose(scores, source=source).index]
        made = self.histogram(bins).release(self.coarse(array, bins), source=source)
        return ReleasedBins(bins=bins, histogram=made)
