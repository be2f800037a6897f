"""Optimal mechanisms are private, exactly, and are sampled from the matrix that they claim."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting.events import DiscreteLaplaceEvent
from tacit.errors import NotCertified
from tacit.guarantees import Approximate, Pure
from tacit.noise import SeededSource
from tacit.risk import OptimalCount, OptimalFinite, optimal_count
from tacit.risk.finite import factor_below, private_matrix


def exact_excess(rows: tuple[tuple[int, ...], ...], factor: Fraction) -> Fraction:
    """The largest hockey-stick divergence between neighbours of a path, in rationals."""
    total = sum(rows[0])
    assert all(sum(row) == total for row in rows)
    return max(
        sum(
            (
                max(Fraction(0), Fraction(a, total) - factor * Fraction(b, total))
                for a, b in zip(p, q, strict=True)
            ),
            Fraction(0),
        )
        for i in range(len(rows) - 1)
        for p, q in ((rows[i], rows[i + 1]), (rows[i + 1], rows[i]))
    )


@given(
    states=st.integers(2, 6),
    outputs=st.integers(1, 5),
    epsilon=st.fractions(Fraction(1, 50), Fraction(4)),
    delta=st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 10)]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_any_matrix_is_made_private(
    states: int, outputs: int, epsilon: Fraction, delta: Fraction, seed: int
) -> None:
    """Also one that is nowhere near private, with negative entries and rows that do not sum to 1."""
    matrix = np.random.default_rng(seed).normal(0.4, 0.5, size=(states, outputs))
    edges = [(i, i + 1) for i in range(states - 1)]
    rows = private_matrix(matrix, edges, epsilon, delta, 0)
    assert min(min(row) for row in rows) >= 0
    # A rational above e^epsilon would not do: the check is against one below.
    assert float(factor_below(epsilon)) <= math.exp(epsilon) * (1 + 1e-15)
    assert exact_excess(rows, factor_below(epsilon)) <= delta


def test_a_private_matrix_is_hardly_changed() -> None:
    n, epsilon = 6, Fraction(1, 2)
    q = math.exp(-0.5)
    x = np.arange(n + 1)
    matrix = math.tanh(0.25) * q ** np.abs(x[:, None] - x)
    matrix[:, 0], matrix[:, n] = q**x / (1 + q), q ** (n - x) / (1 + q)
    rows = private_matrix(matrix, [(i, i + 1) for i in range(n)], epsilon, Fraction(0), 3)
    found = np.array([[float(Fraction(v, sum(row))) for v in row] for row in rows])
    assert np.abs(found - matrix).max() < 1e-12


def test_the_check_is_able_to_fail() -> None:
    from tacit.risk.finite import _check

    with pytest.raises(NotCertified):
        _check([[3, 1], [1, 3]], [(0, 1)], Fraction(2), Fraction(0))
    with pytest.raises(NotCertified):
        _check([[3, 1], [2, 3]], [(0, 1)], Fraction(2), Fraction(1, 2))
    _check([[3, 1], [2, 2]], [(0, 1)], Fraction(2), Fraction(0))


@pytest.mark.parametrize(
    ("loss", "criterion"), [("absolute", "minimax"), ("squared", "bayes"), ("zero-one", "minimax")]
)
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 4.0])
def test_the_matrix_of_a_remap_is_private(loss: str, criterion: str, epsilon: float) -> None:
    found = optimal_count(n=15, epsilon=epsilon, loss=loss, criterion=criterion)
    matrix = found.matrix
    assert np.allclose(matrix.sum(axis=1), 1)
    ratio = matrix[1:] / np.where(matrix[:-1] > 0, matrix[:-1], np.nan)
    assert np.nanmax(np.maximum(ratio, 1 / ratio)) <= math.exp(epsilon) * (1 + 1e-9)
    assert found.bound == Pure(epsilon=epsilon)
    # What the matrix costs is what the certificate says.
    x = np.arange(16)
    distance = np.abs(x[:, None] - x)
    cost = {"absolute": distance, "squared": distance**2, "zero-one": distance > 0}[loss]
    risks = (matrix * cost).sum(axis=1)
    value = risks.max() if criterion == "minimax" else risks.mean()
    assert value == pytest.approx(found.certificate.risk, rel=1e-7)
    assert found.expected_error() == pytest.approx(risks.max(), rel=1e-9)
    assert found.expected_error(count=3) == pytest.approx(risks[3], rel=1e-9)


def test_full_program_mechanisms_are_private_in_integers() -> None:
    found = optimal_count(n=6, epsilon=0.4, delta=0.01)
    assert isinstance(found, OptimalFinite)
    assert found.bound == Approximate(epsilon=0.4, delta=0.01)
    assert exact_excess(found.rows, factor_below(Fraction(0.4))) <= Fraction(0.01)
    assert exact_excess(found.rows, factor_below(Fraction(0.4))) > Fraction(0.0099)
    x = np.arange(7)
    pure = optimal_count(n=6, epsilon=1.0, loss=np.abs(x[None, :] - np.abs(2 * x[:, None] - 6)).astype(float))
    assert isinstance(pure, OptimalFinite)
    assert exact_excess(pure.rows, factor_below(Fraction(1))) == 0


def chi_square(found: OptimalCount | OptimalFinite, count: int, draws: int, seed: int) -> tuple[float, int]:
    source = SeededSource(seed=seed)
    said = [int(found.release(count, source=source).values) for _ in range(draws)]
    row = found.matrix[count]
    expected = row * draws
    big = expected >= 8
    observed = np.bincount(said, minlength=row.size)
    assert observed[row == 0].sum() == 0
    parts = [((observed[big] - expected[big]) ** 2 / expected[big]).sum()]
    rest = expected[~big].sum()
    if rest > 0.5:
        parts.append((observed[~big].sum() - rest) ** 2 / rest)
    return float(sum(parts)), int(big.sum())


def test_releases_follow_the_matrix() -> None:
    """Fixed seeds; the statistic of a wrong law would be in the hundreds."""
    for found in (
        optimal_count(n=12, epsilon=0.5),
        optimal_count(n=8, epsilon=0.8, loss="zero-one"),
        optimal_count(n=6, epsilon=0.7, delta=0.02),
    ):
        for count in (0, 3):
            statistic, cells = chi_square(found, count, 3000, seed=20 + count)
            assert statistic < cells + 6 * math.sqrt(2 * cells)


def test_a_count_outside_the_range_is_clamped() -> None:
    found = optimal_count(n=5, epsilon=1.0)
    source = SeededSource(seed=1)
    assert all(0 <= int(found.release(v, source=source).values) <= 5 for v in (-3, 9, 2))
    assert not found.release(2, source=source).publishable


def test_what_was_run_is_an_event() -> None:
    found = optimal_count(n=5, epsilon=0.5)
    assert found.event == DiscreteLaplaceEvent(epsilon=0.5, sensitivity=1)
    law = found.noise_distribution
    assert law["distribution"] == "remapped truncated geometric"
    assert len(law["heights"]) == 6


def test_error_quantile() -> None:
    found = optimal_count(n=20, epsilon=0.5)
    t = found.error_quantile(0.9)
    x = np.arange(21)
    near = np.abs(x[:, None] - x)
    assert (found.matrix * (near <= t)).sum(axis=1).min() >= 0.9
    assert (found.matrix * (near <= t - 1)).sum(axis=1).min() < 0.9
