"""Noise and claims of releases on random data where no two parts are equal: each part has to be its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.guarantees.conditions import INDEPENDENT_DRAWS, LEAST_ROWS, MOST_CHANGE, ORACLE_LAW, SMOOTH_CHANGE
from tacit.mechanisms import SmoothBound, SmoothLaplace
from tacit.noise import SeededSource
from tacit.random_data import (
    ChangesByQuantile,
    ChangesBySmoothness,
    ChosenBins,
    Overlap,
    OverlapCount,
    OverlapHistogram,
    PredictiveHistogram,
    RandomHistogram,
    RandomProportion,
    Referee,
    SampledSensitivity,
    conformal_interval,
    ordered_failure,
    pair_changes,
    sample_sensitivities,
    sampled_failure,
    worst_share,
)
from tacit.random_data import survey as referee

HALF = Fraction(1, 2)
UNEVEN = [Fraction(v) for v in (0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121)]
"""Twelve rows whose six disjoint pairs differ by 36, 48, 60, 72, 84 and 96."""


def smooth(**more: Any) -> ChangesBySmoothness:
    given = {"rows": 12, "rank": 5, "epsilon": 2, "beta": Fraction(1, 20), "spacing": Fraction(1, 4)}
    return ChangesBySmoothness(**(given | more))


def by_quantile(**more: Any) -> ChangesByQuantile:
    given = {
        "rows": 40, "levels": (1, 2, 4), "rank": 15, "slack": 5, "choice_epsilon": 3, "release_epsilon": Fraction(1, 4)
    }  # fmt: skip
    return ChangesByQuantile(**(given | more))


def bins(**more: Any) -> ChosenBins:
    given = {
        "rows": 900,
        "candidates": (2, 4),
        "choice_epsilon": 3,
        "release_epsilon": Fraction(1, 4),
        "gamma": 0.1,
    }
    return ChosenBins(**(given | more))


@pytest.mark.parametrize("draws", [2, 4, 6, 9, 10, 12, 13])
def test_gamma_is_told_no_smaller_than_it_is(draws: int) -> None:
    """rank/(draws + 1) is no float: the gamma that is told lies on or above it."""
    for rank in range(1, draws + 1):
        made = SampledSensitivity(rows=10, draws=draws, rank=rank, epsilon=1)
        told, exact = Fraction(made.guarantee.condition.gamma), 1 - Fraction(rank, draws + 1)  # type: ignore[union-attr]
        assert exact <= told <= exact + Fraction(1, 1 << 52)


INDEPENDENT: dict[str, Callable[[bool], Any]] = {
    "bins": lambda i: bins(independent=i),
    "smooth": lambda i: smooth(independent=i),
    "quantile": lambda i: by_quantile(independent=i),
    "histogram": lambda i: RandomHistogram(rows=9, cells=2, epsilon=1, gamma=0.1, independent=i),
    "proportion": lambda i: RandomProportion(rows=9, epsilon=1, gamma=0.1, independent=i),
    "predictive": lambda i: PredictiveHistogram(rows=90, cells=2, epsilon=1, least=3, independent=i),
    "sampled": lambda i: SampledSensitivity(rows=9, draws=3, rank=3, epsilon=1, independent=i),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_dependent_rows_are_refused_by_every_form(name: str) -> None:
    assert "independent draws" in " ".join(INDEPENDENT[name](True).guarantee.declared)
    with pytest.raises(errors.NoLaw, match="dependent rows"):
        INDEPENDENT[name](False)


def test_both_steps_of_a_choice_are_paid() -> None:
    for made in (bins(), by_quantile()):
        assert made.guarantee.bound.epsilon == pytest.approx(3.25, rel=1e-12)  # type: ignore[attr-defined]
        assert made.guarantee.bound.epsilon >= 3.25  # type: ignore[attr-defined]
    assert bins().choice.epsilon == 3
    assert bins().histogram(4).epsilon == Fraction(1, 4)
    assert by_quantile().choice.epsilon == 3


def test_the_score_of_bins_by_hand() -> None:
    """|5 - 3| + |1 - 3| + |0 - 1/2| + |1 - 1/2| = 5 for two bins, 0 for four; a cell of one row has noise too."""
    finest = [5, 1, 0, 1]
    made = bins()
    assert made.score(finest, 2) == -(5 + 8 * 2)
    assert made.score(finest, 4) == -(0 + 8 * 3)


@pytest.mark.parametrize("rank", [2, 5, 6])
@pytest.mark.parametrize("all_pairs", [False, True])
def test_smooth_noise_is_sized_by_the_ranked_change_over_the_rows(
    rank: int, all_pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H_(rank)/n, and a step for the rounding of both values: no less, and not much more."""
    seen: list[SmoothBound] = []
    honest = SmoothLaplace.release

    def release(self: SmoothLaplace, value: Any, bound: SmoothBound, **more: Any) -> Any:
        seen.append(bound)
        return honest(self, value, bound, **more)

    monkeypatch.setattr(SmoothLaplace, "release", release)
    made = smooth(rank=rank, all_pairs=all_pairs)
    changes = pair_changes(UNEVEN, all_pairs=all_pairs)
    made.release(Fraction(7, 8), changes, source=SeededSource(seed=1))
    assert seen[0].exact == sorted(changes)[rank - 1] / 12 + Fraction(1, 4)
    assert seen[0].beta == Fraction(1, 20)
    assert made.noise.noise_multiplier == 1


def test_changes_of_more_pairs_than_there_are_are_refused() -> None:
    changes = pair_changes(UNEVEN)
    for wrong in ([*changes, Fraction(0)], changes[:-1]):
        with pytest.raises(errors.InvalidParameter, match="6 pairs"):
            smooth().release(0, wrong, source=SeededSource(seed=1))


@pytest.mark.parametrize("level", [1, 2, 4])
def test_noise_at_a_level_is_that_of_the_release(level: int) -> None:
    """(level/n and a step)/release_epsilon, in whole steps of the grid."""
    made = by_quantile(spacing=Fraction(1, 64))
    steps = math.floor((Fraction(level, 40) + Fraction(1, 64)) * 64)
    assert made.noise_at(level).noise_scale == Fraction(steps, 64) * 4
    assert made.noise_at(level).exact_epsilon == Fraction(1, 4)


def test_levels_that_stand_twice_are_refused() -> None:
    with pytest.raises(errors.InvalidParameter, match="increasing"):
        by_quantile(levels=(1, 2, 2))


def test_rows_of_a_plan_are_public_numbers() -> None:
    released = RandomHistogram(rows=900, cells=4, epsilon=1, gamma=0.1).release(
        np.array([600, 200, 99, 1]), source=SeededSource(seed=1)
    )
    assert released.proportions == pytest.approx(np.asarray(released.counts, dtype=float) / 900)
    assert not released.publishable


# --- refusals, and what is told -----------------------------------------------------------------------------------


def predictive(**more: Any) -> PredictiveHistogram:
    return PredictiveHistogram(**({"rows": 99, "cells": 3, "epsilon": 1, "least": 4} | more))


def around(**more: Any) -> OverlapHistogram:
    overlap = Overlap(rows=99, attacker_rows=99, least_overlap=97)
    return OverlapHistogram(**({"overlap": overlap, "cells": 3, "epsilon": 1, "gamma": 0.5} | more))


def sampled(**more: Any) -> SampledSensitivity:
    return SampledSensitivity(**({"rows": 9, "draws": 4, "rank": 3, "epsilon": 1} | more))


HISTOGRAM = RandomHistogram(rows=99, cells=3, epsilon=1, gamma=0.1)
REMOVED = RandomHistogram(rows=99, cells=3, epsilon=1, gamma=0.1, neighbours="add-or-remove")  # type: ignore[arg-type]
COUNT = RandomProportion(rows=99, epsilon=1, gamma=0.1)
FREE = RandomProportion(rows=99, epsilon=1, gamma=0.1, neighbours="add-or-remove")  # type: ignore[arg-type]
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a histogram of a cell too many": (lambda: HISTOGRAM.release([97, 1, 1, 0]), "have 3 cells"),
    "a histogram of a cell too few": (lambda: HISTOGRAM.release([98, 1]), "have 3 cells"),
    "a histogram below 0": (lambda: HISTOGRAM.release([100, -1, 0]), "at least 0"),
    "a histogram of a row too many": (lambda: HISTOGRAM.release([98, 1, 1]), "add up to"),
    "a histogram of a row too few": (lambda: HISTOGRAM.release([96, 1, 1]), "add up to"),
    "proportions of a protected number of rows": (lambda: REMOVED.release([9, 9, 9]).proportions, "replace-one"),
    "a proportion of a protected number of rows": (lambda: FREE.release(9).proportion, "replace-one"),
    "a count above the rows": (lambda: COUNT.release(100), "number of rows"),
    "predicted cells of a cell too many": (lambda: predictive().release([97, 1, 1, 0]), "3 counts"),
    "predicted cells below 0": (lambda: predictive().release([100, -1, 0]), "3 counts"),
    "predicted cells of a row too few": (lambda: predictive().release([96, 1, 1]), "3 counts"),
    "a threshold that fails for every row": (lambda: predictive(rows=11, cells=2, least=3), "below"),
    "a gamma that no threshold has": (
        lambda: PredictiveHistogram.for_gamma(rows=99, cells=3, epsilon=1, gamma=Fraction(59, 1000)), "at least 2",
    ),
    "an overlap's cells of a cell too many": (lambda: around().release([97, 1, 1, 0]), "3 counts"),
    "an overlap's cells below 0": (lambda: around().release([100, -1, 0]), "3 counts"),
    "an overlap's cells of a row too many": (lambda: around().release([98, 1, 1]), "3 counts"),
    "an overlap's count above the rows": (
        lambda: OverlapCount(overlap=around().overlap, epsilon=1, gamma=0.1).release(100), "number of rows",
    ),
    "a rank above the draws": (lambda: sampled(rank=5), "number of draws, 4"),
    "one sensitivity too many": (lambda: sampled().noise([1, 2, 3, 4, 5]), "be 4 sampled"),
    "one sensitivity too few": (lambda: sampled().noise([1, 2, 3]), "be 4 sampled"),
    "a sensitivity below 0": (lambda: sampled().noise([-1, 2, 3, 4]), "at least 0"),
    "bins that do not divide": (lambda: bins(candidates=(2, 3)), "divisors"),
    "no bins": (lambda: bins(candidates=()), "divisors"),
    "finest bins of another number": (lambda: bins().release([1, 2, 3]), "have 4 cells"),
    "changes below 0": (lambda: smooth().release(0, [-1, 1, 1, 1, 1, 1]), "at least 0"),
    "a share of failing smoothness of 1": (lambda: smooth(smooth_gamma=1), r"\[0, 1\)"),
    "a share of failing smoothness below 0": (lambda: smooth(smooth_gamma=-0.1), r"\[0, 1\)"),
    "a slack that promises nothing": (lambda: by_quantile(choice_epsilon=Fraction(1, 10)), "smaller than 1"),
    "probabilities below 0": (
        lambda: Referee(lambda a, b: False, rows=2, cells=2).iid([Fraction(3, 2), Fraction(-1, 2)]), "add up to 1",
    ),
    "probabilities above 1": (
        lambda: Referee(lambda a, b: False, rows=2, cells=2).iid([Fraction(1, 2), Fraction(2, 3)]), "add up to 1",
    ),
    "probabilities of other cells": (
        lambda: Referee(lambda a, b: False, rows=2, cells=2).iid([Fraction(1, 3)] * 3), "2 entries",
    ),
    "more samples than can be listed": (
        lambda: ordered_failure(lambda a, b: False, rows=20, law=[Fraction(1, 2)] * 2), "at most",
    ),
    "an interval that is cut away": (lambda: conformal_interval([1.0, 2.0, 3.0], cut=2), "half the number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_reached_and_told(name: str) -> None:
    act, match = REFUSED[name]
    with pytest.raises(errors.TacitError, match=match):
        act()


def test_more_tables_than_can_be_listed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six draws in three cells make 28 tables; six draws of two values make 64 samples."""
    monkeypatch.setattr(referee, "MOST_TABLES", 28)
    assert len(Referee(lambda a, b: False, rows=5, cells=3).shares) == 28
    monkeypatch.setattr(referee, "MOST_TABLES", 27)
    with pytest.raises(errors.InvalidParameter, match="at most 27 tables"):
        Referee(lambda a, b: False, rows=5, cells=3)
    monkeypatch.setattr(referee, "MOST_TABLES", 63)
    with pytest.raises(errors.InvalidParameter, match="at most 63 samples"):
        ordered_failure(lambda a, b: False, rows=5, law=[Fraction(1, 2)] * 2)
    monkeypatch.setattr(referee, "MOST_TABLES", 64)
    assert ordered_failure(lambda a, b: True, rows=5, law=[Fraction(1, 2)] * 2) == 1


def test_a_least_number_of_rows_is_declared_where_it_is_believed() -> None:
    for made in (REMOVED, FREE):
        assert LEAST_ROWS in made.guarantee.declared
    for made in (HISTOGRAM, COUNT):
        assert LEAST_ROWS not in made.guarantee.declared
    assert REMOVED.release([9, 9, 9], source=SeededSource(seed=1)).rows is None
    assert FREE.release(9, source=SeededSource(seed=1)).rows is None
    assert COUNT.release(9, source=SeededSource(seed=1)).rows == 99
    assert FREE.release(100, source=SeededSource(seed=1)).count is not None
    assert set(sampled().guarantee.declared) >= {ORACLE_LAW}
    assert set(smooth().guarantee.declared) == {INDEPENDENT_DRAWS, MOST_CHANGE, SMOOTH_CHANGE}


def test_noise_of_a_seed_is_never_publishable() -> None:
    source = SeededSource(seed=1)
    count = OverlapCount(overlap=around().overlap, epsilon=1, gamma=Fraction(1, 10))
    made = [
        HISTOGRAM.release([97, 1, 1], source=source),
        COUNT.release(50, source=source),
        COUNT.release(0, source=source),
        predictive().release([97, 1, 1], source=source),
        around().release([97, 1, 1], source=source),
        count.release(50, source=source),
        bins().release([600, 200, 99, 1], source=source).histogram,
        sampled().release(3, [1, 2, 3, 4], source=source),
        smooth().release(0, pair_changes(UNEVEN), source=source).released,
        by_quantile().release(0, [1] * 20, source=source).released,
    ]
    assert [m.publishable for m in made] == [False] * len(made)  # type: ignore[attr-defined]


def test_a_cell_is_exact_up_to_the_share_itself() -> None:
    """worst_share = gamma is allowed, and one row less than that many is not exact any more."""
    gamma = worst_share(rows=99, cells=3, below=2)
    at = RandomHistogram(rows=99, cells=3, epsilon=1, gamma=gamma, small_cells=True, sharp=True)
    assert at.exact_below == 2
    below = RandomHistogram(
        rows=99, cells=3, epsilon=1, gamma=gamma - Fraction(1, 10**9), small_cells=True, sharp=True
    )
    assert below.exact_below == 1


def test_a_threshold_at_the_very_edge() -> None:
    """2 gamma = 2 cells least/(rows + 1) must lie below 1: 1 itself is refused, a row more is accepted."""
    assert float(predictive(rows=12, cells=2, least=3).guarantee.condition.gamma) < 1  # type: ignore[union-attr]
    with pytest.raises(errors.InvalidParameter):
        predictive(rows=11, cells=2, least=3)


def test_limits_of_a_sampled_failure_hold_the_share_that_was_seen() -> None:
    """Clopper and Pearson, by their definition: at each end the data are as unlikely as half of the miss."""
    law = [Fraction(1, 2), Fraction(1, 2)]

    def limits(breaks: Callable[[Any, Any], bool], trials: int) -> tuple[float, float]:
        found = sampled_failure(
            breaks, rows=3, law=law, trials=trials, confidence=0.9, source=SeededSource(seed=2)
        )
        return found.low, found.high

    assert limits(lambda a, b: False, 20)[0] == 0
    assert limits(lambda a, b: False, 20)[1] == pytest.approx(1 - 0.05 ** (1 / 20))
    asked = []
    low, high = limits(lambda a, b: not asked.append(1), 40)  # type: ignore[func-returns-value]
    k = len(asked)
    assert 0 < k < 40

    def at_least(p: float) -> float:
        return sum(math.comb(40, j) * p**j * (1 - p) ** (40 - j) for j in range(k, 41))

    assert at_least(low) == pytest.approx(0.05)
    assert 1 - at_least(high) + math.comb(40, k) * high**k * (1 - high) ** (40 - k) == pytest.approx(0.05)


def test_every_failure_is_no_proof_of_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all trials fail the upper limit is 1: two different values in turn differ every time."""
    turns = itertools.cycle([np.array([0, 0, 1, 0]), np.array([1, 0, 0, 1])])
    monkeypatch.setattr(referee.FiniteDistribution, "sample", lambda self, *, size, source: next(turns))
    found = sampled_failure(lambda a, b: True, rows=3, law=[Fraction(1, 2)] * 2, trials=5, confidence=0.9)
    assert found.high == 1.0
    assert found.low == pytest.approx(0.05 ** (1 / 5))


def test_the_replaced_row_is_the_one_that_was_named() -> None:
    """A mechanism that tells the first row breaks when that is replaced, and not when another is."""
    law = [Fraction(1, 3), Fraction(2, 3)]

    def tells_first(one: Any, other: Any) -> bool:
        return bool(one[0] != other[0])

    assert ordered_failure(tells_first, rows=3, law=law, place=0) == Fraction(4, 9)
    assert ordered_failure(tells_first, rows=3, law=law, place=1) == 0
    assert ordered_failure(tells_first, rows=3, law=law) == 0


def test_a_sampled_sensitivity_is_no_smaller_than_the_move() -> None:
    """0.3 - 0.1 rounds: the float that is told lies above the exact difference of the two values."""
    rows = iter([np.array([0.3, 0.1]), np.array([5.0, 5.0])])
    first, second = sample_sensitivities(lambda x: float(x[0]), lambda n: next(rows), rows=1, draws=2)
    assert Fraction(first) > abs(Fraction(0.3) - Fraction(0.1))
    assert second == 0


def test_values_of_people_are_not_told() -> None:
    with pytest.raises(errors.InvalidParameter) as told:
        pair_changes([1, 2, float("inf"), 4])
    assert "inf" not in str(told.value)
    with pytest.raises(errors.InvalidParameter) as told:
        pair_changes([1, 2, "Maria", 4])  # type: ignore[list-item]
    assert "Maria" not in str(told.value)


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_a_sampled_noise_is_sized_by_its_rank(rank: int) -> None:
    """The rank-th smallest of four sampled sensitivities, in any order, and a step for the rounding."""
    noise = sampled(rank=rank, epsilon=HALF, spacing=Fraction(1, 4)).noise([8, 1, 16, 3])
    assert noise.noise_scale == 2 * ([1, 3, 8, 16][rank - 1] + Fraction(1, 4))
    assert noise.exact_epsilon == HALF


def test_an_attacker_exchanges_no_more_rows_than_both_have() -> None:
    assert Overlap(rows=9, attacker_rows=5, least_overlap=3).most_replaced == 2
    assert Overlap(rows=5, attacker_rows=9, least_overlap=3).most_replaced == 2
    assert Overlap(rows=9, attacker_rows=9, least_overlap=8).most_replaced == 1
    few = Overlap(rows=9, attacker_rows=5, least_overlap=3)
    assert OverlapCount(overlap=few, epsilon=HALF, gamma=0.1).noise.distribution.noise_scale == 4
    assert OverlapHistogram(overlap=few, cells=3, epsilon=HALF, gamma=0.1).noise.noise_scale == 8


def test_an_overlap_without_a_gamma_is_refused() -> None:
    for gamma in (0, 1, 1.5):
        with pytest.raises(errors.InvalidParameter, match="strictly between 0 and 1"):
            around(gamma=gamma)
        with pytest.raises(errors.InvalidParameter, match="strictly between 0 and 1"):
            OverlapCount(overlap=around().overlap, epsilon=1, gamma=gamma)


def test_a_target_may_take_the_largest_change_of_all() -> None:
    """At gamma = slack/m the rank is m itself: the last pair is allowed, and a smaller gamma is refused."""
    more: dict[str, Any] = {
        "rows": 40,
        "levels": (1, 2, 4),
        "delta": 0.5,
        "choice_epsilon": 3,
        "release_epsilon": 1,
    }
    slack = ChangesByQuantile.for_target(gamma=0.9, **more).slack
    assert ChangesByQuantile.for_target(gamma=Fraction(slack, 20), **more).rank == 20
    with pytest.raises(errors.InvalidParameter, match="pairs for this gamma"):
        ChangesByQuantile.for_target(gamma=Fraction(slack, 20) - Fraction(1, 1000), **more)


def test_a_law_of_unlike_denominators_is_exact() -> None:
    """Two rows of which one is told: it breaks where the last two draws differ, 1 - sum p^2."""
    law = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    for order in itertools.permutations(law):
        assert Referee(lambda a, b: True, rows=2, cells=3).iid(order) == 1 - sum(p * p for p in law)
