"""Propose a bound on the local sensitivity, test privately that the data are far from breaking it, then release."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import add_exact, check_fields, integer_array, refuse_if, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected
from tacit.guarantees import Approximate, Neighbours, Unit, rows
from tacit.mechanisms.base import (
    L1,
    Mechanism,
    Released,
    confidence_level,
    epsilon_parameter,
    epsilon_value,
    in_units,
    need,
    shown,
)
from tacit.mechanisms.gaussian import delta_parameter
from tacit.mechanisms.smooth import local_sensitivity_at, median_rank
from tacit.mechanisms.strategies import sum_of_epsilons
from tacit.noise import DiscreteLaplace, grid_spacing
from tacit.noise.source import Source, default_source

__all__ = ["InterquartileRangeByTest", "MedianByTest", "Tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """The outcome of the test; `released` is None if the proposed bound was too near to failing."""

    passed: bool
    released: Released | None
    publishable: bool


def distance_to_instability(values: npt.ArrayLike, *, rank: int, steps: int) -> int:
    """The least number of replaced rows after which the order statistic could move by more than `steps`.

    A_k, the largest local sensitivity within k replacements, does not fall as k grows: binary search. Beyond the
    data everything is possible (no bounds are assumed), so that the distance is at most min(rank, n + 1 - rank) - 1.
    """
    array = integer_array(values).ravel()
    if array.size == 0:
        raise EmptyComposition(
            what="the data", hint="the number of rows is public here and must be at least 1"
        )
    m, steps = whole("rank", rank, least=1), whole("steps", steps, least=0)
    refuse_if(m > array.size, "rank", rank, f"be at most the number of rows, {array.size}")
    ordered = np.sort(array)
    # Windows that leave the data are infinite: k + 1 >= m on the left, m + k + 1 > n on the right.
    most = min(m, array.size + 1 - m) - 1
    padded = np.concatenate([ordered[:1], ordered, ordered[-1:]])
    return bisected(lambda k: local_sensitivity_at(padded, m, k) > steps, -1, most)[1]


class _ByTest(Mechanism):
    """Shared by all statistics that are released by a test.

    distance + discrete Laplace(1/test_epsilon) must exceed a threshold t with Pr[noise > t] <= delta; then the
    statistic is released with discrete Laplace noise of scale bound / release_epsilon.
    """

    __slots__ = ()

    proposed: L1
    test_epsilon: Exact
    release_epsilon: Exact
    delta: Exact
    spacing: Exact

    def _check(self) -> None:
        need("propose-test-release", self.proposed, (L1,), "propose how far the statistic may move: L1(...)")
        check_fields(self, test_epsilon=epsilon_value, release_epsilon=epsilon_value)
        delta_parameter(self.delta)
        set_fields(self, delta=self.delta)
        object.__setattr__(self, "spacing", grid_spacing(self.spacing))
        self.proposed.steps(self.step)

    @property
    def step(self) -> Fraction:
        """The grid's spacing."""
        return Fraction(self.spacing)

    @property
    def _test_distribution(self) -> DiscreteLaplace:
        return DiscreteLaplace(noise_scale=1 / epsilon_parameter(self.test_epsilon, "test_epsilon"))

    @property
    def distribution(self) -> DiscreteLaplace:
        """The noise of a value that is released, in grid steps."""
        steps = self.proposed.steps(self.step)
        return DiscreteLaplace(noise_scale=steps / epsilon_parameter(self.release_epsilon, "release_epsilon"))

    @property
    def threshold(self) -> int:
        """The least t with Pr[test noise > t] <= delta; about ln(1/2 delta) / test_epsilon."""
        return self._test_distribution.quantile(1 - Fraction(delta_parameter(self.delta)))

    @property
    def bound(self) -> Approximate:
        """epsilons add, and delta pays for data whose local sensitivity is above the bound."""
        total = sum_of_epsilons(self.test_epsilon, self.release_epsilon)
        return Approximate(epsilon=total, delta=delta_parameter(self.delta))

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("propose-test-release",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "propose-test-release, discrete Laplace",
            "proposed": shown(self.proposed.exact),
            "test_epsilon": shown(Fraction(self.test_epsilon)),
            "release_epsilon": shown(Fraction(self.release_epsilon)),
            "threshold": self.threshold,
            "spacing": shown(self.step),
            "exact": True,
        }

    def _statistic(self, ordered: AnyArray) -> int:
        raise NotImplementedError

    def _distance(self, ordered: AnyArray) -> int:
        raise NotImplementedError

    @abstractmethod
    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Tested:
        """Test, then release or decline."""

    def _release_ordered(self, values: npt.ArrayLike, source: Source | None) -> Tested:
        """For statistics of ordered values."""
        source = source if source is not None else default_source()
        ordered = np.sort(integer_array(values).ravel())
        distance = self._distance(ordered)
        # Both noises are always drawn, so that the time does not tell the outcome before it is known.
        test, noise = (
            self._test_distribution.sample(source=source),
            self.distribution.sample(source=source),
        )
        passed = distance + int(test) > self.threshold
        if not passed:
            return Tested(passed=False, released=None, publishable=source.publishable)
        noisy = add_exact(np.asarray(self._statistic(ordered)), np.asarray(noise))
        released = Released(values=noisy, spacing=self.step, publishable=source.publishable)
        return Tested(passed=True, released=released, publishable=source.publishable)

    def passing_distance(self, confidence: Exact = 0.95) -> int:
        """The least distance to instability at which the test passes with this probability."""
        return self.threshold + 1 + self._test_distribution.quantile(confidence_level(confidence))

    def expected_error(self) -> float:
        """E |noise| of a release, if the test passes: noise_scale = bound / release_epsilon."""
        from tacit.exact.rounding import ball, upper

        rate, step = self.distribution.rate, self.step
        return upper(lambda: ball(step) / ball(rate).sinh())

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The bound on the noise of a release, if the test passes."""
        return in_units(self.distribution.error_bound(confidence=confidence_level(confidence)), self.step)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The bound for `dimension` such releases at once."""
        level = confidence_level(confidence)
        d = whole("dimension", dimension, least=1)
        return in_units(self.distribution.error_bound(confidence=level, coordinates=d), self.step)


class _OfOrderedRows(_ByTest):
    """Order statistics of one value a row. Their distance counts replaced rows.

    A person with several rows, or one more row, moves it by more than 1; the theorem covers neither.
    """

    __slots__ = ()

    def certificate_for(self, unit: Unit) -> dict[str, Any]:
        """The promise for one replaced row, as plain JSON. Other units are refused."""
        own = rows(neighbours=Neighbours.REPLACE_ONE)
        if unit != own:
            raise InvalidParameter(
                parameter="unit", value=str(unit), must=f"be {own}",
                hint="the distance to instability counts replaced rows; kind = 'median' of a plan takes other units",
            )  # fmt: skip
        return _ByTest.certificate_for(self, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianByTest(_OfOrderedRows):
    """The lower median, released if the data are far from all tables on which one row moves it by more than
    `proposed`.

    Guarantee: Approximate(test_epsilon + release_epsilon, delta), replace-one neighbours, no bounds on the data.
    Not tight: only data at the very edge spend both epsilons. Theorem `propose-test-release`. Source: Dwork, Lei 2009.
    """

    proposed: L1
    test_epsilon: Exact
    release_epsilon: Exact
    delta: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        self._check()

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Tested:
        """Test, then release or decline. `values` are one integer a row, on the grid; the number of rows is public."""
        return self._release_ordered(values, source)

    def _statistic(self, ordered: AnyArray) -> int:
        return int(ordered[median_rank(ordered.size) - 1])

    def _distance(self, ordered: AnyArray) -> int:
        rank = median_rank(max(int(ordered.size), 1))
        return distance_to_instability(ordered, rank=rank, steps=self.proposed.steps(self.step))


@dataclass(frozen=True, slots=True, kw_only=True)
class InterquartileRangeByTest(_OfOrderedRows):
    """x_(q3) - x_(q1), released if the data are far from all tables on which one row moves a quartile by more than
    `proposed`.

    A replaced row moves both quartiles the same way, so that the range moves by at most the larger of the two
    moves. Guarantee: Approximate(test_epsilon + release_epsilon, delta), replace-one neighbours, no bounds on the
    data. Theorem `propose-test-release`. Source: Dwork, Lei 2009 (who test on a logarithmic scale instead).
    """

    proposed: L1
    test_epsilon: Exact
    release_epsilon: Exact
    delta: Exact
    spacing: Exact = 1

    def __post_init__(self) -> None:
        self._check()

    def release(self, values: npt.ArrayLike, *, source: Source | None = None) -> Tested:
        """Test, then release or decline. `values` are one integer a row, on the grid; the number of rows is public."""
        return self._release_ordered(values, source)

    @staticmethod
    def _ranks(count: int) -> tuple[int, int]:
        first = (count + 3) // 4
        return first, count + 1 - first

    def _statistic(self, ordered: AnyArray) -> int:
        first, third = self._ranks(int(ordered.size))
        return int(ordered[third - 1]) - int(ordered[first - 1])

    def _distance(self, ordered: AnyArray) -> int:
        steps = self.proposed.steps(self.step)
        ranks = self._ranks(max(int(ordered.size), 1))
        return min(distance_to_instability(ordered, rank=rank, steps=steps) for rank in ranks)
