"""The distribution of the noise on coefficients, as far as bands need it: standard deviations, and public
simulated draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.noise import CaratheodoryBody, KNormVector, caratheodory_second_moments
from tacit.noise.source import SeededSource


def public_uniforms(count: int, seed: int) -> Floats:
    """Repeatable numbers in (0, 1), for simulations of public numbers and never for a release."""
    words = SeededSource(seed=seed).words(count) >> np.uint64(11)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-53)


def public_normals(shape: tuple[int, ...], seed: int) -> Floats:
    """Standard normal numbers that anybody can draw again."""
    from scipy.special import ndtri

    return np.asarray(ndtri(public_uniforms(math.prod(shape), seed))).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoefficientNoise(ABC):
    """Uncorrelated noise on the coefficients' sums; bands need no more.

    A further distribution needs a class with `kind`, `stds` and `draws`, and a place in `NOISES`.
    """

    kind: ClassVar[str]

    @abstractmethod
    def stds(self, coefficients: int) -> Floats:
        """The standard deviation of each coefficient's noise."""

    @abstractmethod
    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        """Simulated noise, an array (count, coefficients), from public numbers."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """As plain JSON values."""

    def quantile(self, confidence: float) -> float | None:
        """z with Pr[|a . noise| <= z |a| std] = confidence for every vector a; None if no single number has this
        property.
        """
        return None

    def to_record(self) -> dict[str, Any]:
        """kind and parameters."""
        return {"kind": self.kind, **self.parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(CoefficientNoise):
    """Independent normal noise of one standard deviation (rounded to a grid that is far finer)."""

    kind: ClassVar[str] = "gaussian"
    noise_std: float

    def __post_init__(self) -> None:
        set_fields(self, noise_std=positive("noise_std", self.noise_std))

    def stds(self, coefficients: int) -> Floats:
        return np.full(coefficients, self.noise_std)

    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        return self.noise_std * public_normals((count, coefficients), seed)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"noise_std": self.noise_std}

    def quantile(self, confidence: float) -> float | None:
        from scipy.special import ndtri

        return float(ndtri(0.5 + confidence / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(CoefficientNoise):
    """Independent Laplace noise of one scale."""

    kind: ClassVar[str] = "laplace"
    noise_scale: float

    def __post_init__(self) -> None:
        set_fields(self, noise_scale=positive("noise_scale", self.noise_scale))

    def stds(self, coefficients: int) -> Floats:
        return np.full(coefficients, math.sqrt(2) * self.noise_scale)

    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        u = public_uniforms(count * coefficients, seed).reshape(count, coefficients)
        return np.asarray(-self.noise_scale * np.sign(u - 0.5) * np.log1p(-np.abs(2 * u - 1)))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"noise_scale": self.noise_scale}


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanLaplaceNoise(CoefficientNoise):
    """A direction uniform on the sphere, a length with the Gamma(m, noise_scale) distribution."""

    kind: ClassVar[str] = "euclidean laplace"
    noise_scale: float

    def __post_init__(self) -> None:
        set_fields(self, noise_scale=positive("noise_scale", self.noise_scale))

    def stds(self, coefficients: int) -> Floats:
        # E r^2 = m (m + 1) scale^2, shared by m coordinates.
        return np.full(coefficients, self.noise_scale * math.sqrt(coefficients + 1))

    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        from scipy.special import gammaincinv

        z = public_normals((count, coefficients), seed)
        length = gammaincinv(coefficients, public_uniforms(count, seed + 1)) * self.noise_scale
        return np.asarray(z * (length / np.sqrt((z**2).sum(axis=1)))[:, None])

    @property
    def parameters(self) -> dict[str, Any]:
        return {"noise_scale": self.noise_scale}


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierSeriesNoise(CoefficientNoise):
    """Noise on the sums of cosines and sines of a Fourier series; its constant gets none.

    `mechanism` is "laplace", "gamma" (Euclidean Laplace), "caratheodory" (A - B with A, B of density proportional to
    e^(-gauge / noise_scale) in the Caratheodory body; for order 1 that of the disc alone), or "gaussian", whose
    noise_scale is its standard deviation.
    """

    kind: ClassVar[str] = "fourier series"
    mechanism: str
    noise_scale: float
    order: int
    dimension: int = 1

    def __post_init__(self) -> None:
        if self.mechanism not in ("laplace", "gamma", "caratheodory", "gaussian"):
            raise UnknownName(
                what="noise", name=str(self.mechanism), known=("caratheodory", "gamma", "laplace")
            )
        set_fields(self, noise_scale=positive("noise_scale", self.noise_scale))
        set_fields(
            self, order=whole("order", self.order, least=1), dimension=whole("dimension", self.dimension)
        )

    def _inner(self) -> CoefficientNoise:
        if self.mechanism == "gaussian":
            return GaussianNoise(noise_std=self.noise_scale)
        if self.mechanism == "laplace":
            return LaplaceNoise(noise_scale=self.noise_scale)
        return EuclideanLaplaceNoise(noise_scale=self.noise_scale)

    @property
    def _body(self) -> bool:
        return self.mechanism == "caratheodory" and self.order > 1

    def stds(self, coefficients: int) -> Floats:
        d = coefficients - 1
        if not self._body:
            return np.concatenate([[0.0], self._inner().stds(d)])
        each = np.repeat([float(v) / 2 for v in caratheodory_second_moments(self.order)], 2)
        return np.concatenate([[0.0], self.noise_scale * np.sqrt(2 * (d + 1) * (d + 2) * each)])

    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        d = coefficients - 1
        if not self._body:
            noise = self._inner().draws(count, d, seed)
        else:
            noise = self._side(count, seed) - self._side(count, seed + (1 << 40))
        return np.concatenate([np.zeros((count, 1)), noise], axis=1)

    def _side(self, count: int, seed: int) -> Floats:
        m = self.order
        law = KNormVector(body=CaratheodoryBody(frequencies=m), noise_scale=self.noise_scale)
        needs = law.needs()
        return law.simulate(
            normals=public_normals((count, needs.normals), seed),
            exponentials=-np.log(public_uniforms(count * needs.exponentials, seed + 1)).reshape(
                count, needs.exponentials
            ),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "noise_scale": self.noise_scale,
            "order": self.order,
            "dimension": self.dimension,
        }

    def quantile(self, confidence: float) -> float | None:
        return self._inner().quantile(confidence) if self.mechanism == "gaussian" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLaplaceNoise(CoefficientNoise):
    """Noise on the sums of cosines and sines in Pólya shares of several holders; the constant gets none.

    `shape` whole Laplace noises, not always a whole number: the difference of two Gamma(shape) variables.
    """

    kind: ClassVar[str] = "laplace in shares"
    noise_scale: float
    shape: float

    def __post_init__(self) -> None:
        set_fields(
            self, noise_scale=positive("noise_scale", self.noise_scale), shape=positive("shape", self.shape)
        )

    def stds(self, coefficients: int) -> Floats:
        return np.concatenate(
            [[0.0], np.full(coefficients - 1, math.sqrt(2 * self.shape) * self.noise_scale)]
        )

    def draws(self, count: int, coefficients: int, seed: int) -> Floats:
        from scipy.special import gammaincinv

        size = count * (coefficients - 1)
        sides = [
            gammaincinv(self.shape, public_uniforms(size, seed + (side << 40))) * self.noise_scale
            for side in (0, 1)
        ]
        noise = (sides[0] - sides[1]).reshape(count, coefficients - 1)
        return np.concatenate([np.zeros((count, 1)), noise], axis=1)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"noise_scale": self.noise_scale, "shape": self.shape}


NOISES: dict[str, type[CoefficientNoise]] = {
    c.kind: c
    for c in (GaussianNoise, LaplaceNoise, EuclideanLaplaceNoise, FourierSeriesNoise, SharedLaplaceNoise)
}


def noise_from_record(record: Any) -> CoefficientNoise:
    """The noise that a record describes, through a closed table."""
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        raise InvalidParameter(parameter="noise", value=type(record).__name__, must="be a table with a kind")
    if record["kind"] not in NOISES:
        raise UnknownName(what="noise", name=record["kind"], known=NOISES)
    try:
        return NOISES[record["kind"]](**{k: v for k, v in record.items() if k != "kind"})
    except TypeError:
        raise InvalidParameter(
            parameter="noise", value=sorted(record), must=f"have the fields of {record['kind']!r}"
        ) from None
