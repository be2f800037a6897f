"""Linkage on quasi-identifiers and on sparse histories, against plain loops, closed formulas and made-up towns."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from tacit.attacks import Scoreboard, expected_unique_share, link, link_histories, unique_share
from tacit.attacks.linking import ECCENTRICITY
from tacit.errors import BadData, EmptyComposition, InvalidParameter, UnknownColumn
from tacit.sources.synthetic.worlds import (
    PER_CODE,
    Histories,
    age_pyramid,
    enough,
    histories,
    known_entries,
    town,
    town_cells,
)

QUASI = ["birth", "sex", "code"]


def test_the_share_of_unique_people_is_the_expected_one() -> None:
    """105,000 people in 14 codes: within four standard errors of the sum over cells."""
    people = town()
    assert people.num_rows >= 100_000
    cells, times = town_cells()
    mean, spread = expected_unique_share(cells, PER_CODE, times=times)
    codes = people.num_rows // PER_CODE
    assert abs(unique_share(people, quasi=QUASI) - mean) < 4 * spread / math.sqrt(codes)
    # The sum as it is written, over all 73,000 cells.
    p = np.repeat(cells, times)
    assert mean == pytest.approx(float((p * (1 - p) ** (PER_CODE - 1)).sum()), rel=1e-12)
    assert age_pyramid().sum() == pytest.approx(1)


def test_expected_uniques_by_enumeration() -> None:
    p = [0.5, 0.3, 0.2]
    for n in (1, 2, 3, 5):
        mean = second = 0.0
        for draw in itertools.product(range(3), repeat=n):
            weight = math.prod(p[i] for i in draw)
            share = sum(1 for c in Counter(draw).values() if c == 1) / n
            mean += weight * share
            second += weight * share**2
        found = expected_unique_share(p, n)
        assert found == pytest.approx((mean, math.sqrt(max(0.0, second - mean**2))), abs=1e-9)
    assert expected_unique_share([0.25, 0.125], 4, times=[2, 4]) == pytest.approx(
        expected_unique_share([0.25] * 2 + [0.125] * 4, 4)
    )


def test_everybody_who_is_alone_is_named_with_their_diagnosis() -> None:
    people = town(codes=2)
    release = people.select([*QUASI, "diagnosis"])
    order = np.random.default_rng(1).permutation(people.num_rows)
    found = link(release, people.take(order), quasi=QUASI, sensitive="diagnosis")
    truth = people["diagnosis"].take(order).to_pylist()
    score = found.score(truth)
    assert score.precision == 1
    assert found.share == unique_share(release, quasi=QUASI)
    assert found.guessing == pytest.approx(max(Counter(truth).values()) / len(truth))


def test_linkage_by_a_plain_loop() -> None:
    generator = np.random.default_rng(4)
    for _ in range(20):
        rows, people = 12, 8
        release = {
            "a": [None if generator.random() < 0.1 else int(generator.integers(3)) for _ in range(rows)],
            "b": [str(generator.integers(2)) for _ in range(rows)],
            "s": generator.integers(5, size=rows).tolist(),
        }
        known = {
            "a": [None if generator.random() < 0.1 else int(generator.integers(3)) for _ in range(people)],
            "b": [str(generator.integers(2)) for _ in range(people)],
        }
        keys = list(zip(release["a"], release["b"], strict=True))
        mine = list(zip(known["a"], known["b"], strict=True))
        right = {
            i: release["s"][keys.index(key)]
            for i, key in enumerate(mine)
            if None not in key and keys.count(key) == 1 and mine.count(key) == 1
        }
        found = link(release, known, quasi=["a", "b"], sensitive="s")
        assert dict(zip(found.exposed, found.learned, strict=True)) == right


def test_bad_roles_are_refused() -> None:
    table = {"a": [1, 2], "b": [3, 4]}
    with pytest.raises(EmptyComposition):
        link(table, table, quasi=[])
    with pytest.raises(InvalidParameter):
        link(table, table, quasi=["a", "b"], sensitive="b")
    with pytest.raises(InvalidParameter):
        link(table, table, quasi=["a", "a"])
    with pytest.raises(UnknownColumn):
        link(table, table, quasi=["c"])
    with pytest.raises(BadData):
        link({"a": [1], "b": [1, 2]}, table, quasi=["a", "b"])
    with pytest.raises(InvalidParameter):
        expected_unique_share([0.5, 0.6], 3)
    assert link(table, table, quasi=["a"]).share == 1
    assert link({"a": [1, 1]}, {"a": [1]}, quasi=["a"]).share == 0


# --- histories -----------------------------------------------------------------------------------------
def naive_scores(table: Histories, known: list[tuple[int, int, int]]) -> list[float]:
    """The score by its definition, one history at a time."""
    popularity = Counter(table.item.tolist())
    entries = {
        (p, i): (v, d) for p, i, v, d in zip(table.person, table.item, table.value, table.day, strict=True)
    }
    found = []
    for person in range(table.people):
        score = 0.0
        for item, value, day in known:
            if (person, item) in entries:
                v, d = entries[person, item]
                near = math.exp(-abs(v - value) / 1.5) + math.exp(-abs(d - day) / 30)
                score += near / math.log(1 + popularity[item])
        found.append(score)
    return found


def test_scores_are_those_of_the_definition() -> None:
    table = histories(people=60, items=40, days=100, seed=3)
    board = Scoreboard(table.person, table.item, table.value, table.day)
    known = [(0, 3, 50), (1, 5, 20), (7, 1, 99), (39, 2, 0), (1000, 3, 3)]
    items, values, days = zip(*known, strict=True)
    right = naive_scores(table, known)
    assert board.scores(items, values, days) == pytest.approx(right)
    best = board.best(items, values, days)
    ordered = sorted(right)
    assert best.eccentricity == pytest.approx((ordered[-1] - ordered[-2]) / float(np.std(right)))


@pytest.mark.slow
def test_histories_are_found_and_strangers_are_not() -> None:
    """120 people and 120 strangers; the full figure has 2000 of each (`tacit reproduce attack-histories`)."""
    table = histories()
    assert table.people == 100_000
    assert np.median(np.bincount(table.person, minlength=table.people)) == 15
    strangers = histories(people=400, seed=99)
    who = np.random.default_rng(1).choice(enough(table), 120, replace=False)
    known = known_entries(table, who)
    others = known_entries(strangers, enough(strangers)[:120])
    board = Scoreboard(table.person, table.item, table.value, table.day)
    hits = [board.best(known.item[i], known.value[i], known.day[i]) for i in range(120)]
    false = [board.best(others.item[i], others.value[i], others.day[i]) for i in range(120)]
    named = [b.eccentricity >= ECCENTRICITY and b.person == w for b, w in zip(hits, who, strict=True)]
    assert np.mean(named) >= 0.95
    assert sum(b.eccentricity >= ECCENTRICITY for b in false) <= 1


def test_what_is_known_has_the_stated_errors() -> None:
    table = histories(people=300, seed=2)
    who = enough(table)[:50]
    known = known_entries(table, who)
    for row, person in enumerate(who.tolist()):
        lines = table.lines(person)
        mine = dict(
            zip(
                table.item[lines].tolist(),
                zip(table.value[lines], table.day[lines], strict=True),
                strict=True,
            )
        )
        right = [i for i in range(8) if int(known.item[row, i]) in mine]
        assert right == list(range(6))
        for i in right:
            value, day = mine[int(known.item[row, i])]
            assert known.value[row, i] == value
            assert abs(int(known.day[row, i]) - int(day)) <= 14


def test_histories_in_tables_with_names_and_dates() -> None:
    release = {
        "person": ["p1", "p1", "p1", "p2", "p2", "p3", "p4"],
        "film": ["rare", "odd", "common", "common", "other", "common", "common"],
        "seen": [
            "2020-01-01",
            "2020-02-01",
            "2020-03-01",
            "2020-03-05",
            "2020-01-01",
            "2021-01-01",
            "2021-05-05",
        ],
        "stars": ["5", "1", "3", "3", "4", "2", "1"],
    }
    known = {
        "person": ["Ann", "Ann", "Bob"],
        "film": ["rare", "odd", "unheard of"],
        "seen": ["2020-01-05", "2020-01-28", "2020-01-01"],
        "stars": ["5", "1", "1"],
    }
    found = link_histories(release, known, item="film", value="stars", date="seen", eccentricity=1.5)
    assert (list(found.exposed), list(found.learned)) == ([0], ["p1"])
    assert found.people == 2
    with pytest.raises(BadData):
        link_histories(release, {**known, "seen": ["x", "y", "z"]}, item="film", date="seen")
    with pytest.raises(UnknownColumn):
        link_histories(release, known, item="item")
