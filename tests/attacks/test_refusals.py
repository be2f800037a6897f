"""Refusals of attacks, each reached by an input of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.attacks import linking as histories
from tacit.attacks import membership_inference as notions
from tacit.attacks import microdata
from tacit.attacks import reconstruction as answers
from tacit.attacks import reconstruction as bounded
from tacit.attacks import reconstruction as linear
from tacit.attacks.membership_inference import area_under_curve, membership

HALF = Fraction(1, 2)
FAIR = {"a": HALF, "b": HALF}
COPY = {"a": {"a": Fraction(1)}, "b": {"b": Fraction(1)}}
ALL = microdata.Group(name="all", count=3)


def block(**where: str) -> microdata.Block:
    return microdata.Block(
        attributes={"sex": ["f", "m"]}, groups=[ALL, microdata.Group(name="g", where=where, count=1)]
    )


def member(**more: Any) -> Any:
    given = {"frequencies": [0.5, 0.5], "reference": [0.4, 0.6], "people": [[1, 0], [0, 1]], "size": 2}
    return membership(**(given | more))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "answers without end": (lambda: answers.average([[1.0, math.inf]]), "finite"),
    "no answers": (lambda: answers.average([]), "empty"),
    "totals without end": (lambda: answers.difference([1.0], [math.nan]), "totals be finite"),
    "a range without width": (lambda: answers.difference([1.0], [1.0], low=1.0, high=1.0), "below high"),
    "totals of other people": (lambda: answers.difference([1.0, 2.0], [1.0]), "one total for each"),
    "products without end": (
        lambda: bounded.fit_in_cube(lambda x: x * math.nan, lambda r: r, np.array([1.0, 2.0]), 2), "not finite",
    ),
    "a history of nothing": (lambda: histories.Scoreboard([], []), "have entries"),
    "a person below 0": (lambda: histories.Scoreboard([-1], [0]), "numbered from 0"),
    "an item below 0": (lambda: histories.Scoreboard([0], [-1]), "numbered from 0"),
    "no false alarms": (lambda: member(false_alarms=0.0), "strictly between 0 and 1"),
    "only false alarms": (lambda: member(false_alarms=1.0), "strictly between 0 and 1"),
    "nobody in the study": (lambda: area_under_curve([], [1.0]), "at least one"),
    "nobody outside of it": (lambda: area_under_curve([1.0], []), "at least one"),
    "an attribute that is not listed": (
        lambda: block(age="f"), "attribute",
    ),
    "a value that is not listed": (
        lambda: block(sex="x"), "value of sex",
    ),
    "a world without a law": (lambda: notions.dalenius(FAIR, COPY | {"a": {"a": HALF}}), "law for each"),
    "a law below 0": (
        lambda: notions.dalenius(FAIR, COPY | {"a": {"a": Fraction(3, 2), "b": -HALF}}), "law for each",
    ),
    "a prior below 0": (lambda: notions.dalenius({"a": Fraction(3, 2), "b": -HALF}, COPY), "with sum 1"),
    "a prior of other worlds": (lambda: notions.dalenius({"a": HALF, "c": HALF}, COPY), "with sum 1"),
    "a row that is never mixed": (lambda: notions.random_row(people=9, domain=9, mixed=0.0), "strictly between"),
    "a row that is always mixed": (lambda: notions.random_row(people=9, domain=9, mixed=1.0), "strictly between"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_a_program_without_an_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    class Stopped:
        status = 1

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: Stopped())
    with pytest.raises(errors.NotCertified, match="status 1"):
        linear._least_absolute(np.eye(2), np.ones(2))


def test_the_worst_breach_is_found_among_several_outcomes() -> None:
    """Unequal worlds: the outcome that moves a belief most, by hand."""
    prior = {"a": Fraction(1, 6), "b": Fraction(1, 3), "c": HALF}
    law = {
        "a": {"x": Fraction(1)},
        "b": {"x": Fraction(1, 4), "y": Fraction(3, 4)},
        "c": {"y": Fraction(1)},
    }
    # Pr[x] = 1/6 + 1/12 = 1/4: of x the world a has 2/3, which was 1/6.
    found = notions.dalenius(prior, law)
    assert found is not None
    assert found.outcome == "x"
    assert found.statement == ("a",)
    assert (found.before, found.after) == (Fraction(1, 6), Fraction(2, 3))
    assert notions.dalenius(FAIR, {"a": {"x": Fraction(1)}, "b": {"x": Fraction(1)}}) is None


def test_a_random_row_by_hand() -> None:
    q, u = 0.75 / 10, 0.25 / 4
    found = notions.random_row(people=10, domain=4, mixed=0.25, diameter=3.0)
    assert found.total_variation == pytest.approx(q)
    assert found.kullback_leibler == pytest.approx(q * math.log(1 + q / u))
    assert found.wasserstein == pytest.approx(3 * q)
    assert found.published == 0.75
    assert found.best_guess == pytest.approx((q + u) / (q + 2 * u))
