"""Arg-max and modes from the definition: every table of a few rows is written out."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from tacit.coupled.noiseless.decisions import exact_argmax, exact_mode
from tacit.errors import InvalidInput, NoLaw

Row = tuple[int, ...]
Law = dict[Row, Fraction]

FAIR = {0: Fraction(1, 2), 1: Fraction(1, 2)}
RARE = {0: Fraction(2, 3), 1: Fraction(1, 3)}
OFTEN, SELDOM = {0: Fraction(1, 10), 1: Fraction(9, 10)}, {0: Fraction(9, 10), 1: Fraction(1, 10)}
WIDE = {0: Fraction(1, 4), 1: Fraction(1, 4), 3: Fraction(1, 2)}


def product_law(columns: Sequence[dict[int, Fraction]]) -> Law:
    return {
        row: math.prod((c[v] for c, v in zip(columns, row, strict=True)), start=Fraction(1))
        for row in itertools.product(*columns)
    }


def added(one: Law, other: Law) -> Law:
    out: Law = {}
    for (r, p), (t, q) in itertools.product(one.items(), other.items()):
        place = tuple(a + b for a, b in zip(r, t, strict=True))
        out[place] = out.get(place, Fraction(0)) + p * q
    return out


def answers(totals: Law, fixed: Row) -> dict[int, Fraction]:
    """The law of the answer, with these totals beside the drawn ones; ties are for the first."""
    out: dict[int, Fraction] = {}
    for drawn, chance in totals.items():
        both = [a + b for a, b in zip(drawn, fixed, strict=True)]
        answer = both.index(max(both))
        out[answer] = out.get(answer, Fraction(0)) + chance
    return out


def drawn_totals(law: Law, rows: int) -> Law:
    nothing: Law = {(0,) * len(next(iter(law))): Fraction(1)}
    return functools.reduce(added, [law] * rows, nothing)


def excess(p: dict[int, Fraction], q: dict[int, Fraction], factor: float) -> Fraction:
    zero = Fraction(0)
    return max(
        sum((max(zero, a.get(k, zero) - Fraction(factor) * b.get(k, zero)) for k in {*a, *b}), zero)
        for a, b in ((p, q), (q, p))
    )


def worst(law: Law, n: int, unknown: int, factor: float) -> Fraction:
    """Over the row, and over what the known rows are: the answer against the answer without the row."""
    found, totals = Fraction(0), drawn_totals(law, unknown - 1)
    for known in drawn_totals(law, n - unknown):
        without = answers(totals, known)
        for x in law:
            here = answers(totals, tuple(a + b for a, b in zip(known, x, strict=True)))
            found = max(found, excess(here, without, factor))
    return found


def text(column: dict[int, Fraction]) -> str:
    return "table(" + ", ".join(f"{k}: {w}" for k, w in column.items()) + ", grid=1)"


@pytest.mark.parametrize(
    ("columns", "n", "unknown"),
    [
        ([FAIR, FAIR], 7, 7),
        ([RARE, FAIR], 7, 7),
        ([FAIR, RARE], 6, 6),
        ([WIDE, RARE], 5, 5),
        ([FAIR, RARE], 7, 5),
    ],
)
def test_two_columns_have_the_exact_curve(columns: list[dict[int, Fraction]], n: int, unknown: int) -> None:
    law = product_law(columns)
    exact = float(worst(law, n, unknown, 1.0))
    found = exact_argmax([text(c) for c in columns], n=n, unknown_rows=unknown, delta=exact * 0.9)
    assert found.theorem == "largest-best"
    # Known rows may stand anywhere, here no further than n rows reach: then more is assumed than is possible.
    assert exact <= found.details["stability"] * (1 + 1e-12)
    without = found.details["epsilon_without_the_row"]
    assert found.epsilon <= without
    if unknown == n:
        assert found.details["stability"] == pytest.approx(exact, rel=1e-9)
        assert worst(law, n, unknown, math.exp(without * 0.999)) > Fraction(exact * 0.9)
    assert worst(law, n, unknown, math.exp(without)) <= Fraction(exact * 0.9) * (1 + Fraction(1, 10**12))
    assert exact_argmax([text(c) for c in columns], n=n, unknown_rows=unknown, delta=0.9).epsilon == 0


@pytest.mark.parametrize(
    ("columns", "n", "unknown"),
    [
        ([FAIR, FAIR, FAIR], 4, 4),
        ([RARE, FAIR, RARE], 4, 4),
        ([FAIR, RARE, RARE], 5, 5),
        ([SELDOM, OFTEN, SELDOM], 8, 8),
        ([RARE, FAIR, RARE], 13, 12),
    ],
)
def test_more_columns_are_bounded_by_unions(columns: list[dict[int, Fraction]], n: int, unknown: int) -> None:
    exact = float(worst(product_law(columns), n, unknown, 1.0))
    found = exact_argmax([text(c) for c in columns], n=n, unknown_rows=unknown, delta=0.999)
    assert exact <= found.details["stability"] <= 3 * exact
    if unknown == n:
        assert found.details["delta_at_zero_without_the_row"] == pytest.approx(exact, rel=1e-6)
        return
    assert (found.epsilon, found.theorem) == (0, "stable-functions")
    with pytest.raises(NoLaw, match="smallest delta that this bound reaches"):
        exact_argmax([text(c) for c in columns], n=n, unknown_rows=unknown, delta=exact * 0.99)


def test_between_two_values_of_a_row() -> None:
    law = product_law([FAIR, RARE])
    found = exact_argmax([text(FAIR), text(RARE)], n=6, delta=0.05)
    assert found.epsilon_pair is not None
    seen = {x: answers(drawn_totals(law, 5), x) for x in law}
    pairs = [(seen[x], seen[y]) for x in law for y in law]
    assert max(excess(p, q, math.exp(found.epsilon_pair)) for p, q in pairs) <= Fraction(1, 20) * (
        1 + Fraction(1, 10**9)
    )
    assert max(excess(p, q, math.exp(found.epsilon_pair * 0.999)) for p, q in pairs) > Fraction(1, 20)


def test_a_clear_leader_is_found_by_the_second_union() -> None:
    laws = ["bernoulli(0.2)", "bernoulli(0.6)", *["bernoulli(0.2)"] * 8]
    assert exact_argmax(laws, n=1000, delta=1e-12).details["stability"] < 1e-12


def test_modes_with_known_rows() -> None:
    """A row of a category is a row of ones and zeros; the known rows are the worst ones."""
    chances = {"a": "1/2", "b": "1/3", "c": "1/6"}
    law = {tuple(int(j == k) for j in range(3)): Fraction(w) for k, w in enumerate(chances.values())}
    for unknown in (6, 4):
        exact = float(worst(law, 6, unknown, 1.0))
        found = exact_mode(chances, n=6, unknown_rows=unknown, delta=0.99)
        assert exact <= found.details["stability"] <= 2.5 * exact
    assert "a: 1/2, b: 1/3, c: 1/6" in found.assumptions[0]
    assert "knows at most 2 of the 6 rows" in found.assumptions[1]
    # A clear leader, whom the known rows do not follow: they make the lead small.
    clear = {"a": "4/5", "b": "1/5"}
    law = {tuple(int(j == k) for j in range(2)): Fraction(w) for k, w in enumerate(clear.values())}
    informed = exact_mode(clear, n=16, unknown_rows=8, delta=0.99).details["stability"]
    assert informed == pytest.approx(float(worst(law, 16, 8, 1.0)), rel=1e-9)
    assert exact_mode(clear, n=16, delta=0.99).details["stability"] < informed / 20
    never = exact_mode({"none": 0, "a": "1/2", "so": 0, "b": "1/2"}, n=900, delta=0.5)
    assert "2 categories, with the probabilities a: 1/2, b: 1/2" in never.assumptions[0]


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        (["bernoulli(0.5)"], {}),
        ([], {}),
        (["bernoulli(0.5)"] * 65, {}),
        (["uniform(0, 1)", "uniform(0, 2)"], {}),
        (["uniform(0, 1)", "uniform(0.005, 1.005)"], {}),
        (["bernoulli(0.5)", "bernoulli(0.4)"], {"unknown_rows": 101}),
        (["bernoulli(0.5)", "bernoulli(0.4)"], {"unknown_rows": 1}),
        (["bernoulli(0.5)", "bernoulli(0.4)"], {"delta": -0.1}),
        ("bernoulli(0.5)", {}),
    ],
)
def test_what_is_refused(columns: Any, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        exact_argmax(columns, **{"n": 100, "delta": 1e-3, **more})
    with pytest.raises(NoLaw):
        exact_argmax(["normal(0, 1)", "normal(0, 1)"], n=100, delta=1e-3)
