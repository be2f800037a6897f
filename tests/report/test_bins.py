"""Counts of bins that are not equally wide do not compare, and the page says so."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from support.views import release
from tacit.report.releases import release_section
from tacit.report.view import CellView

MONTHS = [(datetime.date(2024, m, 1), datetime.date(2024, m + 1, 1)) for m in range(1, 6)]
YEARS = [
    (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    (datetime.date(2021, 1, 1), datetime.date(2021, 4, 1)),
]


@pytest.mark.parametrize(
    ("kind", "keys", "told"),
    [
        ("count", [(0, 18), (18, 25), (25, 110)], "(x from 7 to 85)"),
        ("count", [(0.0, 0.5), (0.5, 1000.5)], "(x from 0.5 to 1,000)"),
        ("count", YEARS, "(x from 90 to 366 days)"),
        ("margins", [(0, 18), (18, 25), "all"], "(x from 7 to 18)"),
        ("count", [(0, 10), (10, 20), None], ""),
        ("count", MONTHS, ""),
        ("mean", [(0, 18), (18, 25)], ""),
        ("count", ["a", "b"], ""),
    ],
)
def test_counts_of_bins_that_are_not_equally_wide_say_so(kind: str, keys: list[Any], told: str) -> None:
    cells = [CellView(keys=(key,), value=5.0, low=1.0, high=9.0) for key in keys]
    page = str(release_section(release("x", kind, "X", cells, columns=("x",))))
    assert ("The bins are not equally wide" in page) is bool(told)
    assert told in page
