"""Kernel density estimates with the Gaussian kernel, as white coordinates of their own Gaussian process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import settle
from tacit.functions.bases.families import (
    MOST_COEFFICIENTS,
    DensityFamily,
    per_axis,
)

__all__ = ["GaussianKDE"]

GAP = 8.0
"""The circle is longer than the box by so many bandwidths: kernels that go round it meet with less than e^-32."""
TAIL = 2.0**-24
FINENESS = 32
WRAPPED = 1 + 1e-13
"""At least the wrapped kernel at 0: 1 + 2 e^-32 + ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKDE(DensityFamily):
    """f_D(x) = (1 / size) sum_i prod_k exp(-(x_k - x_ik)^2 / (2 h_k^2)) / (sqrt(2 pi) h_k), h the bandwidth.

    phi are the Fourier coordinates of the kernel on a circle that is 8 bandwidths longer than the box, so that noise
    on them is the Gaussian process with the Gaussian kernel, and |phi(x) - phi(y)| <= sqrt(2). Coordinates whose share
    of the kernel is below 2^-24 in all are left out (`truncation`). In RKHS terms the sensitivity is
    sqrt(2) / (size (2 pi)^(d/2) prod h_k) for a replaced row and a root of 2 less for an added one.
    Theorem `density-kde`. Source: Hall 2012, 3.3.1.
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
        settle(self, bandwidth=bandwidth)
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
        """How long the interval is over which squares are integrated."""
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
        """How far the curve may lie from that of the whole kernel, at any point, per unit of mass."""
        return self.height * (TAIL + self.dimension * 2.0**-40)

    def square_weights(self) -> Floats:
        """g with integral of f_D^2 = sum_j g_j w_j^2 / size^2, over the circle; over the box if reflected."""
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
