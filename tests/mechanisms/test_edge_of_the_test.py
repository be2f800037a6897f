"""Propose-test-release at its threshold: what exactly the test's noise must reach, and what delta pays for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.mechanisms import L1, InterquartileRangeByTest, MedianByTest
from tacit.noise.distributions import DiscreteLaplace


def tail(scale: float, t: int) -> float:
    """Pr[X > t] of discrete Laplace noise with t >= 0, by its definition."""
    q = math.exp(-1 / scale)
    return q ** (t + 1) / (1 + q)


@pytest.mark.parametrize("kind", [MedianByTest, InterquartileRangeByTest])
@pytest.mark.parametrize("delta", [0.2, 0.07, 1e-3, 1e-6])
@pytest.mark.parametrize("test_epsilon", [0.25, 1.5])
def test_the_threshold_is_the_least_that_delta_pays_for(
    kind: type[MedianByTest], delta: float, test_epsilon: float
) -> None:
    """Data at distance 0 pass if the noise alone exceeds the threshold: with probability at most delta."""
    found = kind(proposed=L1(1), test_epsilon=test_epsilon, release_epsilon=1.0, delta=delta).threshold
    assert tail(1 / test_epsilon, found) <= delta
    assert found == 0 or tail(1 / test_epsilon, found - 1) > delta


@pytest.mark.parametrize("delta", [0.2, 1e-3])
def test_noise_that_only_reaches_the_threshold_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, delta: float
) -> None:
    """Fragile data lie at distance 0: a replaced row moves their median by more than was proposed."""
    fragile = np.array([0, 0, 0, 0, 9, 9, 9])
    mechanism = MedianByTest(proposed=L1(1), test_epsilon=1.5, release_epsilon=1.0, delta=delta)
    least = next(t for t in range(99) if tail(1 / 1.5, t) <= delta)
    passed = {}
    for test in range(least - 2, least + 4):
        script = [test, 0]
        monkeypatch.setattr(DiscreteLaplace, "sample", lambda *_, s=script, **__: np.asarray(s.pop(0)))
        passed[test - least] = mechanism.release(fragile).passed
    assert passed == {-2: False, -1: False, 0: False, 1: True, 2: True, 3: True}
