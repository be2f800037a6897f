"""Refusals of risks and optimal mechanisms, each reached by an input of its own; what lies just inside is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import errors, risk
from tacit.noise import SeededSource
from tacit.risk import count as body
from tacit.risk import finite, prices
from tacit.risk import finite as program
from tacit.risk import remap as solve
from tacit.risk.certificate import SMALLEST_EPSILON, as_loss, epsilon_level

LOSS = [[0.0, 1.0], [1.0, 0.0]]


def pair() -> Any:
    return finite.optimal_finite(loss=LOSS, neighbours=[(0, 1)], epsilon=1)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a body of three outputs": (
        lambda: body.risk_body(epsilon=1, loss=[[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]]), "2 by 2",
    ),
    "an equalizer of too long a range": (lambda: body.equalizer(n=61, epsilon=1), "at most 60"),
    "a state above the last": (lambda: pair().release(2), "lie in 0..1"),
    "a state below 0": (lambda: pair().release(-1), "lie in 0..1"),
    "an epsilon below floats": (lambda: epsilon_level(SMALLEST_EPSILON / 2), "be at least"),
    "an epsilon above all use": (lambda: epsilon_level(601), "be at most 600"),
    "prices of no known problem": (lambda: prices.expected_errors("median", n=9, epsilon=1), "problem"),
    "a share above 1": (lambda: prices.sampling_error(n=9, share=1.5), r"\[0, 1\]"),
    "a share below 0": (lambda: prices.sampling_error(n=9, share=-0.5), r"\[0, 1\]"),
    "a matrix of too long a range": (
        lambda: solve.solve_compact(2001, 1.0, as_loss(np.zeros((2002, 2002))), "bayes", None), "at most 2000",
    ),
    "a prior of too long a range": (
        lambda: solve.solve_compact(20_001, 1.0, as_loss("absolute"), "bayes", None), "at most 20000",
    ),
    "zero-one loss of too long a range": (
        lambda: solve.solve_compact(20_001, 1.0, as_loss("zero-one"), "minimax", None), "at most 20000",
    ),
    "a prior for the worst case": (
        lambda: solve.solve_compact(3, 1.0, as_loss("absolute"), "minimax", [0.25] * 4), "left out for minimax",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_a_full_program_has_so_many_entries_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four entries and one pair of neighbours: 4 against 300 times the limit."""
    monkeypatch.setattr(finite, "MOST_ENTRIES", 4 / 300)
    assert pair().states == 2
    monkeypatch.setattr(finite, "MOST_ENTRIES", 3.9 / 300)
    with pytest.raises(errors.InvalidParameter, match="smaller for the full program"):
        pair()


def test_a_solver_without_an_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    class Nothing:
        x = None
        message = "no time"

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: Nothing())
    monkeypatch.setattr(program, "linprog", lambda *a, **k: Nothing(), raising=False)
    with pytest.raises(errors.NotCertified, match="no solution"):
        pair()


def test_what_lies_just_inside_is_answered() -> None:
    assert epsilon_level(600) == 600
    assert prices.sampling_error(n=9, share=1.0) == 0
    assert prices.sampling_error(n=9, share=0.0) == 0
    assert pair().release(1, source=SeededSource(seed=1)).publishable is False
    assert body.risk_body(epsilon=1, loss=LOSS).shape == (4, 2)


def test_unknown_names_of_the_room_are_told() -> None:
    with pytest.raises(AttributeError, match="no attribute"):
        risk.nothing_of_this_name  # noqa: B018
