"""Audits of plans: our own house on made-up neighbours, and plans that were broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import tacit
from fuzz.quick import sped_up
from support.house import BUDGET, SCHEMA, STATISTICS, UNITS, house_plan
from support.spark import needs_spark
from tacit import statistics as st
from tacit.audit import plan
from tacit.curator import rehearsing
from tacit.curator.assignments import Assignment
from tacit.curator.planning import Plan, make_plan
from tacit.curator.request import query
from tacit.errors import InvalidInput
from tacit.guarantees import People, Pure, RandomData, people, rows
from tacit.sources.synthetic.neighbours import neighbouring_tables

PAIRS = 7
"""In CI; `make audit` takes 200."""


@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_our_house_on_made_up_neighbours(name: str) -> None:
    """Every statistic for every unit and relation: no pair moves more than is declared, no step parts without proof."""
    made = house_plan(UNITS[name])
    assert len(made.releases) >= len(STATISTICS) - 4
    with sped_up():
        found = plan(made, neighbours=PAIRS, outputs=0)
    assert not found.broken, str(found)
    assert all(r.pairs == PAIRS for r in found.releases)
    used = [r.moved for r in found.releases if r.moved == r.moved]
    assert len(used) >= len(found.releases) - 3
    assert max(used) == 1.0, "the pairs reach what is declared: a smaller declaration would be seen"
    assert sum(u >= 0.5 for u in used) > 0.7 * len(used)


@needs_spark
@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_our_house_on_spark(name: str) -> None:
    """The same on the other engine, with one pair."""
    made = house_plan(UNITS[name])
    assert len(made.releases) >= len(STATISTICS) - 4
    with sped_up():
        found = plan(made, neighbours=1, outputs=0, engines=("spark",))
    assert not found.broken, str(found)
    assert found.neighbours == {"spark": 1}


def counted(unit: Any = None, **price: float) -> Plan:
    asked = [query(st.count(by="ward"), **(price or {"epsilon": 1.0})), query(st.sum("age"), epsilon=0.5)]
    return make_plan(asked, schema=SCHEMA, unit=unit or rows(), budget=BUDGET)


def changed(made: Plan, **fields: Any) -> Plan:
    return replace(made, releases=(replace(made.releases[0], **fields), *made.releases[1:]))


def short(made: Plan, **more: Any) -> Any:
    coins = np.random.default_rng(5)
    with sped_up():
        return plan(
            made, **{"neighbours": 4, "outputs": 0, "coins": lambda n: coins.integers(0, 2, n), **more}
        )


@pytest.mark.parametrize("norm", ["l1", "l2_squared", "linf"])
def test_a_sensitivity_that_was_declared_too_small_is_accused(norm: str) -> None:
    made = counted(people("id", at_most=3))
    assert not short(made).broken
    one = made.releases[0]
    small = replace(one.question.sensitivity, **{norm: getattr(one.question.sensitivity, norm) - 1})
    found = short(changed(made, question=replace(one.question, sensitivity=small)))
    assert found.broken
    assert [r.broken for r in found.releases] == [True, False]
    assert any("declared sensitivity" in p.words for p in found.releases[0].partings)


class Looking(Assignment):
    """Draws one word more where the first true integer is large."""

    def run(self, question: Any, cells: Any, *, source: Any) -> Any:
        if source is not None and int(np.ravel(question.integers(cells)["count"])[0]) % 2:
            source.words(1)
        return super().run(question, cells, source=source)


def test_steps_that_follow_from_the_data_are_accused_where_no_theorem_covers_them() -> None:
    made = counted()
    one = made.releases[0].assignment
    looking = Looking(noise=one.noise, price=one.price, reason=one.reason)
    found = short(changed(made, assignment=looking), neighbours=8)
    told = found.releases[0].partings[0]
    assert told.accuses
    assert "words" in told.place + told.words
    unknown = make_plan(
        [query(st.count(by="town"), epsilon=1.0, delta=1e-6)], schema=SCHEMA, unit=rows(), budget=BUDGET
    )
    parted = short(unknown, neighbours=8)
    assert parted.releases[0].partings
    assert not parted.broken
    assert "partition-selection" in parted.releases[0].partings[0].words


def test_a_bound_that_is_too_small_is_rejected_by_bets_and_by_the_second_opinion() -> None:
    made = counted(epsilon=1.0)
    small = changed(made, guarantee=replace(made.releases[0].guarantee, bound=Pure(epsilon=0.05)))
    found = short(small, outputs=600)
    one = found.releases[0]
    assert one.bets is not None
    assert one.bets.rejected
    assert one.bets.lower > 0.05
    assert one.opinion is not None
    assert one.opinion.confirmed is False
    assert found.releases[1].bets is not None
    assert not found.releases[1].bets.rejected
    assert found.together is not None
    assert not found.together.broken
    assert "breaks" in str(found)
    assert "could not have seen" in str(found)


def test_the_levels_of_all_bets_add_up() -> None:
    found = short(counted(), outputs=60)
    levels = [r.bets.level for r in found.every if r.bets is not None]
    assert len(levels) == 3
    assert sum(levels) == pytest.approx(0.05)


def test_errors_of_a_reading_that_differ_are_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted()
    real = rehearsing.read_cells
    calls: list[int] = []

    def failing(*a: Any, **k: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise tacit.errors.ReadFailed(source="made up")
        return real(*a, **k)

    monkeypatch.setattr(rehearsing, "read_cells", failing)
    found = short(made, neighbours=1)
    assert found.broken
    assert any("ReadFailed" in p.words for p in found.releases[0].partings)


def test_conditional_releases_get_no_bets() -> None:
    made = counted()
    conditional = replace(made.releases[0].guarantee, condition=RandomData(gamma=0.1))
    found = short(changed(made, guarantee=conditional), outputs=20)
    assert found.releases[0].bets is None
    assert any("condition" in note for note in found.releases[0].notes)


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("number", range(12))
def test_made_up_neighbours_differ_in_one_unit(name: str, number: int) -> None:
    """From the definition: rows counted as a multiset, people by their ids."""
    unit = UNITS[name]
    made = neighbouring_tables(SCHEMA, unit, number=number)
    left, right = made.left.to_pylist(), made.right.to_pylist()
    base, size = getattr(unit, "of", unit), getattr(unit, "size", 1)
    replaced = base.neighbours == "replace-one"
    if isinstance(base, People):
        ids = {r["id"] for r in left + right}
        moved = [i for i in ids if _of(left, i) != _of(right, i)]
        assert 1 <= len(moved) <= (2 if replaced else 1)
        if not replaced:
            assert not _of(right, moved[0])
        return
    extra = [sum(1 for r in a if r not in b) for a, b in ((left, right), (right, left))]
    assert 0 <= extra[0] <= size
    assert extra[1] <= (size if replaced else 0)
    assert len(left) - len(right) == (0 if replaced else len(left) - len(right))
    assert 0 <= len(left) - len(right) <= size


def _of(table: list[dict[str, Any]], who: int) -> list[str]:
    return sorted(repr(r) for r in table if r["id"] == who)


def test_the_same_number_gives_the_same_tables() -> None:
    a, b = (neighbouring_tables(SCHEMA, rows(), number=3) for _ in range(2))
    assert a == b
    assert isinstance(a.left, pyarrow.Table)
    assert a.left != neighbouring_tables(SCHEMA, rows(), number=3, seed=1).left


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    for given in (7, tmp_path / "missing.toml"):
        with pytest.raises(InvalidInput):
            plan(given)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        plan(counted(), engines=("sqlite",))
    with pytest.raises(InvalidInput):
        plan(counted(), neighbours=0)
    with pytest.raises(InvalidInput):
        plan(counted(), engines=())
