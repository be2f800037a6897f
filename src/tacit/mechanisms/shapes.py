"""Sensitivities measured by a shape: an ellipsoid, or the gauge of a convex body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.balls import ball, upper
from tacit.exact.checks import flag, members, settle
from tacit.exact.rationals import Exact, exact_parameter
from tacit.mechanisms.sensitivity import L1, L2, Linf, Sensitivity, exact_sensitivity, rounding
from tacit.noise import Body, CaratheodoryBody, Ellipsoid, EuclideanBall, L1Ball, LinfBall, SampledBody

__all__ = ["Contribution", "Gauge", "HullGauge", "Mahalanobis"]

Rows = Sequence[Sequence[Exact]] | npt.NDArray[np.float64]
MOST_EXACT = 64


@dataclass(frozen=True, slots=True)
class Mahalanobis(Sensitivity):
    """sup over neighbours of |v|_Sigma = sqrt(v' Sigma^-1 v), v = f(D) - f(D'). Sizes Gamma and Gaussian noise.

    Noise needs a factor L of Sigma = L L', which has no exact rational form: a rounded factor M is used, and the
    value is raised by the exactly computed bound on |M^-1 v| / |v|_Sigma (one part in 10^14 as a rule).
    """

    value: Exact
    covariance: Rows
    factor: tuple[tuple[Fraction, ...], ...] = field(init=False, repr=False)
    factor_value: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exact = exact_sensitivity(self.value)
        object.__setattr__(self, "value", exact)
        sigma = _square("covariance", self.covariance)
        object.__setattr__(self, "covariance", sigma)
        factor, inflation = _factor(sigma)
        raised = upper(lambda: ball(exact) * ball(inflation).sqrt())
        settle(self, factor=factor, factor_value=exact_sensitivity(raised))

    def _with(self, **values: object) -> Mahalanobis:
        """A norm of the same kind whose factor is known: it cannot be given from outside."""
        made = object.__new__(Mahalanobis)
        known = ("value", "covariance", "factor", "factor_value")
        settle(made, **{name: values[name] if name in values else getattr(self, name) for name in known})
        return made

    @classmethod
    def from_factor(cls, value: Exact, factor: Rows) -> Mahalanobis:
        """The norm |L^-1 v| for an invertible L; nothing is rounded."""
        exact, rows = exact_sensitivity(value), _square("factor", factor)
        Ellipsoid(factor=rows)
        sigma = tuple(
            tuple(sum((a * b for a, b in zip(r, s, strict=True)), Fraction(0)) for s in rows) for r in rows
        )
        bare: Mahalanobis = object.__new__(cls)
        return bare._with(value=exact, covariance=sigma, factor=rows, factor_value=exact)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return len(self.factor)

    @property
    def body(self) -> Ellipsoid:
        """The unit ball of the factor's norm."""
        return Ellipsoid(factor=self.factor)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Mahalanobis:
        """|u|_Sigma over the box |u_i| <= s is at most s |(sum_j |L^-1|_ij)_i|_2, s = records * spacing."""
        from flint import fmpq_mat

        inverse = fmpq_mat(self.dimension, self.dimension, _flat(self.factor)).inv()
        d = self.dimension
        sums = [sum((abs(_back(inverse[i, j])) for j in range(d)), Fraction(0)) for i in range(d)]
        total = sum((s * s for s in sums), Fraction(0))
        step = rounding(spacing, dimension, records)[0]
        added = Fraction(upper(lambda: ball(step) * ball(total).sqrt()))
        return self._with(value=Fraction(self.value) + added, factor_value=self.factor_value + added)


def _square(name: str, rows: Rows) -> tuple[tuple[Fraction, ...], ...]:
    exact = tuple(
        tuple(exact_parameter(name, v, positive=False) for v in members(name, row))
        for row in members(name, rows)
    )
    if not exact or any(len(row) != len(exact) for row in exact):
        raise InvalidParameter(parameter=name, value=f"{len(exact)} rows", must="be a square matrix")
    return exact


def _flat(rows: Sequence[Sequence[Fraction]]) -> list[Any]:
    from flint import fmpq

    return [fmpq(v.numerator, v.denominator) for row in rows for v in row]


def _back(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _factor(sigma: tuple[tuple[Fraction, ...], ...]) -> tuple[tuple[tuple[Fraction, ...], ...], Fraction]:
    """M near the Cholesky factor, and lambda_max(M^-1 Sigma M^-T) at most, by the largest row sum; exact."""
    from flint import fmpq_mat

    d = len(sigma)
    if d > MOST_EXACT:
        raise InvalidParameter(
            parameter="covariance", value=f"{d} rows", must=f"have at most {MOST_EXACT} rows",
            hint="give a factor: Mahalanobis.from_factor(value, factor)",
        )  # fmt: skip
    bad = InvalidParameter(
        parameter="covariance", value=f"{d} x {d} matrix", must="be symmetric and clearly positive definite",
        hint="add a small multiple of the identity, or leave out a coordinate that the others determine",
    )  # fmt: skip
    if any(sigma[i][j] != sigma[j][i] for i in range(d) for j in range(i)):
        raise bad
    try:
        floats = np.linalg.cholesky(np.array([[float(v) for v in row] for row in sigma]))
    except (np.linalg.LinAlgError, OverflowError):
        raise bad from None
    if not np.isfinite(floats).all():
        raise bad
    factor = tuple(tuple(Fraction(float(v)) for v in row) for row in floats)
    inverse = fmpq_mat(d, d, _flat(factor)).inv()
    product = inverse * fmpq_mat(d, d, _flat(sigma)) * inverse.transpose()
    entries = [[_back(product[i, j]) for j in range(d)] for i in range(d)]
    off = [sum((abs(v) for j, v in enumerate(row) if j != i), Fraction(0)) for i, row in enumerate(entries)]
    # Gershgorin: all eigenvalues are within these discs, which also proves that sigma is positive definite.
    if min(entries[i][i] - off[i] for i in range(d)) <= Fraction(1, 2):
        raise bad
    return factor, max(entries[i][i] + off[i] for i in range(d))


@dataclass(frozen=True, slots=True)
class Gauge(Sensitivity):
    """sup over neighbours of the gauge of f(D) - f(D') in a convex body K: inf {r > 0 : v in r K}.

    Neighbours are symmetric, so it bounds the gauge of v and of -v. Sizes K-norm noise, K symmetric.
    """

    value: Exact
    body: Body | SampledBody

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_sensitivity(self.value))
        _need_body(self.body)

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Gauge:
        return Gauge(self.exact + _box_gauge(self.body, spacing, dimension, records), self.body)


@dataclass(frozen=True, slots=True)
class Contribution(Sensitivity):
    """The largest gauge in K of what one unit adds to the statistic (its term of a sum, say).

    `replace` says that a neighbour has one unit in place of another, so that two contributions change; False is
    add-or-remove. Sizes the difference form of K-norm noise, for bodies that are not symmetric.
    """

    value: Exact
    body: Body
    replace: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_sensitivity(self.value))
        _need_body(self.body)
        settle(self, replace=flag("replace", self.replace))

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Contribution:
        """For contributions that are rounded one by one."""
        added = _box_gauge(self.body, spacing, dimension, records)
        return Contribution(self.exact + added, self.body, self.replace)


@dataclass(frozen=True, slots=True)
class HullGauge(Sensitivity):
    """sup over neighbours of the gauge of f(D) - f(D') in the convex hull of K and -K.

    It is the least g(a) + g(b) over a - b = f(D) - f(D'), g the gauge of K, and it is what the difference form of
    K-norm noise really costs; never above two contributions.
    """

    value: Exact
    body: Body

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_sensitivity(self.value))
        _need_body(self.body)

    @property
    def exact(self) -> Fraction:
        """The value, exactly."""
        return Fraction(self.value)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> HullGauge:
        return HullGauge(self.exact + _box_gauge(self.body, spacing, dimension, records), self.body)


def _need_body(body: object) -> None:
    if not isinstance(body, Body | SampledBody):
        raise InvalidParameter(
            parameter="body", value=body, must="be a convex body with 0 inside",
            hint="EuclideanBall, Ellipsoid, L1Ball, LinfBall, Box, Simplex, or a FormulaBody with its sampler",
        )  # fmt: skip


def _box_gauge(body: Body | SampledBody, spacing: Exact, dimension: int, records: int) -> Fraction:
    """A bound on the gauge over the box |u_i| <= step: two roundings a record, by half a spacing each."""
    from tacit.mechanisms.bodies import Box, Simplex

    step = rounding(spacing, dimension, records)[0]

    match body:
        case EuclideanBall():
            root = Fraction(upper(lambda: ball(body.coordinates).sqrt()))
            return step * root / Fraction(body.radius)
        case L1Ball():
            return step * body.coordinates / Fraction(body.radius)
        case LinfBall():
            return step / Fraction(body.radius)
        case Ellipsoid():
            norm = Mahalanobis.from_factor(1, body.factor)
            return Fraction(norm.rounded(spacing=spacing, records=records).value) - 1
        case Box():
            return step / min(
                min(-Fraction(a), Fraction(b)) for a, b in zip(body.low, body.high, strict=True)
            )
        case Simplex():
            return _simplex_box(body, step)
        case CaratheodoryBody():
            # -(smallest eigenvalue) <= sup |2 Re sum c_k e^(i k t)| <= 2 sum |c_k|, and |c_k| <= sqrt(2) step
            return step * 2 * body.frequencies * Fraction(upper(lambda: ball(2).sqrt()))
    raise NotCertified(
        what="what rounding adds to a gauge",
        reason="the body is given by a sampler only",
        hint="bound the gauge of the rounded statistic yourself and give that value",
    )


def _simplex_box(body: Any, step: Fraction) -> Fraction:
    """gauge(x) = max_k -a_k x / c_k for the barycentric weights w_k = c_k + a_k x; over the box, its corners."""
    d = body.dimension
    origin = body._barycentric([Fraction(0)] * d)
    worst = Fraction(0)
    slopes = [body._barycentric([Fraction(int(i == j)) for j in range(d)]) for i in range(d)]
    for k in range(d + 1):
        size = sum((abs(slopes[i][k] - origin[k]) for i in range(d)), Fraction(0))
        worst = max(worst, size / origin[k])
    return step * worst


def as_gauge(sensitivity: L1 | L2 | Linf, dimension: int) -> Gauge:
    """A norm as the gauge of its unit ball."""
    match sensitivity:
        case L1():
            return Gauge(sensitivity.exact, L1Ball(coordinates=dimension))
        case L2():
            return Gauge(sensitivity.exact, EuclideanBall(coordinates=dimension))
    return Gauge(sensitivity.exact, LinfBall(coordinates=dimension))
