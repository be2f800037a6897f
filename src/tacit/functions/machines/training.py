"""A machine before it is paid for: public numbers, the noise they ask for, and what that noise is expected to cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.errors import FitFailed, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive, settle, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import down
from tacit.functions.machines.certify import Problem, numerical_floor
from tacit.functions.machines.features import FeatureMap
from tacit.functions.machines.losses import Loss, SmoothLoss
from tacit.functions.machines.released import ReleasedMachine
from tacit.functions.machines.sensitivity import machine_sensitivity
from tacit.functions.machines.solvers import solve
from tacit.guarantees import GaussianDP, Neighbours, gaussian_budget
from tacit.mechanisms import L2, RoundedGaussian, on_grid
from tacit.noise.source import Source

__all__ = ["MachinePlan", "balanced_penalty"]


SHARE_OF_THE_SOLVER = 0.01
EXPECTED_NORM = 4.0
CROWD = 2.0**20
"""The grid is fine enough for so many times `size` rows: rounding must not fail where `size` is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """The minimiser of (1/size) sum loss + penalty |w|^2, with Gaussian noise on its weights; no row has been read.

    Guarantee: GaussianDP(mu = sensitivity / noise_std), exactly: the weights are released on a grid, with noise that
    is drawn exactly. The sensitivity counts the solver's `tolerance`, a public number: training runs until a certified
    gap is below it, and neither price nor noise depend on what was reached.
    Assumption: `size` is public (the number of rows, under replace-one neighbours). Theorems `machine-sensitivity`,
    `machine-gap`, `rounded-gaussian`. Source: Hall 2012, 3.3.3; Bousquet, Elisseeff 2002.
    """

    loss: Loss
    features: FeatureMap
    penalty: float
    size: int
    mu: float
    heads: int = 1
    rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for name, kind in (("loss", Loss), ("features", FeatureMap)):
            if not isinstance(getattr(self, name), kind):
                raise InvalidParameter(
                    parameter=name, value=type(getattr(self, name)).__name__, must=f"be a {kind.__name__}"
                )
        settle(
            self,
            penalty=positive("penalty", self.penalty),
            size=whole("size", self.size),
            mu=positive("mu", self.mu),
            heads=whole("heads", self.heads),
            rows=whole("rows", self.rows),
            neighbours=Neighbours.parse(self.neighbours),
            tolerance=self._tolerance() if self.tolerance is None else self._given(self.tolerance),
        )

    @classmethod
    def for_target(
        cls,
        *,
        epsilon: Exact,
        delta: Exact,
        loss: Loss,
        features: FeatureMap,
        size: int,
        penalty: float | None = None,
        heads: int = 1,
        rows: int = 1,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        tolerance: float | None = None,
    ) -> MachinePlan:
        """The plan with the least noise whose exact curve has delta(epsilon) <= delta.

        Without a penalty, the one that balances the noise's cost against that of a function of norm 4.
        """
        mu = gaussian_budget(epsilon=_below(epsilon, "epsilon"), delta=_below(delta, "delta")).mu
        if penalty is None:
            penalty = balanced_penalty(
                loss=loss, radius=features.radius, size=size, mu=mu, heads=heads, rows=rows
            )
        return cls(
            loss=loss, features=features, penalty=penalty, size=size, mu=mu, heads=heads, rows=rows,
            neighbours=neighbours, tolerance=tolerance,
        )  # fmt: skip

    def _tolerance(self) -> float:
        """So small that it adds a hundredth to the sensitivity, unless floats cannot certify that."""
        exact = machine_sensitivity(
            lipschitz=self.loss.lipschitz, radius=self.features.radius, penalty=self.penalty, size=self.size,
            rows=self.rows, neighbours=self.neighbours,
        )  # fmt: skip
        return max(self.penalty * (SHARE_OF_THE_SOLVER * exact / 2) ** 2, self.least_tolerance)

    @property
    def least_tolerance(self) -> float:
        """The least tolerance that floats can certify, from public numbers alone."""
        return numerical_floor(
            loss=self.loss, penalty=self.penalty, dimension=self.features.dimension, radius=self.features.radius,
            rounding=self.features.rounding, size=self.size,
        )  # fmt: skip

    def _given(self, tolerance: float) -> float:
        """A tolerance below the one taken without it is refused: it saves a hundredth of the noise at most.

        What floats certify depends on the number of rows, which may be above the declared size: near the floor one row
        could decide whether training fails.
        """
        given, least = positive("tolerance", tolerance), self._tolerance()
        if given < least:
            raise InvalidParameter(
                parameter="tolerance", value=given, must=f"be at least {least:.3g} for these features and penalty",
                hint="that is the one taken by itself; below it one row could decide whether training fails",
            )  # fmt: skip
        return given

    @property
    def l2_sensitivity(self) -> float:
        """How far one unit can move all the weights together, the solver's tolerance included."""
        assert self.tolerance is not None
        return machine_sensitivity(
            lipschitz=self.loss.lipschitz,
            radius=self.features.radius,
            penalty=self.penalty,
            size=self.size,
            rows=self.rows,
            neighbours=self.neighbours,
            tolerance=self.tolerance,
            heads=self.heads,
        )

    @property
    def noise_std(self) -> Fraction:
        """Of each weight; at a point x the machine's value gets noise of std noise_std |phi(x)|."""
        return Fraction(self.l2_sensitivity) / Fraction(self.mu)

    @property
    def spacing(self) -> Fraction:
        """The grid of the weights: so fine that rounding to it fits in a quarter of the tolerance."""
        assert self.tolerance is not None
        root = math.sqrt(self.features.dimension)
        if isinstance(self.loss, SmoothLoss):
            steep = CROWD * self.loss.curvature * self.features.radius**2 + 2 * self.penalty
            fine = math.sqrt(self.tolerance * self.penalty) / (4 * root * steep)
        else:
            fine = self.tolerance / (8 * CROWD * root * self.features.radius)
        fine = min(fine, float(self.noise_std) / 2**12)
        return Fraction(2) ** max(math.floor(math.log2(fine)), -900)

    @property
    def mechanism(self) -> RoundedGaussian:
        """The noise on the weights."""
        return RoundedGaussian(
            sensitivity=L2(Fraction(self.l2_sensitivity)),
            noise_std=self.noise_std,
            dimension=self.features.dimension * self.heads,
            spacing=self.spacing,
        )

    @property
    def bound(self) -> GaussianDP:
        """mu-Gaussian privacy, as the mechanism states it."""
        return self.mechanism.bound

    @property
    def event(self) -> Event:
        """One Gaussian release."""
        return self.mechanism.event

    def expected_excess_error(self) -> float:
        """How much the noise raises the expected loss at most, at any point; known before a row is read.

        E loss(f + noise) - loss(f) <= curvature s^2 / 2 for smooth losses and turn s / sqrt(2 pi) for hinges, s the
        noise std of the machine's value. Theorem `machine-excess`.
        """
        assert self.tolerance is not None
        at_a_point = float(self.noise_std) * self.features.radius * (1 + 1e-12)
        rounding = float(self.spacing) * math.sqrt(self.features.dimension) * self.features.radius
        return self.loss.excess(at_a_point) + self.loss.lipschitz * rounding + self.tolerance

    def train(self, rows: Floats, targets: Sequence[Floats]) -> list[Floats]:
        """The true weights, one vector a head, each within the tolerance: never to be shown without noise."""
        assert self.tolerance is not None
        if rows.ndim != 2 or rows.shape[1] != self.features.features or len(targets) != self.heads:
            raise InvalidParameter(
                parameter="rows", value=f"{rows.ndim} dimensions and {len(targets)} targets",
                must=f"be a table with {self.features.features} columns and {self.heads} targets",
            )  # fmt: skip
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        phi = self.features.of(np.where(finite[:, None], rows, 0.0))
        found = []
        for target in targets:
            used = finite & np.isfinite(target)
            problem = Problem(
                loss=self.loss, phi=phi[used], target=np.clip(target[used], -1.0, 1.0), penalty=self.penalty,
                size=self.size, radius=self.features.radius, rounding=self.features.rounding,
            )  # fmt: skip
            weights = _solved(problem, self.tolerance, float(self.spacing))
            if weights is None:
                raise FitFailed
            found.append(weights)
        return found

    def release(
        self, rows: Floats, targets: Sequence[Floats], *, source: Source | None = None
    ) -> ReleasedMachine:
        """Trains on the rows and releases the noisy weights.

        `targets` has one array for each head, with NaN at rows that count as absent; so do rows with a value that is
        not finite. Raises FitFailed, one fixed sentence, where the tolerance was not reached.
        """
        found = self.train(rows, targets)
        noisy = self.mechanism.release(on_grid(np.concatenate(found), spacing=self.spacing), source=source)
        return ReleasedMachine(
            features=self.features,
            weights=noisy.to_floats().reshape(self.heads, self.features.dimension),
            noise_std=float(self.noise_std),
            bound=self.bound,
            loss=self.loss.name,
            penalty=self.penalty,
            publishable=noisy.publishable,
            numerical_delta=noisy.numerical_delta,
        )

    @property
    def words(self) -> dict[str, Any]:
        """The plan in plain values, for a certificate."""
        return {
            "loss": self.loss.name,
            "features": self.features.words,
            "penalty": self.penalty,
            "size": self.size,
            "heads": self.heads,
            "solver_tolerance": self.tolerance,
            "l2_sensitivity": self.l2_sensitivity,
            "noise": self.mechanism.noise_distribution,
        }


def _solved(problem: Problem, tolerance: float, spacing: float) -> Floats | None:
    """The solver's answer; whatever goes wrong inside is the same as not reaching the tolerance."""
    try:
        with np.errstate(all="ignore"):
            return solve(problem, tolerance=tolerance, spacing=spacing)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None


def _below(value: object, name: str) -> float:
    """The largest float that is not above what was asked for."""
    return down(exact_parameter(name, value))


def balanced_penalty(
    *, loss: Loss, radius: float, size: int, mu: float, heads: int = 1, rows: int = 1,
    norm: float = EXPECTED_NORM,
) -> float:  # fmt: skip
    """The penalty that minimises penalty norm^2 + what the noise costs: from public numbers alone."""
    n, loss_slope = whole("size", size), loss.lipschitz
    reach = loss_slope * radius**2 * math.sqrt(whole("heads", heads)) * whole("rows", rows)
    square = positive("norm", norm) ** 2 / radius**2

    def cost(power: float) -> float:
        penalty = math.exp(power)
        return penalty * square + loss.excess(reach / (penalty * n * positive("mu", mu)))

    low, high = math.log(1e-9), math.log(1e6)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if cost(left) < cost(right) else (left, high)
    return float(f"{math.exp((low + high) / 2):.3g}")
