"""The lesson on learners: the theorem's sample size is enough, and the exact failure agrees with draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import Exponential, Score
from tacit.noise.source import SeededSource
from tacit.reproduce import learners


@pytest.mark.parametrize("maker", learners.CLASSES)
@pytest.mark.parametrize("epsilon", learners.EPSILONS)
def test_the_stated_sample_is_enough(maker: Any, epsilon: float) -> None:
    """private-learners: failures at the stated n are below beta, and at a fiftieth of it above."""
    which = maker(5)
    n = learners.enough(len(which.answers), epsilon=epsilon)
    assert learners.failure(which, n, epsilon, samples=40) <= learners.BETA
    assert learners.failure(which, max(1, n // 50), epsilon, samples=40) > learners.BETA


def test_classes_are_what_they_are_called() -> None:
    parity = learners.parities(3)
    assert parity.answers[5].tolist() == [bool(bin(5 & x).count("1") % 2) for x in range(8)]
    wrong = np.delete(parity.true_errors, parity.target)
    assert wrong == pytest.approx(0.5)
    assert learners.thresholds(3).answers[3].tolist() == [x >= 3 for x in range(8)]
    assert learners.points(3).answers.sum(axis=1).tolist() == [1] * 8 + [0]
    assert learners.enough(256, epsilon=1.0) == 684
    assert learners.enough(256, epsilon=None) == 79


def test_the_chance_of_failure_is_that_of_draws() -> None:
    which, epsilon, n = learners.thresholds(4), 0.5, 60
    wrong = (which.answers != which.answers[which.target]).astype(int)
    mechanism, source, bad = Exponential(epsilon=epsilon, sensitivity=Score(1)), SeededSource(seed=2), 0
    drawn = learners.sampled(which, n, 300, 1)
    for counts in drawn:
        index = mechanism.choose((-(wrong @ counts)).tolist(), source=source).index
        bad += bool(which.true_errors[index] > learners.ALPHA)
    expected = learners.failure(which, n, epsilon, samples=300)
    assert bad / 300 == pytest.approx(expected, abs=0.12)
