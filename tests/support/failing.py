"""A second referee, written from the definition: every ordered sample, every outcome, nothing of tacit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Law = dict[object, float]
ROUNDING_SLACK = 1e-12


def laplace(value: int, epsilon: float, reach: int = 60) -> Law:
    """Discrete Laplace probabilities, cut far out."""
    q = math.exp(-epsilon)
    return {k: (1 - q) / (1 + q) * q ** abs(k - value) for k in range(-reach, reach + 1)}


def fails(p: Sequence[Law], q: Sequence[Law], epsilon: float) -> bool:
    """Is some outcome of a product of independent coordinates more than e^epsilon times as likely, either way?"""
    return any(_ratio(a, b) > epsilon + ROUNDING_SLACK for a, b in ((p, q), (q, p)))


def _ratio(p: Sequence[Law], q: Sequence[Law]) -> float:
    total = 0.0
    for a, b in zip(p, q, strict=True):
        top = 0.0
        for outcome, chance in a.items():
            if chance > 0:
                other = b.get(outcome, 0.0)
                top = max(top, chance / other if other > 0 else math.inf)
        total += math.log(top)
    return total


def share_over_orders(
    rows: Sequence[int],
    laws: Callable[[tuple[int, ...]], Sequence[Law]],
    epsilon: float,
    *,
    removed: bool = False,
) -> Fraction:
    """Over all orders of these rows: how often the bound fails between D and D'."""
    bad = total = 0
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}
    for x in itertools.permutations(rows):
        one, other = (x, x[:-1]) if removed else (x[:-1], (*x[:-2], x[-1]))
        total += 1
        key = tuple(sorted(one)), tuple(sorted(other))
        if key not in seen:
            seen[key] = fails(laws(one), laws(other), epsilon)
        bad += seen[key]
    return Fraction(bad, total)
