"""Advice on a plan: the change that is named gives the error that is named, when it is made."""

from __future__ import annotations

from typing import Any

import pytest

import tacit
from tacit.curator.advice import advise
from tacit.curator.charging import price
from tacit.curator.planning import make_plan
from tacit.sources.schema import Schema

COLUMNS: dict[str, Any] = {
    "x": tacit.number(0, 1000),
    "sex": tacit.category(["f", "m"]),
    "region": tacit.category(["a", "b", "c"]),
    "smoker": tacit.flag(),
}
PEOPLE = tacit.people("person", at_most=6)
REPLACED = tacit.rows(neighbours="replace-one")


def planned(asks: list[Any], unit: Any = None, columns: Any = None, **paid: float) -> Any:
    return make_plan(
        asks, schema=Schema(columns or COLUMNS), unit=unit or tacit.rows(), budget=tacit.Pure(epsilon=9.0),
        total=price(**paid) if paid else None,
    )  # fmt: skip


def error(*given: Any, **words: Any) -> float:
    found = planned(*given, **words).releases[0].expected.within
    assert found is not None
    return float(found)


def test_narrower_bounds() -> None:
    asks = [tacit.query(tacit.sum("x"))]
    (said,) = advise(planned(asks, epsilon=1))
    assert said.change is not None
    assert said.change.what == "high = 500 instead of 1000 for x"
    assert said.change.loses
    assert said.change.after == error(asks, columns={**COLUMNS, "x": tacit.number(0, 500)}, epsilon=1)
    assert said.change.before == error(asks, epsilon=1)
    assert said.change.factor == pytest.approx(0.5, rel=0.01)


def test_fewer_rows_of_a_person() -> None:
    asks = [tacit.query(tacit.count("sex"), rows=10**6)]
    (said,) = advise(planned(asks, PEOPLE, epsilon=1))
    assert said.change is not None
    assert "at_most = 3 instead of 6" in said.change.what
    assert said.change.after == error(asks, tacit.people("person", at_most=3), epsilon=1)


def test_coarser_cells_are_compared_with_their_rows() -> None:
    asks = [tacit.query(tacit.count([tacit.bins("x", 8), "region"]), rows=20)]
    (said,) = advise(planned(asks, epsilon=0.1))
    assert said.change is not None
    assert said.change.what == "groups without region"
    assert said.change.factor == pytest.approx(1 / 3, rel=0.01)
    # Where a cell is good already, fewer cells are no advice.
    (said,) = advise(planned([tacit.query(tacit.count("sex"), rows=10**6)], epsilon=1))
    assert said.change is None
    assert "no change" in str(said)
    (said,) = advise(planned([tacit.query(tacit.count(tacit.bins("x", [0, 1, 5, 20, 100])))], epsilon=1))
    assert said.change is not None
    assert said.change.what == "bins of x twice as wide"
    assert said.change.factor == pytest.approx(0.5)


def test_no_missing_values() -> None:
    asks = [tacit.query(tacit.proportion("smoker"), rows=1000)]
    (said,) = advise(planned(asks, REPLACED, epsilon=0.1))
    assert said.change is not None
    assert said.change.what == "missing = false for smoker"
    assert said.change.after == error(
        asks, REPLACED, columns={**COLUMNS, "smoker": tacit.flag(missing=False)}, epsilon=0.1
    )


def test_quantiles_at_once() -> None:
    asks = [tacit.query(tacit.quantile("x", q), epsilon=0.5) for q in (0.25, 0.5, 0.75)]
    first, *_ = advise(planned(asks))
    assert first.change is not None
    assert first.change.what == "one release of quantiles at 0.25, 0.5, 0.75 for the price of 3"
    at_once = [tacit.query(tacit.quantiles("x", at=[0.25, 0.5, 0.75]), epsilon=1.5)]
    assert first.change.after == error(at_once)
    assert first.change.after < error(asks[:1])
    assert set(first.to_dict()) == {"release", "change", "error", "error_after", "factor", "loses"}


def test_an_unknown_error_asks_for_a_guess() -> None:
    (said,) = advise(planned([tacit.query(tacit.mean("x", "sex"))], epsilon=1))
    assert said.change is None
    assert "rows = ..." in str(said)
