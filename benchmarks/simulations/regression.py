"""Regression tables at (1, 1e-6): coverage of slopes, and width beside the interval without noise."""

from __future__ import annotations

import itertools

import numpy as np
from simulate import Found, Line

from tacit.guarantees import rows
from tacit.sources import Schema, number
from tacit.statistics import regression
from tacit.statistics.regression_table import DIAGONAL, LEVELS, OFF, fitted, weighted_rows

NOISE = 4.2247
"""The noise multiplier of Gaussian noise at (1, 1e-6)."""
SPREAD, ERRORS = 0.35, 0.175
Z = 1.959963984540054
AT_ONCE = 20_000
"""Rows that are drawn in one piece."""


def line(columns: int, n: int, correlation: float, width: float) -> Line:
    """Columns of standard deviation 0.35, correlated, and an outcome around a line of them."""
    names = [f"x{k}" for k in range(columns)]
    schema = Schema({name: number(-1, 1) for name in (*names, "y")})
    asked = regression("y", on=names).on(schema, rows())
    terms, target = asked.details["terms"], asked.details["target"]
    size = columns + 2
    i, j = map(list, zip(*itertools.combinations_with_replacement(range(size), 2), strict=True))
    times = np.where(np.equal(i, j), DIAGONAL, OFF)
    scale = NOISE * float(asked.sensitivity.l2_squared) ** 0.5
    root = np.linalg.cholesky(SPREAD**2 * ((1 - correlation) * np.eye(columns) + correlation))
    slopes = np.array([0.05, *(0.25 * (-0.7) ** k for k in range(columns))])

    def run(rng: np.random.Generator, runs: int) -> Found:
        covered, widths = [], []
        for _ in range(runs):
            sums, plain = np.zeros((size, size)), np.zeros((size, size))
            for first in range(0, n, AT_ONCE):
                count = min(AT_ONCE, n - first)
                x = np.clip(rng.standard_normal((count, columns)) @ root.T, -1, 1)
                y = np.clip(slopes[0] + x @ slopes[1:] + ERRORS * rng.standard_normal(count), -1, 1)
                z = weighted_rows(
                    np.column_stack([x, y]), limit=asked.details["limit"], tau=1.0, most=asked.details["most"]
                )
                whole = np.column_stack([np.ones(count), x, y])
                sums, plain = sums + z.T @ z, plain + whole.T @ whole
            noisy = sums[i, j] * times + np.rint(scale * rng.standard_normal(len(i)))
            found = fitted(
                noisy / LEVELS**2,
                terms=terms,
                target=target,
                tau=1.0,
                variance=(scale / (OFF * LEVELS**2)) ** 2,
            )
            if np.isnan(found.coefficients).any():
                continue
            covered += list(np.abs(found.coefficients - slopes)[1:] <= Z * found.errors[1:])
            inverse = np.linalg.inv(plain[:-1, :-1])
            b = inverse @ plain[:-1, -1]
            left = (plain[-1, -1] - b @ plain[:-1, -1]) / (n - size + 1)
            widths.append(float((found.errors[1:] / np.sqrt(left * np.diag(inverse)[1:])).mean()))
        return Found(covered=np.array(covered, dtype=np.float64), width=np.array(widths))

    return Line(
        name=f"regression, {columns} columns, {n:,} rows", run=run, cover=0.94, width=width,
    )  # fmt: skip


LINES = [
    line(3, 2000, 0.0, 3.6), line(3, 5000, 0.3, 2.6), line(3, 20_000, 0.3, 1.65), line(3, 50_000, 0.3, 1.35),
    line(8, 2000, 0.0, 4.7), line(8, 5000, 0.3, 3.4), line(8, 20_000, 0.3, 1.9), line(8, 50_000, 0.3, 1.5),
]  # fmt: skip
