"""Numbers at and beyond a limit of a mechanism: the last one inside and the first one outside."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.accounting import events
from tacit.mechanisms import (
    L1,
    L2,
    Gaussian,
    HadamardResponse,
    Laplace,
    RandomizedResponse,
    SparseHistogram,
    SubsetSelection,
    laplace,
    on_grid,
)
from tacit.mechanisms.gaussian import delta_parameter, greatest, least
from tacit.mechanisms.partition import key_distribution
from tacit.pld import DiscreteLaplacePair


@pytest.mark.parametrize("power", [52, 61, 62, 63, 64, 71, 72, 80])
@pytest.mark.parametrize("sign", [1, -1])
def test_values_on_a_grid_are_exact_at_every_size(power: int, sign: int) -> None:
    values = np.array([sign * 2.0**power, sign * 3.0, sign * 0.75])
    assert [int(v) for v in on_grid(values, spacing=1)] == [sign * 2**power, sign * 3, sign * 1]
    assert int(on_grid(np.array([sign * 2.0**power]), spacing=Fraction(1, 4))[0]) == sign * 2 ** (power + 2)


def test_a_calibration_returns_what_was_checked() -> None:
    """The greatest number whose square is at most 2, and the least whose square is at least 2: never beyond."""
    most = greatest(lambda m: m * m <= 2, Fraction(8))
    assert most * most <= 2
    assert float(most) == pytest.approx(math.sqrt(2), rel=2e-5)
    assert greatest(lambda m: True, Fraction(8)) == 8
    for guess in (None, 1.4142, 5.0, 1e-9):
        found = least(lambda m: m * m >= 2, Fraction(1, 8), guess)
        assert found * found >= 2
        assert float(found) == pytest.approx(math.sqrt(2), rel=2e-5)


@pytest.mark.parametrize("steps", [5, 40])
def test_noise_of_very_many_steps_is_charged_above_its_own_curve(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the continuous law stands for the discrete one: above it, being wider by 2 ln cosh(rate/2)."""
    made = Laplace(sensitivity=L1(steps), noise_scale=Fraction(steps, 2))
    exact = DiscreteLaplacePair(rate=2 / steps, sensitivity=steps)
    own = made.profile
    monkeypatch.setattr(laplace, "_DIRECT_TERMS", 4)
    wide, event = made.profile, made.event
    assert isinstance(event, events.LaplaceEvent)
    assert event.epsilon == pytest.approx(2 + 2 * math.log(math.cosh(1 / steps)))
    assert Fraction(event.epsilon) > Fraction(made.bound.epsilon)
    for epsilon in (0.0, 0.3, 1.0, 1.7):
        assert wide.delta_at(epsilon) >= own.delta_at(epsilon) * (1 - 1e-12)
        assert wide.delta_at(epsilon) <= own.delta_at(epsilon) + 0.2 / steps
    assert exact is not None
    monkeypatch.setattr(laplace, "_DIRECT_TERMS", steps)
    assert isinstance(made.event, events.DiscreteLaplaceEvent)


@pytest.mark.parametrize("value", [0.1, 1e-6, Fraction(1, 3), Fraction(1, 10**7)])
def test_a_delta_is_taken_no_larger_than_it_was_asked_for(value: Any) -> None:
    assert Fraction(delta_parameter(value)) <= Fraction(value)
    assert delta_parameter(value) == pytest.approx(float(value))


@pytest.mark.parametrize(
    "made",
    [
        RandomizedResponse(epsilon=1, categories=5),
        RandomizedResponse(epsilon=1),
        SubsetSelection(epsilon=1, categories=7),
        HadamardResponse(epsilon=1, categories=5),
    ],
)
def test_the_variance_without_a_count_is_the_worst_over_all_counts(made: Any) -> None:
    each = [made.variance(people=10, count=c) for c in range(11)]
    assert made.variance(people=10) == max(each)
    p, q, gap = made._chances()
    by_hand = [(c * p * (1 - p) + (10 - c) * q * (1 - q)) / gap**2 for c in range(11)]
    assert each == pytest.approx(by_hand)


def test_a_sparse_table_wants_noise_for_all_its_cells() -> None:
    noise = Gaussian(sensitivity=L2(1), noise_std=2, dimension=9)
    assert SparseHistogram(noise=noise, domain=9, threshold=5).cells == 9
    with pytest.raises(errors.InvalidParameter, match="10 noised cells"):
        SparseHistogram(noise=noise, domain=10, threshold=5)


def test_the_curve_of_a_vector_is_the_worst_over_its_moves() -> None:
    """Squared length 5 in two coordinates allows (2, 1), (2), (1, 1) and (1): none of them has a larger curve."""
    made = Gaussian(sensitivity=L2.root(5), noise_std=4, dimension=2)
    for square, dimension in ((1, 1), (2, 2), (4, 1)):
        part = Gaussian(sensitivity=L2.root(square), noise_std=4, dimension=dimension)
        assert made.delta(0.5) > part.delta(0.5) > 0


def test_two_coordinates_that_move_alike_count_twice() -> None:
    """(1, 1) under noise of 4: its curve is near that of one number that moves by sqrt(2), and far above that of 1."""
    both = Gaussian(sensitivity=L2.root(2), noise_std=4, dimension=2)
    one = Gaussian(sensitivity=L2(1), noise_std=4)
    assert both.patterns == ((1, 1),)
    assert both.delta(0.2) > 1.5 * one.delta(0.2)
    from tacit.guarantees import GaussianDP

    assert both.delta(0.2) == pytest.approx(GaussianDP(mu=math.sqrt(2) / 4).delta(0.2), rel=0.02)


def test_keys_are_named_as_at_sixteen_beyond_it() -> None:
    """A larger epsilon would let the rounding of one step be felt in the next: the smaller one is used."""
    delta = Fraction(1, 1000)
    assert key_distribution(Fraction(40), delta).reached == key_distribution(Fraction(16), delta).reached
    assert key_distribution(Fraction(15), delta).reached != key_distribution(Fraction(16), delta).reached
