"""Whether a plan fits the remaining budget, before any charge: runs the ledger's own checks and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.curator.charging import check_of, exact_numbers, standing_of
from tacit.curator.release import Release
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw, NotAllowed
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always, Bound, Guarantee, RandomData
from tacit.guarantees.running_sum import typed
from tacit.ledger import Charge, Ledger, Limit, Request, parts_of, parts_words, running_total
from tacit.ledger import budget as totals
from tacit.mechanisms.base import confidence_level
from tacit.statistics.forms import reals
from tacit.statistics.moments import LEVELS, RegressionMoments

# Least squares from released moments: coefficients with intervals, as post-processing.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients:
    """The constant and one slope a column, in the columns' own units, with simultaneous intervals.

    They cover the least-squares coefficients of the declared, clamped and scaled data, and are unbounded where the
    noise may hide whether a solution exists (theorem `noisy-least-squares`).
    """

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    confidence: float
    publishable: bool = True

    @property
    def table(self) -> Any:
        """The coefficients as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            {"term": list(self.names), "value": self.value, "low": self.low, "high": self.high}
        )

    def __str__(self) -> str:
        said = [
            f"{n}: {v:.6g} ({a:.6g} to {b:.6g})"
            for n, v, a, b in zip(self.names, self.value, self.low, self.high, strict=True)
        ]
        return "\n".join([*said, f"intervals: {self.confidence:g} for all at once, for the noise only"])


def least_squares(release: Release, *, confidence: float = 0.95) -> Coefficients:
    """The coefficients of a release of `regression_moments`: b = A^-1 c for the noisy A = sum g g', c = sum g y.

    If every number is within its half-width H (of A) and h (of c), the coefficients without noise are within r of b,
    r = (I - G)^-1 |A^-1| (h + H |b|), G = |A^-1| H, wherever the spectral radius of G is below one.
    """
    statistic = release.planned.question.statistic if isinstance(release, Release) else None
    if not isinstance(statistic, RegressionMoments):
        raise InvalidParameter(
            parameter="release", value=type(release).__name__, must="be a release of regression moments",
            hint='tacit.regression_moments(["age"], "income")',
        )  # fmt: skip
    level = confidence_level(confidence)
    size = len(statistic.columns) + 2
    half = release.planned.assignment.half_widths(level, coordinates=len(statistic.pairs)).get("moments", 0.0)
    given = reals(release.noisy.parts["moments"]) / LEVELS**2
    wide = np.broadcast_to(np.asarray(half, dtype=np.float64), given.shape) / LEVELS**2
    noisy, reach = np.zeros((size, size)), np.zeros((size, size))
    for k, (i, j) in enumerate(statistic.pairs):
        noisy[i, j] = noisy[j, i] = given[k]
        reach[i, j] = reach[j, i] = wide[k]
    b, r = _solved(noisy[:-1, :-1], noisy[:-1, -1], reach[:-1, :-1], reach[:-1, -1])
    columns = [release.planned.question.schema.measured(n) for n in (*statistic.columns, statistic.outcome)]
    middle = np.array([float((c.lowest + c.highest) * c.spacing / 2) for c in columns])
    scale = np.array([float(c.width * c.spacing / 2) for c in columns])
    shift = np.concatenate([[1.0], -middle[:-1] / scale[:-1]])
    value = np.concatenate([[middle[-1] + scale[-1] * (shift @ b)], scale[-1] * b[1:] / scale[:-1]])
    with np.errstate(invalid="ignore"):
        most = np.where(shift == 0, 0.0, np.abs(shift) * r).sum()
    error = np.concatenate([[scale[-1] * most], scale[-1] * r[1:] / scale[:-1]])
    return Coefficients(
        names=("(constant)", *statistic.columns), value=value, low=value - error, high=value + error,
        confidence=float(level), publishable=release.publishable,
    )  # fmt: skip


def _solved(a: Floats, c: Floats, wide_a: Floats, wide_c: Floats) -> tuple[Floats, Floats]:
    """The solution, and a bound on its distance from the solution without noise."""
    nothing = np.full(c.shape, np.nan), np.full(c.shape, np.inf)
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return nothing
    b = inverse @ c
    if not bool(np.isfinite(b).all()):
        return nothing
    size = np.abs(inverse)
    g = size @ wide_a
    if not bool(np.isfinite(g).all()) or float(np.abs(np.linalg.eigvals(g)).max()) >= 1 - 1e-9:
        return b, np.full(c.shape, np.inf)
    r = np.linalg.solve(np.eye(c.size) - g, size @ (wide_c + wide_a @ np.abs(b)))
    # What rounding in doubles does is far below a part in a million.
    return b, r * (1 + 1e-6) + 1e-9 * np.abs(b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The spent and remaining budget at this moment, and whether a plan fits.

    `fits` is True too if the answer is on record (`recorded`) and therefore free. `waits` names the role or the
    approval that the plan needs and the ledger lacks; `parts` is the price as parts of the budget.
    """

    spent: Guarantee
    left: Guarantee
    fits: bool
    recorded: bool = False
    reason: str = ""
    waits: str = ""
    approved_by: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "spent": _numbers(self.spent),
            "left": _numbers(self.left),
            "fits": self.fits,
            "recorded": self.recorded,
            "reason": self.reason,
            "waits": self.waits,
            "approved_by": list(self.approved_by),
            "of_budget": None if self.parts is None else dict(self.parts),
        }

    record = formerly("record")

    def __str__(self) -> str:
        if self.recorded:
            return "it was answered before: the same answer is free"
        if not self.fits:
            return f"it DOES NOT FIT: {self.reason}"
        price = "" if self.parts is None else f", and takes {parts_words(self.parts)}"
        return f"it fits{price}" + (f"; {self.waits}" if self.waits else "")


def fit_of(ledger: Ledger | None, request: Request, budget: Guarantee, shares: Mapping[str, Bound]) -> Fit:
    """The fit of a request to a ledger; without a ledger, to the whole budget."""
    if ledger is None:
        return _of_all(request, budget, shares)
    spent, left = standing_of(ledger, request.analyst)
    about: dict[str, Any] = {"spent": spent, "left": left, "parts": _parts(request, ledger.limit)}
    if ledger.recorded(request) is not None:
        return Fit(fits=True, recorded=True, **about)
    waits = ""
    approved: tuple[str, ...] = ()
    try:
        approved = ledger.consent(request)
    except NotAllowed as problem:
        waits = problem.reason
    try:
        ledger.try_out(request, check_of(budget))
    except (BudgetExceeded, NoLaw) as problem:
        return Fit(fits=False, reason=problem.message, waits=waits, **about)
    return Fit(fits=True, waits=waits, approved_by=approved, **about)


def _of_all(request: Request, budget: Guarantee, shares: Mapping[str, Bound]) -> Fit:
    whole = Limit(bound=budget.bound, exact=typed(budget.bound) | exact_numbers(budget))
    asked = Charge(
        sequence=1, time="", analyst=request.analyst, key=request.key, plan_digest=request.plan_digest,
        event=request.event, guarantee=request.charge, exact=request.exact, table=request.table,
        version=request.version,
    )  # fmt: skip
    own = shares.get(request.analyst, shares.get("*"))
    limits = [whole]
    if own is not None:
        limits.append(Limit(bound=own, exact=typed(own), whose=f"the share of {request.analyst!r}"))
    nothing = replace(budget, bound=totals.spent([], whole), condition=_nothing(budget))
    left = replace(budget, bound=budget.bound if own is None else totals.smaller(budget.bound, own))
    about: dict[str, Any] = {"spent": nothing, "left": left, "parts": _parts(request, whole)}
    totals.in_currency(request.charge, budget)
    try:
        for limit in limits:
            (check_of(budget) or running_total)([asked], limit)
    except (BudgetExceeded, NoLaw) as problem:
        return Fit(fits=False, reason=problem.message, **about)
    return Fit(fits=True, **about)


def _nothing(budget: Guarantee) -> Any:
    return Always() if isinstance(budget.condition, RandomData) else budget.condition


def _parts(request: Request, limit: Limit) -> dict[str, float] | None:
    try:
        return parts_of(request.charge.bound, request.exact, limit)
    except NoLaw:
        return None


def _numbers(guarantee: Guarantee) -> dict[str, Any]:
    gamma = guarantee.condition.gamma if isinstance(guarantee.condition, RandomData) else None
    return dict(guarantee.bound.parameters) | ({} if gamma is None else {"gamma": gamma})
