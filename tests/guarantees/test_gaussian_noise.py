"""Gaussian noise for a target: exact against classic, and lecture 7's comparison for many releases."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from tacit.errors import InvalidParameter
from tacit.guarantees.laws.convert import classic_multiplier, for_releases, gaussian_multiplier


def test_published_multipliers() -> None:
    assert gaussian_multiplier(epsilon=1, delta=1e-6) == pytest.approx(4.2247, abs=5e-5)
    assert classic_multiplier(epsilon=1, delta=1e-6, constant=1.25) == pytest.approx(5.2988, abs=5e-5)
    assert classic_multiplier(epsilon=1, delta=1e-6) == pytest.approx(math.sqrt(2 * math.log(2e6)))


@given(st.floats(1e-3, 20), st.floats(1e-12, 0.3))
def test_the_budget_suffices_and_no_more_would(epsilon: float, delta: float) -> None:
    mu = tacit.gaussian_budget(epsilon=epsilon, delta=delta).mu
    assert tacit.GaussianDP(mu=mu).delta(epsilon) <= delta
    assert tacit.GaussianDP(mu=mu * (1 + 1e-9)).delta(epsilon) > delta
    if delta > 1e-9:
        assert second.gaussian_hockey_stick(mu, epsilon) == pytest.approx(delta, rel=1e-5)


@given(st.floats(0.05, 1), st.floats(1e-10, 1e-2))
def test_the_classic_constant_is_valid_up_to_one_and_wasteful(epsilon: float, delta: float) -> None:
    classic = classic_multiplier(epsilon=epsilon, delta=delta)
    assert tacit.GaussianDP(mu=1 / classic).delta(epsilon) <= delta
    assert classic >= 1.15 * gaussian_multiplier(epsilon=epsilon, delta=delta)


def test_the_classic_constant_is_refused_beyond_one_where_it_is_false() -> None:
    with pytest.raises(InvalidParameter, match="at most 1"):
        classic_multiplier(epsilon=10, delta=1e-5)
    printed = math.sqrt(2 * math.log(2 / 1e-5)) / 10
    assert second.gaussian_hockey_stick(1 / printed, 10) > 1e-5  # Groce Thm 3.3 has no condition on epsilon


def test_many_releases_three_ways() -> None:
    """Lecture 7: sigma from advanced composition against sigma from Rényi, and the exact one."""
    many = for_releases(epsilon=1, delta=1e-6, releases=100)
    assert many.advanced == pytest.approx(math.sqrt(1600 * math.log(2.5e8) * math.log(2e6)), rel=1e-9)
    assert many.renyi == pytest.approx(math.sqrt(100 * (2 * math.log(1e6) + 1)), rel=1e-9)
    assert many.exact == pytest.approx(42.247, abs=1e-3)
    assert many.advanced > 10 * many.renyi > 10 * many.exact
    # each is enough: the composed curve stays below the target
    for multiplier in (many.advanced, many.renyi, many.exact):
        composed = tacit.repeat(tacit.GaussianDP(mu=1 / multiplier), 100)
        assert composed.delta_at(1.0) <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (1, 0), (1, 1), (math.nan, 0.1), (1, math.nan)]
)
def test_bad_targets(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        gaussian_multiplier(epsilon=epsilon, delta=delta)
