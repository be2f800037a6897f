"""The lectures' tables and formulas, from their definitions."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from tacit.reproduce import lectures, reproduction


def test_the_tables_are_those_of_the_lecture() -> None:
    """k by counting; the conditions of each class by hand."""
    for table, k in ((lectures.FIRST, 4), (lectures.SECOND, 6)):
        rows = list(zip(*(table[c] for c in ("zip", "age", "nationality")), strict=True))
        assert min(Counter(rows).values()) == k == lectures.smallest_class(table)
        assert len(table["condition"]) == 12
    assert lectures.left_by(lectures.FIRST, 28) == {"AIDS", "Heart Disease", "Viral Infection"}
    assert lectures.left_by(lectures.FIRST, 34) == {"Cancer"}
    assert lectures.left_by(lectures.SECOND, 28) == {"AIDS", "Tuberculosis", "Flu", "Cancer"}
    both = dict((r[0], r[4]) for r in reproduction("lecture-2.2").make().rows)  # noqa: C402
    assert both[28] == "AIDS"
    assert both[45] == "Cancer, Viral Infection"


def test_sigma_by_each_theorem() -> None:
    """The lecture's formulas written anew; the exact one by the curve of two normal laws."""
    made = reproduction("lecture-7").make()
    for k, advanced, renyi, zcdp, exact in made.rows:
        assert advanced == pytest.approx(math.sqrt(16 * k * math.log(2.5 * k / 1e-5) * math.log(2e5)))
        assert renyi == pytest.approx(math.sqrt(k * (2 * math.log(1e5) + 1)))
        mu = math.sqrt(k) / exact
        assert norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu) == pytest.approx(
            1e-5, rel=1e-6
        )
        assert exact < zcdp < renyi < advanced
    rho = made.rows[0][3] ** -2 / 2
    a = np.linspace(1.001, 60, 400_000)
    best = (np.exp((a - 1) * (a * rho - 1)) / (a - 1) * (1 - 1 / a) ** a).min()
    assert best == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize("name", ["lecture-2.1", "lecture-2.2", "lecture-7"])
def test_they_draw(name: str) -> None:
    made = reproduction(name).make()
    assert made.draw is not None
    figure = made.draw()
    assert figure.axes
