"""The choice of a mechanism for a model at a price: perturbed objectives beside their rivals, without a row.

    perturbed objective    noise b in the gradient:            Var w_i = std^2 / (h_i + ridge)^2
    output noise           the minimiser moves by M R/ridge:   Var w_i = (M R / (ridge mu))^2
    noisy moments          linear models: X'X, X'y with noise  Var w_i = std^2 (1 + |w|^2/2) / (h_i + ridge)^2
    noisy gradients        T full steps of mu/sqrt(T) each     Var w_i = T std^2 step^2 sum_t (1 - step h_i)^(2t)

All have the same reference table: so many rows of length R, whose curvatures h_i fall like 1/i, and weights that give
the score a variance of 1. The error is the expected excess of the mean loss there, by noise and by penalty or by too
few steps. Every rival has its best ridge or number of steps; the perturbed objectives have the ridge that is run.
For each table and each ridge a perturbed objective has at most the noise of output noise, as h_i >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter
from tacit.functions.models.solvers import Logistic, SmoothLoss
from tacit.guarantees import gaussian_budget
from tacit.mechanisms.objective import ObjectivePerturbation, PerturbedMinimiser
from tacit.mechanisms.pure_objective import PureObjectivePerturbation

REFERENCE_ROWS = 10_000
"""The default number of rows of the reference table."""
STEPS = tuple(2**k for k in range(11))
RIDGES = np.geomspace(1e-3, 1e6, 91)
GAUSSIAN, PURE = "a perturbed objective", "a perturbed objective with pure noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The mechanism that is run, the expected error of every candidate, and why in one line."""

    mechanism: PerturbedMinimiser
    errors: dict[str, float]
    rows: int

    @property
    def reason(self) -> str:
        """The chosen one first, then the others by their error."""
        chosen = PURE if isinstance(self.mechanism, PureObjectivePerturbation) else GAUSSIAN
        others = ", ".join(
            f"{name} {error:.2g}"
            for name, error in sorted(self.errors.items(), key=lambda item: item[1])
            if name != chosen
        )
        return (
            f"{chosen}: expected excess loss {self.errors[chosen]:.2g} on the reference table of {self.rows} rows "
            f"({others})"
        )


def perturbation(
    *, epsilon: Exact, delta: Exact, dimension: int, loss: SmoothLoss, radius: float, rows: int = 1, heads: int = 1,
    ridge: float | None = None, tolerance: float | None = None, reference_rows: int = REFERENCE_ROWS,
) -> ModelChoice:  # fmt: skip
    """The perturbed objective with the least expected error at (epsilon, delta), delta = 0 being pure.

    `radius` bounds the length of a row, `rows` counts rows that are added or taken away between neighbours.
    """
    logistic = isinstance(loss, Logistic)
    given: dict[str, Any] = {
        "epsilon": epsilon, "dimension": dimension, "gradient": loss.lipschitz * radius,
        # The theorem for logistic losses is about radius^2: p (1 - p) is the loss's own.
        "second": (1.0 if logistic else loss.curvature) * radius**2 * (1 + 2.0**-50), "rows": rows,
        "loss": "logistic" if logistic else "bounded", "heads": heads, "ridge": ridge, "tolerance": tolerance,
    }  # fmt: skip
    exact_delta = exact_parameter("delta", delta, positive=False)
    found: dict[str, PerturbedMinimiser] = {}
    problem: NotCertified | None = None
    if exact_delta:
        try:
            found[GAUSSIAN] = ObjectivePerturbation.for_target(delta=delta, **given)
        except NotCertified as no:
            problem = no
    try:
        found[PURE] = PureObjectivePerturbation.for_target(**given)
    except NotCertified as no:
        problem = problem or no
    if not found:
        assert problem is not None
        raise problem
    table = ReferenceTable(dimension=dimension, rows=reference_rows, radius=radius, loss=loss)
    errors = {name: table.perturbed(made.term_std, made.ridge) for name, made in found.items()}
    best = min(errors, key=lambda name: errors[name])
    price = float(exact_parameter("epsilon", epsilon)), float(exact_delta)
    errors |= dict(table.rivals(*price, steps=rows, heads=heads))
    return ModelChoice(mechanism=found[best], errors=errors, rows=reference_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """A public table in numbers: curvatures that fall like 1/i, and weights that give the score a variance of 1."""

    dimension: int
    rows: int
    radius: float
    loss: SmoothLoss

    @property
    def _shares(self) -> Floats:
        """Of each direction in the squared length of a row."""
        falling = 1 / np.arange(1.0, self.dimension + 1)
        return np.asarray(falling / falling.sum())

    @property
    def _curvatures(self) -> Floats:
        return np.asarray(self.rows * self.loss.curvature * self.radius**2 * self._shares)

    @property
    def _squared_weight(self) -> float:
        """Of each direction: the score has the variance R^2 times it."""
        return 1 / self.radius**2

    def _excess(self, left: Floats, variances: Floats | float) -> float:
        """Of the mean loss: the part `left` of each weight is missing, and noise of these variances is added."""
        squares = self._squared_weight * left**2 + variances
        return float((self._curvatures * squares).sum() / (2 * self.rows))

    def perturbed(self, noise_std: float, ridge: float) -> float:
        """The excess of a minimiser with noise of this deviation in its gradient."""
        total = self._curvatures + ridge
        return self._excess(ridge / total, (noise_std / total) ** 2)

    def rivals(
        self, epsilon: float, delta: float, *, steps: int = 1, heads: int = 1
    ) -> Iterator[tuple[str, float]]:
        """Output noise, noisy moments for squared losses, and noisy gradients, each at its best."""
        move = steps * self.loss.lipschitz * self.radius
        if delta > 0:
            mu = gaussian_budget(epsilon=epsilon, delta=delta).mu / math.sqrt(heads)

            def std(size: float, numbers: int, times: int = 1) -> float:
                return size * math.sqrt(times) / mu
        else:

            def std(size: float, numbers: int, times: int = 1) -> float:
                return size * times * heads / epsilon * math.sqrt(numbers + 1)

        h, d = self._curvatures, self.dimension
        yield (
            "output noise",
            min(self._excess(r / (h + r), (std(move, d) / r) ** 2) for r in RIDGES),
        )
        if self.loss.name == "huber":
            # (x x', x y) as one vector: |x x'| = R^2, |x y| <= R; each number of x x' off the diagonal counts twice.
            size = steps * math.hypot(self.radius**2, self.radius)
            noise = std(size, d * (d + 3) // 2) * math.sqrt(1 + d * self._squared_weight / 2)
            least = 2 * std(size, d * (d + 3) // 2) * math.sqrt(d / 2)
            yield "noisy moments", min(self.perturbed(noise, float(r)) for r in RIDGES if r >= least)
        rate = self._shares
        found = []
        for times in STEPS:
            left = (1 - rate) ** times
            # Noise of all steps, each shrunk by the steps after it.
            kept = sum((1 - rate) ** (2 * t) for t in range(times))
            step = 1 / (self.rows * self.loss.curvature * self.radius**2)
            found.append(self._excess(left, (std(move, d, times) * step) ** 2 * kept))
        yield "noisy gradients", min(found)
