"""Every claim against the definition: ratios of probabilities over neighbours, on a dense set of outputs.

Two sides each time: no output exceeds e^epsilon (or e^epsilon Q + delta), and some output reaches 95% of epsilon.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from tacit.mechanisms import (
    L1,
    L2,
    Box,
    Contribution,
    Count,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    Geometric,
    HullGauge,
    IntervalExponential,
    KNorm,
    KNormDifference,
    Laplace,
    Mahalanobis,
    PermuteAndFlip,
    RandomizedResponse,
    RoundedGaussian,
    Score,
    Simplex,
    Staircase,
    TruncatedGeometric,
    gauge,
)
from tacit.noise import EuclideanBall, L1Ball, LinfBall

ROUND = 1 + 1e-12


def mass(law, k: int) -> float:
    low, high = law.probability(k)
    return (low + high) / 2


def worst_loss(law, shift: int, reach: int) -> float:
    """max over outputs and over all moves up to `shift` of |ln Pr[X = k] - ln Pr[X = k - s]|."""
    logs = {k: math.log(mass(law, k)) for k in range(-reach - shift, reach + shift + 1)}
    return max(abs(logs[k] - logs[k - s]) for k in range(-reach, reach + 1) for s in range(shift + 1))


def tight(loss: float, claim: float) -> bool:
    return claim * 0.95 <= loss <= claim * ROUND


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 8])
@pytest.mark.parametrize(("value", "spacing"), [(1, 1), (3, 1), (0.75, 0.25), (2.5, 1)])
def test_laplace_in_one_dimension(epsilon, value, spacing) -> None:
    mechanism = Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(value), spacing=spacing)
    assert float(mechanism.bound.epsilon) == pytest.approx(epsilon, rel=1e-15)
    assert tight(worst_loss(mechanism.law, math.floor(value / spacing), 12), mechanism.bound.epsilon)


def test_laplace_in_three_dimensions_splits_its_move() -> None:
    mechanism = Laplace.for_epsilon(epsilon=1, sensitivity=L1(2))
    log = {k: math.log(mass(mechanism.law, k)) for k in range(-8, 9)}
    worst = 0.0
    for move in itertools.product(range(-2, 3), repeat=3):
        if sum(map(abs, move)) <= 2:
            for out in itertools.product(range(-4, 5), repeat=3):
                worst = max(worst, sum(log[o] - log[o - m] for o, m in zip(out, move, strict=True)))
    assert tight(worst, mechanism.bound.epsilon)


def test_the_laplace_curve_is_its_own_sum() -> None:
    """delta(e) = sum over outputs of max(0, P - e^e Q), and a vector's move is no worse than a scalar's."""
    for steps in (1, 2, 5):
        mechanism = Laplace.for_epsilon(epsilon=1.5, sensitivity=L1(steps))
        p = np.array([mass(mechanism.law, k) for k in range(-200, 201)])
        for e in (0.0, 0.3, 1.0, 1.49):
            summed = float(np.maximum(p - math.exp(e) * np.roll(p, steps), 0).sum())
            assert mechanism.profile.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-12)
            assert mechanism.profile.delta(e) >= summed * (1 - 1e-12)
            assert mechanism.profile.delta(e) <= mechanism.bound.delta(e) * ROUND
    two = np.outer(p, p)
    split = np.maximum(two - math.exp(0.3) * np.roll(np.roll(two, 2, 0), 3, 1), 0).sum()
    assert split <= mechanism.profile.delta(0.3)


def test_the_laplace_curve_on_fine_grids_covers_the_discrete_law() -> None:
    """The discrete curve is above the continuous one with the same epsilon; the wider one is above both."""
    rate = Fraction(1, 2)
    coarse = Laplace(sensitivity=L1(4), noise_scale=1 / rate)
    continuous = lambda e, own: 1 - math.exp((e - own) / 2)  # noqa: E731
    above = False
    for e in np.linspace(0, 1.99, 40):
        exact = coarse.profile.delta(float(e))
        above |= exact > continuous(e, 2.0) * (1 + 1e-9)
        assert exact <= continuous(e, 2.0 + 2 * math.log(math.cosh(0.25))) + 1e-12
    assert above
    fine = Laplace.for_epsilon(epsilon=1, sensitivity=L1(1), spacing=2.0**-20)
    assert fine.profile.delta(0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 1, 5])
@pytest.mark.parametrize("steps", [1, 3])
def test_geometric_and_staircase(epsilon, steps) -> None:
    geometric = Geometric(epsilon=epsilon, sensitivity=Count(steps))
    assert tight(worst_loss(geometric.law, steps, 10), geometric.bound.epsilon)
    for spacing in (1, 0.125):
        stairs = Staircase(epsilon=epsilon, sensitivity=L1(steps), spacing=spacing)
        shift = int(steps / spacing)
        assert tight(worst_loss(stairs.law, shift, 3 * shift), stairs.bound.epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_truncated_geometric(epsilon) -> None:
    mechanism = TruncatedGeometric(epsilon=epsilon, low=-2, high=7)
    matrix = np.array(
        [[np.mean(mechanism.probability(y, count=x)) for y in range(-2, 8)] for x in range(-2, 8)]
    )
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-14)
    losses = np.abs(np.log(matrix[1:]) - np.log(matrix[:-1]))
    assert tight(float(losses.max()), mechanism.bound.epsilon)


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_randomized_response(epsilon, categories) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    lie = mechanism.expected_error()
    rows = np.full((categories, categories), lie / (categories - 1)) + np.eye(categories) * (
        1 - lie - lie / (categories - 1)
    )
    losses = [np.abs(np.log(a / b)).max() for a, b in itertools.permutations(rows, 2)]
    assert tight(max(losses), mechanism.bound.epsilon)
    for e in (0.0, epsilon / 2):
        summed = max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in itertools.permutations(rows, 2))
        assert mechanism.profile.delta(e) == pytest.approx(summed, rel=1e-9)


def neighbours_of(scores: np.ndarray, sensitivity: float, monotone: bool) -> list[np.ndarray]:
    moves = (0.0, 1.0) if monotone else (-1.0, 0.0, 1.0)
    return [scores + sensitivity * np.array(m) for m in itertools.product(moves, repeat=scores.size)]


def flips(scores: np.ndarray, rate: float) -> np.ndarray:
    """Permute-and-flip from its definition: all orders, all coins."""
    y = np.exp(rate * (scores - scores.max()))
    out = np.zeros(scores.size)
    for order in itertools.permutations(range(scores.size)):
        alive = 1.0
        for i in order:
            out[i] += alive * y[i]
            alive *= 1 - y[i]
    return out / math.factorial(scores.size)


def weights(scores: np.ndarray, rate: float) -> np.ndarray:
    w = np.exp(rate * (scores - scores.max()))
    return w / w.sum()


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("kind", "law"), [(Exponential, weights), (PermuteAndFlip, flips)])
def test_selection_over_all_neighbours_of_random_scores(kind, law, monotone) -> None:
    generator = np.random.default_rng(11)
    mechanism = kind(epsilon=1.5, sensitivity=Score(2.0, monotone=monotone))
    rate = 1.5 / (2.0 if monotone else 4.0)
    for trial in range(20):
        scores = generator.normal(size=4) * 3 if trial else np.zeros(4)
        own = law(scores, rate)
        assert np.allclose(mechanism.probabilities(scores.tolist()), own, atol=1e-13)
        for other in neighbours_of(scores, 2.0, monotone):
            losses = np.abs(np.log(own) - np.log(law(other, rate)))
            assert losses.max() <= mechanism.bound.epsilon * ROUND


def test_the_exponential_curve_is_above_every_pair_of_neighbours() -> None:
    generator = np.random.default_rng(4)
    mechanism = Exponential(epsilon=2, sensitivity=Score(1))
    points = (0.0, 0.5, 1.0, 1.8)
    curve = [mechanism.profile.delta(e) for e in points]
    assert all(c < mechanism.bound.delta(e) for c, e in zip(curve, points, strict=True))
    highest = np.zeros(len(points))
    for k in (2, 3, 5):
        for trial in range(12):
            scores = generator.normal(size=k) * 2 if trial else np.arange(k, dtype=float)
            own = weights(scores, 1.0)
            for other in neighbours_of(scores, 1.0, False):
                q = weights(other, 1.0)
                gaps = [
                    max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((own, q), (q, own)))
                    for e in points
                ]
                highest = np.maximum(highest, gaps)
    assert (highest <= np.array(curve) * (1 + 1e-9)).all()
    assert highest[0] > 0.9 * curve[0]


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_selection_reaches_its_claim(kind) -> None:
    """One candidate rises and all others fall: the loss of the one tends to epsilon as it becomes unlikely."""
    mechanism = kind(epsilon=1, sensitivity=Score(1))
    k, gap = 60, 6
    before = mechanism.probabilities([0] + [gap] * (k - 1))[0]
    after = mechanism.probabilities([1] + [gap - 1] * (k - 1))[0]
    assert tight(math.log(after / before), mechanism.bound.epsilon)


def test_permute_and_flip_breaks_the_range_that_the_exponential_mechanism_keeps() -> None:
    """ln(P/Q) of one neighbour spans at most epsilon for the exponential mechanism, and more for the other."""
    spans = {}
    for kind in (Exponential, PermuteAndFlip):
        mechanism = kind(epsilon=2, sensitivity=Score(1))
        before, after = mechanism.probabilities([0, 0, 0, 0]), mechanism.probabilities([1, -1, -1, -1])
        losses = np.log(after / before)
        spans[kind] = losses.max() - losses.min()
    assert spans[Exponential] <= 2 * ROUND
    assert spans[PermuteAndFlip] > 2.2


@pytest.mark.parametrize(("high", "steps"), [(4, 1), (30, 3), (200, 1), (3, 5)])
def test_interval_exponential(high, steps) -> None:
    mechanism = IntervalExponential.for_epsilon(epsilon=1, sensitivity=L1(steps), low=0, high=high)
    assert 0.99999 <= float(mechanism.bound.epsilon) <= 1
    scale = float(mechanism.noise_scale)
    centres = np.arange(high + 1)
    matrix = np.exp(-np.abs(centres[:, None] - centres[None, :]) / scale)
    matrix /= matrix.sum(axis=1, keepdims=True)
    worst = 0.0
    for s in range(1, min(steps, high) + 1):
        worst = max(worst, float(np.abs(np.log(matrix[s:]) - np.log(matrix[:-s])).max()))
    assert tight(worst, mechanism.bound.epsilon)
    for c in (0, high // 2, high):
        law = mechanism.law(c)
        assert np.allclose([mass(law, k) for k in centres], matrix[c], atol=1e-13)
    assert scale < 2 * steps  # the general theorem would take 2 * steps


@pytest.mark.parametrize(("std", "steps"), [(0.5, 1), (1.0, 2), (3.0, 1), (20.0, 7)])
def test_gaussian_in_one_dimension_sums_its_own_curve(std, steps) -> None:
    mechanism = Gaussian(sensitivity=L2(steps), noise_std=std)
    x = np.arange(-int(40 * std) - 40, int(40 * std) + 41)
    w = np.exp(-(x**2) / (2 * std**2))
    p = w / math.fsum(w)
    for e in (0.0, 0.5, 1.0, 3.0):
        summed = max(
            math.fsum(np.maximum(p - math.exp(e) * np.roll(p, s), 0).tolist()) for s in range(1, steps + 1)
        )
        assert mechanism.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-15)
        assert mechanism.delta(e) >= summed * (1 - 1e-11)
        assert mechanism.bound.delta(e) == pytest.approx(summed, rel=1e-9, abs=1e-15)
    loss = steps * (x + steps / 2) / std**2  # of the output x, moved by all the steps
    order = 3.0
    renyi = math.log(math.fsum((p * np.exp((order - 1) * -loss)).tolist())) / (order - 1)
    assert renyi <= order * mechanism.rho * (1 + 1e-9)


def test_the_discrete_gaussian_is_not_the_continuous_one() -> None:
    from tacit.guarantees import Gaussian as Curve

    mechanism = Gaussian(sensitivity=L2(1), noise_std=0.5)
    ratios = [mechanism.delta(e) / Curve(mu=2.0).delta(float(e)) for e in np.linspace(0.1, 30, 60)]
    assert max(ratios) > 5


@pytest.mark.parametrize(("square", "std", "dimension"), [(2, 1.5, 2), (2, 2.0, 3), (4, 2.0, 2), (5, 2.0, 2)])
def test_gaussian_vectors_over_all_integer_moves(square, std, dimension) -> None:
    mechanism = Gaussian(sensitivity=L2.root(square), noise_std=std, dimension=dimension)
    x = np.arange(-14, 15) if dimension == 3 else np.arange(-40, 41)
    w = np.exp(-(x**2) / (2 * std**2))
    p = w / w.sum()
    joint = p
    for _ in range(dimension - 1):
        joint = np.multiply.outer(joint, p)
    reach = math.isqrt(square)
    for e in (0.2, 1.0):
        worst = 0.0
        for move in itertools.combinations_with_replacement(range(reach + 1), dimension):
            if 0 < sum(m * m for m in move) <= square:
                other = joint
                for axis, m in enumerate(move):
                    other = np.roll(other, m, axis)
                worst = max(worst, float(np.maximum(joint - math.exp(e) * other, 0).sum()))
        claim = mechanism.bound.delta(e)
        assert worst * (1 - 1e-9) - 1e-11 <= claim <= worst * 1.01 + 1e-9


def test_many_moves_fall_back_to_the_concentrated_bound() -> None:
    from tacit.guarantees import Concentrated

    mechanism = Gaussian(sensitivity=L2(1), noise_std=4, dimension=100, spacing=2.0**-10)
    assert isinstance(mechanism.bound, Concentrated)
    assert mechanism.bound.rho == pytest.approx(1 / 32)
    vast = Gaussian(sensitivity=L2(1), noise_std=4, spacing=2.0**-30)
    assert vast.delta(1) == pytest.approx(
        Gaussian(sensitivity=L2(1), noise_std=4, spacing=2.0**-7).delta(1), rel=1e-3
    )


def test_gaussian_calibration_is_least_and_certified() -> None:
    for spacing in (1, 2.0**-4, 2.0**-24):
        found = Gaussian.for_target(epsilon=0.7, delta=1e-5, sensitivity=L2(1), spacing=spacing)
        assert found.delta(0.7) <= 1e-5
        smaller = Gaussian(
            sensitivity=L2(1), noise_std=Fraction(found.noise_std) * Fraction(999, 1000), spacing=spacing
        )
        assert smaller.delta(0.7) > 1e-5
    vector = Gaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2.root(2), dimension=5)
    assert vector.bound.delta(1.0) <= 1e-5
    assert Gaussian.for_rho(rho=0.1, sensitivity=L2(1)).rho <= 0.1
    rounded = RoundedGaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2(1), dimension=9)
    assert rounded.bound.delta(1.0) <= 1e-5
    assert float(rounded.noise_std) < float(
        Gaussian.for_target(epsilon=1, delta=1e-5, sensitivity=L2(1)).noise_std
    )


def dense(d: int, reach: float, points: int) -> np.ndarray:
    axis = np.linspace(-reach, reach, points)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d)


BODIES = [
    (EuclideanBall(coordinates=2, radius=1.5), (1.5, 0)), (L1Ball(coordinates=3), (1, 0, 0)),
    (LinfBall(coordinates=3, radius=2), (2, 2, 2)), (Box(low=[-1, -2], high=[1, 2]), (1, 2)),
    (Mahalanobis(1, [[2, 1], [1, 3]]).body, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "corner"), BODIES)
def test_k_norms_on_a_dense_set_of_outputs(body, corner) -> None:
    """The densities are proportional to exp(-gauge / scale), with one constant: log ratios are gauge differences."""
    mechanism = KNorm.for_epsilon(epsilon=1.2, sensitivity=Gauge(2, body))
    scale = float(mechanism.noise_scale)
    moves = np.random.default_rng(1).normal(size=(20, body.dimension))
    moves = moves / np.maximum(gauge(body, moves), gauge(body, -moves))[:, None] * 2
    if corner is not None:
        moves = np.vstack([moves, 2 * np.array(corner, dtype=float)])
    outputs = dense(body.dimension, 9.0, 31 if body.dimension == 2 else 13)
    worst = max(float((np.abs(gauge(body, outputs - m) - gauge(body, outputs)) / scale).max()) for m in moves)
    assert tight(worst, mechanism.bound.epsilon)


def test_gamma_mechanism_uses_the_covariance() -> None:
    sigma = np.array([[2.0, 1.0], [1.0, 3.0]])
    inverse = np.linalg.inv(sigma)
    mechanism = Gamma.for_epsilon(epsilon=0.8, sensitivity=Mahalanobis(1.5, sigma))
    norm = lambda x: np.sqrt(np.einsum("ij,jk,ik->i", x, inverse, x))  # noqa: E731
    outputs, worst = dense(2, 12.0, 41), 0.0
    for angle in np.linspace(0, math.pi, 24):
        move = np.array([[math.cos(angle), math.sin(angle)]])
        move = move / norm(move) * 1.5
        worst = max(
            worst, float((np.abs(norm(outputs - move) - norm(outputs)) / float(mechanism.noise_scale)).max())
        )
    assert tight(worst, mechanism.bound.epsilon)
    plain = Gamma.for_epsilon(epsilon=0.8, sensitivity=L2.root(2), dimension=3)
    assert float(plain.noise_scale) == pytest.approx(math.sqrt(2) / 0.8)


def difference_density(low: float, high: float, scale: float, x: np.ndarray) -> np.ndarray:
    """The density of A - B in one dimension from its definition, by quadrature; gauge t/high or t/low."""
    step = 0.01
    t = np.arange(-60 * max(-low, high), 60 * max(-low, high), step)
    f = np.exp(-np.where(t > 0, t / high, t / low) / scale)
    f /= f.sum() * step
    return np.array([np.interp(t - s, t, f) @ f * step for s in x])


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-1.0, 3.0)])
def test_k_norm_difference_in_one_dimension(low, high) -> None:
    """Contributions in [low, high] have gauge 1, and replaced ones move by up to high - low."""
    body = Box(low=[low], high=[high])
    mechanism = KNormDifference.for_epsilon(epsilon=1, sensitivity=Contribution(1, body))
    scale, width = float(mechanism.noise_scale), high - low
    x = np.linspace(-40, 40, 161)
    base, moved = difference_density(low, high, scale, x), difference_density(low, high, scale, x - width)
    worst = float(np.abs(np.log(base / moved)).max())
    assert worst <= 1 * (1 + 1e-6)
    # What is reached is the gauge of the move in the hull of K and -K: all of epsilon only if K is symmetric.
    hull = width / max(-low, high)
    sharper = KNormDifference(sensitivity=HullGauge(Fraction(hull), body), noise_scale=mechanism.noise_scale)
    assert 0.95 * sharper.bound.epsilon <= worst <= sharper.bound.epsilon * (1 + 1e-6)
    assert sharper.bound.epsilon <= mechanism.bound.epsilon
    half = KNormDifference(
        sensitivity=Contribution(1, body, replace=False), noise_scale=mechanism.noise_scale
    )
    assert half.bound.epsilon == pytest.approx(0.5)


def test_the_plain_k_norm_fails_for_a_body_that_is_not_symmetric() -> None:
    """Contributions of gauge 1 do not differ by gauge 2: for a simplex in the plane the true gauge is 3."""
    simplex = Simplex(vertices=[[-1, -1], [2, -1], [-1, 2]])
    v = np.array(simplex.vertices[1], dtype=float) - np.array(simplex.vertices[2], dtype=float)
    assert gauge(simplex, v)[0] == pytest.approx(3)


def test_rounding_to_the_grid_keeps_the_bound_of_continuous_noise() -> None:
    """Cells of rounded Gaussian and Euclidean Laplace noise, integrated: ratios and deltas stay below the claim."""
    gauss = RoundedGaussian(sensitivity=L2(1), noise_std=1.5, dimension=1)
    cells = np.arange(-30, 31)
    cdf = lambda t: 0.5 * math.erfc(-t / (1.5 * math.sqrt(2)))  # noqa: E731
    p = np.array([cdf(k + 0.5) - cdf(k - 0.5) for k in cells])
    for e in (0.1, 0.5, 1.5):
        assert np.maximum(p - math.exp(e) * np.roll(p, 1), 0).sum() <= gauss.bound.delta(e) * (1 + 1e-9)
    radial = Gamma.for_epsilon(epsilon=1, sensitivity=L2(1), dimension=2)
    scale = float(radial.noise_scale)

    def cell(i: int, j: int) -> float:
        f = lambda y, x: math.exp(-math.hypot(x, y) / scale)  # noqa: E731
        return integrate.dblquad(f, i - 0.5, i + 0.5, j - 0.5, j + 0.5, epsabs=1e-12)[0]

    losses = [abs(math.log(cell(i, j) / cell(i - 1, j))) for i in range(-3, 9, 2) for j in (0, 1)]
    assert tight(max(losses), radial.bound.epsilon)
