"""Pure densities from noisy counts of cells: the whole expected error, in closed form in one to three dimensions.

Squared bias, sampling variance and noise of a released sum of kernels are products over the coordinates: integrals in
one dimension are enough. epsilon = 1, replace-one. Nothing is cut at 0 here.

The first table: 1/2 N(.3, .1^2) + 1/2 N(.7, .1^2) in each coordinate of the unit box. The exact kernel estimate with
h = 0.15 n^(-1/(d+4)), tacit with this bandwidth declared and left out, and the least error of kernels of order two.
The second table: other densities, the error with no bandwidth declared over that of the best kernel of order two.

usage: density_errors.py; prints two tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import betainc
from scipy.stats import norm

import tacit
from tacit.curator.functions.histogram_fit import KERNELS, best_shape, histogram_fit
from tacit.mechanisms import L1, Laplace

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
CENTRES, STD, POINTS = (0.3, 0.7), 0.1, 2000
CASES = ((2, 10**4), (3, 10**5))
X = (np.arange(POINTS) + 0.5) / POINTS
SHIFTS = (0.0, 0.011, 0.023, 0.037)
"""Narrow densities are moved by these, and their errors averaged: none profits from the places of the cells."""

Below = Callable[[Any], Any]


def normals(*parts: tuple[float, float, float]) -> Below:
    """The distribution function of a mixture of (weight, mean, standard deviation)."""
    return lambda x: sum(w * norm.cdf(x, m, s) for w, m, s in parts)


def moved(by: float) -> dict[str, Below]:
    """Narrow densities, moved."""
    claw = ((0.1, 0.29 + 0.1 * k + by, 0.02) for k in range(5))
    return {
        "N(.35, .06²)": normals((1, 0.35 + by, 0.06)),
        "uniform on a half": lambda x: np.clip((x - 0.22 - by) / 0.5, 0, 1),
        "a peak of .02": lambda x: 0.7 * betainc(2, 2, x) + 0.3 * norm.cdf(x, 0.39 + by, 0.02),
        "log-normal": lambda x: norm.cdf((np.log(np.maximum(x, 1e-12)) - math.log(0.14 + by)) / 0.6),
        "claw": normals((0.5, 0.5, 0.15), *claw),
    }


SHAPES: dict[str, list[Below]] = {
    "mixture": [normals(*((0.5, c, STD) for c in CENTRES))],
    "N(.5, .15²)": [normals((1, 0.5, 0.15))],
    "Beta(2, 5)": [lambda x: betainc(2, 5, x)],
    "uniform": [lambda x: np.clip(x, 0, 1)],
    "exponential": [lambda x: -np.expm1(-6 * x) / -np.expm1(-6)],
    **{name: [moved(by)[name] for by in SHIFTS] for name in moved(0)},
}


def exact(h: float, size: int, dimension: int) -> tuple[float, float]:
    """Variance and squared bias of the kernel estimate of the mixture."""
    apart = (CENTRES[1] - CENTRES[0]) ** 2

    def inner(v: float) -> float:
        return float(((1 + math.exp(-apart / (2 * v))) / (2 * math.sqrt(2 * math.pi * v))) ** dimension)

    both, one, none = (inner(2 * STD**2 + k * h**2) for k in (2, 1, 0))
    return ((4 * math.pi) ** (-dimension / 2) / h**dimension - both) / size, both - 2 * one + none


def by_cells(
    shape: Below, h: float, cells: int, size: int, dimension: int, variance: float, order: int = 2
) -> Any:
    """Sampling variance, squared bias and noise of kernels at the centres of noisy cells."""
    edges = np.linspace(0, 1, cells + 1)
    below = np.asarray(shape(edges), dtype=float)
    below[0], below[-1] = 0.0, 1.0
    true = np.diff(shape(np.linspace(0, 1, POINTS + 1))) * POINTS
    chances, centres = np.diff(below), (edges[1:] + edges[:-1]) / 2
    weights = [a for a, _ in KERNELS[order]]
    kernels = [
        norm.pdf(X[:, None], centres, math.sqrt(times * h**2 - 1 / (12 * cells**2)))
        for _, times in KERNELS[order]
    ]
    means = [k @ chances for k in kernels]
    own, crossed = (true @ true / POINTS) ** dimension, 0.0
    met = shared = noise = 0.0
    for a, k, mean in zip(weights, kernels, means, strict=True):
        crossed += a * (mean @ true / POINTS) ** dimension
        for b, m, other in zip(weights, kernels, means, strict=True):
            squares = (k * m).mean(axis=0)
            met += a * b * (mean @ other / POINTS) ** dimension
            shared += a * b * (chances @ squares) ** dimension
            noise += a * b * squares.sum() ** dimension
    return np.array([(shared - met) / size, met - 2 * crossed + own, variance * noise / size**2])


def by_default(size: int, dimension: int) -> tuple[float, int]:
    """Bandwidth and cells of the curator's density where no bandwidth is declared."""
    names = ["a", "b", "c"][:dimension]
    schema = tacit.Schema({k: tacit.number(0, 1) for k in names})
    question = tacit.density(names, size=size).on(schema, tacit.rows(neighbours="replace-one"))
    fit = histogram_fit(question, Fraction(1))
    return fit.bandwidths[0], fit.cells[0]


def mixtures(variance: float) -> None:
    """The first table."""
    mixture = SHAPES["mixture"][0]
    print("| d | n | what | bandwidth | cells | variance | squared bias | noise | in all |")
    print("|---" * 9 + "|")
    for dimension, size in CASES:
        h = 0.15 * size ** (-1 / (dimension + 4))
        rows: list[tuple[str, float, Any, Any]] = [("exact", h, "", (*exact(h, size, dimension), 0.0))]
        chosen = best_shape(size, dimension, float(f"{variance:.3g}"), (h,) * dimension).cells[0]
        found = by_cells(mixture, h, chosen, size, dimension, variance)
        rows.append(("tacit, this h", h, chosen, found))
        free, chosen = by_default(size, dimension)
        found = by_cells(mixture, free, chosen, size, dimension, variance, 4)
        rows.append(("tacit, none declared", free, chosen, found))
        for what, bandwidths in (("least, this h", [h]), ("least, any h", h * np.linspace(0.7, 1.3, 61))):
            tried = [
                (sum(found), b, c, found)
                for b in bandwidths
                for c in range(math.ceil(0.3 / b), 41)
                for found in [by_cells(mixture, b, c, size, dimension, variance)]
            ]
            _, b, c, found = min(tried, key=lambda t: t[0])
            rows.append((what, b, c, found))
        for what, b, c, found in rows:
            told = " | ".join(f"{v:.5f}" for v in (*found, sum(found)))
            print(f"| {dimension} | {size:,} | {what} | {b:.4f} | {c} | {told} |", flush=True)


def shapes(variance: float) -> None:
    """The second table."""
    print("\n| density, in each coordinate | " + " | ".join(f"d = {d}" for d in (1, 2, 3)) + " |")
    print("|---" * 4 + "|")
    sizes = {1: (10**3, 10**4, 10**5), 2: (10**3, 10**4, 10**5), 3: (10**4, 10**5, 10**6)}
    for name, members in SHAPES.items():
        told = []
        for dimension, each in sizes.items():
            ratios = []
            for size in each:
                two = best_shape(size, dimension, float(f"{variance:.3g}"), None)
                h, cells = by_default(size, dimension)
                first, second = (
                    sum(by_cells(m, *at, size, dimension, variance, order).sum() for m in members)
                    for at, order in (((two.bandwidths[0], two.cells[0]), 2), ((h, cells), 4))
                )
                ratios.append(f"{second / first:.2f}")
            told.append(", ".join(ratios))
        print(f"| {name} | " + " | ".join(told) + " |", flush=True)


def main() -> None:
    variance = float(Laplace.for_target(epsilon=1, sensitivity=L1(2)).distribution.std) ** 2
    mixtures(variance)
    shapes(variance)


if __name__ == "__main__":
    main()
