"""Kernels: positive definite, as large as they say, and their floats as near to the truth as they say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidParameter, TacitError
from tacit.exact.rounding import ball, precision
from tacit.functions import (
    Box,
    ExponentialKernel,
    GaussianKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    SumKernel,
    TensorProductKernel,
    WrappedGaussianKernel,
)

KERNELS: dict[str, Kernel] = {
    "gaussian": GaussianKernel(bandwidth=0.13),
    "gaussian wide": GaussianKernel(bandwidth=40.0, dimension=2),
    "gaussian 20": GaussianKernel(bandwidth=2.0, dimension=20),
    "exponential": ExponentialKernel(length=0.3),
    "exponential 3": ExponentialKernel(length=0.7, dimension=3),
    "matern 1/2": MaternKernel(length=0.2, smoothness=0.5),
    "matern 3/2": MaternKernel(length=0.2, smoothness=1.5, dimension=2),
    "matern 5/2": MaternKernel(length=0.4, smoothness=2.5),
    "periodic": PeriodicKernel(length=0.8, period=0.7),
    "periodic sharp": PeriodicKernel(length=2.0**-10, period=0.7),
    "wrapped": WrappedGaussianKernel(bandwidth=0.1, period=1.3),
    "wrapped wide": WrappedGaussianKernel(bandwidth=1.0, period=1.0),
    "polynomial": PolynomialKernel(degree=3, box=Box(low=(-1, -1), high=(1, 1)), offset=0.5),
    "polynomial 32": PolynomialKernel(degree=32, box=Box.unit(8)),
    "sum": SumKernel(kernels=(GaussianKernel(bandwidth=0.1), ExponentialKernel(length=1.0))),
    "product": ProductKernel(
        kernels=(MaternKernel(length=0.5, smoothness=2.5), PeriodicKernel(length=1, period=0.3))
    ),
    "tensor": TensorProductKernel(
        kernels=(WrappedGaussianKernel(bandwidth=0.5, period=1.0), GaussianKernel(bandwidth=0.2, dimension=2))
    ),
}  # fmt: skip
NAMES = sorted(KERNELS)


def written_out(kernel: Kernel, x, y):
    """K(x, y) from the textbook, in plain floats: a second implementation."""
    if isinstance(kernel, GaussianKernel):
        return math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / 2 / kernel.bandwidth**2)
    if isinstance(kernel, ExponentialKernel):
        return math.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / kernel.length)
    if isinstance(kernel, MaternKernel):
        from scipy.special import gamma, kv

        nu, r = float(kernel.smoothness), math.dist(x, y) / kernel.length
        if r == 0:
            return 1.0
        r *= math.sqrt(2 * nu)
        return float(2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r))
    if isinstance(kernel, PeriodicKernel):
        return math.exp(-2 * math.sin(math.pi * (x[0] - y[0]) / kernel.period) ** 2 / kernel.length**2)
    if isinstance(kernel, WrappedGaussianKernel):
        shifts = (x[0] - y[0] + m * kernel.period for m in range(-60, 61))
        return math.fsum(math.exp(-(s**2) / 2 / kernel.bandwidth**2) for s in shifts)
    if isinstance(kernel, PolynomialKernel):
        return (kernel.offset + math.fsum(a * b for a, b in zip(x, y, strict=True))) ** kernel.degree
    if isinstance(kernel, SumKernel):
        return math.fsum(written_out(k, x, y) for k in kernel.kernels)
    if isinstance(kernel, ProductKernel):
        return math.prod(written_out(k, x, y) for k in kernel.kernels)
    total, at = 1.0, 0
    for k in kernel.kernels:
        total *= written_out(k, x[at : at + k.dimension], y[at : at + k.dimension])
        at += k.dimension
    return total


def some_points(kernel: Kernel, count: int, seed: int = 0) -> np.ndarray:
    """Points of the unit box, among them pairs that lie close together."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(count, kernel.dimension))
    points[1::4] = np.clip(points[::4][: len(points[1::4])] + 1e-9, 0, 1)
    return points


@pytest.mark.parametrize("name", NAMES)
def test_the_gram_matrix_is_the_textbooks_and_positive_semidefinite(name):
    kernel = KERNELS[name]
    points = some_points(kernel, 24)
    gram = kernel.gram(points)
    expected = np.array([[written_out(kernel, list(x), list(y)) for y in points] for x in points])
    np.testing.assert_allclose(gram, expected, rtol=1e-9, atol=1e-12 * kernel.sup_diagonal)
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * kernel.sup_diagonal
    np.testing.assert_allclose(kernel.diagonal(points), gram.diagonal(), rtol=1e-13)
    assert float(gram.max()) <= kernel.sup_diagonal + kernel.gram_error


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shift", [0.0, 3.7, 1e6])
def test_floats_are_within_gram_error_of_balls(name, shift):
    kernel = KERNELS[name]
    if isinstance(kernel, PolynomialKernel) and shift:
        pytest.skip("its box ends at 1")
    points = some_points(kernel, 40, seed=1) + shift
    gram = kernel.gram(points)
    worst = 0.0
    with precision(300):
        balls = [[ball(float(v)) for v in x] for x in points]
        for i, x in enumerate(balls):
            for j, y in enumerate(balls):
                worst = max(worst, float(abs(kernel.ball(x, y) - ball(float(gram[i, j]))).upper()))
    assert worst <= kernel.gram_error
    assert kernel.gram_error <= 2.0**-35 * kernel.sup_diagonal


@given(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5), st.floats(1e-3, 1e3))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_gram_error_holds_far_from_zero_and_for_all_lengths(x, y, length):
    for kernel in (
        GaussianKernel(bandwidth=length), ExponentialKernel(length=length), MaternKernel(length=length, smoothness=2.5),
        PeriodicKernel(length=0.5, period=length), WrappedGaussianKernel(bandwidth=length / 3, period=length),
    ):  # fmt: skip
        found = float(kernel.gram([x], [y])[0, 0])
        with precision(400):
            assert float(abs(kernel.ball([ball(x)], [ball(y)]) - ball(found)).upper()) <= kernel.gram_error


@pytest.mark.parametrize("name", NAMES)
def test_the_supremum_of_the_diagonal_is_reached_and_not_passed(name):
    kernel = KERNELS[name]
    top = np.ones((1, kernel.dimension))
    reached = float(kernel.gram(top)[0, 0])
    assert reached <= kernel.sup_diagonal + kernel.gram_error
    assert reached == pytest.approx(kernel.sup_diagonal, rel=1e-12)


@pytest.mark.parametrize("length", [0.05, 0.4, 3.0])
def test_the_sobolev_norm_of_a_combination_is_the_rkhs_norm(length):
    # Hall's (3.7) for f = sum a_i K(x_i, .) against a'Ga; f is smooth between the x_i, so pieces end there.
    kernel, box = ExponentialKernel(length=length), Box(low=0.0, high=1.0)
    rng = np.random.default_rng(3)
    centres, weights = rng.integers(1, 256, size=6) / 256, rng.normal(size=6)

    def f(x):
        return np.exp(-np.abs(x[:, None] - centres) / length) @ weights

    def slope(x):
        return (
            -np.sign(x[:, None] - centres) / length * np.exp(-np.abs(x[:, None] - centres) / length)
        ) @ weights

    assert kernel.sobolev_squared_norm(f, slope, box) == pytest.approx(
        kernel.squared_norm(centres, weights), rel=1e-9
    )


def test_the_sobolev_norm_reproduces_values():
    # <f, K(x, .)> = f(x) by polarisation, for an f that is no combination of kernels.
    kernel, box, x = ExponentialKernel(length=0.3), Box(low=0.0, high=1.0), 0.25

    def norm(a, b):
        return kernel.sobolev_squared_norm(
            lambda t: a * np.cos(3 * t) + b * np.exp(-np.abs(t - x) / 0.3),
            lambda t: -3 * a * np.sin(3 * t) - b * np.sign(t - x) / 0.3 * np.exp(-np.abs(t - x) / 0.3),
            box,
        )

    assert (norm(1, 1) - norm(1, -1)) / 4 == pytest.approx(math.cos(3 * x), rel=1e-10)


@pytest.mark.parametrize(
    ("kernel", "box"),
    [
        (ExponentialKernel(length=0.3), Box(low=-0.5, high=1.0)),
        (PeriodicKernel(length=0.8, period=0.7), Box(low=0.0, high=0.7)),
        (WrappedGaussianKernel(bandwidth=0.1, period=1.0), Box(low=0.0, high=1.0)),
    ],
)
def test_closed_spectra_solve_the_integral_equation(kernel, box):
    found = kernel.spectrum(box, 9)
    assert found.closed
    nodes, weights = np.polynomial.legendre.leggauss(2000)
    at, w = box.middle[0] + box.sides[0] / 2 * nodes, box.sides[0] / 2 * weights
    psi = found.functions(at)
    np.testing.assert_allclose(psi.T @ (w[:, None] * psi), np.eye(9), atol=1e-7)
    image = kernel.gram(at) @ (w[:, None] * psi)
    np.testing.assert_allclose(image, psi * found.values, atol=2e-6)
    assert all(np.diff(found.values) <= 1e-12)
    other = kernel.spectrum(box, 9, closed=False)
    # A kink on the diagonal costs the quadrature its order.
    rough = 0.03 if isinstance(kernel, ExponentialKernel) else 1e-6
    np.testing.assert_allclose(other.values, found.values, rtol=rough, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "terms"),
    [
        (GaussianKernel(bandwidth=0.2), 20),
        (MaternKernel(length=0.5, smoothness=2.5), 60),
        (PolynomialKernel(degree=3, box=Box.unit()), 4),
        (ExponentialKernel(length=0.5), 400),
    ],
)
def test_eigenvalues_add_up_to_the_trace(kernel, terms):
    found = kernel.spectrum(Box.unit(), terms)
    at = (np.arange(4000) + 0.5) / 4000
    trace = float(kernel.diagonal(at).mean())
    assert found.values.sum() == pytest.approx(trace, rel=2e-3)
    np.testing.assert_allclose(
        (found.functions(at[::37]) ** 2 * found.values).sum(axis=1), kernel.diagonal(at[::37]), rtol=2e-2
    )


def test_norms_of_sums_and_tensor_products():
    first, second = GaussianKernel(bandwidth=0.2), ExponentialKernel(length=0.5)
    product = TensorProductKernel(kernels=(first, second))
    rng = np.random.default_rng(5)
    x, a, y, b = rng.uniform(size=4), rng.normal(size=4), rng.uniform(size=3), rng.normal(size=3)
    pairs = np.array([[u, v] for u in x for v in y])
    squared = product.squared_norm(pairs, np.outer(a, b).ravel())
    assert squared == pytest.approx(first.squared_norm(x, a) * second.squared_norm(y, b), rel=1e-12)
    both = SumKernel(kernels=(first, second))
    assert both.squared_norm(x, a) == pytest.approx(
        first.squared_norm(x, a) + second.squared_norm(x, a), rel=1e-12
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianKernel(bandwidth=0),
        lambda: GaussianKernel(bandwidth=math.nan),
        lambda: GaussianKernel(bandwidth=0.1, dimension=0),
        lambda: GaussianKernel(bandwidth=0.1, dimension=65),
        lambda: ExponentialKernel(length=-1),
        lambda: MaternKernel(length=1, smoothness=Fraction(7, 2)),
        lambda: PeriodicKernel(length=1, period=math.inf),
        lambda: WrappedGaussianKernel(bandwidth=2.0, period=1.0),
        lambda: PolynomialKernel(degree=0, box=Box.unit()),
        lambda: PolynomialKernel(degree=40, box=Box.unit()),
        lambda: SumKernel(kernels=()),
        lambda: SumKernel(kernels=(GaussianKernel(bandwidth=1), GaussianKernel(bandwidth=1, dimension=2))),
        lambda: TensorProductKernel(kernels=("gaussian",)),
        lambda: Box(low=0.0, high=0.0),
        lambda: Box(low=(), high=()),
        lambda: Box(low=math.nan, high=1.0),
        lambda: GaussianKernel(bandwidth=0.1).gram([0.1, math.nan]),
        lambda: GaussianKernel(bandwidth=0.1, dimension=2).gram([[0.1]]),
        lambda: PolynomialKernel(degree=2, box=Box.unit()).gram([1.5]),
        lambda: PeriodicKernel(length=1, period=1e-9).gram([1e6]),
        lambda: GaussianKernel(bandwidth=0.1).squared_norm([0.1, 0.2], [1.0]),
        lambda: GaussianKernel(bandwidth=0.1, dimension=20).spectrum(Box.unit(20), 3),
        lambda: GaussianKernel(bandwidth=0.1).spectrum(Box.unit(2), 3),
    ],
)  # fmt: skip
def test_what_is_no_kernel_is_refused(make):
    with pytest.raises(TacitError) as refusal:
        make()
    assert isinstance(refusal.value, InvalidParameter) or type(refusal.value).__name__ == "EmptyComposition"


def test_kernels_too_small_or_too_large_for_floats_are_refused():
    # (10^-12)^27 is 0 in floats and so was the noise; an error of 0 was claimed for it.
    near, wide = Box(low=-1e-6, high=1e-6), Box(low=-1000, high=1000)
    small, large = (PolynomialKernel(degree=d, box=b, offset=0) for d, b in ((8, near), (32, wide)))
    for make in (
        lambda: PolynomialKernel(degree=27, box=near, offset=0),
        lambda: ProductKernel(kernels=[small] * 4),
        lambda: TensorProductKernel(kernels=[small] * 4),
        lambda: ProductKernel(kernels=[large] * 2),
        lambda: ProductKernel(kernels=[SumKernel(kernels=[large] * 2), large]),
    ):
        with pytest.raises(InvalidParameter, match="2\\^-500"):
            make()
    x = [9e-7]
    with precision(200):
        exact = small.ball([ball(x[0])], [ball(x[0])])
        assert abs(exact - ball(float(small.gram(x)[0, 0]))) <= small.gram_error < 1e-10 * small.sup_diagonal
