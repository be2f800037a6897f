"""Truncated histograms through the curator: what is published, hidden, promised and refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.errors import InvalidInput, InvalidParameter, NoLaw
from tacit.guarantees import Always, Approximate, Condition, Guarantee, Priors

UNIT = tacit.rows(neighbours="add-or-remove")
SCHEMA = {"region": tacit.category(["n", "s", "e", "w"]), "x": tacit.number(0, 1, missing=0)}
PRICE: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
GIVEN = {"sampling": "binomial", "rate": 0.1}
COUNTS = {"n": 300, "s": 30, "e": 29, "w": 1}


def curator(condition: Condition | None = None, unit: Any = UNIT) -> tacit.Curator:
    rows = [r for r, count in COUNTS.items() for _ in range(count)]
    table = pa.table({"region": rows, "x": [0.5] * len(rows)})
    budget = Guarantee(bound=Approximate(epsilon=1.0, delta=1e-6), unit=unit, condition=condition or Always())
    return tacit.Curator(table, protect=unit, schema=SCHEMA, budget=budget)


def test_small_counts_are_hidden_and_the_others_exact() -> None:
    asked = tacit.count(by="region")
    with curator() as one:
        condition = one.preview(asked, given=GIVEN, **PRICE).charge.condition
    with curator(condition) as one:
        made = one.release(asked, given=GIVEN, **PRICE)
        with pytest.raises((NoLaw, InvalidInput, tacit.errors.Refused)):
            one.release(tacit.count(), **PRICE)
    # The threshold of (1, 1e-6) at rate .1 is 30: 29 is hidden.
    assert list(made.table["value"]) == [300, 30, 0, 0]
    assert list(made.table["high"]) == [300, 30, 29, 29]
    assert isinstance(made.guarantee.condition, Priors)
    bound = made.guarantee.bound
    assert isinstance(bound, Approximate)
    assert bound.epsilon == 1
    assert 1e-6 <= bound.delta <= 1.0000001e-6
    said = made.certificate
    assert said["mechanism"]["exact"]["threshold"] == 30
    assert said["mechanism"]["exact"]["sampling"] == "binomial"
    assert said["mechanism"]["exact"]["sentence"].startswith(
        "This is private provided that the rows are a random sample"
    )
    assert "truncated-histogram" in said["theorems"]
    assert "EXACT, and not differential privacy" in str(made)


def test_known_rows_raise_the_threshold() -> None:
    asked = tacit.count(by="region")
    given = {**GIVEN, "known_rows": 5}
    with curator() as one:
        condition = one.preview(asked, given=given, **PRICE).charge.condition
    with curator(condition) as one:
        assert list(one.release(asked, given=given, **PRICE).table["value"]) == [300, 0, 0, 0]


@pytest.mark.parametrize(
    ("given", "asked", "price", "error"),
    [
        ({"sampling": "cluster"}, tacit.count(by="region"), PRICE, InvalidInput),
        ({"sampling": "binomial"}, tacit.count(by="region"), PRICE, InvalidInput),
        ({"sampling": "binomial", "rate": 1}, tacit.count(by="region"), PRICE, InvalidParameter),
        ({"sampling": "poisson", "rows": "uniform(0, 1)"}, tacit.count(by="region"), PRICE, InvalidInput),
        ({"sampling": "poisson"}, tacit.sum("x"), PRICE, NoLaw),
        ({"sampling": "poisson"}, tacit.count(by="region"), {"epsilon": 1}, InvalidParameter),
    ],
)
def test_refusals(given: Any, asked: Any, price: Any, error: type[Exception]) -> None:
    with curator() as one, pytest.raises(error):
        one.preview(asked, given=given, **price)


def test_a_public_number_of_rows_is_refused() -> None:
    with (
        curator(unit=tacit.rows(neighbours="replace-one")) as one,
        pytest.raises(NoLaw, match="add-or-remove"),
    ):
        one.preview(tacit.count(by="region"), given={"sampling": "poisson"}, **PRICE)
