"""Quantiles planned with a public number of rows: what is charged is released, in the ranges that were planned."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.curator.charging import price
from tacit.curator.choice import calibrated
from tacit.curator.planning import choose
from tacit.curator.quantile_choice import SelectedRanks, SparseRanks
from tacit.mechanisms.cumulative import CumulativeTree
from tacit.noise import SeededSource
from tacit.sources import open_table
from tacit.sources.axes import CountRows
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


@pytest.mark.parametrize("by", [(), "sex"])
def test_a_plan_for_whole_numbers_is_released(by: Any) -> None:
    """Whole numbers have a range each; the counts of the intervals are read in the planned, wider ranges."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.integers(0, 1001, 500), "sex": rng.choice(["f", "m"], 500)})
    schema = {"x": tacit.integer(0, 1000), "sex": tacit.category(["f", "m"])}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        asked = tacit.quantiles("x", at=[0.25, 0.5, 0.75], by=by)
        plan = held.preview(asked, epsilon=0.1, rows=500)
        assignment = plan.releases[0].assignment
        assert type(assignment) is SelectedRanks
        assert assignment.finest > 1
        (release,) = held.release(plan)
        frame = release.table
        assert bool((frame["low"] <= frame["value"]).all() and (frame["value"] <= frame["high"]).all())


def chosen(epsilon: float, rows: int | None, statistic: Any = None) -> tuple[Any, SelectedRanks]:
    question = (statistic or tacit.median("x")).on(
        tacit.Schema({"x": tacit.number(0, 1000), "g": tacit.category(["a", "b"])}), tacit.rows()
    )
    made = choose(question, price(epsilon=epsilon), rows=rows)
    assert isinstance(made, SelectedRanks)
    return question, made


def test_a_quarter_buys_the_intervals_and_less_where_that_serves_better() -> None:
    """Without a number of rows a quarter; with one the least that is enough, and little where nothing is."""
    for epsilon, rows, share in (
        (1, None, 4), (0.01, None, 4), (0.5, 700, 4), (0.3, 1250, 4), (0.5, 5000, 10), (0.3, 5000, 6), (1, 10**6, 20),
        (1, 3550, 10), (1, 1150, 4), (0.1, 300, 20), (0.1, 700, 20), (0.1, 1, 20),
    ):  # fmt: skip
        _, made = chosen(epsilon, rows)
        assert made.counts is not None
        whole = Fraction(made.selection.epsilon) + Fraction(made.counts.epsilon)
        assert whole == Fraction(str(epsilon))
        assert Fraction(made.counts.epsilon) * share == whole, (epsilon, rows)


def test_stored_choices_with_another_share_are_made_for_their_question() -> None:
    """A release of a version that gave the intervals less is judged by what it ran, not by today's share."""
    question, made = chosen(1, None, tacit.quantiles("x", at=[0.25, 0.5], by="g"))
    assert made.counts is not None
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


@pytest.mark.parametrize("column", [tacit.number(0, 1000), tacit.integer(0, 1000)], ids=["sparse", "listed"])
@pytest.mark.parametrize(("by", "rows"), [(None, None), ("g", 500)])
def test_without_an_interval_the_values_get_the_whole_price(column: Any, by: Any, rows: int | None) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.integers(0, 1001, 500), "g": rng.choice(["a", "b"], 500)})
    schema = {"x": column, "g": tacit.category(["a", "b"])}
    statistic = tacit.quantiles("x", at=[0.25, 0.5], by=by)
    asked = tacit.query(statistic, interval=False, rows=rows)
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        plan = held.preview(asked, epsilon=0.5)
        made = plan.releases[0].assignment
        assert isinstance(made, SelectedRanks)
        assert made.counts is None
        assert Fraction(made.selection.epsilon) == made.pure() == Fraction(1, 2)
        (release,) = held.release(plan)
        assert held.spent == tacit.Pure(epsilon=0.5)
        frame = release.table
        assert frame["value"].notna().all()
        assert frame["low"].isna().all()
        assert frame["high"].isna().all()
        assert set(release.quality) == {"no interval"}
        assert release.certificate["intervals"]["cover"].startswith("nothing")
        (again,) = held.release(plan)
        assert again.replayed
        pd.testing.assert_frame_equal(again.table, frame)
        # Choices with and without counts are told apart: neither is an answer to the other's question.
        question = plan.releases[0].question
        assert calibrated(made, question) is True
        other = statistic.on(tacit.Schema(schema), tacit.rows())
        assert calibrated(made, other) is False
        assert calibrated(choose(other, price(epsilon=0.5)), question) is False


def test_its_law_is_the_one_of_the_whole_price() -> None:
    """From the definition: the law of a released median on two tables that differ in one row, on a grid of 8 values."""
    schema = tacit.Schema({"x": tacit.integer(0, 7)})
    question = tacit.query(tacit.median("x"), interval=False).statistic.on(schema, tacit.rows())
    made: Any = choose(question, price(epsilon=0.75))
    rate = float(made.selection.rate)
    tables = [np.array([1, 0, 2, 0, 1, 3, 0, 1]) + extra for extra in (0, np.eye(8, dtype=int)[1])]
    laws = []
    for counts in tables:
        ranks = np.concatenate([[0], np.cumsum(counts)])
        low, high = ranks[:-1].astype(float), ranks[1:].astype(float)
        low[0], high[-1] = -np.inf, np.inf
        heads = np.exp(-rate * np.maximum(np.maximum(low - ranks[-1] / 2, ranks[-1] / 2 - high), 0))
        law = np.zeros(8)
        for shown in range(1, 1 << 8):
            on = np.array([shown >> k & 1 for k in range(8)], dtype=bool)
            law[on] += np.prod(np.where(on, heads, 1 - heads)) / on.sum()
        laws.append(law)
    assert np.allclose([law.sum() for law in laws], 1)
    assert np.abs(np.log(laws[0] / laws[1])).max() <= 0.75
    source = SeededSource(seed=3)
    drawn = np.array([
        made.read(question, made.run(question, [Held(tables[0])], source=source), Fraction(19, 20)).value[0]
        for _ in range(4000)
    ])  # fmt: skip
    seen = np.bincount(drawn.astype(int), minlength=8) / 4000
    assert np.abs(seen - laws[0]).max() < 0.035


class Held:
    """A histogram as an engine gives it."""

    def __init__(self, counts: Any) -> None:
        self.values, self.keys = {CountRows(where=None): counts}, None


def test_only_quantiles_pay_for_their_intervals() -> None:
    with pytest.raises(tacit.errors.InvalidParameter, match="quantiles alone"):
        tacit.query(tacit.mean("x"), interval=False)
    with pytest.raises(tacit.errors.InvalidParameter, match="interval"):
        tacit.query(tacit.median("x"), interval=True)
    data = pd.DataFrame({"x": np.arange(50.0)})
    schema = {"x": tacit.number(0, 1000)}
    with tacit.Curator(data, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=9)) as held:
        with pytest.raises(tacit.errors.InvalidParameter, match="sampling"):
            held.preview(tacit.query(tacit.median("x"), interval=False, sampling=True), epsilon=1)
        # Many shares come from one noise, with intervals that cost nothing: they are there.
        many = tacit.query(tacit.quantiles("x", at=[k / 40 for k in range(1, 40)]), interval=False)
        assert held.release(many, epsilon=1).table["low"].notna().all()


def test_the_digest_of_a_quantile_is_what_it_was() -> None:
    assert "interval" not in tacit.median("x").to_dict()
    alone = tacit.query(tacit.median("x"), interval=False).statistic
    assert alone.to_dict() == {**tacit.median("x").to_dict(), "interval": False}


def test_a_plain_median_by_group_has_intervals_that_can_be_quoted() -> None:
    """1,250 rows a group at epsilon = 0.3: the median interval is shorter than two thirds of the median."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": np.exp(rng.normal(10.2, 0.6, 5000)), "g": np.repeat(list("abcd"), 1250)})
    schema = {"x": tacit.number(0, 250_000), "g": tacit.category(list("abcd"))}
    widths, errors = [], []
    truth = frame.groupby("g")["x"].median().to_numpy()
    for _ in range(12):
        curator = tacit.Curator(frame, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=1))
        table = curator.release(tacit.median("x", by="g"), epsilon=0.3).table.sort_values("g")
        widths.extend((table["high"] - table["low"]) / table["value"])
        errors.extend(abs(table["value"] / truth - 1))
    assert np.median(widths) < 2 / 3
    assert np.median(errors) < 0.02


def _all_half_widths(tree, tail, shares):
    """The definition: all quantiles, and of each share the one at the t with the middling error."""
    found = []
    for share in shares:
        stds = tree.noise_stds(share=share)
        found.append(tree.half_widths(tail, share=share)[np.argsort(stds)[len(stds) // 2]])
    return np.array(found)


def _median_std(tree, share):
    return float(np.median(tree.noise_stds(share=share)[1 :: 17 if tree.bins > 4096 else 1]))


@pytest.mark.parametrize(
    "column", [tacit.number(0, 100_000), tacit.integer(0, 100)], ids=["number", "integer"]
)
@pytest.mark.parametrize("at", [(0.5,), (0.25, 0.5, 0.75), tuple(k / 10 for k in range(1, 10))], ids=len)
def test_short_previews_choose_what_all_widths_choose(column, at, monkeypatch):
    """Only one width for each share is computed: mechanisms, ranges, prices and errors stay those of the definition."""
    schema = tacit.Schema({"x": column, "g": tacit.category(["a", "b", "c"])})
    units = (tacit.rows(), tacit.rows(neighbours="replace-one"), tacit.people("who", at_most=3))
    asked = [tacit.quantiles("x", at=at, by=by).on(schema, unit) for unit in units for by in (None, "g")]
    settings = [(e, n) for e in (Fraction(1, 20), 1) for n in (None, 300, 20_000, 5_000_000)]

    def chosen():
        return [choose(q, price(epsilon=e), rows=n) for q in asked for e, n in settings]

    short = chosen()
    monkeypatch.setattr(CumulativeTree, "middling_half_widths", _all_half_widths)
    monkeypatch.setattr(CumulativeTree, "middling_std", _median_std)
    assert short == chosen()
