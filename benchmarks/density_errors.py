"""Pure densities from noisy counts of cells: the whole expected error, in closed form in two and three dimensions.

The density is 1/2 N(.3, .1^2) + 1/2 N(.7, .1^2) in each coordinate of the unit box; epsilon = 1, replace-one. Squared
bias, sampling variance and noise of the released sum of kernels are products over the coordinates: integrals in one
dimension are enough. Beside it stands the exact kernel estimate with h = 0.15 n^(-1/(d+4)), and the least error over
all numbers of cells, at this bandwidth and at any.

usage: density_errors.py; prints a table.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from tacit.curator.functions.histogram_fit import best_shape
from tacit.mechanisms import L1, Laplace

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
CENTRES, STD, POINTS = (0.3, 0.7), 0.1, 4000
CASES = ((2, 10**4), (3, 10**5))
X = (np.arange(POINTS) + 0.5) / POINTS
F = sum(norm.pdf(X, c, STD) for c in CENTRES) / 2


def exact(h: float, size: int, dimension: int) -> tuple[float, float]:
    """Variance and squared bias of the kernel estimate."""
    apart = (CENTRES[1] - CENTRES[0]) ** 2

    def inner(v: float) -> float:
        return float(((1 + math.exp(-apart / (2 * v))) / (2 * math.sqrt(2 * math.pi * v))) ** dimension)

    both, one, none = (inner(2 * STD**2 + k * h**2) for k in (2, 1, 0))
    return ((4 * math.pi) ** (-dimension / 2) / h**dimension - both) / size, both - 2 * one + none


def by_cells(h: float, cells: int, size: int, dimension: int, variance: float) -> Any:
    """Sampling variance, squared bias and noise of kernels at the centres of noisy cells."""
    edges = np.linspace(0, 1, cells + 1)
    below = sum(norm.cdf(edges, c, STD) for c in CENTRES) / 2
    below[0], below[-1] = 0.0, 1.0
    kernels = norm.pdf(X[:, None], (edges[1:] + edges[:-1]) / 2, math.sqrt(h**2 - 1 / (12 * cells**2)))
    chances, squares = np.diff(below), (kernels**2).mean(axis=0)
    mean = kernels @ chances
    met, crossed, own = ((a * b).mean() ** dimension for a, b in ((mean, mean), (mean, F), (F, F)))
    return np.array([
        ((chances @ squares) ** dimension - met) / size, met - 2 * crossed + own,
        variance * squares.sum() ** dimension / size**2,
    ])  # fmt: skip


def main() -> None:
    print("| d | n | what | bandwidth | cells | variance | squared bias | noise | in all |")
    print("|---" * 9 + "|")
    variance = float(Laplace.for_target(epsilon=1, sensitivity=L1(2)).distribution.std) ** 2
    for dimension, size in CASES:
        h = 0.15 * size ** (-1 / (dimension + 4))
        rows: list[tuple[str, float, Any, Any]] = [("exact", h, "", (*exact(h, size, dimension), 0.0))]
        shape = best_shape(size, dimension, float(f"{variance:.3g}"), (h,) * dimension)
        for what, bandwidths in (("least, this h", [h]), ("least, any h", h * np.linspace(0.7, 1.3, 61))):
            tried = [
                (sum(found), b, c, found)
                for b in bandwidths
                for c in range(math.ceil(0.3 / b), 61)
                for found in [by_cells(b, c, size, dimension, variance)]
            ]
            _, b, c, found = min(tried, key=lambda t: t[0])
            rows.append((what, b, c, found))
        chosen = shape.cells[0]
        rows.insert(1, ("tacit, this h", h, chosen, by_cells(h, chosen, size, dimension, variance)))
        for what, b, c, found in rows:
            told = " | ".join(f"{v:.5f}" for v in (*found, sum(found)))
            print(f"| {dimension} | {size:,} | {what} | {b:.4f} | {c} | {told} |", flush=True)


if __name__ == "__main__":
    main()
