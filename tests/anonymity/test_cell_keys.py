"""Cell-key perturbation, held against the statistics offices' own package."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tacit import anonymity as anon
from tacit import errors
from tacit.noise import SeededSource

# Made by cell-key-perturbation 3.1.0 (Office for National Statistics), create_perturbed_table(data, ptable,
# geog=["region"], tab_vars=["age", "sex"], record_key="record_key"): region, age, sex, count by the 10-5 rule, count
# by the p-table ((31 count + 17 key) mod 7) - 3 with threshold 0.
REFERENCE = """
a 0 f 155 159 | a 0 m 210 205 | a 1 f 105 104 | a 1 m 140 141 | a 2 f 105 102 | a 2 m 140 141 | a 3 f 105 102
a 3 m 140 142 | a 4 f 105 104 | a 4 m 140 136 | b 0 f 310 308 | b 0 m 415 419 | b 1 f 210 209 | b 1 m 275 280
b 2 f 210 207 | b 2 m 275 277 | b 3 f 205 204 | b 3 m 280 279 | b 4 f 210 210 | b 4 m 275 276
"""
ROWS = 4000


def micro() -> pa.Table:
    n = range(ROWS)
    return pa.table(
        {
            "region": [("a", "b", "c")[i * i % 3] for i in n],
            "age": [(i * 7) % 5 * (i % 11 > 0) for i in n],
            "sex": [("f", "m")[(i * i + i // 3) % 7 % 2] for i in n],
            "record_key": [(i * 7919 + 13) % 256 for i in n],
        }
    )


def mixed() -> anon.PTable:
    counts, keys = np.arange(751)[:, None], np.arange(256)[None, :]
    values = (counts * 31 + keys * 17) % 7 - 3
    values[counts[:, 0] == 0] = 0
    return anon.PTable(np.where(counts + values < 0, 0, values))


def counted(table: pa.Table) -> dict[tuple[object, ...], object]:
    return {tuple(r[c] for c in table.column_names[:-1]): r["count"] for r in table.to_pylist()}


def test_the_offices_own_values() -> None:
    by = ["region", "age", "sex"]
    given = {"by": by, "record_key": "record_key"}
    rule = counted(anon.cell_key_counts(micro(), ptable=anon.ten_five_rule(), **given))
    noise = counted(anon.cell_key_counts(micro(), ptable=mixed(), threshold=0, **given))
    lines = [entry.split() for line in REFERENCE.strip().splitlines() for entry in line.split("|")]
    assert len(lines) == len(rule) == len(noise) == 20
    for region, age, sex, first, second in lines:
        assert rule[(region, int(age), sex)] == int(first)
        assert noise[(region, int(age), sex)] == int(second)
    # Counts above 750 use the rows from 501 on again: 1714 with key 1 and 2286 with key 239.
    large = counted(anon.cell_key_counts(micro(), by=["sex"], record_key="record_key", ptable=mixed()))
    assert large == {("f",): 1714, ("m",): 2284}


def test_the_same_people_get_the_same_noise() -> None:
    """Whatever the table is called by: a cell of one table that is a cell of another."""
    table = micro().filter(pa.array([i % 3 == 0 for i in range(ROWS)]))
    alone = counted(anon.cell_key_counts(table, by=["sex"], record_key="record_key", ptable=mixed()))
    crossed = counted(
        anon.cell_key_counts(micro(), by=["region", "sex"], record_key="record_key", ptable=mixed())
    )
    assert alone[("f",)] == crossed[("a", "f")]


def test_small_counts_and_empty_cells() -> None:
    table = pa.table({"g": ["x"] * 12 + ["y"], "h": ["u"] * 12 + ["v"], "key": [3] * 13})
    found = counted(anon.cell_key_counts(table, by=["g", "h"], record_key="key", ptable=anon.ten_five_rule()))
    assert found == {("x", "u"): 10, ("x", "v"): None, ("y", "u"): None, ("y", "v"): None}


def test_entropy_tables() -> None:
    table = anon.entropy_ptable(most=3, variance=2.0)
    assert (table.values[0] == 0).all()
    for count in (3, 10, 700):
        noise = table.values[count]
        assert abs(noise.mean()) < 2 / 256 * 3
        assert noise.var() == pytest.approx(2.0, abs=0.1)
        assert np.abs(noise).max() <= 3
    assert (table.values[1] >= -1).all()
    # Of all laws on -3..3 with mean 0 and this variance the one that is found has the largest entropy: moving along
    # any direction that keeps both moments lowers it.
    from tacit.anonymity.cellkey import _law

    support = np.arange(-3, 4)
    p = _law(support, 2.0)
    entropy = -(p * np.log(p)).sum()
    basis = np.linalg.svd(np.stack([np.ones(7), support, support**2]))[2][3:]
    for direction in (*basis, *-basis):
        q = p + 1e-3 * direction
        assert -(q * np.log(q)).sum() < entropy


def test_any_name_and_any_size_of_keys() -> None:
    """Names that a query might use itself; sums of keys that no 64 bits hold."""
    keys = [2**62 + 5, 2**62 + 6, 2**62 + 7]
    made = pa.table({"__count": ["a", "a", "b"], "key": ["x", "x", "y"], "rk": keys})
    table = anon.entropy_ptable(most=3, variance=2.0)
    found = anon.cell_key_counts(made, by=["__count", "key"], record_key="rk", ptable=table, threshold=0)
    rows = {(r["__count"], r["key"]): r["count"] for r in found.to_pylist()}
    assert rows[("a", "x")] == 2 + table.values[2, (sum(keys[:2])) % table.keys]
    assert rows[("b", "y")] == 1 + table.values[1, keys[2] % table.keys]
    for bad in (None, -1):
        rest = pa.table({"g": ["a", "b"], "rk": [1, bad]})
        with pytest.raises(errors.WrongType, match="missing or negative"):
            anon.cell_key_counts(rest, by=["g"], record_key="rk", ptable=table)


def test_keys_and_refusals() -> None:
    keys = anon.record_keys(10_000, source=SeededSource(seed=1))
    assert keys.min() == 0
    assert keys.max() == 255
    # Chi-squared with 255 degrees of freedom exceeds 400 with probability 1e-8; the seed is fixed.
    assert ((np.bincount(keys) - 10_000 / 256) ** 2 / (10_000 / 256)).sum() < 400
    given = {"record_key": "record_key", "ptable": mixed()}
    with pytest.raises(errors.UnknownColumn):
        anon.cell_key_counts(micro(), by=["nope"], **given)
    with pytest.raises(errors.InvalidParameter):
        anon.cell_key_counts(micro(), by=["record_key"], **given)
    with pytest.raises(errors.WrongType):
        anon.cell_key_counts(pa.table({"g": [1, 2], "record_key": [1, None]}), by=["g"], **given)
    with pytest.raises(errors.InvalidParameter, match="negative"):
        anon.PTable(np.full((3, 4), -1))
