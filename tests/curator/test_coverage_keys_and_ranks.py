"""Quantiles and unknown keys on the real tables: intervals hold in at least 94% of 2,000 releases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit.statistics as ask
from support.shared import shared
from tacit.curator.assignments import NoisyParts
from tacit.curator.charging import price
from tacit.curator.planning import choose
from tacit.curator.quantile_choice import SelectedRanks, SparseRanks
from tacit.curator.selected import Selected, assign_ranks, selected_intervals
from tacit.noise.source import SeededSource
from tacit.sources import Schema, category, open_table
from tacit.statistics.quantiles import fine_column, histograms, range_edges, step_at

from .test_coverage import KEY, TABLES, UNITS, unit_of

SHARES = (0.1, 0.5, 0.9)
RELEASES = 2000
LEVEL = Fraction(95, 100)
CASES = [(n, u) for n in TABLES for u in UNITS if "people" not in u or TABLES[n].person is not None]


def cells_of(name: str, unit_name: str, make: Any, asked: Any = lambda q: q, **other: Any) -> tuple[Any, Any]:
    """A question on a real table with its true aggregates."""
    table = TABLES[name]
    path = shared(table.path)
    schema, unit = Schema({**table.schema, **other}), unit_of(table, unit_name)
    question = asked(make(table).on(schema, unit))
    data = path if path.suffix == ".parquet" else pd.read_csv(path)
    with open_table(data, schema=schema, unit=unit) as opened:
        return question, ask.read_cells(opened, [question], key=KEY)[0]


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_quantiles(name: str, unit: str) -> None:
    """Laplace and Gaussian ranks take turns; the seed is fixed."""
    question, cells = cells_of(name, unit, lambda t: ask.quantiles(t.value, at=SHARES, resolution=256))
    paid = {"epsilon": 0.5, "delta": 1e-6} if UNITS.index(unit) % 2 else {"epsilon": 0.5}
    how = assign_ranks(question, price(**paid))
    counts = np.asarray(question.integers(cells)["counts"])
    released = how.mechanism.release(
        np.broadcast_to(counts, (RELEASES, counts.size)), source=SeededSource(seed=9)
    )
    found = how.read(question, NoisyParts(parts={"below": released.below}), LEVEL)
    edges, below = range_edges(question, counts.shape[-1]), np.cumsum(counts)
    for j, share in enumerate(SHARES):
        # The first bin up to which at least this share of the rows lies.
        place = next(
            k for k, b in enumerate(below) if Fraction(int(b)) >= Fraction(repr(share)) * int(below[-1])
        )
        held = (found.low[:, j] <= edges[place]) & (edges[place + 1] <= found.high[:, j])
        assert held.mean() >= 0.94, share


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_selected_quantiles(name: str, unit: str) -> None:
    """What the plain question gets: choices, and counts around them; the seed is fixed."""
    table = TABLES[name]
    plain = ask.quantiles(table.value, at=SHARES).on(Schema(table.schema), unit_of(table, unit))
    how = choose(plain, price(epsilon=0.5))
    assert isinstance(how, SelectedRanks)
    question, cells = cells_of(name, unit, lambda t: ask.quantiles(t.value, at=SHARES), how.asked)
    if isinstance(how, SparseRanks):
        ((at, counts),) = histograms(question, cells)
    else:
        counts = np.asarray(question.integers(cells)["counts"])
        at = np.arange(counts.size)
    source, runs, below = SeededSource(seed=9), 300, np.cumsum(counts)
    found = [how.read(question, how.run(question, cells, source=source), LEVEL) for _ in range(runs)]
    bins = how.selection.bins
    spacing = float(fine_column(question.schema.measured(table.value), bins).spacing)
    for j, share in enumerate(SHARES):
        place = int(
            at[next(k for k, b in enumerate(below) if int(b) >= Fraction(repr(share)) * int(below[-1]))]
        )
        first, behind = step_at(question, bins, np.array([place, place + 1])) * spacing
        held = [(f.low[j] <= first) and (behind - spacing <= f.high[j]) for f in found]
        assert np.mean(held) >= 0.93, share
        assert all(f.low[j] <= f.value[j] <= f.high[j] for f in found)
    assert all((np.diff(f.value) >= 0).all() for f in found)


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_unknown_keys(name: str, unit: str) -> None:
    """Counts of the supporting units, given that a key was named; keys that are named at least 400 times."""
    of = "people" if "people" in unit else "rows"
    group = TABLES[name].group
    question, cells = cells_of(name, unit, lambda t: ask.count(by=t.group, of=of), **{group: category()})
    how = choose(question, price(epsilon=0.5, delta=1e-6))
    assert isinstance(how, Selected)
    assert question.support is not None
    supports = np.asarray(cells[0].values[question.support])
    named = 0
    for i, support in enumerate(supports[supports > 0]):
        kept = how.selection.release_counts(np.full(RELEASES, support), source=SeededSource(seed=i))
        counts = np.asarray(kept.counts)[kept.mask]
        if counts.size < 400:
            continue
        low, high = selected_intervals(how.selection, counts, 0.025)
        assert ((low <= support) & (support <= high)).mean() >= 0.93 + 0.01 * (counts.size > 1000)
        named += 1
    assert named
