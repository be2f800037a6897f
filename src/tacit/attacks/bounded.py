"""Least squares over the cube [0, 1]^n that needs no matrix, only its products with vectors.

min ½ Σ (a_j x - y_j - c)² over x in the cube and a constant c, by accelerated projected gradients (Nesterov 1983;
restarted where they point uphill, O'Donoghue and Candès 2015). The constant takes the one direction of random subsets
that is n times as steep as all others, the number of ones, which tells next to nothing of anybody; what is left has
eigenvalues close together, and some dozen steps do. How far the result can lie from the best is stated:
f(x) - min f ≤ Σ max(g_i x_i, -g_i (1 - x_i)), g the gradient, since f is convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import NotCertified

if TYPE_CHECKING:
    from tacit.exact.arrays import Floats

    Product = Callable[[Floats], Floats]

__all__ = ["Fitted", "fit_in_cube"]

STEPS, LOOK = 2000, 5
CLOSE = 1e-6
"""The gap that ends it, as a share of the error that is left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """Where it ended; `gap` bounds by how much half the sum of squares, `error`, is above the least there is."""

    x: Floats
    error: float
    gap: float
    steps: int


def fit_in_cube(times: Product, back: Product, answers: Floats, people: int) -> Fitted:
    """The fit, with the questions A given by x -> Ax and r -> A'r."""
    import numpy as np

    def forward(x: Floats) -> Floats:
        found = times(x)
        return np.asarray(found - found.mean(), dtype=np.float64)

    def gradient(rest: Floats) -> Floats:
        return back(np.asarray(rest - rest.mean(), dtype=np.float64))

    y = answers - answers.mean()
    nothing = 1e-14 * float(y @ y) + 1e-12
    x = np.full(people, 0.5)
    steep = _steepest(forward, gradient, people)
    image = forward(x)
    before, image_before, momentum = x, image, 1.0
    gap = np.inf
    for step in range(STEPS):
        rest = image - y
        error = float(rest @ rest) / 2.0
        if step % LOOK == 0:
            slope = gradient(rest)
            gap = float(np.maximum(slope * x, slope * (x - 1.0)).sum())
            if not np.isfinite(gap):
                raise NotCertified(what="bounded least squares", reason="the products are not finite")
            if gap <= CLOSE * error + nothing:
                break
        after = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = (momentum - 1.0) / after
        at, image_at = x + ahead * (x - before), image + ahead * (image - image_before)
        off = image_at - y
        slope = gradient(off)
        while True:
            there = np.clip(at - slope / steep, 0.0, 1.0)
            image_there = forward(there)
            moved = image_there - image_at
            way = there - at
            # The curve along the step must lie below the parabola that chose it.
            if float(moved @ moved) <= steep * float(way @ way) * (1.0 + 1e-9) + 1e-300:
                break
            steep *= 2.0
        uphill = float((at - there) @ (there - x)) > 0.0
        before, image_before, momentum = x, image, 1.0 if uphill else after
        x, image = there, image_there
        if uphill:
            before, image_before = x, image
    return Fitted(x=x, error=error, gap=gap, steps=step)


def _steepest(forward: Product, gradient: Product, people: int) -> float:
    """About the largest eigenvalue of A'A without the constant, by the power method; too small a one is doubled."""
    import numpy as np

    along = np.cos(np.arange(people) * 2.399963)
    found = 1e-300
    for _ in range(12):
        size = float(np.sqrt(along @ along))
        if not size > 0.0:
            return max(found, 1e-12)
        along = along / size
        along = gradient(forward(along))
        found = max(found, float(np.sqrt(along @ along)))
    return max(found, 1e-12)
