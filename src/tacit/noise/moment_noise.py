"""One coordinate of K-norm noise of the Caratheodory body: its characteristic function is a Pfaffian.

With j, l over -m..-1, 1..m and F_n the Fourier coefficients of (1 - i t cos k theta)^-2,

    phi(t) = Pf[(l - j) F_{j+l}(t)] / Pf[(l - j) F_{j+l}(0)],   F_{nk} = (1 + |n| s) rho^|n| / s^3,

s = sqrt(1 + t^2), rho = i (s - 1) / t, and F_n = 0 where k does not divide n. Theorem `caratheodory-marginals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.exact.arrays import Floats
from tacit.noise.marginal_sums import Inverted, inverted
from tacit.noise.marginals import Marginal

__all__ = ["MomentNoise", "moment_characteristic"]

CELLS = 1 << 22


def moment_characteristic(frequencies: int, place: int, t: Floats) -> Floats:
    """E e^(i t X) for X the real part of the k-th complex coordinate, k = `place`; noise_scale 1, t > 0."""
    m = frequencies
    j = np.array([side * k for k in range(1, m + 1) for side in (-1, 1)])
    order = np.abs(j[:, None] + j[None, :])
    divides, n = order % place == 0, order // place
    # Rows and columns are divided by sqrt(2 |j|), so that the Pfaffian at t = 0 is 1.
    weights = np.where(divides, (j[None, :] - j[:, None]) / (2 * np.sqrt(np.abs(np.outer(j, j)))), 0.0)
    out = np.empty(t.shape)
    block = max(1, CELLS // j.size**2)
    for start in range(0, t.size, block):
        s = np.sqrt(1 + t[start : start + block] ** 2)[:, None, None]
        rho = 1j * (s - 1) / t[start : start + block, None, None]
        matrices = weights * (1 + n * s) / s**3 * rho**n
        size = np.sqrt(np.abs(np.linalg.det(matrices)))
        out[start : start + block] = np.where(_pfaffians(matrices) < 0, -size, size)
    return out


def _pfaffians(matrices: np.ndarray[tuple[int, int, int], np.dtype[np.complex128]]) -> Floats:
    """By elimination of two rows at a time, without exchanges: for the sign; the size is the determinant's root."""
    left, out = matrices.copy(), np.ones(matrices.shape[0], dtype=np.complex128)
    with np.errstate(divide="ignore", invalid="ignore"):
        while left.shape[1]:
            pivot = left[:, 0, 1]
            out = out * pivot
            u, v = left[:, 0, 2:], left[:, 1, 2:]
            outer = v[:, :, None] * u[:, None, :] - u[:, :, None] * v[:, None, :]
            left = left[:, 2:, 2:] + outer / pivot[:, None, None]
    return np.asarray(out.real)


@lru_cache(maxsize=16)
def _law(frequencies: int, place: int, spread: float, sides: int) -> Inverted:
    def characteristic(t: Floats) -> Floats:
        return moment_characteristic(frequencies, place, t) ** sides

    return inverted(characteristic, sides * spread, 1.0, 2 * frequencies, scale=1.0, sides=sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentNoise(Marginal):
    """A coordinate of K-norm noise of the Caratheodory body, or (`sides` = 2) of the difference of two."""

    frequencies: int
    place: int
    spread: float
    sides: int = 1

    @property
    def error(self) -> float:
        return _law(self.frequencies, self.place, self.spread, self.sides).error

    def _survival(self, z: Floats) -> Floats:
        return _law(self.frequencies, self.place, self.spread, self.sides)._survival(z)

    @property
    def _variance(self) -> float:
        return self.sides * self.spread

    def difference(self) -> Marginal:
        return MomentNoise(
            scale=self.scale,
            frequencies=self.frequencies,
            place=self.place,
            spread=self.spread,
            sides=2 * self.sides,
        )
