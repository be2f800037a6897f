"""Periodic kernels in one dimension, with their Fourier coefficients in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball, upper
from tacit.exact.checks import settle
from tacit.functions.boxes import Box, as_points
from tacit.functions.kernels.base import LIBRARY, UNIT, Balls, Kernel, Spectrum, length_parameter

__all__ = ["PeriodicKernel", "WrappedGaussianKernel"]

MOST_PERIODS = 2.0**40


class _OnCircle(Kernel):
    """K(x, y) = c_0 + 2 sum_{j >= 1} c_j cos(2 pi j (x - y) / period), all c_j positive."""

    __slots__ = ()

    stationary: ClassVar[bool] = True
    period: float

    @property
    def dimension(self) -> int:
        return 1

    def check_domain(self, points: Floats) -> None:
        if bool((np.abs(points) > self.period * MOST_PERIODS).any()):
            raise InvalidParameter(
                parameter="points", value="a point far from 0", must="lie within 2^40 periods of 0"
            )

    def _shift(self, left: Floats, right: Floats) -> Floats:
        """x - y, folded to within 3/4 period of 0: the difference with its error, so that folding loses nothing.

        fmod is exact, and so is the subtraction of one period beyond a half; the last sum is rounded once.
        """
        x, y = left[:, None, 0], right[None, :, 0]
        s = x - y
        part = s - x
        lost = (x - (s - part)) - (y + part)
        near = np.fmod(s, self.period)
        near = near - np.where(np.abs(near) > self.period / 2, np.copysign(self.period, near), 0.0)
        return np.asarray(near + lost, dtype=np.float64)

    def fourier(self, terms: int) -> Floats:
        """c_0 .. c_{terms - 1} in floats."""
        raise NotImplementedError

    def _closed_spectrum(self, box: Box, terms: int) -> Spectrum | None:
        """On a whole period: period c_j, with cosines and sines."""
        if abs(float(box.sides[0]) - self.period) > 1e-12 * self.period:
            return None
        half = terms // 2 + 1
        each = self.fourier(half) * self.period
        frequency = np.repeat(np.arange(half), 2)[1 : terms + 1]
        sine = (np.arange(terms) % 2 == 0) & (np.arange(terms) > 0)
        size = np.where(frequency == 0, 1.0, math.sqrt(2.0)) / math.sqrt(self.period)

        def functions(points: npt.ArrayLike) -> Floats:
            angle = 2 * np.pi * frequency * as_points(points, 1)[:, :1] / self.period
            return np.where(sine, np.sin(angle), np.cos(angle)) * size

        return Spectrum(values=each[frequency], functions=functions, box=box, closed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicKernel(_OnCircle):
    """K(x, y) = exp(-2 sin^2(pi (x - y) / period) / length^2); c_j = e^(-z) I_j(z) with z = 1 / length^2.

    Source: MacKay 1998. The generating function of the Bessel functions I_j gives the coefficients.
    """

    kind: ClassVar[str] = "periodic"
    length: float
    period: float

    def __post_init__(self) -> None:
        settle(self, length=length_parameter("length", self.length))
        settle(self, period=length_parameter("period", self.period))
        if not 2.0**-20 <= self.length <= 2.0**20:
            raise InvalidParameter(parameter="length", value=self.length, must="lie between 2^-20 and 2^20")

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length, "period": self.period}

    def fourier(self, terms: int) -> Floats:
        from scipy.special import ive

        return np.asarray(ive(np.arange(terms), self.length**-2.0), dtype=np.float64)

    @property
    def gram_error(self) -> float:
        """With r = |sin| / length the exponent 2 r^2 moves by 4 r dr, and r e^(-2 r^2) <= 0.31."""
        return 1.25 * (12 * UNIT + LIBRARY) * (1 / self.length + 1) + 2 * LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        sine = np.sin(np.pi * self._shift(left, right) / self.period) / self.length
        return np.exp(-2.0 * sine * sine)

    def ball(self, left: Balls, right: Balls) -> Ball:
        sine = ((left[0] - right[0]) / ball(self.period)).sin_pi() / ball(self.length)
        return (-2 * sine * sine).exp()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedGaussianKernel(_OnCircle):
    """K(x, y) = sum_m exp(-(x - y + m period)^2 / (2 bandwidth^2)): the Gaussian kernel on a circle.

    By Poisson's formula c_j = sqrt(2 pi) (bandwidth / period) exp(-2 (pi j bandwidth / period)^2). On an interval that
    is shorter than the period by 8 bandwidths it differs from the Gaussian kernel by less than 10^-13.
    """

    kind: ClassVar[str] = "wrapped gaussian"
    bandwidth: float
    period: float

    def __post_init__(self) -> None:
        settle(self, bandwidth=length_parameter("bandwidth", self.bandwidth))
        settle(self, period=length_parameter("period", self.period))
        if not self.period / 2.0**24 <= self.bandwidth <= self.period:
            raise InvalidParameter(
                parameter="bandwidth",
                value=self.bandwidth,
                must="lie between 2^-24 of the period and the period",
            )

    @property
    def sup_diagonal(self) -> float:
        return upper(lambda: self._wrapped(ball(0)))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth, "period": self.period}

    def fourier(self, terms: int) -> Floats:
        ratio = self.bandwidth / self.period
        return np.asarray(
            math.sqrt(2 * math.pi) * ratio * np.exp(-2.0 * (np.pi * np.arange(terms) * ratio) ** 2)
        )

    @property
    def _reach(self) -> int:
        return math.ceil(9.0 * self.bandwidth / self.period) + 1

    @property
    def gram_error(self) -> float:
        """Each image as the Gaussian kernel, with 6 roundings more; images beyond 9 bandwidths are below 2^-58."""
        return (2 * self._reach + 1) * (8 * UNIT + LIBRARY) + (2 * self._reach + 2) * UNIT * self.sup_diagonal

    def _gram(self, left: Floats, right: Floats) -> Floats:
        shift = self._shift(left, right)
        total = np.zeros_like(shift)
        for m in range(-self._reach, self._reach + 1):
            total += np.exp(-0.5 * ((shift + m * self.period) / self.bandwidth) ** 2)
        return total

    def ball(self, left: Balls, right: Balls) -> Ball:
        return self._wrapped(left[0] - right[0])

    def _wrapped(self, shift: Ball) -> Ball:
        """theta_3 by its Fourier series, with the tail as a radius: c_j falls faster than a geometric series."""
        import flint

        ratio = ball(self.bandwidth) / ball(self.period)
        rate = -2 * (ball(1).pi() * ratio) ** 2
        first, turn = (2 * ball(1).pi()).sqrt() * ratio, shift / ball(self.period)
        total, bits = ball(1), flint.ctx.prec
        last = (
            math.ceil(math.sqrt((bits + 8) * math.log(2) / 2) / (math.pi * self.bandwidth / self.period)) + 1
        )
        for j in range(1, last + 1):
            total += 2 * (rate * j * j).exp() * (2 * j * turn).cos_pi()
        tail = 2 * (rate * (last + 1) ** 2).exp() / (1 - (rate * (2 * last + 3)).exp())
        return first * (total + flint.arb(0, tail.upper()))
