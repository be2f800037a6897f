"""Every refusal of this room has an input that reaches it; caps are crossed, at the cap and one above it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.statistics as ask
from tacit import errors
from tacit.guarantees import group_of, people, rows
from tacit.guarantees.units import Coupled
from tacit.sources import Schema, bins, category, date, integer, number
from tacit.statistics import families
from tacit.statistics.base import by_columns
from tacit.statistics.counts import Count, Margins
from tacit.statistics.families import NoisyTable, consistent_margins, fit_table, integer_margins, whole_table
from tacit.statistics.hierarchy import Hierarchy, Tree, tree_estimate
from tacit.statistics.invariants import PublicTotals
from tacit.statistics.moments import Ratio, RegressionMoments
from tacit.statistics.quantiles import Quantiles, Ranges

SCHEMA = Schema(
    {
        "state": category(["a", "b", "c"]),
        "one": category(["a"]),
        "open": category(),
        "age": integer(0, 99),
        "cost": number(0, 1, spacing=0.25),
        "wide": number(0, 1, spacing=Fraction(1, 1 << 31)),
        "day": date("2020-01-01", "2020-12-31"),
    }
)
REPLACED = rows(neighbours="replace-one")


def on(statistic: Any, unit: Any = REPLACED) -> Any:
    return statistic.on(SCHEMA, unit)


def table(
    columns: tuple[str, ...], shape: tuple[int, ...], variance: float = 1.0, fill: float = 1
) -> NoisyTable:
    return NoisyTable(columns=columns, values=np.full(shape, fill), variance=variance)


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "groups by a number": (lambda: by_columns(3), errors.InvalidParameter, "name columns"),  # type: ignore[arg-type]
    "groups by a list of numbers": (
        lambda: by_columns([3]), errors.InvalidParameter, "name columns",  # type: ignore[list-item]
    ),
    "a filter that is a number": (
        lambda: Count(where=3), errors.InvalidParameter, "be a filter",  # type: ignore[arg-type]
    ),
    "a count of houses": (lambda: Count(of="houses"), errors.UnknownName, "thing to count"),  # type: ignore[arg-type]
    "a count over what it is not by": (
        lambda: Count(by=("state",), over=("age",)), errors.UnknownName, "column of the count",
    ),
    "a count of people among rows": (lambda: on(ask.count(of="people")), errors.UnitMismatch, "people"),
    "no margins": (lambda: ask.margins([]), errors.EmptyComposition, "list of columns"),
    "margins of no column": (lambda: ask.margins(["state"], order=0), errors.InvalidParameter, "order"),
    "margins of more columns than there are": (
        lambda: ask.margins(["state", "age"], order=3), errors.InvalidParameter, "between 1 and 2",
    ),
    "margins by a column": (
        lambda: on(Margins(columns=("state",), by=("age",))), errors.InvalidParameter, "empty for margins",
    ),
    "a margin of one key": (lambda: on(ask.margins(["one"])), errors.InvalidParameter, "at least two known keys"),
    "a margin of unknown keys": (lambda: on(ask.margins(["open"])), errors.InvalidParameter, "two known keys"),
    "no contingency table": (lambda: ask.contingency([]), errors.EmptyComposition, "list of columns"),
    "clamping bounds of words": (lambda: on(ask.clamping_bounds("state")), errors.WrongType, "state"),
    "clamping bounds of days": (lambda: on(ask.clamping_bounds("day")), errors.InvalidParameter, "be a number"),
    "the range of a quantile": (
        lambda: on(ask.median("age")).enclose({}, {}), errors.InvalidParameter, "a known range",
    ),
    "tables that share a column of other keys": (
        lambda: consistent_margins([table(("a",), (2,)), table(("a", "b"), (3, 2))]),
        errors.InvalidParameter, "same keys in every table",
    ),
    "an exact table of halves": (
        lambda: integer_margins([table(("a",), (2,), 0.0, 0.5), table(("a", "b"), (2, 2))], total=1),
        errors.InvalidParameter, "whole non-negative counts",
    ),
    "an exact table below nothing": (
        lambda: integer_margins([table(("a",), (2,), 0.0, -1), table(("a", "b"), (2, 2))]),
        errors.InvalidParameter, "",
    ),
    "a fit to tables of nothing": (
        lambda: fit_table([table(("a",), (2,), fill=-1.0)]), errors.EmptyComposition, "released table",
    ),
    "a table of half a row": (
        lambda: whole_table(fit_table([table(("a",), (2,))]), total=1.5),
        errors.InvalidParameter, "total",  # type: ignore[arg-type]
    ),
    "a table of fewer rows than none": (
        lambda: whole_table(fit_table([table(("a",), (2,))]), total=-1), errors.InvalidParameter, "total",
    ),
    "a hierarchy of no column": (lambda: Hierarchy(columns=()), errors.EmptyComposition, "list of columns"),
    "parents that are no pairs": (
        lambda: Hierarchy(columns=("state",), parents=3), errors.InvalidParameter, "be pairs",  # type: ignore[arg-type]
    ),
    "parents of two columns": (
        lambda: Hierarchy(columns=("state", "age"), parents=(("a", "x"),)), errors.InvalidParameter, "one column",
    ),
    "a parent alone": (
        lambda: Hierarchy(columns=("state",), parents=(("a",),)),
        errors.InvalidParameter, "a pair (child, parent)",  # type: ignore[arg-type]
    ),
    "a hierarchy by a column": (
        lambda: on(Hierarchy(columns=("state",), by=("age",))), errors.InvalidParameter, "empty for a hierarchy",
    ),
    "a hierarchy of unknown keys": (lambda: on(Hierarchy(columns=("open",))), errors.InvalidParameter, "known keys"),
    "public tables that are a list": (
        lambda: ask.public_totals(tables=[1]), errors.InvalidParameter, "a mapping to counts",  # type: ignore[arg-type]
    ),
    "public nodes that are a list": (
        lambda: PublicTotals(nodes=[1]), errors.InvalidParameter, "a mapping to counts",  # type: ignore[arg-type]
    ),
    "a variance of more steps than squares hold": (
        lambda: on(ask.variance("wide")), errors.InvalidParameter, "fewer than 2^31 steps",
    ),
    "moments by a column": (
        lambda: RegressionMoments(columns=("age",), outcome="cost", by=("state",)),
        errors.InvalidParameter, "be left out",
    ),
    "moments of no column": (
        lambda: RegressionMoments(columns=(), outcome="cost"), errors.EmptyComposition, "list of columns",
    ),
    "a moment with itself": (
        lambda: RegressionMoments(columns=("cost",), outcome="cost"), errors.InvalidParameter, "different columns",
    ),
    "the moments of a day": (
        lambda: on(RegressionMoments(columns=("day",), outcome="cost")), errors.WrongType, "two different bounds",
    ),
    "quantiles at no share": (lambda: ask.quantiles("age", at=[]), errors.EmptyComposition, "list of shares"),
    "a quantile at 0": (lambda: ask.quantiles("age", at=[0.0]), errors.InvalidParameter, "strictly between 0 and 1"),
    "a quantile at 1": (lambda: ask.quantiles("age", at=[1]), errors.InvalidParameter, "strictly between 0 and 1"),
    "a quantile at True": (lambda: Quantiles(column="age", at=(True,)), errors.InvalidParameter, "strictly between"),
    "quantiles that fall": (lambda: ask.quantiles("age", at=[0.5, 0.2]), errors.InvalidParameter, "increase"),
    "one quantile twice": (lambda: ask.quantiles("age", at=[0.5, 0.5]), errors.InvalidParameter, "increase"),
    "quantiles of unknown groups": (
        lambda: on(ask.median("age", by="open")), errors.InvalidParameter, "known keys for quantiles",
    ),
    "a range of one end": (
        lambda: Ranges(column="age", edges=4, at=((0,),)), errors.InvalidParameter, "a pair",  # type: ignore[arg-type]
    ),
    "one range twice": (
        lambda: Ranges(column="age", edges=4, at=((0, 24), (0, 24))), errors.InvalidParameter, "different ranges",
    ),
    "ranges by a column": (
        lambda: on(Ranges(column="age", edges=4, by=("state",))), errors.InvalidParameter, "empty for ranges",
    ),
    "a range from inside of a bin": (
        lambda: on(ask.ranges("age", 4, at=[(3, 24)])), errors.UnknownName, "end of a bin",
    ),
    "a range to the inside of a bin": (
        lambda: on(ask.ranges("age", 4, at=[(0, 30)])), errors.UnknownName, "end of a bin",
    ),
    "a range that ends before it begins": (
        lambda: on(ask.ranges("age", 4, at=[(50, 24)])), errors.InvalidParameter, "end where it begins",
    ),
    "a unit of two worlds": (
        lambda: on(ask.count(), Coupled(priv="a row", alt="the others")), errors.UnitMismatch, "rows or people",
    ),
    "a sparse histogram without a price": (
        lambda: on(ask.sparse_histogram(["state"])).mechanism(), errors.InvalidParameter, "epsilon",
    ),
    "a sparse histogram of houses": (
        lambda: ask.sparse_histogram(["state"], of="houses"),
        errors.UnknownName, "thing to count",  # type: ignore[arg-type]
    ),
    "a column over itself": (
        lambda: Ratio(numerator="cost", denominator="cost"), errors.InvalidParameter, "be another column",
    ),
    "the sum of days": (lambda: on(ask.sum("day")), errors.WrongType, "no sums"),
    "a node that nobody counted": (
        lambda: tree_estimate(Tree.of([("a", "x"), ("b", "x"), ("x", None)]), {"a": 1.0}, {"a": 1.0}),
        errors.InvalidParameter, "every node without children",
    ),
    "a node that is not in the tree": (
        lambda: tree_estimate(Tree.of([("a", "x"), ("x", None)]), {"z": 1.0}, {"z": 1.0}),
        errors.UnknownName, "unknown node",
    ),
    "a count without a variance": (
        lambda: tree_estimate(Tree.of([("a", "x"), ("x", None)]), {"a": 1.0}, {}),
        errors.InvalidParameter, "a variance",
    ),
    "a count of no number": (
        lambda: tree_estimate(Tree.of([("a", "x"), ("x", None)]), {"a": np.nan}, {"a": 1.0}),
        errors.InvalidParameter, "variance",
    ),
    "exact counts that contradict each other": (
        lambda: tree_estimate(Tree.of([("a", "x"), ("x", None)]), {"a": 1.0, "x": 2.0}, {"a": 0.0, "x": 0.0}),
        errors.TacitError, "x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_by_name(name: str) -> None:
    call, kind, word = BAD[name]
    with pytest.raises(kind) as told:
        call()
    assert word in str(told.value)


RANGES = "tacit.statistics.quantiles"
CAPS: dict[str, tuple[str, str, int, Callable[[int], Any], type[Exception]]] = {
    "cells of all margins together": (
        "tacit.sources.axes", "MAX_CELLS", 102,
        lambda n: on(ask.margins(["state", bins("age", n - 3)])), errors.TooManyCells,
    ),
    "columns of moments": (
        "tacit.statistics.moments", "MOST_COLUMNS", 2,
        lambda n: RegressionMoments(columns=tuple(f"x{i}" for i in range(n)), outcome="y"), errors.InvalidParameter,
    ),
    "columns of a table": (
        "tacit.statistics.families", "MOST_COLUMNS", 2, lambda n: table(tuple("abcd"[:n]), (1,) * n),
        errors.InvalidParameter,
    ),
    "columns that tables share": (
        "tacit.statistics.families", "MOST_SHARED", 2,
        lambda n: consistent_margins(
            [table((*"abcd"[:n], end), (1,) * (n + 1)) for end in "xy"]
        ),
        errors.InvalidParameter,
    ),
    "bins of ranges": (
        RANGES, "MOST_BINS", 5, lambda n: on(ask.ranges("age", n, at=[(0, 99)])), errors.TooManyCells,
    ),
    "ranges of all pairs of bins": (
        RANGES, "MOST_RANGES", 6, lambda n: on(ask.ranges("age", 3 if n <= 6 else 4)), errors.TooManyCells,
    ),
    "ranges that are named": (
        RANGES, "MOST_RANGES", 2,
        lambda n: on(ask.ranges("age", 4, at=[(0, 24), (25, 49), (50, 74)][:n])), errors.TooManyCells,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
def test_a_cap_admits_what_it_says_and_refuses_one_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, constant, cap, call, kind = CAPS[name]
    monkeypatch.setattr(importlib.import_module(where), constant, cap)
    call(cap)
    with pytest.raises(kind):
        call(cap + 1)


def test_a_sparse_histogram_has_so_many_impossible_patterns_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [{"state": ["a"], "age": [i]} for i in range(3)]
    monkeypatch.setattr("tacit.statistics.sparse.MOST_PATTERNS", 2)
    ask.sparse_histogram(["state", "age"], impossible=patterns[:2])
    with pytest.raises(errors.InvalidParameter, match="at most 2 patterns"):
        ask.sparse_histogram(["state", "age"], impossible=patterns)


def test_a_whole_table_of_many_cells_with_several_margins_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [table(pair, (2, 2), fill=3) for pair in (("a", "b"), ("b", "c"), ("a", "c"))]
    full = [*tables, table(("a", "b", "c"), (2, 2, 2), fill=1.5)]
    monkeypatch.setattr(families, "MOST_PROGRAM_CELLS", 8)
    found = integer_margins(full, total=12)
    assert [int(t.sum()) for t in found] == [12] * 4
    monkeypatch.setattr(families, "MOST_PROGRAM_CELLS", 7)
    with pytest.raises(errors.NotCertified, match="8 cells"):
        integer_margins(full, total=12)


@pytest.mark.parametrize(
    "unit", [REPLACED, people("who", at_most=2, neighbours="replace-one"), rows()], ids=str
)
def test_beyond_the_bins_that_are_compared_in_pairs_the_bound_of_ranges_is_twice_the_most(
    unit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replaced row leaves its ranges and enters others: never more than twice those over one bin."""
    asked = [(0, 24), (0, 49), (25, 49), (75, 99), (50, 99)]
    most = 2  # bins 0-24: the first two ranges; 25-49: two; 75-99: two
    exact = on(ask.ranges("age", 4, at=asked), unit).sensitivity
    monkeypatch.setattr(importlib.import_module(RANGES), "EXACT_BINS", 3)
    bound = on(ask.ranges("age", 4, at=asked), unit).sensitivity
    times = 2 if "who" in str(unit) else 1
    twice = 2 if "replace" in str(unit) else 1
    assert bound.l1 == most * times * twice
    assert bound.l1 >= exact.l1
    assert bound.l2_squared == most * twice * times**2
    assert bound.linf == times


def test_a_group_of_two_rows_moves_ranges_twice_as_far() -> None:
    asked = [(0, 24), (0, 49), (75, 99)]
    one = on(ask.ranges("age", 4, at=asked)).sensitivity
    two = on(ask.ranges("age", 4, at=asked), group_of(REPLACED, size=2)).sensitivity
    assert (two.l1, two.l2_squared, two.linf) == (2 * one.l1, 4 * one.l2_squared, 2 * one.linf)


def test_ends_of_ranges_are_named_by_whole_numbers_and_by_floats() -> None:
    """20 names the edge 20.0, and 20.0 the whole number 20."""
    for at in ([(0, 0.5)], [(0.0, 0.5)]):
        question = on(ask.ranges("cost", [0, 0.5, 1], at=at))
        assert question.tables.ranges.tolist() == [[0, 0]]
    assert on(ask.ranges("age", 4, at=[(0.0, 49.0)])).tables.ranges.tolist() == [[0, 1]]
