"""Truncated histograms of a fixed number of rows through the curator: what is discarded, published and promised."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.coupled.noiseless.histograms import FixedSize, truncated_histogram
from tacit.curator.exact_answers import DiscardingAssignment
from tacit.errors import InvalidInput, InvalidParameter, NoLaw, TacitError
from tacit.guarantees import Always, Approximate, Condition, Guarantee, Priors
from tacit.noise.source import SeededSource

UNIT = tacit.rows(neighbours="replace-one")
SCHEMA = {"region": tacit.category(["n", "s", "e", "w"]), "x": tacit.number(0, 1, missing=0)}
COUNTS = {"n": 18_000, "s": 1916, "e": 44, "w": 40}
ROWS = sum(COUNTS.values())
GIVEN = {"sampling": "fixed", "n": ROWS}
PRICE: dict[str, Any] = {"epsilon": 2, "delta": 1e-6}
ASKED = tacit.count(by="region")


def curator(condition: Condition | None = None, unit: Any = UNIT) -> tacit.Curator:
    rows = [r for r, count in COUNTS.items() for _ in range(count)]
    table = pa.table({"region": rows, "x": [0.5] * len(rows)})
    budget = Guarantee(bound=Approximate(epsilon=2.0, delta=1e-6), unit=unit, condition=condition or Always())
    return tacit.Curator(table, protect=unit, schema=SCHEMA, budget=budget)


def law_of_discards(size: FixedSize) -> list[float]:
    """From the theorem's statement: Pr[d] proportional to e^{-epsilon_N |d - D/2|} / (n - d)."""
    weights = [
        math.exp(-size.size_epsilon * abs(d - size.discards / 2)) / (size.rows - d)
        for d in range(size.discards + 1)
    ]
    return [w / sum(weights) for w in weights]


def within_luck(seen: Counter[Any], law: dict[Any, float]) -> bool:
    """Pearson's statistic below what an error of 1e-9 allows, for a fixed seed."""
    draws = sum(seen.values())
    statistic = sum((seen[k] - draws * p) ** 2 / (draws * p) for k, p in law.items())
    freedom = len(law) - 1
    return set(seen) <= set(law) and statistic < freedom + 9 * math.sqrt(2 * freedom) + 40


def test_what_is_discarded_has_the_law_of_the_theorem() -> None:
    """What the release itself draws: the number of rows, and then every set of rows of this size alike."""
    size = FixedSize(rows=7, discards=4, size_epsilon=0.5)
    source = SeededSource(seed=11)
    seen = Counter(tuple(int(k) for k in size.chosen(source)) for _ in range(8_000))
    numbers = law_of_discards(size)
    law = {
        places: p / math.comb(7, d)
        for d, p in enumerate(numbers)
        for places in itertools.combinations(range(7), d)
    }
    assert within_luck(seen, law)
    # The test is able to fail: without the factor 1/(n - d), the size is not hidden from those who were kept.
    other = [math.exp(-0.5 * abs(d - 2)) for d in range(5)]
    wrong = {places: p * other[len(places)] / sum(other) / numbers[len(places)] for places, p in law.items()}
    assert not within_luck(seen, wrong)


def test_cells_lose_rows_as_if_rows_had_been_taken_away() -> None:
    size = FixedSize(rows=8, discards=2, size_epsilon=0.7)
    source, counts = SeededSource(seed=5), np.array([[3, 1], [0, 2]])
    seen = Counter(tuple(int(k) for k in np.ravel(size.kept(counts, source))) for _ in range(8_000))
    law: Counter[Any] = Counter()
    # Two of the eight rows are in no cell.
    rows = [0, 0, 0, 1, 3, 3, None, None]
    for d, p in enumerate(law_of_discards(size)):
        for left in itertools.combinations(rows, 8 - d):
            law[tuple(left.count(c) for c in range(4))] += p / math.comb(8, d)
    assert within_luck(seen, dict(law))
    with pytest.raises(InvalidParameter):
        size.kept(np.array([9]), source)


def test_what_is_published_and_promised() -> None:
    with curator() as one:
        plan = one.preview(ASKED, given=GIVEN, **PRICE)
    with curator(plan.charge.condition) as one:
        made = one.release(ASKED, given=GIVEN, **PRICE)
        again = one.release(ASKED, given=GIVEN, **PRICE)
        with pytest.raises(TacitError):
            one.release(tacit.count(), epsilon=0.1)
    assert again.replayed
    assert list(again.table["value"]) == list(made.table["value"])
    assignment = plan.releases[0].assignment
    assert isinstance(assignment, DiscardingAssignment)
    assert "choice of the rows that are discarded comes from AES-256" in made.certificate["computational"]
    exact = made.certificate["mechanism"]["exact"]
    discards, threshold = exact["discards"], exact["threshold"]
    assert 44 < threshold < 1800
    for region, value, low, high in zip(
        *(made.table[c] for c in ("region", "value", "low", "high")), strict=True
    ):
        assert low <= COUNTS[region] <= high
        assert value == 0 or COUNTS[region] - discards <= value <= COUNTS[region]
        assert (value == 0) == (COUNTS[region] < threshold)
    assert made.guarantee.condition == Priors(
        family="independent rows of one law, whatever it is", unknown_rows=ROWS
    )
    assert any(f"up to {discards} rows are discarded at random" in d for d in made.guarantee.declared)
    assert {"truncated-histogram-fixed-size", "simulator-to-pair"} <= set(made.certificate["theorems"])
    assert exact["sentence"].startswith("This is private provided that the 20000 rows are independent draws")
    assert "not differential privacy" in exact["sentence"]


def test_between_two_values_both_the_epsilon_and_the_delta_are_larger() -> None:
    """(2 e, (1 + e^e) d) is charged, for the (e, d) at which the theorem is used; never more than was paid."""
    with curator() as one:
        plan = one.preview(ASKED, given=GIVEN, **PRICE)
    assignment = plan.releases[0].assignment
    assert isinstance(assignment, DiscardingAssignment)
    used = assignment.answer
    assert assignment.bound == Approximate(epsilon=2.0, delta=plan.charge.bound.delta(2.0))
    assert 2 * Fraction(used.epsilon) <= Fraction(assignment.epsilon) <= 2
    assert (1 + math.exp(used.epsilon)) * used.delta <= 1e-6 * (1 + 1e-12)
    found = truncated_histogram(sampling="fixed", n=ROWS, epsilon=used.epsilon, delta=used.delta)
    assert (assignment.threshold, assignment.size.discards) == (found.threshold, found.details["discards"])
    assert (
        assignment.size.delta(assignment.threshold, found.details["cell_epsilon"], enough=used.delta).high
        <= used.delta
    )


def test_another_number_of_rows_publishes_nothing() -> None:
    given = {"sampling": "fixed", "n": ROWS - 1}
    with curator() as one:
        condition = one.preview(ASKED, given=given, **PRICE).charge.condition
    with curator(condition) as one, pytest.raises(InvalidParameter, match="number of rows of the table"):
        one.release(ASKED, given=given, **PRICE)


@pytest.mark.parametrize(
    ("given", "asked", "price", "error"),
    [
        ({"sampling": "fixed"}, ASKED, PRICE, InvalidInput),
        ({**GIVEN, "rate": 0.1}, ASKED, PRICE, InvalidInput),
        ({**GIVEN, "known_rows": 1}, ASKED, PRICE, InvalidInput),
        ({**GIVEN, "size_epsilon": 1.0}, ASKED, PRICE, InvalidParameter),
        ({**GIVEN, "size_epsilon": -1}, ASKED, PRICE, InvalidParameter),
        ({**GIVEN, "n": 500}, ASKED, PRICE, NoLaw),
        ({"sampling": "poisson", "n": 5000}, ASKED, PRICE, InvalidInput),
        (GIVEN, tacit.sum("x"), PRICE, NoLaw),
        (GIVEN, ASKED, {"epsilon": 1}, InvalidParameter),
    ],
)
def test_refusals(given: Any, asked: Any, price: Any, error: type[Exception]) -> None:
    with curator() as one, pytest.raises(error):
        one.preview(asked, given=given, **price)
    with (
        curator(unit=tacit.rows(neighbours="add-or-remove")) as one,
        pytest.raises(NoLaw, match="public number"),
    ):
        one.preview(ASKED, given=GIVEN, **PRICE)
