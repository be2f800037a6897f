"""Reconstruction from tables: the published block, and every solution against plain enumeration."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tacit.attacks import Block, Group, seven
from tacit.errors import EmptyComposition, InvalidParameter, UnknownName

# Garfinkel, Abowd and Martindale 2018, the solution that they print.
PEOPLE = {
    (8, "female", "black", "single"),
    (18, "male", "white", "single"),
    (24, "female", "white", "single"),
    (30, "male", "white", "married"),
    (36, "female", "black", "married"),
    (66, "female", "black", "married"),
    (84, "male", "black", "married"),
}


def test_the_block_of_seven_has_one_solution() -> None:
    start = time.process_time()
    solved = seven().solve()
    assert time.process_time() - start < 10
    assert solved.unique
    assert {(age, *kind) for age, kind in solved.found[0]} == PEOPLE
    found = seven().reconstruct()
    assert {tuple(p.values()) for p in found.learned} == PEOPLE
    assert found.share == 1


def test_a_line_that_follows_from_others_changes_nothing() -> None:
    """All less women are men."""
    block = seven()
    fewer = Block(attributes=block.attributes, groups=[g for g in block.groups if g.name != "male"])
    assert fewer.solve().found == block.solve().found


ATTRIBUTES = {"sex": ("f", "m"), "status": ("a", "b")}
KINDS = list(itertools.product(*ATTRIBUTES.values()))
OLDEST = 5


def fits(group: Group, people: tuple[tuple[int, tuple[str, ...]], ...]) -> bool:
    """The definition, for one group."""
    low, high = group.ages
    ages = sorted(
        age
        for age, kind in people
        if all(dict(zip(ATTRIBUTES, kind, strict=True))[k] == v for k, v in group.where.items())
        and (low is None or age >= low)
        and (high is None or age <= high)
    )
    if group.fewer_than is not None:
        return len(ages) < group.fewer_than
    if len(ages) != group.count:
        return False
    if group.median is not None:
        half = len(ages) // 2
        middle = ages[half] if len(ages) % 2 else Fraction(ages[half] + ages[half - 1], 2)
        if middle != Fraction(str(group.median)):
            return False
    if group.mean is not None:
        mean = Fraction(sum(ages), len(ages))
        return abs(mean - Fraction(str(group.mean))) <= Fraction(1, 2 * 10**group.digits)
    return True


def published(people: list[tuple[int, tuple[str, ...]]], generator: np.random.Generator) -> list[Group]:
    """Some tables about people: the total, and groups with what is true of them."""
    groups = []
    for where, ages in (
        ({}, (None, None)),
        ({"sex": "f"}, (None, None)),
        ({"status": "b"}, (None, None)),
        ({"sex": "m", "status": "a"}, (None, None)),
        ({}, (2, None)),
        ({"status": "a"}, (None, 3)),
    ):
        inside = [
            age
            for age, kind in people
            if all(dict(zip(ATTRIBUTES, kind, strict=True))[k] == v for k, v in where.items())
            and (ages[0] is None or age >= ages[0])
            and (ages[1] is None or age <= ages[1])
        ]
        if (where or ages != (None, None)) and generator.random() < 0.3:
            continue
        if (where or ages != (None, None)) and len(inside) < 2:
            groups.append(Group(name="small", where=where, ages=ages, fewer_than=2))
            continue
        told: dict[str, object] = {}
        if inside and generator.random() < 0.6:
            told["median"] = float(np.median(inside))
        if inside and generator.random() < 0.6:
            told["mean"] = round(float(np.mean(inside)), 1)
        groups.append(Group(name="told", where=where, ages=ages, count=len(inside), **told))  # type: ignore[arg-type]
    return groups


@pytest.mark.parametrize("seed", range(12))
def test_every_solution_is_found(seed: int) -> None:
    """All multisets of three or four people, one by one, against the search."""
    generator = np.random.default_rng(seed)
    n = 3 if seed % 2 else 4
    people = [
        (int(generator.integers(0, OLDEST + 1)), KINDS[int(generator.integers(0, 4))]) for _ in range(n)
    ]
    groups = published(people, generator)
    everybody = sorted(itertools.product(range(OLDEST + 1), KINDS))
    right = {
        some
        for some in itertools.combinations_with_replacement(everybody, n)
        if all(fits(g, some) for g in groups)
    }
    solved = Block(attributes=ATTRIBUTES, groups=groups, oldest=OLDEST).solve(most=10**6)
    assert solved.complete
    assert len(solved.found) == len(right)
    assert {tuple(sorted(s)) for s in solved.found} == right
    assert tuple(sorted(people)) in right
    sure = Block(attributes=ATTRIBUTES, groups=groups, oldest=OLDEST).reconstruct(most=10**6)
    always = Counter(next(iter(right)))
    for some in right:
        always &= Counter(some)
    assert Counter((p["age"], (p["sex"], p["status"])) for p in sure.learned) == always  # type: ignore[index]


def test_the_search_stops_when_it_has_seen_more_than_was_asked_for() -> None:
    block = Block(attributes=ATTRIBUTES, groups=[Group(name="all", count=3, mean=2)], oldest=OLDEST)
    solved = block.solve(most=5)
    assert len(solved.found) == 6
    assert not solved.complete
    assert not solved.unique
    assert not block.reconstruct(most=5).exposed
    assert block.solve(most=10**6).complete


def test_tables_that_contradict_each_other_have_no_solution() -> None:
    groups = [Group(name="all", count=2, mean=3), Group(name="young", ages=(None, 2), count=2)]
    solved = Block(attributes=ATTRIBUTES, groups=groups, oldest=OLDEST).solve()
    assert solved.complete
    assert solved.found == ()
    assert not solved.unique
    assert not Block(attributes=ATTRIBUTES, groups=groups, oldest=OLDEST).reconstruct().exposed


def test_bad_tables_are_refused() -> None:
    with pytest.raises(EmptyComposition):
        Block(attributes=ATTRIBUTES, groups=[])
    with pytest.raises(InvalidParameter):
        Block(attributes=ATTRIBUTES, groups=[Group(name="women", where={"sex": "f"}, count=2)])
    with pytest.raises(InvalidParameter):
        Group(name="both", count=2, fewer_than=3)
    with pytest.raises(InvalidParameter):
        Group(name="hidden", fewer_than=3, mean=4)
    with pytest.raises(UnknownName):
        Block(attributes=ATTRIBUTES, groups=[Group(name="all", where={"race": "x"}, count=2)])
