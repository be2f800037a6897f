"""Families of tables: least squares against a dense solver, whole tables that agree, exact ones kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.statistics.families import NoisyTable, consistent_margins, integer_margins, margin

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4}
FAMILIES = [
    [("a",), ("b",), ("c",)],
    [("a", "b"), ("b", "c"), ("a", "c")],
    [("a", "b"), ("b", "c"), ("c", "d"), ("b",), ()],
    [("b", "a"), ("d", "c", "a")],
    [("a", "b", "c"), ("b", "c", "d"), ("d",)],
]


def noisy_family(sets, rng, spread=3.0, exact=()):
    full = rng.integers(0, 4, tuple(SIZES.values()))
    tables = []
    for s in sets:
        true = margin(full, tuple(SIZES), s)
        v = 0.0 if s in exact else float(rng.uniform(0.5, spread))
        noise = np.rint(rng.normal(0, 2, true.shape)) if v else 0
        tables.append(NoisyTable(columns=s, values=true + noise, variance=v))
    return full, tables


def agree(sets, tables, tolerance=1e-8):
    for (s, x), (t, y) in itertools.combinations(list(zip(sets, tables, strict=True)), 2):
        shared = tuple(sorted(set(s) & set(t)))
        np.testing.assert_allclose(margin(x, s, shared), margin(y, t, shared), atol=tolerance)


def dense(sets, tables):
    """Minimum over full tables of the weighted squares, by lstsq."""
    cells = int(np.prod(list(SIZES.values())))
    rows, right = [], []
    for s, t in zip(sets, tables, strict=True):
        eye = np.eye(cells).reshape(cells, *SIZES.values())
        block = np.stack([margin(e, tuple(SIZES), s).ravel() for e in eye], axis=1)
        rows.append(block / np.sqrt(t.variance))
        right.append(t.values.ravel() / np.sqrt(t.variance))
    x = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0].reshape(tuple(SIZES.values()))
    return [margin(x, tuple(SIZES), s) for s in sets]


@pytest.mark.parametrize("sets", FAMILIES, ids=str)
def test_the_closed_form_is_generalised_least_squares(sets):
    _, tables = noisy_family(sets, np.random.default_rng(1))
    found = consistent_margins(tables)
    agree(sets, found)
    for x, y in zip(found, dense(sets, tables), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-8)


@pytest.mark.parametrize("sets", FAMILIES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_whole_tables_agree_and_valid_families_stay(sets, seed):
    full, tables = noisy_family(sets, np.random.default_rng(seed))
    n = int(full.sum())
    try:
        found = integer_margins(tables, total=n)
    except NotCertified:
        assert any(len(s) > 2 for s in sets)
        return
    agree(sets, found, 0)
    assert all(int(x.sum()) == n and x.min() >= 0 for x in found)
    for rounds in (found, [margin(full, tuple(SIZES), s) for s in sets]):
        valid = [NoisyTable(columns=s, values=x, variance=1.0) for s, x in zip(sets, rounds, strict=True)]
        for x, y in zip(integer_margins(valid, total=n), rounds, strict=True):
            np.testing.assert_array_equal(x, y)
        for x, y in zip(integer_margins(valid), rounds, strict=True):
            np.testing.assert_array_equal(x, y)


def test_exact_tables_are_kept_and_bind_the_others():
    sets = [("a", "b"), ("b", "c"), ("b",)]
    full, tables = noisy_family(sets, np.random.default_rng(5), exact=[("b",)])
    real, whole = consistent_margins(tables), integer_margins(tables)
    truth = margin(full, tuple(SIZES), ("b",))
    for found in (real, whole):
        np.testing.assert_allclose(found[2], truth, atol=1e-9)
        np.testing.assert_allclose(margin(found[0], ("a", "b"), ("b",)), truth, atol=1e-9)
        np.testing.assert_allclose(margin(found[1], ("b", "c"), ("b",)), truth, atol=1e-9)


def test_a_two_way_table_between_fixed_margins_is_the_nearest():
    """Brute force over all tables with these margins: the transportation program is the true minimum."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        full = rng.integers(0, 4, (2, 3))
        z = full + rng.integers(-3, 4, (2, 3))
        tables = [
            NoisyTable(columns=("a",), values=full.sum(1), variance=0.0),
            NoisyTable(columns=("b",), values=full.sum(0), variance=0.0),
            NoisyTable(columns=("a", "b"), values=z, variance=1.0),
        ]
        found = integer_margins(tables)[2]
        fit = consistent_margins(tables)[2]
        rows = [r for r in itertools.product(range(12), repeat=3) if sum(r) == full[0].sum()]
        costs = [
            np.abs(np.array([r, full.sum(0) - r]) - fit).sum()
            for r in map(np.array, rows)
            if (full.sum(0) >= r).all()
        ]
        assert np.abs(found - fit).sum() == pytest.approx(min(costs), abs=1e-5)


def test_bad_input():
    with pytest.raises(EmptyComposition):
        consistent_margins([])
    one = NoisyTable(columns=("a",), values=np.array([1, 2]), variance=0.0)
    with pytest.raises(InvalidParameter, match="same keys"):
        consistent_margins([one, NoisyTable(columns=("a", "b"), values=np.ones((3, 2)))])
    with pytest.raises(InvalidParameter, match="agree"):
        consistent_margins([one, NoisyTable(columns=("a",), values=np.array([2, 2]), variance=0.0)])
    with pytest.raises(InvalidParameter, match="agree"):
        integer_margins([one], total=5)
    with pytest.raises(InvalidParameter):
        NoisyTable(columns=("a", "a"), values=np.ones((2, 2)))
    with pytest.raises(InvalidParameter):
        NoisyTable(columns=("a",), values=np.ones((2, 2)))
    with pytest.raises(InvalidParameter):
        NoisyTable(columns=("a",), values=np.ones(2), variance=-1)
    with pytest.raises(InvalidParameter):
        integer_margins([one], total=-1)


def test_a_table_of_many_columns_costs_only_what_is_shared():
    rng = np.random.default_rng(2)
    names = tuple(f"c{i}" for i in range(20))
    wide = NoisyTable(columns=names, values=rng.integers(-1, 3, (2,) * 20), variance=2.0)
    pair = NoisyTable(columns=("c3", "c17"), values=np.array([[9, 8], [7, 6]]) * 30_000, variance=2.0)
    real = consistent_margins([wide, pair])
    np.testing.assert_allclose(margin(real[0], names, ("c3", "c17")), real[1], rtol=1e-9)
    whole = integer_margins([wide, pair], total=900_000)
    np.testing.assert_array_equal(margin(whole[0], names, ("c3", "c17")), whole[1])
    assert whole[0].min() >= 0
    assert int(whole[1].sum()) == 900_000
