"""Previews by which a person can decide: prices in the budget's words, parts that add up, guesses that say so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.charging import divided_parts, together
from tacit.curator.guesses import Guess, guess_of
from tacit.errors import InvalidParameter, UnknownName

SCHEMA: dict[str, Any] = {
    "x": tacit.number(0, 1000),
    "g": tacit.category(["a", "b"]),
    "h": tacit.category(["c", "d", "e"]),
}


def curator(budget: Any, rows: int = 50, **words: Any) -> tacit.Curator:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {"x": rng.uniform(0, 99, rows), "g": rng.choice(["a", "b"], rows), "h": rng.choice(["c", "d"], rows)}
    )
    return tacit.Curator(data, protect=tacit.rows(), schema=SCHEMA, budget=budget, **words)


def test_prices_are_in_the_budgets_words_and_parts_add_up() -> None:
    asks = [tacit.query(tacit.count(by=b), weight=w) for b, w in (("g", 1), ("h", 3), (["g", "h"], 7))]
    for budget in (
        tacit.Approximate(epsilon=1.0, delta=1e-6), tacit.Pure(epsilon=1.0), tacit.Concentrated(rho=0.5)
    ):  # fmt: skip
        spent = {"rho": 0.2} if isinstance(budget, tacit.Concentrated) else {"epsilon": 0.5}
        spent |= {"delta": 1e-7} if isinstance(budget, tacit.Approximate) else {}
        with curator(budget) as held:
            plan = held.preview(asks, **spent)
            whole, parts = together(plan, plan.budget).parts, divided_parts(plan, plan.budget)
        assert whole is not None
        for name, total in whole.items():
            each = [p[name] for p in parts if p is not None]
            assert len(each) == 3
            assert math.isclose(sum(each), total, rel_tol=1e-12, abs_tol=1e-15)
            assert total == 0 or each[0] < each[1] < each[2]
        assert ("mu" in str(plan).split("\n")[1]) is False


def test_a_plan_that_does_not_fit_says_so_in_python() -> None:
    with curator(tacit.Pure(epsilon=1.0), analyst="bob", shares={"bob": tacit.Pure(epsilon=0.25)}) as held:
        dear = held.preview(tacit.count(), epsilon=0.5)
        assert "DOES NOT FIT" in str(dear)
        assert "bob" in str(dear)
        assert "DOES NOT FIT" in dear._repr_html_()
        fits = held.preview(tacit.count(by="g"), epsilon=0.2)
        assert "DOES NOT FIT" not in str(fits)
        held.release(fits)
        assert "DOES NOT FIT" in str(held.preview(tacit.count(by="h"), epsilon=0.2))
        # What is on record is free, whatever is left.
        assert "DOES NOT FIT" not in str(held.preview(tacit.count(by="g"), epsilon=0.2))


def test_rank_errors_are_called_ranks_or_told_in_values_for_a_guess() -> None:
    with curator(tacit.Pure(epsilon=1.0)) as held:
        plain = held.preview(tacit.query(tacit.median("x"), rows=400), epsilon=0.5)
        told = held.preview(tacit.query(tacit.median("x"), rows=400, guess={"spread": 20}), epsilon=0.5)
    assert " ranks" in str(plain)
    ranks, values = plain.releases[0].expected.within, told.releases[0].expected.within
    assert ranks is not None
    assert values is not None
    # Near the middle a rank of n normal values takes sqrt(2 pi) s / n; further out a little more.
    assert 1 <= values / (math.sqrt(2 * math.pi) * 20 * ranks / 400) < 1.01
    assert "a declared guess" in told.releases[0].expected.about
    assert told.digest == plain.digest, "a guess is no part of what is asked"


def test_the_error_of_a_skew_mean_is_that_at_the_guess() -> None:
    """Against draws of the release itself, for a mean that lies at a twentieth of its range."""
    with curator(tacit.Pure(epsilon=500.0), rows=400) as held:
        asks = [
            tacit.query(tacit.mean("x", "g"), rows=200, guess=g, epsilon=0.1) for g in (None, {"value": 50})
        ]
        middle, near = (held.preview(a).releases[0].expected for a in asks)
        errors = []
        for turn in range(200):
            table = held.release(tacit.mean("x", "g"), epsilon=0.1, key=str(turn)).table
            errors += [abs(v - 50) for v in table["value"]]
    assert "middle of their range" in middle.about
    assert "guess = { value" in middle.about
    assert "about 50: a declared guess" in near.about
    got = float(np.quantile(errors, 0.95))
    assert near.within is not None
    assert middle.within is not None
    assert 0.95 * got <= near.within <= 1.5 * got
    assert near.within != middle.within


def test_strange_guesses_are_refused() -> None:
    assert guess_of(None) is None
    assert guess_of({"value": 3}) == Guess(value=3.0)
    for wrong in (
        {"spread": 0},
        {"spread": -1.0},
        {"value": math.nan},
        {"value": "3"},
        {"value": True},
        [1, 2],
    ):
        with pytest.raises(InvalidParameter):
            guess_of(wrong)
    with pytest.raises(UnknownName, match="spread"):
        guess_of({"sprad": 1})
