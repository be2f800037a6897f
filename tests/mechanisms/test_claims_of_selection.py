"""Claims of selections against the definition: over neighbours of random scores, and reached."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from support.claims import ROUND, mass, tight
from tacit.mechanisms import (
    L1,
    Exponential,
    IntervalExponential,
    PermuteAndFlip,
    Score,
)


def neighbours_of(scores: np.ndarray, sensitivity: float, monotone: bool) -> list[np.ndarray]:
    moves = (0.0, 1.0) if monotone else (-1.0, 0.0, 1.0)
    return [scores + sensitivity * np.array(m) for m in itertools.product(moves, repeat=scores.size)]


def flips(scores: np.ndarray, rate: float) -> np.ndarray:
    """Permute-and-flip from its definition: all orders, all coins."""
    y = np.exp(rate * (scores - scores.max()))
    out = np.zeros(scores.size)
    for order in itertools.permutations(range(scores.size)):
        alive = 1.0
        for i in order:
            out[i] += alive * y[i]
            alive *= 1 - y[i]
    return out / math.factorial(scores.size)


def weights(scores: np.ndarray, rate: float) -> np.ndarray:
    w = np.exp(rate * (scores - scores.max()))
    return w / w.sum()


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("kind", "law"), [(Exponential, weights), (PermuteAndFlip, flips)])
def test_selection_over_all_neighbours_of_random_scores(kind, law, monotone) -> None:
    generator = np.random.default_rng(11)
    mechanism = kind(epsilon=1.5, sensitivity=Score(2.0, monotone=monotone))
    rate = 1.5 / (2.0 if monotone else 4.0)
    for trial in range(20):
        scores = generator.normal(size=4) * 3 if trial else np.zeros(4)
        own = law(scores, rate)
        assert np.allclose(mechanism.probabilities(scores.tolist()), own, atol=1e-13)
        for other in neighbours_of(scores, 2.0, monotone):
            losses = np.abs(np.log(own) - np.log(law(other, rate)))
            assert losses.max() <= mechanism.bound.epsilon * ROUND


def test_the_exponential_curve_is_above_every_pair_of_neighbours() -> None:
    generator = np.random.default_rng(4)
    mechanism = Exponential(epsilon=2, sensitivity=Score(1))
    points = (0.0, 0.5, 1.0, 1.8)
    curve = [mechanism.profile.delta(e) for e in points]
    assert all(c < mechanism.bound.delta(e) for c, e in zip(curve, points, strict=True))
    highest = np.zeros(len(points))
    for k in (2, 3, 5):
        for trial in range(12):
            scores = generator.normal(size=k) * 2 if trial else np.arange(k, dtype=float)
            own = weights(scores, 1.0)
            for other in neighbours_of(scores, 1.0, False):
                q = weights(other, 1.0)
                gaps = [
                    max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((own, q), (q, own)))
                    for e in points
                ]
                highest = np.maximum(highest, gaps)
    assert (highest <= np.array(curve) * (1 + 1e-9)).all()
    assert highest[0] > 0.9 * curve[0]


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_selection_reaches_its_claim(kind) -> None:
    """One candidate rises and all others fall: the loss of the one tends to epsilon as it becomes unlikely."""
    mechanism = kind(epsilon=1, sensitivity=Score(1))
    k, gap = 60, 6
    before = mechanism.probabilities([0] + [gap] * (k - 1))[0]
    after = mechanism.probabilities([1] + [gap - 1] * (k - 1))[0]
    assert tight(math.log(after / before), mechanism.bound.epsilon)


def test_permute_and_flip_breaks_the_range_that_the_exponential_mechanism_keeps() -> None:
    """ln(P/Q) of one neighbour spans at most epsilon for the exponential mechanism, and more for the other."""
    spans = {}
    for kind in (Exponential, PermuteAndFlip):
        mechanism = kind(epsilon=2, sensitivity=Score(1))
        before, after = mechanism.probabilities([0, 0, 0, 0]), mechanism.probabilities([1, -1, -1, -1])
        losses = np.log(after / before)
        spans[kind] = losses.max() - losses.min()
    assert spans[Exponential] <= 2 * ROUND
    assert spans[PermuteAndFlip] > 2.2


@pytest.mark.parametrize(("high", "steps"), [(4, 1), (30, 3), (200, 1), (3, 5)])
def test_interval_exponential(high, steps) -> None:
    mechanism = IntervalExponential.for_target(epsilon=1, sensitivity=L1(steps), low=0, high=high)
    assert 0.99999 <= float(mechanism.bound.epsilon) <= 1
    scale = float(mechanism.noise_scale)
    centres = np.arange(high + 1)
    matrix = np.exp(-np.abs(centres[:, None] - centres[None, :]) / scale)
    matrix /= matrix.sum(axis=1, keepdims=True)
    worst = 0.0
    for s in range(1, min(steps, high) + 1):
        worst = max(worst, float(np.abs(np.log(matrix[s:]) - np.log(matrix[:-s])).max()))
    assert tight(worst, mechanism.bound.epsilon)
    for c in (0, high // 2, high):
        law = mechanism.distribution(c)
        assert np.allclose([mass(law, k) for k in centres], matrix[c], atol=1e-13)
    assert scale < 2 * steps  # the general theorem would take 2 * steps
