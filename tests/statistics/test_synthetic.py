"""Synthetic rows: counts in proportion, declared types, margins kept, values on the grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified, TooManyCells, UnknownColumn
from tacit.noise import SeededSource
from tacit.sources import Schema, bins, category, date, flag, integer, number
from tacit.sources.axes import OpenAxis, axes_of
from tacit.statistics.families import NoisyTable, components, fit_table, junction_order, margin, whole_table
from tacit.statistics.synthetic import CountTable, synthetic_rows

SCHEMA = Schema(
    {
        "state": category(["ca", "ny", "tx"]),
        "code": category([10, 20]),
        "age": integer(0, 99),
        "cost": number(0, 8, spacing=0.25),
        "sick": flag(),
        "day": date("2020-01-01", "2020-12-31"),
        "free": category(),
    }
)
BY = ["state", "code", bins("age", 4), bins("cost", [0, 1, 8]), "sick", bins("day", 3)]


# Pairs of three columns that agree on all shared margins, and yet no row could have all three.
CROSSED = [
    ("a", "b", np.array([[1.0, 0.0], [0.0, 1.0]])),
    ("b", "c", np.array([[1.0, 0.0], [0.0, 1.0]])),
    ("a", "c", np.array([[0.0, 1.0], [1.0, 0.0]])),
]


def table(by, counts, **more):
    return CountTable(axes=axes_of(by, SCHEMA), counts=np.asarray(counts), **more)


def test_types_ranges_and_proportions():
    shape = tuple(a.size for a in axes_of(BY, SCHEMA))
    counts = np.random.default_rng(0).integers(-2, 9, shape)
    frame = synthetic_rows(table(BY, counts), schema=SCHEMA, rows=20_000, source=SeededSource(seed=1))
    assert list(frame.columns) == ["state", "code", "age", "cost", "sick", "day"]
    assert isinstance(frame["state"].dtype, pd.CategoricalDtype)
    assert frame["code"].dtype == np.int64
    assert frame["age"].dtype == np.int64
    assert frame["cost"].dtype == np.float64
    assert frame["sick"].dtype == bool
    assert frame["day"].dtype.kind == "M"
    assert frame["age"].between(0, 99).all()
    assert (frame["cost"] * 4 == np.rint(frame["cost"] * 4)).all()
    assert frame["cost"].between(0, 8).all()
    assert frame["day"].between("2020-01-01", "2020-12-31").all()
    share = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
    for i, name in enumerate(SCHEMA["state"].values):
        p = share[i].sum()
        assert abs((frame["state"] == name).mean() - p) < 5 * math.sqrt(p * (1 - p) / 20_000)
    # Uniform within a bin: every age of the second quarter, each about as often.
    quarter = frame.loc[frame["age"].between(25, 49), "age"].value_counts()
    assert len(quarter) == 25
    assert (np.abs(quarter - quarter.mean()) < 6 * math.sqrt(quarter.mean())).all()
    assert len(synthetic_rows(table(BY, counts), schema=SCHEMA, rows=0)) == 0


def test_sparse_tables_in_all_forms():
    axes = axes_of(["state", "sick"], SCHEMA)
    kwargs = {"schema": SCHEMA, "rows": 300, "source": SeededSource(seed=2)}
    flat = synthetic_rows(CountTable(axes=axes, counts=np.array([5, 1]), keys=[3, 4]), **kwargs)
    assert set(map(tuple, flat.itertuples(index=False))) == {("ny", True), ("tx", False)}
    pairs = CountTable(axes=axes, counts=np.array([5, 1]), keys=[[1, 1], [2, 0]])
    assert set(map(tuple, synthetic_rows(pairs, **kwargs).itertuples(index=False))) == {
        ("ny", True),
        ("tx", False),
    }
    words = CountTable(
        axes=(OpenAxis(column="free"),), counts=np.array([1, 2]), keys=np.array(["x", "y"], dtype=object)
    )
    assert set(synthetic_rows(words, **kwargs)["free"]) == {"x", "y"}
    wide = Schema({f"c{i}": integer(0, (1 << 20) - 1) for i in range(10)})
    key = sum(7 << (20 * i) for i in range(10))
    huge = CountTable(
        axes=tuple(a for c in wide for a in axes_of([c], wide)),
        counts=np.array([3]),
        keys=np.array([key], dtype=object),
    )
    frame = synthetic_rows(huge, schema=wide, rows=4, source=SeededSource(seed=3))
    assert (frame == 7).all().all()


def test_margins_are_kept_by_junction_trees_and_by_fitting():
    rng = np.random.default_rng(4)
    full = rng.integers(1, 30, (3, 2, 4, 2))
    names = ("state", "code", "age", "sick")
    by = {"state": "state", "code": "code", "age": bins("age", 4), "sick": "sick"}
    for sets in (
        [("state", "code"), ("code", "age"), ("age", "sick")],
        [("state", "code"), ("code", "age"), ("age", "state")],
        [("state",), ("code", "sick")],
    ):
        tables = [table([by[c] for c in s], margin(full, names, s)) for s in sets]
        frame = synthetic_rows(tables, schema=SCHEMA, rows=40_000, source=SeededSource(seed=5))
        keys = {
            "state": frame["state"].cat.codes if "state" in frame else None,
            "code": frame["code"] // 10 - 1,
            "age": frame["age"] // 25 if "age" in frame else None,
            "sick": frame["sick"].astype(int) if "sick" in frame else None,
        }
        for s, t in zip(sets, tables, strict=True):
            seen = np.zeros(t.counts.shape)
            np.add.at(seen, tuple(np.asarray(keys[c]) for c in s), 1)
            p = t.counts / t.counts.sum()
            assert (np.abs(seen / 40_000 - p) < 6 * np.sqrt(p / 40_000)).all()


def test_fitting_is_the_law_of_largest_entropy():
    """In a two-by-two-by-two table with all pairs fixed one parameter is left: entropy is maximal along it."""
    rng = np.random.default_rng(6)
    full = rng.uniform(1, 5, (2, 2, 2))
    full /= full.sum()
    names = ("a", "b", "c")
    sets = list(itertools.combinations(names, 2))
    fit = fit_table([NoisyTable(columns=s, values=margin(full, names, s)) for s in sets], tolerance=1e-12)
    assert fit.gap < 1e-10
    for s in sets:
        np.testing.assert_allclose(margin(fit.values, fit.columns, s), margin(full, names, s), atol=1e-9)
    sign = np.array([1, -1])
    free = sign[:, None, None] * sign[None, :, None] * sign[None, None, :]
    x = fit.values

    def entropy(t):
        y = x + t * free
        return -(y * np.log(y)).sum()

    assert entropy(0) > max(entropy(1e-4), entropy(-1e-4))
    chain = fit_table([NoisyTable(columns=s, values=margin(full, names, s)) for s in sets[::2]])
    product = (
        margin(full, names, "ab")[:, :, None]
        * margin(full, names, "bc")[None]
        / full.sum((0, 2))[None, :, None]
    )
    np.testing.assert_allclose(
        chain.values.transpose([chain.columns.index(c) for c in names]), product, atol=1e-9
    )


def test_junction_orders():
    assert junction_order([("a", "b"), ("b", "c"), ("a", "c")]) is None
    assert junction_order([("a", "b", "c"), ("b", "c"), ("c", "d")]) == [
        (("a", "b", "c"), ()),
        (("c", "d"), ("c",)),
    ]
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert junction_order(ring) is None
    star = junction_order([("a", "b"), ("c", "d"), ("a", "c"), ("a", "e")])
    assert star is not None
    assert [len(shared) for _, shared in star] == [0, 1, 1, 1]
    assert sorted(map(len, components([("a",), ("b", "c"), ("c", "d"), ("e",)]))) == [1, 1, 2]


def test_bad_input():
    one = table(["state"], [1, 2, 3])
    for rows in (-1, 2.5, True):
        with pytest.raises(InvalidParameter):
            synthetic_rows(one, schema=SCHEMA, rows=rows)
    with pytest.raises(EmptyComposition):
        synthetic_rows([], schema=SCHEMA, rows=1)
    with pytest.raises(EmptyComposition):
        synthetic_rows(table(["state"], [0, -2, 0]), schema=SCHEMA, rows=1)
    with pytest.raises(UnknownColumn):
        synthetic_rows(one, schema=Schema({"sick": flag()}), rows=1)
    with pytest.raises(InvalidParameter, match="shape"):
        table(["state"], [1, 2])
    with pytest.raises(InvalidParameter):
        table(["state"], [1.0, np.nan, 2.0])
    with pytest.raises(InvalidParameter, match="lie on"):
        table(["state"], [1], keys=[[3]])
    with pytest.raises(TooManyCells):
        table(["state", "sick"], [1], keys=[6])
    with pytest.raises(InvalidParameter, match="sparse"):
        synthetic_rows([one, table(["sick"], [1], keys=[1])], schema=SCHEMA, rows=1)
    with pytest.raises(InvalidParameter, match="same keys"):
        synthetic_rows(
            [table([bins("age", 2)], [1, 2]), table([bins("age", 3)], [1, 2, 3])], schema=SCHEMA, rows=1
        )
    with pytest.raises(EmptyComposition):
        CountTable(axes=(), counts=np.array(3))
    big = [NoisyTable(columns=s, values=np.ones((300, 300))) for s in (("a", "b"), ("b", "c"), ("c", "a"))]
    with pytest.raises(TooManyCells):
        fit_table(big)
    apart = [
        NoisyTable(columns=("a",), values=np.array([1.0, 0.0]), variance=0.0),
        NoisyTable(columns=("a", "b"), values=np.array([[-9.0, 9.0], [5.0, -5.0]]), variance=1.0),
    ]
    assert 0 < fit_table(apart).gap < 1
    with pytest.raises(NotCertified):
        fit_table([NoisyTable(columns=(c, d), values=v) for c, d, v in CROSSED])


def test_tables_of_what_was_asked():
    import tacit.statistics as ask
    from tacit.guarantees import rows as by_rows

    unit, source = by_rows(), SeededSource(seed=8)
    count = ask.count(by=["state", "sick"]).on(SCHEMA, unit)
    (one,) = ask.tables_of(count, {"count": np.arange(6).reshape(3, 2)})
    assert one.columns == ("state", "sick")
    pairs = ask.margins(["state", "sick"]).on(SCHEMA, unit)
    two = ask.tables_of(pairs, {"state": [1, 2, 3], "sick": [4, 2]}, variances={"state": 2.0, "sick": 2.0})
    assert [t.columns for t in two] == [("state",), ("sick",)]
    tree = ask.hierarchy("state", parents={"ca": "w", "ny": "e", "tx": "w", "w": None, "e": None}).on(
        SCHEMA, unit
    )
    named = dict(zip(tree.details["levels"][1], [10, 20, 30], strict=True))
    (leaves,) = ask.tables_of(tree, {"level 0": [5, 6], "level 1": [10, 20, 30]})
    assert leaves.counts.tolist() == [named["ca"], named["ny"], named["tx"]]
    open_ = ask.count(by="free").on(SCHEMA, unit)
    (words,) = ask.tables_of(open_, {"count": [3, 1]}, keys=[["x", "y"]])
    assert set(synthetic_rows(words, schema=SCHEMA, rows=50, source=source)["free"]) == {"x", "y"}
    sparse = ask.sparse_histogram(["state", bins("age", 4)]).on(SCHEMA, unit)
    (few,) = ask.tables_of(sparse, {"count": [3, 1]}, keys=[["ny", "tx"], [(0, 24), [75, 99]]])
    frame = synthetic_rows(few, schema=SCHEMA, rows=100, source=source)
    assert set(zip(frame["state"], frame["age"] // 25, strict=True)) == {("ny", 0), ("tx", 3)}
    packed = CountTable(axes=sparse.axes, counts=np.array([3, 1]), keys=np.array([4, 11], dtype=np.uint64))
    assert [k.tolist() for k in packed.keys] == [[1, 2], [0, 3]]
    ages = ask.sparse_histogram(["age", "sick"]).on(SCHEMA, unit)
    (years,) = ask.tables_of(ages, {"count": [3, 1]}, keys=[[33, 34], [True, False]])
    assert set(synthetic_rows(years, schema=SCHEMA, rows=60, source=source)["age"]) == {33, 34}
    with pytest.raises(InvalidParameter, match="labels"):
        ask.tables_of(sparse, {"count": [3]}, keys=[["zz"], [(0, 24)]])
    with pytest.raises(InvalidParameter):
        ask.tables_of(ask.proportion("sick").on(SCHEMA, unit), {})


@pytest.mark.parametrize("total", [0, 7, 1000, 10**9])
def test_one_whole_table_has_margins_that_agree(total):
    rng = np.random.default_rng(3)
    full = rng.uniform(0, 1, (4, 3, 5))
    names = ("a", "b", "c")
    sets = list(itertools.combinations(names, 2))
    fit = fit_table([NoisyTable(columns=s, values=margin(full, names, s)) for s in sets])
    whole = whole_table(fit, total=total)
    assert whole.min() >= 0
    assert whole.sum() == total
    for leading in (fit.columns[:1], fit.columns[:2]):
        gap = margin(whole, fit.columns, leading) - total * margin(fit.values, fit.columns, leading)
        assert np.abs(gap).max() <= 1 + 1e-6 * total
    with pytest.raises(InvalidParameter):
        whole_table(fit, total=-1)


def test_a_place_outside_of_an_only_axis_is_named_as_such():
    axes = axes_of(("state",), Schema({"state": category(["a", "b"])}))
    assert [list(k) for k in CountTable(axes=axes, counts=np.array([5, 7]), keys=np.array([1, 0])).keys] == [
        [1, 0]
    ]
    with pytest.raises(TooManyCells, match="outside"):
        CountTable(axes=axes, counts=np.array([5, 7]), keys=np.array([1, 2]))
