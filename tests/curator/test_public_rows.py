"""Means and proportions over a public number of rows: their error, their lower bound, and what the preview says."""

from __future__ import annotations

import math

import numpy as np
import pyarrow
import pytest

import tacit
from tacit.curator.intervals import PUBLIC_ROWS, Expected
from tacit.risk.releases import release_price

ROWS, EPSILON = 10_000, 0.1
TABLE = pyarrow.table({"yes": [True, False] * 10, "age": [30, 50] * 10})


def previewed(
    missing: bool | None, *, rows: int | None = ROWS, of: str = "yes", by: str | None = None
) -> Expected:
    ages = tacit.integer(0, 100, missing=None if missing is None else 0)
    schema = {"yes": tacit.flag(missing=missing), "age": ages}
    asked = tacit.mean("age") if of == "age" else tacit.proportion(of, by=by)
    protect = tacit.rows(neighbours="replace-one")
    with tacit.Curator(TABLE, protect=protect, schema=schema, budget=tacit.Pure(epsilon=1)) as curator:
        return curator.preview(asked, epsilon=EPSILON, rows=rows).releases[0].expected


def laplace(epsilon: float, reach: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Discrete Laplace noise from its definition: Pr[k] proportional to e^(-epsilon |k|)."""
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-epsilon * np.abs(k))
    return k, weights / weights.sum()


def test_the_error_is_that_of_the_sum_divided_by_the_rows() -> None:
    """Lecture 2's average query: 10,000 rows, epsilon = 0.1, a share of .3. About .0016 with a noisy divisor."""
    k, weights = laplace(EPSILON)
    public = previewed(False)
    assert public.mean == pytest.approx(float((np.abs(k) * weights).sum()) / ROWS, rel=1e-9)
    assert public.mean == pytest.approx(0.00100, abs=4e-6)
    x = np.random.default_rng(5).laplace(scale=2 / EPSILON, size=(2, 400_000))
    noisy = float(np.abs(0.7 * x[0] - 0.3 * x[1]).mean()) / ROWS
    assert noisy == pytest.approx(0.00158, abs=2e-5)


def test_the_lower_bound_is_that_of_the_count_divided_by_the_rows() -> None:
    found = previewed(False)
    count = release_price(
        "count", error=100.0, epsilon=0.1, neighbours=tacit.rows(neighbours="replace-one").neighbours, n=ROWS
    )
    assert count.lower_bound is not None
    assert found.floor == pytest.approx(count.lower_bound / ROWS, rel=1e-9)
    assert found.mean is not None
    # No mechanism for a count errs less than 1/sinh(epsilon) in the worst case, as n grows.
    assert found.floor <= 1 / math.sinh(EPSILON) / ROWS <= found.mean * 1.001
    assert found.floor_record["ratio"] < 1.01
    assert "divided by 10,000 rows" in found.floor_reason
    mean = previewed(False, of="age")
    assert mean.floor == pytest.approx(100 * found.floor, rel=1e-9)
    assert previewed(False, rows=None).floor is None


def test_the_preview_says_how_to_lose_the_noise_of_the_divisor() -> None:
    assert PUBLIC_ROWS in previewed(None).about
    assert PUBLIC_ROWS in previewed(None, of="age").about
    assert PUBLIC_ROWS not in previewed(False).about
    protect = tacit.rows(neighbours="add-or-remove")
    with tacit.Curator(
        TABLE, protect=protect, schema={"yes": tacit.flag()}, budget=tacit.Pure(epsilon=1)
    ) as curator:
        told = curator.preview(tacit.proportion("yes"), epsilon=EPSILON, rows=ROWS).releases[0].expected
    assert PUBLIC_ROWS not in told.about
    assert told.floor is None


def test_computational_definitions_are_read_as_the_pages_write_them() -> None:
    for word in ("SIM", "sim", "SIM-CDP", " Sim "):
        made = tacit.guarantees.BoundedAdversary(assumption="AES", advantage=1e-9, definition=word)
        assert made.definition is tacit.guarantees.Indistinguishability.SIM
    made = tacit.guarantees.BoundedAdversary(assumption="AES", advantage=1e-9, definition="IND")
    assert made.definition is tacit.guarantees.Indistinguishability.IND
    with pytest.raises(tacit.errors.UnknownName):
        tacit.guarantees.BoundedAdversary(assumption="AES", advantage=1e-9, definition="SIMPLE")
