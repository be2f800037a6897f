"""Exact sums and means: how much they tell about one row, if the other rows are unknown enough.

Given its own value x the sum is S + x, with S the sum of the other unknown rows plus a constant (the known rows); the
simulator says S + U with U on the grid. Known law: theorem `shifted-sums`. A law that contains a shape: theorem
`undisclosed-rows`. One simulator serves a whole class of laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.noiseless.answer import ExactAnswer, delta_out_of_reach, within_reach
from tacit.coupled.noiseless.lattice import sum_law
from tacit.coupled.noiseless.minorants import Minorant, rectangle, undisclosed
from tacit.coupled.noiseless.reading import row_law
from tacit.coupled.noiseless.row_laws import RowLaw
from tacit.coupled.noiseless.shapes import kind_of, shapes_below
from tacit.coupled.noiseless.shifts import Found, Shifted, worst
from tacit.coupled.noiseless.simulators import chosen, middle
from tacit.errors import InvalidParameter
from tacit.exact.checks import probability, whole
from tacit.exact.rounding import up
from tacit.guarantees.arguments import listed

__all__ = ["exact_mean", "exact_sum", "rows_and_unknown"]

MOST_ROWS = 10**7
SMALLEST_DELTA = 1e-100


def exact_sum(
    rows: str | RowLaw | Sequence[str | RowLaw],
    *,
    n: int,
    delta: float,
    unknown_rows: int | None = None,
    assume: str = "known",
    rectangle_over: tuple[object, object] | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The epsilon, at this delta, of publishing the exact sum of n rows.

    `rows` is the law of a row, or several: then all rows are drawn from one of them, and it is not known from which.
    `unknown_rows` of the n rows are unknown to the adversary, the protected one among them; all of them if left out.
    `assume="known"` takes the law as known; the other words assume only that it contains the best such shape, or the
    one that is named (`triangle(-2, 0, 2)`; a rectangle also by `rectangle_over`), and any other law on the same grid
    and range that does is covered too.
    """
    return _answer("sum", rows, n, delta, unknown_rows, assume, rectangle_over, grid)


def exact_mean(
    rows: str | RowLaw | Sequence[str | RowLaw],
    *,
    n: int,
    delta: float,
    unknown_rows: int | None = None,
    assume: str = "known",
    rectangle_over: tuple[object, object] | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The same for the exact mean: n is public, so the mean is the sum in another unit."""
    return _answer("mean", rows, n, delta, unknown_rows, assume, rectangle_over, grid)


def rows_and_unknown(n: object, unknown_rows: object) -> tuple[int, int]:
    """(rows, unknown rows), checked."""
    size = whole("n", n, least=2)
    if size > MOST_ROWS:
        raise InvalidParameter(parameter="n", value=size, must=f"be at most {MOST_ROWS}")
    unknown = size if unknown_rows is None else whole("unknown_rows", unknown_rows)
    if unknown > size:
        raise InvalidParameter(
            parameter="unknown_rows", value=unknown, must=f"be at most the number of rows, {size}"
        )
    if unknown < 2:
        raise InvalidParameter(
            parameter="unknown_rows",
            value=unknown,
            must="be 2 at least",
            hint="who knows all other rows reads the last one off an exact answer",
        )
    return size, unknown


def wanted_delta(delta: object) -> float:
    """A delta that can be asked for."""
    found = probability("delta", delta, below_one=True)
    if found < SMALLEST_DELTA:
        raise InvalidParameter(
            parameter="delta",
            value=delta,
            must=f"be at least {SMALLEST_DELTA:g}",
            hint="an exact answer is never private with delta = 0: the smallest possible sum tells every row",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """A class of laws on one grid: where the row can be, and how it is hidden under each of them."""

    laws: tuple[RowLaw, ...]
    low: Fraction
    step: Fraction
    top: int


def _answer(
    statistic: str,
    rows: Any,
    n: object,
    delta: object,
    unknown_rows: object,
    assume: str,
    over: tuple[object, object] | None,
    grid: object,
) -> ExactAnswer:
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    kind = kind_of(assume)
    given = [rows] if isinstance(rows, str | RowLaw) else list(listed("rows", rows))
    family = _family([row_law(r, grid=grid).reduced() for r in given])
    if over is not None and assume != "rectangle":
        raise InvalidParameter(
            parameter="rectangle", value="a rectangle", must='be left out, unless "rectangle" is assumed'
        )
    if kind == "known" and assume != kind:
        raise InvalidParameter(parameter="assume", value=assume[:60], must="be known, without brackets")
    if kind == "known":
        found, pair, simulator = _known(family, unknown - 1, target)
        if math.isinf(found.factor) or math.isinf(pair.factor):
            # Deep tails were cut off: once more with them, so that a refusal names what is possible, and no more.
            deep = _known(family, unknown - 1, target, laws_for=target * 1e-12)
            found, simulator = (deep[0], deep[2]) if math.isinf(found.factor) else (found, simulator)
            pair = deep[1] if math.isinf(pair.factor) else pair
        shapes: list[Minorant] = []
    else:
        found, pair, simulator, shapes = _shaped(family, unknown - 1, target, assume, over)
    if math.isinf(found.factor):
        smallest = found.floor
        if kind != "known":
            # What is given away for certain depends on the delta itself: looked for, not read off.
            smallest = within_reach(
                lambda d: math.isfinite(_shaped(family, unknown - 1, d, assume, over)[0].factor), target
            )
        # Shapes, rounded laws and hulls of shifts bound from above; the rest is exact for this simulator.
        exact = kind == "known" and all(law.log_concave and not law.rounding for law in family.laws)
        raise delta_out_of_reach(statistic, target, smallest, ours=not exact)
    return ExactAnswer(
        statistic=statistic,
        epsilon=found.epsilon,
        epsilon_pair=pair.epsilon if math.isfinite(pair.factor) else None,
        delta=target,
        assumptions=_assumptions(family, size, unknown, assume, shapes),
        theorem="shifted-sums" if kind == "known" else "undisclosed-rows",
        simulator=_named(simulator, family),
        rows=size,
        unknown_rows=unknown,
        family=_family_name(family, assume, shapes),
        details={"assume": assume, "grid": float(family.step), "shapes": [_told(s) for s in shapes]},
    )


def _family(laws: list[RowLaw]) -> _Class:
    """One grid for all laws of the class."""
    if not laws:
        raise InvalidParameter(parameter="rows", value="none", must="name one law at least")
    low, high, step = min(x.low for x in laws), max(x.high for x in laws), laws[0].step
    if any(x.step != step or ((x.low - low) / step).denominator != 1 for x in laws):
        raise InvalidParameter(
            parameter="rows",
            value="laws on several grids",
            must="lie on one grid, of one step",
            hint="one simulator must serve them all: declare the same grid for each",
        )
    return _Class(laws=tuple(laws), low=low, step=step, top=int((high - low) / step))


def _known(
    family: _Class, hidden: int, delta: float, *, laws_for: float | None = None
) -> tuple[Found, Found, dict[int, float]]:
    """Worst over the laws of the class, all with one simulator; sums are enclosed well enough for `laws_for`."""
    worlds = []
    pair = Found(factor=1.0, floor=0.0)
    for law in family.laws:
        shift = int((law.low - family.low) / family.step)
        total = [(1.0, sum_law(law.weights, hidden, delta=laws_for or delta))]
        slack = up(law.rounding * hidden)
        worlds.append((law, [shift + k for k in law.support], total, slack))
        gaps = _gaps(law)
        apart = Shifted(total, 0, gaps[-1], {0: 1.0}, slack=slack)
        pair = pair.or_worse(worst(apart, gaps, delta, log_concave=law.log_concave))

    def against(simulator: dict[int, float], ends: bool) -> Found:
        out = Found(factor=1.0, floor=0.0)
        near = max(simulator) - min(simulator) <= 1
        for law, places, total, slack in worlds:
            one = Shifted(total, places[0], places[-1], simulator, slack=slack)
            out = out.or_worse(worst(one, places, delta, log_concave=ends or (law.log_concave and near)))
        return out

    even = len(family.laws) == 1 and family.laws[0].weights == family.laws[0].weights[::-1]
    simulator = chosen(family.top, lambda s: against(s, True).factor, even=even)
    return against(simulator, False), pair, simulator


def _gaps(law: RowLaw) -> Sequence[int]:
    """How far apart two values can be, in steps."""
    support = law.support
    if law.log_concave or len(support) == support[-1] + 1:
        return range(support[-1] + 1)
    return sorted({b - a for a in support for b in support if b >= a})


def _shaped(
    family: _Class, hidden: int, delta: float, assume: str, over: tuple[object, object] | None
) -> tuple[Found, Found, dict[int, float], list[Minorant]]:
    """Worst over the laws of the class, each by its best shape; the simulator knows the range only."""
    simulator = middle(family.top)
    worst_found = worst_pair = Found(factor=1.0, floor=0.0)
    shapes = []
    for law in family.laws:
        tried = [rectangle(law, *over)] if over is not None else shapes_below(law, assume)
        if len(tried) > 2:
            tried = sorted(tried, key=lambda s: _promise(family.top, s, hidden, delta))[:2]
        hiding = [(shape, undisclosed(shape, hidden, delta)) for shape in tried]
        against = [_against(family.top, *laws, simulator, delta, s.log_concave) for s, laws in hiding]
        best = min(range(len(hiding)), key=lambda j: against[j].factor)
        shape, laws = hiding[best]
        shapes.append(shape)
        worst_found = worst_found.or_worse(against[best])
        worst_pair = worst_pair.or_worse(_against(family.top, *laws, {0: 1.0}, delta, shape.log_concave))
    return worst_found, worst_pair, simulator, shapes


def _promise(top: int, shape: Minorant, hidden: int, delta: float) -> float:
    """About the factor that a shape will need: with a small number of undisclosed rows, at one end of the range."""
    v = float(shape.mass)
    few = max(1, math.floor(hidden * v - 2 * math.sqrt(hidden * v * (1 - v))))
    law = sum_law(shape.law, few, delta=delta)
    return Shifted([(1.0, law)], 0, top, middle(top)).found(top, top, delta).factor


def _against(
    top: int, laws: Any, certain: float, simulator: dict[int, float], delta: float, log_concave: bool
) -> Found:
    """Every place of the range: a law that contains the shape may put the row anywhere."""
    if certain >= delta or not laws:
        return Found(factor=math.inf, floor=max(certain, delta))
    worlds = Shifted(laws, 0, top, simulator, certain=certain)
    return worst(worlds, range(top + 1), delta, log_concave=log_concave)


def _assumptions(
    family: _Class, size: int, unknown: int, assume: str, shapes: list[Minorant]
) -> tuple[str, ...]:
    """In plain words, one clause each."""
    if assume == "known":
        names = [law.describe() for law in family.laws]
        if len(names) == 1:
            first = f"the rows are independent draws from {names[0]}"
        else:
            first = f"the rows are independent draws from one of these laws: {'; '.join(names)}"
    else:
        told = " or ".join(dict.fromkeys(s.words for s in shapes))
        first = f"the rows are independent draws from one distribution on {_grid_words(family)} that {told}"
    return first, known_rows_clause(size, unknown), ALONE


ALONE = "nothing else that depends on these rows is published"


def known_rows_clause(size: int, unknown: int) -> str:
    """How much an adversary may know."""
    if unknown == size:
        return f"an adversary knows none of the {size} rows, only how they are drawn"
    return (
        f"an adversary knows at most {size - unknown} of the {size} rows, and of the other {unknown} only how they "
        "are drawn"
    )


def _grid_words(family: _Class) -> str:
    low, high = float(family.low), float(family.low + family.top * family.step)
    return f"the grid of {float(family.step):g} from {low:g} to {high:g}"


def _told(shape: Minorant) -> dict[str, Any]:
    low, high = float(shape.low), float(shape.high)
    return {"kind": shape.kind, "low": low, "high": high, "mass": float(shape.mass), "words": shape.words}


def _family_name(family: _Class, assume: str, shapes: list[Minorant]) -> str:
    """The class by a name that tells it from others."""
    if assume == "known":
        return "independent rows, " + " or ".join(law.describe() for law in family.laws)
    told = " or ".join(dict.fromkeys(s.words for s in shapes))
    return f"independent rows of one law on {_grid_words(family)} that {told}"


def _named(simulator: dict[int, float], family: _Class) -> str:
    """The simulator in words."""
    values = [float(family.low + u * family.step) for u in sorted(simulator)]
    if len(values) == 1:
        return f"the other rows, with {values[0]:g} in place of the protected one"
    weights = [simulator[u] for u in sorted(simulator)]
    how = (
        "a fair coin" if weights[0] == 0.5 else f"a coin that takes the first with probability {weights[0]:g}"
    )
    return f"the other rows, with {values[0]:g} or {values[1]:g} in place of the protected one, by {how}"
