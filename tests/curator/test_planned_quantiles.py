"""Quantiles planned with a public number of rows: what is charged is released, in the ranges that were planned."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.choice import calibrated
from tacit.curator.planning import choose
from tacit.curator.prices import price
from tacit.curator.quantile_choice import SelectedRanks, SparseRanks
from tacit.sources import open_table
from tacit.statistics import read_cells
from tacit.statistics.quantiles import fine_column, histograms, step_at


@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 1000), (0.1, 100_000), (1, 1000), (1, None)])
@pytest.mark.parametrize("by", [(), "sex"])
def test_a_plan_with_a_public_number_of_rows_is_released(epsilon: float, rows: int | None, by: Any) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.uniform(0, 1000, 500), "sex": rng.choice(["f", "m"], 500)})
    schema = {"x": tacit.number(0, 1000), "sex": tacit.category(["f", "m"])}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        plan = held.preview(tacit.quantiles("x", at=[0.25, 0.5, 0.75], by=by), epsilon=epsilon, rows=rows)
        assignment = plan.releases[0].assignment
        assert isinstance(assignment, SelectedRanks)
        (release,) = held.release(plan)
        spent = held.spent
        frame = release.table
        assert bool((frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all())
        # Kept with the charge: the same plan is answered from the record, alike and free.
        (again,) = held.release(plan)
        pd.testing.assert_frame_equal(again.table, frame)
        assert held.spent == spent


def chosen(epsilon: float, rows: int | None, statistic: Any = None) -> tuple[Any, SelectedRanks]:
    question = (statistic or tacit.median("x")).on(
        tacit.Schema({"x": tacit.number(0, 1000), "g": tacit.category(["a", "b"])}), tacit.rows()
    )
    made = choose(question, price(epsilon=epsilon), rows=rows)
    assert isinstance(made, SelectedRanks)
    return question, made


def test_a_tenth_buys_the_intervals_and_a_twentieth_where_that_serves_better() -> None:
    for epsilon, rows, share in (
        (1, None, 10), (0.01, None, 10), (0.5, 5000, 10), (1, 10**6, 20), (0.1, 300, 20), (0.1, 1, 20)
    ):  # fmt: skip
        _, made = chosen(epsilon, rows)
        whole = Fraction(made.selection.epsilon) + Fraction(made.counts.epsilon)
        assert whole == Fraction(str(epsilon))
        assert Fraction(made.counts.epsilon) * share == whole, (epsilon, rows)


def test_stored_choices_with_another_share_are_made_for_their_question() -> None:
    """A release of a version that gave the intervals less is judged by what it ran, not by today's share."""
    question, made = chosen(1, None, tacit.quantiles("x", at=[0.25, 0.5], by="g"))
    assert calibrated(made, question) is True
    less = replace(
        made,
        selection=replace(made.selection, epsilon=Fraction(19, 20)),
        counts=replace(made.counts, epsilon=Fraction(1, 20)),
    )
    assert calibrated(less, question) is True
    two = tacit.rows(neighbours="replace-one")
    other = tacit.quantiles("x", at=[0.25, 0.5], by="g").on(question.schema, two)
    assert calibrated(made, other) is False
    for wrong in (
        replace(made, selection=replace(made.selection, shares=(0.25, 0.75))),
        replace(made, selection=replace(made.selection, grouped=False)),
        replace(made, selection=replace(made.selection, replaced=True)),
        replace(made, selection=replace(made.selection, bins=made.selection.bins - 1)),
        replace(made, counts=replace(made.counts, l1=Fraction(1, 2))),
        replace(made, counts=replace(made.counts, total_is_public=True)),
        replace(made, counts=replace(made.counts, bins=made.counts.bins - 1)),
        replace(made, finest=2 * made.finest),
    ):
        assert calibrated(wrong, question) is False
    people = tacit.quantiles("x", at=[0.25, 0.5], by="g").on(question.schema, tacit.people("p", at_most=2))
    assert calibrated(made, people) is False


def test_a_limit_on_groups_keeps_the_rows_of_a_group() -> None:
    """Two rows a person in one group, in different ranges: both are counted under a limit of one group."""
    unit = tacit.people("p", at_most=2, groups=1)
    schema = tacit.Schema({"x": tacit.number(0, 1000), "g": tacit.category(["a", "b"])})
    statistic = tacit.median("x", "g")
    question = statistic.on(schema, unit)
    made = choose(question, price(epsilon=1))
    assert isinstance(made, SparseRanks)
    read = made.asked(question)
    people = np.repeat(np.arange(50), 2)
    data = pd.DataFrame({"p": people, "g": np.where(people < 20, "a", "b"), "x": np.arange(100.0)})
    with open_table(data, schema=schema, unit=unit) as table:
        found = histograms(read, read_cells(table, [read], key=b"k" * 32)[0])
    assert [int(counts.sum()) for _, counts in found] == [40, 60]
    assert [len(at) for at, _ in found] == [40, 60]
    bins = made.selection.bins
    steps = step_at(read, bins, found[0][0])
    assert (
        np.abs(steps * float(fine_column(schema.measured("x"), bins).spacing) - np.arange(40)) < 0.01
    ).all()


def test_a_public_number_of_rows_makes_finer_ranges_than_the_column() -> None:
    question, made = chosen(1, 10**6)
    assert made.selection.bins == 1 << 24
    read = made.asked(question)
    rng = np.random.default_rng(3)
    values = np.sort(rng.uniform(0, 1000, 3000))
    with open_table(
        pd.DataFrame({"x": values, "g": "a"}), schema=question.schema, unit=tacit.rows()
    ) as table:
        ((at, counts),) = histograms(read, read_cells(table, [read])[0])
    assert counts.sum() == 3000
    spacing = float(fine_column(question.schema.measured("x"), 1 << 24).spacing)
    steps = np.repeat(step_at(read, 1 << 24, at), counts) * spacing
    assert (np.abs(steps - values) <= 1000 / (1 << 23)).all()
    assert chosen(1, None)[1].selection.bins == 1 << 18
    coarse = tacit.Schema({"x": tacit.number(0, 1000, spacing=2.0**-9)})
    kept = choose(tacit.median("x").on(coarse, tacit.rows()), price(epsilon=1), rows=10**6)
    assert kept.selection.bins == 1 << 18  # type: ignore[attr-defined]


@pytest.mark.parametrize("top", [65_536, 150_000, 262_142, 262_143, 300_000])
def test_a_declared_grid_has_no_more_ranges_than_values(top: int) -> None:
    """Columns between 2^16 and 2^18 values on a grid of their own: the ranges are halved until each has a value."""
    schema = tacit.Schema({"x": tacit.number(0, top, spacing=1)})
    question = tacit.median("x").on(schema, tacit.rows())
    for rows in (None, 100, 10**7):
        made = choose(question, price(epsilon=1), rows=rows)
        assert isinstance(made, SparseRanks)
        assert made.selection.bins <= top + 1
        assert 2 * made.selection.bins > min(top + 1, 1 << 18) or rows is not None
        read = made.asked(question)
        with open_table(pd.DataFrame({"x": [3, top, top]}), schema=schema, unit=tacit.rows()) as table:
            (found,) = histograms(read, read_cells(table, [read], key=b"k" * 32)[0])
        assert found[1].tolist() == [1, 2]
        assert found[0][1] == made.selection.bins - 1
