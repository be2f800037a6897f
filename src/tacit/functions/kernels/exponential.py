"""The exponential kernel: the Sobolev space H^1 of an interval, and its tensor products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.balls import Ball, ball
from tacit.exact.checks import settle
from tacit.functions.boxes import Box, as_points
from tacit.functions.kernels.base import (
    LIBRARY,
    UNIT,
    Balls,
    Kernel,
    Spectrum,
    dimension_parameter,
    length_parameter,
)

__all__ = ["ExponentialKernel"]


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
        settle(self, length=length_parameter("length", self.length))
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
