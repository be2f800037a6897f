"""Typed sensitivities, grids, and what rounding adds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.mechanisms import (
    L1,
    L2,
    Box,
    Contribution,
    CountSensitivity,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    Geometric,
    Grid,
    IntervalExponential,
    KNorm,
    KNormDifference,
    Laplace,
    Linf,
    Mahalanobis,
    MedianByTest,
    PermuteAndFlip,
    RoundedGaussian,
    Score,
    Simplex,
    Staircase,
    TruncatedGeometric,
    gauge,
    on_grid,
)
from tacit.noise import EuclideanBall, FormulaBody, L1Ball, LinfBall, Needs

KINDS = [L1(2.0), L2(2.0), Linf(2.0), CountSensitivity(2), Score(2.0), Gauge(2.0, L1Ball(coordinates=2))]
WRONG = [
    (lambda s: Laplace(sensitivity=s, noise_scale=1), {"L1"}),
    (lambda s: Laplace.for_target(epsilon=1, sensitivity=s), {"L1"}),
    (lambda s: Gaussian(sensitivity=s, noise_std=1), {"L2"}),
    (lambda s: Gaussian.for_target(epsilon=1, delta=1e-3, sensitivity=s), {"L2"}),
    (lambda s: RoundedGaussian(sensitivity=s, noise_std=1, dimension=2), {"L2"}),
    (lambda s: Gamma(sensitivity=s, noise_scale=1, dimension=2), {"L2"}),
    (lambda s: KNorm(sensitivity=s, noise_scale=1), {"Gauge"}),
    (lambda s: KNormDifference(sensitivity=s, noise_scale=1), set()),
    (lambda s: Geometric(epsilon=1, sensitivity=s), {"CountSensitivity"}),
    (lambda s: TruncatedGeometric(epsilon=1, low=0, high=9, sensitivity=s), {"CountSensitivity"}),
    (lambda s: Staircase(epsilon=1, sensitivity=s), {"L1", "CountSensitivity"}),
    (lambda s: Exponential(epsilon=1, sensitivity=s), {"Score"}),
    (lambda s: PermuteAndFlip(epsilon=1, sensitivity=s), {"Score"}),
    (lambda s: IntervalExponential(sensitivity=s, noise_scale=1, low=0, high=9), {"L1"}),
    (lambda s: MedianByTest(proposed=s, test_epsilon=1, release_epsilon=1, delta=0.01), {"L1"}),
]


@pytest.mark.parametrize(("make", "right"), WRONG)
def test_only_the_right_kind_is_taken(make, right) -> None:
    for kind in KINDS:
        if type(kind).__name__ in right:
            make(kind)
        else:
            with pytest.raises(InvalidParameter) as caught:
                make(kind)
            assert caught.value.parameter == "sensitivity"
            assert caught.value.hint
    with pytest.raises(InvalidParameter):
        make(2.0)


@pytest.mark.parametrize(
    "kind", [L1, L2, Linf, CountSensitivity, Score, L2.root, lambda v: Gauge(v, L1Ball(coordinates=2))]
)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_values_are_refused(kind, value) -> None:
    with pytest.raises(InvalidParameter):
        kind(value)


def test_zero_says_that_no_noise_is_needed() -> None:
    with pytest.raises(InvalidParameter, match="needs no noise"):
        L1(0)


def test_values_are_exact_and_count_in_steps() -> None:
    assert L1(0.1).exact == Fraction(0.1)
    assert L1(2.5).steps(Fraction(1)) == 2
    assert L2.root(2).squared_steps(Fraction(1)) == 2
    assert L2(1.5).squared_steps(Fraction(1, 2)) == 9
    with pytest.raises(InvalidParameter, match="finer grid"):
        L1(0.25).steps(Fraction(1))
    with pytest.raises(InvalidParameter, match="finer grid"):
        L2(0.25).squared_steps(Fraction(1))
    assert Linf(3).to_l1(dimension=4).exact == 12
    assert Linf(3).to_l2(dimension=4).square == 36


@given(
    st.lists(st.floats(-50, 50), min_size=3, max_size=3), st.lists(st.floats(-50, 50), min_size=3, max_size=3),
    st.sampled_from([1.0, 0.25, 2.0**-7]),
)  # fmt: skip
def test_rounding_adds_at_most_what_is_counted(x, y, spacing) -> None:
    before, after = (
        np.array(x) - np.array(y),
        (on_grid(x, spacing=spacing) - on_grid(y, spacing=spacing)) * spacing,
    )
    sizes = [(L1, 1), (L2, 2), (Linf, np.inf)]
    for kind, order in sizes:
        size = float(np.linalg.norm(before, order))
        if size > 0:
            counted = float(kind(size).rounded(spacing=spacing, dimension=3).value)
            assert np.linalg.norm(after, order) <= counted * (1 + 1e-12)
    sigma = [[2, 1, 0], [1, 3, 1], [0, 1, 4]]
    inverse = np.linalg.inv(np.array(sigma, dtype=float))
    size = float(np.sqrt(before @ inverse @ before))
    if size > 0:
        counted = float(Mahalanobis(size, sigma).rounded(spacing=spacing).value)
        assert np.sqrt(after @ inverse @ after) <= counted * (1 + 1e-9)
    for body in (
        Box(low=[-1, -2, -1], high=[2, 1, 3]),
        Simplex(vertices=[[-1, -1, -1], [4, -1, -1], [-1, 4, -1], [-1, -1, 4]]),
        LinfBall(coordinates=3), EuclideanBall(coordinates=3, radius=2), L1Ball(coordinates=3),
    ):  # fmt: skip
        size = float(max(gauge(body, before)[0], gauge(body, -before)[0]))
        if size > 1e-9:
            counted = float(Gauge(size, body).rounded(spacing=spacing).value)
            assert gauge(body, after)[0] <= counted * (1 + 1e-9)


def test_on_grid_is_exact() -> None:
    assert on_grid([0.5, 1.5, 2.5, -0.5], spacing=1).tolist() == [0, 2, 2, 0]
    assert on_grid([0.1], spacing=2.0**-60).tolist() == [round(Fraction(0.1) * 2**60)]
    assert on_grid([2.0**80], spacing=2.0**-10).tolist() == [2**90]
    assert on_grid([Fraction(1, 3)], spacing=Fraction(1, 1024)).tolist() == [341]
    assert on_grid([1e-300, 2.0**-1022], spacing=Fraction(1, 2**1022)).tolist() == [
        round(Fraction(1e-300) * 2**1022),
        1,
    ]
    with pytest.raises(InvalidParameter, match="ordinary size"):
        on_grid([1e-310], spacing=Fraction(1, 2**1074))
    assert on_grid([], spacing=1).shape == (0,)
    assert on_grid(np.zeros((0, 3)), spacing=1).shape == (0, 3)
    grid = Grid(spacing=0.25)
    assert grid.read(grid.put([0.3, 7.0])).tolist() == [0.25, 7.0]
    for bad in ([math.nan], [math.inf], ["a"], [True]):
        with pytest.raises(InvalidParameter) as caught:
            on_grid(bad, spacing=1)
        assert caught.value.hint
    for spacing in (0, -1, 0.3, math.nan):
        with pytest.raises(InvalidParameter):
            on_grid([1.0], spacing=spacing)


def test_bodies_must_surround_the_origin() -> None:
    for make in (
        lambda: Box(low=[0.5, -1], high=[2, 1]),
        lambda: Box(low=[0, -1], high=[2, 1]),
        lambda: Simplex(vertices=[[1, 1], [2, 1], [1, 2]]),
        lambda: Simplex(vertices=[[0, 0], [1, 0], [0, 1]]),
        lambda: Simplex(vertices=[[-1, -1], [0, 0], [1, 1]]),
    ):
        with pytest.raises(InvalidParameter):
            make()
    with pytest.raises(InvalidParameter, match="symmetric"):
        KNorm(sensitivity=Gauge(1, Box(low=[-1], high=[2])), noise_scale=1)
    body = FormulaBody(coordinates=1, primitives=Needs(uniforms=1), sampler=lambda d: d.uniforms(1))
    with pytest.raises(InvalidParameter, match="symmetric"):
        KNorm(sensitivity=Gauge(1, body), noise_scale=1)
    with pytest.raises(InvalidParameter):
        Contribution(1, "a cube")  # type: ignore[arg-type]


def test_covariances_must_be_positive_definite() -> None:
    for bad in (
        [[1, 2], [2, 1]],
        [[1, 0.5], [0.4, 1]],
        [[0, 0], [0, 0]],
        [[1, 1], [1, 1]],
        [[1, 2]],
        [[math.nan]],
    ):
        with pytest.raises(InvalidParameter):
            Mahalanobis(1, bad)


def test_the_factor_of_a_covariance_never_shrinks_the_norm() -> None:
    generator = np.random.default_rng(5)
    for d in (1, 2, 5):
        root = generator.normal(size=(d, d))
        sigma = root @ root.T + np.eye(d)
        sigma = (sigma + sigma.T) / 2
        s = Mahalanobis(1, sigma)
        factor = np.array([[float(v) for v in row] for row in s.factor])
        inverse = np.linalg.inv(sigma)
        for v in generator.normal(size=(50, d)):
            size = np.sqrt(v @ inverse @ v)
            assert np.linalg.norm(np.linalg.solve(factor, v)) <= size * float(s.factor_value) * (1 + 1e-12)
        assert float(s.factor_value) < 1 + 1e-10


def test_gauges_agree_with_their_definition() -> None:
    simplex = Simplex(vertices=[[-1, -1], [3, -1], [-1, 3]])
    box = Box(low=[-1, -2], high=[3, 1])
    for body, corners in ((simplex, simplex.vertices), (box, list(itertools.product((-1, 3), (-2, 1))))):
        assert np.allclose(gauge(body, [[float(c) for c in p] for p in corners]), 1)
        middle = np.mean([[float(c) for c in p] for p in corners], axis=0)
        assert gauge(body, middle)[0] < 1
