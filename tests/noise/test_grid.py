"""Continuous noise on a grid: enclosures hold, roundings are those of one exact draw, laws fit."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betainc, gammainc, ndtr

from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.enclosures import Enclosure
from tacit.exact.rounding import precision
from tacit.noise import (
    ContinuousBeta,
    ContinuousGamma,
    Difference,
    Draws,
    Ellipsoid,
    EuclideanBall,
    FormulaBody,
    GaussianVector,
    GridVector,
    KNormVector,
    L1Ball,
    LinfBall,
    Needs,
    SampledBody,
    SeededSource,
    Source,
    Sphere,
    default_source,
    rounding_delta,
)
from tacit.noise.distributions.base import Uniform, exp_minus
from tacit.noise.reals import Exponentials, Normals, Uniforms, _settle

getcontext().prec = 50
GRID = Fraction(1, 1 << 20)


# -- the arithmetic ----------------------------------------------------------------------------------


def test_taylor_polynomial_is_within_its_bound() -> None:
    t = np.linspace(0.0, 0.5, 3001)
    for x, y in zip(t, exp_minus(t), strict=True):
        assert abs(Decimal(float(y)) - (-Decimal(float(x))).exp()) < Decimal(2) ** -48


def test_enclosures_enclose() -> None:
    """Random straight-line programs against exact rationals, with inputs anywhere in their intervals."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        mids = rng.normal(size=(4, 8)) * 10.0 ** rng.integers(-6, 6, size=(4, 8))
        rads = np.abs(mids) * 10.0 ** rng.integers(-16, -3, size=(4, 8))
        shift = rng.uniform(-1, 1, size=(4, 8))
        exact = [
            [Fraction(m) + Fraction(r) * Fraction(s) for m, r, s in zip(*row, strict=True)]
            for row in zip(mids, rads, shift, strict=True)
        ]
        a, b, c, d = (Enclosure(m, r) for m, r in zip(mids, rads, strict=True))
        x, y, z, w = exact
        got = (a * b - c) / (d * d + 1.0) + a * 3.0
        want = [(p * q - r) / (s * s + 1) + p * 3 for p, q, r, s in zip(x, y, z, w, strict=True)]
        for m, r, v in zip(got.mid, got.rad, want, strict=True):
            assert abs(v - Fraction(float(m))) <= Fraction(float(r))
        length = (a * a).total().root()
        square = sum(p * p for p in x)
        low, high = (Fraction(float(length.mid[0])) + s * Fraction(float(length.rad[0])) for s in (-1, 1))
        assert low**2 <= square <= high**2
        matrix = rng.normal(size=(3, 8))
        product = Enclosure(a.mid[None, :], a.rad[None, :]).apply(matrix)
        for j in range(3):
            exact_sum = sum(Fraction(float(matrix[j, i])) * x[i] for i in range(8))
            assert abs(exact_sum - Fraction(float(product.mid[0, j]))) <= Fraction(float(product.rad[0, j]))


def test_division_by_what_may_be_zero_is_unknown() -> None:
    quotient = Enclosure(np.array([1.0])) / Enclosure(np.array([1e-3]), 1e-2)
    assert np.isnan(quotient.rad[0])
    assert np.isnan(Enclosure(np.array([1e-3]), 1e-2).root().rad[0])


@pytest.mark.parametrize("kind", [Uniforms, Exponentials, Normals])
def test_primitives_lie_in_their_enclosures_and_extensions_only_shrink(kind) -> None:
    source = SeededSource(seed=3)
    drawn = kind.draw((40, 2), source)
    enclosure = drawn.enclosure()
    for i in range(40):
        lazy = drawn.lazy((i, 1), source)
        with precision(400):
            before = lazy.ball()
            assert abs(before.mid() - float(enclosure.mid[i, 1])) + before.rad() <= float(enclosure.rad[i, 1])
            lazy.extend()
            lazy.extend()
            after = lazy.ball()
            assert before.contains(after)
            assert after.rad() < 2.0**-100


def test_a_doubtful_choice_draws_bits_of_both_numbers(scripted) -> None:
    """On the boundary to 64 bits, further words decide, and the place keeps the bits it was given."""
    place, words = 1 << 63, scripted([5] * 40)
    with precision(300):
        import flint

        y = flint.arb(0.5)
        target = (-(y * (2 * 9 + y)) / 2048).exp() * flint.arb(1 << 64)
        word = int(target.floor().unique_fmpz())
    at = Uniform(value=place, bits=64, source=words)
    choice = Uniform(value=word, bits=64, source=words)
    assert _settle(9, at, choice) in (True, False)
    assert at.bits > 64
    assert at.value >> (at.bits - 64) == place


# -- one draw, many grids -------------------------------------------------------------------------------

EVERY = [
    GaussianVector(coordinates=3, noise_std=2),
    GaussianVector(coordinates=2, noise_std=1, factor=[[1, 0], [0.5, Fraction(1, 3)]]),
    ContinuousGamma(shape=4, noise_scale=Fraction(1, 3)),
    ContinuousGamma(shape=Fraction(5, 2), noise_scale=3),
    ContinuousBeta(a=2, b=3),
    Sphere(coordinates=3),
    EuclideanBall(coordinates=2, radius=5),
    L1Ball(coordinates=3),
    LinfBall(coordinates=4),
    Ellipsoid(factor=[[2, 0], [1, 1]]),
    KNormVector(body=EuclideanBall(coordinates=3), noise_scale=2),
    Difference(distribution=KNormVector(body=L1Ball(coordinates=2), noise_scale=1)),
]


@pytest.mark.parametrize("law", EVERY, ids=lambda law: repr(law)[:50])
def test_the_coarse_rounding_is_the_rounding_of_the_fine_one(law) -> None:
    """Same seed, two grids: the float road and the ball road see one and the same exact draw."""
    fine = law.sample(spacing=Fraction(1, 1 << 120), size=20, source=SeededSource(seed=21))
    coarse = law.sample(spacing=Fraction(1, 1 << 12), size=20, source=SeededSource(seed=21))
    assert fine.values.dtype == object
    assert coarse.values.dtype == np.int64
    half = 1 << 107
    for f, c in zip(fine.values.ravel(), coarse.values.ravel(), strict=True):
        # The fine value is itself rounded by half a fine step, which can only matter on a border.
        assert abs((int(f) + half >> 108) - int(c)) == 0
    assert fine.numerical_delta == coarse.numerical_delta == 0.0


def test_what_a_grid_vector_says() -> None:
    drawn = GaussianVector(coordinates=2, noise_std=1).sample(spacing=GRID)
    assert drawn.publishable
    assert drawn.values.shape == (2,)
    assert drawn.spacing == GRID
    seeded = GaussianVector(coordinates=2, noise_std=1).sample(
        spacing=GRID, size=0, source=SeededSource(seed=1)
    )
    assert not seeded.publishable
    assert seeded.values.shape == (0, 2)
    with pytest.raises(InvalidParameter):
        GridVector(values=np.zeros(1), spacing=Fraction(1, 3), numerical_delta=0.0, publishable=True)
    with pytest.raises(InvalidParameter):
        GridVector(values=np.zeros(1), spacing=Fraction(1), numerical_delta=math.nan, publishable=True)


# -- laws -------------------------------------------------------------------------------------------------


def floats(law, n: int, seed: int = 5) -> np.ndarray:
    return law.sample(spacing=GRID, size=n, source=SeededSource(seed=seed)).to_floats()


def fit(values: np.ndarray, cdf, p_of, low: float, high: float, cells: int = 60) -> float:
    edges = np.linspace(low, high, cells + 1)
    expected = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]])) * values.size
    observed = np.histogram(values, bins=np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    return p_of(observed, expected)


def test_gaussian_fits(p_of) -> None:
    x = floats(GaussianVector(coordinates=2, noise_std=2), 60_000)
    assert fit(x[:, 0], lambda e: ndtr(e / 2), p_of, -8, 8) > 1e-9
    assert abs(np.corrcoef(x.T)[0, 1]) < 6.2 / math.sqrt(60_000)


def test_gaussian_with_a_factor_has_its_covariance() -> None:
    factor = np.array([[1.0, 0.0], [0.5, 0.25]])
    x = floats(GaussianVector(coordinates=2, noise_std=2, factor=factor), 60_000)
    want = 4 * factor @ factor.T
    got = np.cov(x.T)
    for i in range(2):
        for j in range(2):
            spread = math.sqrt((want[i, i] * want[j, j] + want[i, j] ** 2) / 60_000)
            assert abs(got[i, j] - want[i, j]) < 6.2 * spread


@pytest.mark.parametrize("shape", [Fraction(1, 2), 1, Fraction(7, 2), 6])
def test_gamma_fits(shape, p_of) -> None:
    x = floats(ContinuousGamma(shape=shape, noise_scale=3), 40_000).ravel()
    assert fit(x, lambda e: gammainc(float(shape), e / 3), p_of, 0, 3 * (float(shape) + 8)) > 1e-9


@pytest.mark.parametrize(("a", "b"), [(1, 5), (Fraction(1, 2), Fraction(3, 2)), (3, 2)])
def test_beta_fits(a, b, p_of) -> None:
    x = floats(ContinuousBeta(a=a, b=b), 40_000).ravel()
    assert fit(x, lambda e: betainc(float(a), float(b), np.clip(e, 0, 1)), p_of, 0, 1) > 1e-9


def test_shapes_that_are_no_multiple_of_a_half(p_of) -> None:
    x = floats(ContinuousGamma(shape=0.3, noise_scale=1), 1_500).ravel()
    assert fit(x, lambda e: gammainc(0.3, np.maximum(e, 0)), p_of, 0, 3, 20) > 1e-9
    y = floats(ContinuousBeta(a=0.3, b=1.7), 1_000).ravel()
    assert fit(y, lambda e: betainc(0.3, 1.7, np.clip(e, 0, 1)), p_of, 0, 1, 20) > 1e-9


def test_radii_and_directions(p_of) -> None:
    n, d = 30_000, 3
    ball = np.linalg.norm(floats(EuclideanBall(coordinates=d), n), axis=1)
    assert fit(ball, lambda e: np.clip(e, 0, 1) ** d, p_of, 0, 1) > 1e-9
    l1 = np.abs(floats(L1Ball(coordinates=d), n)).sum(axis=1)
    assert fit(l1, lambda e: np.clip(e, 0, 1) ** d, p_of, 0, 1) > 1e-9
    linf = np.abs(floats(LinfBall(coordinates=d), n)).max(axis=1)
    assert fit(linf, lambda e: np.clip(e, 0, 1) ** d, p_of, 0, 1) > 1e-9
    sphere = floats(Sphere(coordinates=3), n)
    assert np.abs(np.linalg.norm(sphere, axis=1) - 1).max() < 2.0**-19
    # Archimedes: a coordinate of the 2-sphere is uniform on [-1, 1].
    assert fit(sphere[:, 1], lambda e: (np.clip(e, -1, 1) + 1) / 2, p_of, -1, 1) > 1e-9


def test_knorms_have_gamma_gauges(p_of) -> None:
    """For density exp(-gauge) the gauge is Gamma(d), whatever the body."""
    n, d = 30_000, 3
    inverse = np.linalg.inv(np.array([[2.0, 0, 0], [1, 1, 0], [0, 0, 3]]))
    for body, gauge in (
        (EuclideanBall(coordinates=d), lambda x: np.linalg.norm(x, axis=1)),
        (L1Ball(coordinates=d), lambda x: np.abs(x).sum(axis=1)),
        (LinfBall(coordinates=d), lambda x: np.abs(x).max(axis=1)),
        (
            Ellipsoid(factor=[[2, 0, 0], [1, 1, 0], [0, 0, 3]]),
            lambda x: np.linalg.norm(x @ inverse.T, axis=1),
        ),
    ):
        r = gauge(floats(KNormVector(body=body, noise_scale=2), n))
        assert fit(r, lambda e: gammainc(d, e / 2), p_of, 0, 24) > 1e-9
    x = floats(KNormVector(body=L1Ball(coordinates=2), noise_scale=1), n)[:, 0]
    laplace = lambda e: np.where(e < 0, np.exp(np.minimum(e, 0)) / 2, 1 - np.exp(-np.maximum(e, 0)) / 2)  # noqa: E731
    assert fit(x, laplace, p_of, -8, 8) > 1e-9


def test_a_body_by_formula(p_of) -> None:
    """The simplex with a corner at 0, which is not symmetric: spacings of exponentials."""

    def simplex(draws: Draws):
        from tacit.noise import total

        e = draws.exponentials(3)
        return e[:, :2] / total(e)

    body = FormulaBody(coordinates=2, primitives=Needs(exponentials=3), sampler=simplex)
    assert not body.symmetric
    x = floats(body, 30_000).sum(axis=1)
    assert fit(x, lambda e: np.clip(e, 0, 1) ** 2, p_of, 0, 1) > 1e-9
    both = Difference(distribution=KNormVector(body=body, noise_scale=1)).sample(spacing=GRID, size=5)
    assert both.numerical_delta == 0.0


def test_a_formula_that_draws_more_than_it_declares_is_refused() -> None:
    greedy = FormulaBody(
        coordinates=1, primitives=Needs(uniforms=1), sampler=lambda draws: draws.uniforms(2)[:, :1]
    )
    with pytest.raises(InvalidParameter):
        greedy.sample(spacing=GRID)
    wrong = FormulaBody(coordinates=2, primitives=Needs(uniforms=1), sampler=lambda draws: draws.uniforms(1))
    with pytest.raises(InvalidParameter):
        wrong.sample(spacing=GRID)


# -- approximate bodies ------------------------------------------------------------------------------------


def cube(count: int, source: Source) -> np.ndarray:
    return (source.words(3 * count) >> np.uint64(11)).astype(float).reshape(count, 3) * 2.0**-52 - 1


def test_an_approximate_body_says_what_it_costs() -> None:
    body = SampledBody(
        coordinates=3, sampler=cube, absolute_error=2.0**-52, marginal_density_bound=0.5, reach=1.0
    )
    one = body.sample(spacing=2.0**-10)
    assert 3 * 2 * 2.0**-52 * 2.0**10 < one.numerical_delta < 1e-10
    ten = body.sample(spacing=2.0**-10, size=10)
    assert ten.numerical_delta == pytest.approx(10 * one.numerical_delta, rel=1e-6)
    noise = body.sample_knorm(noise_scale=10, spacing=2.0**-4, source=SeededSource(seed=1))
    assert 0 < noise.numerical_delta < 1e-8
    assert not noise.publishable
    with pytest.raises(NotCertified):
        body.sample(spacing=2.0**-52)
    beyond = SampledBody(
        coordinates=3, sampler=cube, absolute_error=2.0**-52, marginal_density_bound=0.5, reach=0.01
    )
    with pytest.raises(NotCertified):
        beyond.sample(spacing=2.0**-10, size=50)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidParameter):
            SampledBody(
                coordinates=3, sampler=cube, absolute_error=bad, marginal_density_bound=0.5, reach=1.0
            )


def test_rounding_delta_bounds_an_exact_case() -> None:
    """Uniform on [0, 1), shifted by eta: the rounded laws differ by eta at each of the two end cells."""
    eta, g = 2.0**-30, 2.0**-5
    bound = rounding_delta(coordinates=1, absolute_error=eta, spacing=g, marginal_density_bound=1.0)
    assert eta <= bound <= 2 * eta * (1 / g + 3)
    for bad in ({"absolute_error": -1.0}, {"absolute_error": math.nan}, {"coordinates": 0}, {"spacing": 0.3}):
        with pytest.raises(InvalidParameter):
            rounding_delta(
                **{
                    "coordinates": 1,
                    "absolute_error": eta,
                    "spacing": g,
                    "marginal_density_bound": 1.0,
                    **bad,
                }
            )


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, None, "1", True], ids=repr)
def test_bad_parameters(bad: object) -> None:
    for make in (
        lambda: GaussianVector(coordinates=2, noise_std=bad),
        lambda: ContinuousGamma(shape=bad, noise_scale=1),
        lambda: ContinuousGamma(shape=1, noise_scale=bad),
        lambda: ContinuousBeta(a=bad, b=1),
        lambda: ContinuousBeta(a=1, b=bad),
        lambda: Sphere(coordinates=2, radius=bad),
        lambda: EuclideanBall(coordinates=2, radius=bad),
        lambda: L1Ball(coordinates=2, radius=bad),
        lambda: LinfBall(coordinates=2, radius=bad),
        lambda: KNormVector(body=LinfBall(coordinates=2), noise_scale=bad),
        lambda: GaussianVector(coordinates=2, noise_std=1).sample(spacing=bad),
    ):
        with pytest.raises(InvalidParameter):
            make()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None], ids=repr)
def test_bad_dimensions(bad: object) -> None:
    for law in (Sphere, EuclideanBall, L1Ball, LinfBall):
        with pytest.raises(InvalidParameter):
            law(coordinates=bad)


def test_bad_matrices_and_grids() -> None:
    for factor in ([], [[]], [[1, 2], [3]], [[1, math.nan]], [[1, 2], [2, 4]], [[1, 2]]):
        with pytest.raises(InvalidParameter):
            Ellipsoid(factor=factor)
    with pytest.raises(InvalidParameter):
        GaussianVector(coordinates=3, noise_std=1, factor=[[1, 0], [0, 1]])
    for spacing in (0.3, 3, Fraction(1, 10)):
        with pytest.raises(InvalidParameter):
            Sphere(coordinates=2).sample(spacing=spacing)
    with pytest.raises(InvalidParameter):
        Sphere(coordinates=2).sample(spacing=1, size=-1)


def test_extreme_scales_are_right_or_refused() -> None:
    for size in (10**400, Fraction(1, 10**400)):
        with pytest.raises(InvalidParameter, match="ordinary size"):
            GaussianVector(coordinates=1, noise_std=size)
    source = SeededSource(seed=1)
    huge = GaussianVector(coordinates=1, noise_std=10**300).sample(spacing=1, size=3, source=source)
    assert all(abs(int(v)) > 10**280 for v in huge.values.ravel())
    tiny = GaussianVector(coordinates=1, noise_std=Fraction(1, 10**300)).sample(spacing=1, size=3)
    assert tiny.values.ravel().tolist() == [0, 0, 0]
    assert default_source().publishable
