"""Kernel density estimates with the Gaussian kernel, as white coordinates of their own Gaussian process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Ball, ball, upper
from tacit.functions.density_families import MOST_COEFFICIENTS, DensityFamily, per_axis

GAP = 8.0
"""The circle is longer than the box by this many bandwidths, so that kernels around it meet with less than e^-32."""
TAIL = 2.0**-24
FINENESS = 32
WRAPPED = 1 + 1e-13
"""At least the wrapped kernel at 0: 1 + 2 e^-32 + ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKDE(DensityFamily):
    """f_D(x) = (1 / size) sum_i prod_k exp(-(x_k - x_ik)^2 / (2 h_k^2)) / (sqrt(2 pi) h_k), h the bandwidth.

    phi are the Fourier coordinates of the kernel on a circle that is 8 bandwidths longer than the box, so that noise
    on them is the Gaussian process with the Gaussian kernel, and |phi(x) - phi(y)| <= sqrt(2). Coordinates with
    a joint share of the kernel below 2^-24 are omitted (`truncation`). In RKHS terms the sensitivity is sqrt(2)
    / (size (2 pi)^(d/2) prod h_k) for a replaced row and a root of 2 less for an added one. Theorem
    `density-kde`. Source: Hall 2012, 3.3.1.
    """

    kind: ClassVar[str] = "gaussian kde"
    _width: ClassVar[str] = "bandwidth"
    bandwidth: float | Sequence[float]

    def __post_init__(self) -> None:
        self._check()
        bandwidth = per_axis("bandwidth", self.bandwidth, self.dimension)
        for h, side in zip(bandwidth, self.box.sides, strict=True):
            if not side / 4096 <= h <= 4 * side:
                raise InvalidParameter(
                    parameter="bandwidth", value=h, must="lie between 1/4096 and 4 times the side of the box",
                    hint="public_bandwidth(...) proposes one from public numbers",
                )  # fmt: skip
        set_fields(self, bandwidth=bandwidth)
        self._check_size()

    @property
    def bandwidths(self) -> tuple[float, ...]:
        """h, one for each coordinate."""
        assert isinstance(self.bandwidth, tuple)
        return self.bandwidth

    @property
    def parameters(self) -> dict[str, Any]:
        return {"bandwidth": list(self.bandwidths)}

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(
            1 << math.ceil(math.log2(FINENESS * max(1.0, side / h)))
            for side, h in zip(self.box.sides, self.bandwidths, strict=True)
        )

    @property
    def height(self) -> float:
        return math.prod(1 / (math.sqrt(2 * math.pi) * h) for h in self.bandwidths)

    def _period(self, axis: int) -> float:
        return float(self.box.sides[axis]) + GAP * self.bandwidths[axis]

    def _around(self, axis: int) -> float:
        """The length of the interval over which squares are integrated."""
        return self._period(axis)

    def _weights(self, axis: int) -> Floats:
        """c_0, c_1, ... of the wrapped kernel; the sum over the rest is below a share of the allowed tail."""
        ratio = self.bandwidths[axis] / self._period(axis)
        wanted = TAIL / (4 * self.dimension)
        last = math.ceil(math.sqrt(math.log(8 / wanted) / 2) / (math.pi * ratio)) + 1
        return np.asarray(
            math.sqrt(2 * math.pi) * ratio * np.exp(-2 * (math.pi * ratio * np.arange(last)) ** 2)
        )

    def _axis_weights(self, axis: int) -> Floats:
        """The squares of phi's sizes: c_0, then 2 c_j for a cosine and for a sine."""
        c = self._weights(axis)
        return np.concatenate([c[:1], np.repeat(2 * c[1:], 2)])

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(2 * self._weights(k).size - 1 for k in range(self.dimension))

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        root = np.sqrt(self._weights(axis))
        turn = (x - self.box.lows[axis]) / self._period(axis)
        angle = 2 * math.pi * np.mod(np.outer(turn, np.arange(1, root.size)), 1.0)
        out = np.empty((x.size, 2 * root.size - 1))
        out[:, 0] = root[0]
        out[:, 1::2] = math.sqrt(2) * root[1:] * np.cos(angle)
        out[:, 2::2] = math.sqrt(2) * root[1:] * np.sin(angle)
        return out

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        """The wrapped kernel lies between 0 and 1 + 2 e^-32 + ...; leaving coordinates out shortens differences."""
        return WRAPPED, 0.0

    def _one_move(self) -> float | None:
        return None

    def _kept(self) -> npt.NDArray[np.int64] | None:
        return None if self.dimension == 1 else _largest(self)

    @property
    def truncation(self) -> float:
        """The largest distance from the curve of the whole kernel, at any point, per unit of mass."""
        return self.height * (TAIL + self.dimension * 2.0**-40)

    def square_weights(self) -> Floats:
        """g such that the integral of f_D^2 = sum_j g_j w_j^2 / size^2, over the circle; over the box if reflected."""
        parts = [self._axis_weights(k)[None, :] for k in range(self.dimension)]
        halves = [p.copy() for p in parts]
        for half in halves:
            half[:, 1:] /= 2
        around = math.prod(self._around(k) for k in range(self.dimension))
        return np.asarray(self.height**2 * around * self._products(halves)[0])

    def pair_range(self, size: int) -> tuple[float, float]:
        """The least and largest (size - 1)/size B2(x, y) - 2 B(x, y), B the bump of x at y and B2 their product's area.

        With u = exp(-|x - y|^2 / (4 h^2)) in [0, 1]: height (r u - 2 u^2), r = 2^(-d/2) (size - 1)/size.
        """
        r = 2 ** (-self.dimension / 2) * (size - 1) / size
        inexact = 4 * self.height * (TAIL + 2.0**-40)
        return self.height * (r - 2) - inexact, self.height * r * r / 8 + inexact

    def square_top(self) -> float:
        """sup B2(x, x)."""
        return self.height * 2 ** (-self.dimension / 2) * WRAPPED**self.dimension * (1 + TAIL)


@lru_cache(maxsize=16)
def _largest(family: GaussianKDE) -> npt.NDArray[np.int64]:
    """The products with the largest weights, until the rest is below the tail; waves stay together with their pair."""
    sizes = family.axis_sizes
    if math.prod(float(s) for s in sizes) > 1 << 24:
        raise _too_many(family, math.prod(float(s) for s in sizes))
    weights = family._axis_weights(0)
    for k in range(1, family.dimension):
        weights = np.multiply.outer(weights, family._axis_weights(k)).ravel()
    order = np.argsort(-weights, kind="stable")
    rest = weights.sum() - np.cumsum(weights[order])
    count = int(np.searchsorted(-rest, -TAIL / 2)) + 1
    # All products with a weight as large as the last one stay: a set that sums to the same for every row.
    edge = weights[order[min(count, order.size) - 1]] * (1 - 1e-9)
    kept = np.flatnonzero(weights >= edge)
    if kept.size > MOST_COEFFICIENTS:
        raise _too_many(family, kept.size)
    index = np.stack(np.unravel_index(kept, sizes), axis=1).astype(np.int64)
    index.setflags(write=False)
    return index


def _too_many(family: GaussianKDE, count: float) -> InvalidParameter:
    return InvalidParameter(
        parameter="bandwidth", value=family.bandwidths, must=f"need at most {MOST_COEFFICIENTS} coefficients",
        hint=f"these need about {count:.2g}; a wider bandwidth, or fewer dimensions, need fewer",
    )  # fmt: skip


# Kernel density estimates whose kernel is reflected at the edges of the box: no mass leaves it.

WIDEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectedKDE(GaussianKDE):
    """The Gaussian kernel density estimate with every bump's part outside of the box folded back at its edges.

    For densities that do not fall to 0 at the edges, of which the plain estimate shows half. The kernel is up to
    2^d times as high in a corner as inside, so that the sensitivity is 2^(d/2) times that of `GaussianKDE`:
    sqrt(2) 2^(d/2) / (size (2 pi)^(d/2) prod h_k). The curve has the integral one before noise, exactly.
    Theorem `density-kde`.
    """

    kind: ClassVar[str] = "reflected kde"

    def __post_init__(self) -> None:
        GaussianKDE.__post_init__(self)
        for h, side in zip(self.bandwidths, self.box.sides, strict=True):
            if h > side / WIDEST:
                raise InvalidParameter(
                    parameter="bandwidth", value=h, must=f"be at most 1/{WIDEST} of the side of the box"
                )

    def _period(self, axis: int) -> float:
        return 2 * float(self.box.sides[axis])

    def _around(self, axis: int) -> float:
        return float(self.box.sides[axis])

    def _axis_weights(self, axis: int) -> Floats:
        """The squares of phi's sizes: 2 c_0, then 4 c_j for a cosine."""
        c = self._weights(axis)
        return np.concatenate([2 * c[:1], 4 * c[1:]])

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(self._weights(k).size for k in range(self.dimension))

    def _axis_features(self, axis: int, x: Floats) -> Floats:
        turn = (x - self.box.lows[axis]) / self._period(axis)
        angle = 2 * math.pi * np.mod(np.outer(turn, np.arange(self.axis_sizes[axis])), 1.0)
        return np.asarray(np.sqrt(self._axis_weights(axis)) * np.cos(angle))

    def _axis_kernel(self, axis: int) -> tuple[float, float]:
        """The largest and the least value: two images of a row can meet at an edge, and no value is negative."""
        return 2 * WRAPPED, 0.0

    @property
    def truncation(self) -> float:
        return float(2**self.dimension) * self.height * (TAIL + self.dimension * 2.0**-40)

    def pair_range(self, size: int) -> tuple[float, float]:
        """At least -2 sup B, at most sup B2."""
        top = self.height * (2 * WRAPPED) ** self.dimension
        inexact = 4 * self.height * (TAIL + 2.0**-40)
        return -2 * top - inexact, self.square_top() + inexact

    def square_top(self) -> float:
        return GaussianKDE.square_top(self) * float(2**self.dimension)


# Kernel density estimates with noise from the Sobolev space H^1: rough paths, known at the points of a grid.

SOBOLEV_FINENESS = 32
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
        set_fields(self, bandwidth=bandwidth, length=length, points=whole("points", points, least=2))
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
            1 << math.ceil(math.log2(SOBOLEV_FINENESS * max(1.0, side / h)))
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
        """exp(-step / length), the part of the noise that the next grid point keeps, and the size of the new part."""
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
