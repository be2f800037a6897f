"""Linear regression by propose-test-release in the curator: the query, its price, its release, and its reading.

    [[release]]
    kind = "regression_by_test"
    columns = ["age", "hours"]
    outcome = "income"
    size = 5000                   # about as many rows have all columns; more are counted as unstable
    spread = 0.05                 # a public guess of the least mean eigenvalue
    epsilon = 2.0
    delta = 1e-6

Columns and outcome are scaled to [-1, 1] by their declared bounds. The test asks for the number of units between the
table and one whose least eigenvalue is below a floor. A table near the floor gets no values, and that answer is
private too.
A release by the test promises nothing about its probability: `spread` is a guess, and a wrong one only wastes the
price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.curator.assignments import Assignment, NoisyParts
from tacit.curator.charging import Price
from tacit.curator.functions.assignment import fixed_sentence
from tacit.curator.functions.statistics import NOTHING, FunctionStatistic, Points
from tacit.curator.intervals import Estimate
from tacit.errors import InvalidParameter, WrongType
from tacit.exact.arrays import Floats
from tacit.exact.checks import add_exact, positive, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms.base import L1, Mechanism
from tacit.mechanisms.own_statistics import LeastSquares, StatisticByTest
from tacit.noise.source import Source, default_source
from tacit.sources.columns import Date
from tacit.sources.expressions import Expression
from tacit.sources.query import Cells, RowsWanted, TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import Question, base_unit, by_columns, filter_of, row_limit

TERM = "term"
SPACING = Fraction(1, 1 << 20)
"""The grid of the scaled coefficients."""
SHARES = tuple(Fraction(k, 16) for k in range(1, 16))
"""The possible shares of the price for the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionByTest(FunctionStatistic):
    """Least squares of an outcome on columns. The fit is released if no table near the real one would let a single
    unit move it much.

    Values are the slope of each column, in the outcome's unit for one unit of the column, and the outcome at the middle
    of all declared ranges.
    """

    kind: ClassVar[str] = "regression_by_test"
    fits: ClassVar[Any] = "test"

    outcome: str
    spread: float

    def __post_init__(self) -> None:
        FunctionStatistic.__post_init__(self)
        set_fields(self, spread=positive("spread", self.spread))
        if self.spread > 1:
            raise InvalidParameter(
                parameter="spread", value=self.spread, must="be at most 1",
                hint="columns are scaled to [-1, 1]; one of variance s^2 around the middle has a spread of about s^2",
            )  # fmt: skip
        text("outcome", self.outcome, empty=False)
        if self.outcome in self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidParameter(
                parameter="columns",
                value=[*map(str, self.columns), self.outcome],
                must="be names of different columns",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, then the outcome."""
        return (*self.columns, self.outcome)

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question: numbers with declared bounds, of any unit."""
        if self.where is not None:
            self.where.check(schema)
        for name in self.names:
            column = schema.measured(name)
            if isinstance(column, Date) or column.width == 0:
                raise WrongType(column=name, found=column.kind, wanted="a number with two different bounds")
        base_unit(unit)
        axis = Points(column=TERM, values=(*self.columns, f"{self.outcome} at the middle"))
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(axis,),
            requests=(RowsWanted(columns=self.names, where=self.where),), parts=(), sensitivity=NOTHING,
            sensitivities={}, form=None, details={},
        )  # fmt: skip


def regression_by_test(
    columns: Any, outcome: str, *, size: int, spread: float, where: str | Expression | None = None
) -> RegressionByTest:
    """Least squares by propose-test-release: `regression_by_test(["age"], "income", size=5000, spread=0.05)`.

    `size` is about the number of rows with all columns, `spread` a guess of the least mean eigenvalue of (columns
    scaled to [-1, 1], 1). Both are public; wrong ones cost the answer, but never privacy.
    """
    return RegressionByTest(
        columns=by_columns(columns), outcome=outcome, size=size, spread=spread, where=filter_of(where)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTestAssignment(Assignment):
    """A test of the least eigenvalue, and Laplace noise on the scaled coefficients if it is passed."""

    least: LeastSquares
    test_epsilon: Fraction
    release_epsilon: Fraction

    @property
    def mechanism(self) -> StatisticByTest:
        """Test and release together."""
        least = self.least
        return StatisticByTest(
            statistic=lambda rows: least.statistic(rows, spacing=SPACING), distance=least.distance,
            proposed=L1(least.move(SPACING)), test_epsilon=self.test_epsilon, release_epsilon=self.release_epsilon,
            delta=self.delta, spacing=SPACING, numbers=least.numbers, proof="the theorem least-squares-distance",
        )  # fmt: skip

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One mechanism: the test and the release that it permits."""
        return (self.mechanism,)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return ("propose-test-release", "least-squares-distance")

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Tests, and drops the rows in every case."""
        (rows,) = cells
        assert isinstance(rows, TrainingRows)
        source = source if source is not None else default_source()
        try:
            steps, distance = fixed_sentence(lambda: self._found(question, rows))
        finally:
            rows.clear()
        mechanism = self.mechanism
        test = int(mechanism._test_distribution.sample(source=source))
        noise = [int(mechanism.distribution.sample(source=source)) for _ in steps]
        passed = distance + test > mechanism.threshold
        noisy = add_exact(np.array(steps, dtype=object), np.array(noise, dtype=object))
        shown = np.empty(len(steps), dtype=object)
        shown[:] = [int(v) if passed else 0 for v in noisy]
        return NoisyParts(parts={"passed": np.array([int(passed)], dtype=np.int64), "coefficients": shown})

    def _found(self, question: Question, rows: TrainingRows) -> tuple[list[int], int]:
        names = question.statistic.names  # type: ignore[attr-defined]
        widths = [float(question.schema.measured(n).width) for n in names]
        grid = self.least.grid
        scaled = np.stack(
            [np.rint((rows.rows[n] * (2.0 / w) - 1.0) * grid) for n, w in zip(names, widths, strict=True)],
            axis=1,
        )
        here = np.clip(scaled[~np.isnan(scaled).any(axis=1)], -grid, grid).astype(np.int64)
        return self.least.of_steps(here, spacing=SPACING)

    def _units(self, question: Question) -> Floats:
        """The outcome's value of a scaled coefficient of 1, for each term."""
        *halves, own = (
            float(c.width * c.spacing) / 2
            for c in map(question.schema.measured, question.statistic.names)  # type: ignore[attr-defined]
        )
        return np.array([*(own / half for half in halves), own])

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Slopes and the outcome at the middle, or no values if the test fails."""
        outcome = question.schema.measured(question.statistic.names[-1])  # type: ignore[attr-defined]
        middle = float((outcome.lowest + Fraction(outcome.width, 2)) * outcome.spacing)
        units, passed = self._units(question), bool(np.asarray(noisy.parts["passed"])[0])
        scaled = np.array([float(int(v) * SPACING) for v in noisy.parts["coefficients"]])
        value = scaled * units + np.array([0.0] * (len(units) - 1) + [middle])
        level = 1 - (1 - confidence) / coordinates
        half = self.mechanism.error_quantile(level) * units
        if not passed:
            value = np.full(len(units), np.nan)
        return Estimate(value=value, low=value - half, high=value + half, reach=half)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        mechanism = self.mechanism
        return {
            "noise": [mechanism.noise_distribution],
            "chosen": self.reason,
            "numerical_delta": 0.0,
            "test": {
                "floor": str(Fraction(self.least.floor)), "rows": self.least.rows, "grid": self.least.grid,
                "passing_distance": mechanism.passing_distance(),
            },
        }  # fmt: skip

    def sensitivity_record(self, question: Question) -> dict[str, str]:
        """The sensitivity of the scaled coefficients after a passed test, and the distance."""
        base, size = base_unit(question.unit)
        mine = (len(question.statistic.names) - 1, row_limit(question.unit) * size, base.neighbours)  # type: ignore[attr-defined]
        if (self.least.columns, self.least.unit_rows, self.least.neighbours) != mine or self.least.counted:
            raise ValueError("a test for another question")
        return {"l1_steps": str(self.mechanism.proposed.steps(SPACING)), "distance": "1"}

    def grid_record(self, question: Question) -> dict[str, str]:
        """Scaled coefficients are whole steps."""
        return {"coefficients": str(SPACING)}

    @property
    def covers(self) -> str:
        """The noise alone."""
        return "the least-squares coefficients of the declared, clamped and bounded rows, each by itself, if released"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The noise of the outcome at the middle, if the test is passed."""
        unit, mechanism = float(self._units(question)[-1]), self.mechanism
        about = (
            "the outcome at the middle, if the test is passed: at 95% where the least mean eigenvalue is at least "
            f"{question.statistic.spread:g}"  # type: ignore[attr-defined]
        )
        return mechanism.expected_error() * unit, mechanism.error_quantile(confidence) * unit, about

    @property
    def log_error(self) -> float:
        """ln of the noise of a coefficient in steps."""
        return math.log(self.mechanism.expected_error() / float(SPACING) + 0.5)


def assign_test(question: Question, price: Price) -> ByTestAssignment:
    """The share of epsilon for the test with the least noise, at the declared size and spread."""
    if price.kind != "approximate" or price.epsilon is None or not price.delta:
        raise InvalidParameter(
            parameter="price", value=price.kind, must="be an epsilon with a delta",
            hint="delta pays for a test that passes by luck; regression_moments takes every price",
        )  # fmt: skip
    statistic: Any = question.statistic
    base, size = base_unit(question.unit)
    best: tuple[float, ByTestAssignment] | None = None
    for share in SHARES:
        test, release = price.epsilon * share, price.epsilon * (1 - share)
        try:
            least = LeastSquares.for_spread(
                columns=len(statistic.columns), rows=statistic.size, least_eigenvalue=statistic.spread,
                test_epsilon=test, delta=price.delta, unit_rows=row_limit(question.unit) * size,
                neighbours=base.neighbours, counted=False,
            )  # fmt: skip
        except InvalidParameter:
            continue
        made = ByTestAssignment(
            noise=(), price=price, delta=Fraction(price.delta), reason="", least=least, test_epsilon=test,
            release_epsilon=release,
        )  # fmt: skip
        error = made.mechanism.expected_error()
        if best is None or error < best[0] * 0.999:
            best = error, made
    if best is None:
        raise InvalidParameter(
            parameter="size", value=statistic.size, must="be larger: the test could not be passed",
            hint="pay a larger epsilon or delta, or ask for fewer columns; regression_moments needs no test",
        )  # fmt: skip
    found = best[1]
    reason = (
        f"propose-test-release: {float(found.test_epsilon / price.epsilon):.2g} of epsilon for the test, Laplace noise "
        "on the coefficients if it is passed"
    )
    return replace(found, reason=reason)
