"""Margins of a contingency table: which noise is best, in closed form and without a matrix.

The k one-way counts of a table of k yes-or-no columns can be released at the minimax rate k^2 / epsilon (Hall 2012,
Prop. 2.4.5); which constant, and from which k on Gaussian noise with its sqrt(k) wins, is what this says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.exact.checks import flag, members, whole
from tacit.exact.rationals import Exact
from tacit.guarantees import Neighbours
from tacit.mechanisms.budgets import Budget, block_mechanism
from tacit.mechanisms.knorm import KNorm
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.polytope import RangeNorm
from tacit.mechanisms.rounded_gaussian import RoundedGaussian
from tacit.mechanisms.sensitivity import L1
from tacit.mechanisms.shapes import Gauge
from tacit.mechanisms.strategies import variance_of
from tacit.noise import LinfBall

__all__ = ["MarginPlan", "gaussian_wins_from", "margin_errors", "one_way_margins"]

MOST_COLUMNS = 1 << 16
_ALL = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginPlan:
    """One way to release margins: its mechanism, for which vector, and the expected errors of all counts together."""

    name: str
    mechanism: Laplace | RoundedGaussian | KNorm | RangeNorm
    on: str
    squared: float
    absolute: float

    def __str__(self) -> str:
        return f"{self.name} on {self.on}: expected absolute error {self.absolute:.4g} in all"


def one_way_margins(
    *,
    columns: int,
    epsilon: Exact,
    delta: Exact | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    rows: int = 1,
) -> list[MarginPlan]:
    """The ways to release how many rows say yes to each of k questions, by expected L1 error, best first.

    With b = rows / epsilon: Laplace noise k b a count (k^2 b in all); range-norm noise (k+2)/3 b (add-or-remove) or
    cube noise (k+1)/2 b (replace-one), shaped by what one row can really do; with a delta Gaussian noise, sqrt(2 k /
    pi) rows / mu. All have pure rate k^2 / epsilon, which is minimax, or sqrt(k) k with a delta.
    """
    k, m = whole("columns", columns, least=1), whole("rows", rows, least=1)
    if k > MOST_COLUMNS:
        raise InvalidParameter(parameter="columns", value=k, must=f"be at most {MOST_COLUMNS:,}")
    budget = Budget.of(epsilon, delta)
    laplace = Laplace.for_epsilon(epsilon=budget.epsilon, sensitivity=L1(k * m))
    on = f"{k} counts"
    found = [
        MarginPlan(
            name="Laplace noise", mechanism=laplace, on=on, squared=k * laplace.noise_std**2,
            absolute=k * laplace.expected_error(),
        ),
        _shaped(k, m, budget, replaced=Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE, on=on),
    ]  # fmt: skip
    if budget.delta is not None:
        found.append(_gaussian(k, k * m * m, budget, on))
    return sorted(found, key=lambda plan: plan.absolute)


def gaussian_wins_from(
    *,
    epsilon: Exact,
    delta: Exact,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    against: str = "best",
) -> int:
    """The least number of yes-or-no columns from which Gaussian noise has the smaller expected L1 error.

    against="best": than the best pure noise; against="laplace": than Laplace noise. Gaussian errors grow like k^1.5,
    pure ones like k^2, so that there is one such number.
    """
    if not isinstance(against, str) or against not in ("best", "laplace"):
        raise InvalidParameter(parameter="against", value=against, must='be "best" or "laplace"')
    if delta is None:
        raise InvalidParameter(
            parameter="delta", value=None, must="be given", hint="Gaussian noise needs one"
        )
    budget = Budget.of(epsilon, delta)
    e, mu = float(budget.epsilon), float(budget.mu)

    def wins(k: int) -> bool:
        gaussian = math.sqrt(2 / math.pi * (k / mu**2 + 1 / 12))
        if against == "laplace":
            return gaussian < 1 / math.sinh(e / k)
        replaced = Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE
        return gaussian < min(((k + 1) / 2 if replaced else (k + 2) / 3) / e, 1 / math.sinh(e / k))

    high = 1
    while not wins(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high


def margin_errors(
    *,
    sizes: Sequence[int],
    order: int,
    epsilon: Exact,
    delta: Exact | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_OR_REMOVE,
    rows: int = 1,
    complete: bool = False,
) -> list[MarginPlan]:
    """The ways to release all tables of `order` of the columns: noise on the tables, or on the full table, best first.

    A row is counted once in each of K tables: K (twice that under replace-one) in L1, K or 2 K in squared L2. The
    full table has sensitivity 1 (2), but a count of a margin adds up many of its cells: K p variances in all.
    `complete` says that every row has a key in every column: then one-way tables need the noise of fewer counts, the
    last key of a column being the number of rows less the others.
    """
    shape = [whole("sizes", s, least=2) for s in members("sizes", sizes)]
    if not 1 <= whole("order", order, least=1) <= len(shape):
        raise InvalidParameter(parameter="order", value=order, must=f"lie between 1 and {len(shape)}")
    m, complete = whole("rows", rows, least=1), flag("complete", complete)
    twice = 2 if Neighbours.parse(neighbours) is Neighbours.REPLACE_ONE else 1
    tables = [math.prod(c) for c in itertools.combinations(shape, order)]
    counts, full = sum(tables), math.prod(shape)
    budget = Budget.of(epsilon, delta)
    found = []
    for gaussian in (False, True) if budget.delta is not None else (False,):
        name = "Gaussian noise" if gaussian else "Laplace noise"
        one = twice * (m * m if gaussian else m)
        on_tables = block_mechanism(counts, len(tables) * one, _ALL, budget, gaussian)
        v = variance_of(on_tables)
        shrink = math.sqrt(2 / math.pi) if gaussian else math.sqrt(0.5)
        found.append(
            MarginPlan(
                name=name, mechanism=on_tables, on=f"{len(tables)} tables", squared=counts * v,
                absolute=counts * math.sqrt(v) * shrink,
            )
        )  # fmt: skip
        on_cells = block_mechanism(min(full, 1 << 62), one, _ALL, budget, gaussian)
        v = variance_of(on_cells)
        # Sums of many cells are nearly normal.
        sizes_of = [c * math.sqrt(full / c * v) * math.sqrt(2 / math.pi) for c in tables]
        found.append(
            MarginPlan(
                name=name, mechanism=on_cells, on=f"the full table of {full:,} cells",
                squared=len(tables) * full * v, absolute=sum(sizes_of),
            )
        )  # fmt: skip
    if counts <= MOST_COLUMNS:
        found.append(_shaped(counts, m, budget, replaced=twice == 2, on=f"{len(tables)} tables"))
    if complete and order == 1 and twice == 1 and counts <= MOST_COLUMNS:
        found.append(_all_but_one(shape, m, budget))
    return sorted(found, key=lambda plan: plan.absolute)


def _shaped(counts: int, m: int, budget: Budget, *, replaced: bool, on: str) -> MarginPlan:
    """Noise for counts that one row moves by 0 or 1 each: all one way when it comes or goes, either way if replaced."""
    d, b = counts, float(m / budget.epsilon)
    mechanism: RangeNorm | KNorm
    if replaced:
        gauge = Gauge(m, LinfBall(coordinates=d))
        mechanism, name = KNorm.for_epsilon(epsilon=budget.epsilon, sensitivity=gauge), "cube noise"
        mean, square = (d + 1) / 2 * b, (d + 1) * (d + 2) / 3 * b * b
    else:
        mechanism = RangeNorm.for_epsilon(epsilon=budget.epsilon, dimension=d, times=m)
        mean, square, name = (d + 2) / 3 * b, (d + 2) * (d + 3) / 6 * b * b, "range-norm noise"
    return MarginPlan(name=name, mechanism=mechanism, on=on, squared=d * (square + 1 / 12), absolute=d * mean)


def _all_but_one(shape: Sequence[int], m: int, budget: Budget) -> MarginPlan:
    """Range-norm noise on the number of rows and all keys but one of each column; the last key by subtraction.

    n - sum of the s - 1 others is T (U_n - sum U_j + (s - 2) U_0): variance (s + (s-2)^2) / 12 times E T^2.
    """
    d, b = 1 + sum(s - 1 for s in shape), float(m / budget.epsilon)
    mechanism = RangeNorm.for_epsilon(epsilon=budget.epsilon, dimension=d, times=m)
    second, mean = (d + 2) * (d + 3) * b * b, (d + 2) / 3 * b
    last = [(s + (s - 2) ** 2) / 12 * second for s in shape]
    squared = sum((s - 1) * (second / 6 + 1 / 12) + v + s / 12 for s, v in zip(shape, last, strict=True))
    # The law of the last key is known for two keys; otherwise its standard deviation is above its mean size.
    sizes = [mean if s == 2 else math.sqrt(v) for s, v in zip(shape, last, strict=True)]
    absolute = sum((s - 1) * mean + v for s, v in zip(shape, sizes, strict=True))
    return MarginPlan(
        name="range-norm noise", mechanism=mechanism, on=f"the number of rows and {d - 1} counts",
        squared=squared, absolute=absolute,
    )  # fmt: skip


def _gaussian(counts: int, move: int, budget: Budget, on: str) -> MarginPlan:
    mechanism = block_mechanism(counts, move, _ALL, budget, gaussian=True)
    v = variance_of(mechanism)
    return MarginPlan(
        name="Gaussian noise", mechanism=mechanism, on=on, squared=counts * v,
        absolute=counts * math.sqrt(2 / math.pi * v),
    )  # fmt: skip
