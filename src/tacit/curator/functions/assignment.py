"""Functions in the curator: noise on a function's numbers, the function read back, and its band.

The charge is made before a row is read. After it, every failure of a fit is one fixed sentence, and no row is kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import GaussianEvent
from tacit.curator.assignments import Assignment, NoisyParts, mu_squared_within, pure_within
from tacit.curator.charging import Price
from tacit.curator.functions.fits import (
    Density,
    DensityFit,
    FunctionFit,
    KernelModelFit,
    PureDensity,
    PureDensityFit,
    density_fit,
    kernel_model_fit,
    pure_density_fit,
)
from tacit.curator.functions.histogram_fit import HistogramDensityFit, histogram_fit
from tacit.curator.functions.models import ModelStatistic, PerturbedFit, perturbed_fit
from tacit.curator.functions.statistics import InputColumns, KernelModelStatistic
from tacit.curator.intervals import Estimate
from tacit.errors import FitFailed, InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import ball, lower
from tacit.functions.densities import ReleasedDensity
from tacit.mechanisms.base import Mechanism, confidence_level
from tacit.mechanisms.objective import CERTIFIED
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question

# A released function: numbers, declared columns, and nothing of any row. It answers alike whenever it is asked.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedFunction:
    """x -> the released function at x: `function({"age": [30, 40]})`, or an array with one column each.

    Evaluating it is free post-processing, at any place and any number of times.
    """

    kind: str
    fit: FunctionFit = field(repr=False)
    inputs: InputColumns = field(repr=False)
    numbers: Floats = field(repr=False)
    publishable: bool = True

    @classmethod
    def of(
        cls, question: Question, fit: FunctionFit, numbers: Floats, *, publishable: bool = True
    ) -> PublishedFunction:
        """The function of a question from its released numbers."""
        return cls(
            kind=question.statistic.kind, fit=fit, inputs=question.details["inputs"], numbers=numbers,
            publishable=publishable,
        )  # fmt: skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the function's argument."""
        return self.inputs.names

    def __call__(self, points: Any) -> Floats:
        """The value at each point; several classes have a column each. Points outside are moved to the bounds."""
        values = self.fit.shown(self.fit.values(self.numbers, self.inputs.of_values(points)))
        return values[:, 0] if values.shape[1] == 1 else values

    def noise_std_at(self, points: Any) -> Floats:
        """The standard deviation of the noise at each point; public."""
        return self.fit.stds(self.inputs.of_values(points))

    def band(self, points: Any, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high at each point separately: they contain the function without noise with this confidence."""
        at = self.inputs.of_values(points)
        half = (
            self.fit.spread(float(confidence_level(confidence))) * self.fit.stds(at)[:, None] / self.fit.unit
        )
        plain = self.fit.values(self.numbers, at)
        low, high = self.fit.shown(plain - half), self.fit.shown(plain + half)
        return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)

    def predict(self, points: Any) -> npt.NDArray[Any]:
        """A classifier's class for each point; the value itself for other functions."""
        values = self(points)
        classes = self.fit.classes if isinstance(self.fit, KernelModelFit | PerturbedFit) else ()
        if not classes:
            return values
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        out = np.empty(len(chosen), dtype=object)
        out[:] = [classes[int(k)] for k in chosen]
        return out

    def density(self) -> ReleasedDensity:
        """A density with everything computed from it: the nearest true density, quantiles, samples, bands."""
        if not isinstance(self.fit, DensityFit | PureDensityFit):
            raise InvalidParameter(
                parameter="function", value=self.kind, must="be a density with Gaussian noise, or a Fourier series",
                hint="a density from counts of cells is evaluated as it is: function(points), function.band(points)",
            )  # fmt: skip
        return self.fit.released(self.numbers, publishable=self.publishable)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values: the certificate holds this, so that anybody can evaluate it."""
        spacing = self.fit.spacing
        return {
            "columns": list(self.columns),
            "spacing": str(spacing),
            "numbers": [float(v) for v in self.numbers],
            **self.fit.evaluated(self.numbers),
        }

    record = formerly("record")


T = TypeVar("T")
STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
MARGIN = 1 - 2.0**-50
"""The event stores the reciprocal of its mu as a float: lowering mu by this much keeps it within the price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionAssignment(Assignment):
    """One release of all the numbers that define a function."""

    fit: FunctionFit

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Noise on all numbers of the function at once."""
        return (self.fit.mechanism,)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return self.fit.theorems

    @property
    def declared(self) -> tuple[str, ...]:
        """Conditions of the bound of a perturbed objective that no program proves beforehand."""
        return (CERTIFIED,) if isinstance(self.fit, PerturbedFit) else ()

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Fits, adds the noise, and drops the rows or their counts in every case."""
        (rows,) = cells
        try:
            true = self.fitted(rows)
        finally:
            rows.clear()
        noisy = self.fit.noisy(true, source)
        numbers = np.empty(noisy.size, dtype=object)
        numbers[:] = [int(v) for v in np.ravel(noisy)]
        return NoisyParts(parts={"numbers": numbers})

    def fitted(self, rows: Any) -> Any:
        """The true integers, or the one fixed sentence. PRIVATE: to be given to the mechanism only."""
        return fixed_sentence(lambda: self.fit.integers(rows))

    def numbers(self, noisy: NoisyParts) -> Floats:
        """The released numbers, as floats."""
        spacing = self.fit.spacing
        return np.array([float(int(v) * spacing) for v in np.ravel(noisy.parts["numbers"])])

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The function on the grid that is shown, or its weights, with a band for the noise, point by point."""
        numbers, z = self.numbers(noisy), self.fit.spread(float(confidence), coordinates)
        statistic, fit = question.statistic, self.fit
        if isinstance(statistic, KernelModelStatistic) and statistic.kernel == "linear":
            assert isinstance(fit, KernelModelFit)
            value = fit.weights(numbers).T
            half = np.full(value.shape, z * float(fit.plan.noise_std))
            value, half = (x[:, 0] if x.shape[1] == 1 else x for x in (value, half))
            return Estimate(value=value, low=value - half, high=value + half)
        if isinstance(fit, PerturbedFit):
            value, plain = fit.terms(numbers), fit.terms(numbers, shaped=False)
            half = np.full(value.shape, z * fit.term_std)
            # The minimiser lies around the released numbers; a declared direction may move a value out of there.
            low, high = np.minimum(plain - half, value), np.maximum(plain + half, value)
            return Estimate(value=value, low=low, high=high)
        grid = fit_grid(question)
        plain, reach = fit.values(numbers, grid), z * fit.stds(grid)[:, None]
        half = reach / fit.unit
        shape = tuple(a.size or 0 for a in question.axes)
        low, value, high = (
            np.asarray(fit.shown(x)).reshape(shape) for x in (plain - half, plain, plain + half)
        )
        # What is shown is cut at 0 or at the bounds of the outcome; `reach` is in its unit.
        uncut = np.broadcast_to(reach, np.shape(plain)).reshape(shape)
        return Estimate(value=value, low=low, high=high, reach=uncut)

    def function(
        self, question: Question, noisy: NoisyParts, *, publishable: bool = True
    ) -> PublishedFunction:
        """The released function, at any point."""
        return PublishedFunction.of(question, self.fit, self.numbers(noisy), publishable=publishable)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {
            "noise": [self.fit.mechanism.noise_distribution],
            "chosen": self.reason,
            "numerical_delta": 0.0,
            "fit": self.fit.to_dict(),
        }

    def sensitivity_record(self, question: Question) -> dict[str, str]:
        """The sensitivity of the numbers, in their own unit."""
        return self.fit.moves

    def grid_record(self, question: Question) -> dict[str, str]:
        """The size of one step of the numbers."""
        return {"numbers": str(self.fit.spacing)}

    @property
    def covers(self) -> str:
        """The noise alone."""
        if isinstance(self.fit, PerturbedFit):
            return "the exact minimiser of the objective with its random term, each term by itself"
        return "the function that was fitted to the declared, clamped and bounded data, each point by itself"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The noise at the point where it is widest."""
        std = self.fit.widest
        return std * self.fit.mean_spread, std * self.fit.spread(float(confidence)), self.fit.about

    @property
    def log_error(self) -> float:
        """ln of the error at 95%."""
        return float(np.log(self.fit.widest * self.fit.spread(0.95)))


def fit_grid(question: Question) -> Floats:
    """The coordinates of the points at which the function is shown."""
    inputs = question.details["inputs"]
    return np.asarray(inputs.grid(question.axes[: len(inputs.names)]))


def fixed_sentence(action: Callable[[], T]) -> T:
    """The result of the action, or the one fixed sentence if the action fails in any way."""
    stop: BaseException | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return action()
        except STOPS as wish:
            stop = wish
        except BaseException:
            # Raised below, outside the handler: neither cause nor context keeps what a row did.
            pass
    if stop is None:
        raise FitFailed
    stop.__cause__ = stop.__context__ = stop.__traceback__ = None
    raise stop


def assign_function(question: Question, price: Price, *, earlier: bool = False) -> FunctionAssignment:
    """Gaussian noise by the mu of the price; for densities at a pure price pure noise by its epsilon.

    `earlier` chooses as 0.1.0 did.
    """
    if isinstance(question.statistic, PureDensity):
        return _assign_pure(question, price, earlier)
    if isinstance(question.statistic, Density) and price.kind == "pure" and not earlier:
        fit = histogram_fit(question, pure_within(price) or Fraction(0))
        return _of_cells(fit, price, "Laplace noise on the counts of cells: the price is pure")
    if isinstance(question.statistic, ModelStatistic):
        return _assign_model(question, price)
    squared = mu_squared_within(price)
    if squared is None:
        raise InvalidParameter(
            parameter="price", value=price.kind, must="have room for Gaussian noise, which functions get",
            hint="pay with epsilon= and delta=, with rho= or with mu=",
        )  # fmt: skip
    limit = squared
    mu = lower(lambda: ball(limit).sqrt()) * MARGIN
    made: DensityFit | KernelModelFit = (
        density_fit if isinstance(question.statistic, Density) else kernel_model_fit
    )(question, mu)
    event = made.mechanism.event
    _within(event.squared if isinstance(event, GaussianEvent) else None, squared)
    reason = f"Gaussian noise on {made.mechanism.dimension} numbers, which are the whole function"
    delta = price.delta if price.kind == "approximate" and price.delta is not None else Fraction(0)
    return FunctionAssignment(noise=(), price=price, reason=reason, delta=delta, fit=made)


def _assign_model(question: Question, price: Price) -> FunctionAssignment:
    """One perturbed objective at the (epsilon, delta) or pure epsilon of the price."""
    epsilon = pure_within(price)
    if epsilon is None:
        raise InvalidParameter(
            parameter="price", value=price.kind, must="have an epsilon, rho or mu: a model has no error to be paid by",
            hint="pay with epsilon= and delta=, or with epsilon= alone for pure noise",
        )  # fmt: skip
    given = price.delta if price.kind == "approximate" and price.delta is not None else Fraction(0)
    fit, choice = perturbed_fit(question, epsilon, given)
    pure = fit.noise.exact_epsilon
    if pure is not None:
        _within(pure, epsilon)
    return FunctionAssignment(
        noise=(), price=price, reason=choice.reason, delta=given if pure is None else Fraction(0), fit=fit,
        candidates=choice.errors,
    )  # fmt: skip


def _of_cells(fit: HistogramDensityFit, price: Price, reason: str) -> FunctionAssignment:
    _within(fit.mechanism.exact_epsilon, fit.epsilon)
    kernels = "; kernels of order four, since no bandwidth is declared" if fit.order == 4 else ""
    reason = f"{reason}{kernels}; {int(np.prod(fit.cells))} numbers, which are the whole function"
    return FunctionAssignment(noise=(), price=price, reason=reason, fit=fit)


def _assign_pure(question: Question, price: Price, earlier: bool) -> FunctionAssignment:
    """The least noisy of the pure mechanisms, at the epsilon of the price; no delta is spent."""
    epsilon = pure_within(price)
    if epsilon is None:
        raise InvalidParameter(
            parameter="price", value=price.kind, must="have room for a pure epsilon, which this density gets",
            hint="pay with epsilon=, with rho= or with mu=",
        )  # fmt: skip
    fit = pure_density_fit(question, epsilon)
    statistic: Any = question.statistic
    if statistic.order is None and len(statistic.columns) > 1 and not earlier:
        cells, series = histogram_fit(question, epsilon), fit.plan.expected_noise_error()
        share = cells.expected_noise_error() / series
        if share < 1:
            said = (
                f"Laplace noise on the counts of cells: its noise is {share:.2g} of that on a Fourier series"
            )
            return _of_cells(cells, price, said)
    _within(fit.mechanism.exact_epsilon, epsilon)
    reason = (
        f"{fit.plan.choice.reason}; {fit.plan.family.coefficients - 1} numbers, which are the whole function"
    )
    return FunctionAssignment(noise=(), price=price, reason=reason, fit=fit)


def _within(spent: Fraction | None, limit: Fraction) -> None:
    """Noise that would cost more than its price is never drawn."""
    if spent is None or spent > limit:
        raise NotCertified(
            what="the noise of a function", reason="it would cost more than the price that it was made for"
        )
