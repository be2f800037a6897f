"""Noise for sums of trigonometric features: the least noisy of four mechanisms, and why.

Laplace, Gamma, the difference form of K-norm noise of the Caratheodory body (one dimension), and Gaussian noise where
a delta is asked for: each with its own sensitivity, all exact on their grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, real_array, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, upper
from tacit.mechanisms.base import L1, L2
from tacit.mechanisms.bodies import Contribution, Gauge
from tacit.mechanisms.gaussian import RoundedGaussian
from tacit.mechanisms.knorm import Gamma, KNorm, KNormDifference
from tacit.mechanisms.laplace import Laplace
from tacit.noise import CaratheodoryBody, EuclideanBall, grid_spacing
from tacit.noise.caratheodory import MOST_FREQUENCIES

__all__ = [
    "FourierNoise",
    "fourier_contribution",
    "fourier_l1",
    "fourier_l2",
    "fourier_noise",
    "fourier_spacing",
]

# How far one unit moves a sum of trigonometric features, in each norm that sizes a noise.
#
# Psi(x) = (cos 2 pi k x, sin 2 pi k x)_{k = 1..m} in one dimension; in d >= 2 the products of the orthonormal
# functions 1, sqrt(2) cos, sqrt(2) sin up to frequency m in each coordinate, without the constant. Theorem `fourier-
# sensitivity`.

MOST_COEFFICIENTS = 1 << 17
MOST_SEARCHED = 512
FLOAT_ROOM = 1e-9
"""The float value of a supremum is raised by this relative amount, far above its error of 1e-11."""


def feature_count(*, frequencies: int, dimension: int = 1) -> int:
    """(2m + 1)^d - 1; refused beyond 2^17, or for d > 3."""
    m, d = whole("frequencies", frequencies, least=1), whole("dimension", dimension, least=1)
    if d > 3:
        raise InvalidParameter(
            parameter="dimension", value=d, must="be 1, 2 or 3",
            hint="the number of coefficients grows as (2m + 1)^d; release margins of fewer columns",
        )  # fmt: skip
    if m > MOST_COEFFICIENTS or (2 * m + 1) ** d - 1 > MOST_COEFFICIENTS:
        raise InvalidParameter(
            parameter="frequencies", value=m, must=f"give at most {MOST_COEFFICIENTS} coefficients",
            hint=f"in {d} dimensions that is (2m + 1)^{d} - 1: take a larger bandwidth",
        )  # fmt: skip
    return int((2 * m + 1) ** d - 1)


def fourier_contribution(*, frequencies: int, replace: bool) -> Contribution:
    """Psi(x) is in the Caratheodory body: gauge 1. For the difference form of K-norm noise; d = 1 only."""
    return Contribution(1, CaratheodoryBody(frequencies=frequencies), flag("replace", replace))


def fourier_l2(*, frequencies: int, dimension: int = 1, replace: bool) -> L2:
    """The largest Euclidean length of Psi(x), or of Psi(x) - Psi(y).

    d = 1: sqrt(m), or sqrt(2m - 2 min_t sum_k cos kt). d >= 2, with N = 2m + 1 and D = 1 + 2 sum_k cos kt:
    sqrt(N^d - 1), or sqrt(2 N^(d-1) (N - min D)).
    """
    feature_count(frequencies=frequencies, dimension=dimension)
    m, d = int(frequencies), int(dimension)
    if not flag("replace", replace):
        return L2.root(m if d == 1 else (2 * m + 1) ** d - 1)
    fall = -_least_cosines(m)
    if d == 1:
        return L2.root(2 * m + 2 * fall)
    wide = 2 * m + 1
    return L2.root(2 * wide ** (d - 1) * (wide - 1 + 2 * fall))


def fourier_l1(*, frequencies: int, dimension: int = 1, replace: bool) -> L1:
    """The largest sum of sizes of Psi(x), or of Psi(x) - Psi(y); to 1 in 10^3 in one dimension, m <= 64.

    In d >= 2 it is a bound: (1 + sqrt(2) s)^d - 1 with s the value for one dimension, and twice that under replace-one.
    """
    feature_count(frequencies=frequencies, dimension=dimension)
    m, d = int(frequencies), int(dimension)
    if d == 1:
        return L1(_moved_l1(m) if flag("replace", replace) else _l1(m))
    root_two = Fraction(upper(lambda: ball(2).sqrt()))
    return L1(((1 + root_two * _l1(m)) ** d - 1) * (2 if flag("replace", replace) else 1))


def _squares(m: int) -> int:
    return m * (m + 1) * (2 * m + 1) // 6


def _raised(value: float, slack: float) -> Fraction:
    return Fraction(value * (1 + FLOAT_ROOM) + slack * (1 + FLOAT_ROOM))


@lru_cache(maxsize=128)
def _least_cosines(m: int) -> Fraction:
    """A lower bound of min_t sum_k cos kt, by a grid: at the minimum f' = 0, and |f''| <= sum k^2.

    A grid point within h/2 of it has a value of at most min + (h^2 / 8) sum k^2.
    """
    # Beyond t = 4 pi / (2m + 1) the sum is -1/2 + sin((m + 1/2) t) / (2 sin(t / 2)) >= -1/2 - 1 / (2 sin(t / 2)),
    # which is above the value at 3 pi / (2m + 1); so that the grid covers [0, 4 pi / (2m + 1)];
    # before a quarter of that the sum is at least -1/2, since sin((m + 1/2) t) >= 0.
    end = min(4 * math.pi / (2 * m + 1), math.pi)
    points = 1 << 12
    t = np.linspace(0.0, end, points + 1)[points // 4 :]
    total = np.sin((m + 0.5) * t) / (2 * np.sin(t / 2)) - 0.5
    slack = (end / points) ** 2 / 8 * _squares(m)
    return max(-_raised(-float(total.min()), slack), Fraction(-m))


@lru_cache(maxsize=128)
def _l1(m: int) -> Fraction:
    """sup_x sum_k |cos kx| + |sin kx|: for the signs at the maximum a smooth sum with |f''| <= sqrt(2) sum k^2."""
    if m > MOST_SEARCHED:
        return m * Fraction(upper(lambda: ball(2).sqrt()))
    points = max(256, 32 * m)
    s, h = np.linspace(0.0, math.pi / 4, points + 1), math.pi / 4 / points
    total = np.zeros_like(s)
    for k in range(1, m + 1):
        total += np.abs(np.cos(k * s)) + np.abs(np.sin(k * s))
    return _raised(float(total.max()), h**2 / 8 * math.sqrt(2) * _squares(m))


@lru_cache(maxsize=128)
def _moved_l1(m: int) -> Fraction:
    """sup over x = s + t, y = s - t of sum_k 2 |sin kt| (|cos ks| + |sin ks|), by a grid in s and t.

    For the signs at the maximum it is P(x) - P(y), P a sum of frequencies up to m with |P''| <= sqrt(2) sum k^2, and
    both derivatives are 0 there. A grid point has |s - s*|, |t - t*| <= h/2, so that x and y are off by h at most
    and the value by h^2 sqrt(2) sum k^2. Both factors repeat: s in [0, pi/4], t in [0, pi/2] hold every value.
    """
    most = Fraction(upper(lambda: 2 * ball(2).sqrt() * m))
    if m > MOST_SEARCHED:
        return most
    fine = 24 if m <= 64 else 8
    h = math.pi / 4 / (fine * m)
    k = np.arange(1, m + 1)
    at = np.arange(fine * m + 1) * h
    middle = np.abs(np.cos(np.outer(at, k))) + np.abs(np.sin(np.outer(at, k)))
    best = 0.0
    half = np.arange(2 * fine * m + 1) * h
    for start in range(0, half.size, 512):
        apart = 2.0 * np.abs(np.sin(np.outer(half[start : start + 512], k)))
        best = max(best, float((apart @ middle.T).max()))
    slack = h**2 * math.sqrt(2) * _squares(m)
    return min(_raised(best, slack), most)


FourierMechanism = Laplace | Gamma | KNorm | KNormDifference | RoundedGaussian

_ROOM = 1 + Fraction(1, 1 << 20)
"""For norms of rounded records: floats may decide a tie, which moves a feature by a further 2^-21 of a spacing."""

_WORDS = {
    "laplace": "Laplace noise",
    "gamma": "Gamma (Euclidean Laplace) noise",
    "caratheodory": "noise of the Caratheodory body",
    "gaussian": "Gaussian noise",
}


def fourier_spacing(frequencies: int, *, body: bool = True) -> Fraction:
    """A grid for sums of features on which rounding each record costs less than 1 in 1000 of the noise's scale.

    It is 2^-12, and for noise of the Caratheodory body that over a power of two above m: the box of one spacing has
    gauge 2 sqrt(2) m spacings in it, where a record has 1.
    """
    m = whole("frequencies", frequencies, least=1)
    return Fraction(1, 1 << (12 + (m.bit_length() if flag("body", body) else 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierNoise:
    """A mechanism for the sums of features, its expected weighted noise energy, and the energies of the other
    candidates.
    """

    name: str
    mechanism: FourierMechanism
    energies: dict[str, float]
    reason: str

    @property
    def energy(self) -> float:
        """E sum_a (w_a X_a)^2 for the noise X of the sums."""
        return self.energies[self.name]

    @property
    def spacing(self) -> Fraction:
        """The grid's spacing."""
        return self.mechanism.step


def fourier_noise(
    *,
    frequencies: int,
    epsilon: Exact,
    delta: Exact | None = None,
    replace: bool,
    dimension: int = 1,
    records: int = 1,
    weights: npt.ArrayLike | None = None,
    spacing: Exact | None = None,
    only: str | None = None,
) -> FourierNoise:
    """The mechanism with the least expected noise energy E sum_a (w_a X_a)^2 on sums of features.

    `replace` says whether neighbours replace a unit (then n is public) or add or remove one; `records` is the
    largest number of records of a unit; `weights` are public, one for each feature (all 1 by default). `only` takes one
    of "laplace", "gamma", "caratheodory", "gaussian". Every candidate's sensitivity counts the rounding of each
    record to the grid: off by half a spacing and a little in each feature. Theorems `fourier-sensitivity`,
    `k-norm-difference`, `gamma-mechanism`, `discrete-laplace`, `rounded-gaussian`.
    """
    count = feature_count(frequencies=frequencies, dimension=dimension)
    m, d = int(frequencies), int(dimension)
    step = None if spacing is None else grid_spacing(spacing)
    w = _weights(weights, count)
    units, both = whole("records", records, least=1), flag("replace", replace)
    names = _names(m, d, delta)
    if only is not None:
        if not isinstance(only, str) or only not in _WORDS:
            raise InvalidParameter(parameter="only", value=only, must=f"be one of {', '.join(_WORDS)}")
        if only not in names:
            raise InvalidParameter(
                parameter="only", value=only, must=f"be one of {', '.join(names)} here",
                hint="the Caratheodory body is for one dimension, Gaussian noise needs a delta",
            )  # fmt: skip
    made = {
        name: _mechanism(name, m, d, epsilon, delta, both, units, step)
        for name in (names if only is None else [only])
    }
    energies = {name: _energy(mechanism, w) for name, mechanism in made.items()}
    best = min(energies, key=energies.__getitem__)
    return FourierNoise(
        name=best, mechanism=made[best], energies=energies, reason=_reason(best, energies, m, d, only)
    )


def _weights(weights: npt.ArrayLike | None, count: int) -> Floats:
    if weights is None:
        return np.ones(count)
    w = real_array(weights, name="weights").astype(np.float64).ravel()
    if w.size != count or not bool(np.isfinite(w).all()):
        raise InvalidParameter(
            parameter="weights", value=f"{w.size} numbers", must=f"be {count} finite numbers"
        )
    return w


def _names(m: int, d: int, delta: Exact | None) -> list[str]:
    names = ["laplace", "gamma"]
    if d == 1 and m <= MOST_FREQUENCIES:
        names.append("caratheodory")
    return names if delta is None else [*names, "gaussian"]


def _mechanism(
    name: str, m: int, d: int, epsilon: Exact, delta: Exact | None, replace: bool, records: int,
    spacing: Fraction | None,
) -> FourierMechanism:  # fmt: skip
    count = (2 * m + 1) ** d - 1
    step = fourier_spacing(m, body=name == "caratheodory") if spacing is None else spacing
    if name == "caratheodory":
        if m == 1:
            # The body is the disc, which is symmetric: the move itself is in twice the disc.
            moved = Gauge(records * (2 if replace else 1), EuclideanBall(coordinates=2))
            return KNorm.for_target(
                epsilon=epsilon, sensitivity=moved.rounded(spacing=step, records=records), spacing=step
            )
        one = fourier_contribution(frequencies=m, replace=replace)
        several = Contribution(records * one.exact, one.body, replace)
        return KNormDifference.for_target(
            epsilon=epsilon, sensitivity=several.rounded(spacing=step, records=records), spacing=step
        )
    if name == "laplace":
        l1 = fourier_l1(frequencies=m, dimension=d, replace=replace)
        moved_l1 = L1(l1.exact * records).rounded(spacing=step, dimension=count, records=records)
        return Laplace.for_target(epsilon=epsilon, sensitivity=L1(moved_l1.exact * _ROOM), spacing=step)
    l2 = fourier_l2(frequencies=m, dimension=d, replace=replace)
    exact_l2 = L2.root(l2.square * records**2).rounded(spacing=step, dimension=count, records=records)
    moved_l2 = L2(exact_l2.exact * _ROOM)
    if name == "gamma":
        return Gamma.for_target(epsilon=epsilon, sensitivity=moved_l2, dimension=count, spacing=step)
    assert delta is not None
    return RoundedGaussian.for_target(
        epsilon=epsilon, delta=delta, sensitivity=moved_l2, dimension=count, spacing=step
    )


def variances(mechanism: FourierMechanism, count: int) -> Floats:
    """The variance of the noise of each feature's sum; the rounding's part, spacing^2 / 12, is left out."""
    if isinstance(mechanism, Laplace):
        return np.full(count, mechanism.noise_std**2)
    return mechanism.law.variances


def _energy(mechanism: FourierMechanism, w: Floats) -> float:
    return float((w**2 * variances(mechanism, w.size)).sum())


def _reason(best: str, energies: dict[str, float], m: int, d: int, only: str | None) -> str:
    if only is not None:
        return f"{_WORDS[best]}, as asked"
    ordered: Sequence[str] = sorted(energies, key=energies.__getitem__)
    second = ordered[1]
    ratio = energies[second] / energies[best] if energies[best] > 0 else math.inf
    words = f"{_WORDS[best]} has the least expected noise energy of {len(energies)} mechanisms: "
    words += (
        f"that of {_WORDS[second]} is {ratio:.3g} times as large"
        if ratio > 1 + 1e-9
        else f"as {_WORDS[second]}"
    )
    if m == 1 and d == 1:
        return (
            "the body of one frequency is a disc, which is symmetric: its plain K-norm noise is Gamma noise"
        )
    if d > 1:
        return words + f"; for {d} dimensions no exact sampler of the moment body is known"
    return words
