"""Counts for every area of a nested geography: nation, state, county, block, each by the same characteristics.

Every level gets noise of its own, for its share of the price. Least squares joins the information of all levels about
an area, in two passes over the tree.
Displayed numbers are whole, not negative and add up from the top down. Intervals are those of unbiased estimates, cut
at 0, and contain the displayed number too. Theorem `areas-with-totals`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import EmptyComposition, InvalidParameter, TooManyCells, UnknownName
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.canonical import sha256
from tacit.exact.checks import members, set_fields
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Unit
from tacit.mechanisms import RoundedGaussian
from tacit.mechanisms.base import PartNoise
from tacit.mechanisms.spreads import normal_factor
from tacit.sources.axes import Axis, CountRows, Listed, axis_of
from tacit.sources.columns import Category
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import (
    By,
    Part,
    Question,
    Statistic,
    boxes,
    by_columns,
    column_of,
    filter_of,
    stacked,
)
from tacit.statistics.consistency import nearest_histogram, nearest_rows
from tacit.statistics.forms import Parts, reals
from tacit.statistics.totals import ALL, TOTAL, _noise_scale, _weight, _word, block_variance, mixed_quantile

MOST_AREAS = 1 << 20
MOST_NUMBERS = 16_000_000
MOST_LEVELS = 12
FEW_CHILDREN, FEW_SIBLINGS = 24, 12
"""Beyond these, children or siblings of an area hardly shorten its interval (Laplace noise)."""

RESERVED = ("level", "area", "measured")

Numbers = npt.NDArray[np.int64]
Code = str | int


@dataclass(frozen=True, slots=True, eq=False)
class Areas:
    """The nested areas: for every leaf its code on each level, the coarsest first. Public, and part of the question."""

    rows: tuple[tuple[Code, ...], ...] = field(repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        rows = members("areas", self.rows)
        if not rows:
            raise EmptyComposition(what="the list of areas", hint="give a line for every smallest area")
        if len(rows) > MOST_AREAS:
            raise TooManyCells(cells=len(rows), limit=MOST_AREAS)
        for row in rows:
            good = isinstance(row, tuple | list) and all(
                isinstance(c, str | int) and not isinstance(c, bool) and c != "" for c in row
            )
            if not good or len(row) != len(rows[0]):
                raise InvalidParameter(
                    parameter="areas", value="a line", must="have a code, a text or a whole number, on every level",
                    hint='areas={"state": ["A", "A"], "county": ["A1", "A2"]}: one entry a smallest area',
                )  # fmt: skip
        object.__setattr__(self, "rows", tuple(map(tuple, rows)))
        told = "\n".join("\t".join(f"{type(c).__name__[0]}{len(str(c))}:{c}" for c in row) for row in rows)
        object.__setattr__(self, "digest", sha256(told))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Areas) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        return f"{len(self.rows)} areas, sha256 {self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nested:
    """The tree of areas, level by level, children beside each other: `starts[l]` has the first child of each area."""

    codes: tuple[tuple[Code, ...], ...]
    starts: tuple[Numbers, ...]
    parent: tuple[Numbers, ...]
    leaves: Numbers
    """The place of each leaf of the last level among the keys of the column."""

    @property
    def sizes(self) -> list[int]:
        """The number of areas of every level, the whole first."""
        return [len(c) for c in self.codes]

    def sums(self, level: int, values: AnyArray) -> AnyArray:
        """Values of a level, added up for each area of the level above."""
        return np.asarray(np.add.reduceat(values, self.starts[level - 1], axis=0))

    def children(self, level: int) -> Numbers:
        """The number of children of every area of a level."""
        ends = np.append(self.starts[level][1:], len(self.codes[level + 1]))
        return np.asarray(ends - self.starts[level], dtype=np.int64)


@lru_cache(maxsize=4)
def nested(areas: Areas, levels: tuple[str, ...], keys: tuple[Code, ...]) -> Nested:
    """The tree; an error if an area has two parents, or if its leaves are not the declared keys."""
    place = {key: i for i, key in enumerate(keys)}
    above: list[dict[Code, Code]] = [{} for _ in levels]
    for row in areas.rows:
        for depth in range(1, len(row)):
            if above[depth].setdefault(row[depth], row[depth - 1]) != row[depth - 1]:
                raise InvalidParameter(
                    parameter="areas", value=row[depth], must=f"lie in one {levels[depth - 1]}",
                    hint=f"a {levels[depth]} in two of them cannot add up; use codes that are unique",
                )  # fmt: skip
    ends = [row[-1] for row in areas.rows]
    if len(set(ends)) < len(ends):
        raise InvalidParameter(
            parameter="areas", value=levels[-1], must=f"have one line for every {levels[-1]}"
        )
    for code in ends:
        if code not in place:
            raise UnknownName(what=f"{levels[-1]} of the areas", name=str(code), known=map(str, keys[:50]))
    if len(ends) < len(keys):
        missing = min(str(k) for k in set(keys) - set(ends))
        raise UnknownName(
            what=f"{levels[-1]} that is declared and", name=missing, known=map(str, ends[:50]),
            hint="every declared key needs a line in the areas",
        )  # fmt: skip
    order: list[dict[Code, int]] = []
    codes: list[tuple[Code, ...]] = [(ALL,)]
    for depth in range(len(levels)):
        named = list(dict.fromkeys(row[depth] for row in areas.rows))
        if depth:
            named.sort(key=lambda c: order[-1][above[depth][c]])
        order.append({c: i for i, c in enumerate(named)})
        codes.append(tuple(named))
    parent: list[Numbers] = [np.zeros(0, dtype=np.int64), np.zeros(len(codes[1]), dtype=np.int64)]
    for depth in range(1, len(levels)):
        parent.append(np.array([order[depth - 1][above[depth][c]] for c in codes[depth + 1]], dtype=np.int64))
    starts = tuple(np.searchsorted(p, np.arange(len(codes[i]))) for i, p in enumerate(parent[1:]))
    return Nested(
        codes=tuple(codes), starts=starts, parent=tuple(parent),
        leaves=np.array([place[c] for c in codes[-1]], dtype=np.int64),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Geography(Statistic):
    """The number of rows in every area of every level, by the same columns.

    A row adds 1 to one number of each level: each moves by m in L1, L2 and Linf for a unit of m rows (replace-one: 2m,
    sqrt(2) m, m), and has its share of the price.
    """

    kind: ClassVar[str] = "geography"
    fits: ClassVar[
        Literal["noise", "ranks", "clamping bounds", "thresholds", "function", "synthesis", "test", "totals", "tree"]
    ] = "totals"  # fmt: skip
    layout: ClassVar[Literal["cells", "ends", "levels", "listed", "shares", "tables"]] = "listed"
    whole: ClassVar[bool] = True
    coarse_first: ClassVar[bool] = True

    levels: tuple[str, ...]
    areas: Areas
    importance: tuple[tuple[str, Fraction], ...] = ()

    def __post_init__(self) -> None:
        self._check_words()
        set_fields(
            self, levels=members("levels", self.levels), importance=members("importance", self.importance)
        )
        names = self.levels
        if not 1 <= len(names) <= MOST_LEVELS or not all(isinstance(n, str) and n for n in names):
            raise InvalidParameter(
                parameter="levels", value=len(names), must=f"name one to {MOST_LEVELS} levels",
                hint="the coarsest first; the last is the column of the table",
            )  # fmt: skip
        if len(set(names)) < len(names) or TOTAL in names:
            raise InvalidParameter(
                parameter="levels", value=list(names), must=f'be different, and none of them "{TOTAL}"'
            )
        mixed = [n for n in map(column_of, self.by) if n in (*RESERVED, *names)]
        if mixed:
            raise InvalidParameter(
                parameter="by", value=mixed, must=f"name no level, and none of {', '.join(RESERVED)}",
                hint="the published table has columns of these names",
            )  # fmt: skip
        if not isinstance(self.areas, Areas):
            raise InvalidParameter(parameter="areas", value=type(self.areas).__name__, must="be areas")
        if len(self.areas.rows[0]) != len(names):
            raise InvalidParameter(
                parameter="areas", value=len(self.areas.rows[0]), must=f"have a code for each of {len(names)} levels"
            )  # fmt: skip
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.importance):
            raise InvalidParameter(
                parameter="importance", value="a weight", must="be positive numbers by level",
                hint='importance={"total": 1, "state": 1, "block": 4}',
            )  # fmt: skip
        for name, weight in self.importance:
            if name not in (TOTAL, *names):
                raise UnknownName(what="level of importance", name=name, known=(TOTAL, *names))
            if not (isinstance(weight, Fraction) and weight > 0):
                raise InvalidParameter(
                    parameter="importance", value=name, must="be positive numbers by level"
                )
        if self.importance and {n for n, _ in self.importance} != {TOTAL, *names}:
            raise InvalidParameter(
                parameter="importance", value=[n for n, _ in self.importance],
                must=f"weigh every level, and {TOTAL!r} for the top", hint="equal weights are the default",
            )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As in other statistics; the areas by their number and digest."""
        said = super().to_dict()
        return {**said, "areas": {"number": len(self.areas.rows), "sha256": self.areas.digest}}

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema[self.levels[-1]]
        if not isinstance(column, Category) or column.values is None:
            raise InvalidParameter(
                parameter="levels", value=self.levels[-1], must="end with a category of declared keys",
                hint="declare category([...]) with the codes of the smallest areas",
            )  # fmt: skip
        frame = self._frame(schema, unit, ())
        axes = (axis_of(self.levels[-1], schema), *frame.axes)
        if any(a.size is None for a in axes):
            raise InvalidParameter(
                parameter="by", value=[a.column for a in frame.axes], must="have declared keys",
                hint="declare category([...])",
            )  # fmt: skip
        tree = nested(self.areas, self.levels, tuple(column.values))
        cross = math.prod(a.size or 0 for a in frame.axes)
        numbers = sum(tree.sizes) * (cross + (cross > 1))
        if numbers > MOST_NUMBERS:
            raise TooManyCells(cells=numbers, limit=MOST_NUMBERS)
        absent = frame.absent or not all(a.always for a in axes)
        parts: list[Part] = []
        moved = {}
        for depth, name in enumerate((TOTAL, *self.levels)):
            moved[name] = boxes([(1, 1)], unit, cells=tree.sizes[depth] * cross, absent=absent)
            own: tuple[Axis, ...] = (
                () if not depth else (Listed(column=name, values=tree.codes[depth]),)  # type: ignore[arg-type]
            )
            parts.append(Part(name=name, axes=(*own, *frame.axes), exact=moved[name].none))
        weights = dict(self.importance) or {p.name: Fraction(1) for p in parts}
        total = sum(weights.values())
        return Question(
            statistic=self, schema=schema, unit=unit, axes=axes,
            requests=(Aggregation(axes=axes, aggregates=(CountRows(where=self.where),), groups=()),),
            parts=tuple(parts), sensitivity=stacked(len(parts), unit), sensitivities=moved, form=None,
            details={"shares": {n: w / total for n, w in weights.items()}, "tree": tree, "cross": cross},
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        tree: Nested = question.details["tree"]
        held = np.asarray(cells[0].values[CountRows(where=self.where)])
        here = held.reshape(len(tree.leaves), -1)[tree.leaves]
        found: dict[str, AnyArray] = {}
        for depth in range(len(self.levels), -1, -1):
            part = question.parts[depth]
            found[part.name] = here.reshape(tuple(a.size or 0 for a in part.axes))
            if depth:
                here = tree.sums(depth, here)
        return found

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """The displayed numbers alone."""
        return self.answers(question, {}, noisy, 0.95)[0]

    # --- what is made of the levels -----------------------------------------------------------------------
    def lines(self, question: Question) -> int:
        """The number of published numbers."""
        cross, tree = int(question.details["cross"]), question.details["tree"]
        return int(sum(tree.sizes) * (cross + (cross > 1)))

    def listed(self, question: Question) -> dict[str, list[Any]]:
        """Level, area, and one column for each of `by`; "all" for the number of all rows of an area."""
        tree: Nested = question.details["tree"]
        by = question.axes[1:]
        cross = question.details["cross"]
        wide = cross + (cross > 1)
        names = [(TOTAL, *self.levels)[depth] for depth, size in enumerate(tree.sizes) for _ in range(size)]
        codes = [_word(c) for level in tree.codes for c in level]
        out: dict[str, list[Any]] = {
            "level": [n for n in names for _ in range(wide)],
            "area": [c for c in codes for _ in range(wide)],
        }
        shape = tuple(a.size or 0 for a in by)
        for i, axis in enumerate(by):
            labels = [_word(v) for v in axis.labels]
            one = [labels[place[i]] for place in np.ndindex(*shape)] + [ALL] * (cross > 1)
            out[axis.column] = one * len(codes)
        return out

    def measured(self, question: Question, noisy: Parts) -> AnyArray:
        """The noisy measurement of every published number, in the same order; for "all", the sum of an area's."""
        return np.concatenate(
            [_with_all(self._level(question, noisy, d)) for d in range(len(question.parts))]
        )

    def _level(self, question: Question, noisy: Parts, depth: int) -> AnyArray:
        size: int = question.details["tree"].sizes[depth]
        return np.asarray(noisy[question.parts[depth].name]).reshape(size, question.details["cross"])

    def answers(
        self, question: Question, noise: Mapping[str, PartNoise], noisy: Parts, level: float
    ) -> tuple[Floats, ...]:
        """Displayed value, low and high of every number, and the distance of each end before it was cut."""
        tree: Nested = question.details["tree"]
        laws = [noise.get(p.name) for p in question.parts]
        spreads = _spreads(laws)
        raw = [reals(self._level(question, noisy, d)) for d in range(len(laws))]
        fit = least_squares(tree, raw, spreads)
        display = shown(tree, fit)
        local = None if spreads is None or _normal(laws) else _local_weights(tree, spreads)
        every = self._halves(question, laws, level)
        out: list[list[Floats]] = [[], [], [], []]
        for depth in range(len(laws)):
            value = _with_all(display[depth]).astype(np.float64)
            middle = fit[depth] if local is None else _local(tree, raw, local, depth)
            halves = every[depth]
            centre = _with_all(middle)
            # The truth is whole and not negative: ends are the outermost such numbers inside.
            low = np.maximum(np.ceil(centre - halves - 1e-6), 0.0)
            high = np.maximum(np.floor(centre + halves + 1e-6), 0.0)
            for kept, found in zip(
                out, (value, np.minimum(low, value), np.maximum(high, value), halves), strict=True
            ):
                kept.append(found)
        return tuple(map(np.concatenate, out))

    def half_widths(self, question: Question, noise: Mapping[str, PartNoise], level: float) -> Floats:
        """The bound on the error of every published number, in their order."""
        return np.concatenate(self._halves(question, [noise.get(p.name) for p in question.parts], level))

    def _halves(self, question: Question, laws: Sequence[PartNoise | None], level: float) -> list[Floats]:
        tree, cross, spreads = question.details["tree"], int(question.details["cross"]), _spreads(laws)
        local = None if spreads is None or _normal(laws) else _local_weights(tree, spreads)
        variances = variances_of(tree, spreads)
        out = []
        for depth in range(len(laws)):
            if local is None:
                one = normal_factor(1 - level) * np.sqrt(variances[depth])
                both = math.sqrt(cross) * one if cross > 1 else None
            else:
                one = _local_halves(tree, laws, local, depth, 1, 1 - level)
                both = _local_halves(tree, laws, local, depth, cross, 1 - level) if cross > 1 else None
            out.append(_spread_out(one, both, cross))
        return out

    def expects(
        self, question: Question, noise: Mapping[str, PartNoise], level: float, rows: int | None
    ) -> tuple[float | None, float | None, str]:
        """The error for a smallest area, and in words the largest errors on the other levels."""
        tree: Nested = question.details["tree"]
        laws = [noise.get(p.name) for p in question.parts]
        spreads = _spreads(laws)
        variances = variances_of(tree, spreads)
        if spreads is None or _normal(laws):
            halves = [normal_factor(1 - level) * math.sqrt(float(v.max())) for v in variances]
        else:
            local = _local_weights(tree, spreads)
            halves = [
                float(_local_halves(tree, laws, local, d, 1, 1 - level).max()) for d in range(len(laws))
            ]
        told = [f"{p.name} ± {h:,.3g}" for p, h in zip(question.parts[:-1], halves[:-1], strict=True)]
        mean = math.sqrt(2 * float(variances[-1].max()) / math.pi)
        about = f"a cell of a {self.levels[-1]}; larger areas, a cell: {', '.join(told)}"
        return mean, halves[-1], about


def _with_all(table: AnyArray) -> AnyArray:
    """The cells of each area as one vector, followed by the sum of several areas."""
    if table.shape[1] == 1:
        return table[:, 0]
    return np.ravel(np.concatenate([table, table.sum(axis=1, keepdims=True)], axis=1))


def _spread_out(one: Floats, both: Floats | None, cross: int) -> Floats:
    if both is None:
        return one
    return np.ravel(np.concatenate([np.repeat(one[:, None], cross, axis=1), both[:, None]], axis=1))


def _normal(laws: Sequence[PartNoise | None]) -> bool:
    return all(law is None or isinstance(law, RoundedGaussian) for law in laws)


def _spreads(laws: Sequence[PartNoise | None]) -> list[float] | None:
    """The variance of a measurement on each level; None if no level has noise."""
    if all(law is None for law in laws):
        return None
    return [
        law.interval_variance if isinstance(law, RoundedGaussian) else block_variance(law) for law in laws
    ]


# --- least squares on the tree --------------------------------------------------------------------------------
def _up(tree: Nested, spreads: Sequence[float]) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """t of every area, the share of its own measurement in z, and u, the sum of its children's t."""
    last = len(tree.codes) - 1
    spread: list[Floats] = [np.zeros(0)] * (last + 1)
    own: list[Floats] = [np.zeros(0)] * (last + 1)
    below: list[Floats] = [np.zeros(0)] * (last + 1)
    spread[last] = np.full(tree.sizes[last], spreads[last])
    own[last], below[last] = np.ones(tree.sizes[last]), np.zeros(tree.sizes[last])
    for depth in range(last - 1, -1, -1):
        u = tree.sums(depth + 1, spread[depth + 1])
        s = spreads[depth]
        # Where neither the area nor its children have noise, they agree: its own measurement is as good.
        own[depth] = np.divide(u, s + u, out=np.ones(u.size), where=s + u > 0)
        spread[depth], below[depth] = s * own[depth], u
    return spread, own, below


def least_squares(tree: Nested, raw: Sequence[Floats], spreads: Sequence[float] | None) -> list[Floats]:
    """The weighted least-squares counts of all areas that add up; column by column (theorem `tree-least-squares`)."""
    if spreads is None:
        return [np.asarray(r, dtype=np.float64) for r in raw]
    spread, own, below = _up(tree, spreads)
    fit = [np.asarray(r, dtype=np.float64) for r in raw]
    sums: list[Floats] = [np.zeros(0)] * len(fit)
    for depth in range(len(fit) - 2, -1, -1):
        sums[depth] = tree.sums(depth + 1, fit[depth + 1])
        share = own[depth][:, None]
        fit[depth] = share * fit[depth] + (1 - share) * sums[depth]
    for depth in range(1, len(fit)):
        above = tree.parent[depth]
        u = below[depth - 1][above]
        share = np.divide(spread[depth], u, out=np.zeros(u.size), where=u > 0)
        gap = fit[depth - 1] - sums[depth - 1]
        fit[depth] = fit[depth] + share[:, None] * gap[above]
    return fit


def variances_of(tree: Nested, spreads: Sequence[float] | None) -> list[Floats]:
    """The variance of every least-squares count: t at the top, t - t^2/u + (t/u)^2 * that of the parent below."""
    if spreads is None:
        return [np.zeros(size) for size in tree.sizes]
    spread, _, below = _up(tree, spreads)
    found = [spread[0]]
    for depth in range(1, len(tree.codes)):
        above, t = tree.parent[depth], spread[depth]
        u = below[depth - 1][above]
        share = np.divide(t, u, out=np.zeros(t.size), where=u > 0)
        found.append(np.maximum(t - share * t + share**2 * found[-1][above], 0.0))
    return found


def shown(tree: Nested, fit: Sequence[Floats]) -> list[Numbers]:
    """Whole numbers that are not negative and add up: level by level from the top, the nearest ones with the given
    sum.
    """
    top = fit[0][0]
    total = max(round(float(top.sum())), 0)
    first = nearest_histogram(top, total=total) if top.size > 1 else np.array([total])
    out = [np.asarray(first, dtype=np.int64).reshape(1, -1)]
    for depth in range(1, len(fit)):
        cross = fit[depth].shape[1]
        here = np.zeros((tree.sizes[depth], cross), dtype=np.int64)
        counts = tree.children(depth - 1)
        for size in np.unique(counts).tolist():
            families = np.flatnonzero(counts == size)
            places = tree.starts[depth - 1][families][:, None] + np.arange(size)
            # Estimates that are whole up to float error are whole: they must not decide ties.
            z = np.moveaxis(fit[depth][places], 2, 1).reshape(-1, size)
            near = np.rint(z)
            z = np.where(np.abs(z - near) < 1e-6, near, z)
            floor = np.floor(z)
            whole = nearest_rows(
                floor.astype(np.int64), out[depth - 1][families].ravel(), fractions=z - floor
            )
            here[places] = np.moveaxis(
                np.asarray(whole, dtype=np.int64).reshape(len(families), cross, size), 2, 1
            )
        out.append(here)
    return out


# --- intervals under Laplace noise ----------------------------------------------------------------------------
#
# The distribution of a least-squares count depends on the whole tree. So an interval is made around a simpler
# unbiased estimate:
# the mean, weighted by 1 / variance, of an area's own measurement, the sum of its children's, and its parent's less
# its siblings'. Its distribution depends on the level and on two numbers of areas, and is computed for each
# pair that occurs.

Weights = tuple[Floats, Floats, Floats]


def _local_weights(tree: Nested, spreads: Sequence[float]) -> list[Weights]:
    """For every area of each level the weights of own, children and parent."""
    found: list[Weights] = []
    for depth, size in enumerate(tree.sizes):
        s = spreads[depth]
        own = np.full(size, math.inf if s == 0 else 1 / s)
        down = np.zeros(size)
        if depth + 1 < len(tree.sizes):
            k = tree.children(depth)
            down = np.where(
                k <= FEW_CHILDREN, _inverse(np.asarray(k * spreads[depth + 1], dtype=np.float64)), 0.0
            )
        up = np.zeros(size)
        if depth:
            n = tree.children(depth - 1)[tree.parent[depth]]
            up = np.where(
                n <= FEW_SIBLINGS,
                _inverse(np.asarray(spreads[depth - 1] + (n - 1) * s, dtype=np.float64)),
                0.0,
            )
        found.append(_normed(own, down, up))
    return found


def _inverse(variance: Floats) -> Floats:
    return np.asarray(np.divide(1.0, variance, out=np.full(np.shape(variance), math.inf), where=variance > 0))


def _normed(own: Floats, down: Floats, up: Floats) -> Weights:
    """Shares of the three; one without noise has all."""
    stack = np.stack([own, down, up])
    exact = np.isinf(stack)
    first = exact & (np.cumsum(exact, axis=0) == 1)
    stack = np.where(exact.any(axis=0), first.astype(np.float64), stack)
    stack = stack / stack.sum(axis=0)
    return stack[0], stack[1], stack[2]


def _local(tree: Nested, raw: Sequence[Floats], weights: Sequence[Weights], depth: int) -> Floats:
    own, down, up = (w[:, None] for w in weights[depth])
    found = own * raw[depth]
    if depth + 1 < len(raw):
        found = found + down * tree.sums(depth + 1, raw[depth + 1])
    if depth:
        above = tree.parent[depth]
        rest = raw[depth - 1] - tree.sums(depth, raw[depth])
        found = found + up * (rest[above] + raw[depth])
    return np.asarray(found)


def _local_halves(
    tree: Nested, laws: Sequence[PartNoise | None], weights: Sequence[Weights], depth: int, times: int, miss: float
) -> Floats:  # fmt: skip
    """The bound on the error of each area's estimate, for the sum of `times` cells."""
    own, down, up = weights[depth]
    size = tree.sizes[depth]
    k = tree.children(depth) if depth + 1 < len(tree.sizes) else np.zeros(size, dtype=np.int64)
    n = tree.children(depth - 1)[tree.parent[depth]] if depth else np.ones(size, dtype=np.int64)
    pairs, first, back = np.unique(
        np.stack([np.where(down > 0, k, 0), np.where(up > 0, n, 0)]),
        axis=1,
        return_index=True,
        return_inverse=True,
    )
    found = np.zeros(pairs.shape[1])
    for i, at in enumerate(first.tolist()):
        terms = [(laws[depth], own[at], 1)]
        if down[at] > 0:
            terms.append((laws[depth + 1], down[at], int(k[at])))
        if up[at] > 0:
            terms += [(laws[depth - 1], up[at], 1), (laws[depth], up[at], int(n[at]) - 1)]
        used = tuple(
            (_noise_scale(law), float(w), count * times)
            for law, w, count in terms
            if law is not None and count and w > 1e-12
        )
        found[i] = mixed_quantile(used, miss) if used else 0.0
    return found[np.ravel(back)]


def geography(
    levels: Sequence[str],
    areas: Mapping[str, Sequence[Code]] | Sequence[Sequence[Code]],
    *,
    by: By = None,
    importance: Mapping[str, Any] | None = None,
    where: str | Expression | None = None,
) -> Geography:
    """Counts for all areas of nested levels, by the same columns: they add up, each with an interval for the noise.

    `levels` are named from the coarsest to the smallest, which is a column of the table. `areas` has the code of every
    smallest area on each level: columns by name, or lines. Every level, and the whole, has an equal share of the price
    unless `importance` weighs them: {"total": 1, "state": 1, "block": 4}.
    """
    names = tuple(levels) if isinstance(levels, list | tuple) else (levels,)
    if importance is not None and not isinstance(importance, Mapping):
        raise InvalidParameter(
            parameter="importance", value=type(importance).__name__, must="be weights by name"
        )
    weights = tuple((str(n), _weight(w)) for n, w in (importance or {}).items())
    return Geography(
        levels=names,
        areas=areas if isinstance(areas, Areas) else Areas(_lines(names, areas)),
        by=by_columns(by),
        importance=weights,
        where=filter_of(where),
    )


def _lines(names: tuple[Any, ...], areas: Any) -> tuple[tuple[Code, ...], ...]:
    if isinstance(areas, Mapping) or hasattr(areas, "columns"):
        held = []
        for name in names:
            if not isinstance(name, str) or name not in areas:
                raise UnknownName(what="column of the areas", name=str(name), known=map(str, areas))
            values = areas[name]
            if isinstance(values, str | bytes) or not hasattr(values, "__len__") or not np.ndim(values):
                raise InvalidParameter(parameter="areas", value=name, must="be lists of codes by name")
            held.append(values.tolist() if hasattr(values, "tolist") else list(values))
        if len({len(c) for c in held}) > 1:
            raise InvalidParameter(
                parameter="areas", value=[len(c) for c in held], must="have columns of one length"
            )
        return tuple(zip(*held, strict=True))
    if isinstance(areas, str | bytes) or not hasattr(areas, "__len__") or not np.ndim(areas):
        raise InvalidParameter(
            parameter="areas", value=type(areas).__name__, must="be columns by name, or lines of codes"
        )
    return tuple(tuple(row) if isinstance(row, list | tuple) else (row,) for row in areas)
