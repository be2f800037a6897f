"""Noise sized by pairs of rows, and by samples of an oracle: every ordered sample of small laws, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidParameter
from tacit.mechanisms import MedianByTest
from tacit.mechanisms.base import L1
from tacit.noise import SeededSource
from tacit.random_data import (
    ChangesByQuantile,
    ChangesBySmoothness,
    SampledSensitivity,
    dkw_draws,
    observed_range_delta,
    ordered_failure,
    pair_changes,
    sample_sensitivities,
)

VALUES = (0, 1, 5)
LAWS = [(1, 1, 1), (8, 1, 1), (1, 8, 1), (5, 4, 1), (20, 1, 0), (0, 1, 1)]


def law_of(weights: tuple[int, ...]) -> list[Fraction]:
    return [Fraction(w, sum(weights)) for w in weights]


def hockey(p: float, mean: float, q: float, other: float, scale: float, epsilon: float) -> float:
    """integral of (p f - e^epsilon q f')+ for two Laplace densities of one scale: ln of the ratio is monotone."""
    level = math.log(p / q) - epsilon
    d = abs(mean - other) / scale
    if level <= -d:
        return 0.0
    if level >= d:
        return p - math.exp(epsilon) * q
    # Put the own centre at 0 and the other at d: p f > e^epsilon q f' for z < z0 with -z0 + (d - z0) = -level.
    z0 = (d + level) / 2
    own = 1 - 0.5 * math.exp(-z0) if z0 >= 0 else 0.5 * math.exp(z0)
    far = 0.5 * math.exp(z0 - d)
    return p * own - math.exp(epsilon) * q * far


def quantile_breaks(m: ChangesByQuantile, n: int) -> Callable[[tuple[int, ...], tuple[int, ...]], bool]:
    """(epsilon, delta) of the pair (level, mean + noise), from the definition: scores, weights and densities anew."""
    bound = m.guarantee.bound
    epsilon, delta = float(bound.epsilon), float(bound.delta)  # type: ignore[attr-defined]
    memo: dict[object, bool] = {}

    def told(x: tuple[int, ...]) -> tuple[list[float], float]:
        rows = [VALUES[i] for i in x]
        half = n // 2
        pairs = (
            [abs(a - b) for a, b in itertools.combinations(rows, 2)]
            if m.all_pairs
            else [abs(rows[i] - rows[i + half]) for i in range(half)]
        )
        cnt = [sum(h <= level for h in pairs) for level in m.levels]
        assert cnt[-1] == len(pairs)  # the largest level bounds every change here
        scores = [-max(b - m.rank, m.rank - c, 0) for b, c in zip([0, *cnt[:-1]], cnt, strict=True)]
        assert scores == m.scores(pair_changes(rows, all_pairs=m.all_pairs))
        moved = n - 1 if m.all_pairs else 1
        weights = [math.exp(float(m.choice_epsilon) * s / (2 * moved)) for s in scores]
        return [w / sum(weights) for w in weights], sum(rows) / n

    def breaks(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
        (p, a), (q, b) = told(x), told(y)
        key = (tuple(p), a, tuple(q), b)
        if key not in memo:
            scales = [float(level) / n / float(m.release_epsilon) for level in m.levels]
            there = sum(hockey(u, a, v, b, s, epsilon) for u, v, s in zip(p, q, scales, strict=True))
            back = sum(hockey(v, b, u, a, s, epsilon) for u, v, s in zip(p, q, scales, strict=True))
            memo[key] = max(there, back) > delta + 1e-12
        return memo[key]

    return breaks


@pytest.mark.parametrize("weights", LAWS)
@pytest.mark.parametrize(("rank", "slack", "choice"), [(3, 1, 4.0), (3, 2, 2.0), (2, 1, 3.0)])
def test_no_sample_breaks_the_private_quantile_too_often(
    weights: tuple[int, ...], rank: int, slack: int, choice: float
) -> None:
    """6 rows of three values, every ordered sample, every place of the replaced row that differs."""
    m = ChangesByQuantile(
        rows=6, levels=(1, 4, 5), rank=rank, slack=slack, choice_epsilon=choice, release_epsilon=1
    )
    gamma = m.guarantee.condition.gamma  # type: ignore[attr-defined]
    assert gamma == pytest.approx((3 - rank + slack) / 3)
    assert float(m.guarantee.bound.delta) == pytest.approx(3 * math.exp(-choice * slack / 2))  # type: ignore[attr-defined]
    for place in (0, 5):
        failing = ordered_failure(quantile_breaks(m, 6), rows=6, law=law_of(weights), place=place)
        assert failing <= gamma


@pytest.mark.parametrize("weights", LAWS)
def test_no_sample_breaks_the_quantile_of_all_pairs_too_often(weights: tuple[int, ...]) -> None:
    m = ChangesByQuantile(
        rows=5, levels=(1, 5), rank=9, slack=2, choice_epsilon=5, release_epsilon=1, all_pairs=True
    )
    gamma = m.guarantee.condition.gamma  # type: ignore[attr-defined]
    assert gamma == pytest.approx(1 - (9 - 2 + 1) / 15)
    assert float(m.guarantee.bound.delta) == pytest.approx(2 * math.exp(-5 * 2 / (2 * 4)))  # type: ignore[attr-defined]
    failing = ordered_failure(quantile_breaks(m, 5), rows=5, law=law_of(weights), place=4)
    assert failing <= gamma


def test_one_row_moves_so_many_pairs() -> None:
    """The score's sensitivity: 1 for disjoint pairs, n - 1 for all of them; reached."""
    for all_pairs, most in ((False, 1), (True, 4)):
        moved = 0
        m = ChangesByQuantile(
            rows=5, levels=(1, 5), rank=2, slack=1, choice_epsilon=9, release_epsilon=1, all_pairs=all_pairs
        )
        for x in itertools.product(VALUES, repeat=5):
            for fresh in VALUES:
                y = (*x[:2], fresh, *x[3:])
                one, other = (m.scores(pair_changes(r, all_pairs=all_pairs)) for r in (x, y))
                moved = max(moved, max(abs(a - b) for a, b in zip(one, other, strict=True)))
        assert moved == most
        assert Fraction(m.choice.sensitivity.value) == (4 if all_pairs else 1)


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("weights", LAWS)
def test_order_statistics_of_pairs_bound_the_real_change(weights: tuple[int, ...], all_pairs: bool) -> None:
    """h of the replaced row is at most n min(s, s') except with probability gamma: counted; ties count for us."""
    n, law = 6, law_of(weights)
    for rank in (1, 2, 3) if not all_pairs else (5, 12, 15):

        def too_large(x: tuple[int, ...], y: tuple[int, ...], rank: int = rank) -> bool:
            a, b = ([VALUES[i] for i in z] for z in (x, y))
            least = min(sorted(pair_changes(z, all_pairs=all_pairs))[rank - 1] for z in (a, b))
            return abs(a[5] - b[5]) > least

        gamma = 1 - Fraction(rank, 21) if all_pairs else Fraction(3 - rank + 1, 3)
        assert ordered_failure(too_large, rows=n, law=law) <= gamma
        if 0 < gamma < 1:
            m = ChangesBySmoothness(rows=n, rank=rank, epsilon=1, beta=0.05, all_pairs=all_pairs)
            assert m.guarantee.condition.gamma == pytest.approx(float(gamma))  # type: ignore[attr-defined]


def test_a_continuous_law_reaches_the_share() -> None:
    """Ranks of distinct changes are uniform: with all 7 rows far apart the share is reached in every order."""
    rows = [0, 1, 3, 7, 15, 31, 63]
    bad = 0
    orders = list(itertools.permutations(rows))[::7]
    for x in orders:
        a, b = x[:6], (*x[:5], x[6])
        least = min(sorted(pair_changes(z))[2] for z in (a, b))
        bad += abs(x[5] - x[6]) > least
    assert bad / len(orders) <= 1 / 3
    assert bad / len(orders) > 0.2


def test_the_smooth_release() -> None:
    m = ChangesBySmoothness(rows=1000, rank=490, epsilon=1, beta=0.03, smooth_gamma=0.001)
    assert m.guarantee.condition.gamma == pytest.approx(11 / 500 + 0.001)  # type: ignore[attr-defined]
    assert any("differs by no more than the declared factor" in d for d in m.guarantee.declared)
    # The exact delta is below the published 2 e^(-epsilon/(2 beta)).
    assert float(m.guarantee.bound.delta) <= 2 * math.exp(-1 / 0.06)  # type: ignore[attr-defined]
    values = [float(v) for v in np.random.default_rng(3).normal(50, 10, 1000)]
    changes = pair_changes(values)
    size = 2 * float(sorted(changes)[489]) / 1000
    got = [m.release(50.0, changes, source=SeededSource(seed=s)).value - 50 for s in range(300)]
    assert abs(np.mean(np.abs(got)) / size - 1) < 7 / math.sqrt(300)
    tied = m.release(1.0, [0] * 500, source=SeededSource(seed=1))
    assert abs(tied.value - 1) < 1e-3  # ties: noise of the grid's size, not none
    assert tied.value != 1 or m.release(1.0, [0] * 500, source=SeededSource(seed=2)).value != 1


def test_a_mean_of_unbounded_data() -> None:
    levels = [2.0**i for i in range(-6, 24)]
    m = ChangesByQuantile.for_target(
        rows=20_000, levels=levels, gamma=0.05, delta=1e-6, choice_epsilon=0.5, release_epsilon=0.5
    )
    assert m.guarantee.condition.gamma <= 0.05  # type: ignore[attr-defined]
    assert float(m.guarantee.bound.delta) <= 1e-6  # type: ignore[attr-defined]
    values = [float(v) for v in np.random.default_rng(1).standard_t(3, 20_000) * 10]
    changes = pair_changes(values)
    true = math.fsum(values) / 20_000
    found = [m.release(true, changes, source=SeededSource(seed=s)) for s in range(12)]
    assert {float(f.level) for f in found if f.level is not None} <= {32.0, 64.0, 128.0}
    assert (
        max(abs(f.value - true) for f in found) < 0.2
    )  # a declared range of 2^23 would need noise of size 800
    with pytest.raises(InvalidParameter, match="pairs for this gamma"):
        ChangesByQuantile.for_target(
            rows=100, levels=levels, gamma=0.05, delta=1e-6, choice_epsilon=0.5, release_epsilon=0.5
        )
    shrunken = pair_changes(values[:10], lambda a, b: abs(a - b) / 2)
    assert shrunken == [h / 2 for h in pair_changes(values[:10])]


# --- an oracle -------------------------------------------------------------------------------------------
def medians() -> dict[int, Fraction]:
    """The law of |median(D) - median(D')| for 3 rows of a law on four values, over all samples."""
    law = {0: Fraction(1, 2), 1: Fraction(1, 4), 4: Fraction(1, 8), 20: Fraction(1, 8)}
    found: dict[int, Fraction] = {}
    for x in itertools.product(law, repeat=4):
        moved = abs(sorted(x[:3])[1] - sorted((*x[:2], x[3]))[1])
        found[moved] = found.get(moved, Fraction(0)) + math.prod((law[v] for v in x), start=Fraction(1))
    return found


@pytest.mark.parametrize(("draws", "rank"), [(1, 1), (4, 4), (9, 9), (9, 7), (30, 28)])
def test_sampled_sensitivities_of_a_median(draws: int, rank: int) -> None:
    """Pr[fresh > rank-th of draws] for a law with ties, exactly; and how often the share itself is above gamma."""
    law = medians()
    assert sum(law.values()) == 1

    def at_most(v: int) -> Fraction:
        return sum((p for u, p in law.items() if u <= v), Fraction(0))

    def order_at_most(v: int) -> Fraction:
        q = at_most(v)
        return sum(
            (math.comb(draws, j) * q**j * (1 - q) ** (draws - j) for j in range(rank, draws + 1)), Fraction(0)
        )

    values = sorted(law)
    chance = {}
    before = Fraction(0)
    for v in values:
        chance[v] = order_at_most(v) - before
        before = order_at_most(v)
    failing = sum((chance[v] * (1 - at_most(v)) for v in values), Fraction(0))
    m = SampledSensitivity(rows=3, draws=draws, rank=rank, epsilon=1)
    assert failing <= 1 - Fraction(rank, draws + 1)
    assert m.guarantee.condition.gamma == pytest.approx(1 - rank / (draws + 1))  # type: ignore[attr-defined]
    for gamma in (0.05, 0.1, 0.3):
        above = sum((chance[v] for v in values if 1 - at_most(v) > Fraction(gamma)), Fraction(0))
        assert above <= m.exceeds(gamma)


def test_how_many_draws() -> None:
    m = SampledSensitivity.for_gamma(rows=100, gamma=0.01, epsilon=1)
    assert (m.draws, m.rank) == (99, 99)
    assert m.guarantee.condition.gamma == 0.01  # type: ignore[attr-defined]
    assert dkw_draws(0.01) == 41_971
    sure = SampledSensitivity.for_confidence(rows=100, gamma=0.01, confidence=0.99, epsilon=1)
    assert sure.draws == 459
    assert 0.99**459 <= 0.01 < 0.99**458
    assert sure.exceeds(0.01) == pytest.approx(0.99**459)


def test_a_median_by_an_oracle_beside_propose_test_release() -> None:
    rng = np.random.default_rng(7)
    oracle = rng.standard_cauchy
    found = sample_sensitivities(lambda x: float(np.median(x)), oracle, rows=1001, draws=99)
    m = SampledSensitivity.for_gamma(rows=1001, gamma=0.01, epsilon=1, spacing=2.0**-16)
    rows = np.random.default_rng(8).standard_cauchy(1001)
    true = float(np.median(rows))
    got = [m.release(true, found, source=SeededSource(seed=s)).to_floats()[0] - true for s in range(200)]
    assert np.mean(np.abs(got)) < 0.1
    # Dwork and Lei's test, which needs no law: its proposal must be passed, and it has a delta.
    test = MedianByTest(
        proposed=L1(0.25), test_epsilon=0.5, release_epsilon=0.5, delta=1e-6, spacing=2.0**-16
    )
    on_grid = np.rint(rows * 2**16).astype(np.int64)
    passed = [test.release(on_grid, source=SeededSource(seed=s)) for s in range(40)]
    assert sum(t.passed for t in passed) > 30
    errors = [abs(t.released.to_floats() - true) for t in passed if t.released is not None]
    assert np.mean(errors) < 2.0


def test_bad_statistics() -> None:
    def raising(rows: np.ndarray) -> float:
        raise RuntimeError("not today")

    for bad, what in ((raising, "RuntimeError"), (lambda x: x, "TypeError"), (lambda x: None, "TypeError")):
        with pytest.raises(InvalidParameter, match=what):
            sample_sensitivities(bad, np.zeros, rows=5, draws=2)  # type: ignore[arg-type]
    assert dkw_draws(1e-300) > 10**600  # the square of gamma is below all floats


def test_a_regularised_estimate_moves_as_little_as_claimed() -> None:
    """argmin mean |y - t x| + (penalty/2) t^2: h = (|x| + |x'|)/penalty; every pair of small samples, x up to 50."""
    penalty = Fraction(2)

    def fitted(rows: tuple[tuple[int, int], ...]) -> Fraction:
        """Exactly: the slope of the convex objective grows, and jumps at the corners y/x."""
        n = len(rows)
        corners = sorted({Fraction(y, x) for x, y in rows})

        def pulled(t: Fraction, side: int) -> Fraction:
            """The slope of the losses just beside t."""
            at = ((x, Fraction(y, x) - t) for x, y in rows)
            return Fraction(sum(x if (r < 0 or (r == 0 and side > 0)) else -x for x, r in at), n)

        for t in corners:
            if pulled(t, -1) + penalty * t <= 0 <= pulled(t, 1) + penalty * t:
                return t
        for low, high in itertools.pairwise([None, *corners, None]):
            inside = high - 1 if low is None else low + 1 if high is None else (low + high) / 2
            t = -pulled(inside, 1) / penalty
            if (low is None or t > low) and (high is None or t < high):
                return t
        raise AssertionError

    rows = [(1, 3), (1, -4), (3, 5), (50, 1), (50, -70)]
    tightest = Fraction(0)
    for rest in itertools.combinations_with_replacement(rows, 2):
        for one, other in itertools.combinations(rows, 2):
            moved = abs(fitted((*rest, one)) - fitted((*rest, other)))
            (h,) = pair_changes([one[0], other[0]], lambda a, b: (abs(a) + abs(b)) / penalty)
            assert moved <= h / 3
            tightest = max(tightest, moved / (h / 3))
    assert tightest > Fraction(1, 2)  # the bound is not idle


def test_bad_oracles() -> None:
    def raising(count: int) -> np.ndarray:
        raise RuntimeError("no rows today")

    with pytest.raises(InvalidParameter, match="RuntimeError"):
        sample_sensitivities(np.median, raising, rows=5, draws=2)
    with pytest.raises(InvalidParameter, match="finite"):
        sample_sensitivities(np.mean, lambda c: np.full(c, np.nan), rows=5, draws=2)
    with pytest.raises(InvalidParameter, match="6 rows"):
        sample_sensitivities(np.mean, lambda c: np.zeros(3), rows=5, draws=2)
    m = SampledSensitivity(rows=5, draws=2, rank=2, epsilon=1)
    for bad in ([1.0], [1.0, math.nan], [1.0, -1.0], [1.0, math.inf]):
        with pytest.raises(InvalidParameter):
            m.noise(bad)
    assert m.release(1.0, [0.0, 0.0], source=SeededSource(seed=1)).values.size == 1  # ties
    with pytest.raises(tacit.NoLaw):
        SampledSensitivity(rows=5, draws=2, rank=2, epsilon=1, independent=False)
    with pytest.raises(InvalidParameter, match="at most the number of draws"):
        SampledSensitivity(rows=5, draws=2, rank=3, epsilon=1)
    with pytest.raises(InvalidParameter, match="finite numbers"):
        pair_changes([1.0, math.nan])


@pytest.mark.parametrize("change", [Fraction(1, 4), Fraction(9, 4), Fraction(7, 2)])
def test_noise_covers_what_rounding_to_the_grid_adds(change: Fraction) -> None:
    """Values that differ by the change land on whole steps: the noise is for the steps between those."""
    by_pairs = ChangesByQuantile(
        rows=100, levels=(100 * change,), rank=45, slack=20, choice_epsilon=1, release_epsilon=1, spacing=1
    )
    by_oracle = SampledSensitivity(rows=5, draws=2, rank=2, epsilon=1, spacing=1)
    values = [Fraction(i, 16) for i in range(64)]
    moved = max(abs(math.floor(v + change + Fraction(1, 2)) - math.floor(v + Fraction(1, 2))) for v in values)
    assert moved > change
    for noise in (by_pairs.noise_at(100 * change), by_oracle.noise([change, change])):
        assert moved / Fraction(noise.distribution.noise_scale) <= 1


def test_some_level_always_has_the_best_score() -> None:
    """What delta rests on: also for changes above the largest level, where the declaration is false."""
    m = ChangesByQuantile(
        rows=100, levels=(1, 2), rank=45, slack=20, choice_epsilon=1, release_epsilon=1, spacing=1
    )
    for changes in ([0] * 50, [3] * 50, [1] * 10 + [9] * 40):
        assert max(m.scores(changes)) == 0


def test_bounds_read_off_the_data_hide_nothing() -> None:
    rows = [float(v) for v in range(100)]
    near = observed_range_delta(rows, replaced=50.0, epsilon=1)
    far = [observed_range_delta(rows, replaced=10.0**e, epsilon=1) for e in (3, 5, 8, 12)]
    assert near < far[0] < far[1] < far[2] < far[3]
    assert far[3] > 0.9999
    assert observed_range_delta([0.0] * 99 + [1.0], replaced=0.0, epsilon=1) == 1
    assert observed_range_delta([0.0] * 100, replaced=0.0, epsilon=1) == 0
