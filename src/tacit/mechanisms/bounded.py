"""Bounded noise: the discrete Laplace distribution on -A..A, which is the best there is on that support."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import flint

from tacit.accounting import events
from tacit.accounting.events import Event
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import refuse_if, require, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, down, exact_parameter, least, up, upper
from tacit.guarantees import Approximate
from tacit.mechanisms.base import (
    L1,
    AdditiveMechanism,
    CellNoise,
    confidence_level,
    dimension_parameter,
    epsilon_parameter,
    event_of,
    in_units,
    need,
    shown,
)
from tacit.noise import DiscreteDistribution, DiscreteLaplace
from tacit.noise.distributions.base import joined
from tacit.noise.source import Source

__all__ = ["TruncatedDiscreteLaplace"]

_HINT = "bounded noise is for counts: L1(1) if a unit moves one cell by at most 1"
_ONE = Fraction(1)
_UNIT = L1(1)
MOST_MOVED = 4096
"""The largest move, in steps, with a composed curve of its own; a larger one composes by its (epsilon, delta)."""
WIDEST = 64
"""The untruncated noise may be this many times wider than the support. It is drawn again until it is inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(DiscreteDistribution):
    """Pr[X = k] = q^|k| / Z for |k| <= largest, q = exp(-1/noise_scale), Z = (1 + q - 2 q^(largest+1)) / (1 - q).

    It is the discrete Laplace distribution given that |X| <= largest, and so it is drawn: until a draw is
    inside. The number of draws depends on nothing but the noise.
    """

    noise_scale: Exact
    largest: int

    example: ClassVar[Mapping[str, Any]] = {"noise_scale": 3, "largest": 9}

    def __post_init__(self) -> None:
        scale = exact_parameter("noise_scale", self.noise_scale)
        set_fields(self, noise_scale=self.noise_scale, largest=whole("largest", self.largest, least=0))
        require(
            WIDEST * (2 * self.largest + 1) >= scale, parameter="largest", value=self.largest,
            must=f"be at least about a {2 * WIDEST}th of the noise scale",
        )  # fmt: skip

    @property
    def rate(self) -> Fraction:
        """1 / noise_scale, exactly."""
        return 1 / exact_parameter("noise_scale", self.noise_scale)

    def _draw(self, count: int, source: Source) -> AnyArray:
        wide = DiscreteLaplace(noise_scale=self.noise_scale)
        parts: list[AnyArray] = []
        missing = count
        while missing > 0:
            drawn = wide.sample(size=missing + missing // 4 + 8, source=source)
            kept = drawn[abs(drawn) <= self.largest][:missing]
            parts.append(kept)
            missing -= kept.size
        return joined(parts)

    def _power(self, k: int) -> Ball:
        return (-ball(self.rate * k)).exp()

    def _gap(self, k: int) -> Ball:
        """1 - q^k."""
        return -(-ball(self.rate * k)).expm1()

    def _whole(self) -> Ball:
        """(1 - q) Z, as a sum of positive terms."""
        return self._gap(self.largest + 1) + self._power(1) * self._gap(self.largest)

    def probability_ball(self, k: int) -> Ball:
        inside = abs(k) <= self.largest
        return self._power(abs(k)) * self._gap(1) / self._whole() if inside else flint.arb(0)

    def survival_ball(self, k: int) -> Ball:
        if k > self.largest:
            return flint.arb(0)
        if k <= 0:
            return 1 - self.survival_ball(1 - k)
        return self._power(k) * self._gap(self.largest + 1 - k) / self._whole()

    def mean_ball(self) -> Ball:
        return flint.arb(0)

    def mean_absolute_ball(self) -> Ball:
        """A ball around E |X| = 2 q (1 - (A+1) q^A + A q^(A+1)) / ((1 - q)^2 Z)."""
        a, q = self.largest, self._power(1)
        inner = 1 - (a + 1) * self._power(a) + a * self._power(a + 1)
        return 2 * q * inner / (self._gap(1) * self._whole())

    def variance_ball(self) -> Ball:
        a, q, last = self.largest, self._power(1), self._power(self.largest)
        inner = 1 + q - (a + 1) ** 2 * last + (2 * a * a + 2 * a - 1) * last * q - a * a * last * q * q
        return 2 * q * inner / (self._gap(1) ** 2 * self._whole())


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedDiscreteLaplace(AdditiveMechanism, CellNoise):
    """Noise that never exceeds A = largest_noise: Pr[X = k] = q^|k| / Z on -A..A, q = e^(-epsilon / (D m)).

    D is the sensitivity and m = moved_cells: a unit moves at most m different cells by at most D each, or for m = 1 any
    cells whose moves add up to at most D.
    Guarantee: Approximate(epsilon, 1 - (1 - f)^m) with f = q^(A-D+1) (1 - q^D) / ((1 - q) Z), exactly. For D = m = 1 no
    noise within -A..A has a smaller delta. The delta is the probability of certain disclosure: an output that only one
    of two neighbours can have tells them apart. Deltas of several releases add up. Assumptions: integers; A is at
    least D. An epsilon that no float equals is rounded down to one. The interval value +- A holds always. Theorem
    `truncated-discrete-laplace`.
    """

    epsilon: Exact
    largest_noise: int
    sensitivity: L1 = _UNIT
    moved_cells: int = 1

    row: ClassVar[tuple[str, ...]] = (
        "L1 of counts",
        "discrete Laplace on -A..A",
        "(ε, δ), δ exact: certain disclosure",
        "below 1/sinh(ε/D); never above A",
    )
    example: ClassVar[Mapping[str, Any]] = {
        "epsilon": 1, "largest_noise": 14, "sensitivity": L1(2), "moved_cells": 1,
    }  # fmt: skip
    target_example: ClassVar[Mapping[str, Any]] = {
        "epsilon": 1, "delta": 1e-6, "sensitivity": L1(1), "moved_cells": 2,
    }  # fmt: skip

    def __post_init__(self) -> None:
        steps = need("truncated discrete Laplace", self.sensitivity, (L1,), _HINT).steps(_ONE)
        epsilon_parameter(self.epsilon)
        set_fields(
            self, epsilon=self.epsilon, largest_noise=whole("largest_noise", self.largest_noise),
            moved_cells=whole("moved_cells", self.moved_cells),
        )  # fmt: skip
        require(
            self.largest_noise >= steps, parameter="largest_noise", value=self.largest_noise,
            must=f"be at least the sensitivity, {steps}",
        )  # fmt: skip
        _ = self.distribution

    @classmethod
    def for_target(
        cls, *, epsilon: Exact, delta: Exact, sensitivity: L1 = _UNIT, moved_cells: int = 1
    ) -> TruncatedDiscreteLaplace:
        """The smallest noise with this (epsilon, delta): the least A whose delta does not exceed it."""
        steps = need("truncated discrete Laplace", sensitivity, (L1,), _HINT).steps(_ONE)
        limit, cells = exact_parameter("delta", delta), whole("moved_cells", moved_cells)
        refuse_if(limit >= 1, "delta", delta, "lie strictly between 0 and 1")
        own = _per_cell(epsilon_parameter(epsilon), cells)

        def holds(largest: int) -> bool:
            return largest >= steps and _delta(own, largest, steps, cells) <= limit

        largest = least(holds, start=steps, what="bounded noise")
        return cls(epsilon=epsilon, largest_noise=largest, sensitivity=sensitivity, moved_cells=cells)

    @property
    def step(self) -> Fraction:
        return _ONE

    @property
    def _moved(self) -> int:
        return self.sensitivity.steps(_ONE)

    @property
    def distribution(self) -> BoundedLaplace:
        """The distribution of one coordinate's noise."""
        own = _per_cell(epsilon_parameter(self.epsilon), self.moved_cells)
        return BoundedLaplace(noise_scale=Fraction(self._moved) / Fraction(own), largest=self.largest_noise)

    @property
    def bound(self) -> Approximate:
        own = _per_cell(epsilon_parameter(self.epsilon), self.moved_cells)
        delta = _delta(own, self.largest_noise, self._moved, self.moved_cells)
        return Approximate(epsilon=up(Fraction(own) * self.moved_cells), delta=delta)

    @property
    def event(self) -> Event:
        """The noise of one cell, repeated for each cell that a unit moves; for moves of very many steps only the
        bound.
        """
        if self._moved > MOST_MOVED:
            return event_of(self.bound)
        one = events.TruncatedDiscreteLaplaceEvent(
            epsilon=_per_cell(epsilon_parameter(self.epsilon), self.moved_cells),
            largest_noise=self.largest_noise,
            sensitivity=self._moved,
        )
        return one if self.moved_cells == 1 else events.RepeatedEvent(event=one, times=self.moved_cells)

    @property
    def theorems(self) -> tuple[str, ...]:
        return ("truncated-discrete-laplace",)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {
            "distribution": "truncated discrete Laplace",
            "noise_scale": shown(Fraction(self.distribution.noise_scale)),
            "largest_noise": self.largest_noise,
            "spacing": "1",
            "exact": True,
        }

    def expected_error(self) -> float:
        """E |X| = 2 q (1 - (A+1) q^A + A q^(A+1)) / ((1 - q)^2 Z), below that of untruncated noise."""
        return upper(self.distribution.mean_absolute_ball)

    def step_error(self) -> float:
        return self.expected_error()

    @property
    def variance(self) -> float:
        return self.distribution.variance

    @property
    def noise_std(self) -> float:
        """The standard deviation."""
        return self.distribution.std

    def steps_within(self, confidence: Fraction, coordinates: int = 1) -> int:
        if confidence == 1:
            return self.largest_noise
        found = self.distribution.error_bound(confidence=confidence, coordinates=coordinates)
        return min(found, self.largest_noise)

    def release_cells(self, values: AnyArray, *, source: Source | None) -> AnyArray:
        return self.release(values, source=source).values

    def error_quantile(self, confidence: Exact = 0.95) -> float:
        """The least t with Pr[|X| <= t] >= confidence; at most A."""
        return self.max_error(confidence=confidence, dimension=1)

    def max_error(self, *, confidence: Exact = 0.95, dimension: int) -> float:
        """The least t with Pr[max_i |X_i| <= t] >= confidence; at most A."""
        level, d = confidence_level(confidence), dimension_parameter(dimension)
        return in_units(self.steps_within(level, d), _ONE)


def _per_cell(epsilon: Fraction, cells: int) -> float:
    """The epsilon of one moved cell, as the float that the distribution and its event have."""
    return down(epsilon / cells)


def _delta(epsilon: float, largest: int, steps: int, cells: int) -> float:
    """1 - (1 - f)^cells, f = q^(A-D+1) (1 - q^D) / (1 + q - 2 q^(A+1)), rounded up."""
    rate = Fraction(epsilon) / steps

    def formula() -> Ball:
        def gap(k: int) -> Ball:
            return -(-ball(rate * k)).expm1()

        top = (-ball(rate * (largest - steps + 1))).exp() * gap(steps)
        one = top / (gap(largest + 1) + (-ball(rate)).exp() * gap(largest))
        return one if cells == 1 else -(cells * (-one).log1p()).expm1()

    return upper(formula)
