"""Continuous random vectors, rounded to a grid without numerical error.

A distribution is a formula in independent uniform, exponential and normal numbers. The formula is evaluated
once in floats
with proved enclosures. A row with an undecided rounding (a few in 2^27 for ordinary grids) is evaluated again in ball
arithmetic, with more bits of the same random numbers, until the rounding is certain. The
result is the rounding of an exact draw from the continuous distribution, so `numerical_delta` is 0. Rounding commutes
with adding a grid point: noise rounded and added to a value on the grid is post-processing of exact noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction

import flint
import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, NoLaw, NotCertified
from tacit.exact.arrays import AnyArray
from tacit.exact.checks import refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.enclosures import Enclosure, Reals, constant
from tacit.exact.rounding import Ball, CertifiedReal, Exact, ball, exact_parameter, grid_spacing, precision
from tacit.noise.marginals import Marginal
from tacit.noise.reals import Exponentials, LazyReal, Normals, Uniforms
from tacit.noise.source import Source, default_source

__all__ = ["ContinuousDistribution", "Draws", "GridVector", "Needs", "grid_spacing", "rounding_delta"]

ROWS = 1 << 13
ROUNDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GridVector:
    """Integers for values * spacing, and the possible cost of their sampling.

    numerical_delta bounds the total variation distance between the distribution of `values` and the ideal distribution
    rounded to the grid; 0 means exact. `publishable` is False for draws from a seeded source.
    """

    values: AnyArray
    spacing: Fraction
    numerical_delta: float
    publishable: bool

    def __post_init__(self) -> None:
        grid_spacing(self.spacing)
        if not 0.0 <= self.numerical_delta <= 1.0:
            raise InvalidParameter(
                parameter="numerical_delta", value=self.numerical_delta, must="lie between 0 and 1"
            )

    def to_floats(self) -> npt.NDArray[np.float64]:
        """values * spacing in floats, for reading."""
        return self.values.astype(np.float64) * float(self.spacing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The number of uses of each primitive in one row of a formula."""

    uniforms: int = 0
    exponentials: int = 0
    normals: int = 0

    def __add__(self, other: Needs) -> Needs:
        return Needs(
            uniforms=self.uniforms + other.uniforms,
            exponentials=self.exponentials + other.exponentials,
            normals=self.normals + other.normals,
        )


class Draws:
    """The primitives of a batch of rows, handed out in order; `real` turns exact numbers into their kind."""

    __slots__ = ("_at", "_columns", "real")

    def __init__(self, columns: dict[str, Reals], real: Callable[[Fraction | CertifiedReal], Reals]) -> None:
        self._columns = columns
        self._at = dict.fromkeys(columns, 0)
        self.real = real

    def _take(self, kind: str, count: int) -> Reals:
        start = self._at[kind]
        if start + count > self._columns[kind].shape[1]:
            raise InvalidParameter(
                parameter="primitives",
                value=self._columns[kind].shape[1],
                must=f"declare all {kind} that the formula draws",
            )
        self._at[kind] = start + count
        return self._columns[kind][:, start : start + count]

    def uniforms(self, count: int) -> Reals:
        """Uniform on [0, 1): an array (rows, count)."""
        return self._take("uniforms", count)

    def exponentials(self, count: int) -> Reals:
        """Standard exponential: an array (rows, count)."""
        return self._take("exponentials", count)

    def normals(self, count: int) -> Reals:
        """Standard normal: an array (rows, count)."""
        return self._take("normals", count)


def unknown(what: str, law: object) -> NoLaw:
    """The error for a distribution without stated numbers."""
    return NoLaw(
        operation=f"{what} of a {type(law).__name__}", reason="no formula for it is stated here",
        hint="use a ball, a box, a simplex or an ellipsoid, or estimate it from draws, which are no data",
    )  # fmt: skip


def coordinate_of(coordinate: object, law: ContinuousDistribution) -> int:
    """A coordinate of the distribution, counted from 0."""
    i = whole("coordinate", coordinate, least=0)
    refuse_if(i >= law.dimension, "coordinate", coordinate, f"be below the dimension {law.dimension}")
    return i


class ContinuousDistribution(ABC):
    """A distribution on R^d given by a formula in independent primitives; exact after rounding to any grid."""

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @abstractmethod
    def needs(self) -> Needs:
        """The primitives of one row."""

    @abstractmethod
    def formula(self, draws: Draws) -> Reals:
        """The rows, as an array (rows, d), by +, -, *, / and `root` only."""

    # --- its numbers: exact where they are rational, which they are for all distributions of this room
    # ------------------
    @property
    def exact_means(self) -> tuple[Fraction, ...]:
        """E X_i: 0 unless a distribution says otherwise."""
        return (Fraction(0),) * self.dimension

    @property
    def exact_variances(self) -> tuple[Fraction, ...]:
        """Var X_i."""
        raise unknown("the variances", self)

    @property
    def variances(self) -> npt.NDArray[np.float64]:
        """Var X_i, in floats."""
        return np.array([float(v) for v in self.exact_variances])

    @property
    def stds(self) -> npt.NDArray[np.float64]:
        """The standard deviation of each coordinate."""
        return np.asarray(np.sqrt(self.variances))

    @property
    def covariance(self) -> npt.NDArray[np.float64]:
        """E (X - E X)(X - E X)', in floats."""
        if self.dimension > 1:
            raise unknown("the covariance", self)
        return self.variances[:, None]

    @property
    def expected_squared_error(self) -> float:
        """E |X|^2 over all coordinates."""
        squares = [v + m * m for v, m in zip(self.exact_variances, self.exact_means, strict=True)]
        return float(sum(squares, Fraction(0)))

    def marginal(self, coordinate: int = 0) -> Marginal:
        """The distribution of one coordinate (the first is 0); `rounded(spacing)` is the distribution that `sample`
        draws.
        """
        coordinate_of(coordinate, self)
        raise unknown("the law of one coordinate", self)

    def simulate(
        self,
        *,
        uniforms: npt.NDArray[np.float64] | None = None,
        exponentials: npt.NDArray[np.float64] | None = None,
        normals: npt.NDArray[np.float64] | None = None,
    ) -> npt.NDArray[np.float64]:
        """The formula at given primitives, in floats: for simulations of public numbers, never for a release."""
        given = {"uniforms": uniforms, "exponentials": exponentials, "normals": normals}
        rows = max(v.shape[0] for v in given.values() if v is not None)
        columns = {k: Enclosure(np.empty((rows, 0)) if v is None else v) for k, v in given.items()}
        return np.asarray(self.formula(Draws(columns, _float_real)).mid)

    def sample(self, *, spacing: Exact, size: int | None = None, source: Source | None = None) -> GridVector:
        """One vector (values of shape (d,)), or `size` independent ones (shape (size, d)), on the grid."""
        step = grid_spacing(spacing)
        rows = 1 if size is None else whole("size", size, least=0)
        source = source if source is not None else default_source()
        parts = [self._rows(min(ROWS, rows - start), step, source) for start in range(0, rows, ROWS)]
        values = np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.int64)
        return GridVector(
            values=values[0] if size is None else values,
            spacing=step,
            numerical_delta=0.0,
            publishable=source.publishable,
        )

    def _rows(self, rows: int, step: Fraction, source: Source) -> AnyArray:
        needs = self.needs()
        kept: dict[str, Uniforms | Exponentials | Normals] = {
            "uniforms": Uniforms.draw((rows, needs.uniforms), source),
            "exponentials": Exponentials.draw((rows, needs.exponentials), source),
            "normals": Normals.draw((rows, needs.normals), source),
        }
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            reals = self.formula(Draws({k: p.enclosure() for k, p in kept.items()}, _float_real))
            if reals.shape != (rows, self.dimension):
                raise InvalidParameter(
                    parameter="formula", value=reals.shape, must=f"give {self.dimension} columns for each row"
                )
            values, settled = _round_floats(reals, step)
        open_rows = np.flatnonzero(~settled.all(axis=1))
        if open_rows.size:
            exact = [self._row(dict(_lazies(kept, int(r), needs, source)), step) for r in open_rows]
            if any(abs(v) >= 1 << 63 for row in exact for v in row):
                values = values.astype(object)
            values[open_rows] = exact
        return values

    def _row(self, lazies: dict[str, list[LazyReal]], step: Fraction) -> list[int]:
        """One row in ball arithmetic, with as many bits as its rounding needs."""
        bits = 128
        for _ in range(ROUNDS):
            with precision(bits):
                columns = {kind: _ball_row([x.ball() for x in row]) for kind, row in lazies.items()}
                reals = self.formula(Draws(columns, _ball_real)).ravel()
                floors = [(x / ball(step) + flint.arb("0.5")).floor().unique_fmpz() for x in reals]
            if all(f is not None for f in floors):
                return [int(f) for f in floors]
            for row in lazies.values():
                for x in row:
                    x.extend()
            bits += 64
        raise NotCertified(
            what="the rounding of a random vector",
            reason=f"it is still open after {ROUNDS} rounds",
            hint="the formula must be continuous at almost every draw",
        )


def _lazies(
    kept: dict[str, Uniforms | Exponentials | Normals], row: int, needs: Needs, source: Source
) -> Iterator[tuple[str, list[LazyReal]]]:
    for kind, count in (
        ("uniforms", needs.uniforms),
        ("exponentials", needs.exponentials),
        ("normals", needs.normals),
    ):
        yield kind, [kept[kind].lazy((row, i), source) for i in range(count)]


def _ball_row(balls: list[Ball]) -> npt.NDArray[np.object_]:
    row = np.empty((1, len(balls)), dtype=object)
    for i, value in enumerate(balls):
        row[0, i] = value
    return row


def _ball_real(value: Fraction | CertifiedReal) -> Reals:
    return ball(value)


def _float_real(value: Fraction | CertifiedReal) -> Enclosure:
    if isinstance(value, CertifiedReal):
        with precision(128):
            around = ball(value)
            middle = float(around.mid())
            return constant(middle, float(abs(around - flint.arb(middle)).upper()) * (1 + 2.0**-50) + 1e-300)
    try:
        middle = float(value)
    except OverflowError:
        return constant(float("nan"), 0.0)
    return constant(middle, abs(middle) * 2.0**-52 + 1e-300)


def _round_floats(reals: Enclosure, step: Fraction) -> tuple[AnyArray, npt.NDArray[np.bool_]]:
    """floor(x / step + 1/2), and whether the enclosure decides it."""
    try:
        inverse = float(1 / step)
    except OverflowError:
        inverse = float("nan")
    if inverse == 0.0:
        inverse = float("nan")
    # Scaling by a power of two is exact, and the two ends are pushed outwards by more than they can lose.
    mid, rad = reals.mid * inverse, reals.rad * inverse
    slack = (np.abs(mid) + 1.0) * 2.0**-51
    low = np.floor(mid + 0.5 - (rad + slack))
    high = np.floor(mid + 0.5 + (rad + slack))
    settled = (low == high) & (np.abs(low) < 2.0**52)
    return np.where(settled, low, 0.0).astype(np.int64), settled


def rounding_delta(
    *,
    coordinates: int,
    absolute_error: float,
    spacing: Exact,
    marginal_density_bound: float,
    failure_probability: float = 0.0,
) -> float:
    """The cost of rounding an approximate sampler to a grid, in total variation.

    Let the computed vector be within `absolute_error` of an ideal one except with `failure_probability`,
    and let each ideal coordinate have a unimodal density below `marginal_density_bound`. The roundings
    differ only if a coordinate lies within eta of a cell border, so the distance is at most
    d * 2 eta (1 / (g - 2 eta) + 2 M) + p. Uniform distributions on convex bodies have log-concave, hence unimodal,
    marginals.
    """
    d = whole("coordinates", coordinates, least=1)
    g = float(grid_spacing(spacing))
    for name, value in (
        ("absolute_error", absolute_error),
        ("marginal_density_bound", marginal_density_bound),
        ("failure_probability", failure_probability),
    ):
        refuse_if(exact_parameter(name, value, positive=False) < 0, name, value, "be at least 0")
    absolute_error, marginal_density_bound = float(absolute_error), float(marginal_density_bound)
    failure_probability = float(failure_probability)
    if 2.0 * absolute_error >= g:
        raise NotCertified(
            what="a rounded draw",
            reason="the numerical error is as large as a grid cell",
            hint="choose a coarser grid or a more precise sampler",
        )
    border = 2.0 * absolute_error * (1.0 / (g - 2.0 * absolute_error) + 2.0 * marginal_density_bound)
    return min(1.0, (d * border + failure_probability) * (1.0 + 2.0**-40))
