"""The polynomial kernel (offset + <x, y>)^degree on a box."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import non_negative, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, Exact, ball, exact_parameter, upper
from tacit.functions.boxes import Box, as_points
from tacit.functions.kernels.base import (
    LIBRARY,
    UNIT,
    Balls,
    Kernel,
    Spectrum,
    dimension_parameter,
    length_parameter,
    ordinary_size,
    squared_distance,
)

# The exponential kernel: the Sobolev space H^1 of an interval, and its tensor products.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialKernel(Kernel):
    """K(x, y) = exp(-|x - y|_1 / length): H^1 of an interval for d = 1, its d-fold tensor product else.

    Source: Hall 2012, 3.3.2, where 1 / length is called gamma.
    """

    kind: ClassVar[str] = "exponential"
    stationary: ClassVar[bool] = True
    length: float
    dimension: int = 1

    def __post_init__(self) -> None:
        set_fields(self, length=length_parameter("length", self.length))
        dimension_parameter(self, self.dimension)

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length}

    @property
    def gram_error(self) -> float:
        """t e^-t <= 1/2 times the relative error of t, and the exponential's own."""
        return (4 + self.dimension) * UNIT / 2 + LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        total = np.zeros((left.shape[0], right.shape[0]))
        with np.errstate(over="ignore"):
            for axis in range(left.shape[1]):
                total += np.abs(left[:, None, axis] - right[None, :, axis])
            return np.exp(total / -self.length)

    def ball(self, left: Balls, right: Balls) -> Ball:
        distance = sum((abs(x - y) for x, y in zip(left, right, strict=True)), ball(0))
        return (-distance / ball(self.length)).exp()

    def sobolev_squared_norm(
        self,
        function: Callable[[Floats], npt.ArrayLike],
        derivative: Callable[[Floats], npt.ArrayLike],
        box: Box,
        *,
        pieces: int = 256,
    ) -> float:
        """(f(a)^2 + f(b)^2) / 2 + (1/2) int_a^b (length f'^2 + f^2 / length): Hall's (3.7), for d = 1.

        By 16 Gauss-Legendre nodes on each of `pieces` equal parts: for functions that are smooth within them.
        """
        if self.dimension != 1 or box.dimension != 1:
            raise InvalidParameter(parameter="dimension", value=self.dimension, must="be 1 for this formula")
        low, high = box.lows[0], box.highs[0]
        nodes, weights = np.polynomial.legendre.leggauss(16)
        edges = np.linspace(low, high, pieces + 1)
        half = np.diff(edges) / 2
        at = (edges[:-1] + half)[:, None] + half[:, None] * nodes[None, :]
        f, slope = np.asarray(function(at.ravel())), np.asarray(derivative(at.ravel()))
        inside = (self.length * slope**2 + f**2 / self.length).reshape(at.shape)
        ends = np.asarray(function(np.array([low, high])))
        return float((ends**2).sum() / 2 + ((inside @ weights) * half).sum() / 2)

    def _closed_spectrum(self, box: Box, terms: int) -> Spectrum | None:
        """2 length / (1 + (length w)^2), w a root of 1 = length w tan(w a) or of length w = -tan(w a).

        a is half of the interval's length; the eigenfunctions are cosines and sines about its middle.
        """
        if self.dimension != 1:
            return None
        from scipy.optimize import brentq

        a, ell, middle = float(box.sides[0]) / 2, self.length, float(box.middle[0])
        roots = []
        for j in range(terms):
            # One root in each (j pi / 2, (j + 1) pi / 2) of t = w a, cosines for even j and sines for odd j.
            if j % 2 == 0:
                start = j * np.pi / 2
                t = brentq(
                    lambda t: np.cos(t) - t * ell / a * np.sin(t), start, start + np.pi / 2, xtol=1e-15
                )
            else:
                start = j * np.pi / 2
                t = brentq(
                    lambda t: t * ell / a * np.cos(t) + np.sin(t), start, start + np.pi / 2, xtol=1e-15
                )
            roots.append(t / a)
        w = np.array(roots)
        even = np.arange(terms) % 2 == 0
        size = np.sqrt(a + np.where(even, 1, -1) * np.sin(2 * w * a) / (2 * w))

        def functions(points: npt.ArrayLike) -> Floats:
            x = as_points(points, 1)[:, :1] - middle
            return np.asarray(np.where(even, np.cos(w * x), np.sin(w * x)) / size)

        return Spectrum(values=2 * ell / (1 + (ell * w) ** 2), functions=functions, box=box, closed=True)


# The Gaussian kernel exp(-|x - y|^2 / (2 bandwidth^2)).


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKernel(Kernel):
    """K(x, y) = exp(-|x - y|^2 / (2 bandwidth^2)) on R^d; K(x, x) = 1. Source: Hall 2012, 3.3.1."""

    kind: ClassVar[str] = "gaussian"
    stationary: ClassVar[bool] = True
    bandwidth: float
    dimension: int = 1

    def __post_init__(self) -> None:
        set_fields(self, bandwidth=length_parameter("bandwidth", self.bandwidth))
        dimension_parameter(self, self.dimension)

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth}

    @property
    def gram_error(self) -> float:
        """t e^-t <= 1/2 times the relative error of t, and the exponential's own."""
        return (8 + self.dimension) * UNIT / 2 + LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.exp(-0.5 * squared_distance(left, right, 1.0 / self.bandwidth))

    def ball(self, left: Balls, right: Balls) -> Ball:
        square = sum(((x - y) ** 2 for x, y in zip(left, right, strict=True)), ball(0))
        return (-square / (2 * ball(self.bandwidth) ** 2)).exp()


# Matérn kernels of smoothness 1/2, 3/2 and 5/2.

SMOOTHNESS = (Fraction(1, 2), Fraction(3, 2), Fraction(5, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaternKernel(Kernel):
    """K(x, y) = p(r) e^(-r) with r = sqrt(2 smoothness) |x - y| / length.

    p is 1, 1 + r and 1 + r + r^2/3 for smoothness 1/2, 3/2 and 5/2. K(x, x) = 1; positive definite in every dimension.
    """

    kind: ClassVar[str] = "matern"
    stationary: ClassVar[bool] = True
    length: float
    smoothness: Exact
    dimension: int = 1

    def __post_init__(self) -> None:
        set_fields(self, length=length_parameter("length", self.length))
        smoothness = exact_parameter("smoothness", self.smoothness)
        if smoothness not in SMOOTHNESS:
            raise InvalidParameter(
                parameter="smoothness", value=self.smoothness, must="be 1/2, 3/2 or 5/2",
                hint="these have closed forms; GaussianKernel is the limit of ever smoother ones",
            )  # fmt: skip
        set_fields(self, smoothness=float(smoothness))
        dimension_parameter(self, self.dimension)

    @property
    def order(self) -> int:
        """The number of derivatives, and one: the length of the Markov state for d = 1."""
        return int(float(self.smoothness) + 0.5)

    @property
    def sup_diagonal(self) -> float:
        return 1.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"length": self.length, "smoothness": float(self.smoothness)}

    @property
    def gram_error(self) -> float:
        """|r k'(r)| <= 1 for all three kernels, times the relative error of r, plus the error of the factors."""
        return (12 + self.dimension) * UNIT + 2 * LIBRARY

    def _gram(self, left: Floats, right: Floats) -> Floats:
        scale = float(np.sqrt(2 * float(self.smoothness)) / self.length)
        # Beyond 10^4 the exponential is 0 in floats, and infinity times 0 would be no number.
        r = np.minimum(np.sqrt(squared_distance(left, right, scale)), 1e4)
        factor = (1.0, 1.0 + r, 1.0 + r + r * r / 3)[self.order - 1]
        return np.asarray(factor * np.exp(-r), dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        square = sum(((x - y) ** 2 for x, y in zip(left, right, strict=True)), ball(0))
        r = (square.nonnegative_part() * ball(2 * Fraction(self.smoothness))).sqrt() / ball(self.length)
        factor = (ball(1), 1 + r, 1 + r + r * r / 3)[self.order - 1]
        return factor * (-r).exp()


# Periodic kernels in one dimension, with their Fourier coefficients in closed form.

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
        set_fields(self, length=length_parameter("length", self.length))
        set_fields(self, period=length_parameter("period", self.period))
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
        set_fields(self, bandwidth=length_parameter("bandwidth", self.bandwidth))
        set_fields(self, period=length_parameter("period", self.period))
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
        """Each image as the Gaussian kernel, with 6 more roundings; images beyond 9 bandwidths are below 2^-58."""
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


MOST_DEGREE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialKernel(Kernel):
    """K(x, y) = (offset + <x, y>)^degree for x, y in a box: finitely many dimensions, those of the monomials.

    The box is part of the kernel, since K(x, x) has no bound without one.
    """

    kind: ClassVar[str] = "polynomial"
    degree: int
    box: Box
    offset: float = 1.0

    def __post_init__(self) -> None:
        set_fields(self, degree=whole("degree", self.degree), offset=non_negative("offset", self.offset))
        if self.degree > MOST_DEGREE:
            raise InvalidParameter(parameter="degree", value=self.degree, must=f"be at most {MOST_DEGREE}")
        if not isinstance(self.box, Box):
            raise InvalidParameter(parameter="box", value=type(self.box).__name__, must="be a Box")
        if max(abs(v) for v in (*self.box.lows, *self.box.highs, self.offset)) > 2.0**10:
            raise InvalidParameter(
                parameter="box", value=(self.box.lows, self.box.highs), must="lie within 1024 of 0",
                hint="rescale the columns; powers of large numbers drown the noise's grid",
            )  # fmt: skip
        ordinary_size(self)

    @property
    def dimension(self) -> int:
        return self.box.dimension

    @property
    def sup_diagonal(self) -> float:
        far = [max(abs(a), abs(b)) for a, b in zip(self.box.lows, self.box.highs, strict=True)]
        return upper(lambda: (ball(self.offset) + sum((ball(v) ** 2 for v in far), ball(0))) ** self.degree)

    @property
    def parameters(self) -> dict[str, Any]:
        low, high = list(self.box.lows), list(self.box.highs)
        return {"degree": self.degree, "offset": self.offset, "low": low, "high": high}

    @property
    def gram_error(self) -> float:
        """degree times the relative error of a sum of d + 1 products of sizes at most sup K^(1/degree)."""
        return (2 * self.degree * (self.dimension + 2) * UNIT + LIBRARY) * self.sup_diagonal

    def check_domain(self, points: Floats) -> None:
        self.box.inside(points)

    def _gram(self, left: Floats, right: Floats) -> Floats:
        return np.asarray((self.offset + left @ right.T) ** self.degree, dtype=np.float64)

    def _diagonal(self, points: Floats) -> Floats:
        return np.asarray((self.offset + (points * points).sum(axis=1)) ** self.degree, dtype=np.float64)

    def ball(self, left: Balls, right: Balls) -> Ball:
        return (
            ball(self.offset) + sum((x * y for x, y in zip(left, right, strict=True)), ball(0))
        ) ** self.degree
