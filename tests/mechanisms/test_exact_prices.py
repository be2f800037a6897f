"""Exact prices, sizes beyond a limit, and draws that floats cannot decide: what only rare inputs reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.accounting import events
from tacit.guarantees import GaussianDP, Pure
from tacit.mechanisms import (
    L1,
    L2,
    Contribution,
    CumulativeTree,
    Exponential,
    Gamma,
    Gauge,
    Gaussian,
    GaussianSelection,
    Geometric,
    HadamardResponse,
    InterquartileRangeByTest,
    IntervalExponential,
    KNorm,
    KNormDifference,
    Laplace,
    MedianByTest,
    OptimalSelection,
    PermuteAndFlip,
    PolytopeNorm,
    RandomizedResponse,
    RangeNorm,
    RangeTree,
    RoundedGaussian,
    Score,
    Selection,
    SmoothBound,
    SmoothLaplace,
    SmoothStudent,
    SparseHistogram,
    StableHistogram,
    Staircase,
    SubsetSelection,
    TruncatedGeometric,
    TwoQuestions,
    Workload,
    choose,
)
from tacit.mechanisms import fourier as fourier_sensitivity
from tacit.mechanisms import quantiles as quantile_selection
from tacit.mechanisms import sparse as sparse_noise
from tacit.mechanisms import strategies as workloads
from tacit.mechanisms.base import Mechanism, event_of, rho_of_epsilon, short_up
from tacit.mechanisms.bodies import Simplex, as_gauge, moments
from tacit.mechanisms.cumulative import CumulativeGaussian
from tacit.mechanisms.fitted_tables import Agreement, FittedTables, HullTables, Image
from tacit.mechanisms.ranges import RangeAnswers
from tacit.mechanisms.strategies import Budget
from tacit.mechanisms.tables import CellSums, ShapedTables
from tacit.noise import CaratheodoryBody, LinfBall, SampledBody, SeededSource

LAPLACE = Laplace.for_target(epsilon=1, sensitivity=L1(1))
PLACES = (np.array([0, 1]), np.array([0, 0]))


def seeded() -> SeededSource:
    return SeededSource(seed=5)


# --- prices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7), Fraction(60)]
)
def test_the_rho_of_an_epsilon_is_that_of_randomised_response(epsilon: Fraction) -> None:
    """epsilon tanh(epsilon/2), the Kullback-Leibler divergence of the pair that has this epsilon; rounded up."""
    e = float(epsilon)
    yes, no = 1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))
    divergence = yes * e - no * e
    assert float(rho_of_epsilon(epsilon)) == pytest.approx(divergence, rel=1e-12)
    assert rho_of_epsilon(epsilon) <= epsilon**2 / 2


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(2**100 + 1, 3), Fraction(1, 3 * 2**200), Fraction(5, 7)]
)
def test_a_short_number_lies_on_or_above(value: Fraction) -> None:
    assert value <= short_up(value) <= value * (1 + Fraction(1, 1 << 78))
    assert short_up(Fraction(3, 8)) == Fraction(3, 8)


PURE: dict[str, Callable[[], Any]] = {
    "Laplace": lambda: Laplace.for_target(epsilon=Fraction(1, 3), sensitivity=L1(5)),
    "Geometric": lambda: Geometric(epsilon=Fraction(1, 3)),
    "Staircase": lambda: Staircase(epsilon=Fraction(1, 3), sensitivity=L1(5)),
    "CumulativeTree": lambda: CumulativeTree(bins=64, l1=2, epsilon=Fraction(1, 3)),
    "Gamma": lambda: Gamma.for_target(epsilon=Fraction(1, 3), sensitivity=L2(5), dimension=2),
    "KNorm": lambda: KNorm.for_target(epsilon=Fraction(1, 3), sensitivity=Gauge(5, LinfBall(coordinates=2))),
    "KNormDifference": lambda: KNormDifference.for_target(
        epsilon=Fraction(1, 3), sensitivity=Contribution(5, LinfBall(coordinates=2))
    ),
    "PolytopeNorm": lambda: PolytopeNorm.for_target(epsilon=Fraction(1, 3), points=((3,),), times=7),
    "RangeNorm": lambda: RangeNorm.for_target(epsilon=Fraction(1, 3), dimension=3, times=7),
    "HullTables": lambda: HullTables.for_target(
        epsilon=Fraction(1, 3), image=Image(patterns=((1, 0), (1, 1)), sizes=(2,)), times=7
    ),
    "ShapedTables": lambda: ShapedTables(sizes=(2, 3), noise_scale=21, times=7),
    "ShapedTables, replaced": lambda: ShapedTables(sizes=(2, 3), noise_scale=21, times=7, replaced=True),
    "Exponential": lambda: Exponential(epsilon=Fraction(1, 3), sensitivity=Score(5)),
    "PermuteAndFlip": lambda: PermuteAndFlip(epsilon=Fraction(1, 3), sensitivity=Score(5)),
    "RandomizedResponse": lambda: RandomizedResponse(epsilon=Fraction(1, 3), categories=4),
    "FittedTables": lambda: FittedTables.for_target(
        epsilon=Fraction(1, 3), l1=4, agreement=Agreement(places=PLACES, sizes=(2, 1))
    ),
    "RangeAnswers": lambda: RangeAnswers(
        noise=RangeTree.plan(cells=8, epsilon=Fraction(1, 3), branching=2, rows=3), ranges=np.array([[0, 1]]), cells=8
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PURE)
def test_exact_prices_agree_with_the_bound(name: str) -> None:
    """Of a third neither the exact epsilon nor the told one is smaller, and rho is that of this epsilon."""
    made = PURE[name]()
    third = Fraction(1, 3)
    assert isinstance(made.bound, Pure)
    assert third * (1 - Fraction(1, 1 << 30)) <= made.exact_epsilon <= third * (1 + Fraction(1, 1 << 50))
    assert Fraction(made.bound.epsilon) >= made.exact_epsilon
    assert made.bound.epsilon == pytest.approx(1 / 3, rel=1e-9)
    assert float(made.exact_rho) == pytest.approx(math.tanh(1 / 6) / 3, rel=1e-8)


@pytest.mark.parametrize("square", [2, 3, 50])
@pytest.mark.parametrize("spacing", [1, Fraction(1, 8)])
def test_exact_prices_of_gaussian_noise(square: int, spacing: Fraction) -> None:
    std, move = Fraction(7), L2.root(square)
    rounded = RoundedGaussian(sensitivity=move, noise_std=std, dimension=3, spacing=spacing)
    exact = Fraction(square, 49)
    assert exact <= rounded.exact_mu_squared <= exact * (1 + Fraction(1, 1 << 70))
    assert exact / 2 <= rounded.exact_rho <= exact / 2 * (1 + Fraction(1, 1 << 70))
    assert Fraction(rounded.bound.mu) ** 2 >= exact
    assert isinstance(rounded.event, events.GaussianEvent)
    assert Fraction(rounded.event.noise_multiplier) ** 2 <= 1 / exact
    told = rounded.to_dict(["a"])
    assert told["sensitivity"] == {"norm": "L2", "steps_squared": square / spacing**2}
    assert Fraction(told["noise_std"]) == std / spacing
    discrete = Gaussian(sensitivity=move, noise_std=std, dimension=3, spacing=spacing)
    assert exact / 2 <= discrete.exact_rho <= exact / 2 * (1 + Fraction(1, 1 << 70))
    assert discrete.exact_epsilon is None


def test_the_exact_rho_of_ranks_is_half_of_mu_squared() -> None:
    made = CumulativeGaussian.for_rho(bins=16, l2_squared=3, rho=Fraction(1, 5))
    assert float(made.exact_rho) == pytest.approx(0.2, rel=1e-9)
    assert made.exact_rho == Fraction(made.bound.mu) ** 2 / 2


@pytest.mark.parametrize("gaussian", [False, True])
def test_ranges_of_a_tree_pay_every_level(gaussian: bool) -> None:
    tree = RangeTree._made(16, 2, Budget.of(1, 1e-6), gaussian, False, 2, True)
    assert len({type(m) for m in tree.mechanisms}) == 1
    made = RangeAnswers(noise=tree, ranges=np.array([[0, 3], [5, 5]]), cells=16)
    assert len(made.events) == len(tree.mechanisms) == 5
    assert made.bound == tree.bound
    assert made.theorems[-2] == "linear-strategies"
    assert made.gaussian == gaussian
    if gaussian:
        assert made.exact_epsilon is None
        assert made.exact_rho == sum(m.exact_rho for m in tree.mechanisms if m is not None and m.exact_rho)
        assert float(made.exact_rho) == pytest.approx(tree.bound.mu**2 / 2, rel=1e-9)  # type: ignore[attr-defined]
        assert made.exact_mu_squared == sum(  # the default: that of the events, all of them
            e.mu_squared() or 0 for e in made.events
        )
        assert made.theorems[-1] == "compose-gdp"
    else:
        assert float(made.exact_epsilon or 0) == pytest.approx(1, rel=1e-9)
        assert made.theorems[-1] == "compose-pure"
    plain = RangeAnswers(noise=LAPLACE, ranges=np.array([[0, 3]]), cells=16)
    assert plain.event == LAPLACE.event
    assert plain.theorems == LAPLACE.theorems
    assert plain.exact_epsilon == 1


def test_squares_of_mu_add_up_only_where_all_are_known() -> None:
    """A selection with a threshold has a part that is no Gaussian noise: then there is no mu at all."""
    made = GaussianSelection.for_rho(rho=Fraction(1, 10), delta=1e-6, keys=2)
    assert made.exact_mu_squared is None
    noise = events.GaussianEvent(noise_multiplier=2.0)
    assert _Ran(ran=(events.RepeatedEvent(event=noise, times=5), noise)).exact_mu_squared == Fraction(6, 4)
    assert _Ran(ran=(noise, events.ApproximateEvent(epsilon=0.0, delta=0.1))).exact_mu_squared is None


@dataclass(frozen=True, kw_only=True)
class _Ran(Mechanism):
    """A mechanism that is known by its events only."""

    ran: tuple[Any, ...]

    @property
    def bound(self) -> Pure:
        return Pure(epsilon=1)

    @property
    def noise_distribution(self) -> dict[str, Any]:
        return {}

    @property
    def events(self) -> tuple[Any, ...]:
        return self.ran


@pytest.mark.parametrize("mu", [1 / 3, 0.1, 3.0, 7.3])
def test_the_event_of_a_gaussian_bound_has_no_more_noise_than_it(mu: float) -> None:
    event = event_of(GaussianDP(mu=mu))
    assert isinstance(event, events.GaussianEvent)
    assert 1 - 2.0**-50 <= Fraction(event.noise_multiplier) * Fraction(mu) <= 1


QUESTIONS = TwoQuestions(
    first=RandomizedResponse(epsilon=1), second=HadamardResponse(epsilon=Fraction(1, 4), categories=3)
)


def test_two_questions_are_paid_together() -> None:
    assert QUESTIONS.bound.epsilon == 1.25
    assert len(QUESTIONS.events) == 2
    assert isinstance(QUESTIONS.event, events.ComposedEvent)
    assert QUESTIONS.event.events == (QUESTIONS.first.event, QUESTIONS.second.event)


@pytest.mark.parametrize("keys", [1, 3])
def test_the_bound_of_a_selection_without_an_epsilon_lies_on_its_curve(keys: int) -> None:
    made = GaussianSelection.for_rho(rho=Fraction(1, 10), delta=1e-6, keys=keys, group=2)
    assert made.epsilon is None
    assert made.new <= 1e-6
    assert made.bound.delta == pytest.approx(2 * made.new)
    assert made.delta(made.bound.epsilon) <= made.bound.delta
    assert made.delta(made.bound.epsilon * 0.999) > made.bound.delta
    assert made.rho == pytest.approx(0.1, rel=1e-9)
    assert made.rho >= made._mu(made.moved) ** 2 / 2 * (1 - 1e-15)
    noise, name = made.event.events  # type: ignore[attr-defined]
    assert isinstance(noise, events.GaussianEvent)
    assert GaussianDP(mu=1 / noise.noise_multiplier).mu == pytest.approx(math.sqrt(0.2), rel=1e-9)
    assert name.delta == made.new


# --- beyond a limit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replace_rows", [1, 3])
def test_a_bound_for_very_many_columns_is_never_below_the_exact_one(
    replace_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of opposite columns the two largest are added up, their squares twice: reached here, so no factor is spare."""
    opposite = np.array([[5, -5, 1, 0], [0, 0, 1, 2]])
    towards = np.array([[3, 0, 1, 0], [0, 4, 1, 2]])
    for matrix in (opposite, towards, np.array([[5, 0, 1], [0, 1, 5]])):
        work = Workload(matrix=matrix, neighbours="replace-one", rows=replace_rows)
        exact = work.sensitivities(work.matrix)
        columns = list(matrix.T)
        pairs = [a - b for a, b in itertools.permutations([*columns, np.zeros(2, dtype=np.int64)], 2)]
        assert exact == (
            replace_rows * max(int(np.abs(p).sum()) for p in pairs),
            replace_rows**2 * max(int((p**2).sum()) for p in pairs),
        )
        with monkeypatch.context() as small:
            small.setattr(workloads, "MOST_PAIRS", 2)
            bound = work.sensitivities(work.matrix)
        assert bound[0] >= exact[0]
        assert bound[1] >= exact[1]
        if matrix is opposite:
            assert bound == exact


@pytest.mark.parametrize("m", [2, 3, 5])
def test_sizes_of_features_beyond_the_search_are_bounds(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """sup over x, and over x and y, by brute force: the plain bound for many frequencies is above both."""
    x = np.linspace(0, 2 * math.pi, 721)
    psi = np.concatenate([np.stack([np.cos(k * x), np.sin(k * x)]) for k in range(1, m + 1)])
    alone = float(np.abs(psi).sum(axis=0).max())
    apart = max(float(np.abs(psi - psi[:, i : i + 1]).sum(axis=0).max()) for i in range(0, 721, 5))
    for limit in (fourier_sensitivity.MOST_SEARCHED, 1):
        monkeypatch.setattr(fourier_sensitivity, "MOST_SEARCHED", limit)
        fourier_sensitivity._l1.cache_clear()
        fourier_sensitivity._moved_l1.cache_clear()
        one = fourier_sensitivity.fourier_l1(frequencies=m, replace=False).exact
        two = fourier_sensitivity.fourier_l1(frequencies=m, replace=True).exact
        assert alone <= one <= m * math.sqrt(2) + 1e-9
        assert apart <= two <= 2 * m * math.sqrt(2) + 1e-9
    assert float(one) == pytest.approx(m * math.sqrt(2))
    fourier_sensitivity._l1.cache_clear()
    fourier_sensitivity._moved_l1.cache_clear()


def test_norms_as_gauges_keep_their_balls() -> None:
    names = [type(as_gauge(s, 3).body).__name__ for s in (L1(2), L2(2))]
    assert names == ["L1Ball", "EuclideanBall"]
    assert as_gauge(L1(2), 3).exact == 2


def test_moments_of_bodies_without_a_closed_law() -> None:
    body = CaratheodoryBody(frequencies=2)
    assert moments(body).square == pytest.approx(body.covariance.diagonal(), rel=1e-9)
    assert (moments(body).reach == 1).all()
    sampled = SampledBody(
        coordinates=2, sampler=lambda n, s: np.zeros((n, 2)), absolute_error=1e-9, marginal_density_bound=1.0, reach=3.0
    )  # fmt: skip
    assert (moments(sampled).reach == 3).all()
    assert (moments(sampled).square == 9).all()
    assert (moments(sampled).size == 3).all()


def test_only_an_interval_around_0_is_a_symmetric_simplex() -> None:
    assert Simplex(vertices=[[2], [-2]]).symmetric
    assert not Simplex(vertices=[[2], [-1]]).symmetric
    assert not Simplex(vertices=[[1, 0], [0, 1], [-1, -1]]).symmetric


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_noise_of_a_hull_on_a_line_stays_within_its_quantile(confidence: float) -> None:
    """On a line the hull of -3 and 3 has Laplace noise of scale 6, rounded: beyond t with chance e^(-(t + 1/2) / 6)."""
    made = PolytopeNorm(points=((-3,),), noise_scale=2)
    stated = made.error_quantile(confidence)
    # The least whole number that is enough, and so one less is not.
    assert stated == int(stated)
    assert math.exp(-(stated + 0.5) / 6) <= 1 - confidence < math.exp(-(stated - 0.5) / 6)
    assert stated == made.max_error(confidence=confidence, dimension=1)


def test_errors_of_all_categories_share_the_miss() -> None:
    made = RandomizedResponse(epsilon=1, categories=4)
    alone = made.count_error(people=500, confidence=1 - Fraction(5, 400))
    assert made.max_error(people=500, confidence=0.95) == pytest.approx(alone)
    assert made.max_error(people=500, confidence=0.95, dimension=1) == pytest.approx(
        made.count_error(people=500)
    )
    assert made.max_error(people=500, confidence=0.95) > made.count_error(people=500)


def test_a_ratio_allows_for_the_rounding_of_both_numbers() -> None:
    """|w_1 X_1 + w_2 X_2| is within the normal quantile and half a step of each; there the margin is 0."""
    noises = [RoundedGaussian(sensitivity=L2(1), noise_std=s, dimension=1) for s in (3, 4)]
    margin = noises[0].pivot(noises)
    weights = [np.array([1.0]), np.array([2.0])]
    edge = 1.959963984540054 * math.hypot(3, 8) + 0.5 + 1.0
    assert margin(weights, np.array([edge]), 0.95) == pytest.approx(0, abs=1e-9)
    assert margin(weights, np.array([-edge - 0.1]), 0.95)[0] < 0


# --- draws that floats cannot decide ---------------------------------------------------------------------------


def test_a_quantile_chosen_by_balls_is_the_one_chosen_by_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no trust in floats every try is decided exactly, by the same words: the same bins come out."""
    made = quantile_selection.QuantileSelection(bins=5, share=Fraction(1, 3), rank_sensitivity=2, epsilon=3)
    counts, edges = [3, 0, 6, 1, 2], [0, 1, 2, 3, 4, 5]

    def drawn() -> list[tuple[float, float, float]]:
        found = [made.release(counts, edges=edges, source=SeededSource(seed=s)) for s in range(60)]
        return [(float(f.value[0]), float(f.low[0]), float(f.high[0])) for f in found]

    floats = drawn()
    assert len(set(floats)) > 8
    asked: list[int] = []
    honest = quantile_selection.Uniform

    def counted(**given: Any) -> Any:
        asked.append(1)
        return honest(**given)

    monkeypatch.setattr(quantile_selection, "Uniform", counted)
    assert drawn() == floats
    assert not asked
    monkeypatch.setattr(quantile_selection, "SLACK", 1.0)
    assert drawn() == floats
    assert len(asked) > 180


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10)])
def test_a_quantile_is_chosen_with_its_sensitivity(confidence: Fraction) -> None:
    """Three choices of epsilon/3, each for scores that move by 5; each end misses half of the miss."""
    made = quantile_selection.QuantileSelection(
        bins=5, share=Fraction(1, 3), rank_sensitivity=5, epsilon=3, confidence=confidence
    )
    assert Fraction(made.noise_distribution["rate"]) == Fraction(1, 10)
    assert made.reach == math.ceil(10 * math.log(4 * (1 + confidence) / (1 - confidence)))
    assert made.bound.epsilon == 3
    assert isinstance(made.event, events.RepeatedEvent)
    assert made.event.times == 3
    assert made.event.event == Exponential(epsilon=1, sensitivity=Score(5)).event


def test_far_gaussian_noise_kept_by_balls_is_that_kept_by_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Gaussian(sensitivity=L2(1), noise_std=5).distribution

    def drawn() -> list[int]:
        return [int(v) for v in sparse_noise.passing_noise(law, 200, 7, SeededSource(seed=3))]

    floats = drawn()
    assert min(floats) >= 7
    monkeypatch.setattr(sparse_noise, "MARGIN", 2.0)
    assert drawn() == floats


def test_a_coin_that_floats_cannot_decide_is_decided_by_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    """At distance 0 the chance is 1, and the largest word is a uniform number of nearly 1: too near for floats."""

    class Largest(SeededSource):
        def words(self, count: int) -> Any:
            return np.full(count, (1 << 64) - 1, dtype=np.uint64)

    asked: list[int] = []
    monkeypatch.setattr(sparse_noise, "_exactly", lambda x, *_: not asked.append(x))  # type: ignore[func-returns-value]
    assert sparse_noise._keep(np.array([0, 9]), Fraction(25), Largest(seed=1)).tolist() == [True, False]
    assert asked == [0]


# --- noise of a seed is told --------------------------------------------------------------------------------


RELEASED: dict[str, Callable[[], Any]] = {
    "Laplace": lambda: LAPLACE.release([1, 2], source=seeded()),
    "Geometric": lambda: Geometric(epsilon=1).release(3, source=seeded()),
    "TruncatedGeometric": lambda: TruncatedGeometric(epsilon=1, low=0, high=9).release(3, source=seeded()),
    "Staircase": lambda: Staircase(epsilon=1, sensitivity=L1(2)).release(3, source=seeded()),
    "Gaussian": lambda: Gaussian(sensitivity=L2(1), noise_std=2).release(3, source=seeded()),
    "RoundedGaussian": lambda: RoundedGaussian(sensitivity=L2(1), noise_std=2, dimension=1).release(
        [3], source=seeded()
    ),
    "Gamma": lambda: Gamma(sensitivity=L2(1), noise_scale=2, dimension=2).release([3, 4], source=seeded()),
    "KNorm": lambda: KNorm(sensitivity=Gauge(1, LinfBall(coordinates=1)), noise_scale=2).release([3], source=seeded()),
    "PolytopeNorm": lambda: PolytopeNorm(points=((1,),), noise_scale=2).release([3], source=seeded()),
    "RangeNorm": lambda: RangeNorm(dimension=2, noise_scale=2).release([3, 4], source=seeded()),
    "IntervalExponential": lambda: IntervalExponential(sensitivity=L1(1), noise_scale=2, low=0, high=9).release(
        3, source=seeded()
    ),
    "Exponential": lambda: Exponential(epsilon=1, sensitivity=Score(1)).choose([1, 2], source=seeded()),
    "PermuteAndFlip": lambda: PermuteAndFlip(epsilon=1, sensitivity=Score(1)).choose([1, 2], source=seeded()),
    "Selection": lambda: Selection(epsilon=1, sensitivity=Score(1), candidates=["a", "b"]).choose(
        {"a": 1, "b": 2}, source=seeded()
    ),
    "RandomizedResponse": lambda: RandomizedResponse(epsilon=1).release([0, 1], source=seeded()),
    "labels": lambda: RandomizedResponse(epsilon=1, labels=["a", "b"]).release(["a"], source=seeded()),
    "HadamardResponse": lambda: HadamardResponse(epsilon=1, categories=3).release([0, 1], source=seeded()),
    "SubsetSelection": lambda: SubsetSelection(epsilon=1, categories=5).release([0, 1], source=seeded()),
    "OptimalSelection": lambda: OptimalSelection(epsilon=1, delta=1e-3).select([1, 9], source=seeded()),
    "counts of it": lambda: OptimalSelection(epsilon=1, delta=1e-3).release_counts([1, 9], source=seeded()),
    "GaussianSelection": lambda: GaussianSelection(noise_std=2, threshold=9).select([1, 9], source=seeded()),
    "MedianByTest, declined": lambda: MedianByTest(
        proposed=L1(1), test_epsilon=1, release_epsilon=1, delta=1e-9
    ).release([1, 9, 99], source=seeded()),
    "MedianByTest, released": lambda: MedianByTest(
        proposed=L1(1), test_epsilon=1, release_epsilon=1, delta=1e-3
    ).release([5] * 99, source=seeded()),
    "InterquartileRangeByTest": lambda: InterquartileRangeByTest(
        proposed=L1(1), test_epsilon=1, release_epsilon=1, delta=1e-3
    ).release([5] * 99, source=seeded()),
    "SmoothLaplace": lambda: SmoothLaplace.for_target(epsilon=1, delta=1e-6).release(
        3, SmoothBound(value=1, beta=0), source=seeded()
    ),
    "SmoothStudent": lambda: SmoothStudent.for_target(epsilon=1, degrees=3).release(
        3, SmoothBound(value=1, beta=0), source=seeded()
    ),
    "SparseHistogram": lambda: SparseHistogram(noise=LAPLACE, domain=99, threshold=3).release(
        [1, 2], [9, 9], source=seeded()
    ),
    "above": lambda: SparseHistogram(noise=LAPLACE, domain=99, threshold=3)
    .release([1, 2], [9, 9], source=seeded()).above(4),
    "StableHistogram": lambda: StableHistogram(noise=LAPLACE, threshold=3).release([9, 9], source=seeded()),
    "CumulativeTree": lambda: CumulativeTree(bins=4, l1=1, epsilon=1).release([1, 2, 3, 4], source=seeded()),
    "CumulativeGaussian": lambda: CumulativeGaussian(bins=4, l2_squared=1, noise_std=9, bits=12).release(
        [1, 2, 3, 4], source=seeded()
    ),
    "QuantileSelection": lambda: quantile_selection.QuantileSelection(
        bins=2, share=Fraction(1, 2), rank_sensitivity=1, epsilon=1
    ).release([1, 2], edges=[0, 1, 2], source=seeded()),
    "RangeTree": lambda: RangeTree.plan(cells=4, epsilon=1).release([1, 2, 3, 4], source=seeded()),
    "RangeAnswers": lambda: RangeAnswers(noise=LAPLACE, ranges=np.array([[0, 1]]), cells=2).release(
        [1, 2], source=seeded()
    ),
    "Candidate": lambda: choose(Workload(matrix=np.eye(2, dtype=np.int64)), epsilon=1)[0].release(
        [1, 2], source=seeded()
    ),
    "FittedTables": lambda: FittedTables.for_target(
        epsilon=1, l1=2, agreement=Agreement(places=PLACES, sizes=(2, 1))
    ).release([[1, 2], [3]], source=seeded()),
    "ShapedTables": lambda: ShapedTables(sizes=(2,), noise_scale=1).release([[1, 2]], source=seeded()),
    "ShapedTables, complete": lambda: ShapedTables(sizes=(2, 2), noise_scale=1, complete=True).release(
        [[1, 2], [2, 1]], source=seeded()
    ),
    "CellSums": lambda: CellSums(noise=LAPLACE, sums=(np.array([0, 0]),)).release([1, 2], source=seeded()),
    "HullTables": lambda: HullTables.for_target(
        epsilon=Fraction(1), image=Image(patterns=((1, 0), (1, 1)), sizes=(2,))
    ).release([[1, 2]], source=seeded()),
}  # fmt: skip


@pytest.mark.parametrize("name", RELEASED)
def test_noise_of_a_seed_is_never_publishable(name: str) -> None:
    assert RELEASED[name]().publishable is False


def test_a_released_value_inside_another_is_not_publishable_either() -> None:
    told = RELEASED["MedianByTest, released"]()
    assert told.passed
    assert told.released.publishable is False


# --- numbers that do not fit ------------------------------------------------------------------------------------


HUGE = (1 << 62) + 12345


def test_ranges_of_huge_counts_do_not_wrap_around() -> None:
    made = RangeAnswers(noise=LAPLACE, ranges=np.array([[0, 3], [1, 1]]), cells=4)
    whole, one = made.release([HUGE] * 4, source=seeded()).values[0]
    assert abs(int(whole) - 4 * HUGE) < 1000
    assert abs(int(one) - HUGE) < 1000


def test_sums_of_huge_cells_do_not_wrap_around() -> None:
    made = CellSums(noise=LAPLACE, sums=(np.array([0, 0, 0, 1]),))
    for sign in (1, -1):
        total, one = made.release([sign * HUGE] * 4, source=seeded()).values[0]
        assert abs(int(total) - 3 * sign * HUGE) < 1000
        assert abs(int(one) - sign * HUGE) < 1000


@pytest.mark.parametrize("sign", [1, -1])
def test_trees_of_huge_counts_do_not_wrap_around(sign: int) -> None:
    fitted = RangeTree.plan(cells=4, epsilon=1).release([sign * HUGE] * 4, source=seeded())
    assert fitted.range(0, 3) == pytest.approx(4 * sign * HUGE, rel=1e-9)
    ranks = CumulativeTree(bins=4, l1=1, epsilon=1).release([sign * HUGE] * 4, source=seeded())
    assert ranks.below[-1] == pytest.approx(4 * sign * HUGE, rel=1e-9)
    assert float(ranks.total) == pytest.approx(4 * sign * HUGE, rel=1e-9)


def test_exact_sums_of_ranks_with_small_digits() -> None:
    """R h by digits: counts beyond one digit, and negative ones, give what Python's integers give."""
    from tacit.mechanisms import cumulative as ranks

    plan = ranks._strategy(6, 12)
    want = [int(c) for c in plan.coefficients]
    for counts in (
        [1, 2, 3, 4, 5, 6],
        [1 << 50, 3, 0, (1 << 61) - 1, 5, 7],
        [-(1 << 55), 3, 0, -1, 5, 1 << 40],
    ):
        got = ranks._product(plan, np.array(counts), 6, 12)
        exact = [sum(want[t - i] * counts[i] for i in range(t + 1)) for t in range(6)]
        assert [int(v) for v in got] == exact
