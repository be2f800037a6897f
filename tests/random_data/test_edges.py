"""Targets between whole ranks, and what each mechanism of pairs says that it rests on."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from tacit.guarantees.declarations import INDEPENDENT_DRAWS, LARGEST_CHANGE, MOST_CHANGE, SMOOTH_CHANGE
from tacit.random_data import ChangesByQuantile, ChangesBySmoothness


@pytest.mark.parametrize("all_pairs", [False, True])
def test_a_target_is_kept_wherever_it_lies_between_two_ranks(all_pairs: bool) -> None:
    """gamma is at most the one asked for, and the next smaller rank would break it: from both sides."""
    for gamma in (Fraction(1, 3), Fraction(3, 10), Fraction(5, 17), Fraction(1, 4)):
        m = ChangesByQuantile.for_target(
            rows=400, levels=(1, 4, 5), gamma=gamma, delta=0.01, choice_epsilon=4 if not all_pairs else 200,
            release_epsilon=1, all_pairs=all_pairs,
        )  # fmt: skip
        assert m._gamma <= gamma
        assert m._gamma + Fraction(1, 400 * 401 // 2 if all_pairs else 200) > gamma


def test_each_guarantee_says_everything_that_it_rests_on() -> None:
    by_quantile = ChangesByQuantile(
        rows=6, levels=(1, 4), rank=3, slack=2, choice_epsilon=4, release_epsilon=1
    )
    smooth = ChangesBySmoothness(rows=1000, rank=490, epsilon=1, beta=0.03, smooth_gamma=0.001)
    assert set(by_quantile.guarantee.declared) == {INDEPENDENT_DRAWS, LARGEST_CHANGE, MOST_CHANGE}
    assert set(smooth.guarantee.declared) == {INDEPENDENT_DRAWS, SMOOTH_CHANGE, MOST_CHANGE}
    said = [INDEPENDENT_DRAWS, LARGEST_CHANGE, MOST_CHANGE, SMOOTH_CHANGE]
    for a, b in itertools.combinations(said, 2):
        assert a not in b
        assert b not in a
