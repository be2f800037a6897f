"""Reconstruction of microdata from published tables: every set of people that fits them, counted by exact search.

A block of people is described by counts, medians and means of groups, some suppressed because they are small
("fewer than three"). The search runs through all multisets of people that satisfy every published number, in whole
numbers and fractions, and stops when it has seen them all or more than `most`. One solution, with `complete` true, is
a proof: the table publishes the people. Garfinkel, Abowd and Martindale 2018 show it on a fictional block of seven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from tacit.attacks.finding import Finding
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.checks import whole

__all__ = ["Block", "Group", "Person", "Solutions", "seven"]

Person = tuple[int, tuple[str, ...]]
"""An age, and one value for each attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One line of the published tables: who is counted, and what is told of them.

    `where` names values of attributes, `ages` the least and the largest age (None: no limit). Either `count` is
    published, with a median and a mean if they are, or the line is suppressed: `fewer_than` people. A mean is known to
    half a unit of its last published digit (`digits`); a median of whole ages is exact.
    """

    name: str
    where: Mapping[str, str] = field(default_factory=dict)
    ages: tuple[int | None, int | None] = (None, None)
    count: int | None = None
    fewer_than: int | None = None
    median: Fraction | int | float | str | None = None
    mean: Fraction | int | float | str | None = None
    digits: int = 1

    def __post_init__(self) -> None:
        if (self.count is None) == (self.fewer_than is None):
            raise InvalidParameter(
                parameter="count",
                value=self.count,
                must="be given, or fewer_than, and not both",
                hint=f"of the group {self.name!r}",
            )
        if self.count is not None:
            whole("count", self.count, least=0)
        if self.fewer_than is not None:
            whole("fewer_than", self.fewer_than)
        if (self.median is not None or self.mean is not None) and not self.count:
            raise InvalidParameter(
                parameter="mean",
                value=str(self.mean),
                must="stand beside a count",
                hint=f"the group {self.name!r} has none",
            )
        whole("digits", self.digits, least=0)

    @property
    def by_age(self) -> bool:
        """Does it depend on ages who is in it?"""
        return self.ages != (None, None)

    def holds(self, age: int) -> bool:
        """Is this age in the group's range?"""
        low, high = self.ages
        return (low is None or age >= low) and (high is None or age <= high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solutions:
    """All that fits: the solutions seen, whether the search ended by itself, and how many nodes it visited."""

    found: tuple[tuple[Person, ...], ...]
    complete: bool
    nodes: int

    @property
    def unique(self) -> bool:
        """Proved: one solution, and no other."""
        return self.complete and len(self.found) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Published tables about a block of people.

    `attributes` lists each attribute with its values. One group without conditions must publish how many people there
    are. Ages are whole numbers from 0 to `oldest`.
    """

    attributes: Mapping[str, Sequence[str]]
    groups: Sequence[Group]
    oldest: int = 125

    def __post_init__(self) -> None:
        if not self.groups:
            raise EmptyComposition(what="the list of published groups")
        whole("oldest", self.oldest)
        for group in self.groups:
            for name, value in group.where.items():
                if name not in self.attributes:
                    raise UnknownName(what="attribute", name=name, known=self.attributes)
                if value not in self.attributes[name]:
                    raise UnknownName(what=f"value of {name}", name=value, known=self.attributes[name])
        if not [g for g in self.groups if not g.where and not g.by_age and g.count]:
            raise InvalidParameter(
                parameter="groups",
                value=len(self.groups),
                must="publish how many people there are: a group without conditions, with a count",
            )

    @property
    def people(self) -> int:
        """How many people there are."""
        return next(g.count for g in self.groups if not g.where and not g.by_age and g.count)

    def solve(self, *, most: int = 1000) -> Solutions:
        """Every multiset of people that fits all groups, up to `most` of them."""
        from tacit.attacks.microdata_search import Search

        search = Search(self, whole("most", most))
        complete = search.run()
        return Solutions(found=tuple(search.found), complete=complete, nodes=search.nodes)

    def reconstruct(self, *, most: int = 1000) -> Finding:
        """The people that every solution contains: they are known, by age and all attributes."""
        solved = self.solve(most=most)
        sure: list[Person] = []
        if solved.complete and solved.found:
            for person in sorted(set(solved.found[0])):
                sure += [person] * min(solution.count(person) for solution in solved.found)
        names = list(self.attributes)
        kinds = (self.oldest + 1) * len(list(product(*self.attributes.values())))
        return Finding(
            attack="reconstruction from tables",
            people=self.people,
            exposed=range(len(sure)),
            learned=[{"age": age, **dict(zip(names, kind, strict=True))} for age, kind in sure],
            guessing=1 / kinds,
            alone="one of all combinations of age and attributes",
            details={
                "solutions": len(solved.found),
                "complete": solved.complete,
                "unique": solved.unique,
                "nodes": solved.nodes,
            },
        )


def seven() -> Block:
    """The fictional block of seven people of Garfinkel, Abowd and Martindale 2018."""
    attributes: dict[str, Any] = {
        "sex": ("female", "male"),
        "race": ("black", "white"),
        "status": ("married", "single"),
    }
    return Block(
        attributes=attributes,
        groups=(
            Group(name="all", count=7, median=30, mean=38),
            Group(name="female", where={"sex": "female"}, count=4, median=30, mean="33.5"),
            Group(name="male", where={"sex": "male"}, count=3, median=30, mean=44),
            Group(name="black", where={"race": "black"}, count=4, median=51, mean="48.5"),
            Group(name="white", where={"race": "white"}, count=3, median=24, mean=24),
            Group(name="single adults", where={"status": "single"}, ages=(18, None), fewer_than=3),
            Group(name="married", where={"status": "married"}, count=4, median=51, mean=54),
            Group(
                name="black female",
                where={"sex": "female", "race": "black"},
                count=3,
                median=36,
                mean="36.7",
            ),
            Group(name="black male", where={"sex": "male", "race": "black"}, fewer_than=3),
            Group(name="white male", where={"sex": "male", "race": "white"}, fewer_than=3),
            Group(name="white female", where={"sex": "female", "race": "white"}, fewer_than=3),
            Group(name="under 5", ages=(None, 4), fewer_than=3),
            Group(name="under 18", ages=(None, 17), fewer_than=3),
            Group(name="64 and over", ages=(64, None), fewer_than=3),
        ),
    )
