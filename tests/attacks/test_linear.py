"""Linear reconstruction against a second program, and the figures that Dinur and Nissim's theorem promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.attacks import Draws, random_questions, reconstruct, relaxed_bits
from tacit.attacks.linear import METHODS
from tacit.errors import InvalidParameter, UnknownName

N = 200


def primal(a: np.ndarray, y: np.ndarray) -> float:
    """The least sum of absolute errors over the cube, by the textbook program with two slacks a question."""
    m, n = a.shape
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    equal = np.hstack([a, np.eye(m), -np.eye(m)])
    bounds = [(0, 1)] * n + [(0, None)] * (2 * m)
    return float(linprog(cost, A_eq=equal, b_eq=y, bounds=bounds, method="highs").fun)


def simulated(seed: int, noise_std: float) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Bits and noise from numpy's generator, not from the attacker's own."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, N)
    asked = random_questions(N, 4 * N, seed=seed)
    return asked, asked @ bits + noise_std * generator.standard_normal(4 * N), bits.tolist()


def shares(seed: int, noise_std: float) -> dict[str, float]:
    asked, answers, bits = simulated(seed, noise_std)
    return {m: reconstruct(asked, answers, method=m).score(bits).share for m in METHODS}


@pytest.mark.parametrize("seed", range(4))
def test_the_program_finds_the_least_absolute_error(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, (14, 6)).astype(float)
    y = a @ generator.integers(0, 2, 6) + generator.normal(0, 2, 14)
    x = relaxed_bits(a, y, method="linear program")
    assert ((x >= 0) & (x <= 1)).all()
    assert np.abs(a @ x - y).sum() == pytest.approx(primal(a, y), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_is_optimal_on_the_cube(seed: int) -> None:
    """The conditions of Karush, Kuhn and Tucker: the gradient pushes outwards at the walls and is 0 elsewhere."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, (14, 6)).astype(float)
    y = a @ generator.integers(0, 2, 6) + generator.normal(0, 2, 14)
    x = relaxed_bits(a, y, method="least squares")
    gradient = a.T @ (a @ x - y)
    inside = (x > 1e-9) & (x < 1 - 1e-9)
    assert np.abs(gradient[inside]).max(initial=0) < 1e-7
    assert (gradient[x <= 1e-9] > -1e-7).all()
    assert (gradient[x >= 1 - 1e-9] < 1e-7).all()


@pytest.mark.parametrize("method", METHODS)
def test_exact_answers_to_all_questions_give_every_bit(method: str) -> None:
    asked = np.array(list(itertools.product((0, 1), repeat=5)))
    for bits in ([0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]):
        assert list(reconstruct(asked, asked @ bits, method=method).learned) == bits


@pytest.mark.slow
def test_small_noise_hides_nothing_and_large_noise_hides_bits() -> None:
    """Three seeds of the twenty of the full figure (`tacit reproduce attack-counts`)."""
    found = {
        factor: [shares(seed, factor * math.sqrt(N)) for seed in range(3)] for factor in (0.1, 0.25, 2, 7.5)
    }
    means = {f: {m: float(np.mean([s[m] for s in runs])) for m in METHODS} for f, runs in found.items()}
    assert max(means[0.1].values()) == 1
    assert max(means[0.25].values()) >= 0.95
    assert max(means[2].values()) <= 0.65
    assert max(means[7.5].values()) <= 0.55


def test_random_questions_are_fair_and_repeatable() -> None:
    asked = random_questions(300, 400, seed=7)
    assert (asked == random_questions(300, 400, seed=7)).all()
    assert (asked != random_questions(300, 400, seed=8)).any()
    # 6.2 standard deviations of a fair coin: error below 1e-9.
    assert abs(asked.mean() - 0.5) < 6.2 * 0.5 / math.sqrt(asked.size)


def test_draws_have_the_laws_they_name() -> None:
    """Means and variances within 6.2 standard errors (below 1e-9 each)."""
    n = 200_000
    draws = Draws(3, "laws")
    for values, mean, variance, fourth in (
        (draws.normals(n), 0, 1, 3),
        (draws.laplace(n), 0, 2, 24),
        (draws.uniforms(n), 0.5, 1 / 12, 1 / 80),
    ):
        assert abs(values.mean() - mean) < 6.2 * math.sqrt(variance / n)
        assert abs(values.var() - variance) < 6.2 * math.sqrt((fourth - variance**2) / n)
    assert sorted(draws.permutation(50).tolist()) == list(range(50))
    assert set(draws.integers(3, 1000).tolist()) == {0, 1, 2}


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        reconstruct([[1, 0]], [1, 2])
    with pytest.raises(InvalidParameter):
        reconstruct([], [])
    with pytest.raises(InvalidParameter):
        reconstruct([[1.0, float("nan")]], [1.0])
    with pytest.raises(UnknownName):
        reconstruct([[1, 0]], [1], method="magic")
