"""Regression tables: coefficients with standard errors and intervals for the population, from noisy moments.

A row is z = s (1, x, tau y): columns and outcome scaled by their declared bounds, and weighted by

    s^2 = min(1, (R^2 + tau^2) / (|(1, x)|^2 + tau^2)),   so that |z|^2 <= R^2 + tau^2   (R and tau are public).

Released are the sums of z z' with noise of equal size on the diagonal, and 1/sqrt(2) of it off the diagonal: the noise
of the Frobenius norm. b = A^-1 c for the noisy A = sum s^2 x x', c = sum s^2 x y, and exactly

    b_noisy - b = A_noisy^-1 (X'e + g),     g = eta - N b,     Cov g = v [(1/tau^2 + |b|^2) I + b b'].

Theorem `regression-intervals`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter, MissingBounds, WrongType
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import is_number, set_fields, text
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms.base import PartNoise
from tacit.mechanisms.spreads import normal_quantile
from tacit.sources.axes import Listed
from tacit.sources.columns import Category, Date, Flag
from tacit.sources.expressions import Expression
from tacit.sources.query import Cells, RowsWanted, TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    GlobalSensitivity,
    Part,
    Question,
    Statistic,
    base_unit,
    by_columns,
    filter_of,
    replaced,
    row_limit,
)
from tacit.statistics.forms import Parts, reals

LEVELS = 1 << 12
"""Steps of a coordinate of z."""
DIAGONAL, OFF = 29, 41
"""Weights of squares and of products: 41/29 is just below sqrt(2)."""
BLOCK = 1 << 20
MOST_TERMS = 60
LARGEST_LIMIT = 64.0
SPREAD = 0.35
"""A guess of a column's standard deviation, in halves of its declared range: it affects the widths of intervals, not
their coverage.
"""
CONSTANT = "(constant)"
COEFFICIENT, ERROR, MODEL = "coefficient", "standard error", "(model)"
MODEL_LINES = ("R squared", "residual standard deviation", "weighted rows")
EDGE = 2.0234
"""The 99% quantile of the Tracy-Widom distribution of real symmetric matrices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One column of the design: a number scaled to [-1, 1], a flag, or one key of a category against the first."""

    name: str
    column: str
    middle: float = 0.0
    half: float = 1.0
    key: int | None = None
    guess: float = SPREAD**2
    """A public guess of the mean square of the scaled term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionTable(Statistic):
    """Coefficients of an outcome on columns, in their own units, with standard errors and intervals.

    A row moves the sums by at most B = (LEVELS sqrt(R^2 + tau^2) + sqrt(p) / 2)^2 in the Frobenius norm, p = terms + 2;
    a replaced one by sqrt(2) B, since both matrices are positive. Rows without a value in some column are left out.
    """

    kind: ClassVar[str] = "regression"
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    covers: ClassVar[str] = (
        "the population's coefficients, each by itself; standard errors and the lines of the model are values without "
        "intervals"
    )
    declares: ClassVar[tuple[str, ...]] = (
        "the rows are independent draws from the population",
        "the mean of the outcome is linear in the columns, or else the coefficients are those of the line that fits "
        "best with the weights of the rows",
        "the outcome spreads equally around its mean, whatever the columns are",
    )

    outcome: str
    columns: tuple[str, ...]
    leverage_limit: float | None = None
    outcome_weight: float = 1.0

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(self, outcome=text("outcome", self.outcome, empty=False))
        if not self.columns:
            raise EmptyComposition(
                what="the list of columns", hint='regression("income", on=["age", "region"])'
            )
        names = (*self.columns, self.outcome)
        if any(not isinstance(n, str) for n in names) or len(set(names)) < len(names):
            raise InvalidParameter(
                parameter="on", value=list(map(str, names)), must="name different columns, none of them the outcome"
            )  # fmt: skip
        limit, weight = self.leverage_limit, self.outcome_weight
        if limit is not None and not (is_number(limit) and 1 <= limit <= LARGEST_LIMIT):
            raise InvalidParameter(
                parameter="leverage_limit", value=limit, must=f"be between 1 and {LARGEST_LIMIT:g}",
                hint="the norm of (1, x) from which on rows count less, with columns scaled to [-1, 1]",
            )  # fmt: skip
        if not (is_number(weight) and 1 / 16 <= weight <= 16):
            raise InvalidParameter(
                parameter="outcome_weight", value=weight, must="be between 1/16 and 16",
                hint="1 is right for most tables; smaller values help where the outcome is nearly determined",
            )  # fmt: skip
        set_fields(self, leverage_limit=None if limit is None else float(limit), outcome_weight=float(weight))

    # --- what is asked of the table -----------------------------------------------------------------------
    def terms(self, schema: Schema) -> tuple[Term, ...]:
        """The columns of the design, without the constant."""
        found: list[Term] = []
        for name in self.columns:
            column = schema[name]
            if isinstance(column, Flag):
                found.append(Term(name=name, column=name, guess=0.5))
            elif isinstance(column, Category):
                if column.values is None:
                    raise MissingBounds(
                        column=name, hint="declare category([...]): levels are never read from the data"
                    )
                share = 1 / len(column.values)
                found += [
                    Term(name=f"{name} = {value}", column=name, key=k, guess=share)
                    for k, value in enumerate(column.values)
                    if k
                ]
            else:
                found.append(_measured(schema, name))
        if not found:
            raise InvalidParameter(
                parameter="on", value=list(self.columns), must="have a column with two different values"
            )
        if len(found) > MOST_TERMS:
            raise InvalidParameter(
                parameter="on", value=len(found), must=f"make at most {MOST_TERMS} terms",
                hint="a category makes a term of every key but the first",
            )  # fmt: skip
        return tuple(found)

    def _limit_squared(self, terms: Sequence[Term]) -> float:
        """R^2: declared, or from public guesses of the columns' spreads."""
        if self.leverage_limit is not None:
            return self.leverage_limit**2
        return 1 + 1.2 * sum(t.guess for t in terms)

    def on(self, schema: Schema, unit: Unit) -> Question:
        if row_limit(unit) > 1:
            raise InvalidParameter(
                parameter="protect", value=str(unit), must="have one row a person for a regression table",
                hint="several rows of one person are not independent; regression_moments takes them",
            )  # fmt: skip
        terms = self.terms(schema)
        target = _measured(schema, self.outcome)
        self._frame(schema, unit, (*self.columns, self.outcome))
        limit, tau = self._limit_squared(terms), self.outcome_weight
        size = len(terms) + 2
        most = largest_norm_squared(limit + tau**2, size)
        sensitivity = _sensitivity(most, size, unit)
        words = (CONSTANT, *(t.name for t in terms), self.outcome)
        axis = Listed(
            column="moment", values=tuple(f"{words[i]} * {words[j]}" for i, j in _pairs(size)), complete=True
        )
        categories = tuple(n for n in self.columns if isinstance(schema[n], Category))
        measured = tuple(n for n in self.columns if n not in categories)
        wanted = RowsWanted(
            axes=(), columns=(*measured, self.outcome), categories=categories, where=self.where
        )
        details = {"terms": terms, "target": target, "limit": limit, "most": most}
        return Question(
            statistic=self, schema=schema, unit=unit, axes=(axis,), requests=(wanted,),
            parts=(Part(name="moments", spacing=Fraction(1, DIAGONAL * LEVELS**2), axes=(axis,)),),
            sensitivity=sensitivity, sensitivities={"moments": sensitivity}, form=None, details=details,
        )  # fmt: skip

    # --- rows to integers ---------------------------------------------------------------------------------
    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        """Weighted sums of z z', each row rounded to integers before it is squared."""
        (rows,) = cells
        assert isinstance(rows, TrainingRows)
        terms, target = question.details["terms"], question.details["target"]
        size = len(terms) + 2
        total = np.zeros((size, size), dtype=object)  # 2^40 rows of 2^37 steps do not fit into 64 bits
        try:
            count = rows.rows[self.outcome].size
            for start in range(0, count, BLOCK):
                part = slice(start, start + BLOCK)
                scaled = np.stack(
                    [_scaled(question.schema, rows.rows, t, part) for t in (*terms, target)], axis=1
                )
                z = weighted_rows(
                    scaled[~np.isnan(scaled).any(axis=1)], limit=question.details["limit"],
                    tau=self.outcome_weight, most=question.details["most"],
                )  # fmt: skip
                # Below 2^53: exact in doubles, in whatever order they are added.
                total += (z.T @ z).astype(np.int64).astype(object)
        finally:
            rows.clear()
        i, j = map(list, zip(*_pairs(size), strict=True))
        return {"moments": total[i, j] * np.where(np.equal(i, j), DIAGONAL, OFF).astype(object)}

    # --- noisy integers to a table ------------------------------------------------------------------------
    def listed(self, question: Question) -> dict[str, list[Any]]:
        """Term and measure of every line: coefficients first, then their standard errors, then the model."""
        names = [CONSTANT, *(t.name for t in question.details["terms"])]
        return {
            "term": [*names, *names, *([MODEL] * len(MODEL_LINES))],
            "measure": [*([COEFFICIENT] * len(names)), *([ERROR] * len(names)), *MODEL_LINES],
        }

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, Floats, Floats]:
        """Value, low and high of every line; no number if the noise hides whether a solution exists."""
        law = noise.get("moments")
        steps = 0.0 if law is None else float(law.mean_variances(1)[0])
        fit = fitted(
            reals(noisy["moments"]) / LEVELS**2, terms=question.details["terms"], target=question.details["target"],
            tau=self.outcome_weight, variance=steps / (OFF * LEVELS**2) ** 2,
        )  # fmt: skip
        half = normal_quantile(level) * fit.errors
        value = np.concatenate([fit.coefficients, fit.errors, fit.model])
        low = np.concatenate([fit.coefficients - half, fit.errors, fit.model])
        high = np.concatenate([fit.coefficients + half, fit.errors, fit.model])
        return value, low, high

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The values alone."""
        return self.answers(question, {}, noisy, 0.95)[0]

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """The half-width of a slope, of a column whose values spread over a third of its range, without effect."""
        if rows is None:
            return None, None, "depends on the number of rows: give rows= for a guess"
        law, terms, target = noise.get("moments"), question.details["terms"], question.details["target"]
        v = 0.0 if law is None else float(law.mean_variances(1)[0]) / (OFF * LEVELS**2) ** 2
        tau, limit, size = self.outcome_weight, question.details["limit"], len(terms) + 1
        # Weights of about R^2 / (1.2-fold mean norm) leave most rows whole.
        kept = rows * min(1.0, limit / (1 + sum(t.guess for t in terms)))
        smallest = kept * min(t.guess for t in terms)
        if smallest < math.sqrt(v) * (2 * math.sqrt(size) + EDGE * size ** (-1 / 6)):
            return None, None, f"at {rows:,} rows and this price there would probably be no table"
        first = next((t for t in terms if t.key is None), terms[0])
        a = kept * first.guess
        spread = math.sqrt(SPREAD**2 / a + v / tau**2 / a**2) * target.half / first.half
        half = normal_quantile(level) * spread
        about = f"the coefficient of {first.name}, for {rows:,} rows, if columns and outcome spread over about a third of their ranges; with sampling"  # noqa: E501
        return None, half, about


# --- the rows, in integers -------------------------------------------------------------------------------------
def _pairs(size: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(size), 2))


def _measured(schema: Schema, name: str) -> Term:
    column = schema.measured(name)
    if isinstance(column, Date) or column.width == 0:
        raise WrongType(column=name, found=column.kind, wanted="a number with two different bounds")
    middle, half = (float((column.highest + s * column.lowest) * column.spacing / 2) for s in (1, -1))
    return Term(name=name, column=name, middle=middle, half=half)


def _scaled(schema: Schema, rows: Mapping[str, Floats], term: Term, part: slice) -> Floats:
    """A term of some rows, in [-1, 1]; NaN for a missing value."""
    held = rows[term.column][part]
    if term.key is not None:
        return np.where(np.isnan(held), np.nan, (held == term.key).astype(np.float64))
    if isinstance(schema[term.column], Flag):
        return held
    return np.asarray(np.clip(held * (2.0 / schema.measured(term.column).width) - 1.0, -1.0, 1.0))


def largest_norm_squared(bound: float, size: int) -> int:
    """An integer above |z|^2 in steps, for |z|^2 <= bound before each coordinate is rounded to the nearest step."""
    # A thousandth of a step is far above what doubles lose in scaling and weighting.
    longest = LEVELS * math.sqrt(bound) + math.sqrt(size) * 0.501
    return math.ceil(longest**2 * (1 + 1e-12))


def weighted_rows(scaled: Floats, *, limit: float, tau: float, most: int) -> Floats:
    """z = s (1, x, tau y) in whole steps. The sensitivity rests on `most`: no row is longer."""
    norm = 1.0 + np.einsum("ij,ij->i", scaled[:, :-1], scaled[:, :-1])
    s = np.minimum(1.0, np.sqrt((limit + tau**2) / (norm + tau**2)))
    z = np.concatenate([np.ones((scaled.shape[0], 1)), scaled[:, :-1], tau * scaled[:, -1:]], axis=1)
    z = np.rint(z * (s * LEVELS)[:, None])
    z[np.einsum("ij,ij->i", z, z) > most] = 0.0
    return np.asarray(z)


def _sensitivity(most: int, size: int, unit: Unit) -> GlobalSensitivity:
    """One row's matrix M = z z' has Frobenius norm |z|^2 <= most; of two, |M - M'|^2 <= |M|^2 + |M'|^2."""
    two = 2 if replaced(unit) else 1
    l1 = DIAGONAL * most + Fraction(OFF * (size - 1) * most, 2)
    linf = max(DIAGONAL, OFF if two == 2 else Fraction(OFF, 2)) * most
    one = GlobalSensitivity(
        l1=Fraction(math.ceil(two * l1)),
        l2_squared=Fraction(two * (DIAGONAL * most) ** 2),
        linf=Fraction(linf),
    )
    return one.times(base_unit(unit)[1])


# --- the table -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoefficientTable:
    """Coefficients in the columns' own units, their standard errors, and the lines of the model."""

    coefficients: Floats
    errors: Floats
    model: Floats


def fitted(
    sums: Floats, *, terms: Sequence[Term], target: Term, tau: float, variance: float
) -> CoefficientTable:
    """The table from noisy sums (squares times 29, products times 41, in squared units of the scaled columns).

    `variance` is that of the noise of a sum of products; squares have twice this variance.
    """
    size = len(terms) + 2
    noisy = np.zeros((size, size))
    for value, (i, j) in zip(sums, _pairs(size), strict=True):
        noisy[i, j] = noisy[j, i] = value / (DIAGONAL if i == j else OFF)
    a, c, yy = noisy[:-1, :-1], noisy[:-1, -1] / tau, noisy[-1, -1] / tau**2
    count = a[0, 0]
    nothing = CoefficientTable(
        coefficients=np.full(size - 1, np.nan), errors=np.full(size - 1, np.nan),
        model=np.array([np.nan, np.nan, count]),
    )  # fmt: skip
    noise = math.sqrt(variance) * (2 * math.sqrt(size - 1) + EDGE * (size - 1) ** (-1 / 6))
    if not np.isfinite(noisy).all() or np.linalg.eigvalsh(a)[0] <= max(noise, 1e-9 * abs(count)):
        return nothing
    inverse = np.linalg.inv(a)
    b = inverse @ c
    u = float(b @ b + 1 / tau**2)
    # One standard deviation of its noise is added: the root of a noisy variance would be too small on average.
    residual = yy - 2 * float(b @ c) + float(b @ a @ b) + math.sqrt(2 * variance) * u
    free = max(count - len(terms) - 1, 1.0)
    spread = max(residual, 0.0) / free
    noise_of_b = variance * (u * np.eye(size - 1) + np.outer(b, b))
    covariance = inverse @ (spread * a + noise_of_b) @ inverse
    shift = np.array([1.0, *(-t.middle / t.half for t in terms)])
    back = np.diag([1.0, *(1 / t.half for t in terms)])
    back[0] = shift
    back *= target.half
    own = back @ b
    own[0] += target.middle
    total = max(yy - c[0] ** 2 / count, 1e-300)
    explained = float(np.clip(1 - max(residual, 0.0) / total, 0.0, 1.0))
    return CoefficientTable(
        coefficients=own, errors=np.sqrt(np.maximum(np.diag(back @ covariance @ back.T), 0.0)),
        model=np.array([explained, math.sqrt(spread) * target.half, count]),
    )  # fmt: skip


def regression(
    outcome: str,
    *,
    on: Any,
    leverage_limit: float | None = None,
    outcome_weight: float = 1.0,
    where: str | Expression | None = None,
) -> RegressionTable:
    """A regression table: `regression("income", on=["age", "region"])`, with standard errors and intervals.

    Categories become one term a declared key, against the first. Intervals hold sampling and noise. A row whose scaled
    columns are longer than `leverage_limit` counts less (default: from the declared bounds).
    """
    return RegressionTable(
        outcome=outcome, columns=by_columns(on), leverage_limit=leverage_limit,  # type: ignore[arg-type]
        outcome_weight=outcome_weight, where=filter_of(where),
    )  # fmt: skip
