"""How far one row moves a density: neighbours from the definition, norms from second formulas, integers exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.exact.rounding import precision
from tacit.functions import Box, ExponentialKernel, GaussianKernel, GaussianProcessRelease
from tacit.functions.bases import FourierBasis, HermiteBasis, HistogramBasis, WaveletBasis
from tacit.functions.densities import DensityFamily, DensityPlan, GaussianKDE, ReflectedKDE, SobolevKDE
from tacit.functions.density_families import BITS, SPACING, TABLE_ERROR, lattice_points, lattice_table
from tacit.guarantees import Neighbours

UNIT = Box.unit()
ADD = Neighbours.ADD_OR_REMOVE
ALL: list[DensityFamily] = [
    GaussianKDE(domain=UNIT, bandwidth=0.1),
    GaussianKDE(domain=Box(low=[-3, 0], high=[5, 1]), bandwidth=[1.0, 0.2]),
    ReflectedKDE(domain=UNIT, bandwidth=0.1),
    ReflectedKDE(domain=Box.unit(2), bandwidth=[0.1, 0.2]),
    SobolevKDE(domain=UNIT, bandwidth=0.1),
    SobolevKDE(domain=UNIT, bandwidth=0.1, length=0.3, points=33),
    SobolevKDE(domain=Box.unit(2), bandwidth=0.2, points=12),
    FourierBasis(domain=UNIT, order=5),
    FourierBasis(domain=Box.unit(2), order=[2, 3]),
    HermiteBasis(domain=Box(low=-4, high=4), order=9),
    WaveletBasis(domain=UNIT, levels=4),
    WaveletBasis(domain=Box.unit(2), levels=2, wavelet="haar"),
    HistogramBasis(domain=UNIT, bins=12),
    HistogramBasis(domain=Box.unit(2), bins=[3, 4]),
]


def ids(family: DensityFamily) -> str:
    return f"{family.kind} {family.dimension}d {family.coefficients}"


def random_row(family: DensityFamily, draw: np.random.Generator) -> np.ndarray:
    low, side = np.array(family.domain.lows), family.domain.sides
    kind = draw.integers(6)
    if kind == 0:
        return low + side * draw.integers(0, 2, family.dimension)
    if kind == 1:
        return np.full(family.dimension, [np.nan, np.inf, -1e300][draw.integers(3)])
    return low + side * draw.random(family.dimension)


@pytest.mark.parametrize("family", ALL, ids=ids)
@pytest.mark.parametrize("outside", ["edge", "absent"])
def test_no_neighbour_moves_the_integers_further_than_stated(family: DensityFamily, outside: str) -> None:
    """Sixty pairs each way: replaced rows, and rows that come or go; the sums are integers of the code's grid."""
    draw = np.random.default_rng(7)
    rest = np.array([random_row(family, draw) for _ in range(3)])
    for _ in range(60):
        one, other = random_row(family, draw), random_row(family, draw)
        sums = [
            family.sums(np.vstack([rest, *([r] if r is not None else [])]), outside=outside)
            for r in (one, other, None)
        ]
        assert all(isinstance(int(v), int) for v in sums[0])
        for a, b, relation in ((0, 1, Neighbours.REPLACE_ONE), (0, 2, ADD)):
            move = [Fraction(int(v)) * SPACING for v in sums[a] - sums[b]]
            assert sum(v * v for v in move) <= Fraction(family.l2_sensitivity(relation)) ** 2
            assert sum(abs(v) for v in move) <= Fraction(family.l1_sensitivity(relation))


@pytest.mark.parametrize("family", ALL, ids=ids)
def test_the_stated_moves_are_nearly_reached(family: DensityFamily) -> None:
    """Over all pairs of lattice cells along a diagonal of the box, or of one coordinate: within 1% in one dimension."""
    steps = [np.linspace(0, c - 1, 400).astype(int) for c in family.cells]
    draw = np.random.default_rng(3)
    cells = np.stack([draw.permutation(s) if k else s for k, s in enumerate(steps)], axis=1)
    phi = family.features(cells)
    square = (phi**2).sum(axis=1)
    apart = square[:, None] + square[None, :] - 2 * phi @ phi.T
    stated = family.l2_sensitivity()
    found = math.sqrt(float(apart.max()))
    assert found <= stated
    # Products over several coordinates are bounded, not reached: the worst pair differs in one coordinate only.
    assert found >= (0.99 if family.dimension == 1 else 0.8) * stated
    assert math.sqrt(float(square.max())) >= (0.98 if family.dimension == 1 else 0.9) * family.l2_sensitivity(
        ADD
    )


def test_kernel_sensitivities_are_the_printed_ones() -> None:
    """sqrt(2) / (n (2 pi)^(d/2) h^d), and a root of 2 less for a row that is added."""
    for d, h, n in ((1, 0.1, 100), (2, 0.2, 1000), (3, 0.3, 50)):
        family = GaussianKDE(domain=Box.unit(d), bandwidth=h)
        printed = math.sqrt(2) / (n * (2 * math.pi) ** (d / 2) * h**d)
        for relation, factor in ((Neighbours.REPLACE_ONE, 1.0), (ADD, 1 / math.sqrt(2))):
            plan = DensityPlan(family=family, size=n, mu=1, neighbours=relation)
            assert plan.density_sensitivity == pytest.approx(factor * printed, rel=1e-6)
            assert plan.density_sensitivity >= factor * printed


def test_mahalanobis_moves_of_kernel_estimates_come_within_a_hundredth() -> None:
    """1000 random neighbours and point sets: (f - f')' M^-1 (f - f') from the definitions, beside the stated bound."""
    draw, n, h = np.random.default_rng(5), 50, 0.07
    plan = DensityPlan(family=GaussianKDE(domain=UNIT, bandwidth=h), size=n, mu=1)
    kernel = GaussianKernel(bandwidth=h)
    largest = 0.0
    for _ in range(1000):
        x, y = draw.random(2)
        at = np.unique(np.concatenate([draw.random(draw.integers(1, 5)), [x, y][: draw.integers(3)]]))
        bump = np.exp(-0.5 * ((at[:, None] - np.array([x, y])) / h) ** 2) / (math.sqrt(2 * math.pi) * h * n)
        v = bump[:, 0] - bump[:, 1]
        gram = kernel.gram(at)
        if np.linalg.cond(gram) < 1e8:
            largest = max(largest, math.sqrt(float(v @ np.linalg.solve(gram, v))))
    assert 0.99 * plan.density_sensitivity <= largest <= plan.density_sensitivity


def test_white_coordinates_are_those_of_the_gaussian_process() -> None:
    """The covariance of the curve's noise, beside noise_std^2 K of the process with the printed sensitivity."""
    n, mu, h = 500, 0.5, 0.1
    at = np.linspace(0, 1, 23)
    for d in (1, 2):
        family = GaussianKDE(domain=Box.unit(d), bandwidth=h)
        plan = DensityPlan(family=family, size=n, mu=mu)
        points = np.stack([at, *[at[::-1] ** 2] * (d - 1)], axis=1)
        rows = family.synthesis(points)
        found = rows @ rows.T * (float(plan.noise_mechanism.noise_std) / n) ** 2
        sensitivity = math.sqrt(2) / (n * (2 * math.pi) ** (d / 2) * h**d)
        process = GaussianProcessRelease.for_mu(
            mu=mu,
            kernel=GaussianKernel(bandwidth=h, dimension=d),
            rkhs_sensitivity=sensitivity,
            domain=Box.unit(d),
        )
        wanted = process.noise_covariance(points)
        assert np.abs(found - wanted).max() < 1e-6 * wanted.max()


def test_the_sobolev_norm_by_quadrature() -> None:
    """Hall's (3.7) of the difference of two bumps, by quadrature: the closed form is above, and reached within 1%."""
    h, ell = 0.06, 0.0687
    family = SobolevKDE(domain=UNIT, bandwidth=h, length=ell)
    kernel = ExponentialKernel(length=ell)

    def bump(x: float, c: float) -> float:
        return math.exp(-0.5 * ((x - c) / h) ** 2) / (math.sqrt(2 * math.pi) * h)

    best = 0.0
    for shift in np.linspace(0.05, 0.5, 46):
        a, b = 0.5 - shift / 2, 0.5 + shift / 2
        square = kernel.sobolev_squared_norm(
            lambda t, a=a, b=b: np.array([bump(x, a) - bump(x, b) for x in t]),
            lambda t, a=a, b=b: np.array(
                [(a - x) / h**2 * bump(x, a) - (b - x) / h**2 * bump(x, b) for x in t]
            ),
            UNIT,
            pieces=40,
        )
        best = max(best, math.sqrt(square))
    stated = DensityPlan(family=family, size=1, mu=1).density_sensitivity
    assert 0.99 * stated <= best <= stated


def test_sobolev_noise_is_the_exponential_process_on_its_grid() -> None:
    family = SobolevKDE(domain=UNIT, bandwidth=0.1, points=41)
    grid = np.linspace(0, 1, 41)
    rows = family.synthesis(grid[:, None])
    wanted = family.height**2 * ExponentialKernel(length=0.1145).gram(grid)
    assert np.abs(rows @ rows.T - wanted).max() < 1e-9 * wanted.max()


@pytest.mark.parametrize("low", [0.0, 1e15, -1e17])
def test_boxes_far_from_zero_move_no_further(low: float) -> None:
    """All pairs of cells, where floats are sparse: 8 of them a unit at 1e15, one in 16 units at 1e17."""
    box = Box(low=low, high=low + 1024.0)
    families = (
        SobolevKDE(domain=box, bandwidth=50.0, points=2000),
        SobolevKDE(domain=box, bandwidth=200.0, length=100.0, points=500),
        GaussianKDE(domain=box, bandwidth=50.0),
        ReflectedKDE(domain=box, bandwidth=100.0),
        HermiteBasis(domain=box, order=12),
        WaveletBasis(domain=box, levels=4),
    )
    for family in families:
        table = np.rint(family.features(np.arange(family.cells[0])[:, None]) * 2.0**BITS) * float(SPACING)
        square = (table**2).sum(axis=1)
        apart = square[:, None] + square[None, :] - 2 * table @ table.T
        assert math.sqrt(square.max()) <= family.l2_sensitivity(ADD)
        assert math.sqrt(max(apart.max(), square.max())) <= family.l2_sensitivity()


def test_tables_are_close_to_balls() -> None:
    """Entries of the tables at 200 bits: within the share that the sensitivity counts."""
    kde = GaussianKDE(domain=Box(low=-2, high=7), bandwidth=0.05)
    fourier = FourierBasis(domain=Box(low=-2, high=7), order=60)
    with precision(200):
        for family, period in ((kde, flint.arb(9) + 8 * flint.arb(0.05)), (fourier, flint.arb(9))):
            table, points = lattice_table(family, 0), lattice_points(family, 0)
            for cell in (0, 17, table.shape[0] // 3, table.shape[0] - 1):
                turn = (flint.arb(float(points[cell])) + 2) / period
                for j in (1, 5, (table.shape[1] - 1) // 2):
                    root = flint.arb(2).sqrt()
                    if family is kde:
                        ratio = flint.arb(0.05) / period
                        c = (
                            (2 * flint.arb.pi()).sqrt()
                            * ratio
                            * (-2 * (flint.arb.pi() * j * ratio) ** 2).exp()
                        )
                        root = (2 * c).sqrt()
                    for place, value in (
                        (2 * j - 1, (2 * j * turn).cos_pi()),
                        (2 * j, (2 * j * turn).sin_pi()),
                    ):
                        assert abs(float(table[cell, place]) - float(root * value)) < TABLE_ERROR


def test_orthonormal_bases_are_orthonormal() -> None:
    """By sums over the lattice; Hermite functions live on the line, of which the box holds nearly all."""
    for family, off in (
        (FourierBasis(domain=UNIT, order=6), 1e-12),
        (WaveletBasis(domain=UNIT, levels=6), 1e-12),
        (HistogramBasis(domain=UNIT, bins=16), 1e-12),
        (HermiteBasis(domain=UNIT, order=10), 0.02),
    ):
        u = (np.arange(4096) + 0.5) / 4096
        table = family._axis_unit(0, u)
        gram = table.T @ table / 4096
        assert np.abs(gram - np.eye(gram.shape[0])).max() < off, family.kind


def test_hermite_functions_by_their_polynomials() -> None:
    from numpy.polynomial import hermite

    from tacit.functions.bases import hermite_functions

    t = np.linspace(-4, 4, 17)
    found = hermite_functions(7, t)
    for k in range(7):
        wanted = hermite.hermval(t, [0] * k + [1]) * np.exp(-t * t / 2)
        wanted /= math.sqrt(2**k * math.factorial(k) * math.sqrt(math.pi))
        assert np.abs(found[:, k] - wanted).max() < 1e-12


def test_sums_do_not_wrap_and_do_not_depend_on_the_company() -> None:
    """2^40 equal rows by counts would pass 2^63; and one row's integers are the same alone and among others."""
    family = HistogramBasis(domain=UNIT, bins=4)
    one = family.sums(np.array([[0.3]]), outside="edge")
    assert one.tolist() == [0, 2 * 2**BITS, 0, 0]
    big = GaussianKDE(domain=Box.unit(2), bandwidth=[0.004, 0.5])
    draw = np.random.default_rng(1)
    rows = draw.random((40, 2))
    alone = sum(
        (big.sums(r[None], outside="edge") for r in rows), start=np.zeros(big.coefficients, dtype=object)
    )
    assert (alone == big.sums(rows, outside="edge")).all()


def test_many_equal_rows_do_not_wrap() -> None:
    """2^31 rows in one cell, of which only the counts are made: sums pass 2^63 and stay exact."""
    family = HistogramBasis(domain=UNIT, bins=4)
    counts = np.array([1 << 31], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.functions.density_families.cells_of", lambda *_: (np.array([[2]]), counts))
        assert family.sums(np.zeros((1, 1)), outside="edge").tolist() == [0, 0, (1 << 31) * 2 * 2**BITS, 0]


def test_the_reflected_kernel_by_its_images() -> None:
    """phi . phi and the area of products of bumps, beside sums over images; each bump has the integral one."""
    h, side, low = 0.3, 2.0, -1.0
    family = ReflectedKDE(domain=Box(low=low, high=low + side), bandwidth=h)
    x = np.linspace(low, low + side, 9)[:, None]
    at = low + side * (np.arange(4000) + 0.5) / 4000
    u, v = x - low, at[None, :] - low
    images = [s * v + 2 * side * m for s in (1, -1) for m in range(-3, 4)]
    wanted = sum(np.exp(-0.5 * ((u - i) / h) ** 2) for i in images) / (math.sqrt(2 * math.pi) * h)
    found = family.synthesis(x) @ family.features_at(at[:, None]).T
    assert np.abs(found - wanted).max() < 2 * family.truncation
    assert np.abs(found.mean(axis=1) * side - 1).max() < 1e-6
    areas = found @ found.T * side / 4000
    assert (
        np.abs((family.features_at(x) * family.square_weights()) @ family.features_at(x).T - areas).max()
        < 1e-6
    )
    assert areas.max() <= family.square_top()
    with pytest.raises(InvalidParameter):
        ReflectedKDE(domain=UNIT, bandwidth=0.3)
