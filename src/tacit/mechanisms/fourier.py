"""Noise for sums of trigonometric features: the least noisy of four mechanisms, and why.

Laplace, Gamma, the difference form of K-norm noise of the Caratheodory body (one dimension), and Gaussian noise where
a delta is asked for: each with its own sensitivity, all exact on their grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import flag, whole
from tacit.exact.integers import real_array
from tacit.exact.rationals import Exact
from tacit.mechanisms.fourier_sensitivity import (
    feature_count,
    fourier_contribution,
    fourier_l1,
    fourier_l2,
)
from tacit.mechanisms.gamma import Gamma
from tacit.mechanisms.knorm import KNorm, KNormDifference
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.sensitivity import L1, L2
from tacit.mechanisms.shapes import Contribution, Gauge
from tacit.noise import EuclideanBall, grid_spacing
from tacit.noise.caratheodory import MOST_FREQUENCIES

__all__ = ["FourierNoise", "fourier_noise", "fourier_spacing"]

FourierMechanism = Laplace | Gamma | KNorm | KNormDifference | RoundedGaussian

_ROOM = 1 + Fraction(1, 1 << 20)
"""Norms of rounded records: floats may decide a tie, so that a feature is off by a 2^-21 of a spacing more."""

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
    """A mechanism for the sums of features, its expected weighted noise energy, and those of the others."""

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

    `replace` says whether neighbours replace a unit (then n is public) or add or remove one; `records` is how many
    records a unit has at most; `weights` are public, one for each feature (all 1 if none are given). `only` takes one
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
            return KNorm.for_epsilon(
                epsilon=epsilon, sensitivity=moved.rounded(spacing=step, records=records), spacing=step
            )
        one = fourier_contribution(frequencies=m, replace=replace)
        several = Contribution(records * one.exact, one.body, replace)
        return KNormDifference.for_epsilon(
            epsilon=epsilon, sensitivity=several.rounded(spacing=step, records=records), spacing=step
        )
    if name == "laplace":
        l1 = fourier_l1(frequencies=m, dimension=d, replace=replace)
        moved_l1 = L1(l1.exact * records).rounded(spacing=step, dimension=count, records=records)
        return Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(moved_l1.exact * _ROOM), spacing=step)
    l2 = fourier_l2(frequencies=m, dimension=d, replace=replace)
    exact_l2 = L2.root(l2.square * records**2).rounded(spacing=step, dimension=count, records=records)
    moved_l2 = L2(exact_l2.exact * _ROOM)
    if name == "gamma":
        return Gamma.for_epsilon(epsilon=epsilon, sensitivity=moved_l2, dimension=count, spacing=step)
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
