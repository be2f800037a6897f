"""Kernel density estimates on a circle, cut off at a frequency: the Fourier series of Hall's chapter 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, settle
from tacit.exact.rationals import exact_parameter
from tacit.functions.bases.families import DensityFamily, per_axis
from tacit.mechanisms.fourier_sensitivity import feature_count

__all__ = ["FourierKDE", "periodic_coefficients"]

CELLS = {1: (4096, 64), 2: (512, 16), 3: (128, 16)}
MOST_CELLS = 1 << 16
MOST_ORDER = 2048


def periodic_coefficients(order: int, bandwidth: float) -> Floats:
    """lambda_j = exp(-2 pi^2 j^2 h^2), j = 1..order: the periodic Gaussian kernel on a circle of length one.

    Hall 2012, 4.3, prints exp(-2 j^2 h^2); his Lemma 4.3.1 gives this. Theorem `fourier-series-density`.
    """
    return np.asarray(np.exp(-2.0 * (np.pi * bandwidth * np.arange(1, order + 1)) ** 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierKDE(DensityFamily):
    """A kernel density estimate with the periodic Gaussian kernel, from the frequencies up to `order` on each side.

    The box is mapped into [margin, 1 - margin]^d of a circle of length one, so that bumps do not go round it. In one
    dimension phi = (1, cos 2 pi k u, sin 2 pi k u), in more the products of 1, sqrt(2) cos, sqrt(2) sin; the curve
    weighs them by lambda_k = exp(-2 pi^2 k^2 h^2), h = `bandwidth` (in the box's unit) on the circle. The first
    coefficient is the number of rows. Theorem `fourier-series-density`. Source: Hall 2012, 4.3.
    """

    kind: ClassVar[str] = "fourier kde"
    order: int
    bandwidth: float | Sequence[float]
    margin: float = 0.0625

    def __post_init__(self) -> None:
        self._check()
        if self.dimension > 3:
            raise InvalidParameter(
                parameter="domain", value=f"{self.dimension} dimensions", must="have at most 3",
                hint="the number of coefficients grows as (2 order + 1)^d; release margins of fewer columns",
            )  # fmt: skip
        feature_count(frequencies=self.order, dimension=self.dimension)
        if self.order > MOST_ORDER:
            raise InvalidParameter(
                parameter="order", value=self.order, must=f"be at most {MOST_ORDER}",
                hint="finer detail than a 2000th of the box needs a smaller box",
            )  # fmt: skip
        settle(self, order=int(self.order))
        given = self.bandwidth if is_number(self.bandwidth) else members("bandwidth", self.bandwidth)
        settle(self, bandwidth=per_axis("bandwidth", given, self.dimension))
        margin = exact_parameter("margin", self.margin, positive=False)
        if not 0 <= margin < 0.5:
            raise InvalidParameter(parameter="margin", value=self.margin, must="be at least 0 and below 1/2")
        settle(self, margin=float(margin))
        for axis in range(self.dimension):
            if not 2.0**-20 <= self.circle_bandwidth(axis) <= 4.0:
                raise InvalidParameter(
                    parameter="bandwidth",
                    value=self.bandwidth,
                    must="lie between 2^-20 and 4 sides of the box",
                )

    def circle_bandwidth(self, axis: int = 0) -> float:
        """h on the circle of length one."""
        assert isinstance(self.bandwidth, tuple)
        return float(self.bandwidth[axis]) * (1 - 2 * self.margin) / float(self.box.sides[axis])

    @property
    def cells(self) -> tuple[int, ...]:
        least, times = CELLS[self.dimension]
        return (min(MOST_CELLS, max(least, 1 << (times * self.order - 1).bit_length())),) * self.dimension

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return (2 * self.order + 1,) * self.dimension

    @property
    def height(self) -> float:
        return math.prod((1 - 2 * self.margin) / float(side) for side in self.box.sides)

    @property
    def parameters(self) -> dict[str, Any]:
        assert isinstance(self.bandwidth, tuple)
        return {"order": self.order, "bandwidth": list(self.bandwidth), "margin": self.margin}

    @property
    def _size(self) -> float:
        """What cosines and sines are multiplied by in phi."""
        return 1.0 if self.dimension == 1 else math.sqrt(2)

    def on_circle(self, axis: int, x: Floats) -> Floats:
        """The place of x on the circle, between margin and 1 - margin."""
        share = (x - self.box.lows[axis]) / float(self.box.sides[axis])
        return np.asarray(self.margin + (1 - 2 * self.margin) * share)

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        u = self.on_circle(axis, x)
        angle = 2 * math.pi * np.mod(np.outer(u, np.arange(1, self.order + 1)), 1.0)
        out = np.empty((u.size, 2 * self.order + 1))
        out[:, 0] = 1.0
        out[:, 1::2] = self._size * np.cos(angle)
        out[:, 2::2] = self._size * np.sin(angle)
        return out

    def axis_weights(self, axis: int) -> Floats:
        """1, and lambda_k twice each."""
        each = periodic_coefficients(self.order, self.circle_bandwidth(axis))
        return np.concatenate([[1.0], np.repeat(each, 2)])

    def _axis_synthesis(self, axis: int, x: Floats) -> Floats:
        out = self._axis_features(axis, x) * self.axis_weights(axis)
        # The kernel is 1 + sum lambda_k (2 cos cos' + 2 sin sin').
        out[:, 1:] *= 2.0 / self._size**2
        return out

    def energy_weights(self) -> Floats:
        """w with: integral over the circle of the noise squared = sum_a (w_a X_a / size)^2, the constant left out."""
        out = self.axis_weights(0)
        for axis in range(1, self.dimension):
            out = np.outer(out, self.axis_weights(axis)).ravel()
        return np.asarray(out[1:] * (math.sqrt(2) if self.dimension == 1 else 1.0))
