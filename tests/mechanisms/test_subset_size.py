"""The size of subset selection for a declared share: variances by formula, by enumeration, and against its rivals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import SubsetSelection, local_mechanism


def law(truth: int, k: int, d: int, grown: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The definition: every set that holds the truth has e^epsilon times the probability of every other one."""
    sets = list(itertools.combinations(range(k), d))
    weights = [grown if truth in s else Fraction(1) for s in sets]
    return {s: w / sum(weights) for s, w in zip(sets, weights, strict=True)}


def enumerated_variance(truths: tuple[int, ...], category: int, k: int, d: int, grown: Fraction) -> Fraction:
    """Var of (X - n q) / (p - q) over all answers of all people, in fractions."""
    inside = sum(p for s, p in law(category, k, d, grown).items() if category in s)
    outside = sum(p for s, p in law((category + 1) % k, k, d, grown).items() if category in s)
    laws = [law(t, k, d, grown) for t in truths]
    first = second = Fraction(0)
    for answers in itertools.product(*(one.items() for one in laws)):
        chance = math.prod((p for _, p in answers), start=Fraction(1))
        named = sum(category in s for s, _ in answers)
        estimate = (named - len(truths) * outside) / (inside - outside)
        first, second = first + chance * estimate, second + chance * estimate**2
    assert first == truths.count(category), "the estimate is unbiased"
    return second - first**2


def formula(k: int, d: int, epsilon: float, share: float) -> float:
    """n times less than the variance: the closed form of docs/theory/subset-selection.md, in plain floats."""
    t = math.exp(-epsilon)
    others = (d - 1 + (k - d) * t) * (d + (k - 1 - d) * t)
    return (share * t * (k - 1) ** 2 + (1 - share) * others) / (d * (k - d) * (1 - t) ** 2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_variance_by_enumeration_and_by_formula(d: int) -> None:
    """Theorem `subset-selection`: three people, four categories, e^epsilon = 3."""
    k, epsilon = 4, math.log(3)
    mechanism = SubsetSelection(epsilon=epsilon, categories=k, subset=d)
    for truths in ((1, 2, 3), (0, 2, 3), (0, 0, 1), (0, 0, 0)):
        members = truths.count(0)
        exact = float(enumerated_variance(truths, 0, k, d, Fraction(3)))
        assert mechanism.variance(people=3, count=members) == pytest.approx(exact, rel=1e-12)
        assert 3 * formula(k, d, epsilon, members / 3) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.5, 1])
@pytest.mark.parametrize(("k", "epsilon"), [(3, 1.0), (10, 0.2), (100, 4.0), (100, 1.0), (1000, 6.0)])
def test_the_chosen_size_is_the_best_for_its_share(k: int, epsilon: float, share: float) -> None:
    best = min(formula(k, d, epsilon, share) for d in range(1, k))
    chosen = SubsetSelection(epsilon=epsilon, categories=k, share=share)
    assert formula(k, chosen.size, epsilon, share) == pytest.approx(best, rel=1e-9)


def test_common_categories_ask_for_larger_sets_than_the_default() -> None:
    """k = 100, epsilon = 4, a share of 10%: the numbers of docs/local.md."""
    default, declared = (SubsetSelection(epsilon=4, categories=100, share=s) for s in (0, 0.1))
    variances = [m.variance(people=1000, count=100) / 1000 for m in (default, declared)]
    unary = 4 * math.exp(4) / math.expm1(4) ** 2 + 0.1  # optimised unary encoding, Wang et al. 2017
    assert (default.size, declared.size) == (1, 4)
    assert variances == pytest.approx([0.236, 0.115], abs=5e-4)
    assert variances[1] < unary < variances[0]
    assert SubsetSelection(epsilon=4, categories=100, subset=2).variance(
        people=1000, count=100
    ) / 1000 == pytest.approx(0.145, abs=5e-4)


def test_a_declared_share_changes_the_size_alone() -> None:
    one = SubsetSelection(epsilon=4, categories=100, share=0.1)
    assert one == SubsetSelection(epsilon=4, categories=100, subset=4)
    assert one.bound.epsilon == 4
    assert SubsetSelection(epsilon=4, categories=100, subset=7, share=0.5).size == 7
    for wrong in (-0.1, 1.5, "half"):
        with pytest.raises(InvalidParameter):
            SubsetSelection(epsilon=1, categories=5, share=wrong)  # type: ignore[arg-type]


def test_the_choice_among_mechanisms_knows_the_share() -> None:
    rare, common = (local_mechanism(epsilon=4, categories=100, share=s) for s in (0, 0.1))
    assert rare.considered[0].variance == rare.mechanism.variance(people=1, count=0)
    assert isinstance(common.mechanism, SubsetSelection)
    assert common.mechanism.size == 4
    assert "a category with a share of 0.1 has variance 0.115 n" in common.reason
    assert common.considered[1].variance == min(c.variance for c in common.considered)
