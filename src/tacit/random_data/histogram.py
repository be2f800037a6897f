"""Sparse histograms: small cells exact, the others with noise. The paper's (5), Hall's (5.2) and (5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import flag, settle, whole
from tacit.exact.integers import add_exact, integer_array
from tacit.exact.rationals import Exact
from tacit.exact.rounding import up
from tacit.guarantees import Neighbours, Pure
from tacit.guarantees.declarations import INDEPENDENT_DRAWS, LEAST_ROWS
from tacit.mechanisms import L1, Laplace
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.outputs import Coordinate, Exactly, Noisy

__all__ = ["RandomHistogram", "ReleasedHistogram", "worst_share"]


def worst_share(*, rows: int, cells: int, below: int) -> Fraction:
    """(k-1) t (2(n+1) - k t)/(n(n+1)): the worst share of relabellings that move a cell of fewer than t rows.

    Exact for k t <= n + 1 (and k >= 2): reached by k - 1 cells of t rows each, and the rest in one.
    """
    n, k, t = rows, cells, below
    return Fraction((k - 1) * t * (2 * (n + 1) - k * t), n * (n + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedHistogram:
    """Counts, those of cells below `exact_below` exact and the others noisy.

    `noisy` marks the cells with noise: it may be told. `publishable` is False for a seeded source.
    """

    counts: AnyArray
    noisy: npt.NDArray[np.bool_]
    rows: int | None
    exact_below: int
    publishable: bool

    @property
    def proportions(self) -> npt.NDArray[np.float64]:
        """counts / rows, where the number of rows is public."""
        if self.rows is None:
            raise InvalidParameter(
                parameter="neighbours", value="add-or-remove", must="be replace-one for proportions",
                hint="under add-or-remove the number of rows is protected: divide by the noisy total",
            )  # fmt: skip
        return np.asarray(self.counts, dtype=np.float64) / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomHistogram(RandomMechanism):
    """Counts of k cells: those below `exact_below` exact, the others with Laplace noise of scale 2/epsilon.

    Guarantee: (epsilon, 0) under RandomData(gamma), for independent rows of any law; random differential privacy, not
    differential privacy: the only inhabitant of a cell is not protected. `small_cells` False: empty cells are exact if
    2k <= gamma n (the paper's (5)); True: cells with c + 1 <= gamma n/(2k) (Hall's (5.3)). `sharp` takes the largest
    number that the worst relabelling allows. If no cell may be exact, all get noise, and then the release is
    differentially private with the same epsilon (`exact_below` = 0 says so).
    Under add-or-remove `rows` is a declared least number of rows and the noise has scale 1/epsilon.
    Assumptions: independent draws; the cells are fixed in advance. Theorem `random-histogram`.
    Source: Hall, Rinaldo, Wasserman 2011, (5); Hall 2012, (5.2), (5.3).
    """

    rows: int
    cells: int
    epsilon: Exact
    gamma: Exact
    small_cells: bool = False
    sharp: bool = False
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    independent: bool = True

    def __post_init__(self) -> None:
        settle(self, rows=rows_parameter(self.rows), cells=whole("cells", self.cells, least=2))
        epsilon_parameter(self.epsilon)
        gamma_parameter(self.gamma)
        settle(self, epsilon=self.epsilon, gamma=self.gamma)
        settle(self, small_cells=flag("small_cells", self.small_cells), sharp=flag("sharp", self.sharp))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        independent(self.independent)
        settle(self, independent=flag("independent", self.independent))

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def _gamma(self) -> Fraction:
        return gamma_parameter(self.gamma)

    @property
    def _neighbours(self) -> Neighbours:
        return self.neighbours

    @property
    def _declared(self) -> tuple[str, ...]:
        least = () if self.neighbours is Neighbours.REPLACE_ONE else (LEAST_ROWS,)
        return (INDEPENDENT_DRAWS, *least)

    @property
    def exact_below(self) -> int:
        """Cells with fewer rows than this are exact: 0 is none, 1 the empty ones. Public."""
        most = _exact_below(self.rows, self.cells, self._gamma, self.sharp, self.neighbours)
        return most if self.small_cells else min(most, 1)

    @property
    def noise(self) -> Laplace:
        """The noise of the other cells."""
        moved = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
        return Laplace.for_epsilon(epsilon=self.epsilon, sensitivity=L1(moved))

    def law(self, counts: tuple[int, ...]) -> tuple[Coordinate, ...]:
        """The law of the output for the referee."""
        below, _, rate = _settings(self)
        return tuple(Exactly(c) if c < below else Noisy(c, rate) for c in counts)

    def breaks(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Do two tables have outputs that are not epsilon-indistinguishable?"""
        below, epsilon, rate = _settings(self)
        moved = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if any(a < below or b < below for a, b in moved):
            return True
        return rate * sum(abs(a - b) for a, b in moved) > epsilon

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> ReleasedHistogram:
        """Counts of all cells, the small ones exact. Noise is drawn for every cell, whether it is used or not."""
        source = source if source is not None else default_source()
        array = integer_array(counts)
        if array.size != self.cells:
            raise InvalidParameter(
                parameter="counts", value=f"{array.size} cells", must=f"have {self.cells} cells"
            )
        if bool((array < 0).any()):
            raise InvalidParameter(
                parameter="counts", value="a count below 0", must="be counts of rows, at least 0"
            )
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        if replaced and int(array.sum()) != self.rows:
            raise InvalidParameter(
                parameter="counts",
                value="another total",
                must=f"add up to the public number of rows, {self.rows}",
            )
        noisy = np.asarray(array >= self.exact_below)
        drawn = self.noise.distribution.sample(size=array.shape, source=source)
        return ReleasedHistogram(
            counts=np.where(noisy, add_exact(array, drawn), array),
            noisy=noisy,
            rows=self.rows if replaced else None,
            exact_below=self.exact_below,
            publishable=source.publishable,
        )

    def expected_error(self, *, noisy_cells: int) -> float:
        """E of the L1 error of the counts if so many cells get noise: plain Laplace noise has all of them."""
        return whole("noisy_cells", noisy_cells, least=0) * self.noise.expected_error()


@lru_cache(maxsize=256)
def _settings(mechanism: RandomHistogram) -> tuple[int, Fraction, Fraction]:
    """exact_below, epsilon, and the rate of the noise."""
    epsilon = epsilon_parameter(mechanism.epsilon)
    rate = epsilon / (2 if mechanism.neighbours is Neighbours.REPLACE_ONE else 1)
    return mechanism.exact_below, epsilon, rate


@lru_cache(maxsize=256)
def _exact_below(n: int, k: int, gamma: Fraction, sharp: bool, neighbours: Neighbours) -> int:
    """The largest allowed t: by Hall's counting, or by the worst relabelling."""
    replaced = neighbours is Neighbours.REPLACE_ONE
    if not sharp:
        return int(gamma * n // ((2 if replaced else 1) * k))
    if not replaced:
        return min(int(gamma * n // (k - 1)), (n - 1) // k)
    low, high = 0, (n + 1) // k + 1  # the worst share grows with t up to (n + 1)/k
    while high - low > 1:
        middle = (low + high) // 2
        fits = worst_share(rows=n, cells=k, below=middle) <= gamma
        low, high = (middle, high) if fits else (low, middle)
    return low
