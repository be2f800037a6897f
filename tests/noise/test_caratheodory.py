"""The Caratheodory body: its sampler is uniform and exact, its volume, moments and gauge are right.

Tests on draws have seeds and error probabilities below 1e-9 each; the second implementations are in
support/verblunsky.py (the Levinson recursion in place of the product of unitary blocks) and below.
"""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from scipy.linalg import toeplitz

from support.verblunsky import as_real, coefficients, levinson, moment_polynomials, second_moment
from tacit.errors import InvalidParameter
from tacit.exact.enclosures import Enclosure, constant
from tacit.exact.rounding import ball, precision
from tacit.noise import (
    CaratheodoryBody,
    Difference,
    Draws,
    KNormVector,
    SeededSource,
    caratheodory_gauge,
    caratheodory_second_moments,
    caratheodory_volume,
)

ALMOST_NEVER = 1e-10


def draws(m: int, size: int, seed: int = 1) -> np.ndarray:
    body = CaratheodoryBody(frequencies=m)
    return body.sample(spacing=2.0**-22, size=size, source=SeededSource(seed=seed)).to_floats()


def complex_of(x: np.ndarray) -> np.ndarray:
    return x[:, 0::2] + 1j * x[:, 1::2]


def far_apart(first: np.ndarray, second: np.ndarray) -> bool:
    """Kolmogorov-Smirnov: whether two samples differ by more than chance allows but once in 1e10 (DKW, twice)."""
    both = np.sort(np.concatenate([first, second]))
    gap = np.abs(
        np.searchsorted(np.sort(first), both, side="right") / first.size
        - np.searchsorted(np.sort(second), both, side="right") / second.size
    ).max()
    limit = sum(math.sqrt(math.log(4 / ALMOST_NEVER) / (2 * s.size)) for s in (first, second))
    return bool(gap > limit)


# -- the body ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5, 12, 40])
def test_every_draw_is_positive_definite(m: int) -> None:
    """All but what rounding to the grid moves: 2 sqrt(2) m half spacings at most."""
    for c in complex_of(draws(m, 300)):
        assert np.linalg.eigvalsh(toeplitz(np.concatenate([[1.0], c]).conj())).min() > -1e-4


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_gauge_is_the_smallest_multiple_of_the_body(m: int) -> None:
    """Curve points have gauge 1, mirrored ones m; the hull of the curve decides, by its supporting functions."""
    x = np.linspace(0, 1, 41)
    curve = as_real(np.exp(2j * np.pi * np.outer(x, np.arange(1, m + 1))))
    assert caratheodory_gauge(curve) == pytest.approx(np.ones(41), abs=1e-12)
    assert caratheodory_gauge(-curve) == pytest.approx(np.full(41, float(m)), abs=1e-11)
    rng = np.random.default_rng(3)
    points = rng.normal(size=(200, 2 * m))
    # gauge(y) = sup <y, u> over u with sup_x <Psi(x), u> = 1; random u bound it from below.
    dense = as_real(np.exp(2j * np.pi * np.outer(np.linspace(0, 1, 400), np.arange(1, m + 1))))
    u = rng.normal(size=(500, 2 * m))
    u /= (dense @ u.T).max(axis=0)[:, None] * (1 + 0.01 * m)
    assert (caratheodory_gauge(points) >= (points @ u.T).max(axis=1)).all()
    assert caratheodory_gauge(7 * points) == pytest.approx(7 * caratheodory_gauge(points))


def test_volumes() -> None:
    assert [caratheodory_volume(m) for m in (1, 2, 3)] == pytest.approx(
        [math.pi, math.pi**2 / 3, math.pi**3 / 15], rel=1e-15
    )
    for m in (5, 12, 60):
        printed = math.exp(m * math.log(2 * math.pi) + math.lgamma(m + 1) - math.lgamma(2 * m + 1))
        assert caratheodory_volume(m) == pytest.approx(printed, rel=1e-11)


# -- the sampler ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3])
def test_uniform_like_rejection_from_the_discs(m: int) -> None:
    """Points of the product of m unit discs that are positive definite: their share is the volume's, and their law."""
    rng = np.random.default_rng(m)
    tries = 60_000 if m == 2 else 240_000
    c = np.sqrt(rng.uniform(size=(tries, m))) * np.exp(2j * np.pi * rng.uniform(size=(tries, m)))
    inside = c[caratheodory_gauge(as_real(c)) < 1.0]
    share = caratheodory_volume(m) / math.pi**m
    assert abs(inside.shape[0] - tries * share) < 7 * math.sqrt(tries * share)
    ours = complex_of(draws(m, 20_000))
    for look in (
        lambda c: np.abs(c[:, 0]),
        lambda c: np.abs(c[:, m - 1]),
        lambda c: c[:, 0].real,
        lambda c: (c[:, 1] * c[:, 0].conj() ** 2).real,
        lambda c: (c[:, m - 1] * c[:, m - 2].conj() * c[:, 0].conj()).real,
        lambda c: caratheodory_gauge(as_real(c)),
    ):
        assert not far_apart(look(ours), look(inside))


@pytest.mark.parametrize("m", [1, 2, 4, 8, 24])
def test_gauge_of_a_uniform_point_has_a_power_law(m: int) -> None:
    """Pr[gauge <= t] = t^(2m), whatever the body: so that gauge^(2m) is uniform."""
    size = 6000
    u = np.sort(caratheodory_gauge(draws(m, size, seed=5)) ** (2 * m))
    grid = np.arange(1, size + 1) / size
    assert np.abs(u - grid).max() < math.sqrt(math.log(2 / ALMOST_NEVER) / (2 * size)) + 1 / size


@pytest.mark.parametrize("m", [2, 8])
def test_same_law_as_the_levinson_recursion(m: int) -> None:
    uniforms = np.random.default_rng(8).uniform(size=(20_000, 2 * m))
    theirs, ours = levinson(coefficients(uniforms)), complex_of(draws(m, 20_000, seed=2))
    for k in range(m):
        assert not far_apart(np.abs(ours[:, k]), np.abs(theirs[:, k]))
        assert not far_apart(np.angle(ours[:, k]), np.angle(theirs[:, k]))
    # A frequency's phase is not that of its harmonic: the dependence is right too.
    look = lambda c: (c[:, 1] * c[:, 0].conj() ** 2).real  # noqa: E731
    assert not far_apart(look(ours), look(theirs))


def primitives(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(30, 2 * m)), rng.exponential(size=(30, m))


@pytest.mark.parametrize("m", [1, 2, 3, 7, 32])
def test_floats_stay_within_their_radius_of_many_digits_and_agree_with_levinson(m: int) -> None:
    z, e = primitives(m, m)
    body = CaratheodoryBody(frequencies=m)
    floats = body.formula(
        Draws(
            {"normals": Enclosure(z), "exponentials": Enclosure(e), "uniforms": Enclosure(np.empty((30, 0)))},
            lambda value: constant(float(value), 0.0),
        )
    )
    for i in range(0, 30, 6):
        with precision(400):
            columns = {
                kind: np.array([[ball(float(v)) for v in row]], dtype=object)
                for kind, row in (("normals", z[i]), ("exponentials", e[i]))
            }
            exact = body.formula(Draws(columns, ball)).ravel()
            for mid, rad, value in zip(floats.mid[i], floats.rad[i], exact, strict=True):
                assert abs(ball(float(mid)) - value) <= ball(float(rad))
    assert floats.rad.max() < 1e-13 * m
    pairs = complex_of(z)
    sums = np.cumsum((e + np.abs(pairs) ** 2 / 2)[:, ::-1], axis=1)[:, ::-1]
    alpha = pairs / np.sqrt(2 * sums)
    assert np.abs(complex_of(floats.mid) - levinson(alpha.conj())).max() < 1e-9


def test_enclosures_hold_for_every_real_in_their_intervals() -> None:
    """Primitives known to within 1e-9: the moments of primitives anywhere in the intervals are enclosed."""
    m, rng = 9, np.random.default_rng(4)
    z, e = primitives(m, 77)
    wide = {
        "normals": Enclosure(z, np.full(z.shape, 1e-9)),
        "exponentials": Enclosure(e, np.full(e.shape, 1e-9)),
        "uniforms": Enclosure(np.empty((30, 0))),
    }
    body = CaratheodoryBody(frequencies=m)
    outer = body.formula(Draws(wide, lambda v: constant(float(v), 0.0)))
    for _ in range(20):
        moved = {
            "normals": Enclosure(z + rng.choice([-1e-9, 1e-9], z.shape)),
            "exponentials": Enclosure(e + rng.choice([-1e-9, 1e-9], e.shape)),
        }
        inner = body.formula(Draws(moved, lambda v: constant(float(v), 0.0)))
        assert (np.abs(inner.mid - outer.mid) <= outer.rad + 1e-13).all()


@pytest.mark.parametrize("m", [2, 5, 20])
def test_fine_grids_take_balls_and_give_the_same_draw(m: int) -> None:
    law = KNormVector(body=CaratheodoryBody(frequencies=m), noise_scale=3)
    fine = law.sample(spacing=Fraction(1, 1 << 80), size=3, source=SeededSource(seed=9))
    coarse = law.sample(spacing=Fraction(1, 1 << 16), size=3, source=SeededSource(seed=9))
    rounded = [[math.floor(Fraction(int(v), 1 << 64) + Fraction(1, 2)) for v in row] for row in fine.values]
    assert (np.array(rounded) == coarse.values).all()
    assert fine.numerical_delta == coarse.numerical_delta == 0.0


def test_difference_is_symmetric_and_has_twice_the_variance() -> None:
    m, size = 3, 20_000
    law = Difference(distribution=KNormVector(body=CaratheodoryBody(frequencies=m), noise_scale=1))
    x = law.sample(spacing=2.0**-20, size=size, source=SeededSource(seed=6)).to_floats()
    expected = 2 * 7 * 8 * np.repeat([float(v) / 2 for v in caratheodory_second_moments(m)], 2)
    assert np.abs((x**2).mean(axis=0) / expected - 1).max() < 0.12
    assert not far_apart(x[:, 4], -x[:, 4])


# -- moments -------------------------------------------------------------------------------------------


def test_second_moments_from_the_polynomials_in_the_coefficients() -> None:
    """c_k by the Levinson recursion as a polynomial with integer coefficients, squared and integrated exactly."""
    polynomials = moment_polynomials(6)
    for m in range(1, 13):
        found = [second_moment(p, m) for p in polynomials[: min(m, 6)]]
        assert tuple(found) == caratheodory_second_moments(m)[: len(found)]


def exact_by_schur(m: int) -> tuple[Fraction, ...]:
    """E |c_k|^2 from the Beta laws by Schur's algorithm: powers of f_j have uncorrelated coefficients.

    f_j = (a + g) / (1 + conj(a) g), g = z f_{j+1}; [g^q] of its p-th power is a^(p-q) (or its conjugate) times a
    polynomial in t = |a|^2, and E t^s = s! b! / (b + s)! for Beta(1, b). c_k = sum_p [z^k] (z f_1)^p.
    """
    held = [[Fraction(int(p == 0 and n == 0)) for n in range(m + 1)] for p in range(m + 1)]
    for j in range(m, 0, -1):
        b = 2 * (m - j) + 1
        t_power = [Fraction(factorial(s) * factorial(b), factorial(b + s)) for s in range(2 * m + 2)]
        new = [[Fraction(0)] * (m + 1) for _ in range(m + 1)]
        for p in range(m + 1):
            for q in range(m + 1):
                # (a + g)^p gives C(p, i) a^(p-i) g^i, (1 + conj(a) g)^-p the rest: conj(a)^(q-i)
                parts = {
                    i: comb(p, i) * (comb(p + q - i - 1, q - i) if p else int(q == i)) * (-1) ** (q - i)
                    for i in range(min(p, q) + 1)
                }
                weight = sum(
                    (x * y * t_power[p + q - i - k] for i, x in parts.items() for k, y in parts.items()),
                    Fraction(0),
                )
                if weight:
                    for n in range(m + 1 - p):
                        new[p][n + p] += weight * held[q][n]
        held = new
    return tuple(sum((held[p][k] for p in range(1, m + 1)), Fraction(0)) for k in range(1, m + 1))


@pytest.mark.parametrize("m", range(1, 13))
def test_second_moments_from_the_beta_laws(m: int) -> None:
    assert caratheodory_second_moments(m) == exact_by_schur(m)


def test_second_moments_in_print() -> None:
    """Hall 2012, Prop. 4.4.1 prints 2 / (4m - 3(k - 1)): right for m = 2, wrong for m = 3."""
    assert caratheodory_second_moments(1) == (Fraction(1, 2),)
    assert caratheodory_second_moments(2) == (Fraction(1, 4), Fraction(2, 5))
    assert caratheodory_second_moments(3)[1] == Fraction(19, 84) != Fraction(2, 4 * 3 - 3)
    for m in (4, 8, 30):
        moments = caratheodory_second_moments(m)
        assert moments[0] == Fraction(1, 2 * m)
        assert sum(moments) == Fraction(3 * m * (5 * m + 3), 8 * (m + 1) * (2 * m + 1)) < Fraction(15, 16)


@pytest.mark.parametrize("m", [3, 12])
def test_draws_have_these_moments(m: int) -> None:
    size = 40_000
    c = complex_of(draws(m, size, seed=11))
    square = np.abs(c) ** 2
    expected = np.array([float(v) for v in caratheodory_second_moments(m)])
    assert (np.abs(square.mean(axis=0) - expected) < 7 * square.std(axis=0) / math.sqrt(size)).all()
    cross = c.T @ c.conj() / size
    assert np.abs(cross - np.diag(np.diag(cross))).max() < 7 / math.sqrt(size)
    assert np.abs(c.mean(axis=0)).max() < 7 / math.sqrt(size)


@pytest.mark.parametrize("m", [0, -1, 10**4, 513, 1.5, True, "3", None])
def test_what_is_no_number_of_frequencies(m: object) -> None:
    for make in (
        lambda: CaratheodoryBody(frequencies=m),
        lambda: caratheodory_volume(m),
        lambda: caratheodory_second_moments(m),
    ):
        with pytest.raises(InvalidParameter):
            make()


def test_points_of_the_wrong_shape() -> None:
    for points in ([1.0], [[1.0, 2.0, 3.0]], np.zeros((2, 2, 2)), np.zeros((1, 0))):
        with pytest.raises(InvalidParameter):
            caratheodory_gauge(points)
