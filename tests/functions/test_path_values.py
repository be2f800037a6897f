"""Values at points and on grids: the noise dominates the kernel's, rounding is exact, the law is as claimed."""

import math
from fractions import Fraction
from typing import ClassVar

import flint
import numpy as np
import pytest

from support.ball_matrices import gram_balls, is_positive
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.rounding import ball, precision
from tacit.functions import (
    Box,
    ExponentialKernel,
    GaussianKernel,
    GaussianProcessRelease,
    Kernel,
    KernelCombination,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    SumKernel,
    TensorProductKernel,
)
from tacit.functions.paths import grids
from tacit.functions.paths.grids import (
    CirculantEmbedding,
    RegularGrid,
    SharedNormals,
    dominating_factor,
    multiply,
    roots_of_unity,
    total,
)
from tacit.guarantees import GaussianDP
from tacit.noise import SeededSource

ONE_D: list[Kernel] = [
    GaussianKernel(bandwidth=0.1),
    ExponentialKernel(length=0.3),
    MaternKernel(length=0.2, smoothness=1.5),
    PeriodicKernel(length=0.7, period=1.0),
    SumKernel(kernels=(GaussianKernel(bandwidth=0.05), MaternKernel(length=0.5, smoothness=2.5))),
]


def density(kernel: Kernel, n: int = 40, seed: int = 0) -> KernelCombination:
    """The mean of n kernels at random points of the unit box."""
    points = np.random.default_rng(seed).uniform(size=(n, kernel.dimension))
    return KernelCombination(kernel=kernel, points=points, coefficients=np.full(n, 1 / n), absolute_sum=1)


def release(kernel: Kernel, noise_std=0.05, spacing=None, box=None) -> GaussianProcessRelease:
    box = Box.unit(kernel.dimension) if box is None else box
    return GaussianProcessRelease(
        kernel=kernel, rkhs_sensitivity=0.01, noise_std=noise_std, domain=box, spacing=spacing
    )


# --- domination ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", ONE_D, ids=lambda k: k.kind)
def test_the_factored_covariance_dominates_the_gram_matrix(kernel):
    points = np.sort(np.random.default_rng(2).uniform(size=30))[:, None]
    points[7] = np.nextafter(points[6], 1)
    made = dominating_factor(kernel, points)
    with precision(600):
        a = flint.arb_mat(made.factor.tolist())
        own = flint.arb_mat(
            [[ball(made.own) ** 2 if i == j else ball(0) for j in range(30)] for i in range(30)]
        )
        assert is_positive(a * a.transpose() + own - gram_balls(kernel, points))
    assert made.own < 1e-5


@pytest.mark.parametrize(
    "kernel", [*ONE_D, TensorProductKernel(kernels=(ONE_D[0], ONE_D[1]))], ids=lambda k: k.kind
)
def test_the_circulant_covariance_dominates_the_gram_matrix(kernel):
    d = kernel.dimension
    grid = RegularGrid.of(Box.unit(d), (6,) * d if d > 1 else (33,))
    made = CirculantEmbedding.of(kernel, grid)
    shape, squares = made.amplitudes.shape, made.amplitudes**2
    places = np.stack(np.unravel_index(np.arange(grid.size), grid.counts), axis=1)
    frequencies = np.stack(
        [m.ravel() for m in np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")], axis=1
    )
    with precision(300):
        table: dict[tuple[int, ...], flint.arb] = {}
        for i in places:
            lag = tuple(np.abs(i).tolist())
            turns = [
                sum(Fraction(j * int(k), n) for j, k, n in zip(lag, f, shape, strict=True))
                for f in frequencies
            ]
            table[lag] = sum(
                (ball(float(s)) * flint.arb.cos_pi_fmpq(flint.fmpq(2 * t.numerator, t.denominator)) for s, t in
                 zip(squares.ravel(), turns, strict=True)), ball(0),
            )  # fmt: skip
        rows = [[table[tuple(np.abs(i - j).tolist())] for j in places] for i in places]
        # Squares of floats are taken as floats here: 2^-52 of them is what that can cost.
        slack = flint.arb_mat(
            [[ball(1e-13) if i == j else ball(0) for j in range(grid.size)] for i in range(grid.size)]
        )
        excess = flint.arb_mat(rows) + slack - gram_balls(kernel, grid.points())
        assert is_positive(excess)
        assert float(excess[0, 0].upper()) <= made.added_variance + 2e-13
    assert made.added_variance < 1e-6


@pytest.mark.parametrize("count", [20, 23, 41])
def test_the_points_of_a_grid_and_their_differences_are_exact_on_both_sides_of_zero(count):
    grid = RegularGrid.of(Box(low=-1.9, high=1.9), (count,))
    start, step = Fraction(grid.starts[0]), Fraction(grid.steps[0])
    for i, x in enumerate(grid.axes[0].tolist()):
        assert Fraction(x) == start + i * step
        assert Fraction(float(i * step)) == i * step
    # A kernel that turns fast sees one rounding of a point: 4e-7 of the noise's variance were missing.
    turning = PeriodicKernel(length=1.0, period=1.37e-9)
    kernel = ProductKernel(kernels=(turning, ExponentialKernel(length=0.3)))
    squares = CirculantEmbedding.of(kernel, grid).amplitudes ** 2
    turns = 2 * np.pi * np.outer(np.arange(count), np.arange(squares.size)) / squares.size
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    with precision(200):
        gram = np.array(gram_balls(kernel, grid.points()).tolist()).astype(float)
    assert np.linalg.eigvalsh((np.cos(turns) @ squares)[lags] - gram)[0] > -1e-12


def test_a_kernel_that_is_not_positive_definite_is_refused():
    class Negative(GaussianKernel):
        kind: ClassVar[str] = "negative"

        def _gram(self, left, right):
            return 1.0 - 5.0 * np.abs(left[:, None, 0] - right[None, :, 0])

    bad = Negative(bandwidth=1.0)
    mean = KernelCombination(
        kernel=GaussianKernel(bandwidth=1.0), points=[0.5], coefficients=[1], absolute_sum=1
    )
    with pytest.raises(InvalidParameter, match="positive definite"):
        release(bad).batch(mean, [0.0, 0.2, 0.7])


# --- rounding ------------------------------------------------------------------------------------------
def test_batch_values_are_the_roundings_of_the_exact_reals():
    kernel = ONE_D[0]
    points, mean = np.linspace(0, 1, 60), density(kernel)
    one = release(kernel)
    found = one.batch(mean, points, source=SeededSource(seed=5))
    made = dominating_factor(kernel, points[:, None])
    normals = SharedNormals(made.rank + 60, SeededSource(seed=5))
    with precision(400):
        for i, x in enumerate(points):
            noise = sum((ball(float(a)) * normals.ball(j) for j, a in enumerate(made.factor[i])), ball(0))
            noise += ball(made.own) * normals.ball(made.rank + i)
            exact = sum((kernel.ball([ball(x)], [ball(float(c))]) for c in mean.at[:, 0]), ball(0)) * ball(
                1 / 40
            )
            exact += noise * ball(Fraction(1, 20))
            assert found.values[i] == int((exact / ball(one.step) + ball(0.5)).floor().unique_fmpz())


@pytest.mark.parametrize("spacing", [2.0**-13, 2.0**-34, 2.0**-46])
def test_grids_too_fine_for_floats_are_settled_in_pairs_and_in_balls(spacing):
    # The same seed on the finest grid, where balls decide all: every value must lie in its cell of the coarser grid.
    kernel, mean = ONE_D[1], density(ONE_D[1], n=5)
    for ask in (
        lambda r: r.on_grid(mean, 9, source=SeededSource(seed=3)).values,
        lambda r: r.batch(mean, np.linspace(0, 1, 5), source=SeededSource(seed=3)).values,
        lambda r: r.expansion(mean, terms=3, source=SeededSource(seed=3)).coefficients,
    ):
        coarse, finest = ask(release(kernel, spacing=spacing)), ask(release(kernel, spacing=2.0**-62))
        ratio = round(spacing / 2.0**-62)
        assert [(2 * int(v) + ratio) // (2 * ratio) for v in finest] == coarse.tolist()


def test_shared_normals_remember_the_bits_that_were_drawn():
    normals = SharedNormals(3, SeededSource(seed=1))
    with precision(300):
        normals.extend([1])
        once = normals.ball(1)
        assert float(once.rad()) < 2.0**-100
        assert float(abs(normals.ball(1) - once).upper()) <= 2 * float(once.rad()) * 1.01
        assert abs(float(once.mid()) - normals.enclosure().mid[1]) <= normals.enclosure().rad[1]


def test_a_path_in_floats_in_pairs_and_in_balls_is_one_path():
    for kernel, counts in ((ONE_D[1], (200,)), (GaussianKernel(bandwidth=0.2, dimension=2), (7, 12))):
        grid = RegularGrid.of(Box.unit(kernel.dimension), counts)
        path = grids._GridPath(CirculantEmbedding.of(kernel, grid).amplitudes, counts, SeededSource(seed=8))
        floats = path.enclosure()
        with precision(256):
            for i in (0, 3, grid.size // 2, grid.size - 1):
                pairs, balls = path._pairs(i), path._balls(i)
                assert pairs.overlaps(balls)
                assert float(pairs.rad()) < 1e-17
                assert abs(float(balls.mid()) - floats.mid[i]) <= floats.rad[i]


def test_the_transforms_error_is_within_its_bound():
    # Where rounding errors would show first: a long transform, compared with pairs of floats at some places.
    kernel = ExponentialKernel(length=0.01)
    grid = RegularGrid.of(Box.unit(), (1 << 14,))
    path = grids._GridPath(CirculantEmbedding.of(kernel, grid).amplitudes, grid.counts, SeededSource(seed=8))
    floats = path.enclosure()
    errors = [abs(float(path._pairs(i).mid()) - floats.mid[i]) for i in range(0, 1 << 14, 1291)]
    assert max(errors) <= floats.rad.max() / 50
    assert floats.rad.max() < 1e-11


def test_sums_in_pairs_of_floats_keep_a_hundred_bits():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=1000), rng.normal(size=1000)
    hi, lo = total(multiply((a, np.zeros(1000)), (b, np.zeros(1000))))
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))
    assert abs(Fraction(hi) + Fraction(lo) - exact) < Fraction(2) ** -90
    cosine, sine = roots_of_unity(np.arange(0, 1 << 15, 1999), 1 << 15)
    with precision(200):
        for m, ch, cl, sh, sl in zip(range(0, 1 << 15, 1999), *cosine, *sine, strict=True):
            s, c = flint.arb.sin_cos_pi_fmpq(flint.fmpq(2 * m, 1 << 15))
            assert abs(float(ball(ch) + ball(cl) - c)) < 2.0**-95
            assert abs(float(ball(sh) + ball(sl) - s)) < 2.0**-95


# --- laws ----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_law_of_a_batch():
    # 40 groups of 3 points, so far apart that they are independent: 4 x 10^4 draws in 1000 calls. Each mean of them
    # is within 6.5 of its standard deviations, and each covariance within 6.5 of sqrt((K_ij^2 + K_ii K_jj) / 40000),
    # but for a probability below 9 x 10^-10 in all.
    kernel, groups, calls = GaussianKernel(bandwidth=0.1), 40, 1000
    offsets = np.array([0.0, 0.07, 0.25])
    points = (np.arange(groups)[:, None] * 50.0 + offsets).ravel()
    mean = KernelCombination(
        kernel=kernel,
        points=np.arange(groups) * 50.0 + 0.1,
        coefficients=np.full(groups, 0.3),
        absolute_sum=12,
    )
    one = release(kernel, noise_std=0.5, box=Box(low=0.0, high=2000.0))
    source = SeededSource(seed=17)
    draws = np.concatenate(
        [one.batch(mean, points, source=source).to_floats().reshape(groups, 3) for _ in range(calls)]
    )
    count = len(draws)
    expected = 0.3 * np.exp(-((offsets - 0.1) ** 2) / 0.02)
    gram = 0.25 * np.exp(-((offsets[:, None] - offsets) ** 2) / 0.02)
    assert count == 40_000
    assert (np.abs(draws.mean(axis=0) - expected) < 6.5 * 0.5 / math.sqrt(count)).all()
    error = np.sqrt((gram**2 + np.outer(gram.diagonal(), gram.diagonal())) / count)
    assert (np.abs(np.cov(draws.T) - gram) < 6.5 * error + 1e-5).all()


def test_the_law_on_a_grid():
    # One stationary path of 2^18 points: sample covariances with Bartlett's variances, 7 standard deviations.
    kernel, n = GaussianKernel(bandwidth=2.0), 1 << 18
    mean = KernelCombination(kernel=kernel, points=[0.0], coefficients=[0.0], absolute_sum=1)
    one = release(kernel, noise_std=1.0, box=Box(low=0.0, high=float(n - 1)))
    found = one.on_grid(mean, n, source=SeededSource(seed=4))
    np.testing.assert_array_equal(found.points[:, 0], np.arange(n))
    y = found.to_floats()
    lags = np.arange(-60, 61)
    c = np.exp(-(lags**2) / 8.0)
    for k in (0, 1, 3, 8, 30):
        shifted = np.exp(-((lags + k) ** 2) / 8.0) * np.exp(-((lags - k) ** 2) / 8.0)
        error = math.sqrt(float((c**2 + shifted).sum()) / n)
        assert abs(float((y[: n - k] * y[k:]).mean()) - math.exp(-(k**2) / 8.0)) < 7 * error
    assert abs(float(y.mean())) < 7 * math.sqrt(float(c.sum()) / n)


def test_noise_is_small_against_halls_calibration():
    one = GaussianProcessRelease.for_target(
        epsilon=1, delta=1e-5, kernel=ONE_D[0], rkhs_sensitivity=0.02, domain=Box.unit()
    )
    hall = math.sqrt(2 * math.log(2 / 1e-5)) * 0.02 / 1
    assert one.noise_std_at([0.3])[0] <= 0.77 * hall
    assert one.bound.delta(1.0) <= 1e-5
    assert GaussianDP(mu=one.mu * 1.001).delta(1.0) > 1e-5


def test_the_printed_batch_covariance_is_not_private():
    # One point, K(x, x) = 1: the printed variance is c Delta / epsilon, so that the move is sqrt(Delta epsilon / c).
    c = math.sqrt(2 * math.log(2 / 1e-5))
    printed = GaussianDP(mu=100 / math.sqrt(c * 100))
    assert printed.delta(1.0) > 0.9
    ours = GaussianProcessRelease.for_target(
        epsilon=1, delta=1e-5, kernel=ONE_D[0], rkhs_sensitivity=100, domain=Box.unit()
    )
    assert ours.noise_std_at([0.5])[0] > 10 * math.sqrt(c * 100)


# --- sensitivity ---------------------------------------------------------------------------------------
@pytest.mark.slow
def test_no_neighbours_move_a_density_further_than_its_sensitivity():
    # Mahalanobis moves of 1000 random neighbours at random point sets, in balls; those that contain both rows come
    # within 1% of the supremum, sqrt(2) times the weight of one row.
    rng, n, h, best = np.random.default_rng(9), 50, 0.1, 0.0
    kernel = GaussianKernel(bandwidth=h)
    weight = 1 / (n * math.sqrt(2 * math.pi) * h)
    sensitivity = math.sqrt(2) * weight
    for trial in range(1000):
        x, y = rng.uniform(size=2)
        points = rng.uniform(size=int(rng.integers(1, 7)))
        if trial % 2:
            points = np.concatenate([points[:4], [x, y]])
        with precision(200):
            move = flint.arb_mat([
                [ball(weight) * (kernel.ball([ball(p)], [ball(x)]) - kernel.ball([ball(p)], [ball(y)]))] for p in points
            ])  # fmt: skip
            square = (move.transpose() * gram_balls(kernel, points[:, None]).solve(move))[0, 0]
            assert square <= ball(sensitivity * (1 + 1e-12)) ** 2
            best = max(best, float(square.mid()))
    assert math.sqrt(best) > 0.99 * sensitivity


# --- questions -----------------------------------------------------------------------------------------
def test_repeated_points_have_one_value_and_signs_of_zero_do_not_matter():
    # On a grid so fine that two draws would show.
    one, mean = release(ONE_D[0], spacing=2.0**-40), density(ONE_D[0])
    found = one.batch(mean, [0.5, 0.0, 0.5, -0.0], source=SeededSource(seed=1)).values
    assert found[0] == found[2]
    assert found[1] == found[3]


def test_a_thousand_points_of_a_singular_gram_matrix():
    one, mean = release(ONE_D[0]), density(ONE_D[0])
    found = one.batch(mean, np.linspace(0, 1, 1000), source=SeededSource(seed=1))
    assert found.added_std < float(one.step) / 100
    assert found.numerical_delta == 0.0
    # A smooth path: second differences of the values stay at the size of the grid.
    assert np.abs(np.diff(found.values, 2)).max() <= 4
    deviation = (found.to_floats() - mean(found.points)) / 0.05
    assert np.abs(deviation).max() < 7


def test_twenty_dimensions():
    kernel = GaussianKernel(bandwidth=1.0, dimension=20)
    found = release(kernel).batch(density(kernel), np.random.default_rng(0).uniform(size=(50, 20)))
    assert found.values.shape == (50,)
    assert found.publishable
    with pytest.raises(InvalidParameter):
        release(kernel).expansion(density(kernel))
    with pytest.raises(NotCertified):
        release(kernel).on_grid(density(kernel), 3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda r, m: r.batch(m, []),
        lambda r, m: r.batch(m, [math.nan]),
        lambda r, m: r.batch(m, [1.1]),
        lambda r, m: r.batch(m, [[0.1, 0.2]]),
        lambda r, m: r.batch(m, ["a"]),
        lambda r, m: r.batch(lambda x: x, [0.5]),
        lambda r, m: r.batch(density(GaussianKernel(bandwidth=1, dimension=2)), [0.5]),
        lambda r, m: r.on_grid(m, 0),
        lambda r, m: r.on_grid(m, (3, 3)),
        lambda r, m: r.on_grid(m, 2.5),
        lambda r, m: r.expansion(m, terms=0),
    ],
)
def test_bad_questions_are_refused(ask):
    with pytest.raises(InvalidParameter):
        ask(release(ONE_D[0]), density(ONE_D[0]))


def test_too_many_points_are_refused_before_any_work():
    one, mean = release(ONE_D[0]), density(ONE_D[0])
    with pytest.raises(NotCertified, match="on_grid"):
        one.batch(mean, np.linspace(0, 1, 10_000))
    with pytest.raises(NotCertified, match="points"):
        one.on_grid(mean, 10_000_000)
    kernel = PolynomialKernel(degree=2, box=Box.unit())
    with pytest.raises(InvalidParameter, match="stationary"):
        release(kernel).on_grid(density(kernel), 4)


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0.1, 0.7, 1000), (-3.0, 1e6, 17), (1e-9, 1.0, 4097), (0.25, 0.75, 1)]
)
def test_grids_are_exact_and_fill_the_box(low, high, count):
    grid = RegularGrid.of(Box(low=low, high=high), (count,))
    at = grid.points()[:, 0]
    exact = [Fraction(grid.starts[0]) + i * Fraction(grid.steps[0]) for i in range(count)]
    assert [Fraction(v) for v in at.tolist()] == exact
    assert low <= at[0]
    assert at[-1] <= high
    size = max(abs(low), abs(high))
    assert at[0] - low <= size * 2.0**-52
    assert count == 1 or high - at[-1] <= count * size * 2.0**-51
