"""The plan of a model: public numbers, the noise that they need, and the expected cost of that noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.errors import EmptyComposition, FitFailed, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import members, non_negative, positive, set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, down, exact_parameter, up, upper
from tacit.functions.models.features import FeatureMap
from tacit.functions.models.solvers import (
    UNIT,
    FitProblem,
    Loss,
    SmoothLoss,
    certified_rows,
    numerical_floor,
    solve,
)
from tacit.guarantees import Bound, GaussianDP, Neighbours, Pure, gaussian_budget
from tacit.mechanisms import L1, L2, Laplace, PermuteAndFlip, RoundedGaussian, Score, on_grid
from tacit.mechanisms.base import epsilon_parameter
from tacit.noise.source import Source

# How far one unit can move a regularised model, and what a solver that stops early adds to that.
#
#     J(w) = (1/size) sum_i loss(w . phi(x_i), y_i) + penalty |w|^2
#
# is 2 penalty-strongly convex. Replacing one row changes J by a function with slope at most 2 M radius / size, so the
# minimiser moves by at most M radius / (penalty size); adding or taking away a row, by half of that. A vector whose J
# is within `gap` of the least one lies within sqrt(gap / penalty) of the minimiser. Theorems `machine-sensitivity`
# and `machine-gap`. Source: Bousquet, Elisseeff 2002; Hall 2012, 3.3.3.


def model_sensitivity(
    *,
    lipschitz: float,
    radius: float,
    penalty: float,
    size: int,
    rows: int = 1,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    tolerance: float = 0.0,
    heads: int = 1,
) -> float:
    """sup |w(D) - w(D')| over neighbours, rounded up: the exact minimisers' distance plus 2 sqrt(tolerance / penalty).

    `rows` is the largest number of rows of one unit; `size` the public number that the losses are divided by; `heads`
    models trained on the same rows move together by sqrt(heads) times as much at most.
    """
    relation = Neighbours.parse(neighbours)
    moved = Fraction(positive("lipschitz", lipschitz)) * Fraction(positive("radius", radius))
    moved = moved * whole("rows", rows) / (Fraction(positive("penalty", penalty)) * whole("size", size))
    if relation is Neighbours.ADD_OR_REMOVE:
        moved /= 2
    inexact = 2 * Fraction(solver_distance(tolerance=tolerance, penalty=penalty))
    count = whole("heads", heads)
    return upper(lambda: ball(moved + inexact) * ball(count).sqrt())


def solver_distance(*, tolerance: float, penalty: float) -> float:
    """sqrt(tolerance / penalty), rounded up: the largest distance from the minimiser of a vector within the
    tolerance.
    """
    gap, weight = (
        Fraction(non_negative("tolerance", tolerance)),
        Fraction(positive("penalty", penalty)),
    )
    return upper(lambda: ball(gap / weight).sqrt())


# A released model: a function that anyone may evaluate anywhere, as often as they like. It carries no row.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedModel:
    """x -> weights . phi(x): one sample path, the same value whenever it is asked.

    It contains the public feature map and the noisy weights only; evaluating it is post-processing.
    `publishable` is False if the noise came from a seeded source.
    """

    features: FeatureMap
    weights: Floats
    noise_std: float
    bound: Bound
    loss: str
    penalty: float
    publishable: bool
    numerical_delta: float = 0.0

    def __call__(self, points: npt.ArrayLike) -> Floats:
        """The value at each point, one column a head; points outside the domain are answered at its edge."""
        return np.asarray(self._phi(points) @ self.weights.T)

    def noise_std_at(self, points: npt.ArrayLike) -> Floats:
        """The standard deviation of the noise in the value at each point; public."""
        return np.asarray(self.noise_std * np.sqrt((self._phi(points) ** 2).sum(axis=1)))

    def _phi(self, points: npt.ArrayLike) -> Floats:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.features.features:
            raise InvalidParameter(
                parameter="points",
                value=f"an array of shape {array.shape}",
                must=f"have one row a point and {self.features.features} columns",
            )
        if not bool(np.isfinite(array).all()):
            raise InvalidParameter(parameter="points", value="a value that is not finite", must="be finite")
        return self.features.of(array)

    def to_dict(self) -> dict[str, Any]:
        """The model, in plain values."""
        return {
            "loss": self.loss,
            "penalty": self.penalty,
            "features": self.features.to_dict(),
            "noise_std": self.noise_std,
            "heads": int(self.weights.shape[0]),
        }

    words = formerly("words")


SHARE_OF_THE_SOLVER = 0.01
EXPECTED_NORM = 4.0
CROWD = 2.0**20
"""The grid is fine enough for this many times `size` rows, so that rounding does not fail if `size` is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModelPlan:
    """The minimiser of (1/size) sum loss + penalty |w|^2, with Gaussian noise on its weights; no row has been read.

    Guarantee: GaussianDP(mu = sensitivity / noise_std), exactly: the weights are released on a grid, with noise that
    is drawn exactly. The sensitivity counts the solver's `tolerance`, a public number: training runs until a certified
    gap is below it, and neither price nor noise depend on the reached gap.
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
        set_fields(
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
    ) -> KernelModelPlan:
        """The plan with the least noise whose exact curve has delta(epsilon) <= delta.

        A missing penalty is set to the value that balances the noise's cost against that of a function of norm 4.
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
        """A tolerance that adds a hundredth to the sensitivity, or the smallest one that floats can certify."""
        exact = model_sensitivity(
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

    @property
    def certified_rows(self) -> int:
        """The largest number of rows at which rounding never keeps a solver from its certificate, for any rows."""
        assert self.tolerance is not None
        return certified_rows(
            loss=self.loss, penalty=self.penalty, dimension=self.features.dimension, radius=self.features.radius,
            rounding=self.features.rounding, size=self.size, tolerance=self.tolerance, spacing=float(self.spacing),
        )  # fmt: skip

    def _given(self, tolerance: float) -> float:
        """Refuses a tolerance below the default: it would save a hundredth of the noise at most.

        The certifiable tolerance depends on the number of rows, which may exceed the declared size: near the floor,
        one row could decide whether training fails.
        """
        given, least = positive("tolerance", tolerance), self._tolerance()
        if given < least:
            raise InvalidParameter(
                parameter="tolerance", value=given, must=f"be at least {least:.3g} for these features and penalty",
                hint="that is the default; below it one row could decide whether training fails",
            )  # fmt: skip
        return given

    @property
    def l2_sensitivity(self) -> float:
        """The sensitivity of all the weights together, the solver's tolerance included."""
        assert self.tolerance is not None
        return model_sensitivity(
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
    def exact_noise_std(self) -> Fraction:
        """sensitivity / mu."""
        return Fraction(self.l2_sensitivity) / Fraction(self.mu)

    @property
    def noise_std(self) -> float:
        """The noise of each weight; at a point x the model's value gets noise of std noise_std |phi(x)|."""
        return float(self.exact_noise_std)

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
            noise_std=self.exact_noise_std,  # type: ignore[arg-type]
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
        """An upper bound on the increase of the expected loss by the noise, at any point. No row is read.

        E loss(f + noise) - loss(f) <= curvature s^2 / 2 for smooth losses and turn s / sqrt(2 pi) for hinges, s the
        noise std of the model's value. Theorem `machine-excess`.
        """
        assert self.tolerance is not None
        at_a_point = float(self.noise_std) * self.features.radius * (1 + 1e-12)
        rounding = float(self.spacing) * math.sqrt(self.features.dimension) * self.features.radius
        return self.loss.excess(at_a_point) + self.loss.lipschitz * rounding + self.tolerance

    def train(self, rows: Floats, targets: Sequence[Floats], *, near_corners: bool = True) -> list[Floats]:
        """The true weights, one vector a head, each within the tolerance. They must never be shown without noise.

        Another solver finds other weights within the tolerance, so a repeated answer must use the same `near_corners`.
        """
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
            problem = FitProblem(
                loss=self.loss, phi=phi[used], target=np.clip(target[used], -1.0, 1.0), penalty=self.penalty,
                size=self.size, radius=self.features.radius, rounding=self.features.rounding,
            )  # fmt: skip
            weights = _solved(problem, self.tolerance, float(self.spacing), near_corners)
            if weights is None:
                raise FitFailed
            found.append(weights)
        return found

    def release(
        self, rows: Floats, targets: Sequence[Floats], *, source: Source | None = None
    ) -> ReleasedModel:
        """Trains on the rows and releases the noisy weights.

        `targets` has one array for each head, with NaN at rows that count as absent; rows with a value that is
        not finite count as absent, too. Raises FitFailed, one fixed sentence, if the solver missed the
        tolerance.
        """
        found = self.train(rows, targets)
        noisy = self.mechanism.release(on_grid(np.concatenate(found), spacing=self.spacing), source=source)
        return ReleasedModel(
            features=self.features,
            weights=noisy.to_floats().reshape(self.heads, self.features.dimension),
            noise_std=float(self.noise_std),
            bound=self.bound,
            loss=self.loss.name,
            penalty=self.penalty,
            publishable=noisy.publishable,
            numerical_delta=noisy.numerical_delta,
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan in plain values, for a certificate."""
        return {
            "loss": self.loss.name,
            "features": self.features.to_dict(),
            "penalty": self.penalty,
            "size": self.size,
            "heads": self.heads,
            "solver_tolerance": self.tolerance,
            "l2_sensitivity": self.l2_sensitivity,
            "noise": self.mechanism.noise_distribution,
        }

    words = formerly("words")


def _solved(problem: FitProblem, tolerance: float, spacing: float, near_corners: bool) -> Floats | None:
    """The solver's answer; any failure inside counts as not reaching the tolerance."""
    try:
        with np.errstate(all="ignore"):
            return solve(problem, tolerance=tolerance, spacing=spacing, near_corners=near_corners)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None


def _below(value: object, name: str) -> float:
    """The largest float that is not above the requested number."""
    return down(exact_parameter(name, value))


def balanced_penalty(
    *, loss: Loss, radius: float, size: int, mu: float, heads: int = 1, rows: int = 1,
    norm: float = EXPECTED_NORM,
) -> float:  # fmt: skip
    """The penalty that minimises penalty norm^2 + the cost of the noise: from public numbers alone."""
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


# Private choice of the penalty among candidates: held-out risks, and one noisy minimum.
#
# Every `held_out`-th row is kept aside; the others train one model for each candidate, without noise and unseen by
# anybody. A candidate's score is minus its mean clipped loss on the rows kept aside, minus what the noise of the fit
# to come is expected to cost, which is public. The choice is one event and the fit after it another: their prices
# add.

SPACING = Fraction(1, 1 << 40)
# Noisy risks are compared by their worst expected error; the spread of k Laplace noises is at most this many scales.
SPREAD = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPenalty:
    """The chosen penalty, and the plan of the fit with it; `publishable` is False for a seeded source."""

    penalty: float
    plan: KernelModelPlan
    publishable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PenaltyChoice:
    """One penalty of a public list, by noisy held-out risk.

    Guarantee: Pure(epsilon). A row of the test part moves a risk by at most clip / (rows of that part), a
    training row by at most M radius times its move of the model; the larger of the two sizes the noise.
    `method` is "permute-and-flip", or "risks": k risks at epsilon / k each (Hall), whichever errs less. Theorem
    `machine-choice`. Source: Hall 2012, 1.2.3.
    """

    plan: KernelModelPlan
    candidates: Sequence[float]
    epsilon: Exact
    held_out: int = 5
    clip: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.plan, KernelModelPlan):
            raise InvalidParameter(
                parameter="plan", value=type(self.plan).__name__, must="be a KernelModelPlan"
            )
        if self.plan.neighbours is not Neighbours.REPLACE_ONE or self.plan.rows != 1:
            raise InvalidParameter(
                parameter="plan", value=self.plan.neighbours.value, must="be for one row replaced",
                hint="which rows are held out follows from their places, so that rows may not come or go",
            )  # fmt: skip
        numbers = tuple(positive("candidates", v) for v in members("candidates", self.candidates))
        if not numbers:
            raise EmptyComposition(what="the list of candidates", hint="name at least one penalty")
        if len(set(numbers)) != len(numbers):
            raise InvalidParameter(parameter="candidates", value=numbers, must="be different numbers")
        epsilon_parameter(self.epsilon)
        set_fields(
            self,
            candidates=numbers,
            epsilon=self.epsilon,
            held_out=whole("held_out", self.held_out, least=2),
            clip=positive("clip", self.clip),
        )
        if self.plan.size < self.held_out:
            raise InvalidParameter(
                parameter="held_out",
                value=self.held_out,
                must=f"be at most the number of rows, {self.plan.size}",
            )

    @property
    def tested(self) -> int:
        """The number of held-out rows: those at places held_out, 2 held_out, ..."""
        return self.plan.size // self.held_out

    def _training(self, penalty: float) -> KernelModelPlan:
        """The plan of the model for training, without noise, on the rows that are not held out."""
        return replace(self.plan, penalty=penalty, size=self.plan.size - self.tested, tolerance=None)

    def final(self, penalty: float) -> KernelModelPlan:
        """The plan of the fit with this penalty, on all rows."""
        return replace(self.plan, penalty=penalty, tolerance=None)

    @property
    def risk_sensitivity(self) -> float:
        """The sensitivity of any candidate's clipped risk to one replaced row."""
        plan = self.plan
        moves = [Fraction(self.clip) / self.tested]
        for penalty in self.candidates:
            trained = self._training(penalty)
            assert trained.tolerance is not None
            distance = model_sensitivity(
                lipschitz=plan.loss.lipschitz, radius=plan.features.radius, penalty=penalty, size=trained.size,
                tolerance=trained.tolerance,
            )  # fmt: skip
            moves.append(Fraction(plan.loss.lipschitz) * Fraction(plan.features.radius) * Fraction(distance))
        most = min(max(moves), Fraction(self.clip)) + 2 * max(map(self._float_error, self.candidates))
        # Risks are put on a grid: each of two is off by half a step, and so is the value that they are compared with.
        return up(most * plan.heads + 2 * SPACING)

    def _float_error(self, penalty: float) -> Fraction:
        """The largest error of a head's risk in floats: of its value at a row, its loss, and their mean."""
        plan = self._training(penalty)
        assert plan.tolerance is not None
        longest = math.sqrt(plan.loss.at_zero / penalty) + math.sqrt(plan.tolerance / penalty)
        value = (1 + 1e-9) * longest * (
            2 * (plan.features.dimension + 4) * UNIT * plan.features.radius + plan.features.rounding
        )  # fmt: skip
        # Losses are a few operations on numbers of at most this size; the mean is rounded three times.
        size = 2 + longest * plan.features.radius + self.clip
        return Fraction(plan.loss.lipschitz * value + 32 * UNIT * (1 + plan.loss.lipschitz) * size)

    def _mechanisms(self) -> tuple[PermuteAndFlip, Laplace]:
        sensitivity = Fraction(self.risk_sensitivity)
        each = epsilon_parameter(self.epsilon) / len(self.candidates)
        return (
            PermuteAndFlip(epsilon=self.epsilon, sensitivity=Score(sensitivity)),
            Laplace.for_target(epsilon=each, sensitivity=L1(sensitivity), spacing=SPACING),
        )

    def expected_errors(self) -> dict[str, float]:
        """For each method, a bound on E [risk of the chosen - least risk], known before a row is read."""
        flip, noise = self._mechanisms()
        k = len(self.candidates)
        # E max of k Laplace noises is the k-th harmonic number of scales at most; both ends count.
        harmonic = math.fsum(1 / i for i in range(1, k + 1))
        risks = 0.0 if k == 1 else SPREAD * float(noise.noise_scale) * harmonic
        return {"permute-and-flip": flip.expected_error(candidates=k), "risks": risks}

    @property
    def method(self) -> str:
        """The one that errs less."""
        errors = self.expected_errors()
        return min(errors, key=lambda name: errors[name])

    @property
    def bound(self) -> Bound:
        """Pure epsilon, by either method."""
        return Pure(epsilon=up(epsilon_parameter(self.epsilon)))

    @property
    def event(self) -> Event:
        """The choice alone; the fit is a second event."""
        from tacit.accounting import events

        if self.method == "permute-and-flip":
            return self._mechanisms()[0].event
        return events.PureEvent(epsilon=up(epsilon_parameter(self.epsilon)))

    def risks(self, rows: Floats, targets: Sequence[Floats]) -> list[Fraction]:
        """The true held-out risks, on the grid: never to be shown."""
        out = np.zeros(rows.shape[0], dtype=bool)
        out[self.held_out - 1 :: self.held_out] = True
        plan, found = self.plan, []
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        phi = plan.features.of(np.where(finite[:, None], rows, 0.0)[out])
        for penalty in self.candidates:
            weights = self._training(penalty).train(rows[~out], [t[~out] for t in targets])
            total = Fraction(self.final(penalty).expected_excess_error()) * plan.heads
            for head, target in zip(weights, targets, strict=True):
                used = (finite & np.isfinite(target))[out]
                loss = plan.loss.values(phi[used] @ head, np.clip(target[out][used], -1.0, 1.0))
                total += Fraction(math.fsum(np.minimum(loss, self.clip).tolist()) / self.tested)
            found.append(round(total / SPACING) * SPACING)
        return found

    def choose(
        self, rows: Floats, targets: Sequence[Floats], *, source: Source | None = None
    ) -> ChosenPenalty:
        """The chosen penalty. Raises FitFailed if a candidate's model missed its tolerance."""
        if rows.ndim != 2 or rows.shape[0] != self.plan.size:
            raise InvalidParameter(
                parameter="rows", value=f"{rows.shape[0]} rows", must=f"have {self.plan.size}, as planned"
            )
        risks = self.risks(rows, targets)
        flip, noise = self._mechanisms()
        if self.method == "permute-and-flip":
            chosen = flip.choose([-r for r in risks], source=source)
            place, publishable = chosen.index, chosen.publishable
        else:
            noisy = noise.release([int(r / SPACING) for r in risks], source=source)
            place, publishable = int(np.argmin(noisy.values)), noisy.publishable
        penalty = self.candidates[place]
        return ChosenPenalty(penalty=penalty, plan=self.final(penalty), publishable=publishable)

    def to_dict(self) -> dict[str, Any]:
        """The choice in plain values, for a certificate."""
        return {
            "candidates": list(self.candidates),
            "held_out": self.held_out,
            "clip": self.clip,
            "method": self.method,
            "risk_sensitivity": self.risk_sensitivity,
        }

    words = formerly("words")
