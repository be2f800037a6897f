"""Exact sums and means, and their privacy loss for one row if the other rows are uncertain enough.

Given its own value x the sum is S + x, with S the sum of the other unknown rows plus a constant (the known rows). The
simulator says S + U with U on the grid. Known distribution: theorem `shifted-sums`. A distribution that
contains a shape: theorem
`undisclosed-rows`. One simulator serves a whole class of distributions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.coupled.noiseless.answer import (
    ExactAnswer,
    call_parts,
    delta_out_of_reach,
    row_law,
    shown,
    within_reach,
)
from tacit.coupled.noiseless.lattice import (
    FoundShift,
    Shifted,
    SumLaw,
    chosen,
    factor_for,
    least_epsilon,
    middle,
    sum_law,
    sum_laws,
    worst,
)
from tacit.coupled.noiseless.minorants import (
    KINDS,
    Minorant,
    minorants_of,
    peaked,
    rectangle,
    stairs,
    undisclosed,
)
from tacit.coupled.noiseless.prisms import Prism, pair_epsilon, prism_epsilon
from tacit.coupled.noiseless.row_laws import RowLaw, as_typed, bernoulli
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import listed, probability, refuse_if, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import up

# Shapes as text, such as `rectangle(-1.5, 1.5)`, `triangle(-2, 0, 2)` or `normal(0, 1, cut=(-2, 2))`.
#
# A shape that is named is taken as tall as it fits below the distribution; a name without brackets stands for
# the best one
# that is found (`minorants`). Ends, feet and peak are values of a row, in its own unit.

HINT = 'such as "rectangle(-1.5, 1.5)", "rectangles(-2, 2, -1, 1)", "triangle(-2, 0, 2)", "normal(0, 1, cut=(-2, 2))"'


def kind_of(assume: object) -> str:
    """The first word of the assumption: `known`, or the kind of a shape."""
    kind = assume.partition("(")[0].strip() if isinstance(assume, str) else ""
    if kind not in ("known", *KINDS):
        raise UnknownName(what="assumption", name=str(assume)[:60], known=("known", *KINDS), hint=HINT)
    return kind


def shapes_below(law: RowLaw, assume: str) -> list[Minorant]:
    """The shape that is named, or the most promising ones of a kind."""
    kind = kind_of(assume)
    if "(" not in assume:
        return minorants_of(law, kind)
    _, numbers, named = call_parts("assume", assume, HINT)
    values = [as_typed("assume", v) for v in numbers]
    if kind == "rectangle" and len(values) == 2 and not named:
        return [rectangle(law, *values)]
    if kind == "rectangles" and len(values) >= 2 and len(values) % 2 == 0 and not named:
        return [_stairs(law, list(zip(values[::2], values[1::2], strict=True)))]
    made: Minorant | None
    if kind == "triangle" and len(values) == 3 and not named and values[0] < values[1] < values[2]:
        low, peak, high = (_place(law, v) for v in values)
        first, last = max(math.ceil(low), 0), min(math.floor(high), len(law.weights) - 1)
        made = peaked(law, kind, first, last, peak, (peak - low, high - peak))
    elif kind == "normal" and len(values) == 2 and set(named) == {"cut"} and len(named["cut"]) == 2:
        ends = _inside(law, *(as_typed("assume", v) for v in named["cut"]))
        width = values[1] / law.step
        if width <= 0:
            raise InvalidParameter(
                parameter="assume", value=assume[:60], must="have a positive width", hint=HINT
            )
        made = peaked(law, kind, *ends, _place(law, values[0]), (width, width))
    else:
        raise InvalidParameter(
            parameter="assume", value=assume[:60], must="name a shape by its ends, low end first", hint=HINT
        )
    if made is None:
        raise InvalidParameter(
            parameter="assume",
            value=assume[:60],
            must="hold two values of the grid at least, and only values that can occur",
            hint="a value of probability 0 under the shape leaves no shape at all",
        )
    return [made]


def _place(law: RowLaw, value: Fraction) -> Fraction:
    """The value in steps above the lowest value of the distribution; it lies in the range, on the grid or off it."""
    if not law.low <= value <= law.high:
        raise InvalidParameter(
            parameter="assume",
            value=float(value),
            must=f"lie inside the support, from {float(law.low):g} to {float(law.high):g}",
        )
    return (value - law.low) / law.step


def _inside(law: RowLaw, low: Fraction, high: Fraction) -> tuple[int, int]:
    """The first and the last place of the grid between two values."""
    return math.ceil(_place(law, low)), math.floor(_place(law, high))


def _stairs(law: RowLaw, ends: Sequence[tuple[Any, Any]]) -> Minorant:
    """The first rectangle as tall as possible, the next one on the remainder, and so on."""
    left, taken = list(law.weights), []
    for low, high in ends:
        first = rectangle(law, low, high).first
        last = _inside(law, low, high)[1]
        height = min(left[first : last + 1])
        if height <= 0:
            raise InvalidParameter(
                parameter="assume",
                value=f"{float(low):g},{float(high):g}",
                must="be rectangles that leave room for each other: name the lowest and widest first",
            )
        taken.append((first, last - first + 1, height))
        for k in range(first, last + 1):
            left[k] -= height
    return stairs(law, taken)


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
    group: int = 1,
) -> ExactAnswer:
    """The epsilon, at this delta, of publishing the exact sum of n rows.

    `rows` is the distribution of a row, or several: then all rows come from one of them, and nobody knows which.
    `unknown_rows` of the n rows are unknown to the adversary, the protected one among them; all of them if left out.
    `assume="known"` takes the distribution as known. The other words assume only that it contains the best such
    shape, or the named one (`triangle(-2, 0, 2)`; a rectangle also by `rectangle_over`), and cover any other
    distribution on the same grid and range that does. With `group`, up to this many rows are hidden together,
    which may be drawn together in any way (theorem `hidden-groups`).
    """
    return _answer("sum", rows, n, delta, unknown_rows, assume, rectangle_over, grid, group)


def exact_mean(
    rows: str | RowLaw | Sequence[str | RowLaw],
    *,
    n: int,
    delta: float,
    unknown_rows: int | None = None,
    assume: str = "known",
    rectangle_over: tuple[object, object] | None = None,
    grid: object = None,
    group: int = 1,
) -> ExactAnswer:
    """The same for the exact mean: n is public, so the mean is the sum in another unit."""
    return _answer("mean", rows, n, delta, unknown_rows, assume, rectangle_over, grid, group)


def rows_and_unknown(n: object, unknown_rows: object) -> tuple[int, int]:
    """(rows, unknown rows), checked."""
    size = whole("n", n, least=2)
    refuse_if(size > MOST_ROWS, "n", size, f"be at most {MOST_ROWS}")
    unknown = size if unknown_rows is None else whole("unknown_rows", unknown_rows)
    refuse_if(unknown > size, "unknown_rows", unknown, f"be at most the number of rows, {size}")
    if unknown < 2:
        raise InvalidParameter(
            parameter="unknown_rows",
            value=unknown,
            must="be 2 at least",
            hint="anybody who knows all other rows computes the last one from an exact answer",
        )
    return size, unknown


def group_of(group: object, unknown: int) -> int:
    """The number of rows hidden together, checked: at least one other unknown row must remain."""
    size = whole("group", group)
    if size >= unknown:
        raise InvalidParameter(
            parameter="group", value=size, must=f"be smaller than the number of unknown rows, {unknown}",
            hint="only unknown rows outside of the group hide it",
        )  # fmt: skip
    return size


def group_clause(group: int) -> tuple[str, ...]:
    """The hidden group, if it is more than one row."""
    if group == 1:
        return ()
    return (
        f"the hidden group has at most {group} rows, which may be drawn together in any way, and the rows outside of "
        "it are independent of it",
    )


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
    """A class of distributions on one grid: the places of the row, and its hiding sum under each of them."""

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
    group: object = 1,
) -> ExactAnswer:
    size, unknown = rows_and_unknown(n, unknown_rows)
    together = group_of(group, unknown)
    hidden = unknown - together
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
        found, pair, simulator = _known(family, hidden, target, together)
        if math.isinf(found.factor) or math.isinf(pair.factor):
            # Deep tails were cut off: once more with them, so that a refusal names what is possible, and no more.
            deep = _known(family, hidden, target, together, laws_for=target * 1e-12)
            found, simulator = (deep[0], deep[2]) if math.isinf(found.factor) else (found, simulator)
            pair = deep[1] if math.isinf(pair.factor) else pair
        shapes: list[Minorant] = []
    else:
        found, pair, simulator, shapes = _shaped(family, hidden, target, assume, over, together)
    if math.isinf(found.factor):
        smallest = found.floor
        if kind != "known":
            # What is given away for certain depends on the delta itself: looked for, not read off.
            smallest = within_reach(
                lambda d: math.isfinite(_shaped(family, hidden, d, assume, over, together)[0].factor), target
            )
        # Shapes, rounded distributions and hulls of shifts bound from above; the rest is exact for this simulator.
        exact = kind == "known" and all(law.log_concave and not law.rounding for law in family.laws)
        exact = exact and (together == 1 or all(len(w.support) == w.support[-1] + 1 for w in family.laws))
        raise delta_out_of_reach(statistic, target, smallest, ours=not exact)
    return ExactAnswer(
        statistic=statistic,
        epsilon=found.epsilon,
        epsilon_pair=pair.epsilon if math.isfinite(pair.factor) else None,
        delta=target,
        assumptions=(*_assumptions(family, size, unknown, assume, shapes), *group_clause(together)),
        theorem="hidden-groups"
        if together > 1
        else "shifted-sums"
        if kind == "known"
        else "undisclosed-rows",
        simulator=_named(simulator, family, together),
        rows=size,
        unknown_rows=unknown,
        family=_family_name(family, assume, shapes),
        group=together,
        details={
            "assume": assume,
            "grid": float(family.step),
            "shapes": [_minorant_values(s) for s in shapes],
        },
    )


def _family(laws: list[RowLaw]) -> _Class:
    """One grid for all distributions of the class."""
    refuse_if(not laws, "rows", "none", "name one law at least")
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
    family: _Class, hidden: int, delta: float, group: int, *, laws_for: float | None = None
) -> tuple[FoundShift, FoundShift, dict[int, float]]:
    """The worst case over the distributions of the class, with one simulator; sums are enclosed well enough for
    `laws_for`.
    """
    worlds = []
    pair = FoundShift(factor=1.0, floor=0.0)
    for law in family.laws:
        shift = int((law.low - family.low) / family.step)
        total = [(1.0, sum_law(law.weights, hidden, delta=laws_for or delta))]
        slack = up(law.rounding * hidden)
        places: Sequence[int] = [shift + k for k in law.support]
        gaps = _gaps(law)
        if group > 1:
            # All totals between the ends: those that the group cannot have only make the claim weaker.
            places = range(group * places[0], group * places[-1] + 1)
            gaps = range(group * gaps[-1] + 1)
        worlds.append((law, places, total, slack))
        apart = Shifted(total, 0, gaps[-1], {0: 1.0}, slack=slack)
        pair = pair.or_worse(worst(apart, gaps, delta, log_concave=law.log_concave))

    def against(simulator: dict[int, float], ends: bool) -> FoundShift:
        out = FoundShift(factor=1.0, floor=0.0)
        near = max(simulator) - min(simulator) <= 1
        for law, places, total, slack in worlds:
            one = Shifted(total, places[0], places[-1], simulator, slack=slack)
            out = out.or_worse(worst(one, places, delta, log_concave=ends or (law.log_concave and near)))
        return out

    even = len(family.laws) == 1 and family.laws[0].weights == family.laws[0].weights[::-1]
    simulator = chosen(family.top * group, lambda s: against(s, True).factor, even=even)
    return against(simulator, False), pair, simulator


def _gaps(law: RowLaw) -> Sequence[int]:
    """The largest distance of two values, in steps."""
    support = law.support
    if law.log_concave or len(support) == support[-1] + 1:
        return range(support[-1] + 1)
    return sorted({b - a for a in support for b in support if b >= a})


def _shaped(
    family: _Class,
    hidden: int,
    delta: float,
    assume: str,
    over: tuple[object, object] | None,
    group: int = 1,
) -> tuple[FoundShift, FoundShift, dict[int, float], list[Minorant]]:
    """The worst case over the distributions of the class, each by its best shape; the simulator knows the
    range only.
    """
    top = family.top * group
    simulator = middle(top)
    worst_found = worst_pair = FoundShift(factor=1.0, floor=0.0)
    shapes = []
    for law in family.laws:
        tried = [rectangle(law, *over)] if over is not None else shapes_below(law, assume)
        if len(tried) > 2:
            tried = sorted(tried, key=lambda s: _promise(top, s, hidden, delta))[:2]
        hiding = [(shape, undisclosed(shape, hidden, delta)) for shape in tried]
        against = [_against(top, *laws, simulator, delta, s.log_concave) for s, laws in hiding]
        best = min(range(len(hiding)), key=lambda j: against[j].factor)
        shape, laws = hiding[best]
        shapes.append(shape)
        worst_found = worst_found.or_worse(against[best])
        worst_pair = worst_pair.or_worse(_against(top, *laws, {0: 1.0}, delta, shape.log_concave))
    return worst_found, worst_pair, simulator, shapes


def _promise(top: int, shape: Minorant, hidden: int, delta: float) -> float:
    """An estimate of the factor that a shape will need, with a small number of undisclosed rows, at one end of
    the range.
    """
    v = float(shape.mass)
    few = max(1, math.floor(hidden * v - 2 * math.sqrt(hidden * v * (1 - v))))
    law = sum_law(shape.law, few, delta=delta)
    return Shifted([(1.0, law)], 0, top, middle(top)).found(top, top, delta).factor


def _against(
    top: int, laws: Any, certain: float, simulator: dict[int, float], delta: float, log_concave: bool
) -> FoundShift:
    """Every place of the range, since a distribution that contains the shape may put the row anywhere."""
    if certain >= delta or not laws:
        return FoundShift(factor=math.inf, floor=max(certain, delta))
    worlds = Shifted(laws, 0, top, simulator, certain=certain)
    return worst(worlds, range(top + 1), delta, log_concave=log_concave)


def _assumptions(
    family: _Class, size: int, unknown: int, assume: str, shapes: list[Minorant]
) -> tuple[str, ...]:
    """The assumptions in plain words, one clause each."""
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
    """The knowledge that an adversary may have."""
    if unknown == size:
        return f"an adversary knows none of the {size} rows, only how they are drawn"
    return (
        f"an adversary knows at most {size - unknown} of the {size} rows, and of the other {unknown} only how they "
        "are drawn"
    )


def _grid_words(family: _Class) -> str:
    low, high = float(family.low), float(family.low + family.top * family.step)
    return f"the grid of {float(family.step):g} from {low:g} to {high:g}"


def _minorant_values(shape: Minorant) -> dict[str, Any]:
    low, high = float(shape.low), float(shape.high)
    return {"kind": shape.kind, "low": low, "high": high, "mass": float(shape.mass), "words": shape.words}


def _family_name(family: _Class, assume: str, shapes: list[Minorant]) -> str:
    """A name of the class that differs from the names of all others."""
    if assume == "known":
        return "independent rows, " + " or ".join(law.describe() for law in family.laws)
    told = " or ".join(dict.fromkeys(s.words for s in shapes))
    return f"independent rows of one law on {_grid_words(family)} that {told}"


def _named(simulator: dict[int, float], family: _Class, group: int = 1) -> str:
    """The simulator in words."""
    place = "the protected one" if group == 1 else "the total of the group"
    values = [float(group * family.low + u * family.step) for u in sorted(simulator)]
    if len(values) == 1:
        return f"the other rows, with {values[0]:g} in place of {place}"
    weights = [simulator[u] for u in sorted(simulator)]
    how = (
        "a fair coin" if weights[0] == 0.5 else f"a coin that takes the first with probability {weights[0]:g}"
    )
    return f"the other rows, with {values[0]:g} or {values[1]:g} in place of {place}, by {how}"


# Exact counts: each row is 1 with a probability of its own, of which only an interval is known.
#
# Rows are independent, row i is 1 with probability p_i in [a, b]. The distributions of the count given the
# protected row are
# affine in each p_j, and divergences are jointly convex, so the worst case has every p_j at a or b: k of the m other
# rows at a and m - k at b, for some k (theorem `count-corners`). A run of corners k1 <= k <= k2 is covered by
# disclosing the rows in which they differ: Bin(k1, a) + Bin(m - k2, b). Runs are halved while they need more than
# some corner does.

_RUNS = 24
_NEAR, _NEAR_OF_MANY = 1.0002, 1.002
_MANY = 20_000
MOST_LAWS = 4000
FAIR = {0: 0.5, 1: 0.5}


def exact_count(
    probability: object, *, n: int, delta: float, unknown_rows: int | None = None, group: int = 1
) -> ExactAnswer:
    """The epsilon, at this delta, of publishing the exact number of rows that are 1.

    `probability` is one number, the known probability of a 1 in every row, or (a, b): the ends of the
    probabilities of the rows. `unknown_rows` of the rows are unknown to the adversary, the protected one among
    them. With `group`, a household of up to this many rows is hidden together (theorem `hidden-groups`).
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    together = group_of(group, unknown)
    target = wanted_delta(delta)
    a, b = _interval(probability)
    hidden = unknown - together
    runs = _Runs(a, b, hidden, target, together)
    floor = max(
        least_epsilon(sum_law(bernoulli(p).weights, hidden, delta=target), together, target) for p in {a, b}
    )
    simulator = runs.simulator()
    found = runs.worst(simulator)
    pair = runs.worst({0: 1.0})
    if math.isinf(found.factor):
        both = (
            f"between two values of a row it is {shown(pair.floor)}, and " if math.isinf(pair.factor) else ""
        )
        raise delta_out_of_reach(
            "count",
            target,
            found.floor,
            hint=f"{both}with this delta no simulator at all has an epsilon below "
            f"{math.floor(floor * 1000) / 1000:g}; allow a larger delta, or assume more unknown rows",
            ours=a < b,
        )
    same = {p: runs.alone(p) for p in (a, b)}
    chance = f"{float(a):g}" if a == b else f"its own, between {float(a):g} and {float(b):g}"
    return ExactAnswer(
        statistic="count",
        epsilon=found.epsilon,
        epsilon_pair=pair.epsilon if math.isfinite(pair.factor) else None,
        delta=target,
        assumptions=(
            f"every row is counted independently of the others, with a probability of {chance}",
            known_rows_clause(size, unknown),
            ALONE,
            *group_clause(together),
        ),
        theorem="hidden-groups" if together > 1 else "shifted-sums" if a == b else "count-corners",
        simulator=_named_count(simulator) if together == 1 else _named_group(simulator),
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, each counted with a probability of {chance}",
        group=together,
        details={
            "probability": [float(a), float(b)],
            "epsilon_floor": floor,
            "epsilon_pair_homogeneous": max(f.epsilon for f in same.values()),
        },
    )


def _interval(probability: Any) -> tuple[Fraction, Fraction]:
    """(a, b) inside (0, 1), the smaller first."""
    if isinstance(probability, tuple | list):
        refuse_if(len(probability) != 2, "probability", f"{len(probability)} numbers", "be one number or two")
        a, b = (as_typed("probability", p) for p in probability)
    else:
        a = b = as_typed("probability", probability)
    if not 0 < a <= b < 1:
        raise InvalidParameter(
            parameter="probability",
            value=f"{float(a):g}" if a == b else f"{float(a):g},{float(b):g}",
            must="lie strictly between 0 and 1, the smaller first",
            hint="a row with a known value adds no uncertainty",
        )
    return a, b


def _named_count(simulator: dict[int, float]) -> str:
    share = simulator.get(1, 0.0)
    how = "a fair bit" if share == 0.5 else f"a bit that is 1 with probability {share:g}"
    return f"the count of the other rows, plus {how}"


def _named_group(simulator: dict[int, float]) -> str:
    places = sorted(simulator)
    told = str(places[0]) if len(places) == 1 else f"{places[0]} or {places[-1]}, by a coin"
    return f"the count of the rows outside of the group, plus {told}"


class _Runs:
    """Bounds over all corners, for runs of corners at a time. It keeps computed distributions, since several
    simulators are tried.
    """

    def __init__(self, a: Fraction, b: Fraction, hidden: int, delta: float, top: int = 1) -> None:
        self.a, self.b, self.hidden, self.delta, self.top = a, b, hidden, delta, top
        self.weights = [bernoulli(a).weights, bernoulli(b).weights]
        self.kept: dict[tuple[int, int], SumLaw] = {}

    def _laws(self, runs: Sequence[tuple[int, int]]) -> list[SumLaw]:
        """S with k1 rows at a and m - k2 at b, for each run (k1, k2)."""
        new = [run for run in dict.fromkeys(runs) if run not in self.kept]
        if new:
            counts = [(k1, self.hidden - k2) for k1, k2 in new]
            laws = sum_laws(self.weights, counts, delta=self.delta)
            self.kept.update(zip(new, laws, strict=True))
        return [self.kept[run] for run in runs]

    def _found(self, law: SumLaw, simulator: dict[int, float]) -> FoundShift:
        # A sum of independent bits is log-concave: beside one value, or a coin between two neighbours, the ends of the
        # range are all there is.
        near = max(simulator) - min(simulator) <= 1
        moved = Shifted([(1.0, law)], 0, self.top, simulator)
        return worst(moved, range(self.top + 1), self.delta, log_concave=near)

    def alone(self, p: Fraction) -> FoundShift:
        """All rows with this probability, between the two values of a row."""
        return self._found(sum_law(bernoulli(p).weights, self.hidden, delta=self.delta), {0: 1.0})

    def simulator(self) -> dict[int, float]:
        """The coin with the least epsilon at the two homogeneous corners and in the middle; fair if these are
        mirror images.
        """
        corners = sorted({(k, k) for k in (0, self.hidden // 2, self.hidden)})
        laws = self._laws(corners) if self.a < self.b else self._laws([(self.hidden, self.hidden)])
        return chosen(
            self.top,
            lambda s: max(self._found(law, s).factor for law in laws),
            even=self.a + self.b == 1,
        )

    def worst(self, simulator: dict[int, float]) -> FoundShift:
        """The factor that is enough at every corner."""
        if self.a == self.b:
            return self._found(self._laws([(self.hidden, self.hidden)])[0], simulator)
        # If a + b = 1 and the coin is fair, or there is none, the corner m - k is the mirror image of k.
        even = self.a + self.b == 1 and simulator in (middle(self.top), {0: 1.0})
        last = -(-self.hidden // 2) if even else self.hidden
        edges = sorted({round(last * j / _RUNS) for j in range(_RUNS + 1)})
        corners = [self._found(law, simulator) for law in self._laws([(k, k) for k in edges])]
        # What some corner needs; runs that need no more are settled.
        needed = corners[0]
        for corner in corners[1:]:
            needed = needed.or_worse(corner)
        settled, open_runs = needed, _between(edges)
        while open_runs and math.isfinite(needed.factor):
            following: list[tuple[int, int]] = []
            enough = 1 + (needed.factor - 1) * (_NEAR if self.hidden <= _MANY else _NEAR_OF_MANY)
            for run, law in zip(open_runs, self._laws(open_runs), strict=True):
                found = self._found(law, simulator)
                if found.factor <= enough or run[0] == run[1] or len(self.kept) > MOST_LAWS:
                    settled = settled.or_worse(found)
                    continue
                half = (run[0] + run[1]) // 2
                following += [(run[0], half), (half + 1, run[1])]
            open_runs = following
        return settled


def _between(edges: list[int]) -> list[tuple[int, int]]:
    """Runs that hold every corner that is not an edge."""
    return [(x + 1, y - 1) for x, y in itertools.pairwise(edges) if y - x > 1]


# Exact sums that are published in coarse steps: rounded down to a multiple of a width, which only lumps answers.
#
#     F(X) = floor(sum / width) width,      width = steps of the grid of records
#
# The multiples are counted from 0, whatever the least sum is: where the edges of the bins lie decides how much they
# tell. If an adversary knows some rows, their sum may move the edges anywhere; then the exact sum's own epsilon is
# taken, of which the rounded one is post-processing (theorems `shifted-sums`, `post-processing-priors`).

_MORE = 1 + 1e-12


def exact_quantised(
    rows: str | RowLaw,
    *,
    n: int,
    delta: float,
    steps: int,
    unknown_rows: int | None = None,
    grid: object = None,
) -> ExactAnswer:
    """The exact sum rounded down to a multiple of `steps` steps of its grid: the epsilon at this delta."""
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    law = row_law(rows, grid=grid).reduced()
    width = whole("steps", steps)
    pair = None
    if unknown < size:
        plain = exact_sum(law, n=size, delta=target, unknown_rows=unknown)
        epsilon, pair, simulator = plain.epsilon, plain.epsilon_pair, f"{plain.simulator}, rounded alike"
    else:
        bins = _Bins(law, size, width)
        found = bins.worst(target, sum_law(law.weights, size - 1, delta=target))
        if math.isinf(found.factor):
            # Deep tails were cut off: once more with them, so that a refusal names what is possible, and no more.
            found = bins.worst(target, sum_law(law.weights, size - 1, delta=target * 1e-12))
        if math.isinf(found.factor):
            raise delta_out_of_reach("quantised sum", target, found.floor, ours=law.rounding > 0)
        epsilon = found.epsilon
        simulator = "the other rows, with a middling value in place of the protected one, rounded alike"
    return ExactAnswer(
        statistic=f"sum, rounded down to multiples of {float(width * law.step):g}",
        epsilon=epsilon,
        epsilon_pair=pair,
        delta=target,
        assumptions=(
            f"the rows are independent draws from {law.describe()}",
            known_rows_clause(size, unknown),
            ALONE,
        ),
        theorem="shifted-sums",
        simulator=simulator,
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows, {law.describe()}",
        details={"width": float(width * law.step)},
    )


class _Bins:
    """The two worlds in bins of this many steps, whose edges are multiples of the width counted from 0."""

    def __init__(self, law: RowLaw, size: int, width: int) -> None:
        self.law, self.width = law, width
        # The sum is n low + k steps; floor((n low/step + k)/width) needs the whole part of n low/step only.
        self.origin = math.floor(size * law.low / law.step)
        self.off = up(law.rounding * (size - 1))

    def binned(self, total: SumLaw, x: int, *, upper: bool) -> Floats:
        """One end of the distribution of the rounded sum, with x steps for the protected row."""
        top, width = len(self.law.weights) - 1, self.width
        first = ((total.start + self.origin) // width) * width - self.origin
        points = -(-(total.start + len(total.low) + top - first) // width) * width
        values = total.at(first - x, points, upper=upper).reshape(-1, width).sum(axis=1)
        return np.asarray(values * _MORE if upper else values / _MORE)

    def worst(self, delta: float, total: SumLaw) -> FoundShift:
        """Every value of the row against the middle one, both directions."""
        middle = (len(self.law.weights) - 1) // 2
        ideal = [self.binned(total, middle, upper=side) for side in (False, True)]
        # Each world is off by what was left out and by the rounding of the distribution: (1 + e^epsilon) times.
        rest = total.outside + self.off
        spare = 4 * rest
        while True:
            found = FoundShift(factor=1.0, floor=0.0)
            for x in self.law.support:
                real = [self.binned(total, x, upper=side) for side in (False, True)]
                for above, below in ((real[1], ideal[0]), (ideal[1], real[0])):
                    start = found.factor if math.isfinite(found.factor) else 1.0
                    found = found.or_worse(factor_for(above, below, delta - spare, start))
            found = FoundShift(factor=found.factor, floor=found.floor + spare)
            if math.isinf(found.factor) or rest * (1 + found.factor) <= spare:
                return found
            spare = rest * (2 + 2 * found.factor)


# Exact sums of several columns at once: a row is a vector with independent coordinates, each with a
# distribution of its own.
#
# The product of the best rectangles of the coordinates is a prism below the distribution of the row; the rest
# is theorem
# `prism-sums`. Uniform coordinates are their own rectangles, so that nothing is given away of them.

MOST_COLUMNS = 8


def exact_vector_sum(
    rows: Sequence[str | RowLaw], *, n: int, delta: float, unknown_rows: int | None = None
) -> ExactAnswer:
    """The epsilon, at this delta, of publishing the exact sums (or means) of several columns of n rows together.

    `rows` has the distribution of each column; within a row the columns are independent.
    Every distribution of rows that contains the
    product of the named rectangles, over the same ranges, is covered.
    """
    size, unknown = rows_and_unknown(n, unknown_rows)
    target = wanted_delta(delta)
    laws = [row_law(r).reduced() for r in listed("rows", rows)]
    refuse_if(
        not 1 <= len(laws) <= MOST_COLUMNS, "rows", len(laws), f"name the laws of 1 to {MOST_COLUMNS} columns"
    )
    shapes = [minorants_of(law, "rectangle")[0] for law in laws]
    mass = math.prod((s.mass for s in shapes), start=Fraction(1))
    tops = [len(law.weights) - 1 for law in laws]
    # The middle, or the value below it where it is off the grid: no value is further away than this.
    prism = Prism(
        mass=mass,
        points=tuple(len(s.weights) for s in shapes),
        half_ranges=tuple(top - top // 2 for top in tops),
    )
    epsilon, _ = prism_epsilon(prism, hidden=unknown - 1, delta=target)
    if math.isinf(epsilon):
        smallest = within_reach(
            lambda d: math.isfinite(prism_epsilon(prism, hidden=unknown - 1, delta=d)[0]), target
        )
        raise delta_out_of_reach("vector of sums", target, smallest, ours=True)
    pair = pair_epsilon(prism, hidden=unknown - 1, delta=target)
    values = [law.low + (top // 2) * law.step for law, top in zip(laws, tops, strict=True)]
    grids = "; ".join(law.describe() for law in laws)
    ends = [
        (float(law.low + s.first * law.step), float(law.low + (s.first + len(s.weights) - 1) * law.step))
        for law, s in zip(laws, shapes, strict=True)
    ]
    box = " x ".join(f"[{a:g}, {b:g}]" for a, b in ends)
    first = (
        f"the rows are independent draws from one distribution over the ranges of {grids}, which contains a prism of "
        f"mass {shown(float(mass), 4)} over {box} (it does if the columns are independent with these laws)"
    )
    return ExactAnswer(
        statistic="vector of sums",
        epsilon=epsilon,
        epsilon_pair=pair if math.isfinite(pair) else None,
        delta=target,
        assumptions=(first, known_rows_clause(size, unknown), ALONE),
        theorem="prism-sums",
        simulator="the other rows, with "
        f"({', '.join(f'{float(v):g}' for v in values)}) in place of the protected one",
        rows=size,
        unknown_rows=unknown,
        family=f"independent rows of one law with a prism of mass {shown(float(mass), 4)} over {box}; {grids}",
        details={"columns": len(laws), "mass": float(mass)},
    )
