"""The choice of a mechanism for a model at a price: perturbed objectives beside their rivals, without a row.

    perturbed objective    noise b in the gradient:            Var w_i = std^2 / (h_i + ridge)^2
    output noise           the minimiser moves by M R/ridge:   Var w_i = (M R / (ridge mu))^2
    noisy moments          linear models: X'X, X'y with noise  Var w_i = std^2 (1 + |w|^2/2) / (h_i + ridge)^2
    noisy gradients        T full steps of mu/sqrt(T) each     Var w_i = T std^2 step^2 sum_t (1 - step h_i)^(2t)

All rivals have the same reference table: a number of rows, with the curvatures h_i and the expected weights of the
contrasts of an additive model, or for a linear one rows of length R whose curvatures fall like 1/i, and weights that
give the score a variance of 1, or of 0.1 where targets lie in [-1, 1]. The error is the expected excess of the mean
loss there: by noise, by the sample, and by the penalty or too few steps. Every rival has its best ridge, or the
best number and length of steps that diverge on no table of this size; the perturbed objectives have the ridge of
the model. For each table and each ridge a perturbed
objective has at most the noise of output noise, as h_i >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, exact_parameter
from tacit.functions.models.columns import DeclaredColumns
from tacit.functions.models.contrasts import DISPERSION, OTHER_DISPERSION, SMOOTH, Contrasts, contrasts
from tacit.functions.models.solvers import Logistic, SmoothLoss
from tacit.guarantees import gaussian_budget
from tacit.mechanisms.objective import ObjectivePerturbation, PerturbedMinimiser
from tacit.mechanisms.pure_objective import PureObjectivePerturbation

REFERENCE_ROWS = 10_000
"""The default number of rows of the reference table."""
STEPS = tuple(2**k for k in range(11))
RIDGES = np.geomspace(1e-3, 1e6, 91)
SPREAD = {"logistic": 1.0}
OTHER_SPREAD = 0.1
"""The variance of a linear model's score on the reference table."""
HALVINGS = 8
"""Each step halves or doubles the ridge while the expected error falls."""
ROUNDS = 6
ELSEWHERE = {
    "output noise": "a kernel model, or mechanism='output' of a logistic regression, has it",
    "noisy moments": "regression_moments has it, for linear models",
    "noisy gradients": "no model here has it",
}
"""A rival is compared but not run; this text names its function."""
GAUSSIAN, PURE = "a perturbed objective", "a perturbed objective with pure noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The chosen mechanism, the expected error of every candidate, and the reason in one line."""

    mechanism: PerturbedMinimiser
    errors: dict[str, float]
    rows: int
    contrasts: Contrasts | None = None

    @property
    def reason(self) -> str:
        """The chosen one first, then the others by their error."""
        chosen = PURE if isinstance(self.mechanism, PureObjectivePerturbation) else GAUSSIAN
        others = ", ".join(
            f"{name} {error:.2g}"
            for name, error in sorted(self.errors.items(), key=lambda item: item[1])
            if name != chosen
        )
        said = (
            f"{chosen}: expected excess loss {self.errors[chosen]:.2g} on the reference table of {self.rows} rows "
            f"({others})"
        )
        best = min(self.errors, key=lambda name: self.errors[name])
        return said if best not in ELSEWHERE else f"{said}; {best} would have less there: {ELSEWHERE[best]}"


_Candidate = tuple[float, PerturbedMinimiser, Contrasts | None]


def perturbation(
    *, epsilon: Exact, delta: Exact, dimension: int = 0, loss: SmoothLoss, radius: float, rows: int = 1, heads: int = 1,
    ridge: float | None = None, tolerance: float | None = None, reference_rows: int = REFERENCE_ROWS,
    columns: DeclaredColumns | None = None, smooth: float = SMOOTH,
) -> ModelChoice:  # fmt: skip
    """The perturbed objective with the least expected error at (epsilon, delta), delta = 0 being pure.

    `radius` bounds the length of a row, `rows` counts rows that are added or taken away between neighbours. An
    additive model has `columns`, of which it learns the worthwhile contrasts; a linear one has the numbers of
    `dimension`.
    """
    if columns is not None:
        dimension = columns.dimension
    logistic = isinstance(loss, Logistic)
    given: dict[str, Any] = {
        "epsilon": epsilon, "dimension": dimension, "gradient": loss.lipschitz * radius,
        # The theorem for logistic losses is about radius^2: p (1 - p) is the loss's own.
        "second": (1.0 if logistic else loss.curvature) * radius**2 * (1 + 2.0**-50), "rows": rows,
        "loss": loss.signs, "heads": heads, "ridge": ridge, "tolerance": tolerance,
    }  # fmt: skip
    exact_delta = exact_parameter("delta", delta, positive=False)
    plain = ReferenceTable(dimension=dimension, rows=reference_rows, radius=radius, loss=loss)

    def judged(made: PerturbedMinimiser) -> _Candidate:
        """With the worthwhile contrasts at its noise, for an additive model."""
        if columns is not None:
            fitted, own = with_contrasts(made, columns, rows=reference_rows, loss=loss, smooth=smooth)
            table = ReferenceTable.of(own, rows=reference_rows, radius=radius, loss=loss)
            return table.perturbed(fitted.term_std, own.ridges), fitted, own
        return plain.perturbed(made.term_std, made.ridge), made, None

    makers: dict[str, Callable[..., PerturbedMinimiser]] = {PURE: PureObjectivePerturbation.for_target}
    if exact_delta:
        makers = {GAUSSIAN: partial(ObjectivePerturbation.for_target, delta=delta), **makers}
    found: dict[str, _Candidate] = {}
    problem: NotCertified | None = None
    for name, make in makers.items():
        try:
            first = make(**given)
        except NotCertified as no:
            problem = problem or no
            continue
        found[name] = judged(first)
    # Logistic losses with Gaussian noise pay nothing for the determinant; others trade noise for a smaller ridge. A
    # larger ridge than the default of logistic losses is for linear models that are worse than none.
    least = min(found, key=lambda name: found[name][0], default=PURE)
    hopeless = bool(found) and columns is None and found[least][0] > plain.without
    parts = ((0.5, not logistic or least == PURE), (2.0, not logistic or hopeless))
    for part, allowed in () if ridge is not None or not found else parts:
        for _ in range(HALVINGS if allowed else 0):
            try:
                tried = judged(
                    makers[least](**given | {"ridge": float(f"{found[least][1].ridge * part:.6g}")})
                )
            except NotCertified:
                break
            if tried[0] >= found[least][0]:
                break
            found[least] = tried
    if not found:
        assert problem is not None
        raise problem
    errors = {name: error for name, (error, _, _) in found.items()}
    best = min(errors, key=lambda name: errors[name])
    _, mechanism, learned = found[best]
    price = float(exact_parameter("epsilon", epsilon)), float(exact_delta)
    table = plain
    if learned is not None:
        table = ReferenceTable.of(learned, rows=reference_rows, radius=radius, loss=loss)
    errors |= dict(table.rivals(*price, steps=rows, heads=heads))
    return ModelChoice(mechanism=mechanism, errors=errors, rows=reference_rows, contrasts=learned)


def with_contrasts(
    mechanism: PerturbedMinimiser, columns: DeclaredColumns, *, rows: int, loss: SmoothLoss, smooth: float
) -> tuple[PerturbedMinimiser, Contrasts]:
    """The contrasts that pay at this noise, and the mechanism for that many numbers.

    Pure noise grows with them: a few rounds find a number that fits. All choices of contrasts are equally private.
    """
    for _ in range(ROUNDS if isinstance(mechanism, PureObjectivePerturbation) else 1):
        found = contrasts(
            columns,
            noise_std=mechanism.term_std,
            ridge=mechanism.ridge,
            rows=rows,
            loss=loss.name,
            smooth=smooth,
        )
        mechanism = replace(mechanism, dimension=found.dimension)  # type: ignore[type-var]
    return mechanism, found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """A public table in numbers: curvatures, and the expected square of each weight."""

    dimension: int
    rows: int
    radius: float
    loss: SmoothLoss
    learned: Contrasts | None = None

    @classmethod
    def of(cls, learned: Contrasts, *, rows: int, radius: float, loss: SmoothLoss) -> ReferenceTable:
        """That of the contrasts of an additive model."""
        return cls(dimension=learned.dimension, rows=rows, radius=radius, loss=loss, learned=learned)

    @property
    def _curvatures(self) -> Floats:
        """They fall like 1/i in a linear model."""
        if self.learned is not None:
            return self.learned.curvatures
        falling = 1 / np.arange(1.0, self.dimension + 1)
        return np.asarray(self.rows * self.loss.curvature * self.radius**2 * falling / falling.sum())

    @property
    def _squared_weights(self) -> Floats:
        """All are equal in a linear model: the score has the variance R^2 times them; targets in [-1, 1] leave
        less.
        """
        if self.learned is not None:
            return self.learned.effects
        return np.full(self.dimension, SPREAD.get(self.loss.name, OTHER_SPREAD) / self.radius**2)

    def _excess(self, left: Floats, variances: Floats | float) -> float:
        """Of the mean loss: the part `left` of each weight is missing, the rest has the error of the sample,
        and noise of these variances is added.
        """
        h = self._curvatures
        sampled = (1 - left) ** 2 * DISPERSION.get(self.loss.name, OTHER_DISPERSION) / np.maximum(h, 1e-300)
        squares = self._squared_weights * left**2 + sampled + variances
        missed = 0.0 if self.learned is None else self.learned.lost
        return missed + float((h * squares).sum() / (2 * self.rows))

    @property
    def without(self) -> float:
        """The excess of the model that is 0 everywhere."""
        return self._excess(np.ones(self.dimension), 0.0)

    def perturbed(self, noise_std: float, ridge: float | Floats) -> float:
        """The excess of a minimiser with noise of this deviation in its gradient."""
        total = self._curvatures + ridge
        return self._excess(ridge / total, (noise_std / total) ** 2)

    def rivals(
        self, epsilon: float, delta: float, *, steps: int = 1, heads: int = 1
    ) -> Iterator[tuple[str, float]]:
        """Output noise, noisy moments for squared losses, and noisy gradients, each at its best parameters."""
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
        if self.loss.name in ("huber", "log-cosh"):
            # (x x', x y) as one vector: |x x'| = R^2, |x y| <= R; each number of x x' off the diagonal counts twice.
            size = steps * math.hypot(self.radius**2, self.radius)
            noise = std(size, d * (d + 3) // 2) * math.sqrt(1 + float(self._squared_weights.sum()) / 2)
            least = 2 * std(size, d * (d + 3) // 2) * math.sqrt(d / 2)
            yield "noisy moments", min(self.perturbed(noise, float(r)) for r in RIDGES if r >= least)
        # A step beyond 2 / (rows curvature R^2) diverges on some table of this many rows, of columns that go together.
        found = []
        for part in (1.5, 1.0, 0.5, 0.25, 0.1):
            step = part / max(float(h.max()), self.rows * self.loss.curvature * self.radius**2)
            rate = h * step
            for times in STEPS:
                # Noise of all steps, each shrunk by the steps after it.
                each = np.maximum(rate * (2 - rate), 1e-15)
                kept = (1 - (1 - each) ** times) / each
                found.append(self._excess((1 - rate) ** times, (std(move, d, times) * step) ** 2 * kept))
        yield "noisy gradients", min(found)
