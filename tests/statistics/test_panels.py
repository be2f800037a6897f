"""People of a panel: at most so many rows of each year. Sensitivities by enumeration, rows as they are really kept."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.assignments import assign
from tacit.curator.charging import price
from tacit.curator.fitted import fits_tables, fitted
from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import Guarantee, Pure
from tacit.guarantees.guarantee import from_record
from tacit.mechanisms.tables import ShapedTables
from tacit.noise.source import SeededSource
from tacit.sources.schema import Schema
from tacit.sources.tables import open_table
from tacit.statistics import count, mean, proportion
from tacit.statistics import sum as total
from tacit.statistics.base import panel, read

YEARS = (2020, 2021, 2022)
SCHEMA = {
    "year": tacit.integer(2020, 2022),
    "sex": tacit.category(["f", "m"]),
    "x": tacit.integer(0, 2),
    "v": tacit.flag(),
}


def people(k: int, g: int | None, neighbours: str = "add-or-remove", **more: Any) -> Any:
    each = None if g is None else {"year": g}
    return tacit.people("id", at_most=k, at_most_each=each, neighbours=neighbours, **more)


def persons(k: int, g: int, groups: int, cells: int) -> list[tuple[int, ...]]:
    """Every table of counts that one person can have: years of some cells, at most g a year, at most k in all."""
    return [
        v
        for v in itertools.product(range(min(g, k) + 1), repeat=groups * cells)
        if sum(v) <= k and all(sum(v[i * cells : (i + 1) * cells]) <= g for i in range(groups))
    ]


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize(
    ("k", "g"), [(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (5, 2), (7, 2), (4, 3), (2, 3)]
)
def test_counts_move_as_the_page_says(k: int, g: int, cells: int) -> None:
    """All people and all pairs of people, against the norms of the question itself; equal, not only at most."""
    found = np.array(persons(k, g, 3, cells))
    pairs = found[:, None, :] - found[None, :, :]
    by = ["year"] if cells == 1 else ["year", "sex"]
    for neighbours, moves in (("add-or-remove", found), ("replace-one", pairs.reshape(-1, 3 * cells))):
        said = count(by=by).on(Schema(SCHEMA), people(k, g, neighbours)).sensitivity
        assert said.l1 == np.abs(moves).sum(axis=1).max()
        assert said.l2_squared == (moves**2).sum(axis=1).max()
        assert said.linf == np.abs(moves).max()


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace-one"])
@pytest.mark.parametrize(("k", "g"), [(2, 1), (3, 1), (3, 2)])
def test_parts_of_means_sums_and_proportions_move_at_most_so_much(k: int, g: int, neighbours: str) -> None:
    """Tables of one person, from the definition, through the engine; some pair attains the squared L2 of the mean."""
    schema, rows = Schema(SCHEMA), [(y, x) for y in YEARS for x in (0, 2)]
    tables = [
        t for n in range(k + 1) for t in itertools.combinations_with_replacement(rows, n)
        if all(sum(y == year for y, _ in t) <= g for year in YEARS)
    ]  # fmt: skip
    unit = people(k, g, neighbours)
    questions = [
        ask.on(schema, unit)
        for ask in (mean("x", by="year"), total("x", by="year"), proportion("v", by="year"))
    ]
    made: list[list[Any]] = [[] for _ in questions]
    for t in tables:
        frame = pd.DataFrame(
            {"id": [1] * len(t), "year": [y for y, _ in t], "sex": ["f"] * len(t), "x": [x for _, x in t],
             "v": [x == 2 for _, x in t]}
        ).astype({"id": "int64", "year": "int64", "x": "int64", "v": "bool"})  # fmt: skip
        with open_table(frame, schema=schema, unit=unit) as table:
            found = read(table, questions, key=b"k" * 32)
        for rows_of, question, parts in zip(made, questions, found, strict=True):
            rows_of.append(np.concatenate([np.ravel(parts[p.name]).astype(int) for p in question.parts]))
    for question, rows_of in zip(questions, made, strict=True):
        moves = np.array(rows_of)
        if neighbours == "replace-one":
            moves = (moves[:, None, :] - moves[None, :, :]).reshape(-1, moves.shape[1])
        said = question.sensitivity
        assert np.abs(moves).sum(axis=1).max() <= said.l1
        assert (moves**2).sum(axis=1).max() <= said.l2_squared
        if not isinstance(question.statistic, type(total("x"))) or neighbours == "add-or-remove":
            assert (moves**2).sum(axis=1).max() == said.l2_squared


@pytest.mark.parametrize(
    ("k", "g", "cells"), [(3, 1, 1), (3, 1, 2), (4, 2, 1), (7, 3, 1), (2, 3, 1), (1, 1, 2)]
)
def test_shaped_noise_is_made_for_every_move_of_a_person(k: int, g: int, cells: int) -> None:
    """The norms written out here: max(0, x) - min(0, x) for one added person, max |x| for one replaced."""
    found = np.array(persons(k, g, 3, cells))
    pairs = (found[:, None, :] - found[None, :, :]).reshape(-1, 3 * cells)
    by = ["year"] if cells == 1 else ["year", "sex"]
    for neighbours in ("add-or-remove", "replace-one"):
        question = count(by=by).on(Schema(SCHEMA), people(k, g, neighbours))
        for _, assignment in fitted(question, price(epsilon=Fraction(1, 2))):
            mechanism = assignment.noise[0].mechanism
            if not isinstance(mechanism, ShapedTables) or mechanism.complete:
                continue
            assert mechanism.exact_epsilon == Fraction(1, 2)
            if neighbours == "add-or-remove":
                norm = (np.maximum(found, 0).max(axis=1) - np.minimum(found, 0).min(axis=1)).max()
            else:
                norm = np.abs(pairs).max()
            assert mechanism.times == min(g, k) == norm
            assert Fraction(mechanism.noise_scale) == 2 * norm
            assert fits_tables(mechanism, ("count",), question)
            if mechanism.times > 1:
                smaller = replace(mechanism, times=mechanism.times - 1)
                assert not fits_tables(smaller, ("count",), question)
            # A person whose years are not told may bring all rows to one cell.
            other = count(by="sex").on(Schema(SCHEMA), people(k, g, neighbours))
            assert other.tables is not None
            assert other.tables.times_each == k
            break
        else:
            raise AssertionError("no shaped noise is offered")


@pytest.mark.parametrize(
    ("groups", "shaped", "plain", "square"), [(12, 4.67, 11.99, 11.68), (52, 18.0, 52.0, 24.3)]
)
def test_pure_prices_of_panels_have_range_norm_noise(
    groups: int, shaped: float, plain: float, square: float
) -> None:
    schema = Schema({"week": tacit.integer(1, groups)})
    question = count(by="week").on(schema, tacit.people("id", at_most=groups, at_most_each={"week": 1}))
    found = {n: t.mean_error for n, t in fitted(question, price(epsilon=1, delta=1e-6))}
    assert found[f"range-norm noise on {groups} counts"] == pytest.approx(shaped, abs=0.05)
    assert assign(question, price(epsilon=1)).mean_error == pytest.approx(plain, abs=0.05)
    assert assign(question, price(epsilon=1, delta=1e-6)).mean_error == pytest.approx(square, abs=0.06)


def test_a_panel_at_a_pure_price_is_released_verified_and_covered() -> None:
    frame = pd.DataFrame({"id": np.repeat(np.arange(200), 12), "year": list(range(2012, 2024)) * 200})
    inside = 0
    for seed in range(50):
        with tacit.Curator(
            frame, protect=people(12, 1), schema={"year": tacit.integer(2012, 2023)}, ledger=None,
            budget=tacit.Pure(epsilon=1.0), source=SeededSource(seed=seed),
        ) as curator:  # fmt: skip
            release = curator.release(count(by="year"), epsilon=1.0)
            inside += int(((release.table["low"] <= 200) & (release.table["high"] >= 200)).sum())
            assert str(curator.spent) == "epsilon = 1"
    assert release.certificate["mechanism"]["noise"][0]["distribution"] == "range norm, rounded"
    assert inside >= 0.93 * 600


def test_figures_of_the_page() -> None:
    for k, g, groups, l2 in ((12, 1, 12, 3.46), (12, 2, 12, 4.90), (60, 12, 5, 26.8), (6, 1, 12, 2.45)):
        assert math.sqrt(panel(k, g, groups)[1]) == pytest.approx(l2, abs=0.05)


def test_releases_that_do_not_tell_the_year_pay_for_all_rows() -> None:
    schema = Schema({**SCHEMA, "year": tacit.integer(2020, 2022), "n": tacit.number(0, 4)})
    unit = people(12, 1)
    for by in ("sex", None, tacit.bins("year", 2), tacit.bins("n", 3)):
        assert count(by=by).on(schema, unit).sensitivity.l2_squared == 144
    assert count(by="year").on(schema, unit).sensitivity.l2_squared == 3
    assert count(by=tacit.bins("year", 3)).on(schema, unit).sensitivity.l2_squared == 3
    assert count(by="year").on(schema, tacit.group_of(unit, size=2)).sensitivity.l2_squared == 12
    plain = count(by="year").on(schema, people(12, None)).sensitivity
    assert count(by="year").on(schema, people(12, 12)).sensitivity == plain


@pytest.mark.parametrize("portable", [False, True])
def test_rows_are_kept_within_both_limits_and_by_ones_own_rows_alone(portable: bool) -> None:
    draw = np.random.default_rng(4)
    n = 4000
    frame = pd.DataFrame(
        {"id": draw.integers(0, 150, n), "year": draw.integers(2018, 2024, n), "sex": draw.choice(["f", "m", "?"], n),
         "x": draw.integers(0, 3, n), "v": draw.random(n) < 0.5}
    )  # fmt: skip
    schema, unit = Schema(SCHEMA), people(5, 2)

    def kept(table: pd.DataFrame, key: bytes) -> pd.DataFrame:
        from tacit.sources.bounding import bounded_relation

        with open_table(table, schema=schema, unit=unit, portable=portable) as opened:
            return pd.DataFrame(bounded_relation(opened, key=key).to_pyarrow().to_pylist())

    one = kept(frame, b"a" * 32)
    # Years outside of the bounds are clamped: they are rows of 2020 and 2022.
    sizes = one.groupby(["id", "year"]).size()
    assert sizes.max() == 2
    assert one.groupby("id").size().max() == 5
    assert set(one.year) <= set(YEARS)
    again = kept(frame.sample(frac=1, random_state=1).assign(other=1.5), b"a" * 32)
    order = sorted(one.columns)
    assert (
        one[order]
        .sort_values(order)
        .reset_index(drop=True)
        .equals(again[order].sort_values(order).reset_index(drop=True))
    )
    without = kept(frame[frame.id != 7], b"a" * 32)
    assert (
        one[one.id != 7][order]
        .sort_values(order)
        .reset_index(drop=True)
        .equals(without[order].sort_values(order).reset_index(drop=True))
    )
    assert (
        not one[order]
        .sort_values(order)
        .reset_index(drop=True)
        .equals(kept(frame, b"b" * 32)[order].sort_values(order).reset_index(drop=True))
    )


def test_a_panel_is_released_with_less_noise_and_says_so() -> None:
    frame = pd.DataFrame({"id": np.repeat(np.arange(100), 24), "year": list(range(2000, 2024)) * 100})
    schema = {"year": tacit.integer(2000, 2023)}
    noise = {}
    for g in (None, 1):
        with tacit.Curator(
            frame, protect=people(24, g), schema=schema, budget=tacit.Approximate(epsilon=9.0, delta=1e-5),
            source=SeededSource(seed=5),
        ) as curator:  # fmt: skip
            release = curator.release(count(by="year"), epsilon=1.0, delta=1e-6)
            noise[g] = float(release.planned.expected.within)
            said = release.certificate
    assert noise[1] < 0.8 * noise[None]
    assert said["guarantee"]["unit"]["each"] == ["year", 1]
    assert "at most 1 of each year" in str(release.guarantee)
    assert from_record(said["guarantee"]).unit == people(24, 1)


def test_the_record_of_people_without_the_limit_is_what_it_was() -> None:
    said = Guarantee(bound=Pure(epsilon=1.0), unit=people(3, None)).to_dict()["unit"]
    assert set(said) == {"kind", "column", "at_most", "groups", "neighbours"}


def test_a_bound_for_a_panel_says_nothing_of_other_people() -> None:
    def of(unit: Any) -> Guarantee:
        return Guarantee(bound=Pure(epsilon=1.0), unit=unit)

    few = of(people(12, 1))
    assert few.implies(of(people(6, 1))).holds
    assert few.implies(of(people(1, None))).holds
    for other in (people(12, None), people(12, 2), people(2, None)):
        assert not few.implies(of(other)).holds
    assert of(people(12, None)).implies(few).holds


@pytest.mark.parametrize("each", [{}, {"year": 1, "x": 1}, {"year": 0}, {"year": 1.5}, {"id": 1}, {"": 1}, 3])
def test_wrong_limits_are_refused(each: Any) -> None:
    with pytest.raises(InvalidParameter):
        tacit.people("id", at_most=3, at_most_each=each)


def test_a_column_that_is_not_declared_is_refused_before_anything_is_read() -> None:
    unit = tacit.people("id", at_most=3, at_most_each={"nothing": 1})
    with pytest.raises(TacitError, match="nothing"):
        count(by="year").on(Schema(SCHEMA), unit)
    frame = pd.DataFrame({"id": [1], "year": [2020], "sex": ["f"], "x": [1], "v": [True]})
    with pytest.raises(TacitError, match="nothing"):
        open_table(frame, schema=Schema(SCHEMA), unit=unit)
