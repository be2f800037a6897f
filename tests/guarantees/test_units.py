"""Units: what they say of themselves, and the walks between them, against neighbours built from the definition."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

import tacit
from support.promises import promise
from tacit.errors import UnitMismatch
from tacit.guarantees import BoundedAdversary, Neighbours, People, Priors, RandomData, Unit, theorem
from tacit.guarantees.guarantee import from_record
from tacit.guarantees.laws.compose import parts_touched
from tacit.guarantees.units import steps

COLUMNS = ("id", "row", "p with their row", "p with their rows (at most 2 are used)", "p, in one group")
SIMPLE: list[Unit] = [
    *(tacit.rows(neighbours=n) for n in Neighbours),
    *(
        tacit.people(c, at_most=m, groups=g, neighbours=n)
        for c in COLUMNS
        for m in (1, 2, 3)
        for g in (None, 1, 2, 3)
        for n in Neighbours
    ),
]
UNITS = [*SIMPLE, *(tacit.group_of(u, size=k) for u in SIMPLE for k in (1, 2))]


def test_units_that_differ_say_so() -> None:
    """Digests and certificates know a unit by its text."""
    assert len(set(UNITS)) == len(UNITS)
    assert len({str(unit) for unit in UNITS}) == len(UNITS)


def test_units_survive_their_record() -> None:
    for unit in UNITS:
        whole = promise(tacit.Pure(epsilon=1), unit=unit)
        assert from_record(whole.to_dict()) == whole


# A person's data as the numbers of their rows in each of three groups; a table is a tuple of people.
def data_of(unit: People) -> set[tuple[int, ...]]:
    limit = 3 if unit.groups is None else unit.groups
    return {
        counts
        for counts in itertools.product(range(unit.at_most + 1), repeat=3)
        if sum(counts) <= unit.at_most and sum(c > 0 for c in counts) <= limit
    }


def pairs_of(unit: People) -> set[tuple[object, ...]]:
    """Neighbouring tables of at most one person: pairs of (data or absent)."""
    if unit.neighbours is Neighbours.ADD_OR_REMOVE:
        return {(counts, None) for counts in data_of(unit)}
    return {(a, b) for a in data_of(unit) for b in data_of(unit)}


def test_walks_between_numbers_of_groups() -> None:
    """A walk of one step exists where every pair of neighbours of the wanted unit is one of the known; else none."""
    for relation, m in itertools.product(Neighbours, (1, 2, 3)):
        made = [tacit.people("id", at_most=m, groups=g, neighbours=relation) for g in (None, 1, 2, 3, 4)]
        for known, wanted in itertools.product(made, made):
            if pairs_of(wanted) <= pairs_of(known):
                count, chain = steps(known, wanted)
                assert count == 1
                assert (known == wanted) == (not chain)
                assert all(theorem(name) for name in chain)
                assert promise(tacit.Pure(epsilon=1), unit=known).for_unit(wanted).bound == tacit.Pure(
                    epsilon=1
                )
            else:
                with pytest.raises(UnitMismatch):
                    steps(known, wanted)
                assert not promise(tacit.Pure(epsilon=1), unit=known).implies(
                    promise(tacit.Pure(epsilon=100), unit=wanted)
                )


def test_a_limit_on_groups_is_not_lifted() -> None:
    one, free = tacit.people("id", at_most=12, groups=1), tacit.people("id", at_most=12)
    with pytest.raises(UnitMismatch, match="in more of them"):
        promise(tacit.Pure(epsilon=1), unit=one).for_unit(free)
    assert "in one group" in str(one)
    assert "in at most 3 groups" in str(tacit.people("id", at_most=12, groups=3))
    assert promise(tacit.Pure(epsilon=1), unit=free).implies(
        promise(tacit.Pure(epsilon=1), unit=one)
    ).chain == ("fewer-neighbours",)
    both = promise(tacit.Pure(epsilon=1), unit=free).for_unit(replace(one, neighbours=Neighbours.REPLACE_ONE))
    assert both.bound == tacit.Pure(epsilon=2)
    with pytest.raises(UnitMismatch):
        tacit.compose(promise(tacit.Pure(epsilon=1), unit=one), promise(tacit.Pure(epsilon=1), unit=free))


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("m", "g"), [(1, None), (2, None), (3, None), (3, 1), (3, 2), (2, 5)])
def test_parts_that_one_person_changes(relation: Neighbours, m: int, g: int | None) -> None:
    """Counted over all neighbours: with the rows of a replaced person old and new parts change."""
    unit = tacit.people("id", at_most=m, groups=g, neighbours=relation)
    limit = m if g is None else min(m, g)
    wide = range(7)
    data = [frozenset(parts) for k in range(limit + 1) for parts in itertools.combinations(wide, k)]
    if relation is Neighbours.ADD_OR_REMOVE:
        most = max(len(parts) for parts in data)
    else:
        # Rows that differ in their values but lie in the same parts change those parts once.
        most = max(len(a | b) for a in data for b in data)
    assert parts_touched(unit, fixed=True) == most
    told = tacit.parallel(*[promise(tacit.Pure(epsilon=1), unit=unit)] * 7, fixed=True)
    assert told.bound == tacit.Pure(epsilon=float(most))
    assert any("groups" in d for d in told.declared) == (limit < m)


CONDITIONS = [
    RandomData(gamma=0.01),
    Priors(family="independent rows", unknown_rows=10),
    BoundedAdversary(assumption="the cipher holds", advantage=1e-9),
    BoundedAdversary(assumption="the cipher holds", advantage=1e-9, definition="ind"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_another_unit_under_a_condition(condition: tacit.guarantees.Condition) -> None:
    """Only what speaks of single pairs of neighbours holds for fewer of them; a walk keeps a bounded adversary only."""
    single = isinstance(condition, RandomData)
    unit: tacit.Unit = tacit.people("id", at_most=3, neighbours="replace-one")
    unit = tacit.rows(neighbours="replace-one") if single else unit
    known = promise(tacit.Pure(epsilon=1), unit=unit, condition=condition)
    assert known.for_unit(unit) == known
    assert known.group(1).bound == known.bound
    for other in (tacit.group_of(unit, size=2), tacit.group_of(unit, size=5)):
        if isinstance(condition, BoundedAdversary):
            assert known.for_unit(other).bound == tacit.Pure(epsilon=float(other.size))
            continue
        with pytest.raises(tacit.NoLaw, match="another unit"):
            known.for_unit(other)
        if not single:
            assert not known.implies(promise(tacit.Pure(epsilon=100), unit=other, condition=condition))
    if single:
        return
    fewer = tacit.people("id", at_most=3, groups=1, neighbours="replace-one")
    if isinstance(condition, BoundedAdversary):
        assert known.for_unit(fewer).condition == condition
    else:
        with pytest.raises(tacit.NoLaw, match="another unit"):
            known.for_unit(fewer)


def test_a_plan_for_people_in_one_group_is_another_plan() -> None:
    """A question of which the noise is the same: only the unit differs, and recorded answers are known by it."""

    def digest(groups: int | None) -> str:
        curator = tacit.Curator(
            "/nowhere/at/all.parquet",
            protect=tacit.people("id", at_most=4, groups=groups),
            schema={"state": tacit.category(["CA", "NY"])},
            budget=tacit.Pure(epsilon=1),
        )
        return curator.preview(tacit.count(), epsilon=0.1).digest

    assert len({digest(groups) for groups in (None, 1, 2)}) == 3
