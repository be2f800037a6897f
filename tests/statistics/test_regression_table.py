"""Regression tables: the sensitivity against neighbours from the definition, the fit, its intervals, and refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import EmptyComposition, InvalidParameter, MissingBounds, WrongType
from tacit.noise.source import SeededSource
from tacit.sources.schema import Schema
from tacit.statistics import regression
from tacit.statistics.regression_table import (
    DIAGONAL,
    LEVELS,
    OFF,
    Term,
    fitted,
    largest_norm_squared,
    weighted_rows,
)

SCHEMA = {
    "a": tacit.number(0, 10), "b": tacit.number(-1, 1), "f": tacit.flag(),
    "c": tacit.category(["x", "y", "z"]), "out": tacit.number(0, 100),
}  # fmt: skip
EVERY = ["a", "b", "f", "c"]


def question(on: list[str], unit: Any = None, **more: Any) -> Any:
    return regression("out", on=on, **more).on(Schema(SCHEMA), unit or tacit.rows())


def definition(values: dict[str, Any], asked: Any) -> np.ndarray[Any, Any]:
    """What one row adds, from the page: scaled, weighted, rounded, multiplied; in plain Python."""
    w = [1.0]
    for term in asked.details["terms"]:
        if term.key is not None:
            w.append(float(values["c"] == ["x", "y", "z"][term.key]))
        elif term.column == "f":
            w.append(float(values["f"]))
        else:
            low, high = {"a": (0, 10), "b": (-1, 1)}[term.column]
            w.append(2 * (values[term.column] - low) / (high - low) - 1)
    tau = asked.statistic.outcome_weight
    s = min(1.0, math.sqrt((asked.details["limit"] + tau**2) / (sum(v * v for v in w) + tau**2)))
    z = [round(LEVELS * s * v) for v in (*w, tau * (2 * values["out"] / 100 - 1))]
    pairs = itertools.combinations_with_replacement(range(len(z)), 2)
    return np.array([z[i] * z[j] * (29 if i == j else 41) for i, j in pairs], dtype=object)


CORNERS = [
    {"a": a, "b": b, "f": f, "c": c, "out": y}
    for a in (0.0, 10.0) for b in (-1.0, 0.0, 1.0) for f in (False, True) for c in ("x", "y", "z")
    for y in (0.0, 50.0, 100.0)
]  # fmt: skip


@pytest.mark.parametrize("limit", [None, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0])
def test_no_row_moves_the_sums_by_more_than_is_said_and_some_rows_nearly_do(
    limit: float | None, tau: float
) -> None:
    for unit in (tacit.rows(neighbours="add-or-remove"), tacit.rows(neighbours="replace-one")):
        asked = question(EVERY, unit, leverage_limit=limit, outcome_weight=tau)
        rows = [definition(v, asked) for v in CORNERS]
        if unit.neighbours.value == "add-or-remove":
            moves = rows
        else:
            moves = [x - y for x, y in itertools.combinations(rows, 2)]
        said = asked.sensitivity
        assert max(sum(abs(v) for v in m) for m in moves) <= said.l1
        assert max(max(abs(v) for v in m) for m in moves) <= said.linf
        largest = max(sum(v * v for v in m) for m in moves)
        assert largest <= said.l2_squared
        if limit is not None and limit <= 1.5 and unit.neighbours.value == "add-or-remove":
            assert (
                largest >= said.l2_squared * Fraction(995, 1000) ** 2
            )  # the bound is attained but for the rounding


def test_replaced_rows_reach_the_square_root_of_two() -> None:
    """Opposite rows: columns at one corner and an outcome that turns the product of the two vectors to nothing."""
    asked = question(
        ["b"], tacit.rows(neighbours="replace-one"), leverage_limit=math.sqrt(2), outcome_weight=1.0
    )
    one = definition({"b": 1.0, "out": 100.0}, asked)
    other = definition({"b": -1.0, "out": 50.0}, asked)  # (1, 1, 1) and (1, -1, 0) are orthogonal
    moved = sum(v * v for v in one - other)
    assert (DIAGONAL * LEVELS**2) ** 2 * 12.9 < moved <= asked.sensitivity.l2_squared
    assert asked.sensitivity.l2_squared < (DIAGONAL * LEVELS**2) ** 2 * 18.1  # 2 (R^2 + tau^2)^2 = 18
    assert OFF**2 <= 2 * DIAGONAL**2 < (OFF + 1) ** 2


def test_a_group_of_units_moves_so_many_times_as_much() -> None:
    one, three = (
        question(EVERY, u).sensitivity for u in (tacit.rows(), tacit.group_of(tacit.rows(), size=3))
    )
    assert (three.l1, three.l2_squared, three.linf) == (3 * one.l1, 9 * one.l2_squared, 3 * one.linf)


def test_a_row_that_would_be_too_long_counts_nothing() -> None:
    """The sensitivity does not rest on how floats round: what is longer than it says is left out."""
    row = np.array([[1.0, 1.0]])
    assert weighted_rows(row, limit=2.0, tau=1.0, most=largest_norm_squared(3.0, 3)).any()
    assert not weighted_rows(row, limit=2.0, tau=1.0, most=3 * LEVELS**2 - 1).any()


def test_sums_are_integers_of_any_size() -> None:
    """A hundred million rows at the largest outcome weight pass 2^63: 64 bits would wrap, and one row would show."""
    from tacit.sources.query import TrainingRows

    asked = question(["b"], leverage_limit=1.0, outcome_weight=16.0)
    ends = {n: float(asked.schema.measured(n).width) for n in ("b", "out")}
    rows = TrainingRows(request=asked.requests[0], rows={n: np.full(1000, end) for n, end in ends.items()})
    found = asked.integers((rows,))["moments"]
    assert found.dtype == object
    assert all(type(v) is int for v in found.tolist())
    assert max(found.tolist()) * 100_000 > 2**63


def survey(n: int, seed: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    a, b = np.clip(5 + 1.75 * draw.standard_normal(n), 0, 10), np.clip(0.35 * draw.standard_normal(n), -1, 1)
    f, c = draw.random(n) < 0.4, draw.choice(["x", "y", "z"], n)
    out = (
        20
        + 3 * a
        + 10 * b
        + 5 * f
        + np.array([{"x": 0, "y": 4, "z": -6}[k] for k in c])
        + 6 * draw.standard_normal(n)
    )
    return pd.DataFrame({"a": a, "b": b, "f": f, "c": c, "out": np.clip(out, 0, 100)})


def released(table: pd.DataFrame, asked: Any, *, epsilon: float = 1.0, seed: int = 3) -> Any:
    with tacit.Curator(
        table, protect=tacit.rows(), schema=SCHEMA, budget=tacit.Approximate(epsilon=1000.0, delta=1e-4),
        source=SeededSource(seed=seed),
    ) as curator:  # fmt: skip
        return curator.release(asked, epsilon=epsilon, delta=1e-6)


def test_with_hardly_any_noise_it_is_the_ordinary_table() -> None:
    """Weighted least squares by numpy's own solver, in the columns' own units, with its own standard errors."""
    table = survey(4000)
    found = released(table, regression("out", on=EVERY, leverage_limit=3.0), epsilon=900.0).table
    design = np.column_stack(
        [np.ones(4000), table.a, table.b, table.f, table.c == "y", table.c == "z"]
    ).astype(float)
    b, left, *_ = np.linalg.lstsq(design, table.out, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * left[0] / (4000 - 6))
    lines = found[found.measure == "coefficient"]
    assert list(lines.term) == ["(constant)", "a", "b", "f", "c = y", "c = z"]
    assert np.allclose(lines.value, b, atol=0.15 * errors.max())
    assert np.allclose(found[found.measure == "standard error"].value, errors, rtol=0.05)
    ends = (lines.high - lines.low).to_numpy() / 2
    assert np.allclose(ends, 1.959964 * found[found.measure == "standard error"].value.to_numpy(), rtol=1e-6)
    model = dict(zip(found.measure[-3:], found.value[-3:], strict=True))
    assert model["R squared"] == pytest.approx(
        1 - left[0] / ((table.out - table.out.mean()) ** 2).sum(), abs=0.01
    )
    assert model["residual standard deviation"] == pytest.approx(math.sqrt(left[0] / 3994), rel=0.02)
    assert model["weighted rows"] == pytest.approx(4000, rel=0.01)


def test_rows_without_a_value_are_left_out() -> None:
    table = survey(3000)
    table.loc[::3, "b"] = np.nan
    lines = released(table, regression("out", on=["a", "b"], leverage_limit=3.0), epsilon=900.0).table
    assert lines.value.iloc[-1] == pytest.approx(2000, rel=0.01)


@pytest.mark.slow
def test_intervals_hold_the_population_through_releases() -> None:
    """50 tables, 250 slopes: a coverage of 0.95 gives fewer than 220 about once in a million; seeds are fixed."""
    truth = [3.0, 10.0, 5.0, 4.0, -6.0]
    held = 0
    for seed in range(50):
        found = released(survey(6000, seed), regression("out", on=EVERY), seed=seed).table
        lines = found[found.measure == "coefficient"].iloc[1:]
        held += int(((lines.low <= truth) & (truth <= lines.high)).sum())
    assert 220 <= held <= 250


def test_noise_only_would_not_cover() -> None:
    """From the other side: without the part of the sampling, standard errors would be too small by far."""
    terms, target = [Term(name="a", column="a")], Term(name="y", column="y")
    draw = np.random.default_rng(2)
    x = np.clip(0.35 * draw.standard_normal(20_000), -1, 1)
    y = np.clip(0.3 * x + 0.2 * draw.standard_normal(20_000), -1, 1)
    z = weighted_rows(np.column_stack([x, y]), limit=9.0, tau=1.0, most=largest_norm_squared(10.0, 3))
    moments = (z.T @ z)[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]] * [29, 41, 41, 29, 41, 29] / LEVELS**2
    exact = fitted(moments, terms=terms, target=target, tau=1.0, variance=0.0)
    noisy = fitted(moments, terms=terms, target=target, tau=1.0, variance=100.0**2)
    a = float((x * x).sum())
    assert exact.errors[1] == pytest.approx(0.2 / math.sqrt(a), rel=0.03)
    g = 100.0**2 * (1 + 0.3**2 + 0.3**2) / a**2
    spread = math.sqrt(2) * 100.0 * (0.3**2 + 1) / 20_000 / a
    assert noisy.errors[1] == pytest.approx(math.sqrt(0.2**2 / a + g + spread), rel=0.03)


def test_where_noise_hides_the_solution_there_is_no_table() -> None:
    found = released(survey(40), regression("out", on=EVERY), epsilon=0.1)
    lines = found.table[found.table.measure != "weighted rows"]
    assert lines.value.isna().all()
    assert "no table" in str(found) or lines.low.isna().all()
    same = survey(2000)
    same["b"] = 0.5
    assert released(same, regression("out", on=["a", "b"])).table.value.iloc[:3].isna().all()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"on": []}, EmptyComposition),
        ({"on": ["out"]}, InvalidParameter),
        ({"on": ["a", "a"]}, InvalidParameter),
        ({"on": ["a"], "leverage_limit": 0.99}, InvalidParameter),
        ({"on": ["a"], "leverage_limit": 64.1}, InvalidParameter),
        ({"on": ["a"], "leverage_limit": math.nan}, InvalidParameter),
        ({"on": ["a"], "outcome_weight": 0.06}, InvalidParameter),
        ({"on": ["a"], "outcome_weight": 16.1}, InvalidParameter),
    ],
)
def test_wrong_words_are_refused(more: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        regression("out", **more)


def test_wrong_columns_and_units_are_refused() -> None:
    schema = Schema(
        {**SCHEMA, "day": tacit.date("2020-01-01", "2021-01-01"), "open": tacit.category(),
         "one": tacit.category(["k"]), "many": tacit.category([f"k{i}" for i in range(62)])}
    )  # fmt: skip
    rows = tacit.rows()
    for on, error in (
        (["day"], WrongType), (["open"], MissingBounds), (["one"], InvalidParameter),
        (["many"], InvalidParameter),
    ):  # fmt: skip
        with pytest.raises(error):
            regression("out", on=on).on(schema, rows)
    with pytest.raises(WrongType):
        regression("day", on=["a"]).on(schema, rows)
    with pytest.raises(InvalidParameter, match="one row a person"):
        regression("out", on=["a"]).on(schema, tacit.people("id", at_most=2))
    assert regression("out", on=["a"]).on(schema, tacit.people("id", at_most=1)).sensitivity.l1 > 0
