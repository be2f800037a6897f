"""Fourier inversion: a smoothed composed law, repeated periodically, and its curve at any epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.exact.arrays import UNIT
from tacit.pld.certified import CertifiedCurve
from tacit.pld.fourier import times_exp

__all__ = ["FourierInversion", "SmoothedCurve"]


@dataclass(slots=True, eq=False)
class FourierInversion:
    """E k(X - epsilon) under the tilted law, from its transform at the frequencies of its period."""

    step: float
    tilt: float
    bottom: float
    top: float
    log_scale: float
    scale_error: float
    mean: float
    coefficients: NDArray[np.complex128]
    error: float
    """Bound on the sum over all frequencies of the absolute errors of the transform."""
    outside: float = 2.1e-11
    _cache: dict[float, tuple[float, float]] = field(default_factory=dict)

    @property
    def base(self) -> int:
        """The lowest multiple of the step where the curve is searched."""
        return math.floor(self.bottom / self.step)

    @property
    def size(self) -> int:
        """How many multiples of the step are searched."""
        return math.ceil(self.top / self.step) - self.base

    def weigh(self, mass: float, node: int) -> float:
        """Nothing is below round-off here: errors are in the transform."""
        return 0.0 if mass == 0 else math.inf

    def finite_part(self, epsilon: float) -> tuple[float, float]:
        """Enclosure of sum P (1 - e^(epsilon - l))_+ over finite losses l of the smoothed product."""
        if epsilon not in self._cache:
            value, error = self._sum(epsilon)
            shift = self.tilt * epsilon
            exponent = self.log_scale - shift
            margin = self.scale_error + 8 * UNIT * (abs(exponent) + abs(shift) + 4)
            high = times_exp(max(value, 0.0) + error + self.outside, exponent + margin, upward=True)
            low = times_exp(max(value - error - self.outside, 0.0), exponent - margin, upward=False)
            self._cache[epsilon] = (min(low, 1.0), min(high, 1.0))
        return self._cache[epsilon]

    def _sum(self, epsilon: float) -> tuple[float, float]:
        start = max(epsilon, self.bottom)
        length, around, lead = self.top - start, self.top - self.bottom, start - epsilon
        if length <= 0:
            return 0.0, 0.0
        w = np.arange(len(self.coefficients), dtype=np.float64) * (2 * math.pi / around)
        kernel = math.exp(-self.tilt * lead) * _geometric(self.tilt + 1j * w, length)
        kernel -= math.exp(-(self.tilt + 1) * lead) * _geometric(self.tilt + 1 + 1j * w, length)
        terms = self.coefficients * np.exp(1j * w * (self.mean - start)) * kernel
        value = (2 * float(np.sum(terms.real)) - float(terms[0].real)) / around
        weight = min(length, 1 / max(self.tilt * (self.tilt + 1), 1e-300))
        reach = abs(self.mean) + abs(start) + around
        moduli = np.abs(self.coefficients)
        rounding = (
            UNIT * float(np.sum(moduli * (64 + 8 * w * reach))) * min(length, 1 / max(self.tilt, 1e-300))
        )
        return value, (weight * self.error + 4 * rounding) / around + 1e-300


def _geometric(rate: NDArray[Any], length: float) -> NDArray[np.complex128]:
    """Integral of e^(-rate x) over [0, length]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total = -np.expm1(-rate * length) / rate
    return np.asarray(np.where(rate == 0, length, total))


class SmoothedCurve(CertifiedCurve):
    """A solved composition whose curve is read at any epsilon."""

    __slots__ = ()

    def _between(self, epsilon: float, end: int) -> float:
        return self.composed.finite_part(epsilon)[end]  # type: ignore[arg-type]
