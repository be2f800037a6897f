"""What a guarantee means: tests, guesses and beliefs, against the worst pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.promises import promise
from support.strategies import any_closed, deltas, epsilons
from tacit.guarantees import Bound
from tacit.guarantees.meaning import (
    deterministic_is_constant,
    incentive,
    posterior_shift,
    power,
    semantic_privacy,
    semantic_privacy_printed,
)


@given(epsilons.filter(lambda e: e < 15), deltas, st.floats(0, 1))
def test_power_is_that_of_the_best_test_against_the_worst_pair(
    epsilon: float, delta: float, size: float
) -> None:
    p, q = second.worst_approximate(epsilon, delta)
    exact = second.best_power(p, q, size)
    value = power(tacit.Approximate(epsilon=epsilon, delta=delta), size)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(st.floats(0.01, 5), st.floats(1e-6, 1 - 1e-6))
def test_power_against_gaussian_noise(mu: float, size: float) -> None:
    from scipy.special import ndtr, ndtri

    value = power(tacit.GaussianDP(mu=mu), size)
    exact = float(ndtr(ndtri(size) + mu))
    assert exact * (1 - 1e-9) <= value <= exact * (1 + 1e-9)
    rough = power(tacit.Concentrated(rho=mu**2 / 2 * (1 + 1e-12)), size)
    assert rough >= value * (1 - 1e-9)


@given(any_closed, st.floats(0, 1))
def test_power_is_at_least_the_size_and_the_guess_at_least_a_coin(bound: Bound, size: float) -> None:
    assert size * (1 - 1e-12) <= power(bound, size) <= 1
    assert 0.5 <= promise(bound).best_guess() <= 1
    assert promise(bound).best_guess(0.9) >= 0.9


@given(epsilons.filter(lambda e: e < 15), st.floats(0.01, 0.99))
def test_best_guess_against_the_worst_pair(epsilon: float, prior: float) -> None:
    p, q = second.randomized_response(epsilon)
    exact = sum(max(prior * a, (1 - prior) * b) for a, b in zip(p, q, strict=True))
    value = promise(tacit.Pure(epsilon=epsilon)).best_guess(prior)
    assert value == pytest.approx(exact, rel=1e-9)


def test_beliefs_move_no_further_than_stated() -> None:
    """Random priors over four data sets, random epsilon-private mechanisms; and the bound is reached."""
    generator = np.random.default_rng(20260101)
    for epsilon in (0.2, 1.0, 3.0):
        limit = posterior_shift(tacit.Pure(epsilon=epsilon))
        assert limit == pytest.approx(math.tanh(epsilon / 2))
        reached = 0.0
        for _ in range(2000):
            prior = generator.dirichlet(np.full(4, 0.3))
            with_unit = np.exp(
                generator.choice([-epsilon, epsilon], 4)
            )  # likelihood ratios against 'without'
            one = prior * with_unit / (prior @ with_unit)
            reached = max(reached, 0.5 * float(np.abs(one - prior).sum()))
        assert reached <= limit + 1e-12
        # the extreme: half the (posterior-weighted) mass up, half down
        share = 1 / (1 + math.exp(epsilon))
        extreme = np.array([share, 1 - share])
        moved = extreme * np.exp([epsilon, -epsilon])
        assert 0.5 * np.abs(moved / moved.sum() - extreme).sum() == pytest.approx(limit)


def test_beliefs_under_delta() -> None:
    value = semantic_privacy(tacit.Approximate(epsilon=1, delta=1e-6))
    assert value.shift == pytest.approx(math.tanh(0.5) + 2e-3)
    assert value.failure == pytest.approx((1 + math.e) * 1e-3 + 1e-6)
    assert semantic_privacy(tacit.Approximate(epsilon=1, delta=0)).failure == 0
    # the printed law says nothing from epsilon = .24 on
    assert semantic_privacy_printed(tacit.Approximate(epsilon=0.24, delta=0)) > 1
    with pytest.raises(tacit.NoLaw, match="semantic_privacy"):
        posterior_shift(tacit.Approximate(epsilon=1, delta=1e-6))
    # random joint laws: no violation beyond the stated probability
    generator = np.random.default_rng(7)
    epsilon, delta, slack = 0.5, 0.01, 0.1
    stated = semantic_privacy(tacit.Approximate(epsilon=epsilon, delta=delta), slack=slack)
    for _ in range(500):
        prior = generator.dirichlet(np.ones(3))
        base = generator.dirichlet(np.ones(4), size=3)
        tilt = np.exp(generator.uniform(-epsilon, epsilon, (3, 4)) / 2)
        near = base * tilt / (base * tilt).sum(axis=1, keepdims=True)
        bad = generator.dirichlet(np.full(4, 0.2), size=3)
        with_unit = (1 - delta) * near + delta * bad
        without = (1 - delta) * base + delta * generator.dirichlet(np.full(4, 0.2), size=3)
        joint, other = prior[:, None] * with_unit, prior[:, None] * without
        distance = 0.5 * np.abs(joint / joint.sum(0) - other / other.sum(0)).sum(0)
        assert joint.sum(0)[distance > stated.shift].sum() <= stated.failure


def test_incentive() -> None:
    value = incentive(tacit.Approximate(epsilon=1, delta=1e-6), delta=1e-6)
    assert value.factor == pytest.approx(math.e)
    assert value.addend == 1e-6
    with pytest.raises(tacit.NoLaw):
        incentive(tacit.GaussianDP(mu=1))
    # any harm, any outcome: checked on the worst pair
    p, q = second.worst_approximate(1.0, 1e-6)
    harm = np.random.default_rng(3).uniform(0, 1, (200, 4))
    assert np.all(harm @ p <= value.factor * (harm @ q) + value.addend * harm.max(axis=1) + 1e-12)


def test_deterministic_and_private_is_constant() -> None:
    assert deterministic_is_constant(tacit.Approximate(epsilon=10, delta=0.999))
    assert deterministic_is_constant(tacit.GaussianDP(mu=5))
    # two different constant outputs have H_e = 1 at every epsilon, which no bound with delta < 1 allows
    assert second.both([1.0, 0.0], [0.0, 1.0], 10.0) == 1.0
