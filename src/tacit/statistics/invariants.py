"""Totals that are public already: declared, exact, and never read from the data.

A statistics office often has published some totals before (the population of a region). They are declared here as
constants. Cells that they determine are not read and get no noise. The rest gets the usual noise, and is made to agree
with them afterwards. docs/theory/public-totals.md has the effect on the guarantee, and a sentence among the guarantee's
declarations states it. Nothing checks whether a declared total is *true*: that would be a question about the data.
Totals that contradict each other are an error, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter
from tacit.exact.arrays import AnyArray
from tacit.exact.canonical import canonical, sha256
from tacit.exact.checks import set_fields, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Guarantee, Neighbours, Unit
from tacit.statistics.base import Question, stacked
from tacit.statistics.counts import Count, Margins
from tacit.statistics.families import NoisyTable, consistent_margins, integer_margins, margin
from tacit.statistics.hierarchy import Hierarchy, Tree, consistent_tree, known_counts, tree_sensitivity

Columns = tuple[str, ...]

ONLY_REPLACED = (
    "within public totals a row can be replaced but not added, so that the bound is to be read for replacing, at two "
    "steps of adding or removing"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicTotals:
    """Declared counts: of all rows, of tables of some columns, of nodes of a hierarchy."""

    total: int | None = None
    tables: Mapping[Columns, AnyArray] = field(default_factory=dict)
    nodes: Mapping[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.total is not None:
            set_fields(self, total=whole("total", self.total, least=0))
        for name in ("tables", "nodes"):
            if not isinstance(getattr(self, name), Mapping):
                kind = type(getattr(self, name)).__name__
                raise InvalidParameter(parameter=name, value=kind, must="be a mapping to counts")
        tables = {
            tuple(columns): _counts(f"tables[{columns}]", v) for columns, v in dict(self.tables).items()
        }
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "nodes", {n: int(_counts(f"nodes[{n}]", v)) for n, v in self.nodes.items()})
        if self._exact:
            consistent_margins(self._exact)

    @property
    def _exact(self) -> list[NoisyTable]:
        """The declared tables, the total among them, as exact tables."""
        given = (
            [] if self.total is None else [NoisyTable(columns=(), values=np.array(self.total), variance=0.0)]
        )
        return given + [NoisyTable(columns=c, values=v, variance=0.0) for c, v in self.tables.items()]

    def to_dict(self) -> dict[str, Any]:
        """Every declared number as plain values, in one order: for digests and certificates."""
        tables = [[list(c), list(v.shape), v.ravel().tolist()] for c, v in self.tables.items()]
        nodes = [[_node(n), v] for n, v in self.nodes.items()]
        return {"total": self.total, "tables": sorted(tables, key=repr), "nodes": sorted(nodes, key=repr)}

    @property
    def digest(self) -> str:
        """A digest of the record, by which a sentence can name numbers that are too many to be listed."""
        return sha256(canonical(self.to_dict(), what="public totals"))

    @property
    def declared(self) -> tuple[str, ...]:
        """The guarantee's remarks about it, one sentence each."""
        names = [f"the number of rows ({self.total:,})"] if self.total is not None else []
        names += [f"the counts by {' x '.join(c)}" for c in self.tables]
        if self.nodes:
            nodes = "node" if len(self.nodes) == 1 else "nodes"
            names.append(f"the counts of {len(self.nodes)} {nodes} of the hierarchy")
        if not names:
            return ()
        return (
            f"{' and '.join(names)} were public and exact before: what they tell is not protected, and the bound "
            f"compares tables that agree on them (numbers with digest {self.digest[:16]})",
        )

    def restrict(self, guarantee: Guarantee) -> Guarantee:
        """The same bound with its declaration: it compares tables with equal totals."""
        more = list(self.declared)
        if more and guarantee.unit.neighbours is Neighbours.ADD_OR_REMOVE:
            more.append(ONLY_REPLACED)
        return replace(guarantee, declared=(*guarantee.declared, *more))

    def restate(self, guarantee: Guarantee) -> Guarantee:
        """The bound about tables with equal totals: one replaced row, two steps of the other relation.

        Tables that differ in one added row cannot agree on a total that counts the row.
        """
        if guarantee.unit.neighbours is Neighbours.ADD_OR_REMOVE:
            guarantee = guarantee.for_unit(_replaced(guarantee.unit))
        return self.restrict(guarantee)

    def known(self, question: Question) -> dict[str, AnyArray]:
        """The parts of the question that the declared totals determine."""
        statistic = question.statistic
        if isinstance(statistic, Hierarchy):
            return self._known_levels(question)
        people = isinstance(statistic, Count) and statistic.of == "people"
        if not isinstance(statistic, Count | Margins) or statistic.where is not None or people:
            # A filter leaves rows out that the totals may count, and people in groups do not add up.
            return {}
        out: dict[str, AnyArray] = {}
        for part in question.parts:
            columns = tuple(a.column for a in part.axes)
            for table in self._exact:
                if set(columns) <= set(table.columns):
                    values = np.rint(margin(table.values, table.columns, columns)).astype(np.int64)
                    shape = tuple(a.size or 0 for a in part.axes)
                    if values.shape != shape:
                        raise InvalidParameter(
                            parameter="tables", value=values.shape, must=f"have the shape {shape} for {columns}",
                            hint="one entry for each declared key",
                        )  # fmt: skip
                    out[part.name] = values
        return out

    def _known_levels(self, question: Question) -> dict[str, AnyArray]:
        known = known_counts(question.details["tree"], self._nodes(question))
        out = {}
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            if all(n in known for n in nodes):
                level = np.array([known[n] for n in nodes], dtype=np.int64)
                out[part.name] = level.reshape(tuple(a.size or 0 for a in part.axes))
        return out

    def _nodes(self, question: Question) -> dict[Hashable, int]:
        tree: Tree = question.details["tree"]
        tops = [n for n in tree.order if tree.parents[n] is None]
        nodes = dict(self.nodes)
        # Without a single top the total is a sum of several nodes, and known_counts has no place for it.
        if len(tops) == 1 and self.total is not None and nodes.setdefault(tops[0], self.total) != self.total:
            raise InvalidParameter(parameter="nodes", value=tops[0], must="agree with the declared total")
        return nodes

    def on(self, question: Question) -> Question:
        """The question without the known part: fewer parts, and the sensitivity of the remaining ones.

        The sensitivity of the remaining parts is that for all neighbours, including those with other totals. So
        a table that two declared margins seem to fix still gets its noise.
        """
        known = self.known(question)
        left = [p for p in question.parts if p.name not in known]
        details = {**question.details, "public": self, "known": known}
        if not known:
            return replace(question, details=details)
        if not left:
            # Nothing is asked of the data any more.
            none = question.sensitivity.times(0)
            details["levels"] = ()
            return replace(
                question, parts=(), requests=(), sensitivity=none, sensitivities={}, details=details
            )
        keep = {p.name for p in left}
        changed: dict[str, Any] = {"parts": tuple(left), "details": details}
        if isinstance(question.statistic, Margins):
            changed["sensitivity"] = stacked(len(left), question.unit)
            if question.tables is None or question.tables.sums is None:
                pairs = zip(question.parts, question.requests, strict=True)
                changed["requests"] = tuple(r for p, r in pairs if p.name in keep)
        elif isinstance(question.statistic, Hierarchy):
            levels = [i for i, p in enumerate(question.parts) if p.name in keep]
            details["levels"] = tuple(question.details["levels"][i] for i in levels)
            changed["sensitivity"] = tree_sensitivity(
                question.details["tree"], question.details["leaves"], question.unit,
                absent=question.details["absent"], levels=levels,
            )  # fmt: skip
        changed["sensitivities"] = {n: m for n, m in question.sensitivities.items() if n in keep}
        return replace(question, **changed)


def public_totals(
    *,
    total: int | None = None,
    tables: Mapping[str | Columns, npt.ArrayLike] | None = None,
    nodes: Mapping[Hashable, int] | None = None,
) -> PublicTotals:
    """Counts that are public and exact: of all rows, by columns ({"region": [..]}), of nodes of a hierarchy.

    They must count the same rows as the query: all rows, without a filter. Contradictions among them are an error.
    """
    for name, given in (("tables", tables), ("nodes", nodes)):
        if given is not None and not isinstance(given, Mapping):
            raise InvalidParameter(parameter=name, value=type(given).__name__, must="be a mapping to counts")
    named = {(k,) if isinstance(k, str) else tuple(k): np.asarray(v) for k, v in (tables or {}).items()}
    return PublicTotals(total=total, tables=named, nodes=dict(nodes or {}))


def valid_counts(
    question: Question, noisy: Mapping[str, npt.ArrayLike], variances: Mapping[str, float]
) -> dict[str, AnyArray]:
    """Whole non-negative counts of every part that agree with each other and with the declared totals.

    `noisy` and `variances` are given for the released parts; the numbers that follow from the totals are added. For
    counts, margins and hierarchies. Post-processing: no privacy cost.
    """
    public: PublicTotals = question.details.get("public", PublicTotals())
    known: Mapping[str, AnyArray] = question.details.get("known", {})
    statistic = question.statistic
    if isinstance(statistic, Hierarchy):
        counts: dict[Hashable, float] = {}
        spread: dict[Hashable, float] = {}
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            counts |= dict(zip(nodes, np.asarray(noisy[part.name], np.float64).ravel().tolist(), strict=True))
            spread |= dict.fromkeys(nodes, float(variances[part.name]))
        exact = known_counts(question.details["tree"], public._nodes(question))
        found = consistent_tree(question.details["tree"], counts, spread, exact=exact)
        out = dict(known)
        for part, nodes in zip(question.parts, question.details["levels"], strict=True):
            level = np.array([found[n] for n in nodes], dtype=np.int64)
            out[part.name] = level.reshape(np.asarray(noisy[part.name]).shape)
        return out
    if not isinstance(statistic, Count | Margins):
        raise InvalidParameter(
            parameter="question", value=statistic.kind, must="count rows: a count, margins or a hierarchy"
        )
    released = [
        NoisyTable(
            columns=tuple(a.column for a in p.axes), values=np.asarray(noisy[p.name]), variance=float(variances[p.name])
        )
        for p in question.parts
    ]  # fmt: skip
    additive = statistic.where is None and not (isinstance(statistic, Count) and statistic.of == "people")
    exact_tables = public._exact if additive else []
    whole = integer_margins([*released, *exact_tables])[: len(released)] if released else []
    return {**known, **{p.name: w for p, w in zip(question.parts, whole, strict=True)}}


def _counts(name: str, values: Any) -> AnyArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or bool((array < 0).any()):
        raise InvalidParameter(
            parameter=name, value=f"array of {array.dtype}" if array.ndim else values,
            must="hold whole numbers of at least 0", hint="declare counts as they were published",
        )  # fmt: skip
    return array.astype(np.int64)


def _node(name: Hashable) -> Any:
    """A node's name with its kind: the key 1 is not the key "1"."""
    if isinstance(name, tuple):
        return [_node(part) for part in name]
    return [type(name).__name__, str(name)]


def _replaced(unit: Unit) -> Unit:
    from tacit.guarantees import GroupOf

    if isinstance(unit, GroupOf):
        return replace(unit, of=_replaced(unit.of))
    return replace(unit, neighbours=Neighbours.REPLACE_ONE)
