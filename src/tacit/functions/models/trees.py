"""Decision trees: splits chosen by permute-and-flip, leaves counted with Laplace noise, all of it planned in advance.

A tree has a public depth. At every node of a level one of a public list of splits is chosen, by the score

    sum over the two children of floor(sum over classes of n_class^2 / n),

which is Gini's gain up to a constant of the node and up to rounding. One row more or less moves the score of a split by
at most 1 (theorem `tree-scores`). A row is in one node of a level, so all choices of a level together cost as
much as one of them (theorem `tree-levels`). The leaves' counts of each class get Laplace noise. Every level and
the leaves get the same share of the price. Sources: Friedman, Schuster 2010; McKenna, Sheldon 2020; Groce 2014,
3.3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import ConcentratedEvent, Event
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact, up
from tacit.guarantees import Bound, Concentrated, Neighbours, Pure
from tacit.mechanisms import L1, Exponential, Laplace, PermuteAndFlip, RoundedGaussian, Score
from tacit.mechanisms.base import Mechanism, epsilon_parameter
from tacit.mechanisms.selection import SelectionMechanism
from tacit.noise.source import Source, default_source

Codes = npt.NDArray[np.int64]

DEEPEST = 12
EVEN, DOUBLING = 16, 8
CONFIDENCE = 0.95
ROOM = 4
"""The default depth of a tree leaves each leaf this many times the rows that noise may hide."""


def default_cuts(low: float, high: float) -> tuple[float, ...]:
    """Public thresholds of a number: evenly spaced ones, and ones that halve the distance to each end.

    The halving cuts are for amounts that are mostly small, such as incomes. They depend on the bounds alone.
    """
    width = high - low
    even = [low + width * k / EVEN for k in range(1, EVEN)]
    near = [width * 2.0**-k for k in range(5, 5 + DOUBLING)]
    found = {*even, *(low + v for v in near), *(high - v for v in near)}
    return tuple(float(f"{v:.12g}") + 0.0 for v in sorted(found) if low < v < high)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitColumn:
    """A column and its public splits: "above a cut" for numbers, "equal to a value" for categories.

    A missing value, and one that was not declared, is on the other side of every split.
    """

    name: str
    cuts: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    """The names of the cuts, if they are no numbers for people."""

    def __post_init__(self) -> None:
        if bool(self.cuts) == bool(self.values):
            raise InvalidParameter(
                parameter="columns", value=self.name, must="have cuts or values: declared bounds, or a list"
            )
        ordered = all(a < b for a, b in zip(self.cuts, self.cuts[1:], strict=False))
        if not ordered or not all(map(math.isfinite, self.cuts)):
            raise InvalidParameter(parameter="cuts", value=self.name, must="be finite and rise")

    @property
    def splits(self) -> int:
        """The number of splits; for a category of two values, one split is enough."""
        if self.cuts:
            return len(self.cuts)
        return len(self.values) if len(self.values) > 2 else 1

    @property
    def codes(self) -> int:
        """The number of codes of a row: one for each gap between cuts or each value, and one for the rest."""
        return len(self.cuts) + 1 if self.cuts else len(self.values) + 1

    def of_numbers(self, values: Floats) -> Codes:
        """The number of cuts below each number; 0 for a missing one."""
        found = np.searchsorted(np.asarray(self.cuts), values, side="left")
        return np.where(np.isnan(values), 0, found).astype(np.int64)

    def above(self, counts: Any) -> Any:
        """The counts on the yes side of each split, from counts by code (first axis)."""
        if self.cuts:
            return counts.sum(axis=0) - np.cumsum(counts, axis=0)[:-1]
        return counts[1 : 1 + self.splits]

    def yes(self, codes: Codes, split: int) -> npt.NDArray[np.bool_]:
        """The rows on the yes side."""
        return np.asarray(codes > split if self.cuts else codes == split + 1)

    def summary(self, split: int, *, yes: bool = True) -> str:
        """One side of a split, for people."""
        if self.cuts:
            cut = self.labels[split] if self.labels else f"{self.cuts[split]:.6g}"
            return f"{self.name} {'>' if yes else '≤'} {cut}"
        return f"{self.name} {'=' if yes else '≠'} {self.values[split]}"

    words = formerly("words", "summary", method=True)


def gini_scores(yes: Any, total: Any) -> Any:
    """floor(sum n_c^2 / n) of both sides of each split, as whole numbers; larger is better. Last axis: classes."""
    return _purity(yes) + _purity(total - yes)


def _purity(counts: Any) -> Any:
    # Squares of counts stay below 2^63 up to 3e9 rows, more than any memory holds as codes.
    held = np.asarray(counts, dtype=np.int64)
    return (held * held).sum(axis=-1) // np.maximum(held.sum(axis=-1), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """The public facts about a tree before its charge: columns, classes, depth, and the largest effect of a unit.

    `rows` is the largest number of rows of one unit.
    `moves` is the number of rows by which neighbours differ: `rows` under add-or-remove, twice as many under
    replace-one.
    """

    columns: tuple[SplitColumn, ...]
    classes: tuple[Any, ...]
    depth: int
    rows: int = 1
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE

    def __post_init__(self) -> None:
        if not self.columns:
            raise EmptyComposition(what="the list of columns", hint="name at least one declared column")
        if len(self.classes) < 2:
            raise InvalidParameter(
                parameter="classes", value=len(self.classes), must="be at least two declared values"
            )
        depth = whole("depth", self.depth, least=1)
        if depth > DEEPEST:
            raise InvalidParameter(parameter="depth", value=depth, must=f"be at most {DEEPEST}")
        set_fields(
            self, depth=depth, rows=whole("rows", self.rows, least=1),
            neighbours=Neighbours.parse(self.neighbours),
        )  # fmt: skip

    @property
    def moves(self) -> int:
        """The largest number of rows that come or go between neighbours."""
        return self.rows * (2 if self.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def squared_move(self) -> int:
        """The squared L2 sensitivity of the leaves' counts: all rows of a unit may leave one count for another."""
        return self.rows**2 * (2 if self.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return int(2**self.depth)

    @property
    def splits(self) -> int:
        """The number of splits that a node chooses from."""
        return sum(c.splits for c in self.columns)

    def split(self, number: int) -> tuple[int, int]:
        """The column's place and the split within it, of one number of the whole list."""
        for place, column in enumerate(self.columns):
            if number < column.splits:
                return place, number
            number -= column.splits
        raise InvalidParameter(parameter="split", value=number, must="be a split of the list")

    def scores(self, codes: Sequence[Codes], places: Codes) -> Any:
        """The score of every split at one node, from the codes and class numbers of its rows."""
        count, found = len(self.classes), []
        total = np.bincount(places, minlength=count).astype(np.int64)
        for column, held in zip(self.columns, codes, strict=True):
            table = np.bincount(held * count + places, minlength=column.codes * count)
            found.append(gini_scores(column.above(table.reshape(column.codes, count)), total))
        return np.concatenate(found)


def bounded_range_rho(epsilon: Exact) -> Fraction:
    """epsilon^2 / 8: the rho of the exponential mechanism, a quarter of the rho of a pure epsilon alone."""
    return epsilon_parameter(epsilon) ** 2 / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan:
    """The plan of a tree: its shape, the choice of its splits and the noise of its leaves.

    Guarantee: pure, `depth` choices and one table of counts, each of the same epsilon, one after the other
    (`tree-levels`, `compose-pure`). With a rho (`for_rho`) the choices are the exponential mechanism's and the leaves
    have Gaussian noise. Assumptions: columns, classes and depth are public.
    """

    shape: TreeShape
    choice: SelectionMechanism
    noise: Laplace | RoundedGaussian

    def __post_init__(self) -> None:
        moved = self.choice.sensitivity
        if moved.monotone or moved.exact < self.shape.moves:
            raise InvalidParameter(
                parameter="choice",
                value=str(moved.exact),
                must=f"be made for a score that moves by {self.shape.moves}",
            )

    @classmethod
    def for_target(cls, *, shape: TreeShape, epsilon: Exact) -> TreePlan:
        """The plan of this pure epsilon, in equal shares."""
        share = epsilon_parameter(epsilon) / (shape.depth + 1)
        return cls(
            shape=shape,
            choice=PermuteAndFlip(epsilon=share, sensitivity=Score(shape.moves)),
            noise=Laplace.for_target(epsilon=share, sensitivity=L1(shape.moves)),
        )

    @classmethod
    def for_rho(cls, *, shape: TreeShape, rho: Fraction) -> TreePlan:
        """The plan of this rho, in equal shares: epsilon^2 / 8 for each choice (`exponential-zcdp`)."""
        share = rho / (shape.depth + 1)
        # A float below the root, taken exactly: its square over 8 stays within the share.
        epsilon = Fraction(math.sqrt(8 * float(share)) * (1 - 2.0**-40))
        return cls(
            shape=shape,
            choice=Exponential(epsilon=epsilon, sensitivity=Score(shape.moves)),
            noise=RoundedGaussian.for_mu_squared(
                mu_squared=2 * share,
                squared_steps=shape.squared_move,
                dimension=shape.leaves * len(shape.classes),
            ),
        )

    # --- what it reveals --------------------------------------------------------------------------------
    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One choice for each level, then the leaves."""
        return (*(self.choice,) * self.shape.depth, self.noise)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, one per level: with a rho, each level promises no more than its own."""
        if self.exact_epsilon is not None:
            return tuple(e for m in self.mechanisms for e in m.events)
        level = bounded_range_rho(self.choice.epsilon)
        return (ConcentratedEvent(rho=up(level)),) * self.shape.depth + self.noise.events

    @property
    def exact_epsilon(self) -> Fraction | None:
        """The pure epsilon, if the leaves have one."""
        leaves = self.noise.exact_epsilon
        return None if leaves is None else epsilon_parameter(self.choice.epsilon) * self.shape.depth + leaves

    @property
    def bound(self) -> Bound:
        """The privacy loss of the whole tree."""
        pure = self.exact_epsilon
        if pure is not None:
            return Pure(epsilon=up(pure))
        level, leaves = bounded_range_rho(self.choice.epsilon), self.noise.exact_rho
        assert leaves is not None
        return Concentrated(rho=up(level * self.shape.depth + leaves))

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the bound rests on."""
        pure = self.exact_epsilon is not None
        own = (*self.choice.theorems, *self.noise.theorems)
        more = ("compose-pure",) if pure else ("exponential-zcdp", "compose-zcdp")
        return ("tree-scores", "tree-levels", *own, *more)

    # --- errors before a row is read ----------------------------------------------------------------------
    @property
    def lost_score(self) -> float:
        """The distance of a choice from the best score of its node, at 95%."""
        return self.choice.error_quantile(CONFIDENCE, candidates=self.shape.splits)

    @property
    def leaf_error(self) -> float:
        """The bound on the noise of one count of a leaf, at 95%."""
        return self.noise.error_quantile(CONFIDENCE)

    def check(self, size: int) -> None:
        """Refuse a tree whose leaves would hold fewer rows than their noise may hide."""
        if whole("size", size, least=1) < self.leaf_error * self.shape.leaves:
            raise InvalidParameter(
                parameter="depth", value=self.shape.depth, must="be less deep for this price and this many rows",
                hint=f"{self.shape.leaves} leaves of {size} rows, and noise of ± {self.leaf_error:.3g} on every count",
            )  # fmt: skip

    # --- running ----------------------------------------------------------------------------------------
    def release(
        self, codes: Sequence[Codes], places: Codes, *, source: Source | None = None
    ) -> tuple[Codes, Any]:
        """(split of each node, counts of each leaf and class) of rows given by codes; -1 is no class: not counted.

        Nodes are in the order of a heap: the children of k are 2k + 1 (no) and 2k + 2 (yes).
        """
        source = source if source is not None else default_source()
        shape = self.shape
        known = (places >= 0) & (places < len(shape.classes))
        held, places = [np.asarray(c)[known] for c in codes], np.asarray(places)[known]
        node = np.zeros(places.size, dtype=np.int64)
        chosen = np.zeros(shape.leaves - 1, dtype=np.int64)
        for level in range(shape.depth):
            first = 2**level - 1
            order = np.argsort(node, kind="stable")
            ends = np.searchsorted(node[order], np.arange(first, 2 * first + 2))
            turned = np.zeros(places.size, dtype=np.int64)
            for k in range(first, 2 * first + 1):
                mine = order[ends[k - first] : ends[k - first + 1]]
                scores = shape.scores([c[mine] for c in held], places[mine])
                chosen[k] = self.choice.choose(scores, source=source).index
                at, split = shape.split(int(chosen[k]))
                turned[mine] = shape.columns[at].yes(held[at][mine], split)
            node = 2 * node + 1 + turned
        leaf = node - (shape.leaves - 1)
        count = len(shape.classes)
        true = np.bincount(leaf * count + places, minlength=shape.leaves * count)
        noisy = self.noise.release(true, source=source).values
        return chosen, np.asarray(noisy).reshape(shape.leaves, count)


@dataclass(frozen=True)
class ReleasedTree:
    """A tree that anyone may evaluate: public splits, chosen ones, and noisy counts. It carries no row."""

    shape: TreeShape
    chosen: Codes
    counts: npt.NDArray[Any]
    leaf_error: float = 0.0

    def leaves(self, codes: Sequence[Codes]) -> Codes:
        """The leaf of each row."""
        size = len(codes[0])
        node = np.zeros(size, dtype=np.int64)
        for _ in range(self.shape.depth):
            turned = np.zeros(size, dtype=np.int64)
            for k in np.unique(node):
                at, split = self.shape.split(int(self.chosen[k]))
                mine = node == k
                turned[mine] = self.shape.columns[at].yes(codes[at][mine], split)
            node = 2 * node + 1 + turned
        return np.asarray(node - (self.shape.leaves - 1))

    @cached_property
    def chances(self) -> Floats:
        """For each leaf, the chance of each class: noisy counts, cut at 0.

        A leaf whose count does not exceed the noise takes the class probabilities of the smallest surrounding
        subtree whose count does; if there is none, all classes are equally likely. This is post-processing.
        """
        held = np.maximum(self.counts.astype(np.float64), 0.0)
        out = np.full(held.shape, np.nan)
        width = 1
        while width <= self.shape.leaves:
            around = held.reshape(-1, width, held.shape[1]).sum(axis=1).repeat(width, axis=0)
            total = around.sum(axis=1)
            room = self.leaf_error * math.sqrt(width * held.shape[1])
            open_ = np.isnan(out[:, 0]) & (total > room)
            out[open_] = around[open_] / total[open_, None]
            width *= 2
        out[np.isnan(out[:, 0])] = 1 / held.shape[1]
        return out

    def rule(self, leaf: int) -> list[str]:
        """The way from the root to a leaf, a text for each level."""
        node, out = leaf + self.shape.leaves - 1, []
        while node:
            parent, yes = (node - 1) // 2, node % 2 == 0
            at, split = self.shape.split(int(self.chosen[parent]))
            out.append(self.shape.columns[at].summary(split, yes=yes))
            node = parent
        return out[::-1]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """All nodes in the order of a heap, in plain values; leaves have counts."""
        out: list[dict[str, Any]] = []
        for k in self.chosen.tolist():
            at, split = self.shape.split(int(k))
            column = self.shape.columns[at]
            side = {"above": column.cuts[split]} if column.cuts else {"equals": column.values[split]}
            out.append({"column": column.name, **side})
        return [*out, *({"counts": [int(v) for v in row]} for row in self.counts)]

    def __str__(self) -> str:
        """The tree as text, a line a leaf; leaves with the same answer below one node are one line."""
        lines = []
        best = self.chances.argmax(axis=1)
        leaf = 0
        while leaf < self.shape.leaves:
            width = 1
            while leaf % (2 * width) == 0 and len(set(best[leaf : leaf + 2 * width].tolist())) == 1:
                if leaf + 2 * width > self.shape.leaves:
                    break
                width *= 2
            told = self.rule(leaf)[: self.shape.depth - width.bit_length() + 1]
            lines.append(f"{' and '.join(told) or 'always'}: {self.shape.classes[int(best[leaf])]}")
            leaf += width
        return "\n".join(lines)


def planned_depth(
    *, columns: Sequence[SplitColumn], classes: Sequence[Any], size: int, epsilon: Exact, rows: int = 1,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
) -> int:  # fmt: skip
    """The deepest tree whose mean leaf has four times the score that a choice may lose; from public numbers alone."""
    best = 1
    for depth in range(2, DEEPEST + 1):
        shape = TreeShape(
            columns=tuple(columns), classes=tuple(classes), depth=depth, rows=rows, neighbours=neighbours
        )
        if (
            whole("size", size, least=1)
            < ROOM * 2**depth * TreePlan.for_target(shape=shape, epsilon=epsilon).lost_score
        ):
            break
        best = depth
    return best
