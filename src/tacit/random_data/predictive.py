"""Predictive differential privacy (Hall 2012, Def. 5.4.1), with conformal prediction sets.

For *every* data set D, and every D' that replaces a row of D by a value in the prediction set S(D):
P_D(A) <= e^epsilon P_D'(A); and a fresh row lies in S(D) except with probability gamma. The inequality is one-sided.
Every row is protected against being replaced by a typical value, outliers included. It implies random differential
privacy with 2 gamma (theorem `predictive-implies-random`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.checks import add_exact, check_fields, flag, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, up, upper
from tacit.guarantees import Pure
from tacit.mechanisms import L1, Laplace
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise import OneSidedGeometric
from tacit.noise.source import Source, default_source
from tacit.random_data.base import RandomMechanism, gamma_parameter, independent, rows_parameter
from tacit.random_data.histogram import ReleasedHistogram, laplace_table

__all__ = ["PredictiveHistogram", "conformal_cells", "conformal_gamma", "conformal_interval"]


def conformal_gamma(*, rows: int, cells: int, least: int) -> Fraction:
    """k t/(n+1): how likely a fresh row falls in a cell of fewer than t = `least` of the n rows, at most.

    Each of the n + 1 rows is equally likely to be the fresh one, and at most t in each cell see fewer than t
    others.
    """
    n, k, t = whole("rows", rows, least=1), whole("cells", cells, least=1), whole("least", least, least=0)
    return min(Fraction(1), Fraction(k * t, n + 1))


def conformal_cells(counts: Sequence[int], *, least: int) -> frozenset[int]:
    """The conformal prediction set of cells: those with at least `least` rows. A secret."""
    return frozenset(j for j, c in enumerate(counts) if c >= whole("least", least, least=0))


def conformal_interval(values: npt.ArrayLike, *, cut: int) -> tuple[float, float]:
    """[x_(cut), x_(n+1-cut)]: a fresh row lies outside with probability at most 2 cut/(n+1). A secret."""
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    r = whole("cut", cut, least=1)
    refuse_if(2 * r > ordered.size, "cut", cut, "be at most half the number of rows")
    return float(ordered[r - 1]), float(ordered[ordered.size - r])


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveHistogram(RandomMechanism):
    """Cells of at least `least` rows with Laplace noise of scale 2/epsilon; smaller ones mostly published as exactly 0.

    A cell of c < t rows is published as 0 with probability 1 - e^(-(t-c) epsilon/2), and else as t plus noise.
    Guarantee: predictive differential privacy with (epsilon, gamma = k t/(n+1)), and so random differential privacy
    with 2 gamma. The only inhabitant of a cell is protected against being replaced by a typical row, unlike in
    `RandomHistogram`. Assumptions: independent draws; cells and n fixed in advance. Theorem `predictive-histogram`.
    """

    rows: int
    cells: int
    epsilon: Exact
    least: int
    independent: bool = True

    def __post_init__(self) -> None:
        set_fields(self, rows=rows_parameter(self.rows), cells=whole("cells", self.cells, least=2))
        check_fields(self, least=partial(whole, least=1))
        epsilon_parameter(self.epsilon)
        set_fields(self, epsilon=self.epsilon)
        if self._gamma >= 1:
            raise InvalidParameter(
                parameter="least", value=self.least, must="be below (rows + 1)/(2 cells)",
                hint="2 gamma = 2 cells least/(rows + 1) must be below 1",
            )  # fmt: skip
        independent(self.independent)
        check_fields(self, independent=flag)

    @classmethod
    def for_gamma(cls, *, rows: int, cells: int, epsilon: Exact, gamma: Exact) -> PredictiveHistogram:
        """The largest `least` whose random differential privacy has this gamma."""
        n, k, g = rows_parameter(rows), whole("cells", cells, least=2), gamma_parameter(gamma)
        least = int(g * (n + 1) // (2 * k))
        if least < 1:
            raise InvalidParameter(
                parameter="gamma", value=gamma, must=f"be at least 2 cells/(rows + 1) = {2 * k / (n + 1):.3g}",
                hint="more rows or fewer cells; without it all cells need noise",
            )  # fmt: skip
        return cls(rows=n, cells=k, epsilon=epsilon, least=least)

    @property
    def _bound(self) -> Pure:
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def predictive_gamma(self) -> Fraction:
        """The largest probability that a fresh row is outside of the prediction set."""
        return conformal_gamma(rows=self.rows, cells=self.cells, least=self.least)

    @property
    def _gamma(self) -> Fraction:
        return 2 * self.predictive_gamma

    @property
    def noise(self) -> Laplace:
        """The noise of cells that are not published as 0."""
        return Laplace.for_target(epsilon=self.epsilon, sensitivity=L1(2))

    def told_zero(self, count: int) -> float:
        """The chance that the coin alone replaces the count of a cell of this size by 0 (a made-up count)."""
        short = self.least - whole("count", count, least=0)
        rate = epsilon_parameter(self.epsilon) / 2
        return 0.0 if short <= 0 else upper(lambda: -(-ball(rate * short)).expm1())

    def law(self, count: int, *, reach: int) -> dict[object, float]:
        """The distribution of one cell, tabulated on -reach..reach."""
        rate = float(epsilon_parameter(self.epsilon) / 2)
        table = laplace_table(max(count, self.least), rate, reach)
        coin = self.told_zero(count)
        if coin:
            table = {k: p * (1 - coin) for k, p in table.items()}
            table[0] += coin
        return table

    def release(self, counts: npt.ArrayLike, *, source: Source | None = None) -> ReleasedHistogram:
        """Counts of all cells. Coins and noise are drawn for every cell."""
        source = source if source is not None else default_source()
        array = integer_array(counts)
        if array.size != self.cells or bool((array < 0).any()) or int(array.sum()) != self.rows:
            raise InvalidParameter(
                parameter="counts", value="other counts",
                must=f"be {self.cells} counts that add up to the public number of rows, {self.rows}",
            )  # fmt: skip
        coins = OneSidedGeometric(noise_scale=2 / epsilon_parameter(self.epsilon)).sample(
            size=array.shape, source=source
        )
        drawn = self.noise.distribution.sample(size=array.shape, source=source)
        raised = np.maximum(array, self.least)
        # Pr[coin >= j] = e^(-j epsilon/2): shown with noise if the coin reaches t - c, or 0 for large cells.
        shown = np.asarray(coins >= raised - array)
        return ReleasedHistogram(
            counts=np.where(shown, add_exact(raised, drawn), 0),
            noisy=shown,
            rows=self.rows,
            exact_below=0,
            publishable=source.publishable,
        )
