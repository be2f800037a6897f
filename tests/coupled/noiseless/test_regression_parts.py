"""regression-parts: boxes below the law of a row's products, by integrals of the definition; parts cost their worst."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.coupled.noiseless.regression import Design, RowDensity, density, exact_regression

NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)


def cumulative(law: RowDensity) -> Callable[[np.ndarray], np.ndarray]:
    """Pr[law <= x] of the part between its ends: what sits on the ends is left out."""

    def inside(x: np.ndarray) -> np.ndarray:
        z = np.clip(x, -law.half, law.half)
        if law.kind == "uniform":
            return z / (2 * law.half)
        if law.kind == "normal":
            return np.asarray(ndtr(z / law.scale))
        return np.where(
            z < 0, np.exp(np.minimum(z, 0) / law.scale) / 2, 1 - np.exp(-np.maximum(z, 0) / law.scale) / 2
        )

    return inside


def nodes(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    return (high - low) / 2 * NODES + (low + high) / 2, (high - low) / 2 * WEIGHTS


def probability(
    design: Design, part: int, slopes: tuple[float, ...], level: float, cell: list[tuple[float, float]]
) -> float:
    """Pr[the products of a row lie in the cell], h = level + slopes g + error, by integrating over g: no density of a
    product and no determinant is used."""
    d = design.dimension
    last = cumulative(design.error)
    total = 0.0
    for sign in (1.0,) if part == 0 else (1.0, -1.0):
        if part == 0:
            own = 0
            grid, weight = nodes(*cell[0])
        else:
            own = part - 1
            low, high = cell[own]
            grid, weight = nodes(math.sqrt(low), math.sqrt(high))
            grid = sign * grid
        for g, w in zip(grid, weight, strict=True):
            factor = 1.0 if part == 0 else g
            density_ = float(design.regressors[own].at(np.array(g))) * w

            def ends(j: int, factor: float = factor) -> tuple[float, float]:
                a, b = (v / factor for v in cell[j])
                return min(a, b), max(a, b)

            others = [j for j in range(d) if j != own]
            if others:
                (other,) = others
                x, v = nodes(*ends(other))
                density_other = design.regressors[other].at(x) * v
            else:
                x, density_other = np.zeros(1), np.ones(1)
            middle = level + slopes[own] * g + (slopes[others[0]] * x if others else 0.0)
            low, high = ends(d)
            total += density_ * float((density_other * (last(high - middle) - last(low - middle))).sum())
    return total


CASES = [
    (("uniform(-1, 1)",), "uniform(-1, 1)", (0.5,), 0),
    (("uniform(-1, 1)",), "uniform(-1, 1)", (0.5,), 1),
    (("normal(0, 1, clamp=(-2.5, 2.5))",), "laplace(0, 1, clamp=(-4, 4))", (0.7,), 1),
    (("uniform(-1, 1)", "normal(0, 1, clamp=(-3, 3))"), "normal(0, 1, clamp=(-4, 4))", (0.4, 0.3), 0),
    (("uniform(-1, 1)", "normal(0, 1, clamp=(-3, 3))"), "normal(0, 1, clamp=(-4, 4))", (0.4, 0.3), 2),
]


@pytest.mark.parametrize(("regressors", "error", "slopes", "part"), CASES)
def test_no_part_of_a_box_is_emptier_than_claimed(
    regressors: tuple[str, ...], error: str, slopes: tuple[float, ...], part: int
) -> None:
    """Slopes and constant at and within their bounds, the best box and a smaller one, cut into cells; somewhere the
    claim is within a factor of three of the truth."""
    design = Design(
        regressors=tuple(map(density, regressors)), error=density(error), slopes=slopes, level=0.1
    )
    best = design.best_box(part)
    narrow = [(a + (b - a) / 4, b - (b - a) / 4) for a, b in best.intervals]
    loosest = math.inf
    for box in (best, design.box(part, narrow)):
        pieces = 4 if len(slopes) == 1 else 3
        sides = [
            [(a + (b - a) * i / pieces, a + (b - a) * (i + 1) / pieces) for i in range(pieces)]
            for a, b in box.intervals
        ]
        for signs in itertools.product((-1, 0.3, 1), repeat=len(slopes) + 1):
            true = tuple(s * b for s, b in zip(signs, slopes, strict=False))
            for cell in itertools.product(*sides):
                claimed = box.height * math.prod(b - a for a, b in cell)
                found = probability(design, part, true, signs[-1] * 0.1, list(cell))
                assert found >= claimed * (1 - 1e-6)
                loosest = min(loosest, found / claimed)
    assert loosest < 3


def test_the_prism_holds_whole_cells_of_the_grid_only() -> None:
    """(3): its mass is height times the cells, each of them in the box; never more than the box itself has."""
    design = Design(
        regressors=(density("uniform(-1, 1)"),), error=density("uniform(-1, 1)"), slopes=(0.5,), points=40
    )
    for part in (0, 1):
        box = design.best_box(part)
        prism, steps = design.prism(part, box), design.steps(part)
        assert all(
            (n + 1e-9) * s <= b - a + 1e-9
            for n, s, (a, b) in zip(prism.points, steps, box.intervals, strict=True)
        )
        volume = math.prod(n * s for n, s in zip(prism.points, steps, strict=True))
        assert float(prism.mass) == pytest.approx(box.height * volume, rel=1e-6)
        # every recorded value is the middle of its cell: a point of the prism is hit with the cell's probability
        low = [a for a, _ in box.intervals]
        lows = design.lows(part)
        first = [
            math.ceil((a - base) / s + 0.5) * s + base for a, base, s in zip(low, lows, steps, strict=True)
        ]
        cell = [(x - s / 2, x + s / 2) for x, s in zip(first, steps, strict=True)]
        each = float(prism.mass) / math.prod(prism.points)
        assert probability(design, part, (0.5,), 0.0, cell) >= each * (1 - 1e-6)


def test_parts_cost_their_worst_and_the_fit_is_that_of_the_published_means() -> None:
    """Disjoint rows: maxima and no sums; and coefficients solve the normal equations of what is published."""
    line = exact_regression(
        ["uniform(-1, 1)"],
        "normal(0, 1, clamp=(-4, 4))",
        sizes=(3000, 5000),
        delta=1e-2,
        slopes=0.5,
        level=0.25,
    )
    parts = line.answer.details["parts"]
    assert len(parts) == 2
    worst = max(float(p["epsilon"]) for p in parts)
    assert line.answer.bound.epsilon(1e-2) == pytest.approx(worst, rel=1e-9)
    draw = np.random.default_rng(2)
    g = draw.uniform(-1, 1, 8000)
    h = 0.2 + 0.4 * g + np.clip(draw.normal(size=8000), -4, 4)
    (mean_g, mean_h), (square, product) = line.moments(g, h)
    for found, rows in ((mean_g, g[:3000]), (square, g[3000:] ** 2)):
        assert found == pytest.approx(rows.mean(), abs=0.02)
    b = np.linalg.solve([[1, mean_g], [mean_g, square]], [mean_h, product])
    fitted = line.fit(g, h)
    assert (fitted.intercept, fitted.slopes[0]) == pytest.approx(tuple(b), abs=1e-9)
