"""Convex bodies that shape noise: boxes and simplices beside the balls of the noise room, and their radii.

A body must hold 0 in its inside, or its gauge is infinite in some direction and the noise never goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.checks import check_fields, flag, members, real_array, refuse_if, set_fields
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure, Matrix, Reals
from tacit.exact.rounding import Exact, ball, exact_parameter, upper
from tacit.mechanisms.base import L1, L2, Linf, Sensitivity, Sized, exact_sensitivity, rounding
from tacit.noise import (
    Body,
    CaratheodoryBody,
    Draws,
    Ellipsoid,
    EuclideanBall,
    L1Ball,
    LinfBall,
    Needs,
    SampledBody,
    caratheodory_gauge,
    caratheodory_second_moments,
    total,
)
from tacit.noise.grid import coordinate_of
from tacit.noise.marginals import BoxNoise, Corners, ExponentialSums, Marginal, MarginalInterval

__all__ = ["Box", "Contribution", "Gauge", "HullGauge", "Mahalanobis", "Simplex", "gauge"]

# Sensitivities measured by a shape: an ellipsoid, or the gauge of a convex body.

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
        set_fields(self, factor=factor, factor_value=exact_sensitivity(raised))

    def _with(self, **values: object) -> Mahalanobis:
        """A norm of the same kind whose factor is known: it cannot be given from outside."""
        made = object.__new__(Mahalanobis)
        known = ("value", "covariance", "factor", "factor_value")
        set_fields(made, **{name: values[name] if name in values else getattr(self, name) for name in known})
        return made

    @classmethod
    def from_factor(cls, value: Exact, factor: Rows) -> Mahalanobis:
        """The norm |L^-1 v| for an invertible L, without rounding."""
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
class Gauge(Sized):
    """sup over neighbours of the gauge of f(D) - f(D') in a convex body K: inf {r > 0 : v in r K}.

    Neighbours are symmetric, so it bounds the gauge of v and of -v. Sizes K-norm noise, K symmetric.
    """

    body: Body | SampledBody

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        _need_body(self.body)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Gauge:
        return Gauge(self.exact + _box_gauge(self.body, spacing, dimension, records), self.body)


@dataclass(frozen=True, slots=True)
class Contribution(Sized):
    """The largest gauge in K of one unit's contribution to the statistic (its term of a sum, say).

    `replace` says that a neighbour has one unit in place of another, so that two contributions change; False is
    add-or-remove. Sizes the difference form of K-norm noise, for bodies that are not symmetric.
    """

    body: Body
    replace: bool = True

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        _need_body(self.body)
        check_fields(self, replace=flag)

    def rounded(self, *, spacing: Exact, dimension: int = 1, records: int = 1) -> Contribution:
        """For contributions that are rounded one by one."""
        added = _box_gauge(self.body, spacing, dimension, records)
        return Contribution(self.exact + added, self.body, self.replace)


@dataclass(frozen=True, slots=True)
class HullGauge(Sized):
    """sup over neighbours of the gauge of f(D) - f(D') in the convex hull of K and -K.

    It is the least g(a) + g(b) over a - b = f(D) - f(D'), g the gauge of K, and it is what the difference form of
    K-norm noise really costs; never above two contributions.
    """

    body: Body

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        _need_body(self.body)

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


_ORIGIN = "shift the statistic by a public point that is inside the body, so that the body surrounds 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box(Body):
    """{x : low_i <= x_i <= high_i} with low_i < 0 < high_i; symmetric only if low = -high."""

    low: Sequence[Exact]
    high: Sequence[Exact]

    def __post_init__(self) -> None:
        low = tuple(exact_parameter("low", v, positive=False) for v in members("low", self.low))
        high = tuple(exact_parameter("high", v, positive=False) for v in members("high", self.high))
        refuse_if(not low or len(low) != len(high), "high", len(high), f"have {len(low)} >= 1 entries")
        if any(a >= 0 for a in low) or any(b <= 0 for b in high):
            raise InvalidParameter(
                parameter="low", value=(low, high), must="hold the origin strictly inside", hint=_ORIGIN
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def symmetric(self) -> bool:
        return all(a == -b for a, b in zip(self.low, self.high, strict=True))

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        return tuple((Fraction(a) + Fraction(b)) / 2 for a, b in zip(self.low, self.high, strict=True))

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """(high - low)^2 / 12."""
        return tuple((Fraction(b) - Fraction(a)) ** 2 / 12 for a, b in zip(self.low, self.high, strict=True))

    @property
    def covariance(self) -> Floats:
        return np.diag(self.variances)

    def _side(self, coordinate: int) -> tuple[float, float]:
        i = coordinate_of(coordinate, self)
        return float(self.low[i]), float(self.high[i])

    def marginal(self, coordinate: int = 0) -> Marginal:
        low, high = self._side(coordinate)
        return MarginalInterval(low=low, high=high)

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        low, high = self._side(coordinate)
        return BoxNoise(low=low, high=high, dimension=self.dimension)

    def needs(self) -> Needs:
        return Needs(uniforms=self.dimension)

    def formula(self, draws: Draws) -> Reals:
        u = draws.uniforms(self.dimension)
        rows = [
            u[:, i : i + 1] * draws.real(Fraction(b) - Fraction(a)) + draws.real(Fraction(a))
            for i, (a, b) in enumerate(zip(self.low, self.high, strict=True))
        ]
        return _columns(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplex(Body):
    """The convex hull of d + 1 points with 0 strictly inside: sum e_k v_k / sum e_k with exponential e_k."""

    vertices: Sequence[Sequence[Exact]]

    def __post_init__(self) -> None:
        points = tuple(
            tuple(exact_parameter("vertices", v, positive=False) for v in members("vertices", point))
            for point in members("vertices", self.vertices)
        )
        d = len(points) - 1
        if d < 1 or any(len(p) != d for p in points):
            raise InvalidParameter(
                parameter="vertices", value=len(points), must="be d + 1 points with d >= 1 coordinates each"
            )
        object.__setattr__(self, "vertices", points)
        weights = self._barycentric([Fraction(0)] * d)
        if weights is None:
            raise InvalidParameter(
                parameter="vertices",
                value="points in a hyperplane",
                must="span the space",
                hint="move one of them",
            )
        refuse_if(min(weights) <= 0, "vertices", points, "hold the origin strictly inside", _ORIGIN)

    def _barycentric(self, x: Sequence[Fraction]) -> list[Fraction] | None:
        """The weights w with sum w = 1 and sum w_k v_k = x, exactly."""
        from flint import fmpq, fmpq_mat

        n = len(self.vertices)
        rows = [[Fraction(p[i]) for p in self.vertices] for i in range(n - 1)] + [[Fraction(1)] * n]
        matrix = fmpq_mat(n, n, [fmpq(v.numerator, v.denominator) for row in rows for v in row])
        if matrix.det() == 0:
            return None
        right = fmpq_mat(n, 1, [fmpq(v.numerator, v.denominator) for v in [*x, Fraction(1)]])
        return [Fraction(int(w.p), int(w.q)) for w in (matrix.solve(right)[i, 0] for i in range(n))]

    @property
    def dimension(self) -> int:
        return len(self.vertices) - 1

    @property
    def symmetric(self) -> bool:
        return self.dimension == 1 and self.vertices[0][0] == -Fraction(self.vertices[1][0])

    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        """The mean of the corners."""
        corners = zip(*self.vertices, strict=True)
        return tuple(sum(map(Fraction, x), Fraction(0)) / (self.dimension + 1) for x in corners)

    def _products(self, i: int, j: int) -> Fraction:
        """sum_k (v_ki - mean_i)(v_kj - mean_j) / ((d + 1)(d + 2)): the covariance of Dirichlet(1, .., 1) weights."""
        d, mean = self.dimension, self.exact_means
        each = ((Fraction(v[i]) - mean[i]) * (Fraction(v[j]) - mean[j]) for v in self.vertices)
        return sum(each, Fraction(0)) / ((d + 1) * (d + 2))

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        return tuple(self._products(i, i) for i in range(self.dimension))

    @property
    def covariance(self) -> Floats:
        d = self.dimension
        return np.array([[float(self._products(i, j)) for j in range(d)] for i in range(d)])

    def _corners(self, coordinate: int) -> tuple[float, ...]:
        i = coordinate_of(coordinate, self)
        return tuple(float(v[i]) for v in self.vertices)

    def marginal(self, coordinate: int = 0) -> Marginal:
        return Corners(values=self._corners(coordinate))

    def noise_marginal(self, coordinate: int = 0) -> Marginal:
        return ExponentialSums(loads=(self._corners(coordinate),))

    def needs(self) -> Needs:
        return Needs(exponentials=self.dimension + 1)

    def formula(self, draws: Draws) -> Reals:
        e = draws.exponentials(self.dimension + 1)
        transposed = [[p[i] for p in self.vertices] for i in range(self.dimension)]
        return Matrix("vertices", transposed).apply(e) / total(e)


def _columns(parts: list[Reals]) -> Reals:
    if isinstance(parts[0], Enclosure):
        return Enclosure(np.concatenate([p.mid for p in parts], 1), np.concatenate([p.rad for p in parts], 1))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True)
class Moments:
    """The uniform distribution on a body, coordinate by coordinate: mean, second moment, mean size, tail of the size.

    `tails[i](s)` = Pr[|u_i| > s], or None if no closed form is at hand. `reach[i]` = sup |u_i|.
    """

    mean: Floats
    square: Floats
    size: Floats
    reach: Floats
    tails: tuple[Callable[[Floats], Floats], ...] | None


def moments(body: Body | SampledBody) -> Moments:
    """Closed forms for the errors of a K-norm mechanism."""
    from scipy.special import betainc, gammaln

    d = body.dimension if isinstance(body, Body) else body.coordinates
    zero = np.zeros(d)
    match body:
        case EuclideanBall() | Ellipsoid():
            if isinstance(body, EuclideanBall):
                width = np.full(d, float(body.radius))
            else:
                width = np.sqrt((np.array([[float(v) for v in row] for row in body.factor]) ** 2).sum(axis=1))
            size = np.exp(gammaln(d / 2 + 1) - gammaln((d + 3) / 2)) / np.sqrt(np.pi)

            def ball_tail(w: float) -> Callable[[Floats], Floats]:
                # u_1^2 of the unit ball is Beta(1/2, (d+1)/2).
                return lambda s: 1.0 - betainc(0.5, (d + 1) / 2, np.clip((s / w) ** 2, 0, 1))

            return Moments(
                zero, width**2 / (d + 2), width * size, width, tuple(ball_tail(float(w)) for w in width)
            )
        case L1Ball():
            r = float(body.radius)
            tail = _power_tail(r, d)
            return Moments(
                zero,
                np.full(d, 2 * r * r / ((d + 1) * (d + 2))),
                np.full(d, r / (d + 1)),
                np.full(d, r),
                (tail,) * d,
            )
        case LinfBall() | Box():
            if isinstance(body, LinfBall):
                low, high = np.full(d, -float(body.radius)), np.full(d, float(body.radius))
            else:
                low, high = np.array([float(v) for v in body.low]), np.array([float(v) for v in body.high])
            return Moments(
                (low + high) / 2,
                (low**2 + low * high + high**2) / 3,
                (low**2 + high**2) / (2 * (high - low)),
                np.maximum(-low, high),
                tuple(_box_tail(float(a), float(b)) for a, b in zip(low, high, strict=True)),
            )
        case Simplex():
            v = np.array([[float(x) for x in p] for p in body.vertices])
            mean = v.mean(axis=0)
            square = (v.sum(axis=0) ** 2 + (v**2).sum(axis=0)) / ((d + 1) * (d + 2))
            return Moments(mean, square, np.sqrt(square), np.abs(v).max(axis=0), None)
        case CaratheodoryBody():
            square = np.repeat([float(v) / 2 for v in caratheodory_second_moments(body.frequencies)], 2)
            return Moments(zero, square, np.sqrt(square), np.ones(d), None)
        case SampledBody():
            reach = np.full(d, float(body.reach))
            return Moments(zero, reach**2, reach, reach, None)
    raise NotCertified(
        what="the error of a K-norm mechanism",
        reason="the moments of this body are not known in closed form",
        hint="bound the noise by the body's own size: its gauge is Gamma(d) distributed times noise_scale",
    )


def _power_tail(radius: float, d: int) -> Callable[[Floats], Floats]:
    return lambda s: np.clip(1.0 - s / radius, 0.0, 1.0) ** d


def _box_tail(low: float, high: float) -> Callable[[Floats], Floats]:
    return lambda s: (np.clip(high - s, 0.0, None) + np.clip(-low - s, 0.0, None)) / (high - low)


def gauge(body: Body, points: npt.ArrayLike) -> Floats:
    """inf {r > 0 : x in r K} of each row, in floats: for looking and testing, never for a proof."""
    x = np.atleast_2d(real_array(points, name="points"))
    if not isinstance(body, Body) or x.ndim != 2 or x.shape[1] != body.dimension:
        raise InvalidParameter(
            parameter="points",
            value=f"shape {x.shape}",
            must="have a row of the body's dimension for each point",
        )
    match body:
        case EuclideanBall():
            return np.asarray(np.sqrt((x**2).sum(axis=1)) / float(body.radius))
        case Ellipsoid():
            inverse = np.linalg.inv(np.array([[float(v) for v in row] for row in body.factor]))
            return np.asarray(np.sqrt(((x @ inverse.T) ** 2).sum(axis=1)))
        case L1Ball():
            return np.asarray(np.abs(x).sum(axis=1) / float(body.radius))
        case LinfBall():
            return np.asarray(np.abs(x).max(axis=1) / float(body.radius))
        case Box():
            low, high = np.array([float(v) for v in body.low]), np.array([float(v) for v in body.high])
            return np.asarray(np.maximum(x / high, x / low).max(axis=1))
        case CaratheodoryBody():
            return caratheodory_gauge(x)
        case Simplex():
            # The facet opposite vertex k is {w_k = 0}; w_k(x) = c_k + a_k x with c_k > 0, gauge = max(-a_k x / c_k).
            v = np.array([[float(c) for c in p] for p in body.vertices])
            inverse = np.linalg.inv(np.vstack([v.T, np.ones(len(v))]))
            return np.asarray(np.maximum((-(x @ inverse[:, :-1].T) / inverse[:, -1]).max(axis=1), 0.0))
    raise NotCertified(what="a gauge", reason="this body is given by a sampler only")
