"""The Caratheodory body: the convex hull of the trigonometric moment curve, with an exact uniform sampler.

K_m = conv {Psi(x)}, Psi(x) = (cos 2 pi k x, sin 2 pi k x)_{k = 1..m} in R^(2m); a point is read as the complex
numbers c_k = x_{2k-1} + i x_{2k}. It holds the trigonometric moments of all probability measures on the circle:
c is in K_m exactly if the Hermitian Toeplitz matrix of (1, c_1 .. c_m) is positive semidefinite.

Sampler: Verblunsky coefficients a_1 .. a_m are independent, |a_j|^2 ~ Beta(1, 2 (m - j) + 1) with uniform phases, and
c_k = <e_0, (L M)^k e_0> for the product L M of two block diagonal unitary matrices (Cantero, Moral, Velazquez 2003).
With z_j = two normals and e_j exponential, a_j = z_j / sqrt(2 S_j), S_j = sum_{i >= j} (e_i + |z_i|^2 / 2).
Theorems `caratheodory-sampler`, `caratheodory-inertia`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.arrays import Floats
from tacit.exact.checks import real_array, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure, Reals, root, running
from tacit.exact.rounding import ball, lower, upper
from tacit.noise.bodies import Body
from tacit.noise.grid import Draws, Needs, coordinate_of
from tacit.noise.marginals import Ball as Disc
from tacit.noise.marginals import GammaDifference, Inverted, Marginal, inverted

__all__ = ["CaratheodoryBody", "caratheodory_gauge", "caratheodory_second_moments", "caratheodory_volume"]

# One coordinate of K-norm noise of the Caratheodory body: its characteristic function is a Pfaffian.
#
# With j, l over -m..-1, 1..m and F_n the Fourier coefficients of (1 - i t cos k theta)^-2,
#
#     phi(t) = Pf[(l - j) F_{j+l}(t)] / Pf[(l - j) F_{j+l}(0)],   F_{nk} = (1 + |n| s) rho^|n| / s^3,
#
# s = sqrt(1 + t^2), rho = i (s - 1) / t, and F_n = 0 where k does not divide n. Theorem `caratheodory-marginals`.

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
    """By elimination of two rows at a time, without exchanges, to find the sign; the absolute value is the root of
    the determinant.
    """
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


MOST_FREQUENCIES = 512
LAYER_ERROR = 2.0**-49


@dataclass(frozen=True, slots=True, kw_only=True)
class CaratheodoryBody(Body):
    """Uniform on conv {(cos 2 pi k x, sin 2 pi k x)_{k = 1..m}}, m = `frequencies`, in R^(2m).

    Symmetric only for m = 1, where it is the unit disc. Exact on every grid. Theorem `caratheodory-sampler`.
    Source: Caratheodory 1911 for the body; Killip, Nenciu 2004 for the change of variables. Sharper than
    Hall 2012, 4.4.4, whose random walk inside the body is uniform only in the limit.
    """

    frequencies: int

    def __post_init__(self) -> None:
        set_fields(self, frequencies=frequencies_parameter(self.frequencies))

    @property
    def dimension(self) -> int:
        return 2 * self.frequencies

    @property
    def symmetric(self) -> bool:
        return self.frequencies == 1

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """Half of E |c_k|^2 for both coordinates of c_k. Theorem `caratheodory-inertia`."""
        return tuple(v / 2 for v in caratheodory_second_moments(self.frequencies) for _ in range(2))

    @property
    def covariance(self) -> Floats:
        return np.diag(self.variances)

    def marginal(self, coordinate: int = 0) -> Marginal:
        """Of c_1 only, whose square has the distribution Beta(1/2, 2m - 1/2); other coordinates have no closed form
        here.
        """
        if coordinate_of(coordinate, self) > 1:
            raise NoLaw(
                operation="the law of a later coordinate of the Caratheodory body",
                reason="only c_1, a Verblunsky coefficient, has a closed form",
                hint="the law of K-norm noise of this body has one for every coordinate: KNormVector(...).marginal(i)",
            )
        return Disc(dimension=4 * self.frequencies - 2)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        """The marginal by its characteristic function, a Pfaffian. Theorem `caratheodory-marginals`."""
        k = coordinate_of(coordinate, self) // 2 + 1
        if self.frequencies == 1:
            return GammaDifference(shape=1.5)
        return MomentNoise(
            frequencies=self.frequencies,
            place=k,
            spread=float(self.exact_variances[2 * k - 1]) * (self.dimension + 1) * (self.dimension + 2),
        )

    def needs(self) -> Needs:
        return Needs(normals=2 * self.frequencies, exponentials=self.frequencies)

    def formula(self, draws: Draws) -> Reals:
        z, e = draws.normals(2 * self.frequencies), draws.exponentials(self.frequencies)
        real, imaginary = z[:, 0::2], z[:, 1::2]
        half = (real * real + imaginary * imaginary) * draws.real(Fraction(1, 2))
        sums = running((half + e)[:, ::-1])[:, ::-1]
        size = root(sums * draws.real(Fraction(2)))
        # rho_j^2 = 1 - |a_j|^2 = (S_{j+1} + e_j) / S_j: nothing cancels.
        parts = real / size, imaginary / size, root((_later(sums, draws) + e) / sums)
        return _moments_of_floats(*parts) if isinstance(z, Enclosure) else _moments_of_balls(*parts)


def _later(sums: Reals, draws: Draws) -> Reals:
    """S_{j+1} in the place of S_j, and 0 in the last."""
    if isinstance(sums, Enclosure):
        mid, rad = np.zeros(sums.shape), np.zeros(sums.shape)
        mid[:, :-1], rad[:, :-1] = sums.mid[:, 1:], sums.rad[:, 1:]
        return Enclosure(mid, rad)
    out = np.empty_like(sums)
    out[:, :-1], out[:, -1] = sums[:, 1:], draws.real(Fraction(0))
    return out


def frequencies_parameter(value: object) -> int:
    """m: from 1 to 512, so that a draw needs little memory and its errors stay proved."""
    m = whole("frequencies", value, least=1)
    if m > MOST_FREQUENCIES:
        raise InvalidParameter(
            parameter="frequencies",
            value=value,
            must=f"be at most {MOST_FREQUENCIES}",
            hint="a density that needs more has a bandwidth below a 1000th of its box: take a larger one",
        )
    return m


def _moments_of_floats(real: Enclosure, imaginary: Enclosure, rho: Enclosure) -> Enclosure:
    """Both layers are unitary, so that errors add in the Euclidean norm and never grow.

    A block [[conj a, rho], [rho, -a]] whose entries are off by d and e moves a unit vector by sqrt(|d|^2 + e^2), and
    its four products and two sums in floats by at most 10 2^-53: below LAYER_ERROR. c_k is an entry after 2k layers.
    """
    m = real.shape[1]
    a = real.mid + 1j * imaginary.mid
    conjugate, r = a.conj(), rho.mid
    off = np.sqrt(real.rad**2 + imaginary.rad**2 + rho.rad**2).max(axis=1) * (1 + 2.0**-40)
    vector = np.zeros((a.shape[0], m + 1), dtype=np.complex128)
    vector[:, 0] = 1.0
    mid = np.empty((a.shape[0], 2 * m))
    for k in range(m):
        # Blocks beyond the entries that can be different from 0 after k steps are the identity for c_k.
        reach = min(m, 2 * k + 2)
        for first in (1, 0):
            at = slice(first, reach, 2)
            x, y = vector[:, first:reach:2], vector[:, first + 1 : reach + 1 : 2]
            new = conjugate[:, at] * x + r[:, at] * y
            vector[:, first + 1 : reach + 1 : 2] = r[:, at] * x - a[:, at] * y
            vector[:, first:reach:2] = new
        mid[:, 2 * k], mid[:, 2 * k + 1] = vector[:, 0].real, vector[:, 0].imag
    layers = 2.0 * np.repeat(np.arange(1, m + 1), 2)
    # (1 + s)^layers - 1 <= layers s (1 + layers s) while layers s <= 1; a larger one is unknown.
    once = layers * (LAYER_ERROR + off)[:, None]
    return Enclosure(mid, np.where(once <= 1.0, once * (1 + once) * (1 + 2.0**-40), np.nan))


def _moments_of_balls(real: Any, imaginary: Any, rho: Any) -> Any:
    """The same product in balls; wide balls cost extra bits, never correctness."""
    m = real.shape[1]
    a, r = list(zip(real[0], imaginary[0], strict=True)), list(rho[0])
    vector = [(ball(int(i == 0)), ball(0)) for i in range(m + 1)]
    row = np.empty((1, 2 * m), dtype=object)
    for k in range(m):
        reach = min(m, 2 * k + 2)
        for first in (1, 0):
            for j in range(first, reach, 2):
                (p, q), (u, v), (s, t) = a[j], vector[j], vector[j + 1]
                vector[j] = (p * u + q * v + r[j] * s, p * v - q * u + r[j] * t)
                vector[j + 1] = (r[j] * u - p * s + q * t, r[j] * v - p * t - q * s)
        row[0, 2 * k], row[0, 2 * k + 1] = vector[0]
    return row


def caratheodory_volume(frequencies: int) -> float:
    """pi^m / (2m - 1)!!, to the nearest float or the next: 2^m pi^m m! / (2m)! (Schoenberg 1954)."""
    m = frequencies_parameter(frequencies)
    odd = prod(range(1, 2 * m, 2))
    low, high = (side(lambda: ball(1).pi() ** m / ball(odd)) for side in (lower, upper))
    return (low + high) / 2


def caratheodory_gauge(points: npt.ArrayLike) -> Floats:
    """inf {r > 0 : x in r K_m} of each row: max(0, -(smallest eigenvalue of the Toeplitz matrix of (0, c))).

    In floats, to about 1e-14 of the largest entry: for looking and testing, never for a proof.
    """
    x = np.atleast_2d(real_array(points, name="points"))
    if x.ndim != 2 or x.shape[1] < 2 or x.shape[1] % 2:
        raise InvalidParameter(parameter="points", value=f"shape {x.shape}", must="have 2m columns, m >= 1")
    m = frequencies_parameter(x.shape[1] // 2)
    c = np.zeros((x.shape[0], 2 * m + 1), dtype=np.complex128)
    c[:, m + 1 :] = x[:, 0::2] + 1j * x[:, 1::2]
    c[:, :m] = c[:, :m:-1].conj()
    places = np.arange(m + 1)[None, :] - np.arange(m + 1)[:, None] + m
    out = np.empty(x.shape[0])
    block = max(1, (1 << 22) // (m + 1) ** 2)
    for start in range(0, x.shape[0], block):
        out[start : start + block] = -np.linalg.eigvalsh(c[start : start + block][:, places])[:, 0]
    return np.maximum(out, 0.0)


def caratheodory_second_moments(frequencies: int) -> tuple[Fraction, ...]:
    """E |c_k|^2, k = 1..m, of a uniform point of K_m, exactly; each of its two coordinates has half of it.

    (2m + 2k + 1 + k (H_m - H_{m-k})) / (2 (m + 1)(2m + 1)), H_i = 1 + 1/2 + ... + 1/i. Their sum is
    3m(5m + 3) / (8 (m + 1)(2m + 1)), below 15/16. Means and all other products of two coordinates are 0.
    Theorem `caratheodory-inertia`. It corrects Hall 2012, Prop. 4.4.1, which has 2 / (4m - 3(k - 1)): that is right
    for k = 1 and for m <= 2 only.
    """
    m = frequencies_parameter(frequencies)
    harmonic, out = Fraction(0), []
    for k in range(1, m + 1):
        harmonic += Fraction(1, m - k + 1)
        out.append((2 * m + 2 * k + 1 + k * harmonic) / (2 * (m + 1) * (2 * m + 1)))
    return tuple(out)
