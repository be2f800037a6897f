"""A density before it is paid for: public numbers, the noise that they ask for, and what that noise costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down
from tacit.functions.bases.families import SPACING, DensityFamily
from tacit.functions.bases.rows import OUTSIDE, as_rows
from tacit.functions.densities.noises import (
    CoefficientNoise,
    EuclideanLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
)
from tacit.functions.densities.released import ReleasedDensity
from tacit.guarantees import Bound, Neighbours, gaussian_budget
from tacit.mechanisms import L1, L2, Gamma, Laplace, RoundedGaussian
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source

__all__ = ["MECHANISMS", "DensityPlan"]

MECHANISMS = ("gaussian", "laplace", "gamma")
CHECKED_POINTS = {1: 65, 2: 9, 3: 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityPlan:
    """A density of a public family from `size` rows, with noise on its coefficients; no row has been read.

    Guarantee: with `mechanism="gaussian"`, GaussianDP(mu) for the whole curve, however often and wherever it is read;
    with "laplace" or "gamma", Pure(epsilon). Exactly: sums are integers on a grid, and the noise is drawn exactly.
    Assumptions: `size` is public: the number of rows under replace-one neighbours, any public number near it under
    add-or-remove (a released count). A unit has at most `rows` rows. A row outside of the box is moved to its edge, or
    counts as absent, as `outside` says; so does a row with a value that is no number.
    Theorems `density-lattice`, `density-kde`, `density-sobolev`, `rounded-gaussian`, `laplace`, `gamma-mechanism`.
    Source: Hall 2012, 3.1.1 and 3.3.
    """

    family: DensityFamily
    size: int
    mu: float | None = None
    epsilon: Exact | None = None
    mechanism: str = "gaussian"
    rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    outside: str = "edge"

    def __post_init__(self) -> None:
        if not isinstance(self.family, DensityFamily):
            raise InvalidParameter(
                parameter="family", value=type(self.family).__name__, must="be a family of densities"
            )
        for name, known in (("mechanism", MECHANISMS), ("outside", OUTSIDE)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in known:
                raise InvalidParameter(parameter=name, value=given, must=f"be one of {', '.join(known)}")
        wanted, other = ("mu", "epsilon") if self.mechanism == "gaussian" else ("epsilon", "mu")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise InvalidParameter(
                parameter=wanted, value=getattr(self, wanted), must=f"be given, and {other} not",
                hint="Gaussian noise is sized by mu (or by for_target), Laplace and Gamma noise by epsilon",
            )  # fmt: skip
        settle(self, size=whole("size", self.size), rows=whole("rows", self.rows))
        settle(self, neighbours=Neighbours.parse(self.neighbours))
        if self.mu is not None:
            settle(self, mu=positive("mu", self.mu))
        else:
            epsilon_parameter(self.epsilon)
            settle(self, epsilon=self.epsilon)

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        family: DensityFamily,
        size: int,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        outside: str = "edge",
    ) -> DensityPlan:
        """The plan with the least Gaussian noise whose exact curve has delta(epsilon) <= delta."""
        least = {
            "epsilon": down(exact_parameter("epsilon", epsilon)),
            "delta": down(exact_parameter("delta", delta)),
        }
        mu = gaussian_budget(**least).mu
        return cls(family=family, size=size, mu=mu, rows=rows, neighbours=neighbours, outside=outside)

    @property
    def sensitivity(self) -> L1 | L2:
        """How far one unit can move the sums of coefficients, in the norm that sizes this noise."""
        if self.mechanism == "laplace":
            return L1(Fraction(self.family.l1_sensitivity(self.neighbours)) * self.rows)
        return L2(Fraction(self.family.l2_sensitivity(self.neighbours)) * self.rows)

    @property
    def density_sensitivity(self) -> float:
        """How far one unit can move the curve in the norm of its noise's process: for a kernel, the RKHS sensitivity.

        sqrt(2) / (size (2 pi)^(d/2) h^d) for a Gaussian kernel and a replaced row.
        """
        return float(self.sensitivity.value) * self.family.height / self.size

    @property
    def noise_mechanism(self) -> RoundedGaussian | Laplace | Gamma:
        """The noise on the sums of coefficients."""
        sensitivity = self.sensitivity
        if self.mechanism == "laplace":
            assert isinstance(sensitivity, L1)
            assert self.epsilon is not None
            return Laplace.for_epsilon(epsilon=self.epsilon, sensitivity=sensitivity, spacing=SPACING)
        assert isinstance(sensitivity, L2)
        m = self.family.coefficients
        if self.mechanism == "gamma":
            assert self.epsilon is not None
            return Gamma.for_epsilon(
                epsilon=self.epsilon, sensitivity=sensitivity, dimension=m, spacing=SPACING
            )
        assert self.mu is not None
        std = sensitivity.exact / Fraction(self.mu)
        return RoundedGaussian(sensitivity=sensitivity, noise_std=std, dimension=m, spacing=SPACING)

    @property
    def noise(self) -> CoefficientNoise:
        """The noise's distribution, for bands."""
        mechanism = self.noise_mechanism
        if isinstance(mechanism, RoundedGaussian):
            return GaussianNoise(noise_std=float(mechanism.noise_std))
        if isinstance(mechanism, Laplace):
            return LaplaceNoise(noise_scale=float(mechanism.noise_scale))
        return EuclideanLaplaceNoise(noise_scale=float(mechanism.noise_scale))

    @property
    def bound(self) -> Bound:
        """What the release may reveal."""
        return self.noise_mechanism.bound

    @property
    def event(self) -> Event:
        """What is run, for the accountants and the ledger."""
        return self.noise_mechanism.event

    # --- what it costs, before any row is read ------------------------------------------------------------
    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the curve at points of the box."""
        at = self.family.box.inside(points)
        stds = self.noise.stds(self.family.coefficients) / self.size
        return np.asarray(np.sqrt((self.family.synthesis(at) ** 2) @ stds**2))

    @property
    def noise_std(self) -> float:
        """The largest noise std on a grid of points: for kernels and histograms it is the same everywhere."""
        return float(self.noise_std_at(self._some_points()).max())

    def expected_noise_error(self) -> float:
        """E of the integral of the squared noise over the box: the second part of Hall's (3.1)."""
        variance = self.noise_std_at(self._some_points()) ** 2
        return float(variance.mean()) * self.family.volume

    def expected_error(self, confidence: Exact = 0.95) -> float:
        """The size that the noise stays within at any one point, with this probability (Chebyshev if not normal)."""
        level = float(exact_parameter("confidence", confidence))
        factor = self.noise.quantile(level)
        return self.noise_std * (factor if factor is not None else 1 / math.sqrt(1 - level))

    def _some_points(self) -> Floats:
        box, count = self.family.box, CHECKED_POINTS.get(self.family.dimension, 3)
        # Middles of cells: families that are constant on cells are met once in each.
        inner = (np.arange(count) + 0.5) / count
        axes = [low + side * inner for low, side in zip(box.lows, box.sides, strict=True)]
        return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    def release(self, rows: Any, *, source: Source | None = None) -> ReleasedDensity:
        """Reads the rows once, adds the noise, and keeps nothing else of them."""
        table = as_rows(rows, self.family.dimension)
        if self.neighbours is Neighbours.REPLACE_ONE and self.rows == 1 and table.shape[0] != self.size:
            raise InvalidParameter(
                parameter="rows", value=f"{table.shape[0]} rows", must=f"have {self.size}, as planned",
                hint="under replace-one neighbours the number of rows is public; declare add-or-remove otherwise",
            )  # fmt: skip
        noisy = self.noise_mechanism.release(self.family.sums(table, outside=self.outside), source=source)
        return ReleasedDensity(
            family=self.family,
            values=noisy.values,
            spacing=noisy.spacing,
            size=self.size,
            noise=self.noise,
            bound=self.bound,
            neighbours=self.neighbours,
            rows=self.rows,
            outside=self.outside,
            numerical_delta=noisy.numerical_delta,
            publishable=noisy.publishable,
        )

    @property
    def words(self) -> dict[str, Any]:
        """The plan in plain values, for a certificate."""
        return {
            "family": self.family.describe(),
            "coefficients": self.family.coefficients,
            "size": self.size,
            "rows": self.rows,
            "neighbours": self.neighbours.value,
            "outside": self.outside,
            "sensitivity": float(self.sensitivity.value),
            "noise_std": self.noise_std,
            "noise": self.noise_mechanism.noise_distribution,
        }
