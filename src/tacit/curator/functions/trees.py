"""Decision trees in the curator: the query, its price, the release of splits and leaves, and its reading.

    [[release]]
    kind = "decision_tree"
    columns = ["age", "income", "region"]
    label = "insured"
    size = 5000                   # the public number of rows
    depth = 4

The depth is fixed before a row is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.accounting.events import Event
from tacit.curator.assignments import Assignment, NoisyParts, pure_within
from tacit.curator.charging import Price
from tacit.curator.functions.assignment import fixed_sentence
from tacit.curator.functions.statistics import FunctionStatistic, InputColumns, Points
from tacit.curator.intervals import Estimate
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.canonical import formerly
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.functions.models.trees import (
    DEEPEST,
    Codes,
    ReleasedTree,
    SplitColumn,
    TreePlan,
    TreeShape,
    default_cuts,
)
from tacit.guarantees import Unit
from tacit.mechanisms.base import Mechanism
from tacit.noise.source import Source
from tacit.sources.axes import cell_count
from tacit.sources.columns import Category, Date, Flag, Measured, Number
from tacit.sources.expressions import Expression
from tacit.sources.query import Cells, TrainingRows
from tacit.sources.schema import Schema
from tacit.statistics.base import Question, base_unit, by_columns, filter_of, row_limit

LEAF = "leaf"
ROWS_A_LEAF = 500


def depth_of(size: int) -> int:
    """The default depth: the deepest tree with 500 rows a leaf on average, from 1 to 12."""
    return max(1, min(DEEPEST, (size // ROWS_A_LEAF).bit_length() - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTree(FunctionStatistic):
    """A tree of splits that predicts the label of a row from its columns, and the counts of each class in its
    leaves.
    """

    kind: ClassVar[str] = "decision_tree"
    fits: ClassVar[Any] = "tree"
    whole: ClassVar[bool] = True

    label: str
    depth: int | None = None

    def __post_init__(self) -> None:
        FunctionStatistic.__post_init__(self)
        depth = depth_of(self.size) if self.depth is None else whole("depth", self.depth, least=1)
        if depth > DEEPEST:
            raise InvalidParameter(parameter="depth", value=depth, must=f"be at most {DEEPEST}")
        set_fields(self, depth=depth)

    def on(self, schema: Schema, unit: Unit) -> Question:
        """The question; the label must have at least two declared values and differ from every input column."""
        inputs = self._inputs(schema)
        classes, wanted = self._labels(schema, self.label)
        splits = tuple(_splits(n, c) for n, c in zip(inputs.names, inputs.columns, strict=True))
        axes = (
            Points(column=LEAF, values=tuple(range(1, 2 ** (self.depth or 1) + 1))),
            Points(column=self.label if self.label != LEAF else f"{LEAF}_", values=classes),
        )
        cell_count(axes)
        return self._question(schema, unit, inputs, axes, {"classes": classes, "splits": splits}, **wanted)


def decision_tree(
    columns: Any, label: str, *, size: int, depth: int | None = None, where: str | Expression | None = None
) -> DecisionTree:
    """A tree that predicts the label of a row from its columns: `decision_tree(["age", "region"], "vote", size=5000)`.

    `size` is the public number of rows. Without a depth it is the deepest one with 500 rows a leaf on average.
    """
    return DecisionTree(
        columns=by_columns(columns), label=label, size=size, depth=depth, where=filter_of(where)
    )


def _splits(name: str, column: Measured | Category) -> SplitColumn:
    """The public splits of a declared column."""
    if isinstance(column, Category):
        return SplitColumn(name=name, values=tuple(column.values or ()))
    if isinstance(column, Flag):
        return SplitColumn(name=name, values=(False, True))
    low, high = (float(v * column.spacing) for v in (column.lowest, column.highest))
    cuts = default_cuts(low, high)
    if not isinstance(column, Number):
        cuts = tuple(sorted({float(math.floor(c)) for c in cuts if math.floor(c) < high}))
    cuts = cuts or (low,)
    labels = tuple(str(column.label(int(c))) for c in cuts) if isinstance(column, Date) else ()
    return SplitColumn(name=name, cuts=cuts, labels=labels)


def coded(splits: Sequence[SplitColumn], inputs: InputColumns, steps: Mapping[str, Floats]) -> list[Codes]:
    """The rows that a query read (`TrainingRows`), as codes of the splits. A missing value has the code 0."""
    out = []
    for column, declared in zip(splits, inputs.columns, strict=True):
        held = np.asarray(steps[column.name], dtype=np.float64)
        if column.cuts:
            assert isinstance(declared, Measured)
            out.append(column.of_numbers((held + declared.lowest) * float(declared.spacing)))
        else:
            out.append(np.where(np.isnan(held), 0.0, held + 1).astype(np.int64))
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedTree:
    """A released tree. Each `predict({"age": [30], "region": ["north"]})` is free."""

    tree: ReleasedTree = field(repr=False)
    inputs: InputColumns = field(repr=False)
    publishable: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the tree uses."""
        return self.inputs.names

    def __call__(self, points: Any) -> Floats:
        """The chance of each class at each point, from the noisy counts of its leaf."""
        codes = coded(self.tree.shape.columns, self.inputs, self.inputs.steps_of_values(points))
        return np.asarray(self.tree.chances[self.tree.leaves(codes)])

    def predict(self, points: Any) -> npt.NDArray[Any]:
        """The class of each point."""
        chosen = self(points).argmax(axis=1)
        out = np.empty(len(chosen), dtype=object)
        out[:] = [self.tree.shape.classes[int(k)] for k in chosen]
        return out

    def __str__(self) -> str:
        return str(self.tree)

    def to_dict(self) -> dict[str, Any]:
        """The tree in plain values, nodes as in a heap: node k has the children 2k + 1 (no) and 2k + 2."""
        classes = [c if isinstance(c, str | int) else str(c) for c in self.tree.shape.classes]
        return {"columns": list(self.columns), "classes": classes, "nodes": self.tree.nodes}

    record = formerly("record")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAssignment(Assignment):
    """One choice of splits for each level, and noise on the counts of the leaves."""

    plan: TreePlan

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """One for each level, then the leaves."""
        return self.plan.mechanisms

    @property
    def events(self) -> tuple[Event, ...]:
        """One for each level, then the leaves."""
        return self.plan.events

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        return tuple(dict.fromkeys(("tree-scores", "tree-levels", *self.plan.theorems)))

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Grows the tree and drops the rows in every case."""
        (rows,) = cells
        assert isinstance(rows, TrainingRows)
        try:
            chosen, counts = fixed_sentence(lambda: self._grown(question, rows, source))
        finally:
            rows.clear()
        numbers = np.empty(counts.size, dtype=object)
        numbers[:] = [int(v) for v in np.ravel(counts)]
        noisy = NoisyParts(parts={"splits": chosen, "count": numbers.reshape(counts.shape)})
        return replace(noisy, keys=self.keys(noisy))

    def _grown(self, question: Question, rows: TrainingRows, source: Source | None) -> tuple[Codes, Any]:
        statistic: Any = question.statistic
        codes = coded(self.plan.shape.columns, question.details["inputs"], rows.rows)
        given = np.asarray(rows.rows[statistic.label], dtype=np.float64)
        places = np.where(np.isnan(given), -1.0, given).astype(np.int64)
        return self.plan.release(codes, places, source=source)

    def tree(self, noisy: NoisyParts) -> ReleasedTree:
        """What was released."""
        return ReleasedTree(
            shape=self.plan.shape,
            chosen=np.asarray(noisy.parts["splits"]).astype(np.int64),
            counts=np.asarray(noisy.parts["count"]),
            leaf_error=self.plan.leaf_error,
        )

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The counts of each leaf and class, cut at 0, with the interval of their noise."""
        value = np.asarray(noisy.parts["count"]).astype(np.float64)
        half = self.plan.noise.error_quantile(1 - (1 - confidence) / coordinates)
        low, high = np.maximum(value - half, 0.0), np.maximum(value + half, 0.0)
        shown = np.maximum(value, 0.0)
        return Estimate(value=shown, low=low, high=high, reach=np.full(value.shape, half))

    def keys(self, noisy: NoisyParts) -> tuple[tuple[Any, ...], ...]:
        """The rule of each leaf and the class of each count, for people."""
        tree, classes = self.tree(noisy), self.plan.shape.classes
        rules = [" and ".join(tree.rule(k)) for k in range(self.plan.shape.leaves)]
        return (
            tuple(rule for rule in rules for _ in classes),
            tuple(c for _ in rules for c in classes),
        )

    def recorded(self, record: Mapping[str, Any]) -> NoisyParts:
        """The released function, read from a certificate."""
        nodes, shape = record["nodes"], self.plan.shape
        if len(nodes) != 2 * shape.leaves - 1:
            raise ValueError("a tree of another depth")
        chosen = np.array([_number_of(shape, node) for node in nodes[: shape.leaves - 1]], dtype=np.int64)
        counts = np.array(
            [[int(v) for v in node["counts"]] for node in nodes[shape.leaves - 1 :]], dtype=object
        )
        if counts.shape != (shape.leaves, len(shape.classes)):
            raise ValueError("a tree of other classes")
        noisy = NoisyParts(parts={"splits": chosen, "count": counts})
        return replace(noisy, keys=self.keys(noisy))

    def function(self, question: Question, noisy: NoisyParts, *, publishable: bool = True) -> PublishedTree:
        """The tree as a function of any point."""
        return PublishedTree(
            tree=self.tree(noisy), inputs=question.details["inputs"], publishable=publishable
        )

    def to_dict(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        shape = self.plan.shape
        return {
            "noise": [self.plan.choice.noise_distribution, self.plan.noise.noise_distribution],
            "chosen": self.reason,
            "numerical_delta": 0.0,
            "tree": {"depth": shape.depth, "splits": shape.splits, "lost_score": self.plan.lost_score},
        }

    def sensitivity_record(self, question: Question) -> dict[str, str]:
        """The sensitivity of the score of a split, and of the counts of the leaves."""
        shape = self.plan.shape
        return {
            "score": str(shape.moves), "l1_steps": str(shape.moves), "l2_squared_steps": str(shape.squared_move),
        }  # fmt: skip

    def grid_record(self, question: Question) -> dict[str, str]:
        """Counts are whole numbers."""
        return {"count": "1"}

    @property
    def covers(self) -> str:
        """The noise of the leaves alone."""
        return "the number of rows of the class in the leaf of the released tree, each count by itself"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The noise of one count of a leaf."""
        noise = self.plan.noise
        about = (
            f"the count of one class in one leaf; a choice among {self.plan.shape.splits} splits is within "
            f"{self.plan.lost_score:.3g} rows of the best one of its node"
        )
        return noise.expected_error(), noise.error_quantile(confidence), about

    @property
    def log_error(self) -> float:
        """The logarithm of the score that a choice may lose."""
        return math.log(self.plan.lost_score + 0.5)


def _number_of(shape: TreeShape, node: Mapping[str, Any]) -> int:
    """The number of a split that a certificate describes in words."""
    first = 0
    for column in shape.columns:
        if column.name == node["column"]:
            side = column.cuts.index(node["above"]) if column.cuts else column.values.index(node["equals"])
            return first + side
        first += column.splits
    raise ValueError("a column that the tree does not have")


def tree_shape(question: Question, depth: int) -> TreeShape:
    """The shape of a question's tree at this depth."""
    base, size = base_unit(question.unit)
    return TreeShape(
        columns=question.details["splits"], classes=question.details["classes"], depth=depth,
        rows=row_limit(question.unit) * size, neighbours=base.neighbours,
    )  # fmt: skip


def assign_tree(question: Question, price: Price) -> TreeAssignment:
    """Permute-and-flip and Laplace leaves, by the pure epsilon that the price has room for at every level."""
    if price.kind == "accuracy":
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0), must="be asked of counts and sums",
            hint="the error of a tree depends on the data; pay with epsilon",
        )  # fmt: skip
    statistic: Any = question.statistic
    depth: int = statistic.depth
    shape = tree_shape(question, depth)
    each = pure_within(price, Fraction(1, depth + 1))
    assert each is not None
    plan = TreePlan.for_target(shape=shape, epsilon=each * (depth + 1))
    plan.check(statistic.size)
    reason = f"permute-and-flip and Laplace noise: a choice is within {plan.lost_score:.3g} of the best of its node"
    return TreeAssignment(noise=(), price=price, reason=reason, plan=plan)
