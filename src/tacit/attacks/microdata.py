"""Reconstruction of microdata from published tables: every set of people that fits them, counted by exact search.

A block of people is described by counts, medians and means of groups, some suppressed because they are small
("fewer than three"). Searches all multisets of people that satisfy every published number, in exact arithmetic,
and stops after `most` + 1 solutions. One solution with `complete` true is a proof that the table publishes the
people. Garfinkel, Abowd and Martindale 2018 show it on a fictional block of seven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field
from fractions import Fraction
from itertools import product
from typing import Any

from tacit.attacks.finding import Finding
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass

Person = tuple[int, tuple[str, ...]]
"""An age, and one value for each attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One line of the published tables: its group, and its statistics.

    `where` names values of attributes, `ages` the least and the largest age (None: no limit). `count` is given if the
    line is published, and `fewer_than` if it is suppressed. A published line may also have a median and a mean. A
    mean is known to half a unit of its last published digit (`digits`); a median of whole ages is exact.
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
        """Whether membership depends on ages."""
        return self.ages != (None, None)

    def holds(self, age: int) -> bool:
        """Is this age in the group's range?"""
        low, high = self.ages
        return (low is None or age >= low) and (high is None or age <= high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solutions:
    """All solutions found, whether the search was complete, and the number of nodes visited."""

    found: tuple[tuple[Person, ...], ...]
    complete: bool
    nodes: int

    @property
    def unique(self) -> bool:
        """Whether the search proved that there is exactly one solution."""
        return self.complete and len(self.found) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Published tables about a block of people.

    `attributes` lists each attribute with its values. One group without conditions must publish the number of
    people. Ages are whole numbers from 0 to `oldest`.
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
        """The number of people."""
        return next(g.count for g in self.groups if not g.where and not g.by_age and g.count)

    def solve(self, *, most: int = 1000) -> Solutions:
        """Every multiset of people that fits all groups, up to `most` of them."""
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


# The search behind `microdata`: first how many people of each kind there are, then people in the order of their ages.
#
# In that order the median of a group is known as soon as its middle is placed, and anybody who is still to come is at
# least as old: both bound the sums that can still be reached. Every cut is by a bound that holds for all that was
# cut.

MOST_LINES = 200


class Line:
    """A group as the search sees it: bounds on the sum of ages, and the middle of the sorted ages."""

    def __init__(self, group: Group, kinds: Sequence[tuple[str, ...]], names: Sequence[str]) -> None:
        self.group = group
        self.kinds = frozenset(
            i
            for i, kind in enumerate(kinds)
            if all(kind[names.index(n)] == v for n, v in group.where.items())
        )
        self.count = group.count
        self.limit = group.fewer_than
        self.by_age = group.by_age
        # Anybody who comes later is older: sums and medians of groups that ages do not decide can be bounded by that.
        self.follows_order = group.count is not None and not group.by_age
        self.low_sum, self.high_sum = 0, None
        self.median2: int | None = None
        if group.count and group.mean is not None:
            middle, half = Fraction(str(group.mean)), Fraction(1, 2 * 10**group.digits)
            self.low_sum = -(-(middle - half) * group.count // 1)
            self.high_sum = (middle + half) * group.count // 1
        self.impossible = False
        if group.median is not None:
            doubled = 2 * Fraction(str(group.median))
            self.impossible = doubled.denominator != 1
            self.median2 = int(doubled)

    def among(self, kinds: frozenset[int]) -> Line:
        """The same line for a table with only these kinds of people, where more groups contain others."""
        same = copy(self)
        same.kinds = self.kinds & kinds
        return same

    def less(self, other: Line) -> Line | None:
        """The line of the people in this group and not in the other, if the other lies within this one."""
        if self.count is None or other.count is None or not other.kinds < self.kinds:
            return None
        if self.high_sum is None or other.high_sum is None or self.by_age or other.by_age:
            return None
        rest = copy(self)
        rest.group = Group(
            name=f"{self.group.name} but {other.group.name}", count=max(0, self.count - other.count)
        )
        rest.kinds = self.kinds - other.kinds
        rest.limit, rest.by_age, rest.follows_order = None, False, True
        rest.count, rest.median2 = self.count - other.count, None
        rest.low_sum, rest.high_sum = self.low_sum - other.high_sum, self.high_sum - other.low_sum
        rest.impossible = rest.count < 0
        return rest

    def may_go_on(self, placed: int, total: int, last: int, age: int, oldest: int) -> bool:
        """Whether the rest of the group, all at least `age` old, can still reach its median and its mean.

        `placed` members are in with sum `total`, the last of them `last` years old.
        """
        if self.count is None:
            return True
        left = self.count - placed
        if left < 0:
            return False
        low, high = total, total
        if self.median2 is None:
            low, high = total + left * age, total + left * oldest
        else:
            half, odd = divmod(self.count, 2)
            m = self.median2
            if odd:
                before, after = max(0, half - placed), left - max(0, half - placed)
                if placed <= half:  # the middle is still to come, and is m / 2
                    if m % 2 or 2 * age > m:
                        return False
                    middle = m // 2
                    low += before * age + middle + (after - 1) * middle
                    high += before * middle + middle + (after - 1) * oldest
                else:
                    low += left * age
                    high += left * oldest
            elif placed < half:  # both middle ones are still to come, and their sum is m
                if 2 * age > m:
                    return False
                before = half - 1 - placed
                low += before * age + m + (half - 1) * ((m + 1) // 2)
                high += before * (m // 2) + m + (half - 1) * oldest
            elif placed == half:  # the upper one of the middle is fixed by the lower one
                upper = m - last
                if upper < age or upper > oldest:
                    return False
                low += upper + (left - 1) * upper
                high += upper + (left - 1) * oldest
            else:
                low += left * age
                high += left * oldest
        return high >= self.low_sum and (self.high_sum is None or low <= self.high_sum)

    def latest(self, placed: int, total: int, last: int, ages: tuple[int, int], oldest: int) -> int:
        """The largest of these ages that may come next; a number below the first if none may.

        Larger ages only raise the least remaining sum. So an age that fails rules out all later ones.
        """
        low, high = ages
        if self.may_go_on(placed, total, last, high, oldest):
            return high
        if not self.may_go_on(placed, total, last, low, oldest):
            return low - 1
        high -= 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.may_go_on(placed, total, last, middle, oldest):
                low = middle
            else:
                high = middle - 1
        return low

    def span(self, placed: int, last: int, oldest: int) -> tuple[int, int]:
        """The ages that are possible for the next member, given the median."""
        if self.median2 is None or self.count is None:
            return 0, oldest
        half, odd = divmod(self.count, 2)
        if placed < half:
            return 0, self.median2 // 2
        if odd and placed == half:
            return (self.median2 + 1) // 2, self.median2 // 2
        return (self.median2 - last,) * 2 if placed == half else ((self.median2 + 1) // 2, oldest)


def with_differences(lines: list[Line]) -> list[Line]:
    """Adds the consequences of groups that contain other groups. They prune the search and exclude no solution."""
    known = {(line.kinds, line.low_sum, line.high_sum) for line in lines}
    found = list(lines)
    for _ in range(2):
        for outer in list(found):
            for inner in list(found):
                rest = outer.less(inner)
                if rest is not None and (rest.kinds, rest.low_sum, rest.high_sum) not in known:
                    known.add((rest.kinds, rest.low_sum, rest.high_sum))
                    found.append(rest)
        if len(found) > MOST_LINES:
            break
    return found


class Search:
    """Depth first: first the number of people of each kind, then people in the order of (age, kind)."""

    def __init__(self, block: Block, most: int) -> None:
        self.block, self.most = block, most
        self.names = list(block.attributes)
        self.kinds = list(product(*block.attributes.values()))
        self.published = [Line(g, self.kinds, self.names) for g in block.groups]
        self.lines = self.published
        self.found: list[tuple[Person, ...]] = []
        self.nodes = 0

    def run(self) -> bool:
        """True if the search saw everything; False if there are more solutions than requested."""
        if any(line.impossible for line in self.lines):
            return True
        for counts in self._compositions():
            there = frozenset(i for i, count in enumerate(counts) if count)
            self.lines = with_differences([line.among(there) for line in self.published])
            if any(line.impossible for line in self.lines):
                continue
            self.of_kind = [
                [(at, line) for at, line in enumerate(self.lines) if kind in line.kinds]
                for kind in range(len(self.kinds))
            ]
            self.medians = [
                [(at, line) for at, line in lines if line.median2 is not None and not line.by_age]
                for lines in self.of_kind
            ]
            self.sorted = [(at, line) for at, line in enumerate(self.lines) if line.follows_order]
            state = [(0, 0, 0)] * len(self.lines)
            if not self._place([], counts, state):
                return False
        return True

    def _compositions(self) -> Iterator[list[int]]:
        """The number of people of each kind, by the groups that ages do not decide."""
        lines = [line for line in self.published if not line.by_age]
        counts = [0] * len(self.kinds)

        def fits(done: int) -> bool:
            for line in lines:
                inside = sum(counts[i] for i in line.kinds if i < done)
                open_ = any(i >= done for i in line.kinds)
                if line.count is not None and (inside > line.count or (not open_ and inside != line.count)):
                    return False
                if line.limit is not None and inside >= line.limit:
                    return False
            return True

        def fill(at: int) -> Iterator[list[int]]:
            if at == len(counts):
                yield list(counts)
                return
            for value in range(self.block.people + 1):
                counts[at] = value
                if fits(at + 1):
                    yield from fill(at + 1)
            counts[at] = 0

        yield from fill(0)

    def _place(self, people: list[Person], left: list[int], state: list[tuple[int, int, int]]) -> bool:
        """Tries everybody who may come next; False if there are more solutions than requested."""
        if not any(left):
            if all(
                s[0] == line.count if line.count is not None else s[0] < (line.limit or 0)
                for line, s in zip(self.lines, state, strict=True)
            ):
                self.found.append(tuple(people))
            return len(self.found) <= self.most
        first, least = (people[-1][0], self.kinds.index(people[-1][1])) if people else (0, 0)
        last = self.block.oldest
        for at, line in self.sorted:
            placed, total, youngest = state[at]
            last = line.latest(placed, total, youngest, (first, last), self.block.oldest)
            if last < first:
                return True
        spans = [(kind, *self._span(state, kind)) for kind in range(len(self.kinds)) if left[kind]]
        for age in range(max(first, min(low for _, low, _ in spans)), last + 1):
            for kind, low, high in spans:
                if not low <= age <= high or (age == first and kind < least):
                    continue
                self.nodes += 1
                after = self._with(state, kind, age)
                if after is None:
                    continue
                left[kind] -= 1
                going = self._place([*people, (age, self.kinds[kind])], left, after)
                left[kind] += 1
                if not going:
                    return False
        return True

    def _span(self, state: list[tuple[int, int, int]], kind: int) -> tuple[int, int]:
        """The ages that medians allow the next person of this kind, by the groups that ages do not decide."""
        low, high = 0, self.block.oldest
        for at, line in self.medians[kind]:
            one = line.span(state[at][0], state[at][2], high)
            low, high = max(low, one[0]), min(high, one[1])
        return low, high

    def _with(
        self, state: list[tuple[int, int, int]], kind: int, age: int
    ) -> list[tuple[int, int, int]] | None:
        oldest = self.block.oldest
        after = list(state)
        for at, line in self.of_kind[kind]:
            if line.by_age and not line.group.holds(age):
                continue
            placed, total, last = state[at]
            if line.limit is not None and placed + 1 >= line.limit:
                return None
            if line.by_age:
                low, high = line.span(placed, last, oldest)
                if not low <= age <= high:
                    return None
            if not line.may_go_on(placed + 1, total + age, age, age, oldest):
                return None
            after[at] = (placed + 1, total + age, age)
        return after
