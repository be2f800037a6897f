"""Theorem `crowd-blending-exact`: small mechanisms, judged by the definition on every table of a few rows."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest

from tacit.coupled.noiseless.histograms import crowd_blending, truncated_histogram
from tacit.errors import InvalidInput, NoLaw

Table = tuple[int, ...]
VALUES, LARGEST = range(4), 5
TABLES = [t for n in range(LARGEST + 1) for t in itertools.combinations_with_replacement(VALUES, n)]


def added(table: Table, value: int) -> Table:
    return tuple(sorted((*table, value)))


def removed(table: Table, value: int) -> Table:
    kept = list(table)
    kept.remove(value)
    return tuple(kept)


def alike(f: dict[Table, int], one: int, other: int) -> bool:
    """Exchanged on every table that is small enough."""
    return all(f[added(t, one)] == f[added(t, other)] for t in TABLES if len(t) < LARGEST)


def blends(f: dict[Table, int], crowd: int) -> bool:
    """The definition, for every table and every row in it."""
    same = {(a, b): alike(f, a, b) for a in VALUES for b in VALUES}
    for table in TABLES:
        for value in set(table):
            in_crowd = sum(same[value, other] for other in table) >= crowd
            if not in_crowd and f[table] != f[removed(table, value)]:
                return False
    return True


def truncated(table: Table, classes: dict[int, int], crowd: int) -> tuple[tuple[int, int], ...]:
    counts = Counter(classes[v] for v in table)
    return tuple(sorted((c, n) for c, n in counts.items() if n >= crowd))


def own_classes(f: dict[Table, int]) -> dict[int, int]:
    return {v: min(w for w in VALUES if alike(f, v, w)) for v in VALUES}


@pytest.mark.parametrize("seed", range(60))
def test_what_blends_is_a_function_of_a_truncated_histogram(seed: int) -> None:
    """Random functions of truncated histograms blend; changed at one table they blend no more, or still are one."""
    dice = random.Random(seed)
    crowd = dice.choice([2, 3])
    classes = {v: dice.randint(0, 2) for v in VALUES}
    names: dict[Any, int] = {}
    f = {t: names.setdefault(truncated(t, classes, crowd), dice.randint(0, 3)) for t in TABLES}
    assert blends(f, crowd)
    broken = dict(f)
    table = dice.choice(TABLES)
    broken[table] = 9
    for one in (f, broken):
        if blends(one, crowd):
            answers: dict[Any, set[int]] = {}
            mine = own_classes(one)
            for t in TABLES:
                answers.setdefault(truncated(t, mine, crowd), set()).add(one[t])
            assert all(len(a) == 1 for a in answers.values())


def test_two_crowds_are_no_crowd() -> None:
    """Rows (a, b), (a, b'), (a', b): each margin shows a crowd of two, and both single one row out."""
    rows = [("a", "b"), ("a", "c"), ("d", "b")]
    first, second = Counter(r[0] for r in rows), Counter(r[1] for r in rows)
    in_both = [r for r in rows if first[r[0]] >= 2 and second[r[1]] >= 2]
    assert in_both == [("a", "b")]


def test_the_numbers_are_those_of_the_histogram() -> None:
    for sampling, rate in (("poisson", None), ("binomial", "0.1")):
        plain = truncated_histogram(sampling=sampling, rate=rate, threshold=40, delta=1e-6)
        found = crowd_blending(crowd=40, sampling=sampling, rate=rate, delta=1e-6)
        assert (found.epsilon, found.delta) == (plain.epsilon, plain.delta)
        assert found.theorem == "crowd-blending-exact"
        assert "(40, 0)-crowd-blending private on every table" in found.sentence


def test_what_is_refused() -> None:
    with pytest.raises(NoLaw, match="form no classes"):
        crowd_blending(crowd=30, sampling="poisson", delta=1e-6, blend_epsilon=0.5)
    for bad in (
        {"crowd": 1, "sampling": "poisson"},
        {"crowd": 30, "sampling": "fixed"},
        {"crowd": 30, "sampling": "poisson", "blend_epsilon": -1.0},
    ):
        with pytest.raises(InvalidInput):
            crowd_blending(delta=1e-6, **bad)  # type: ignore[arg-type]
