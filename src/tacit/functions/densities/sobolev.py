"""Kernel density estimates with noise from the Sobolev space H^1: rough paths, known at the points of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball, upper
from tacit.exact.checks import settle, whole
from tacit.functions.bases.families import DensityFamily, per_axis

__all__ = ["SobolevKDE"]

FINENESS = 32
POINTS_PER_BANDWIDTH = 8
MOST_POINTS = 1 << 15
BEST_LENGTH = 1.145


@dataclass(frozen=True, slots=True, kw_only=True)
class SobolevKDE(DensityFamily):
    """The Gaussian kernel density estimate, with noise of covariance exp(-|x - y|_1 / length): H^1 and its products.

    The squared norm of a bump of bandwidth h is N = (1/length + length / (2 h^2)) / (4 sqrt(pi) h), and two bumps have
    an inner product of at least -N a, a = exp(-(1 + A/B)) B/A with A/B = 1/2 + (h/length)^2: so that in one dimension
    the sensitivity is sqrt(2 N (1 + a)) / size. The path is released at `points` grid points along each coordinate
    and is linear between them. `length` is 1.145 h unless given: the least noise.
    Theorem `density-sobolev`. Source: Hall 2012, 3.3.2.
    """

    kind: ClassVar[str] = "sobolev kde"
    _width: ClassVar[str] = "points"
    bandwidth: float | Sequence[float]
    length: float | Sequence[float] | None = None
    points: int | None = None

    def __post_init__(self) -> None:
        self._check()
        bandwidth = per_axis("bandwidth", self.bandwidth, self.dimension)
        for h, side in zip(bandwidth, self.box.sides, strict=True):
            if not side / 4096 <= h <= 4 * side:
                raise InvalidParameter(
                    parameter="bandwidth", value=h, must="lie between 1/4096 and 4 times the side of the box",
                    hint="public_bandwidth(...) proposes one from public numbers",
                )  # fmt: skip
        given = tuple(BEST_LENGTH * h for h in bandwidth) if self.length is None else self.length
        length = per_axis("length", given, self.dimension)
        for ell, h in zip(length, bandwidth, strict=True):
            if not h / 64 <= ell <= 64 * h:
                raise InvalidParameter(
                    parameter="length", value=ell, must="lie between 1/64 and 64 bandwidths"
                )
        finest = max(side / h for side, h in zip(self.box.sides, bandwidth, strict=True))
        points = (
            math.ceil(POINTS_PER_BANDWIDTH * max(1.0, finest)) + 1 if self.points is None else self.points
        )
        settle(self, bandwidth=bandwidth, length=length, points=whole("points", points, least=2))
        if self.axis_sizes[0] > MOST_POINTS:
            raise InvalidParameter(parameter="points", value=self.points, must=f"be at most {MOST_POINTS}")
        self._check_size()

    @property
    def bandwidths(self) -> tuple[float, ...]:
        """h, one for each coordinate."""
        assert isinstance(self.bandwidth, tuple)
        return self.bandwidth

    @property
    def lengths(self) -> tuple[float, ...]:
        """The length of the noise's covariance, one for each coordinate."""
        assert isinstance(self.length, tuple)
        return self.length

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bandwidth": list(self.bandwidths), "length": list(self.lengths), "points": self.points}

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(
            1 << math.ceil(math.log2(FINENESS * max(1.0, side / h)))
            for side, h in zip(self.box.sides, self.bandwidths, strict=True)
        )

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        assert self.points is not None
        return (self.points,) * self.dimension

    def _norm(self, axis: int) -> Ball:
        """N, the squared norm of a bump on the whole line."""
        h, ell = ball(self.bandwidths[axis]), ball(self.lengths[axis])
        return (1 / ell + ell / (2 * h * h)) / (4 * ball(1).pi().sqrt() * h)

    def _root(self, axis: int) -> float:
        """sqrt(N), rounded up: bumps are divided by it."""
        return upper(lambda: self._norm(axis).sqrt())

    @property
    def height(self) -> float:
        return math.prod(self._root(k) for k in range(self.dimension))

    def _grid(self, axis: int) -> Floats:
        """The grid's points above the lower end: equal steps, however far from 0 the box lies."""
        assert self.points is not None
        return np.linspace(0.0, float(self.box.sides[axis]), self.points)

    def _memory(self, axis: int) -> tuple[float, float]:
        """exp(-step / length), the part of the noise that the next grid point keeps, and the size of what is new."""
        rate = float(self.box.sides[axis]) / (self.axis_sizes[axis] - 1) / self.lengths[axis]
        return math.exp(-rate), math.sqrt(-math.expm1(-2 * rate))

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        """White coordinates of the bumps at x: the first value, then each value's innovation over the one before."""
        h = self.bandwidths[axis]
        memory, fresh = self._memory(axis)
        above = x - self.box.lows[axis]
        bump = np.exp(-0.5 * ((self._grid(axis)[None, :] - above[:, None]) / h) ** 2)
        bump /= math.sqrt(2 * math.pi) * h * self._root(axis)
        out = bump.copy()
        out[:, 1:] -= memory * bump[:, :-1]
        out[:, 1:] /= fresh
        return out

    def _axis_synthesis(self, axis: int, x: Floats) -> Floats:
        (memory, fresh), count = self._memory(axis), self.axis_sizes[axis]
        lag = np.arange(count)[:, None] - np.arange(count)[None, :]
        root = np.where(lag >= 0, memory ** np.maximum(lag, 0).astype(float), 0.0)
        root[:, 1:] *= fresh
        place = (x - self.box.lows[axis]) / float(self.box.sides[axis]) * (count - 1)
        left = np.clip(np.floor(place).astype(int), 0, count - 2)
        share = (place - left)[:, None]
        return np.asarray((1 - share) * root[left] + share * root[left + 1])

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        def against() -> Ball:
            ratio = ball(1) / 2 + (ball(self.bandwidths[axis]) / ball(self.lengths[axis])) ** 2
            return (-(1 + ratio)).exp() / ratio

        return 1.0, upper(against)

    def _one_move(self) -> float | None:
        return None
