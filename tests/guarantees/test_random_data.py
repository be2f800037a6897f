"""Random differential privacy as a condition: for whom, both neighbour relations, composition, what is left to read."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import tacit
from support.promises import REPLACE, ROWS, on_random_data, promise
from tacit.guarantees import Guarantee, Pure, RandomData, rows

UNDER = RandomData(gamma=0.01)


def test_units_of_several_rows_are_refused_with_the_reason() -> None:
    for unit in (
        tacit.people("id", at_most=1),
        tacit.people("id", at_most=3, neighbours="replace-one"),
        tacit.group_of(REPLACE, size=2),
        tacit.guarantees.Coupled(priv="p", alt="a"),
    ):
        with pytest.raises(tacit.NoLaw, match="two equal rows"):
            promise(tacit.Pure(epsilon=1), unit=unit, condition=UNDER)
    assert promise(tacit.Pure(epsilon=1), unit=tacit.group_of(REPLACE, size=1), condition=UNDER)
    with pytest.raises(tacit.NoLaw):
        on_random_data(tacit.Pure(epsilon=1), 0.01).group(2)


def test_equal_rows_of_a_person_break_what_independent_rows_keep() -> None:
    """The refusal's counterexample, on ten thousand values: values that two rows share are published."""

    def shared(rows: tuple[int, ...]) -> frozenset[int]:
        return frozenset(v for v in rows if rows.count(v) > 1)

    for a, b, c, other in itertools.permutations(range(6), 4):
        assert shared((a, b, c)) == shared((a, b, other)) == frozenset()  # independent rows, no two alike
        assert shared((a, a, b, b)) != shared((a, a, c, c))  # people with two rows


def test_both_neighbour_relations() -> None:
    added = promise(tacit.Pure(epsilon=1), unit=ROWS, condition=UNDER)
    replaced = added.for_unit(REPLACE)
    assert replaced.bound == tacit.Pure(epsilon=2)
    assert replaced.condition == RandomData(gamma=0.02)
    assert added.implies(promise(tacit.Pure(epsilon=2), unit=REPLACE, condition=RandomData(gamma=0.02)))
    assert not added.implies(promise(tacit.Pure(epsilon=2), unit=REPLACE, condition=RandomData(gamma=0.019)))
    with pytest.raises(tacit.errors.UnitMismatch):
        replaced.for_unit(ROWS)
    always = promise(tacit.Pure(epsilon=1), unit=ROWS)
    assert always.implies(added)
    assert not added.implies(always)


def test_replacing_is_removing_and_adding_on_random_data() -> None:
    """Counted over all samples of a law on three values: F tells the largest row, and adds a coin where it is low."""
    law = {0: 0.7, 1: 0.25, 2: 0.05}

    def told(rows: tuple[int, ...]) -> list[float]:
        top = max(rows)
        return [0.5, 0.5, 0.0] if top == 0 else [0.4, 0.6, 0.0] if top == 1 else [0.0, 0.0, 1.0]

    def fails(p: list[float], q: list[float], epsilon: float) -> bool:
        pairs = [*zip(p, q, strict=True), *zip(q, p, strict=True)]
        return any(a > math.exp(epsilon) * b + 1e-12 for a, b in pairs)

    epsilon, n = math.log(1.25), 3
    chance = {x: math.prod(law[v] for v in x) for x in itertools.product(law, repeat=n + 1)}
    removed = sum(p for x, p in chance.items() if fails(told(x[:n]), told(x[: n - 1]), epsilon))
    replaced = sum(p for x, p in chance.items() if fails(told(x[:n]), told((*x[: n - 1], x[n])), 2 * epsilon))
    assert 0 < removed < replaced <= 2 * removed


def test_what_is_said() -> None:
    text = on_random_data(tacit.Approximate(epsilon=1, delta=1e-6), 0.05).explain()
    for words in (
        "not differential privacy",
        "independent draws",
        "outlier",
        "only inhabitant of a cell",
        "nothing to a given person",
        "0.05",
    ):
        assert words in text
    assert "differential privacy" not in text.replace(
        "random differential privacy, not differential privacy", ""
    )


def test_a_guess_is_limited_on_average_only() -> None:
    whole = on_random_data(tacit.Pure(epsilon=1), 0.05)
    g = math.e / (1 + math.e)
    assert whole.average_guess() == pytest.approx(g + 0.05 * (1 - g))
    assert whole.average_guess() >= g + 0.05 * (1 - g)
    assert on_random_data(tacit.Pure(epsilon=1), 1.0).average_guess() == 1
    with pytest.raises(tacit.NoLaw):
        whole.best_guess()
    plain = promise(tacit.Pure(epsilon=1))
    assert plain.average_guess(0.3) == plain.best_guess(0.3)


def test_the_average_guess_is_reached_by_the_page_s_mechanism() -> None:
    """One row on 200 values, told where it is 1: a guess between the row and a fresh draw, counted over both."""
    laws = {x: [1.0, 0.0] if x == 1 else [0.05, 0.95] for x in range(1, 201)}
    right = 0.0
    for x, y in itertools.product(laws, repeat=2):
        right += sum(0.5 * max(a, b) for a, b in zip(laws[x], laws[y], strict=True)) / 200**2
    gamma = sum(laws[x] != laws[y] for x in laws for y in laws) / 200**2
    told = on_random_data(tacit.Pure(epsilon=0), gamma).average_guess()
    assert 0.5 < right <= told
    assert told == pytest.approx(0.5 + gamma / 2)


def bad_outcomes(laws: dict[int, dict[object, float]], x: int, y: int, epsilon: float) -> set[object]:
    """Outcomes that are more than e^epsilon times as likely under one of two rows as under the other."""
    p, q = laws[x], laws[y]
    factor = math.exp(epsilon)
    return {
        o
        for o in set(p) | set(q)
        if p.get(o, 0.0) > factor * q.get(o, 0.0) or q.get(o, 0.0) > factor * p.get(o, 0.0)
    }


def both_probabilities(laws: dict[int, dict[object, float]], epsilon: float) -> tuple[float, float]:
    """delta of the probabilistic definition (worst row, over the coins); gamma of the random one (uniform rows)."""
    delta = max(
        sum(laws[x].get(o, 0.0) for o in set().union(*(bad_outcomes(laws, x, y, epsilon) for y in laws)))
        for x in laws
    )
    failing = sum(bool(bad_outcomes(laws, x, y, epsilon)) for x in laws for y in laws)
    return delta, failing / len(laws) ** 2


def test_probabilistic_and_random_differ() -> None:
    """docs/theory/random-is-not-probabilistic.md, counted over all pairs of rows, with both definitions."""
    leaking: dict[int, dict[object, float]] = {x: {x: 1e-3, "nothing": 1 - 1e-3} for x in range(60)}
    delta, gamma = both_probabilities(leaking, 1.0)
    assert delta == pytest.approx(1e-3)
    assert gamma == pytest.approx(1 - 1 / 60)
    rare: dict[int, dict[object, float]] = {
        x: {"a": 1.0} if x == 1 else {"a": 0.05, "b": 0.95} for x in range(1, 201)
    }
    delta, gamma = both_probabilities(rare, 1.0)
    assert delta == 1.0
    assert gamma <= 0.01


@pytest.mark.parametrize(
    ("gamma", "said"),
    [
        (0.05, "0.05"), (0.050049, "0.0501"), (0.10049, "0.101"), (1 / 3, "0.334"), (0.99996, "1"), (0, "0"), (1, "1"),
        (math.nextafter(0.03, 1), "0.03"), (1e-5 / 3, "3.34e-06"), (1e-300 / 3, "3.34e-301"),
    ],
)  # fmt: skip
def test_gamma_is_never_told_smaller_than_it_is(gamma: float, said: str) -> None:
    told = str(RandomData(gamma=gamma)).split("probability ")[1].split(" ")[0]
    assert told == said
    assert Fraction(told) >= Fraction(gamma) * (1 - Fraction(1, 10**12))


def test_a_replaced_row_names_its_theorem() -> None:
    added = Guarantee(bound=Pure(epsilon=1), unit=rows(), condition=RandomData(gamma=0.1))
    one = rows(neighbours="replace-one")
    other = Guarantee(bound=Pure(epsilon=2), unit=one, condition=RandomData(gamma=0.2))
    assert added.implies(other).chain == ("replace-by-remove-and-add", "replace-on-random-data")
    assert not added.implies(
        Guarantee(bound=Pure(epsilon=2), unit=one, condition=RandomData(gamma=0.19))
    ).holds
