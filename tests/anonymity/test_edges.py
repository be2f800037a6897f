"""Equality at a threshold, keys that follow from nothing, and one distance in the search and in the check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit import anonymity as anon
from tacit.anonymity.search import Criteria
from tacit.anonymity.treatments.methods import Draws
from tacit.noise import SeededSource
from tacit.sources.microdata import open_microdata


@pytest.mark.parametrize(("commonest", "found"), [(5, 2), (6, 1), (7, 1), (8, 1)])
def test_recursive_diversity_does_not_hold_at_equality(commonest: int, found: int) -> None:
    """Counts (r, 3), c = 2: l = 2 needs r < 2 * 3, and l = 1 needs r < 2 (r + 3)."""
    rows = pa.table({"q": ["x"] * (commonest + 3), "s": ["flu"] * commonest + ["cold"] * 3})
    classes = anon.Classes(open_microdata(rows), ("q",), "s")
    assert anon.recursive_diversity(classes, c=2.0) == found


def test_record_keys_do_not_follow_from_the_order_of_rows() -> None:
    """Neighbouring rows have unrelated keys, another source other keys; each key is about as frequent as the next."""
    keys = [anon.record_keys(20_000, keys=16, source=SeededSource(seed=s)) for s in (1, 2)]
    for one in keys:
        assert one.min() == 0
        assert one.max() == 15
        # Each count is binomial(20000, 1/16): 6.5 standard deviations are 223.
        assert np.abs(np.bincount(one, minlength=16) - 1250).max() < 223
        steps = np.bincount((np.diff(one)) % 16, minlength=16)
        assert np.abs(steps - 1250).max() < 223, "a key does not tell the next"
    assert 1000 < (keys[0] == keys[1]).sum() < 1500


@pytest.mark.parametrize("values", [2, 3, 7])
def test_ordered_distance_is_the_same_in_the_search_and_in_the_check(values: int) -> None:
    """Half of the rows have the lowest value in one class, half the highest in the other: m - 1 steps of share 1/2.

    The ordered distance of a class at one end from the whole table is 1/2 by its definition (Li et al. 2007).
    """
    scores = [1.0] * 4 + [float(v) for v in range(2, values)] * 2 + [float(values)] * 4
    middle = len(scores) - 8
    towns = ["a"] * 4 + ["a", "b"] * (middle // 2) + ["b"] * 4
    rows = pa.table({"q": towns, "s": scores})
    checked = anon.closeness(anon.Classes(open_microdata(rows), ("q",), "s"), distance="ordered")
    codes = np.array([int(s) - 1 for s in scores])
    groups = np.array([0 if t == "a" else 1 for t in towns])
    shares = np.bincount(codes, minlength=values) / len(codes)
    counts = np.ones(len(codes), dtype=np.int64)
    for t, bad in ((checked - 1e-6, True), (checked + 1e-6, False)):
        criteria = Criteria(t=t, distance="ordered", shares=shares)
        assert bool(criteria.violated(groups, codes, counts).any()) is bad, (t, checked)
    if values == 2:
        assert checked == pytest.approx(0.5)


def test_a_sample_is_in_random_order() -> None:
    """Places of the sample do not grow with places in the table: a run of 60 rising ones has chance 1/60!."""
    table = pa.table({"x": np.arange(240)})
    made: Any = anon.Sample(share=0.25).apply(table, Draws(SeededSource(seed=4)))
    places = made["x"].to_numpy()
    assert len(set(places.tolist())) == 60
    falls = int((np.diff(places) < 0).sum())
    assert 10 < falls < 49
