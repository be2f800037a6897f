"""Linear reconstruction against a second program, and the figures that Dinur and Nissim's theorem promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear
from scipy.sparse import csr_matrix

from tacit.attacks import Draws, random_questions, reconstruct, relaxed_bits, walsh_questions
from tacit.attacks.reconstruction import METHODS
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


# --- many people: no matrix --------------------------------------------------------------------------------
@pytest.mark.parametrize(("people", "questions"), [(1, 1), (7, 8), (8, 20), (13, 70), (64, 63)])
def test_products_are_those_of_the_sets_that_are_asked(people: int, questions: int) -> None:
    asked = walsh_questions(people, questions, seed=3)
    matrix = np.array([asked.members(j) for j in range(questions)], dtype=float)
    generator = np.random.default_rng(people)
    x, r = generator.normal(size=people), generator.normal(size=questions)
    assert asked.shape == matrix.shape
    assert asked.counts(x) == pytest.approx(matrix @ x, abs=1e-9)
    assert asked.back(r) == pytest.approx(matrix.T @ r, abs=1e-9)


def test_implicit_questions_are_fair_and_nobody_is_always_asked_about() -> None:
    """Every question is a uniform subset, every person is in half of a block's questions, any two in a quarter."""
    asked = walsh_questions(100, 4 * 128, seed=2)
    matrix = np.array([asked.members(j) for j in range(512)])
    assert (matrix.reshape(4, 128, 100).sum(axis=1) == 64).all()
    signs = 2.0 * matrix[:128] - 1
    assert signs.T @ signs == pytest.approx(128 * np.eye(100))
    # 6.2 standard deviations of 100 fair coins, for each of 512 questions: error below 1e-6; the seed is fixed.
    assert np.abs(matrix.sum(axis=1) - 50).max() < 6.2 * 5
    assert (matrix != np.array([walsh_questions(100, 512, seed=4).members(j) for j in range(512)])).any()
    with pytest.raises(InvalidParameter):
        asked.members(512)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("questions", "people"), [(14, 6), (20, 30), (150, 40)])
def test_products_alone_find_the_least_squares(questions: int, people: int, seed: int) -> None:
    """A second program on the centred matrix; the stated gap is an upper bound on what is missed."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, (questions, people)).astype(float)
    y = a @ generator.integers(0, 2, people) + generator.normal(0, 2, questions)
    x = relaxed_bits(csr_matrix(a), y, method="least squares")
    assert ((x >= 0) & (x <= 1)).all()
    flat, level = a - a.mean(axis=0), y - y.mean()
    best = lsq_linear(flat, level, bounds=(0, 1), tol=1e-14)

    def error(x: np.ndarray) -> float:
        return float(((flat @ x - level) ** 2).sum() / 2)

    missed = error(x) - error(np.clip(best.x, 0, 1))
    gap = reconstruct(csr_matrix(a), y).details["gap"]
    assert missed <= gap * error(x) + 1e-9
    assert gap <= 1e-6


def test_a_hundred_thousand_people_are_found() -> None:
    """10^5 bits from 4 x 10^5 subsets of half of the people: all at .1 √n, 95% at .25 √n, no more than Φ(½) at 2 √n."""
    n = 100_000
    generator = np.random.default_rng(9)
    bits = generator.integers(0, 2, n)
    asked = walsh_questions(n, 4 * n, seed=1)
    truth, noise = asked.counts(bits), math.sqrt(n) * generator.standard_normal(4 * n)
    assert (truth == np.rint(truth)).all()
    assert truth[[0, 399_999]].tolist() == [bits[asked.members(j)].sum() for j in (0, 399_999)]
    shares = {}
    for factor in (0.1, 0.25, 2, 7.5):
        found = reconstruct(asked, truth + factor * noise)
        shares[factor] = found.score(bits.tolist()).share
        assert found.details["gap"] <= 1e-6
    # Least squares err at .1 √n in fewer than Φ(-5) of the bits: 0.03 in all are expected.
    assert shares[0.1] == 1
    assert 0.95 <= shares[0.25] < 1
    assert shares[2] <= 0.65
    assert shares[7.5] <= 0.55


def test_a_hundred_thousand_people_in_sparse_questions() -> None:
    """Any subsets, as a sparse matrix: 20 people each, noise of half a person."""
    n, m, size = 100_000, 400_000, 20
    generator = np.random.default_rng(4)
    who = generator.integers(0, n, (m, size)).ravel()
    asked = csr_matrix((np.ones(m * size), who, np.arange(0, m * size + 1, size)), shape=(m, n))
    bits = generator.integers(0, 2, n)
    found = reconstruct(asked, asked @ bits + 0.5 * generator.standard_normal(m))
    assert found.score(bits.tolist()).share > 0.999


def test_what_products_cannot_do_is_refused() -> None:
    asked = walsh_questions(5, 9)
    with pytest.raises(InvalidParameter, match="least squares"):
        reconstruct(asked, np.zeros(9), method="linear program")
    with pytest.raises(InvalidParameter):
        reconstruct(asked, np.zeros(8))
    with pytest.raises(InvalidParameter):
        reconstruct(csr_matrix([[math.nan, 1.0]]), [1.0])
    with pytest.raises(InvalidParameter):
        walsh_questions(0, 5)
    same = reconstruct(csr_matrix(np.zeros((3, 2))), [1.0, 1.0, 1.0])
    assert same.people == 2
