"""Cells of CSV files: columns of one type are written at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.curator import cells as spreadsheet

COLUMNS: list[Any] = [
    np.array([1.5, -0.0, 1e300]), np.array([1, -2]), np.array([True, False]), [0.1, 2.0], [1, None, True],
    ["=1+1", "a", "a", "\x1b[0m"], ["=x", 1, np.float64(0.1), None, "é"], np.array(["-a", None], dtype=object),
    np.array([0.1], dtype=np.float32), [np.int64(3), 4], (("a", 1), "b"), [],
]  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
def test_each_cell_is_what_it_is_by_itself(column: Any) -> None:
    assert spreadsheet._cells(column) == [spreadsheet._cell(value) for value in column]


def test_floats_have_their_shortest_text() -> None:
    told = spreadsheet.csv_text({"x": np.array([0.1, np.nan, -0.0]), "key": ["=a", "b", "b"]})
    assert told == "x,key\n0.1,'=a\nnan,b\n-0.0,b\n"
