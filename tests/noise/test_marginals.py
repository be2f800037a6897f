"""The law of one coordinate of continuous noise: against draws, by integration, and by its own moments."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidParameter, NoLaw
from tacit.mechanisms import Box, Simplex
from tacit.noise import (
    CaratheodoryBody,
    ContinuousBeta,
    ContinuousGamma,
    Difference,
    Ellipsoid,
    EuclideanBall,
    FormulaBody,
    GaussianVector,
    KNormVector,
    L1Ball,
    LinfBall,
    SeededSource,
    Sphere,
)

SIMPLEX = Simplex(vertices=[[2, 1, 0], [-1, 1, 0.5], [0, -2, 1], [-1, 0, -2]])
BODIES = {
    "ball": EuclideanBall(coordinates=4, radius=2),
    "line": EuclideanBall(coordinates=1),
    "ellipsoid": Ellipsoid(factor=[[1, 0, 0], [0.5, 2, 0], [1, 1, 1]]),
    "l1": L1Ball(coordinates=3, radius=2),
    "linf": LinfBall(coordinates=3, radius=1.5),
    "box": Box(low=[-1, -2], high=[3, 0.5]),
    "simplex": SIMPLEX,
    "moments": CaratheodoryBody(frequencies=3),
    "disc": CaratheodoryBody(frequencies=1),
}
NOISES = {name: KNormVector(body=body, noise_scale=1.25) for name, body in BODIES.items()}
LAWS = {
    **BODIES,
    **{f"noise {name}": noise for name, noise in NOISES.items()},
    **{f"difference {name}": Difference(distribution=noise) for name, noise in NOISES.items()},
    "sphere": Sphere(coordinates=4, radius=3),
    "circle": Sphere(coordinates=2),
    "normal": GaussianVector(coordinates=2, noise_std=2, factor=[[1, 0], [1, 1]]),
    "normal difference": Difference(distribution=GaussianVector(coordinates=2, noise_std=2)),
    "gamma": ContinuousGamma(shape=2.3, noise_scale=2),
    "half gamma difference": Difference(distribution=ContinuousGamma(shape=0.5, noise_scale=2)),
    "gamma difference": Difference(distribution=ContinuousGamma(shape=2.5, noise_scale=2)),
    "beta": ContinuousBeta(a=2, b=3.5),
}
# The law of a later coordinate of the body itself has no closed form; that of its noise has.
WITHOUT = {"moments": (2, 3, 4, 5)}
COUNT = 4000


def coordinates(name: str) -> list[int]:
    return [i for i in range(LAWS[name].dimension) if i not in WITHOUT.get(name, ())]


@pytest.mark.parametrize("name", sorted(LAWS))
def test_draws_have_the_stated_law_and_moments(name: str) -> None:
    """Largest gap of the distribution functions below sqrt(ln(2/p) / 2n), p = 1e-11 (Dvoretzky, Kiefer, Wolfowitz;
    Massart); every second moment within 6.8 of its standard errors (p about 1e-11)."""
    law = LAWS[name]
    size = 300 if name in ("gamma", "beta") else COUNT
    x = law.sample(spacing=2.0**-24, size=size, source=SeededSource(seed=11)).to_floats()
    gap = math.sqrt(math.log(2 / 1e-11) / (2 * size))
    for i in coordinates(name):
        drawn = np.sort(x[:, i])[:: max(1, size // 200)]
        found = np.searchsorted(np.sort(x[:, i]), drawn, side="right") / size
        stated = law.marginal(i).cumulative(drawn)
        assert np.abs(found - stated).max() < gap, (name, i)
        np.testing.assert_allclose(stated + law.marginal(i).survival(drawn), 1, atol=1e-9)
    centred = x - np.array([float(m) for m in law.exact_means])
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / math.sqrt(size)
    assert (np.abs(products.mean(axis=0) - law.covariance) <= 6.8 * error + 1e-6).all()
    assert (np.abs(centred.mean(axis=0)) <= 6.8 * x.std(axis=0) / math.sqrt(size) + 1e-6).all()


@pytest.mark.parametrize("name", sorted(LAWS))
def test_moments_are_those_of_the_law(name: str) -> None:
    """E X and E X^2 as integrals of the tails; they were stated as rationals, without the law."""
    law = LAWS[name]
    np.testing.assert_allclose(law.covariance.diagonal(), law.variances, rtol=1e-14)
    np.testing.assert_allclose(law.stds**2, law.variances, rtol=1e-14)
    for i in coordinates(name):
        one = law.marginal(i)
        low, high = one.quantile(Fraction(1, 10**13)), one.quantile(1 - Fraction(1, 10**13))
        far = max(abs(low), abs(high)) * 1.3
        nodes, weights = np.polynomial.legendre.leggauss(400)
        x = (nodes + 1) / 2 * far
        above, below = one.survival(x), one.cumulative(-x)
        mean = float((weights * (above - below)).sum() * far / 2)
        square = float((weights * 2 * x * (above + below)).sum() * far / 2)
        # A body's own law has an edge between the nodes, noise at 0 only.
        off = 3e-3 if name in BODIES or name in ("sphere", "circle", "beta") else 1e-6
        assert mean == pytest.approx(float(law.exact_means[i]), abs=off * law.stds[i])
        assert square - mean**2 == pytest.approx(law.variances[i], rel=off)
        assert one.mean == pytest.approx(float(law.exact_means[i]), abs=1e-12 * law.stds[i])
        assert one.variance == pytest.approx(law.variances[i], rel=1e-12)
        assert one.error <= 1e-9


@pytest.mark.parametrize("name", ["noise box", "noise moments", "difference simplex", "l1", "gamma"])
def test_quantiles_and_intervals_invert_the_law(name: str) -> None:
    for i in coordinates(name):
        one = LAWS[name].marginal(i)
        for p in (0.001, 0.3, 0.5, 0.9, 0.9999):
            assert float(one.cumulative(one.quantile(p))) == pytest.approx(p, abs=1e-9)
        low, high = one.interval(0.9)
        assert float(one.cumulative(low)) == pytest.approx(0.05, abs=1e-9)
        assert float(one.survival(high)) == pytest.approx(0.05, abs=1e-9)
    for bad in (0, 1, -0.5, 2, "x", float("nan")):
        with pytest.raises(InvalidParameter):
            LAWS[name].marginal(0).quantile(bad)
    for bad in (-1, LAWS[name].dimension, 0.5, "x"):
        with pytest.raises(InvalidParameter):
            LAWS[name].marginal(bad)


def test_marginals_from_the_density_of_the_gauge() -> None:
    """body-marginals: e^(-gauge) integrated over the other coordinate of a plane body, without any formula above."""
    line = (np.arange(1600) + 0.5) / 20 - 40
    x, y = np.meshgrid(line, line, indexing="ij")
    gauges = {
        EuclideanBall(coordinates=2, radius=2): np.hypot(x, y) / 2,
        L1Ball(coordinates=2): np.abs(x) + np.abs(y),
        Box(low=[-1, -2], high=[3, 0.5]): np.maximum.reduce([x / 3, -x, y / 0.5, -y / 2]),
        # corners (2, 1), (-1, 1), (-1, -3): the facets are y = 1, x = -1 and 4x - 3y = 5
        Simplex(vertices=[[2, 1], [-1, 1], [-1, -3]]): np.maximum.reduce([y, -x, (4 * x - 3 * y) / 5]),
        CaratheodoryBody(frequencies=1): np.hypot(x, y),
    }
    for body, gauge in gauges.items():
        density = np.exp(-gauge)
        beyond = density[line > 1.2].sum() / density.sum()
        stated = float(KNormVector(body=body, noise_scale=1).marginal(0).survival(1.2))
        assert stated == pytest.approx(beyond, abs=3e-4)


def test_moment_noise_in_the_plane_of_angles() -> None:
    """caratheodory-marginals for m = 2: sum g_i cos(k theta_i) with g_i ~ Gamma(2) and theta_1 - theta_2 of the density
    that caratheodory-inertia has, summed over a grid of angles; and its characteristic function is the stated one."""
    from tacit.noise.caratheodory import moment_characteristic

    n = 400
    theta = (np.arange(n) + 0.5) * 2 * math.pi / n
    a, b = np.meshgrid(theta, theta, indexing="ij")
    # p = 1, q = 2: 4pq - (p+q)^2 cos(q-p) + (q-p)^2 cos(p+q)
    density = 8 - 9 * np.cos(a - b) + np.cos(3 * (a - b))
    density = density / density.sum()
    for k in (1, 2):
        for t in (0.2, 0.9, 3.0, 6.0):
            by_angles = (density * ((1 - 1j * t * np.cos(k * a)) * (1 - 1j * t * np.cos(k * b))) ** -2).sum()
            stated = moment_characteristic(2, k, np.array([t]))[0]
            assert stated == pytest.approx(by_angles.real, abs=1e-12)
            assert abs(by_angles.imag) < 1e-12


def test_rounded_noise_has_the_law_of_its_cells() -> None:
    """What `sample` draws on a coarse grid; the variance counts the rounding, and is not only the noise's and 1/12."""
    for name in ("noise box", "noise moments", "noise simplex", "difference ball", "normal"):
        law = LAWS[name]
        for spacing in (4, 2.0**-3):
            drawn = law.sample(spacing=spacing, size=COUNT, source=SeededSource(seed=3)).values
            for i in (0, law.dimension - 1):
                one = law.marginal(i).rounded(spacing)
                k = np.arange(-3, 4)
                stated = one.probability(k)
                found = np.array([(drawn[:, i] == v).mean() for v in k])
                assert (np.abs(found - stated) <= 7 * np.sqrt(stated * (1 - stated) / COUNT) + 1e-3).all()
                square = (drawn[:, i] - one.mean) ** 2
                assert abs(square.mean() - one.variance) < 7 * square.std() / math.sqrt(COUNT)
                assert one.std == pytest.approx(math.sqrt(one.variance))
                low, high = one.interval(0.9)
                assert float(one.cumulative(high) - one.cumulative(low - 1)) >= 0.9
                assert (
                    float(one.cumulative(one.quantile(0.7)))
                    >= 0.7
                    > float(one.cumulative(one.quantile(0.7) - 1))
                )
    fine = LAWS["normal"].marginal(0)
    assert fine.rounded(Fraction(1, 4)).variance == pytest.approx(64 + 1 / 12, rel=1e-12)
    assert fine.rounded(64).variance < 1e-50


def test_formulas_of_ones_own_have_the_moments_that_are_declared() -> None:
    ball = LinfBall(coordinates=2)
    rows = [[Fraction(1, 3), 0], [0, Fraction(1, 3)]]

    def made(**more: object) -> FormulaBody:
        return FormulaBody(coordinates=2, primitives=ball.needs(), sampler=ball.formula, **more)  # type: ignore[arg-type]

    for bare in (made(), made(is_symmetric=True), made(declared_covariance=rows)):
        for law in (bare, KNormVector(body=bare, noise_scale=1)):
            for read in ("covariance", "variances", "exact_variances", "stds", "expected_squared_error"):
                with pytest.raises(NoLaw):
                    getattr(law, read)
            with pytest.raises(NoLaw):
                law.marginal(1)
    told = made(is_symmetric=True, declared_covariance=rows)
    shifted = made(declared_covariance=rows, declared_mean=[0, 0])
    known = KNormVector(body=ball, noise_scale=2)
    for body in (told, shifted):
        noise = KNormVector(body=body, noise_scale=2)
        np.testing.assert_array_equal(noise.covariance, known.covariance)
        assert noise.expected_squared_error == known.expected_squared_error == 2 * 12 / 3 * 4
        with pytest.raises(NoLaw):
            noise.marginal(0)
    for wrong in ([[1, 0]], [[1, 0], [1, 1]], [[1, 0, 0], [0, 1, 0]], [[0, 0], [0, 1]], 3, "ab"):
        with pytest.raises(InvalidParameter):
            made(declared_covariance=wrong)
    with pytest.raises(InvalidParameter):
        made(declared_mean=[0])


@pytest.mark.parametrize("d", [3, 61, 199, 201, 1000, 20_000])
def test_balls_of_many_dimensions(d: int) -> None:
    """Pr[G - G' > x] = E Pr[G > x + G'], both Gamma((d+1)/2), by quadrature over G'."""
    from scipy.special import gammaincc, gammainccinv, gammaincinv

    shape = (d + 1) / 2
    one = KNormVector(body=EuclideanBall(coordinates=d), noise_scale=1).marginal(d - 1)
    nodes, weights = np.polynomial.legendre.leggauss(300)
    low, high = gammaincinv(shape, 1e-15), gammainccinv(shape, 1e-15)
    g = (high - low) / 2 * nodes + (high + low) / 2
    density = np.exp((shape - 1) * np.log(g) - g - math.lgamma(shape)) * weights * (high - low) / 2
    density /= density.sum()
    for z in (0.0, 0.5, 2.0, 5.0):
        x = z * one.std
        assert float(one.survival(x)) == pytest.approx(
            float((density * gammaincc(shape, np.maximum(x + g, 0))).sum()), abs=2e-9
        )
        assert float(one.cumulative(-x)) == float(one.survival(x))
    assert one.std == pytest.approx(math.sqrt(d + 1))
