"""Kernel density estimates on a circle, cut off at a frequency: the Fourier series of Hall's chapter 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import is_number, members, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, bisected, exact_parameter
from tacit.functions.density_families import DensityFamily, per_axis
from tacit.guarantees import gaussian_budget
from tacit.mechanisms.base import epsilon_parameter
from tacit.mechanisms.fourier import feature_count, fourier_l1, fourier_l2
from tacit.mechanisms.gaussian import delta_parameter

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
        set_fields(self, order=int(self.order))
        given = self.bandwidth if is_number(self.bandwidth) else members("bandwidth", self.bandwidth)
        set_fields(self, bandwidth=per_axis("bandwidth", given, self.dimension))
        margin = exact_parameter("margin", self.margin, positive=False)
        if not 0 <= margin < 0.5:
            raise InvalidParameter(parameter="margin", value=self.margin, must="be at least 0 and below 1/2")
        set_fields(self, margin=float(margin))
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
        """The factor of cosines and sines in phi."""
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


# Noise energies of Fourier series densities in closed form, and how they fall with the number of rows.

MOST_DIMENSIONS = 6
MOST_RATE_ORDER = 256


def _dimension(value: object) -> int:
    d = whole("dimension", value, least=1)
    if d > MOST_DIMENSIONS:
        raise InvalidParameter(parameter="dimension", value=d, must=f"be at most {MOST_DIMENSIONS}")
    return d


def noise_energies(
    *, order: int, size: int, epsilon: Exact, delta: Exact | None = None, dimension: int = 1
) -> dict[str, float]:
    """E of the integral of the squared noise over the unit cube, before smoothing, under replace-one neighbours.

    With N = 2m + 1, D = N^d - 1 and s the L1 sensitivity of one coordinate's features under add-or-remove:
      laplace       2 D (L1 / (n eps))^2, L1 exact for d = 1 and 2 ((1 + sqrt(2) s)^d - 1) for d >= 2
      gamma         D (D + 1) (L2 / (n eps))^2, L2^2 = 2 N^(d-1) (N - min_t D_m(t))
      caratheodory  12 m (5m + 3) / (n eps)^2, d = 1
      gaussian      D (L2 / (n mu))^2, mu the Gaussian privacy of (eps, delta)
    Smoothing multiplies coefficients by at most 1, so that these are bounds for the released curve. `fourier-rates`.
    """
    m, n, d = whole("order", order, least=1), whole("size", size, least=1), _dimension(dimension)
    price = float(epsilon_parameter(epsilon)) * n
    wide, count = float(2 * m + 1), float(2 * m + 1) ** d - 1
    if d == 1:
        l1 = math.sqrt(2) * float(fourier_l1(frequencies=m, replace=True).exact)
    else:
        l1 = 2 * ((1 + math.sqrt(2) * float(fourier_l1(frequencies=m, replace=False).exact)) ** d - 1)
    one = 2 * float(fourier_l2(frequencies=m, replace=True).exact) ** 2
    l2_squared = wide ** (d - 1) * one
    found = {"laplace": 2 * count * (l1 / price) ** 2, "gamma": count * (count + 1) * l2_squared / price**2}
    if d == 1:
        found["caratheodory"] = 12 * m * (5 * m + 3) / price**2
    if delta is not None:
        mu = gaussian_budget(
            epsilon=float(epsilon_parameter(epsilon)), delta=float(delta_parameter(delta))
        ).mu
        found["gaussian"] = count * l2_squared / (n * mu) ** 2
    return found


def noise_rate(mechanism: str, dimension: int) -> Fraction:
    """The power of n in the noise energy with m of order n^(1/(d+4)), up to logarithms; sampling has -4/(d+4).

    Laplace and Gamma: (d-8)/(d+4), above -4/(d+4) from d = 5 on and equal to it at d = 4. Gaussian, and Caratheodory
    noise for d = 1: -8/(d+4), always below. Theorem `fourier-rates`, which corrects Hall 2012, 4.4.1.
    """
    d = _dimension(dimension)
    if mechanism in ("laplace", "gamma"):
        return Fraction(d - 8, d + 4)
    if mechanism == "gaussian" or (mechanism == "caratheodory" and d == 1):
        return Fraction(-8, d + 4)
    if mechanism == "sampling":
        return Fraction(-4, d + 4)
    known = ["caratheodory"] * (d == 1) + ["gamma", "gaussian", "laplace", "sampling"]
    raise UnknownName(what="mechanism", name=str(mechanism), known=known)


def component_laplace_energy(
    *, order: int, bandwidth: float, size: int, epsilon: Exact, decay: float = 0.5
) -> float:
    """The same energy, after smoothing, of the independent-component Laplace process (Lin, Reimherr 2023); d = 1.

    Independent Laplace noise on the smoothed coefficients sqrt(2) lambda_k c_k with scales lambda_k^decay t,
    where t n eps = sup over rows of sum_k |move of the coefficient| / lambda_k^decay, on a fine grid. This is
    for comparisons, not for releases. decay = 1 is Laplace noise on the coefficients before smoothing.
    """
    m, n = whole("order", order, least=1), whole("size", size, least=1)
    if m > MOST_RATE_ORDER:
        raise InvalidParameter(
            parameter="order", value=m, must=f"be at most {MOST_RATE_ORDER} for a comparison"
        )
    power = float(exact_parameter("decay", decay, positive=False))
    weights = periodic_coefficients(m, float(exact_parameter("bandwidth", bandwidth)))
    k = np.arange(1, m + 1)
    step = math.pi / 4 / (24 * m)
    s, t = np.arange(24 * m + 1) * step, np.arange(48 * m + 1) * step
    middle = np.abs(np.cos(np.outer(s, k))) + np.abs(np.sin(np.outer(s, k)))
    apart = 2 * np.abs(np.sin(np.outer(t, k))) * math.sqrt(2) * weights ** (1 - power)
    top = max(float((apart[i : i + 256] @ middle.T).max()) for i in range(0, t.size, 256))
    scale = top / (n * float(epsilon_parameter(epsilon)))
    return float(4 * scale**2 * (weights ** (2 * power)).sum())


def squared_norm_noise(*, dimension: int, epsilon: Exact, delta: Exact) -> tuple[float, float]:
    """Noise of density e^(-gauge^2 / (2 s^2)) for a symmetric body, moves of gauge 1: s, and its energy over K-norm's.

    The loss is at most (gauge + 1/2) / s^2 and gauge / s has the chi distribution, so that it is (epsilon, delta)-
    private if Pr[chi_d > epsilon s - 1/(2s)] <= delta. The ratio of the energies is s^2 epsilon^2 / (d + 1),
    above d / (d + 1) for every small delta. By this argument squaring gains nothing for other bodies than
    ellipsoids. In floats: for choosing, not for a release. Theorem `fourier-rates`. Source: Hall 2012, 1.5, who
    proposes it.
    """
    from scipy.special import gammaincc

    d = whole("dimension", dimension, least=1)
    price, miss = float(epsilon_parameter(epsilon)), float(delta_parameter(delta))

    def fails(scale: float) -> bool:
        edge = price * scale - 0.5 / scale
        return edge <= 0 or float(gammaincc(d / 2, edge**2 / 2)) > miss

    most = (math.sqrt(d) + 100) * (1 + 1 / price)
    _, high = bisected(lambda scale: not fails(scale), 1e-6 / price, most, relative=1e-12)
    return high, high**2 * price**2 / (d + 1)
