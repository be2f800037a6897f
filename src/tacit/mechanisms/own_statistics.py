"""Propose, test, release for a statistic of your own: you supply the distance to instability, and tacit checks it.

The user gives a statistic (whole numbers, in steps of a grid) and its distance to instability. Two things must hold for
all neighbours x, x' (theorem `propose-test-release`):

    1. |distance(x) - distance(x')| <= 1;
    2. distance(x) = 0 wherever some neighbour moves the statistic by more than the proposed bound, in L1.

`check_distance` looks at all tables of a few rows. It finds mistakes and proves nothing about longer tables. A
certificate names the basis of the claim: a declared proof, that check, or none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.checks import add_exact, flag, members, positive, set_fields, text, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, ball, bisected, exact_parameter, upper
from tacit.guarantees import Guarantee, Neighbours, People, Unit, rows
from tacit.mechanisms.base import L1, Released, epsilon_parameter
from tacit.mechanisms.propose_test_release import Tested, _ByTest
from tacit.noise.source import Source, default_source

__all__ = ["StatisticByTest"]

Rows = Sequence[Any]
MOST_TABLES = 2_000_000
UNCHECKED = "ASSUMED, AND CHECKED BY NOBODY: "
CLAIM = "the distance to instability moves by at most 1 between neighbours, and is 0 on unstable data"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDistance:
    """All tables of up to `rows` rows over `values` values were compared with all their neighbours.

    `proposed` is the bound, in steps, above which a move counts as unstable; `functions` are the checked functions.
    """

    proposed: int
    values: int
    rows: int
    tables: int
    neighbours: Neighbours
    functions: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def summary(self) -> str:
        """The result of the check, in a sentence."""
        return (
            f"{CLAIM}: checked on all {self.tables} tables of up to {self.rows} rows of {self.values} values; "
            "for longer tables it is assumed"
        )


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in np.ravel(np.asarray(value, dtype=object)))


def check_distance(
    statistic: Callable[[Rows], Any],
    distance: Callable[[Rows], int],
    *,
    proposed: int,
    values: Sequence[Any],
    rows: int,
    neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
) -> CheckedDistance:
    """Compare all tables of up to `rows` rows with all their neighbours; refuse with the first counterexample.

    `proposed` is in steps, in L1. The tables are made up of public `values`: no data are read.
    """
    relation, most = Neighbours.parse(neighbours), whole("rows", rows, least=1)
    given = list(members("values", values))
    if len(given) < 2:
        raise InvalidParameter(parameter="values", value=len(given), must="be at least two different values")
    sizes = range(1, most + 1) if relation is Neighbours.REPLACE_ONE else range(most + 1)
    if sum(math.comb(n + len(given) - 1, n) for n in sizes) * len(given) * most > MOST_TABLES:
        raise InvalidParameter(
            parameter="rows",
            value=most,
            must="be fewer: there would be too many tables",
            hint="or fewer values",
        )
    bound, seen = whole("proposed", proposed, least=0), {}
    places = range(len(given))

    def at(table: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        if table not in seen:
            held = [given[k] for k in table]
            found = distance(held)
            if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < 0:
                raise InvalidParameter(
                    parameter="distance",
                    value=str(found),
                    must=f"be a whole number of at least 0 (at {held})",
                )
            seen[table] = (_numbers(statistic(held)), int(found))
            # Tables are sets with repetitions here; a function of the order would be checked on sorted ones alone.
            for other in (held[::-1], held[1:] + held[:1]):
                if (_numbers(statistic(other)), distance(other)) != seen[table]:
                    raise InvalidParameter(
                        parameter="statistic", value=str(other), must="not depend on the order of the rows",
                        hint="sort the rows in the statistic, and in the distance",
                    )  # fmt: skip
        return seen[table]

    count = 0
    for size in sizes:
        for table in itertools.combinations_with_replacement(places, size):
            count += 1
            (here, far) = at(table)
            for other in _neighbours(table, places, relation, most):
                there, away = at(other)
                said = f"{[given[k] for k in table]} and {[given[k] for k in other]}"
                if abs(far - away) > 1:
                    raise InvalidParameter(
                        parameter="distance", value=f"{far} and {away}",
                        must=f"move by at most 1 between neighbours, which {said} are",
                    )  # fmt: skip
                if len(here) != len(there):
                    raise InvalidParameter(
                        parameter="statistic", value=said, must="have as many numbers for every table"
                    )
                if far > 0 and sum(abs(a - b) for a, b in zip(here, there, strict=True)) > bound:
                    raise InvalidParameter(
                        parameter="distance", value=far,
                        must=f"be 0 where the statistic is unstable: it moves by more than {bound} between {said}",
                    )  # fmt: skip
    return CheckedDistance(
        proposed=bound, values=len(given), rows=most, tables=count, neighbours=relation,
        functions=(statistic, distance),
    )  # fmt: skip


def _neighbours(table: tuple[int, ...], places: Sequence[int], relation: Neighbours, most: int) -> Any:
    """All neighbours as sorted tuples; each pair is visited from both sides."""
    for k in range(len(table)):
        left = table[:k] + table[k + 1 :]
        if relation is Neighbours.REPLACE_ONE:
            for value in places:
                yield tuple(sorted((*left, value)))
        else:
            yield left
    if relation is not Neighbours.REPLACE_ONE and len(table) < most:
        for value in places:
            yield tuple(sorted((*table, value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticByTest(_ByTest):
    """A statistic of your own, released if the data are far from all tables on which one unit moves it by more than
    `proposed`.

    Guarantee: Approximate(test_epsilon + release_epsilon, delta), if the distance satisfies its definition;
    `assumptions` names the evidence for that. Every number gets discrete Laplace noise of scale proposed /
    release_epsilon, `proposed` being in L1. The test passes if distance + discrete Laplace(1 / test_epsilon) is
    above a threshold with Pr[noise > threshold] <= delta. A statistic or distance that raises counts as
    unstable. Replace-one neighbours or add-or-remove, as the distance is made for. Theorem
    `propose-test-release`. Source: Dwork, Lei 2009.
    """

    statistic: Callable[[Rows], Any] = field(repr=False)
    distance: Callable[[Rows], int] = field(repr=False)
    proposed: L1
    test_epsilon: Exact
    release_epsilon: Exact
    delta: Exact
    spacing: Exact = 1
    numbers: int = 1
    proof: str = ""
    checked: CheckedDistance | None = None
    proved_for: Unit | None = None

    def __post_init__(self) -> None:
        self._check()
        for name in ("statistic", "distance"):
            if not callable(getattr(self, name)):
                raise InvalidParameter(
                    parameter=name, value=type(getattr(self, name)).__name__, must="be a function of the rows"
                )
        set_fields(self, numbers=whole("numbers", self.numbers, least=1), proof=text("proof", self.proof))
        if not isinstance(self.checked, CheckedDistance | None):
            raise InvalidParameter(
                parameter="checked", value=type(self.checked).__name__, must="come from check_distance(...)"
            )
        if not isinstance(self.proved_for, Unit | None):
            raise InvalidParameter(
                parameter="proved_for", value=type(self.proved_for).__name__, must="be a unit, such as rows()"
            )
        if self.checked is not None and self.checked.functions != (self.statistic, self.distance):
            raise InvalidParameter(
                parameter="checked", value="another check", must="be of this statistic and this distance"
            )
        if self.checked is not None and self.checked.proposed > self.proposed.steps(self.step):
            raise InvalidParameter(
                parameter="proposed", value=str(self.proposed.exact), must="be at least the bound that was checked",
                hint=f"the check allowed moves of {self.checked.proposed} steps",
            )  # fmt: skip

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Conditions of the guarantee besides the theorem."""
        if self.proof:
            return (f"{CLAIM}: declared, by {self.proof}",)
        return (f"{UNCHECKED}{CLAIM}",) if self.checked is None else (self.checked.summary(),)

    def certificate_for(self, unit: Unit) -> dict[str, Any]:
        """The promise as plain JSON, with its assumptions."""
        known = () if self.proved_for is None else ((self.proved_for, "proved"),)
        if self.checked is not None and not self.proof:
            known = (*known, (rows(neighbours=self.checked.neighbours), "checked"))
        for own, how in known:
            if unit != own:
                raise InvalidParameter(
                    parameter="unit",
                    value=str(unit),
                    must=f"be {own}",
                    hint=f"the distance was {how} for these",
                )
        promise = Guarantee(bound=self.bound, unit=unit, declared=self.assumptions)
        told = {
            "guarantee": promise.to_dict(),
            "meaning": promise.explain(),
            "assumptions": list(self.assumptions),
        }
        return {**_ByTest.certificate_for(self, unit), **told}

    def _values(self, rows: Rows) -> tuple[tuple[int, ...], int]:
        """Statistic and distance; any failure counts as an unstable table, and reveals nothing more."""
        try:
            values, found = _numbers(self.statistic(rows)), int(self.distance(rows))
        except Exception:  # no error of a user's function may tell of a row
            return (0,) * self.numbers, 0
        return (values, max(found, 0)) if len(values) == self.numbers else ((0,) * self.numbers, 0)

    def release(self, values: Any, *, source: Source | None = None) -> Tested:
        """Test, then release or decline. `values` are the rows, as the two functions take them."""
        source = source if source is not None else default_source()
        found, distance = self._values(values)
        test = self._test_distribution.sample(source=source)
        noise = [int(self.distribution.sample(source=source)) for _ in range(self.numbers)]
        if not distance + int(test) > self.threshold:
            return Tested(passed=False, released=None, publishable=source.publishable)
        noisy = add_exact(np.array(found, dtype=object), np.array(noise, dtype=object))
        released = Released(values=noisy, spacing=self.step, publishable=source.publishable)
        return Tested(passed=True, released=released, publishable=source.publishable)

    def passes(self, distance: int) -> float:
        """The probability that data at this distance pass the test; for planning, with a made-up distance."""
        k, q = (
            self.threshold - whole("distance", distance, least=0),
            math.exp(-float(Fraction(self.test_epsilon))),
        )
        return q ** (k + 1) / (1 + q) if k >= 0 else 1 - q**-k / (1 + q)


# Least squares by the least eigenvalue of the sums of products: simple regression for one column, multiple for more.


def _positive_definite(matrix: list[list[Fraction]]) -> bool:
    """Is a symmetric matrix positive semidefinite with positive pivots? Exact, by elimination."""
    held = [row[:] for row in matrix]
    size = len(held)
    for k in range(size):
        pivot = held[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, size):
            factor = held[i][k] / pivot
            for j in range(i, size):
                held[i][j] -= factor * held[k][j]
                held[j][i] = held[i][j]
    return True


def _solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of a positive definite system, exactly; None without one."""
    held = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    size = len(held)
    for k in range(size):
        if held[k][k] <= 0:
            return None
        for i in range(k + 1, size):
            factor = held[i][k] / held[k][k]
            held[i] = [a - factor * b for a, b in zip(held[i], held[k], strict=True)]
    out = [Fraction(0)] * size
    for k in reversed(range(size)):
        out[k] = (held[k][-1] - sum(held[k][j] * out[j] for j in range(k + 1, size))) / held[k][k]
    return out


def _floats(row: Any, count: int) -> list[float]:
    """The numbers of one row, 0 for other values; a row of another length becomes all 0.
    No row decides about others."""
    try:
        held = list(row)
    except Exception:  # whatever one row raises, it has no numbers
        held = []
    if len(held) != count:
        return [0.0] * count
    out = []
    for value in held:
        try:
            out.append(float(value))
        except Exception:  # whatever one value raises, it is no number
            out.append(0.0)
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSquares:
    """Coefficients of least squares with an intercept, and their distance to instability.

    Columns and outcome are scaled to [-1, 1] by declared bounds and put on a grid of 1/`grid`. With S the sum of z z'
    over at most n rows z = (x, 1) and R^2 = columns + 1, a unit with at most m rows (`unit_rows`) moves the
    coefficients by at most

        move(l) = c m R (1 + R sqrt(n / l)) / (l - m R^2)    in L2, if the least eigenvalue of S is l > m R^2,

    c = 2 under replace-one and 1 under add-or-remove, and l by at most m R^2 (theorem `least-squares-distance`). The
    distance is the largest k with S - (floor + k m R^2) I positive definite, where move(floor) keeps to the proposed
    bound; all of it in exact arithmetic. `rows` is the public number of rows, or with `counted=False` an upper
    bound that the distance watches too: a table with rows to spare is (rows + m - own) / m units away from too
    many.
    """

    columns: int
    rows: int
    floor: Exact
    grid: int = 1 << 10
    unit_rows: int = 1
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    counted: bool = True

    def __post_init__(self) -> None:
        set_fields(
            self, columns=whole("columns", self.columns, least=1), rows=whole("rows", self.rows, least=1),
            grid=whole("grid", self.grid, least=1), floor=exact_parameter("floor", self.floor),
            unit_rows=whole("unit_rows", self.unit_rows, least=1), neighbours=Neighbours.parse(self.neighbours),
            counted=flag("counted", self.counted),
        )  # fmt: skip
        if self.counted and (self.unit_rows > 1 or self.neighbours is not Neighbours.REPLACE_ONE):
            raise InvalidParameter(
                parameter="counted",
                value=True,
                must="be False: only replaced rows leave their number as it is",
            )
        if self.grid**2 * self.rows >= 1 << 62:
            raise InvalidParameter(
                parameter="grid", value=self.grid, must="be coarser: sums of products must stay below 2^62"
            )
        if Fraction(self.floor) <= self.weight:
            raise InvalidParameter(
                parameter="floor", value=float(self.floor), must=f"be above {self.weight}, the square of a unit's rows",
                hint="below it one unit decides about the fitted line",
            )  # fmt: skip
        if Fraction(self.floor) > self.rows:
            raise InvalidParameter(
                parameter="floor",
                value=float(self.floor),
                must="be at most the number of rows: no table reaches it",
            )

    @property
    def radius_squared(self) -> int:
        """No row with its constant is longer."""
        return self.columns + 1

    @property
    def weight(self) -> int:
        """A unit moves the least eigenvalue by no more."""
        return self.unit_rows * self.radius_squared

    @property
    def numbers(self) -> int:
        """The coefficients, then the constant."""
        return self.columns + 1

    def move(self, spacing: Exact) -> Fraction:
        """The L1 sensitivity of the rounded coefficients, above the floor; rounded up to whole steps."""
        step, least = Fraction(spacing), Fraction(self.floor)

        def formula() -> Any:
            radius = ball(self.radius_squared).sqrt()
            sides = 2 if self.neighbours is Neighbours.REPLACE_ONE else 1
            far = sides * self.unit_rows * radius * (1 + radius * ball(Fraction(self.rows) / least).sqrt())
            # In L1 at most the root of the number of coefficients times as much; rounding adds a step each.
            return far / ball(least - self.weight) * ball(self.numbers).sqrt() / ball(step) + self.numbers

        return math.ceil(Fraction(upper(formula))) * step

    def _sums(self, rows: Any) -> tuple[list[list[Fraction]], list[Fraction]]:
        held = list(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)
        if self.counted and len(held) != self.rows:
            raise InvalidParameter(parameter="rows", value=len(held), must="be as many as is public")
        array = np.array([_floats(row, self.columns + 1) for row in held]).reshape(
            len(held), self.columns + 1
        )
        return self._exactly(np.rint(np.nan_to_num(np.clip(array, -1, 1)) * self.grid).astype(np.int64))

    def _exactly(self, steps: npt.NDArray[np.int64]) -> tuple[list[list[Fraction]], list[Fraction]]:
        """Sums of products of rows in steps of the grid."""
        z = np.column_stack([steps[:, :-1], np.full(len(steps), self.grid)])
        square = self.grid**2
        products, right = z.T @ z, z.T @ steps[:, -1]
        return (
            [[Fraction(int(v), square) for v in row] for row in products],
            [Fraction(int(v), square) for v in right],
        )

    def statistic(self, rows: Any, *, spacing: Exact) -> list[int]:
        """The coefficients in steps; zeros without a unique solution."""
        return self._steps(*self._sums(rows), spacing)

    def _steps(self, products: list[list[Fraction]], right: list[Fraction], spacing: Exact) -> list[int]:
        found = _solved(products, right)
        return [0] * self.numbers if found is None else [round(v / Fraction(spacing)) for v in found]

    def distance(self, rows: Any) -> int:
        """The largest k with least eigenvalue above floor + k m R^2; 0 if no k is."""
        return self._distance(self._sums(rows)[0], len(rows))

    def _distance(self, products: list[list[Fraction]], own: int) -> int:
        def above(k: int) -> bool:
            less = Fraction(self.floor) + k * self.weight
            return _positive_definite(
                [[v - (less if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(products)]
            )

        largest, _ = bisected(lambda k: not above(k), 0, self.rows + 1)
        if self.counted:
            return largest
        return min(largest, max(0, (self.rows + self.unit_rows - own) // self.unit_rows))

    def of_steps(self, steps: npt.NDArray[np.int64], *, spacing: Exact) -> tuple[list[int], int]:
        """Coefficients in steps and the distance, of rows on the grid (columns, then the outcome) without gaps."""
        products, right = self._exactly(steps)
        return self._steps(products, right, spacing), self._distance(products, len(steps))

    def mechanism(
        self,
        *,
        test_epsilon: Exact,
        release_epsilon: Exact,
        delta: Exact,
        spacing: Exact = Fraction(1, 1 << 20),
        unit: Unit | None = None,
    ) -> StatisticByTest:
        """Propose, test, release of the coefficients, with the least bound that the floor proves.

        `unit` names the owner of at most `unit_rows` rows, if that is more than one row.
        """
        return StatisticByTest(
            statistic=lambda rows: self.statistic(rows, spacing=spacing), distance=self.distance,
            proposed=L1(self.move(spacing)), test_epsilon=test_epsilon, release_epsilon=release_epsilon, delta=delta,
            spacing=spacing, numbers=self.numbers, proof="the theorem least-squares-distance",
            proved_for=self._of(unit),
        )  # fmt: skip

    def _of(self, unit: Unit | None) -> Unit:
        """The unit that the distance is for."""
        one = rows(neighbours=self.neighbours)
        if unit is None and self.unit_rows == 1:
            return one
        most = unit.at_most if isinstance(unit, People) else 1 if unit == one else self.unit_rows + 1
        if unit is None or unit.neighbours is not self.neighbours or most > self.unit_rows:
            raise InvalidParameter(
                parameter="unit", value=str(unit), must=f"have at most {self.unit_rows} rows, {self.neighbours.value}",
                hint="the distance is proved for these",
            )  # fmt: skip
        return unit

    @classmethod
    def for_spread(
        cls,
        *,
        columns: int,
        rows: int,
        least_eigenvalue: float,
        test_epsilon: Exact,
        delta: Exact,
        grid: int = 1 << 10,
        unit_rows: int = 1,
        neighbours: str | Neighbours = Neighbours.REPLACE_ONE,
        counted: bool = True,
    ) -> LeastSquares:
        """The largest floor that a table with this least mean eigenvalue passes at 95%: a public guess.

        With `counted=False` the table may have as many rows beyond `rows` as a table of that size needs to pass.
        """
        from tacit.noise import DiscreteLaplace

        law = DiscreteLaplace(noise_scale=1 / epsilon_parameter(test_epsilon, "test_epsilon"))
        needed = (
            law.quantile(1 - Fraction(exact_parameter("delta", delta))) + 1 + law.quantile(Fraction(95, 100))
        )
        wanted = Fraction(positive("least_eigenvalue", least_eigenvalue)) * whole("rows", rows, least=1)
        weight = whole("unit_rows", unit_rows, least=1) * (whole("columns", columns, least=1) + 1)
        floor = wanted - (needed + 1) * weight
        if floor <= weight:
            raise InvalidParameter(
                parameter="rows", value=rows, must="be larger: the test could not be passed",
                hint="a larger test_epsilon or delta, or a larger least_eigenvalue",
            )  # fmt: skip
        most = rows if counted else rows + (needed + 1) * unit_rows
        return cls(
            columns=columns, rows=most, floor=floor, grid=grid, unit_rows=unit_rows,
            neighbours=Neighbours.parse(neighbours), counted=counted,
        )  # fmt: skip
