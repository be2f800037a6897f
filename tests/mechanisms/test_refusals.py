"""Every refusal of the mechanisms is reached by an input of its own, and what lies just inside is not refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.mechanisms import (
    L1,
    L2,
    Contribution,
    CumulativeTree,
    Gamma,
    Gauge,
    Gaussian,
    GaussianSelection,
    Impossible,
    KeysOfAUnit,
    KNorm,
    KNormDifference,
    Laplace,
    Mahalanobis,
    OptimalSelection,
    PolytopeNorm,
    RandomizedResponse,
    RangeTree,
    RoundedGaussian,
    Score,
    Selection,
    SmoothBound,
    SparseHistogram,
    StableHistogram,
    Staircase,
    TwoQuestions,
    Workload,
    choose,
    on_grid,
    one_way_margins,
    smooth_bound,
)
from tacit.mechanisms import partition as keyed
from tacit.mechanisms import polytope as hulls
from tacit.mechanisms import strategies as workloads
from tacit.mechanisms.base import epsilon_parameter, event_of
from tacit.mechanisms.bodies import Box, Simplex, gauge, moments
from tacit.mechanisms.cumulative import CumulativeGaussian
from tacit.mechanisms.fitted_tables import Image
from tacit.mechanisms.gaussian import least
from tacit.mechanisms.linear import gaussian_wins_from
from tacit.mechanisms.propose_test_release import distance_to_instability
from tacit.mechanisms.quantiles import QuantileSelection, clamping_threshold, quantiles
from tacit.mechanisms.ranges import RangeAnswers
from tacit.mechanisms.smooth import SmoothStudent
from tacit.mechanisms.tables import CellSums
from tacit.noise import EuclideanBall, FormulaBody, LinfBall, Needs, SampledBody, SeededSource

LAPLACE = Laplace.for_target(epsilon=1, sensitivity=L1(1))
SAMPLED = SampledBody(
    coordinates=2, sampler=lambda n, s: np.zeros((n, 2)), absolute_error=1e-9, marginal_density_bound=1.0, reach=1.0
)  # fmt: skip
NEARLY = 1 - Fraction(1, 1 << 54) - Fraction(1, 1 << 90)
"""Its float is twice as far from 1."""
RANKS = CumulativeTree(bins=2, l1=1, epsilon=1).release([1, 2], source=SeededSource(seed=1))
PACKED = np.frombuffer((1 << 70).to_bytes(16, "big"), dtype=np.dtype((np.void, 16)))


def sparse(**more: Any) -> SparseHistogram:
    return SparseHistogram(**({"noise": LAPLACE, "domain": 8, "threshold": 3} | more))


def crowded() -> None:
    """Nine occupied cells where the declaration leaves eight, none of them listed as impossible."""
    possible = Impossible(test=lambda k: np.asarray(k) % 2 == 1, count=1 << 22)
    made = sparse(domain=1 << 23, impossible=possible, threshold=40)
    object.__setattr__(made, "impossible", Impossible(test=possible.test, count=(1 << 23) - 8))
    made.release(np.arange(0, 18, 2), np.ones(9, dtype=np.int64), source=SeededSource(seed=1))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an epsilon below 10^-100": (lambda: epsilon_parameter(Fraction(1, 10**101)), "between 10"),
    "an epsilon above 10^100": (lambda: epsilon_parameter(10**101), "between 10"),
    "an event for a curve": (
        lambda: event_of(LAPLACE.profile), "a curve is not an event",
    ),
    "a box without sides": (lambda: Box(low=[], high=[]), "1 entries"),
    "a box with a side missing": (lambda: Box(low=[-1, -1], high=[1]), "2 >= 1 entries"),
    "a simplex of one point": (lambda: Simplex(vertices=[[1]]), "d \\+ 1 points"),
    "a simplex of points of other dimensions": (lambda: Simplex(vertices=[[1, 0], [0, 1], [-1]]), "d \\+ 1 points"),
    "a gauge of points of another dimension": (
        lambda: gauge(EuclideanBall(coordinates=2), [[1.0]]), "body's dimension",
    ),
    "a gauge in no body": (lambda: gauge(3, [[1.0]]), "body's dimension"),  # type: ignore[arg-type]
    "moments of a formula": (
        lambda: moments(FormulaBody(coordinates=1, primitives=Needs(uniforms=1), sampler=lambda d: d.uniforms(1))),
        "not known in closed form",
    ),
    "a target that nothing meets": (lambda: least(lambda _: False, Fraction(1)), "no parameter in reach"),
    "a confidence that is 1 for each range": (
        lambda: clamping_threshold(LAPLACE, ranges=1 << 60, confidence=Fraction(10**40 - 1, 10**40)), "further below 1",
    ),
    "coefficients of too many bits": (
        lambda: CumulativeGaussian(bins=4, l2_squared=1, noise_std=1, bits=41), "at most 40",
    ),
    "a dimension that is not the covariance's": (
        lambda: Gamma(sensitivity=Mahalanobis(1, [[1, 0], [0, 1]]), noise_scale=1, dimension=3), "of the covariance",
    ),
    "the curve of very many moves": (
        lambda: Gaussian(sensitivity=L2(1000), noise_std=10, dimension=50).profile, "too many different integer moves",
    ),
    "a grid point of a text": (lambda: on_grid(np.array(["1"], dtype=object), spacing=1), "ints, floats or Fractions"),
    "a move that is no whole combination": (
        lambda: Image(patterns=((2, 1), (4, 2)), sizes=(2,)), "no whole combinations",
    ),
    "a hull of no points": (lambda: hulls.facets([]), "list of moves"),
    "a hull in seven dimensions": (lambda: hulls.facets([(1, 0, 0, 0, 0, 0, 0)]), "too many for its facets"),
    "a difference of sampled noises": (
        lambda: KNormDifference.for_target(epsilon=1, sensitivity=Contribution(1, SAMPLED)),  # type: ignore[arg-type]
        "sampler is exact",
    ),
    "the law of a sampled body": (lambda: KNorm(sensitivity=Gauge(1, SAMPLED), noise_scale=1).law, "black box"),
    "rounding in a sampled body": (lambda: Gauge(1, SAMPLED).rounded(spacing=1), "given by a sampler only"),
    "a choice for no workload": (lambda: choose(3, epsilon=1), "be a Workload"),  # type: ignore[arg-type]
    "more columns than are planned for": (lambda: one_way_margins(columns=(1 << 16) + 1, epsilon=1), "at most 65,536"),
    "Gaussian noise without a delta": (lambda: gaussian_wins_from(epsilon=1, delta=None), "needs one"),  # type: ignore[arg-type]
    "ratios under noise without a pivot": (
        lambda: Staircase(epsilon=1, sensitivity=L1(1)).pivot([]), "pivot is not known",
    ),
    "a million keys and one more": (
        lambda: OptimalSelection(epsilon=1, delta=1e-6, keys=(1 << 20) + 1), "at most 1,048,576",
    ),
    "points of no dimension": (lambda: PolytopeNorm(points=3, noise_scale=1), "points of one dimension"),  # type: ignore[arg-type]
    "points of two dimensions": (lambda: PolytopeNorm(points=((1,), (1, 2)), noise_scale=1), "different lengths"),
    "points of nothing": (lambda: PolytopeNorm(points=((),), noise_scale=1), "points of one dimension"),
    "a point that is no whole number": (lambda: PolytopeNorm(points=((1.5,),), noise_scale=1), "points"),  # type: ignore[arg-type]
    "one formula for a mixture": (lambda: PolytopeNorm(points=((1,),), noise_scale=1).law, "a mixture"),
    "a coordinate that a hull does not have": (
        lambda: PolytopeNorm(points=((1,),), noise_scale=1).marginal(1), "below the dimension",
    ),
    "a rank above the number of rows": (lambda: distance_to_instability([1, 2], rank=3, steps=1), "number of rows, 2"),
    "quantiles of no ranks": (lambda: quantiles([1], shares=[0.5], edges=[0, 1]), "cumulative counts"),  # type: ignore[arg-type]
    "a share of none": (
        lambda: QuantileSelection(bins=2, share=0, rank_sensitivity=1, epsilon=1), "strictly between 0 and 1",
    ),
    "a share of all": (
        lambda: QuantileSelection(bins=2, share=1, rank_sensitivity=1, epsilon=1), "strictly between 0 and 1",
    ),
    "a quantile of none": (lambda: quantiles(RANKS, shares=[0], edges=[0, 1, 2]), "strictly between 0 and 1"),
    "a quantile of all": (lambda: quantiles(RANKS, shares=[1], edges=[0, 1, 2]), "strictly between 0 and 1"),
    "a domain of more than 200 bits": (lambda: sparse(domain=(1 << 200) + 1), "200 bits"),
    "ranges under unknown noise": (
        lambda: RangeAnswers(noise=3, ranges=np.array([[0, 1]]), cells=2), "a RangeTree",  # type: ignore[arg-type]
    ),
    "a range beyond the bins": (
        lambda: RangeAnswers(noise=LAPLACE, ranges=np.array([[0, 2]]), cells=2), "pairs of bins",
    ),
    "ranges of too few bins": (
        lambda: RangeAnswers(noise=LAPLACE, ranges=np.array([[0, 1]]), cells=2).release([1, 2, 3]), "have 2 bins",
    ),
    "a tree with a level missing": (
        lambda: RangeTree(cells=4, branching=2, mechanisms=(LAPLACE, LAPLACE)), "one for each level",
    ),
    "a tree of other noise": (
        lambda: RangeTree(cells=1, branching=2, mechanisms=(3,)), "level by level",  # type: ignore[arg-type]
    ),
    "a tree of too many cells": (lambda: RangeTree.plan(cells=(1 << 24) + 1, epsilon=1), "cells"),
    "candidates that are no names": (
        lambda: Selection(epsilon=1, sensitivity=Score(1), candidates=["a", 2]), "be names",  # type: ignore[list-item]
    ),
    "a square above that of the value": (lambda: L2(1, Fraction(2)), "square of the value"),
    "a square below that of the value": (lambda: L2(2, Fraction(1)), "square of the value"),
    "a covariance of 65 rows": (lambda: Mahalanobis(1, np.eye(65).tolist()), "at most 64"),
    "a covariance close to singular": (
        lambda: Mahalanobis(1, [[1, NEARLY], [NEARLY, 1]]), "clearly positive definite",
    ),
    "a smooth bound that grows": (lambda: SmoothBound(value=1, beta=-1), "at least 0"),
    "a rank above the rows of a smooth bound": (
        lambda: smooth_bound([1, 2], beta=1, low=0, high=3, rank=3), "number of rows, 2",
    ),
    "the variance of Student's law of two degrees": (
        lambda: SmoothStudent(noise_multiplier=1, beta=1, degrees=2).law(SmoothBound(value=1, beta=0)).exact_variances,
        "infinite up to two degrees",
    ),
    "cells that are impossible by a word": (lambda: sparse(impossible="all"), "be Impossible"),
    "cells that a rule is told by a word": (
        lambda: SparseHistogram.with_rule(noise=LAPLACE, domain=8, impossible="all"), "be Impossible",  # type: ignore[arg-type]
    ),
    "more occupied cells than there are possible ones": (crowded, "possible cells"),
    "errors of more cells than there are": (lambda: sparse().expected_error(occupied=9), "at most 8"),
    "packed keys outside of the domain": (
        lambda: sparse(domain=(1 << 66), threshold=80).release(PACKED, [1]), "inside the domain",
    ),
    "a test that is no function": (lambda: Impossible(test=3, count=1), "function of keys"),  # type: ignore[arg-type]
    "a count that is not that of the list": (
        lambda: sparse(impossible=Impossible(keys=np.array([1, 2]), count=3)), "as listed",
    ),
    "a test that answers by numbers": (
        lambda: sparse(impossible=Impossible(test=lambda k: np.asarray(k) % 2, count=4)), "one boolean for each key",
    ),
    "a person with a million keys and one more": (lambda: KeysOfAUnit(keys=(1 << 20) + 1), "at most 1048576"),
    "keys of a unit by a number": (
        lambda: StableHistogram.for_target(epsilon=1, delta=1e-6, sensitivity=L1(1), unit=3),  # type: ignore[arg-type]
        "KeysOfAUnit",
    ),
    "cells of other tables": (
        lambda: CellSums(noise=LAPLACE, sums=(np.array([0, 1]),)).release([1, 2, 3]), "have 2 cells",
    ),
    "the covariance of 1,089 cells": (
        lambda: TwoQuestions(
            first=RandomizedResponse(epsilon=1, categories=33), second=RandomizedResponse(epsilon=1, categories=33)
        ).covariance([0], [0]), "at most 1,024",
    ),
    "margins of more columns than there are": (lambda: workloads.margin_matrices([2, 2], 3), "between 1 and 2"),
    "margins of too large a table": (lambda: workloads.margin_matrices([64] * 4, 2), "margin_errors"),
    "too many prefixes": (lambda: workloads.prefix_matrix((1 << 12) + 1), "CumulativeTree"),
    "queries with halves": (lambda: Workload(matrix=[[0.5, 1.0]]), "hold integers"),
    "a query with too small a number": (lambda: Workload(matrix=[[-(1 << 20) - 1, 1]]), "hold integers"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_what_lies_just_inside_is_accepted() -> None:
    assert epsilon_parameter(Fraction(1, 10**100)) == Fraction(1, 10**100)
    assert epsilon_parameter(10**100) == 10**100
    assert CumulativeGaussian(bins=4, l2_squared=1, noise_std=1, bits=40).bits == 40
    assert OptimalSelection(epsilon=1, delta=1e-6, keys=8).keys == 8
    assert KeysOfAUnit(keys=1 << 20).keys == 1 << 20
    assert L2(1, Fraction(1)).square == 1
    assert Mahalanobis(1, np.eye(64).tolist()).dimension == 64
    assert workloads.prefix_matrix(1 << 7).shape == (128, 128)
    assert Workload(matrix=[[-(1 << 20), 1.0]]).cells == 2
    assert Workload(matrix=[[-2.0, 1.0]]).matrix.dtype == np.int64
    assert Box(low=[-1, -1], high=[1, 2]).dimension == 2


def test_a_workload_has_so_many_entries_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "MOST_ENTRIES", 12)
    assert Workload(matrix=np.ones((3, 4), dtype=np.int64)).cells == 4
    with pytest.raises(errors.TooManyCells):
        Workload(matrix=np.ones((3, 5), dtype=np.int64))


def test_a_hull_has_so_many_facets_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A square has four; each limit is met by itself."""
    points = ((1, 1), (1, -1))
    assert len(hulls.facets(points)[0]) == 4
    hulls._proved.cache_clear()
    monkeypatch.setattr(hulls, "MOST_FACETS", 3)
    with pytest.raises(errors.NotCertified, match="4 facets"):
        hulls.facets(points)
    monkeypatch.setattr(hulls, "MOST_FACETS", 4)
    assert len(hulls.facets(points)[0]) == 4


SQUARE = [((1, 0), (0, 1)), ((0, 1), (-1, 0)), ((-1, 0), (0, -1)), ((0, -1), (1, 0))]
WRONG: dict[str, list[tuple[tuple[int, int], ...]]] = {
    "one side twice as far as the points": [((2, 0), (0, 2)), *SQUARE[1:]],
    "a side that cuts a point off": [((1, 0), (-1, 0)), *SQUARE[2:]],
    "a side that is flat": [((1, 0), (2, 0)), *SQUARE[1:]],
    "a side missing": SQUARE[1:],
    "a side twice": [*SQUARE, SQUARE[0]],
    "every side twice": [*SQUARE, *SQUARE],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_hull_is_not_proved(name: str) -> None:
    """Facets are found in floats: each kind of mistake must be found out by the proof in integers."""
    points = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    hulls._prove(SQUARE, points)
    with pytest.raises((errors.NotCertified, ZeroDivisionError)):
        hulls._prove(WRONG[name], points)


def test_a_hull_that_leaves_a_move_outside_is_not_proved() -> None:
    """All sides fit together, and one point lies beyond them: noise of this hull would not hide its move."""
    for outside in ((1, 1), (-3, 0), (0, 2)):
        with pytest.raises(errors.NotCertified):
            hulls._prove(SQUARE, [(1, 0), (0, 1), (-1, 0), (0, -1), outside])


def test_sides_that_wind_twice_around_are_not_proved() -> None:
    """A star of five corners: all ridges fit, each on the other side, and every ray meets two cones."""
    corners = [(5, 0), (1, 4), (-4, 3), (-4, -3), (1, -4)]
    star = [tuple(sorted((corners[i], corners[(i + 2) % 5]))) for i in range(5)]
    with pytest.raises(errors.NotCertified):
        hulls._prove(star, [(0, 0)])


def test_a_law_of_keys_that_rounds_up_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both hockey-stick sums are checked: a step too much at either end of the law is refused."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 100)
    law = keyed.key_distribution(epsilon, delta)
    grow, _ = keyed._factors(epsilon)
    reached = list(law.reached)
    keyed._check(reached, grow, delta)
    extra = 1 << 124
    with pytest.raises(errors.NotCertified, match="rounding exceeds"):
        keyed._check([reached[0] + extra, *reached[1:]], grow, delta)
    with pytest.raises(errors.NotCertified, match="rounding exceeds"):
        keyed._check([*reached[:-2], reached[-2] - extra, reached[-1]], grow, delta)
    keyed.key_distribution.cache_clear()
    monkeypatch.setattr(keyed, "MOST_STEPS", len(reached) - 1)
    with pytest.raises(errors.InvalidParameter, match="larger for each key"):
        keyed.key_distribution(epsilon, delta)
    monkeypatch.setattr(keyed, "MOST_STEPS", len(reached))
    assert keyed.key_distribution(epsilon, delta).reached == law.reached
    keyed.key_distribution.cache_clear()


def test_a_threshold_that_is_never_certified_is_refused() -> None:
    with pytest.raises(errors.NotCertified, match="not met near"):
        GaussianSelection(noise_std=1, threshold=5)._raised(lambda _: False)


def test_cube_noise_of_one_dimension_too_many_is_refused() -> None:
    noise = KNorm(sensitivity=Gauge(1, LinfBall(coordinates=2)), noise_scale=1)
    with pytest.raises(errors.InvalidParameter, match="be 2 numbers"):
        noise.release([1, 2, 3], source=SeededSource(seed=1))
    rounded = RoundedGaussian(sensitivity=L2(1), noise_std=1, dimension=2)
    with pytest.raises(errors.InvalidParameter, match="be 2 numbers"):
        rounded.release([1, 2, 3], source=SeededSource(seed=1))
