"""Every claimed sensitivity, held against all neighbours of all tiny tables: never above, and attained."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

import tacit.statistics as ask
from support.neighbours import moves as moves_of
from tacit.guarantees import group_of, people, rows
from tacit.sources import Schema, bins, category, flag, integer, number

GAPS = Schema(
    {
        "state": category(["a", "b"]),
        "age": integer(-1, 2),
        "cost": number(0, 1, spacing=0.25),
        "sick": flag(),
    }
)
FULL = Schema(
    {
        "state": category(["a", "b"], missing="a"),
        "age": integer(-1, 2, missing=0),
        "cost": number(0, 1, spacing=0.25, missing=0.5),
        "sick": flag(missing=False),
    }
)
THREE = Schema({**GAPS, "state": category(["a", "b", "c"])})
ONE = Schema({**FULL, "state": category(["a"], missing="a")})

ROWS = [
    {"state": s, "age": a, "cost": c, "sick": f}
    for s, (a, c, f) in itertools.product(
        ["a", "b", None],
        [
            (-9, 0.0, True),
            (0, 0.3, False),
            (2, 1.0, True),
            (7, -4.0, False),
            (None, 0.6, True),
            (1, None, None),
        ],
    )
]
ROWS.append({"state": "c", "age": 2, "cost": 1.0, "sick": True})

STATISTICS = {
    "count": ask.count(),
    "count where": ask.count(where="age >= 1"),
    "count by": ask.count(by="state"),
    "count by two": ask.count(by=["state", "sick"]),
    "histogram": ask.histogram("age", [-1, 1, 2]),
    "histogram of equal bins": ask.histogram("cost", 2),
    "contingency": ask.contingency(["state", bins("age", 2)]),
    "sum": ask.sum("age"),
    "sum by": ask.sum("age", by="state"),
    "sum of real": ask.sum("cost", by="state", where="sick"),
    "mean": ask.mean("age"),
    "mean by": ask.mean("cost", by="state"),
    "mean where": ask.mean("cost", where="age > 0"),
    "variance": ask.variance("age"),
    "variance by": ask.variance("cost", by="state"),
    "deviation": ask.standard_deviation("age", by="state"),
    "proportion": ask.proportion("sick"),
    "proportion by": ask.proportion("age > 0 or sick", by="state"),
    "ratio": ask.ratio("cost", "age"),
    "ratio by": ask.ratio("cost", "age", by="state"),
    "quantiles": ask.quantiles("age", at=[0.5]),
    "quantiles by": ask.quantiles("cost", at=[0.25, 0.75], by="state", resolution=3),
    "margins": ask.margins(["state", "sick"]),
    "sparse": ask.sparse_histogram(["state", "sick", bins("age", 2)]),
    "sparse where": ask.sparse_histogram(["state", "age"], where="not sick"),
    "sparse with impossible cells": ask.sparse_histogram(
        ["state", "sick"], impossible=[{"state": "a", "sick": True}]
    ),
    "margins of pairs": ask.margins(["state", "sick", bins("age", 2)], order=2),
}


OTHERS = [[], [{**ROWS[0], "id": "other"}], [{**ROWS[2], "id": "other"}, {**ROWS[4], "id": "third"}]]


def moves(question, unit, domain=ROWS):
    return moves_of(question, unit, domain, OTHERS)


UNITS = {
    "rows": rows(),
    "rows replaced": rows(neighbours="replace-one"),
    "people": people("id", at_most=2),
    "people replaced": people("id", at_most=2, neighbours="replace-one"),
    "people in one group": people("id", at_most=2, groups=1),
    "people in one group replaced": people("id", at_most=2, groups=1, neighbours="replace-one"),
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
@pytest.mark.parametrize("schema", [GAPS, FULL], ids=["gaps", "full"])
@pytest.mark.parametrize("name", STATISTICS)
def test_moves_are_never_above_the_claim_and_attain_it(name, schema, unit):
    question = STATISTICS[name].on(schema, unit)
    seen = moves(question, unit)
    claimed = question.sensitivity
    assert seen[""] == [claimed.l1, claimed.l2_squared, claimed.linf]
    for part in question.parts:
        single = question.sensitivities[part.name]
        assert seen[part.name] == [single.l1, single.l2_squared, single.linf], part.name
        assert part.exact == single.none
    assert STATISTICS[name].sensitivity(unit, schema) == claimed


BELOW = {
    "lower end is the larger": {"age": (-7, 2), "cost": (-2, 1)},
    "all below zero": {"age": (-7, -1), "cost": (-2, -1)},
    "all above zero": {"age": (1, 6), "cost": (0.25, 1)},
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
@pytest.mark.parametrize("filled", [False, True], ids=["gaps", "full"])
@pytest.mark.parametrize("ends", BELOW.values(), ids=BELOW.keys())
def test_bounds_on_any_side_of_zero(ends, filled, unit):
    """The claim is that of the end that is farther from zero, whichever that is."""
    (a, b), (c, d) = ends["age"], ends["cost"]
    schema = Schema(
        {
            **(FULL if filled else GAPS),
            "age": integer(a, b, missing=a if filled else None),
            "cost": number(c, d, spacing=0.25, missing=d if filled else None),
        }
    )
    corners = [(x, y) for x in (a, b) for y in (c, d)]
    domain = [{"state": s, "age": x, "cost": y, "sick": True} for s in ("a", "b") for x, y in corners]
    domain += [{"state": None, "age": None, "cost": None, "sick": None}]
    for name in ("sum", "sum by", "mean", "mean by", "variance", "variance by", "ratio", "ratio by"):
        question = STATISTICS[name].on(schema, unit)
        seen = moves(question, unit, domain)
        claimed = question.sensitivity
        assert seen[""] == [claimed.l1, claimed.l2_squared, claimed.linf], name
        for part in question.parts:
            single = question.sensitivities[part.name]
            bound = [single.l1, single.l2_squared, single.linf]
            # Products are largest in the middle, where this domain has no row.
            assert seen[part.name] == bound or (part.name == "products" and seen[part.name] <= bound), name


def test_a_question_counts_the_numbers_that_get_noise():
    def coordinates(statistic, schema=GAPS, unit=UNITS["rows"]):
        return statistic.on(schema, unit).coordinates

    assert coordinates(ask.count()) == 1
    assert coordinates(ask.count(by=["state", "sick"])) == 4
    assert coordinates(ask.mean("age", by="state")) == 4
    assert coordinates(ask.margins(["state", "sick", bins("age", 2)], order=2)) == 12
    assert coordinates(ask.margins(["state", "sick"])) == 4
    assert coordinates(ask.hierarchy(["state", "sick"])) == 1 + 2 + 4
    assert coordinates(ask.sparse_histogram(["state", "age"])) == 8
    assert coordinates(ask.count(), FULL, UNITS["rows replaced"]) == 0
    assert coordinates(ask.count(by="town"), Schema({"town": category()})) is None


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize(("at_most", "groups"), [(1, None), (2, None), (2, 1), (3, 2)])
@pytest.mark.parametrize("schema", [ONE, GAPS, THREE], ids=["one key", "two keys", "three keys"])
def test_people_are_counted_once_in_each_of_few_groups(schema, at_most, groups, neighbours):
    unit = people("id", at_most=at_most, groups=groups, neighbours=neighbours)
    statistics = [ask.count(of="people", by="state"), ask.count(of="people")]
    for statistic in (*statistics, ask.sparse_histogram("state", of="people")):
        question = statistic.on(schema, unit)
        seen = moves(question, unit, [r for r in ROWS if r["age"] == 2])
        m = question.sensitivity
        assert seen["count"] == [m.l1, m.l2_squared, m.linf]


def test_one_cell_that_every_row_is_in_is_public_when_rows_are_replaced():
    replaced = rows(neighbours="replace-one")
    assert ask.count().on(FULL, replaced).sensitivity.none
    assert ask.count(by="state").on(ONE, replaced).sensitivity.none
    assert not ask.count(by="state").on(FULL, replaced).sensitivity.none
    assert not ask.count().on(FULL, rows()).sensitivity.none
    mean = ask.mean("age").on(FULL, replaced)
    assert [p.name for p in mean.parts] == ["above", "rows"]
    assert mean.sensitivity.l1 == 3
    assert [p.name for p in ask.mean("age").on(GAPS, replaced).parts] == ["above", "below"]


def test_groups_of_units_multiply():
    """Two units at once may do the same: every norm doubles, for every statistic and every way it moves."""
    person = people("id", at_most=2)
    asked = [ask.count(of="people", by="state"), *STATISTICS.values(), ask.hierarchy(["state", "sick"])]
    for base in (rows(), person, rows(neighbours="replace-one")):
        for statistic in asked if base == person else asked[1:]:
            one = statistic.on(GAPS, base).sensitivity
            both = statistic.on(GAPS, group_of(base, size=2)).sensitivity
            doubled = (2 * one.l1, 4 * one.l2_squared, 2 * one.linf)
            assert (both.l1, both.l2_squared, both.linf) == doubled, statistic


def test_rank_scores_move_as_claimed():
    """Enumerated: how far |below(t) - q n| moves, over all thresholds and neighbours of tiny samples."""
    from tacit.statistics.quantiles import rank_sensitivity

    values = [0, 1, 2]
    for q in (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        worst = {"add-or-remove": Fraction(0), "replace-one": Fraction(0)}
        for sample in itertools.chain.from_iterable(itertools.product(values, repeat=k) for k in range(5)):
            for t in (0, 1, 2, 3):

                def score(s, t=t, q=q):
                    return abs(sum(v < t for v in s) - q * len(s))

                for new in values:
                    worst["add-or-remove"] = max(
                        worst["add-or-remove"], abs(score((*sample, new)) - score(sample))
                    )
                    for i in range(len(sample)):
                        swapped = (*sample[:i], new, *sample[i + 1 :])
                        worst["replace-one"] = max(worst["replace-one"], abs(score(swapped) - score(sample)))
        for neighbours, seen in worst.items():
            assert seen == rank_sensitivity(q, rows(neighbours=neighbours))
            assert 3 * seen == rank_sensitivity(q, people("id", at_most=3, neighbours=neighbours))


def test_rank_scores_of_groups_move_as_claimed():
    """Enumerated: three rows that come, go or change at once."""
    from tacit.statistics.quantiles import rank_sensitivity

    def score(s, t, q):
        return abs(sum(v < t for v in s) - q * len(s))

    for q in (Fraction(1, 2), Fraction(9, 10)):
        added, swapped = Fraction(0), Fraction(0)
        for rest in itertools.chain.from_iterable(itertools.product((0, 1), repeat=k) for k in range(5)):
            groups = list(itertools.product((0, 1), repeat=3))
            for t, old in itertools.product((0, 1, 2), groups):
                before = score((*rest, *old), t, q)
                added = max(added, abs(before - score(rest, t, q)))
                swapped = max(swapped, *(abs(before - score((*rest, *new), t, q)) for new in groups))
        assert rank_sensitivity(q, group_of(rows(), size=3)) == added
        assert rank_sensitivity(q, group_of(rows(neighbours="replace-one"), size=3)) == swapped
        both = group_of(people("id", at_most=3), size=2)
        assert rank_sensitivity(q, both) == 2 * added
