"""Which requests one query answers: as the definition says, of the requests alone, and quickly for thousands."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tacit.sources import query
from tacit.sources.axes import CountAbove, Listed, OpenAxis
from tacit.sources.query import Aggregation, CountPeople, CountRows

AXES = [
    Listed(column=c, values=tuple(str(i) for i in range(n))) for c, n in (("a", 3), ("b", 4), ("c", 3_000))
]
COUNTS = [CountRows(), CountAbove(column="v"), CountPeople()]


def may_join(before: Sequence[Aggregation], last: Aggregation, *, thrifty: bool) -> bool:
    """From the definition, of all the requests together."""
    together = [*before, last]
    if all(r.axes == last.axes and r.sparse == last.sparse for r in together):
        return True
    finest = {a for r in together for a in r.axes}
    if not all(r.known for r in together):
        return False
    if any(set(r.axes) != finest and not all(a.additive for a in r.aggregates) for r in together):
        return False
    if any(set(r.axes) == finest for r in together):
        return True
    made_anyhow = finest == {a for r in before for a in r.axes}
    shared = {a for r in before for a in r.aggregates} & set(last.aggregates)
    saves = any(a != CountRows() for a in shared)
    return math.prod(a.size or 1 for a in finest) <= query.REFINEMENT and (
        made_anyhow or saves or not thrifty
    )


@pytest.mark.parametrize("thrifty", [False, True])
def test_a_request_joins_as_the_definition_says(thrifty: bool) -> None:
    draw, joined = random.Random(7), [0, 0]
    kinds: list[Any] = [(), *((a,) for a in AXES), *itertools.permutations(AXES, 2), (OpenAxis(column="d"),)]
    for _ in range(3_000):
        made = [
            Aggregation(
                axes=axes,
                aggregates=tuple(draw.sample(COUNTS, draw.randint(1, 2))),
                sparse=draw.random() < 0.1 and not any(isinstance(a, OpenAxis) for a in axes),
            )
            for axes in draw.choices(draw.sample(kinds, 3), k=draw.randint(2, 4))
        ]
        numbers: dict[Any, int] = {}
        one = query._Pass(None)
        for index, request in enumerate(made[:-1]):
            one.add(index, request, {numbers.setdefault(a, len(numbers)): a.size or 1 for a in request.axes})
        last = {numbers.setdefault(a, len(numbers)): a.size or 1 for a in made[-1].axes}
        expected = may_join(made[:-1], made[-1], thrifty=thrifty)
        joined[expected] += 1
        assert one.answers(made[-1], last, thrifty=thrifty) is expected
    assert min(joined) > 300


def test_passes_are_those_of_requests_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal cells find each other behind any number of other passes; other relations are never joined."""
    relations = {"a": object(), "b": object()}
    monkeypatch.setattr(query, "bounded_relation", lambda _table, _axes, *, key: relations[key])
    table: Any = SimpleNamespace(dialect=SimpleNamespace(batchwise=True))
    many = [Listed(column="a", values=(str(i), "x")) for i in range(query.LOOKED_AT + 40)]
    requests = [Aggregation(axes=(axis,), aggregates=(CountRows(),)) for axis in (*many, *many)]
    made = query._passes(table, requests, "a")  # type: ignore[arg-type]
    assert sorted(members for _, members in made) == [[i, i + len(many)] for i in range(len(many))]
    assert all(relation is relations["a"] for relation, _ in made)
    monkeypatch.setattr(
        query, "bounded_relation", lambda _table, axes, *, key: relations["a" if axes == (many[0],) else "b"]
    )
    grouped = [Aggregation(axes=(many[0],), aggregates=(CountRows(),), groups=g) for g in ((many[0],), ())]
    assert len(query._passes(table, grouped, None)) == 2
