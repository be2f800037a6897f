"""K-norm noise for small images: what one row can do, the law of every count, and what is hidden, by definition.

Laws are integrated on a fine grid from the density e^(-gauge), the gauge from its facets by hand; releases run on
fixed seeds (six standard deviations: less likely than 1e-8).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter, NotCertified
from tacit.mechanisms.fitted_tables import HullTables, Image, small_image
from tacit.noise import SeededSource

TWO_BY_TWO = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
TREE = np.array([[1, 1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 1, 0, 0], [1, 0, 1, 0, 0, 1, 0], [1, 0, 1, 0, 0, 0, 1]])
NESTED = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
IMAGES: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {
    "two by two": (TWO_BY_TWO, (2, 2)),
    "tree": (TREE, (1, 2, 4)),
    "nested": (NESTED, (3,)),
    "three cells": (np.eye(3, dtype=int), (3,)),
}
WAYS = [
    {"replaced": False, "absent": True},
    {"replaced": True, "absent": True},
    {"replaced": True, "absent": False},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", IMAGES)
def test_neighbours_differ_by_corners_of_the_body_and_nothing_else(name: str, way: dict[str, bool]) -> None:
    """All rows that can come, go or be replaced: what has no noise stays, the rest moves by a listed point."""
    patterns, sizes = IMAGES[name]
    image = small_image(patterns, sizes, **way)
    assert image is not None
    rows = [np.array(p) for p in patterns]
    none = np.zeros(sum(sizes), dtype=int)
    others = [none] if not way["replaced"] else [*rows, *([none] if way["absent"] else [])]
    start = rows[0] * 5 + rows[-1] * 2
    points = {tuple(s * x for x in p) for p in image.points for s in (1, -1)}
    moved = set()
    for new, old in itertools.product(rows, others):
        after = start + new - old
        base = list(image.base)
        assert (after - image.lift @ after[base] == start - image.lift @ start[base]).all()
        move = tuple(int(x) for x in (after - start)[base])
        assert move in points or not any(move)
        moved.add(move)
    assert all(p in moved or tuple(-x for x in p) in moved for p in image.points)


def integrated(gauge: Any, of: Any, fine: int = 12, reach: float = 26.0) -> tuple[np.ndarray, np.ndarray]:
    """|value| of a count and its mass, for the density e^(-gauge) in the plane."""
    side = (np.arange(-reach * fine, reach * fine) + 0.5) / fine
    x, y = np.meshgrid(side, side, indexing="ij")
    mass = np.exp(-gauge(x, y))
    return np.abs(of(x, y)).ravel(), (mass / mass.sum()).ravel()


def test_the_law_of_three_cells_that_are_exchanged() -> None:
    """Moves e_i - e_j: a hexagon, with gauge max(|x|, |y|, |x + y|) in two of the cells; the third is -(x + y)."""
    image = small_image(np.eye(3, dtype=int), (3,), replaced=True, absent=False)
    assert image is not None
    mechanism = HullTables.for_target(epsilon=Fraction(1), image=image)
    assert mechanism.exact_epsilon == 1
    assert mechanism.bound.epsilon == 1

    def gauge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(x + y))

    for of in (lambda x, y: x, lambda x, y: x + y):
        value, mass = integrated(gauge, of)
        assert mechanism.mean_sizes()[0] == pytest.approx(float((value * mass).sum()), rel=5e-3)
        assert mechanism.variances()[0] == pytest.approx(float((value**2 * mass).sum()), rel=5e-3)
        for confidence in (0.5, 0.95, 0.99):
            half = float(mechanism.error_quantiles(Fraction(confidence))[0].min())
            assert float(mass[value > half + 0.06].sum()) <= 1 - confidence
            assert float(mass[value > half - 0.12].sum()) >= (1 - confidence) * 0.97
    assert mechanism.mean_sizes() == pytest.approx([4 / 3], rel=1e-6)


@pytest.mark.parametrize("name", IMAGES)
def test_errors_are_those_that_are_seen(name: str) -> None:
    patterns, sizes = IMAGES[name]
    way = WAYS[0] if name in ("two by two", "nested") else WAYS[2]
    image = small_image(patterns, sizes, **way)
    assert image is not None
    mechanism = HullTables.for_target(epsilon=Fraction(1, 2), image=image, times=2)
    assert mechanism.noise_scale == 4
    total = patterns.T @ np.arange(3, 3 + len(patterns))
    true = np.split(total, np.cumsum(sizes)[:-1])
    source, runs = SeededSource(seed=17), 700
    drawn = [np.concatenate(mechanism.release(true, source=source).values) for _ in range(runs)]
    errors = np.array(drawn) - total
    means = np.concatenate([np.full(n, m) for n, m in zip(sizes, mechanism.mean_sizes(), strict=True)])
    spread = np.concatenate([np.full(n, v) for n, v in zip(sizes, mechanism.variances(), strict=True)])
    for table in np.split(np.arange(len(total)), np.cumsum(sizes)[:-1]):
        seen = np.abs(errors[:, table]).mean()
        assert abs(seen - means[table[0]]) <= 7 * math.sqrt(spread[table[0]] / runs) + 0.02
    half = np.concatenate(mechanism.error_quantiles(Fraction(19, 20)))
    inside = (np.abs(errors) <= half).mean(axis=0)
    assert (inside >= 0.95 - 6 * math.sqrt(0.95 * 0.05 / runs)).all()
    assert (inside[half > 0.1] <= 0.99).all()
    if name == "tree":
        # The number of rows is moved by no neighbour, and levels add up.
        assert errors[:, 0] == pytest.approx(0)
        assert errors[:, 1] == pytest.approx(errors[:, 3] + errors[:, 4])


def test_large_images_and_bad_input() -> None:
    assert small_image(np.eye(9, dtype=int), (9,), replaced=True, absent=False) is None
    assert (
        small_image(np.array(list(itertools.product((0, 1), repeat=5))), (5,), replaced=False, absent=True)
        is None
    )
    with pytest.raises(NotCertified):
        Image(patterns=((1, 1),), sizes=(2,), replaced=True, absent=False)
    with pytest.raises(InvalidParameter):
        Image(patterns=((1, 0), (0, 1)), sizes=(3,))
    image = small_image(TWO_BY_TWO, (2, 2), replaced=False, absent=True)
    assert image is not None
    with pytest.raises(InvalidParameter):
        HullTables.for_target(epsilon=Fraction(1), image=image).release([np.array([1, 2, 3])])
    with pytest.raises(InvalidParameter):
        HullTables(image=None, noise_scale=Fraction(1))  # type: ignore[arg-type]
