"""Smooth bounds and propose-test-release against brute force over all small data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.mechanisms import (
    L1,
    InterquartileRangeByTest,
    MedianByTest,
    SmoothBound,
    SmoothLaplace,
    SmoothStudent,
    median_rank,
    smooth_bound,
)
from tacit.mechanisms.propose_test_release import distance_to_instability
from tacit.mechanisms.smooth import laplace_delta, student_epsilon
from tacit.noise import DiscreteLaplace, SeededSource

BETA = Fraction(3, 10)


def order_statistic(data: tuple[int, ...], rank: int) -> int:
    return sorted(data)[rank - 1]


def hamming(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Replacements between two multisets."""
    left = list(b)
    for v in a:
        if v in left:
            left.remove(v)
    return len(left)


def multisets(domain: range | list[int], n: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations_with_replacement(domain, n))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_the_smooth_bound_is_the_definition_on_all_small_data_sets(rank) -> None:
    """S(x) = max over y of LS(y) e^(-beta d(x, y)), enumerated; beta-smooth between all neighbours."""
    n, domain = 5, range(5)
    sets = multisets(domain, n)
    local = {
        x: max(abs(order_statistic(x, rank) - order_statistic(y, rank)) for y in sets if hamming(x, y) <= 1)
        for x in sets
    }
    found = {x: float(smooth_bound(x, beta=BETA, low=0, high=4, rank=rank).value) for x in sets}
    for x in sets:
        brute = max(local[y] * math.exp(-float(BETA) * hamming(x, y)) for y in sets)
        assert brute <= found[x] <= brute * (1 + 1e-7)
    for x, y in itertools.product(sets, sets):
        if hamming(x, y) == 1:
            assert found[x] <= math.exp(float(BETA)) * found[y]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.sampled_from([0.01, 0.2, 1.0, 5.0]))
def test_the_fast_algorithm_agrees_with_the_quadratic_one(data, beta) -> None:
    n, m = len(data), median_rank(len(data))
    x = [0, *sorted(data), 1000]
    slow = max(
        (x[j] - x[i]) * math.exp(-beta * (j - i - 1)) for i in range(m + 1) for j in range(m, n + 2) if i < j
    )
    fast = float(smooth_bound(data, beta=beta, low=0, high=1000).value)
    assert slow * (1 - 1e-12) <= fast <= slow * (1 + 1e-6)


def test_smooth_bounds_are_fast_and_survive_extremes() -> None:
    for data in (
        np.full(200_000, 7),
        np.zeros(200_000, dtype=int),
        np.arange(200_000),
        np.full(200_000, 10**6),
    ):
        assert smooth_bound(data, beta=0.01, low=0, high=10**6).exact > 0
    assert (
        smooth_bound([5], beta=1e-12, low=0, high=10).exact == 10
    )  # the whole range is smooth for every beta
    assert smooth_bound([1 << 70], beta=0.1, low=0, high=1 << 71).exact > 1 << 69
    assert smooth_bound([3], beta=1000, low=0, high=10, spacing=0.5).exact == pytest.approx(3.5, rel=1e-6)
    for bad in (0, -1, math.nan):
        with pytest.raises(InvalidParameter):
            smooth_bound([1], beta=bad, low=0, high=2)
    with pytest.raises(EmptyComposition):
        smooth_bound([], beta=0.1, low=0, high=2)
    with pytest.raises(InvalidParameter):
        smooth_bound([1], beta=0.1, low=2, high=2)
    with pytest.raises(InvalidParameter):
        smooth_bound([1], beta=0.1, low=0, high=2, rank=2)


def test_a_smooth_bound_is_not_shown() -> None:
    assert "31415" not in repr(SmoothBound(value=31415, beta=0.1))
    for bad in (0, -1, math.nan):
        with pytest.raises(InvalidParameter) as caught:
            SmoothBound(value=bad, beta=0.1)
        assert caught.value.hint


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1.0, 1e-6), (3.0, 1e-4)])
def test_smooth_laplace_against_integration(epsilon, delta) -> None:
    """H_epsilon between Lap(0, 1) and Lap(t, e^l) over all allowed moves, integrated on a dense grid."""
    mechanism = SmoothLaplace.for_target(epsilon=epsilon, delta=delta)
    a, beta = 1 / float(mechanism.noise_multiplier), float(mechanism.beta)
    z = np.concatenate([-np.geomspace(1e-6, 80, 60_000)[::-1], np.geomspace(1e-6, 80, 60_000)])
    worst = 0.0
    for stretch in (-beta, -beta / 2, 0.0, beta / 2, beta):
        for t in (0.0, 0.5 * a * min(1, math.exp(stretch)), a * min(1, math.exp(stretch))):
            p = 0.5 * np.exp(-np.abs(z))
            q = 0.5 * np.exp(-np.abs(z - t) * math.exp(-stretch) - stretch)
            worst = max(worst, float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), z)))
    claim = float(mechanism.bound.delta)
    assert claim <= delta
    assert 0.95 * claim <= worst <= claim * (1 + 1e-3)


def test_the_classic_choice_is_safe_for_usual_epsilons_and_false_for_large_ones() -> None:
    for epsilon, delta in itertools.product((0.1, 1, 2, 5), (1e-3, 1e-6, 1e-12)):
        classic = SmoothLaplace.classic(epsilon=epsilon, delta=delta)
        assert classic.bound.delta <= delta
        assert SmoothLaplace.for_target(epsilon=epsilon, delta=delta).beta > classic.beta
    beta = 20 / (2 * math.log(2e6))
    assert laplace_delta(epsilon=20, noise_multiplier=0.1, beta=beta) > 5e-6


@pytest.mark.parametrize("degrees", [1, 2, 3, 7])
@pytest.mark.parametrize(("multiplier", "beta"), [(1.0, 0.5), (6.0, 1 / 6), (0.3, 0.05), (5.0, 0.4)])
def test_smooth_student_against_a_dense_scan(degrees, multiplier, beta) -> None:
    claim = student_epsilon(noise_multiplier=multiplier, beta=beta, degrees=degrees)
    z = np.concatenate([np.linspace(-60, 60, 200_001), [-1e8, 1e8]])
    log_density = lambda x: -(degrees + 1) / 2 * np.log1p(x**2 / degrees)  # noqa: E731
    worst = 0.0
    for stretch in np.linspace(-beta, beta, 9):
        t = min(1, math.exp(stretch)) / multiplier
        loss = log_density(z) - (log_density((z - t) * math.exp(-stretch)) - stretch)
        worst = max(worst, float(np.abs(loss).max()))
    assert 0.95 * claim <= worst <= claim * (1 + 1e-9)


def test_student_calibration_and_the_published_cauchy_choice() -> None:
    assert student_epsilon(noise_multiplier=6, beta=Fraction(1, 6), degrees=1) < 0.23
    for epsilon, degrees in itertools.product((1e-3, 0.5, 1, 20), (1, 3)):
        mechanism = SmoothStudent.for_target(epsilon=epsilon, degrees=degrees)
        assert 0.999 * epsilon <= mechanism.bound.epsilon <= epsilon
    with pytest.raises(InvalidParameter, match="beta"):
        SmoothStudent.for_target(epsilon=1, beta=2)


def test_release_uses_the_bound_of_the_data() -> None:
    source = SeededSource(seed=8)
    mechanism = SmoothLaplace.for_target(epsilon=1, delta=1e-6, spacing=0.5)
    smooth = smooth_bound(range(1001), beta=mechanism.beta, low=0, high=10_000, spacing=0.5)
    out = mechanism.release(500, smooth, source=source)
    assert out.numerical_delta == 0.0
    assert not out.publishable
    assert abs(int(out.values) - 500) < 10_000
    with pytest.raises(InvalidParameter, match="smooth"):
        mechanism.release(500, SmoothBound(value=1, beta=2 * mechanism.beta), source=source)
    with pytest.raises(InvalidParameter):
        mechanism.release(500, L1(1), source=source)  # type: ignore[arg-type]
    wide = SmoothBound(value=10**30, beta=0)
    assert mechanism.expected_error(wide) == pytest.approx(2e30)
    assert mechanism.error_quantile(wide) == pytest.approx(2e30 * math.log(20))
    assert SmoothStudent.for_target(epsilon=1).expected_error(wide) == math.inf
    tiny = SmoothBound(value=Fraction(1, 10**300), beta=0)
    assert int(SmoothStudent.for_target(epsilon=1).release(7, tiny, source=source).values) == 7


def test_the_distance_to_instability_is_the_definition_on_all_small_data_sets() -> None:
    n, steps = 4, 2
    domain = [0, 1, 3, 4]
    far = [-50, *domain, 50]
    everything = multisets(far, n)
    for rank in (1, 2, 3):
        neighbours = {x: [y for y in everything if hamming(x, y) <= 1] for x in everything}
        unstable = [
            x
            for x in everything
            if any(abs(order_statistic(x, rank) - order_statistic(y, rank)) > steps for y in neighbours[x])
        ]
        for x in multisets(domain, n):
            brute = min(hamming(x, y) for y in unstable)
            assert distance_to_instability(x, rank=rank, steps=steps) == brute


def masses(scale: Fraction, reach: int) -> np.ndarray:
    """Pr[X = k] of discrete Laplace noise, by its definition."""
    q = math.exp(-float(1 / scale))
    return np.array([(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)])


@pytest.mark.parametrize("kind", [MedianByTest, InterquartileRangeByTest])
def test_propose_test_release_end_to_end_on_all_small_data_sets(kind, monkeypatch) -> None:
    """What release() does for each value of both noises, on every data set, and H_epsilon for all neighbours."""
    mechanism = kind(proposed=L1(1), test_epsilon=1.5, release_epsilon=1.0, delta=0.2)
    script: list[int] = []
    scales: list[Fraction] = []

    def scripted(law, size=None, source=None):
        scales.append(Fraction(law.noise_scale))
        return np.asarray(script.pop(0))

    monkeypatch.setattr(DiscreteLaplace, "sample", scripted)

    def told(x, test, noise):
        script[:] = [test, noise]
        out = mechanism.release(np.array(x))
        assert not script
        return None if out.released is None else int(out.released.values)

    sets = multisets([0, 1, 2, 3, 9], 7)
    laws = {}
    for x in sets:
        outcomes = [told(x, a, 0) for a in range(-12, 13)]
        passed = [o for o in outcomes if o is not None]
        # Passing depends on the test's noise, the value on the release's noise, and on nothing else.
        assert outcomes == [None] * (25 - len(passed)) + passed
        assert len(set(passed)) == 1
        assert told(x, 12, 5) == passed[0] + 5
        assert told(x, 12, -7) == passed[0] - 7
        law = np.zeros(200)
        # Beyond 12 the test is passed as at 12, below -12 failed as there.
        test = masses(scales[0], 400)
        passing = float(test[400 + 13 - len(passed) :].sum())
        law[0] = 1 - passing
        at = 100 + passed[0]
        law[at - 60 : at + 61] = passing * masses(scales[1], 60)
        laws[x] = law
    assert set(scales[::2]) == {Fraction(2, 3)}
    assert set(scales[1::2]) == {Fraction(1)}
    epsilon, delta = float(mechanism.bound.epsilon), float(mechanism.bound.delta)
    assert (epsilon, delta) == (2.5, 0.2)
    worst = 0.0
    for x, y in itertools.product(sets, sets):
        if hamming(x, y) == 1:
            worst = max(worst, float(np.maximum(laws[x] - math.exp(epsilon) * laws[y], 0).sum()))
    assert 0 < worst <= delta


def test_propose_test_release_answers_on_stable_data_only() -> None:
    source = SeededSource(seed=4)
    stable, fragile = np.repeat([10, 11, 12], 400), np.array([0, 10**6] * 300)
    mechanism = MedianByTest(proposed=L1(2), test_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    outcome = mechanism.release(stable, source=source)
    assert outcome.passed
    assert outcome.released is not None
    assert abs(int(outcome.released.values) - 11) < 200
    assert not mechanism.release(fragile, source=source).passed
    spread = InterquartileRangeByTest(proposed=L1(2), test_epsilon=0.5, release_epsilon=0.5, delta=1e-6)
    assert spread.release(stable, source=source).passed
    assert mechanism.passing_distance() > mechanism.threshold
    with pytest.raises(EmptyComposition):
        mechanism.release([], source=source)
    for bad in (0, 1, -0.1, math.nan):
        with pytest.raises(InvalidParameter):
            MedianByTest(proposed=L1(2), test_epsilon=0.5, release_epsilon=0.5, delta=bad)
