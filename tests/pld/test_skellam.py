"""The Skellam pair against sums of Bessel functions, and its composition against a convolution from the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ive

from tacit.accounting import account, events
from tacit.pld import SkellamPair


def laws(variance: float, shift: int, reach: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(-reach, reach + 1)
    return ive(np.abs(x), variance), ive(np.abs(x - shift), variance)


@pytest.mark.parametrize(("variance", "shift"), [(0.5, 1), (4.0, 1), (4.0, 3), (100.0, 2), (1e4, 30)])
def test_the_curve_by_its_own_sum(variance: float, shift: int) -> None:
    p, q = laws(variance, shift)
    pair = SkellamPair(noise_variance=variance, sensitivity=shift)
    for e in (-1.0, 0.0, 0.3, 2.0, 5.0):
        found = pair.hockey_stick(e)
        expected = float(np.maximum(p - math.exp(e) * q, 0).sum())
        assert found.low <= expected * (1 + 1e-9) + 1e-15
        assert found.high == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_a_longer_move_has_a_larger_curve() -> None:
    for e in (0.0, 0.5, 3.0):
        deltas = [SkellamPair(noise_variance=9.0, sensitivity=s).hockey_stick(e).high for s in (1, 2, 3, 5)]
        assert deltas == sorted(deltas)


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_renyi_by_its_own_sum(order: float) -> None:
    p, q = laws(40.0, 2, 75)
    expected = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
    assert SkellamPair(noise_variance=40.0, sensitivity=2).renyi(order) == pytest.approx(expected, rel=1e-9)


def test_composition_by_convolution() -> None:
    """Three coordinates moved by 1 each: the joint law over a cube, summed."""
    variance, times = 6.0, 3
    p, q = laws(variance, 1, 60)
    cube_p, cube_q = p, q
    for _ in range(times - 1):
        cube_p, cube_q = np.multiply.outer(cube_p, p).ravel(), np.multiply.outer(cube_q, q).ravel()
    event = events.RepeatedEvent(event=events.SkellamEvent(noise_variance=variance), times=times)
    for delta in (1e-2, 1e-4):
        found = account(event, delta=delta).epsilon
        low, high = 0.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            worse = float(np.maximum(cube_p - math.exp(middle) * cube_q, 0).sum()) > delta
            low, high = (middle, high) if worse else (low, middle)
        assert found.low - 1e-3 <= high <= found.high + 1e-12


def test_the_event_is_kept_and_read() -> None:
    from tacit.accounting.codec import dumps, loads

    event = events.SkellamEvent(noise_variance=12.5, sensitivity=3)
    assert loads(dumps(event)) == event
    assert event.pure() is None
    assert event.concentrated() is None
