"""Expansions: coefficients that move no further than the function, and a function that carries no row."""

import gc
import math
import pickle
import struct
import types

import flint
import numpy as np
import pytest

from support.ball_matrices import gram_balls, is_positive
from tacit.errors import InvalidParameter
from tacit.exact.rounding import ball, precision
from tacit.functions import (
    Box,
    ExponentialKernel,
    GaussianKernel,
    GaussianProcessRelease,
    KernelCombination,
    MaternKernel,
    PolynomialKernel,
)
from tacit.functions.process import karhunen_loeve
from tacit.noise import SeededSource

KERNELS = [
    GaussianKernel(bandwidth=0.2),
    ExponentialKernel(length=0.5),
    MaternKernel(length=0.4, smoothness=2.5),
    PolynomialKernel(degree=3, box=Box.unit()),
    GaussianKernel(bandwidth=0.5, dimension=2),
]
ROWS = np.array([0.123456789012345, 0.31, 0.77, 0.90909])


def release(kernel, **changes):
    given = {"rkhs_sensitivity": 0.01, "noise_std": 0.05, "domain": Box.unit(kernel.dimension), **changes}
    return GaussianProcessRelease(kernel=kernel, **given)


def mean_of(kernel, rows=ROWS):
    points = np.repeat(rows[:, None], kernel.dimension, axis=1)
    return KernelCombination(kernel=kernel, points=points, coefficients=np.full(4, 0.25), absolute_sum=1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.kind} {k.dimension}")
def test_the_gram_matrix_of_the_basis_is_below_one(kernel):
    # In balls: I - B'KB has positive pivots, so that no coefficient vector moves further than the function.
    basis = karhunen_loeve(kernel, Box.unit(kernel.dimension), 12)
    with precision(300):
        b = flint.arb_mat(basis.matrix.tolist())
        inner = b.transpose() * gram_balls(kernel, basis.nodes) * b
        n = basis.terms
        unit = flint.arb_mat([[ball(int(i == j)) for j in range(n)] for i in range(n)])
        assert is_positive(unit - inner)
        assert float(inner[0, 0].mid()) > 0.99
        np.testing.assert_allclose(
            basis.gram, [[float(inner[i, j].mid()) for j in range(n)] for i in range(n)], atol=1e-9
        )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.kind} {k.dimension}")
def test_coefficients_move_no_further_than_the_function(kernel):
    basis = karhunen_loeve(kernel, Box.unit(kernel.dimension))
    rng, best = np.random.default_rng(3), 0.0
    for _ in range(200):
        x, y = rng.uniform(size=(2, 1, kernel.dimension))
        move = basis.matrix.T @ (kernel.gram(basis.nodes, x) - kernel.gram(basis.nodes, y)).ravel()
        norm = math.sqrt(kernel.squared_norm(np.concatenate([x, y]), [1.0, -1.0]))
        assert np.linalg.norm(move) <= norm * (1 + 1e-9) + 1e-9
        best = max(best, float(np.linalg.norm(move)) / norm)
    assert best > 0.97


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.kind} {k.dimension}")
def test_without_noise_the_error_is_the_truncation_error(kernel):
    mean = mean_of(kernel)
    at = np.random.default_rng(1).uniform(size=(50, kernel.dimension))
    for terms in (3, None):
        found = release(kernel, noise_std=1e-9).expansion(mean, terms=terms, source=SeededSource(seed=1))
        bound = found.truncation_error(at)
        assert (np.abs(found(at) - mean(at)) <= bound + 1e-7).all()
    if not isinstance(kernel, ExponentialKernel):
        assert bound.max() < 0.1


def test_the_noise_is_the_one_that_is_said():
    # z-scores of the coefficients against those that the definition gives: 5 releases of 10, a chi-square with 50
    # degrees of freedom, between 8 and 140 but for a probability below 10^-9.
    kernel = KERNELS[0]
    one, mean = release(kernel), mean_of(kernel)
    square, count = 0.0, 0
    for seed in range(5):
        found = one.expansion(mean, terms=10, source=SeededSource(seed=seed))
        true = found.basis.matrix.T @ mean(found.basis.nodes)
        z = (np.asarray(found.coefficients) * float(found.spacing) - true) / 0.05
        square, count = square + float((z**2).sum()), count + z.size
    assert count == 50
    assert 8 < square < 140
    at = np.linspace(0, 1, 7)
    covariance = found.noise_covariance(at)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), found.noise_std_at(at), rtol=1e-12)
    np.testing.assert_allclose(one.expansion(mean).noise_std_at(at), one.noise_std_at(at), rtol=1e-3)


def test_a_released_function_is_one_function():
    found = release(KERNELS[0]).expansion(mean_of(KERNELS[0]))
    at = np.random.default_rng(2).uniform(size=100)
    together = found(at)
    assert [float(found([x])[0]) for x in at] == together.tolist()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found))(at), together)
    assert found.publishable
    assert found.numerical_delta == 0.0
    assert found.bound.mu == pytest.approx(0.2)


def _floats_within(thing):
    """Every float and array that can be reached from an object."""
    seen, waiting, out = set(), [thing], []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(one))
        if isinstance(one, float):
            out.append(np.array([one]))
        elif isinstance(one, np.ndarray):
            out.append(np.asarray(one, dtype=np.float64).ravel())
            waiting += [one.base] if one.base is not None else []
        waiting += gc.get_referents(one)
    return np.concatenate(out)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda k: k.kind)
def test_a_released_function_holds_no_row(kernel):
    mean = mean_of(kernel)
    found = release(kernel).expansion(mean)
    held, packed = _floats_within(found), pickle.dumps(found)
    for row in [*ROWS, *mean(ROWS)]:
        assert not (held == row).any()
        assert struct.pack("<d", row) not in packed
    assert "KernelCombination" not in packed.decode("latin-1")
    # The walk can fail: it finds a row where there is one.
    assert (_floats_within({"kept": mean}) == ROWS[0]).any()


def test_bad_questions_are_refused():
    one, mean = release(KERNELS[0]), mean_of(KERNELS[0])
    found = one.expansion(mean)
    for points in ([1.5], [math.nan], [[0.1, 0.2]]):
        with pytest.raises(InvalidParameter):
            found(points)
    other = GaussianKernel(bandwidth=0.1)
    unknown = one.expansion(mean_of(other))
    with pytest.raises(InvalidParameter, match="norm_bound"):
        unknown.truncation_error([0.5])
    assert one.expansion(mean_of(other), norm_bound=2.0).truncation_error([0.5])[0] > 0
    with pytest.raises(InvalidParameter):
        one.expansion(mean, norm_bound=-1.0)
    assert found([]).shape == (0,)
