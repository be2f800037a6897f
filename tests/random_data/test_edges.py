"""Targets between whole ranks, and what each mechanism of pairs says that it rests on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.guarantees.conditions import INDEPENDENT_DRAWS, LARGEST_CHANGE, MOST_CHANGE, SMOOTH_CHANGE
from tacit.random_data import ChangesByQuantile, ChangesBySmoothness
from tacit.random_data.histogram import divergence


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


def changes(**more: Any) -> ChangesByQuantile:
    given = {"rows": 6, "levels": (1, 4), "rank": 3, "slack": 2, "choice_epsilon": 4, "release_epsilon": 1}
    return ChangesByQuantile(**(given | more))


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: changes(levels=(4, 1)), "increasing"),
    (lambda: changes(levels=(0, 1)), "above 0"),
    (lambda: changes(levels=()), "increasing|list of"),
    (lambda: changes(rank=4), "at most the number of pairs"),
    (lambda: changes(choice_epsilon=Fraction(1, 100)), "smaller than 1"),
    (lambda: changes().scores([1, 2]), "be those of 3 pairs"),
    (lambda: changes().scores([1, 2, -1]), "at least 0"),
    (lambda: smooth(smooth_gamma=1), r"lie in \[0, 1\)"),
    (lambda: smooth(smooth_gamma=-0.1), r"lie in \[0, 1\)"),
]


def smooth(**more: Any) -> ChangesBySmoothness:
    return ChangesBySmoothness(**({"rows": 1000, "rank": 490, "epsilon": 1, "beta": 0.03} | more))


@pytest.mark.parametrize(("act", "match"), BAD)
def test_a_refusal_is_reached_and_told(act: Callable[[], Any], match: str) -> None:
    with pytest.raises(TacitError, match=match):
        act()


def test_the_larger_of_two_divergences_whichever_way_round() -> None:
    """By hand at epsilon = ln 2: (0.6, 0.4) against (0.2, 0.8) is 0.2 one way, 0 the other; then the same turned."""
    p, q = {"a": 0.6, "b": 0.4}, {"a": 0.2, "b": 0.8}
    for left, right in ((p, q), (q, p)):
        assert divergence(left, right, math.log(2)) == pytest.approx(0.2, abs=1e-12)
    # A value that one of them does not have counts whole.
    assert divergence({"a": 1.0}, {"b": 1.0}, 5.0) == pytest.approx(1.0, abs=1e-12)
    assert divergence({"a": 0.9, "c": 0.1}, {"a": 1.0}, 0.0) == pytest.approx(0.1, abs=1e-12)
