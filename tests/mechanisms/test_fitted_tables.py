"""Tables fitted to what they have in common: the fit, its law and its half-widths, against second ways to find them.

Fits are held against least squares with explicit constraints, laws against convolutions on a fine grid, half-widths
against releases on fixed seeds (six standard deviations: less likely than 1e-8).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms.fitted_tables import MOST_FITTED, Agreement, FittedTables
from tacit.mechanisms.laplace import Weighted, mean_sizes, weighted_quantiles
from tacit.mechanisms.tables import CellSums
from tacit.noise import SeededSource
from tacit.sources.axes import Listed
from tacit.statistics.base import spanning_sums


def tree(levels: list[int], *, fixed: bool = False) -> Agreement:
    leaves = np.arange(levels[-1])
    return Agreement(places=tuple(leaves * n // levels[-1] for n in levels), sizes=tuple(levels), fixed=fixed)


def constrained(levels: list[int], y: np.ndarray, total: float | None) -> np.ndarray:
    """Least squares by its constraints, a row for each parent: C x = e, x = y - C'(CC')^-1 (C y - e)."""
    starts, rows, right = np.concatenate([[0], np.cumsum(levels)]), [], []
    for depth, (above, below) in enumerate(itertools.pairwise(levels)):
        for node in range(above):
            row = np.zeros(len(y))
            row[starts[depth] + node] = 1
            children = [j for j in range(below) if j * above // below == node]
            row[[starts[depth + 1] + j for j in children]] = -1
            rows.append(row)
            right.append(0.0)
    if total is not None:
        rows.append((np.arange(len(y)) < levels[0]).astype(float))
        right.append(total)
    c = np.array(rows)
    return np.asarray(y - np.linalg.pinv(c) @ (c @ y - np.array(right)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("levels", [[1, 2, 6], [3, 7], [1, 4, 16], [2, 4, 12, 24]], ids=str)
def test_fits_are_least_squares_under_the_constraints(levels: list[int], fixed: bool) -> None:
    y = np.random.default_rng(1).normal(50, 20, sum(levels))
    found = tree(levels, fixed=fixed).fitted(y, 40.0)
    assert found == pytest.approx(constrained(levels, y, 40.0 if fixed else None), abs=1e-8)


@pytest.mark.parametrize("order", [1, 2])
def test_a_few_cells_span_all_that_margins_can_be(order: int) -> None:
    """The projection from few cells is that from all cells of the table."""
    sizes = [2, 3, 2, 4]
    axes = [Listed(column=f"c{i}", values=tuple(f"v{j}" for j in range(s))) for i, s in enumerate(sizes)]
    chosen = list(itertools.combinations(range(4), order))
    few = spanning_sums(axes, {str(c): [axes[i] for i in c] for c in chosen}, order)
    counts = tuple(math.prod(sizes[i] for i in c) for c in chosen)
    cells = list(itertools.product(*map(range, sizes)))
    every = tuple(
        np.array([np.ravel_multi_index([cell[i] for i in c], [sizes[i] for i in c]) for cell in cells])
        for c in chosen
    )
    for fixed in (False, True):
        one = Agreement(places=tuple(few.values()), sizes=counts, fixed=fixed)
        other = Agreement(places=every, sizes=counts, fixed=fixed)
        assert one.places[0].size < other.places[0].size
        assert one.projection == pytest.approx(other.projection, abs=1e-9)
        rank = sum(
            math.prod(sizes[i] - 1 for i in c)
            for k in range(order + 1)
            for c in itertools.combinations(range(4), k)
        )
        assert np.trace(one.projection) == pytest.approx(rank - fixed)


def listed(weights: list[float], fine: int = 60, reach: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """The density of a sum of Laplace variables of these scales, by convolution of exact cell masses."""
    half = int(reach * fine)
    edges = (np.arange(-half, half + 2) - 0.5) / fine
    density = np.ones(1)
    for w in weights:
        below = np.where(
            edges < 0, np.exp(np.minimum(edges / w, 0)) / 2, 1 - np.exp(np.minimum(-edges / w, 0)) / 2
        )
        density = np.convolve(density, np.diff(below))
        spare = (density.size - (2 * half + 1)) // 2
        density = density[spare : spare + 2 * half + 1]
    return np.arange(-half, half + 1) / fine, density


@pytest.mark.parametrize("weights", [[1.0], [1, 0.5], [0.9, 0.3, 0.3, 0.1], [1, 1, 1]], ids=str)
def test_laws_of_weighted_sums_by_convolution(weights: list[float]) -> None:
    rows = Weighted(np.array([weights]), np.ones((1, len(weights))))
    at, density = listed(weights)
    assert float(mean_sizes(rows)[0]) == pytest.approx(float((np.abs(at) * density).sum()), rel=1e-3)
    for tail in (0.2, 0.025, 0.001):
        c = float(weighted_quantiles(rows, tail)[0])
        assert density[at >= c + 0.05].sum() <= tail
        assert density[at >= c - 0.05].sum() >= tail * 0.95
    twice = Weighted(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]]))
    apart = Weighted(np.array([[1.0, 1.0]]), np.ones((1, 2)))
    assert weighted_quantiles(twice, 0.025) == pytest.approx(weighted_quantiles(apart, 0.025))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_errors_are_those_that_are_seen(fixed: bool, gaussian: bool) -> None:
    levels, runs = [1, 3, 9], 1200
    agreement = tree(levels, fixed=fixed)
    mechanism = (
        FittedTables.for_mu_squared(mu_squared=Fraction(1, 2), l2_squared=3, agreement=agreement)
        if gaussian
        else FittedTables.for_target(epsilon=1, l1=3, agreement=agreement)
    )
    leaves = np.arange(3, 12)
    true = [np.add.reduceat(leaves, np.arange(0, 9, 9 // n)) for n in levels]
    source = SeededSource(seed=11)
    seen = np.array(
        [np.concatenate(mechanism.release(true, source=source).values) for _ in range(runs)], float
    )
    errors = seen - np.concatenate(true)
    # Levels add up, and so does a total that is known.
    assert seen[:, 0] == pytest.approx(seen[:, 1:4].sum(axis=1))
    assert seen[:, 1:4] == pytest.approx(seen[:, 4:].reshape(runs, 3, 3).sum(axis=2))
    assert not fixed or seen[:, 0] == pytest.approx(leaves.sum())
    means = np.concatenate([np.full(n, m) for n, m in zip(levels, mechanism.mean_sizes(), strict=True)])
    spread = np.concatenate([np.full(n, v) for n, v in zip(levels, mechanism.variances(), strict=True)])
    assert (np.abs(np.abs(errors).mean(axis=0) - means) <= 7 * np.sqrt(spread / runs) + 0.01).all()
    for confidence in (0.5, 0.95):
        half = np.concatenate(mechanism.error_quantiles(Fraction(confidence)))
        inside = (np.abs(errors) <= half + 1e-9).mean(axis=0)
        slack = 6 * math.sqrt(confidence * (1 - confidence) / runs)
        assert (inside >= confidence - slack).all()
        assert fixed or (inside <= confidence + slack).all()


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 3, 12])
def test_half_widths_hold_for_the_discrete_law_itself(epsilon: Any) -> None:
    """The exact law of one fitted count of two tables of one count each, (X + Y) / 2, by enumeration."""
    agreement = Agreement(places=(np.zeros(1, int), np.zeros(1, int)), sizes=(1, 1))
    mechanism = FittedTables.for_target(epsilon=epsilon, l1=2, agreement=agreement)
    assert mechanism.exact_epsilon == epsilon
    steps, rate = int(1 / mechanism.noise.step), float(mechanism.noise.distribution.rate)
    k = np.arange(-int(40 / rate), int(40 / rate) + 1)
    mass = np.exp(-rate * np.abs(k)) * math.tanh(rate / 2)
    both = np.convolve(mass, mass)
    at = np.abs(np.arange(both.size) - both.size // 2) / (2 * steps)
    for confidence in (0.6, 0.95, 0.999):
        half = float(mechanism.error_quantiles(Fraction(confidence))[0][0])
        missed = float(both[at > half].sum())
        assert missed <= 1 - confidence
        assert float(both[at > half - 0.06 / epsilon - 2 / steps].sum()) >= (1 - confidence) * 0.95


def test_a_fit_costs_what_its_noise_costs() -> None:
    """The move of a row in the noised counts, by definition, over the scale that is drawn."""
    agreement = tree([1, 2, 4])
    mechanism = FittedTables.for_target(epsilon=Fraction(3, 2), l1=3, agreement=agreement)
    assert mechanism.noise.exact_epsilon == mechanism.exact_epsilon == Fraction(3, 2)
    # Three counts move by one, which is 64 steps each.
    assert mechanism.noise.distribution.rate * 3 * 64 == Fraction(3, 2)
    normal = FittedTables.for_mu_squared(mu_squared=Fraction(1, 3), l2_squared=3, agreement=agreement)
    assert 3 / Fraction(normal.noise.noise_std) ** 2 <= Fraction(1, 3)
    assert normal.noise.mu_squared == 3 / Fraction(normal.noise.noise_std) ** 2
    assert "fitted-tables" in mechanism.theorems
    assert mechanism.noise_distribution["on"] == "7 counts, then least squares"
    # Very many rows of one unit: the grid gets coarser, and the claim stays.
    wide = FittedTables.for_target(epsilon=1, l1=3 * 10**5, agreement=agreement)
    assert wide.noise.step == 1
    assert wide.exact_epsilon == 1


def test_bad_input() -> None:
    agreement = tree([1, 2])
    mechanism = FittedTables.for_target(epsilon=1, l1=2, agreement=agreement)
    with pytest.raises(InvalidParameter):
        mechanism.release([np.array([1, 2]), np.array([3])])
    with pytest.raises(InvalidParameter):
        FittedTables(noise=CellSums, agreement=agreement)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        FittedTables(noise=mechanism.noise, agreement=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Agreement(places=(np.arange(MOST_FITTED + 1),), sizes=(MOST_FITTED + 1,))
    assert not Agreement(places=(np.arange(3),), sizes=(3,)).tells
