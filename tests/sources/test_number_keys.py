"""Keys that are whole numbers, however they are stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tacit
import tacit.statistics as ask
from tacit.guarantees import people, rows
from tacit.sources import Schema, category, open_table


@pytest.mark.parametrize("unit", [rows(), people("who", at_most=4)])
def test_floats_that_are_whole_numbers_serve_as_keys(unit):
    """A column of integers with gaps is one of floats in pandas."""
    for keys in ([1, 2, 10], ["1", "2", "10"]):
        schema = Schema({"k": category(keys)})
        for values in ([1.0, 2.0, None, 10.0, 1.5], [1, 2, None, 10, 3]):
            table = pd.DataFrame({"who": list("abcde"), "k": pd.Series(values, dtype="float64")})
            with open_table(table, schema=schema, unit=unit) as opened:
                (found,) = ask.read(
                    opened, [ask.count(by="k").on(schema, unit)], key=b"0123456789abcdef-secret"
                )
            assert np.ravel(next(iter(found.values()))).tolist() == [1, 1, 1]


def test_keys_sort_as_numbers():
    """Each by itself: the order of two keys depends on no third one."""
    from tacit.curator.selected import _rank

    keys = ["10", "2", "-1", "b", "a", "02", "1.5", "²"]
    assert sorted(keys, key=_rank) == ["-1", "02", "2", "10", "1.5", "a", "b", "²"]
    table = pd.DataFrame({"k": [str(v) for v in (10, 2, 1) for _ in range(300)]})
    with tacit.Curator(
        table, protect=rows(), schema={"k": category()}, budget=tacit.Approximate(epsilon=9, delta=1e-3)
    ) as survey:
        assert list(survey.release(tacit.count(by="k"), epsilon=8, delta=1e-4).columns["k"]) == [
            "1",
            "2",
            "10",
        ]
