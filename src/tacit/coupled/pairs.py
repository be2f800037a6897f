"""The protected pairs (alt, priv) of coupled worlds, and the secrets of Pufferfish.

priv(X) must stay private; alt(X) is the scrubbed data of the ideal world. The release must reveal no more about
priv(X) than some simulator can that sees alt(X) only. alt may be random (a firm's number is blurred, not removed).
Rows are counted from 0. A removed row leaves a gap: alt(X) is the tuple with `GONE` in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tacit.coupled.numbers import as_distribution, hashable
from tacit.coupled.priors import row_count
from tacit.errors import InvalidParameter
from tacit.exact.checks import check_fields, listed, refuse_if, text, whole
from tacit.exact.data_classes import dataclass

__all__ = [
    "Pair",
    "Secret",
    "blurred_firm",
    "graph_edge",
    "graph_node",
    "one_row",
    "participation_secret",
    "person_rows",
    "private_column",
    "row_pairs",
    "student_of_school",
    "value_secret",
]

GONE = "gone"
"""The mark in alt(X) for a removed part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One (alt, priv): two functions of the data; `alt` may give a mapping of values to probabilities."""

    name: str
    priv: Callable[[Any], Any]
    alt: Callable[[Any], Any]
    alt_name: str = ""

    def __post_init__(self) -> None:
        check_fields(self, name=partial(text, empty=False))
        object.__setattr__(
            self, "alt_name", text("alt_name", self.alt_name) or f"the data without {self.name}"
        )
        for field in ("priv", "alt"):
            if not callable(getattr(self, field)):
                raise InvalidParameter(
                    parameter=field, value=type(getattr(self, field)).__name__, must="be a function"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret of Pufferfish: a function of the data with values 0, 1 and None (undecided)."""

    name: str
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        check_fields(self, name=partial(text, empty=False))
        refuse_if(
            not callable(self.function), "function", type(self.function).__name__, "be a function of the data"
        )

    def __call__(self, data: Any) -> int | None:
        """The secret's value for these data."""
        value = self.function(data)
        if value is not None and value not in (0, 1):
            raise InvalidParameter(parameter="secret", value=type(value).__name__, must="be 0, 1 or None")
        return None if value is None else int(value)


def _entry(data: Any, place: int) -> Any:
    """One place of the data, or one typed error."""
    try:
        return data[place]
    except (IndexError, KeyError, TypeError):
        raise InvalidParameter(
            parameter="pairs", value=place, must="name places that the data of every prior have"
        ) from None


def one_row(row: int) -> Pair:
    """The pair of distributional DP: priv = the row, alt = the other rows."""
    i = whole("row", row, least=0)
    return Pair(
        name=f"row {i}",
        priv=lambda x: _entry(x, i),
        alt=lambda x: (*x[:i], GONE, *x[i + 1 :]),
        alt_name="the other rows",
    )


def row_pairs(rows: int) -> tuple[Pair, ...]:
    """Every row of a table of this many rows."""
    return tuple(one_row(i) for i in range(row_count("rows", rows)))


def person_rows(rows: Sequence[int], *, name: str = "") -> Pair:
    """A person with several rows: all of them are private, and all of them are removed."""
    own = frozenset(whole("rows", i, least=0) for i in listed("rows", rows))
    label = name or "rows " + ", ".join(str(i) for i in sorted(own))
    return Pair(
        name=label,
        priv=lambda x: tuple(_entry(x, i) for i in sorted(own)),
        alt=lambda x: tuple(GONE if i in own else v for i, v in enumerate(x)),
        alt_name="the rows of all others",
    )


def private_column(row: int, column: int) -> Pair:
    """One column of a row is private, its other columns are public and stay."""
    i, c = whole("row", row, least=0), whole("column", column, least=0)

    def scrubbed(x: Any) -> Any:
        left = tuple(GONE if k == c else v for k, v in enumerate(x[i]))
        return (*x[:i], left, *x[i + 1 :])

    return Pair(
        name=f"column {c} of row {i}",
        priv=lambda x: _entry(_entry(x, i), c),
        alt=scrubbed,
        alt_name="the data without this one entry",
    )


def student_of_school(row: int, school: Iterable[int]) -> Pair:
    """priv is one student's row; alt removes the whole school: the two are not complements."""
    i, members = (
        whole("row", row, least=0),
        frozenset(whole("school", j, least=0) for j in listed("school", school)),
    )
    if i not in members:
        raise InvalidParameter(
            parameter="school", value=sorted(members), must=f"contain the student's row {i}"
        )
    return Pair(
        name=f"row {i}",
        priv=lambda x: _entry(x, i),
        alt=lambda x: tuple(GONE if j in members else v for j, v in enumerate(x)),
        alt_name="the rows of the other schools",
    )


def graph_node(node: int) -> Pair:
    """A node with its edges. The data are (labels of the nodes, frozenset of edges), an edge being (u, v), u < v."""
    k = whole("node", node, least=0)

    def own(graph: Any) -> Any:
        labels, edges = graph
        return _entry(labels, k), frozenset(e for e in edges if k in e)

    def rest(graph: Any) -> Any:
        labels, edges = graph
        return (*labels[:k], GONE, *labels[k + 1 :]), frozenset(e for e in edges if k not in e)

    return Pair(name=f"node {k} with its edges", priv=own, alt=rest, alt_name="the graph without the node")


def graph_edge(left: int, right: int) -> Pair:
    """Whether two nodes are joined; the rest of the graph stays."""
    edge = tuple(sorted((whole("left", left, least=0), whole("right", right, least=0))))
    refuse_if(edge[0] == edge[1], "right", right, "be another node than left")
    return Pair(
        name=f"the edge between {edge[0]} and {edge[1]}",
        priv=lambda graph: edge in graph[1],
        alt=lambda graph: (graph[0], graph[1] - {edge}),
        alt_name="the graph without this edge",
    )


def blurred_firm(row: int, blur: Callable[[Any], Mapping[Any, Any]]) -> Pair:
    """A firm whose number is blurred, not removed: `blur(value)` gives the distribution of the blurred number."""
    i = whole("row", row, least=0)

    def scrubbed(x: Any) -> Mapping[Any, Any]:
        told = as_distribution("blur", {hashable("blur", v): p for v, p in blur(x[i]).items()})
        return as_distribution("blur", {(*x[:i], v, *x[i + 1 :]): p for v, p in told.items()})

    return Pair(
        name=f"row {i}",
        priv=lambda x: _entry(x, i),
        alt=scrubbed,
        alt_name="the data with this row blurred",
    )


def value_secret(row: int, first: Any, second: Any) -> Secret:
    """Does the row have the first value (0) or the second (1)? Undecided elsewhere."""
    i = whole("row", row, least=0)
    return Secret(
        name=f"row {i}: {first!r} or {second!r}",
        function=lambda x: 0 if _entry(x, i) == first else 1 if _entry(x, i) == second else None,
    )


def participation_secret(row: int) -> Secret:
    """Is somebody in the data (1), or not (0: their place holds None)?"""
    i = whole("row", row, least=0)
    return Secret(name=f"participation of row {i}", function=lambda x: int(_entry(x, i) is not None))
