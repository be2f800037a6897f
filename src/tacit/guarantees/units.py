"""The unit of a guarantee: the change of the data that must stay unnoticed.

A unit defines one *step* between neighbouring data sets. The field uses two neighbour relations, and a number without
its relation means nothing:

    replace-one      one unit's data are exchanged for any other data; the number of units is public
    add-or-remove    one unit's data are added or taken away; the number of units is protected too

A histogram's cell vector moves by 2 in L1 under replace-one, and by 1 under add-or-remove.
The general form is the pair (alt, priv) of coupled worlds (Groce 2014, Def. 5.5): the output reveals no more
about priv(X) than a simulation from alt(X) can. Rows are the case priv = the row, alt = the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from tacit.errors import InvalidParameter, UnitMismatch, UnknownName
from tacit.exact.checks import check_fields, how_many, instance, set_fields, text
from tacit.exact.data_classes import dataclass


class Neighbours(StrEnum):
    """Which data sets are neighbours."""

    REPLACE_ONE = "replace-one"
    ADD_OR_REMOVE = "add-or-remove"

    @classmethod
    def parse(cls, value: str | Neighbours) -> Neighbours:
        """The relation with this name; an unknown name is refused with the nearest known one."""
        try:
            return cls(value)
        except ValueError:
            raise UnknownName(
                what="neighbour relation", name=str(value), known=[n.value for n in cls]
            ) from None

    @property
    def verb(self) -> str:
        """The change of the unit between two neighbours, for sentences."""
        return "replaced by any other" if self is Neighbours.REPLACE_ONE else "added or taken away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Base of all units. Equality is structural: two guarantees compose only when their units are equal."""

    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    @property
    def noun(self) -> str:
        """The unit as a noun phrase: 'any one row'."""
        raise UnitMismatch(left="an abstract unit", right="a concrete one", hint="use rows(), people() ...")

    def describe(self) -> str:
        """The unit with its neighbour relation: 'any one row, added or taken away'."""
        return f"{self.noun}, {self.neighbours.verb}"

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Unit):
    """One row of the table."""

    @property
    def noun(self) -> str:
        return "any one row"


@dataclass(frozen=True, slots=True, kw_only=True)
class People(Unit):
    """One person (or school, household, ...) with all their rows, of which at most `at_most` are used.

    `groups` bounds the number of groups (keys of a `by`) of a person; None if not declared. `each` is a column and the
    largest number of used rows with one value of it: ("year", 1) for a panel with one row a year.
    """

    column: str
    at_most: int
    groups: int | None = None
    each: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        Unit.__post_init__(self)
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter(parameter="column", value=self.column, must="be a column's name")
        if self.column.casefold().startswith("__tacit"):
            raise InvalidParameter(
                parameter="column",
                value=self.column,
                must="not begin with __tacit",
                hint="such names are used inside: rename the column",
            )
        set_fields(self, column=str(self.column), at_most=how_many("at_most", self.at_most))
        if self.groups is not None:
            set_fields(self, groups=how_many("groups", self.groups))
        if self.each is not None:
            set_fields(self, each=_each(self.column, self.each))

    @property
    def noun(self) -> str:
        limits = [] if self.at_most == 1 else [f"at most {self.at_most} are used"]
        if self.each is not None:
            limits.append(f"at most {self.each[1]} of each {self.each[0]}")
        if self.groups is not None:
            limits.append("in one group" if self.groups == 1 else f"in at most {self.groups} groups")
        rows_used = "their row" if self.at_most == 1 else "their rows"
        return f"any one {self.column} with {rows_used}" + (f" ({', '.join(limits)})" if limits else "")

    @property
    def reach(self) -> int:
        """The largest number of groups of a person, where each row lies in one."""
        return self.at_most if self.groups is None else min(self.groups, self.at_most)


def _each(person: str, each: object) -> tuple[str, int]:
    """A column that is not the person's, and a number of rows."""
    if not isinstance(each, tuple | list) or len(each) != 2 or not isinstance(each[0], str) or not each[0]:
        raise InvalidParameter(
            parameter="at_most_each", value=type(each).__name__, must="be one column with a number of rows",
            hint='at_most_each={"year": 1}',
        )  # fmt: skip
    if each[0] == person:
        raise InvalidParameter(
            parameter="at_most_each", value=person, must="be another column than the person's"
        )
    return str(each[0]), how_many("at_most_each", each[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOf(Unit):
    """Any `size` units at once: a family, a class, k rows. A step is at most `size` steps of the simple unit."""

    of: Unit
    size: int

    def __post_init__(self) -> None:
        check_fields(self, size=how_many)
        instance("of", self.of, Unit, must="be a unit", hint="such as tacit.rows()")
        if isinstance(self.of, GroupOf | Coupled):
            raise UnitMismatch(left=str(self.of), right="a simple unit", hint="group simple units only")
        object.__setattr__(self, "neighbours", self.of.neighbours)

    @property
    def noun(self) -> str:
        return f"up to {self.size} at once of: {self.of.noun}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupled(Unit):
    """The general pair of coupled worlds: the private part, and the scrubbed data of the ideal world.

    `priv` and `alt` are names that identify the two functions; equal names mean equal functions.
    `family` is the number of (alt, priv) pairs that are protected at once (n for the rows of a table):
    inference-based readings take a union bound over it.
    """

    priv: str
    alt: str
    family: int | None = None

    def __post_init__(self) -> None:
        Unit.__post_init__(self)
        for name in ("priv", "alt"):
            set_fields(self, **{name: text(name, getattr(self, name), empty=False)})
        if self.family is not None:
            set_fields(self, family=how_many("family", self.family))

    @property
    def noun(self) -> str:
        return self.priv

    def describe(self) -> str:
        return f"{self.priv}, beyond what could be told from {self.alt}"


def rows(*, neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE) -> Rows:
    """Protect each row of the table."""
    return Rows(neighbours=Neighbours.parse(neighbours))


def people(
    column: str,
    *,
    at_most: int,
    groups: int | None = None,
    at_most_each: Mapping[str, int] | None = None,
    neighbours: str | Neighbours = Neighbours.ADD_OR_REMOVE,
) -> People:
    """Protects each person with all their rows; `column` identifies the person of a row.

    `at_most_each={"year": 1}` uses at most one row of a person with each year, for panels: releases by year
    then need less noise.
    """
    each: Any = at_most_each
    if isinstance(at_most_each, Mapping):
        each = next(iter(at_most_each.items())) if len(at_most_each) == 1 else [*at_most_each.items()]
    return People(
        column=column, at_most=at_most, groups=groups, each=each, neighbours=Neighbours.parse(neighbours)
    )


def group_of(unit: Unit, *, size: int) -> GroupOf:
    """Protect any `size` units at once."""
    return GroupOf(of=unit, size=size)


def steps(known: Unit, wanted: Unit) -> tuple[int, tuple[str, ...]]:
    """The number of neighbour steps of `known` in one step of `wanted`, with its theorems.

    replace-one is one removal and one addition (two steps of add-or-remove). A person with at most m
    rows is m added or removed rows. There is no way back from replace-one to add-or-remove: a mechanism that
    prints the number of rows is perfectly private under the first and not private under the second. A guarantee
    for people with at most seven rows covers people with fewer rows, and one for two groups covers one group.
    There is no way back: the number of people with seven rows is a constant if nobody may have seven.
    """
    if known == wanted:
        return 1, ()
    if isinstance(known, Coupled) or isinstance(wanted, Coupled):
        raise UnitMismatch(left=str(known), right=str(wanted), hint="coupled-worlds units do not convert")
    size_wanted = wanted.size if isinstance(wanted, GroupOf) else 1
    base_wanted = wanted.of if isinstance(wanted, GroupOf) else wanted
    size_known = known.size if isinstance(known, GroupOf) else 1
    base_known = known.of if isinstance(known, GroupOf) else known
    count, theorems = size_wanted, (["group-privacy"] if size_wanted > 1 else [])
    if base_known.neighbours is not base_wanted.neighbours:
        if base_known.neighbours is Neighbours.REPLACE_ONE:
            raise UnitMismatch(
                left=str(known),
                right=str(wanted),
                hint="replace-one leaves the number of units public, so that it says nothing about adding one",
            )
        count *= 2
        theorems.append("replace-by-remove-and-add")
    if type(base_known) is Rows and type(base_wanted) is People:
        if base_known.neighbours is Neighbours.REPLACE_ONE:
            raise UnitMismatch(
                left=str(known),
                right=str(wanted),
                hint="a person's number of rows may change; state the row guarantee for add-or-remove",
            )
        count *= base_wanted.at_most
        theorems.append("group-privacy" if base_wanted.at_most > 1 else "fewer-neighbours")
    elif type(base_known) is not type(base_wanted) or _identity(base_known) != _identity(base_wanted):
        raise UnitMismatch(left=str(known), right=str(wanted))
    elif isinstance(base_known, People) and isinstance(base_wanted, People):
        if base_wanted.at_most > base_known.at_most:
            raise UnitMismatch(
                left=str(known),
                right=str(wanted),
                hint="a bound for people with few rows says nothing of people with more of them",
            )
        if base_wanted.reach > base_known.reach:
            raise UnitMismatch(
                left=str(known),
                right=str(wanted),
                hint="a bound for people in few groups says nothing of people in more of them",
            )
        if base_known.each is not None and not _within(base_wanted, base_known.each):
            raise UnitMismatch(
                left=str(known),
                right=str(wanted),
                hint=f"a bound for people with few rows of each {base_known.each[0]} says nothing of other people",
            )
        limits = [(p.groups, p.at_most, p.each) for p in (base_wanted, base_known)]
        if limits[0] != limits[1]:
            theorems.append("fewer-neighbours")
    if size_known > 1 and count < size_known:
        theorems.append("fewer-neighbours")
    return -(-count // size_known), tuple(dict.fromkeys(theorems))


def _within(people: People, each: tuple[str, int]) -> bool:
    """Have these people at most this many rows of each value of that column?"""
    if people.at_most <= each[1]:
        return True
    return people.each is not None and people.each[0] == each[0] and people.each[1] <= each[1]


def _identity(unit: Unit) -> tuple[object, ...]:
    return (unit.column,) if isinstance(unit, People) else ()
