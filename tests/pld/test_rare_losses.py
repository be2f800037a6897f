"""Rarely sampled noise: plans whose rare large losses hide the answer from the saddle point, against plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.accounting import account
from tacit.accounting import events as e
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.engine import CompositionEngine
from tacit.pld.pairs.base import stretches
from tacit.pld.pairs.gaussian import GaussianPair
from tacit.pld.pairs.sampled import PoissonSampledPair
from tacit.pld.transforms import UNIT, LogMoments, _fine_transforms, _transforms, fine_rounding

Rows = list[tuple[float, float]]
"""Noise multipliers and sampling rates."""


def plan(rows: Rows) -> list[e.Event]:
    return [
        e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=m), sampling_rate=q) for m, q in rows
    ]


def pairs(rows: Rows) -> list[tuple[PoissonSampledPair, int]]:
    return [(PoissonSampledPair(pair=GaussianPair(mu=1 / m), rate=q), 1) for m, q in rows]


def together(size: int) -> Rows:
    """Much noise is sampled more often: the bulk is narrow, and few losses are large."""
    return [(1 + 9 * k / (size - 1), 0.001 + 0.009 * k / (size - 1)) for k in range(size)]


def apart(size: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    return list(zip(rng.uniform(1, 10, size).tolist(), rng.uniform(0.001, 0.01, size).tolist(), strict=True))


class RoundedUp:
    """The composition, a record removed, of losses that are rounded up to multiples of a step.

    P = (1 - q) N(0, s^2) + q N(1, s^2) has the loss ln(1 - q + q e^((2x - 1)/(2 s^2))) against N(0, s^2). Rounded down,
    each loss is a step smaller: the same law, moved.
    """

    def __init__(self, rows: Rows, step: float) -> None:
        top = 2.5
        count = 1 << math.ceil(math.log2(2 * top / step))
        edges = np.arange(-count // 16, int(top / step) + 1)
        total = np.ones(count // 2 + 1, dtype=np.complex128)
        for s, q in rows:
            with np.errstate(divide="ignore"):
                x = s * s * np.log(np.maximum(np.expm1(edges * step) / q + 1, 0.0)) + 0.5
            below = (1 - q) * ndtr(x / s) + q * ndtr((x - 1) / s)
            above = (1 - q) * ndtr(-x / s) + q * ndtr((1 - x) / s)
            law = np.zeros(count)
            law[edges[1:]] = np.where(x[1:] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
            total *= np.fft.rfft(law)
        self.law = np.fft.irfft(total, count)
        self.losses = np.fft.fftfreq(count, 1 / count) * step

    def delta(self, epsilon: float) -> float:
        return float(np.sum(self.law * -np.expm1(np.minimum(epsilon - self.losses, 0.0))))


PLANS = {
    "ten, spread": (apart(10, 2), 1e-10, 1e-5),
    "fifty, narrow": (together(50), 1e-6, 2e-5),
    "fifty": (apart(50, 0), 1e-10, 2e-5),
    "a hundred, narrow": (together(100), 1e-10, 2e-5),
}


@pytest.mark.parametrize("name", PLANS)
def test_ends_are_near_and_enclose_what_sums_of_rounded_losses_enclose(name: str) -> None:
    rows, level, step = PLANS[name]
    found = account(plan(rows), delta=level, neighbours="add-or-remove").epsilon
    assert found.width <= 1e-3
    sums, size = RoundedUp(rows, step), len(rows) * step
    # Losses rounded down reveal less than the truth: no epsilon is smaller than theirs. Rounded up, more.
    assert sums.delta(found.high + size) <= level * (1 + 1e-4)
    assert sums.delta(found.low) >= level * (1 - 1e-4)
    # Half a step down for each, the law is right to far less than a step.
    assert sums.delta(found.high + size / 2) <= level * (1 + 1e-2)
    assert sums.delta(found.low + size / 2) >= level * (1 - 1e-2)


def test_a_first_look_finds_the_answer_behind_a_second_hump() -> None:
    for rows, level in ((together(50), 1e-6), (together(100), 1e-10), (apart(50, 0), 1e-10)):
        engine = CompositionEngine(list(pairs(rows)))
        tilt, hump = engine._tilt_for_delta(level)
        _, near, slope = engine._nearer(level, tilt, hump)
        found = account(plan(rows), delta=level, neighbours="add-or-remove").epsilon
        assert hump > 2 * found.high
        assert found.low - 1e-3 <= near <= found.high + 1e-3
        assert slope >= tilt


def test_a_first_look_sees_nothing_where_it_cannot() -> None:
    still = LogMoments([(np.zeros(3), np.full(3, 1 / 3), 1.0)])
    assert still.crossing(1e-6, 1.0) is None
    spread = LogMoments([(np.array([-0.1, 0.1]), np.array([0.5, 0.5]), 10.0)])
    assert spread.crossing(1e-20, 1.0) is None
    assert spread.crossing(1e-6, 1e9) is None
    assert spread.crossing(0.9, 2.0) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_one_moment_is_above_the_moment_by_balls(swapped: bool) -> None:
    """ln E_P e^(c L) is c D_(c+1)(P||Q), which each pair knows at whole orders from its own series."""
    rows = apart(12, 5)
    members = [(pair.swapped() if swapped else pair, n) for pair, n in pairs(rows)]
    composition = CharacteristicComposition.of(list(members), True)
    assert composition is not None
    for tilt in (1.0, 3.0, 7.0):
        found = composition.moment(tilt)
        assert found is not None
        assert found[1] == 0.0
        if swapped:
            x = np.arange(-40_000, 40_001) / 1000
            truth = 0.0
            for m, q in rows:
                moved = 1 - q + q * np.exp((2 * m * x - 1) / (2 * m * m))
                law = np.exp(-x * x / 2 - tilt * np.log(moved)) / math.sqrt(2 * math.pi)
                truth += math.log(float(np.sum(law)) / 1000)
        else:
            truth = sum(tilt * pair.renyi(tilt + 1) for pair, _ in members)
        assert truth - 1e-12 <= found[0] <= truth + 1e-9


def test_one_moment_shows_only_what_is_true() -> None:
    rows = together(30)
    members = [(pair.swapped(), n) for pair, n in pairs(rows)]
    engine = CompositionEngine(list(members))
    seen = []
    for epsilon in (0.005, 0.01, 0.02, 0.05):
        truth = CompositionEngine(list(members)).delta(epsilon, 1e-4)
        tilt, _ = engine._tilt_for_epsilon(epsilon)
        for factor in (1e-3, 0.5, 1.0, 2.0, 1e3, 1e6):
            shown = engine._bounded_by_moments(epsilon, truth.high * factor, tilt)
            assert not (shown and truth.low > truth.high * factor)
            seen.append(shown)
    assert any(seen)
    assert not all(seen)


def test_a_first_look_that_errs_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [(pair.swapped(), n) for pair, n in pairs(together(30))]
    engine, truth = CompositionEngine(list(members)), CompositionEngine(list(members)).delta(0.02, 1e-4)
    tilt, _ = engine._tilt_for_epsilon(0.02)
    assert engine._bounded_by_moments(0.02, truth.high * 1e7, tilt)
    known = LogMoments.log_moment
    for off in (11.0, 20.0, 1e6):
        monkeypatch.setattr(LogMoments, "log_moment", lambda self, c, off=off: known(self, c) - off)
        for most in (tilt, 2 * tilt, 1e7 * tilt):
            assert not engine._bounded_by_moments(0.02, truth.low * 0.5, most)


def test_transforms_of_long_rows_are_as_near_as_is_said() -> None:
    rng = np.random.default_rng(3)
    for nodes, count in ((5000, 2000), (700, 37), (64, 1), (65, 2)):
        losses = np.sort(rng.uniform(-0.5, 2.0, (2, nodes)))
        weights = rng.uniform(0, 1, (2, nodes)) ** 4
        weights /= weights.sum(axis=1, keepdims=True)
        gap = 0.7
        found = _fine_transforms(weights, losses, count, gap)
        assert found.shape == (2, count)
        assert np.allclose(found, _transforms(weights, losses, count, gap), atol=1e-11)
        for k in {0, count // 2, count - 1}:
            angle = losses.astype(np.longdouble) * np.longdouble(gap) * k
            real = np.sum(weights * np.cos(angle), axis=1)
            imaginary = np.sum(weights * np.sin(angle), axis=1)
            off = np.hypot(found[:, k].real - real, found[:, k].imag - imaginary)
            # The angle's own rounding is counted with the losses: eight units of w |L|.
            turned = 8 * UNIT * np.sum(weights * np.abs(losses), axis=1) * gap * k
            assert np.all(off <= fine_rounding(nodes, count) + turned)


def test_near_pairs_are_cut_into_stretches_that_hold_each_of_them_once() -> None:
    rows = sorted(pairs(together(100)), key=lambda part: part[0].sort_key)
    runs = stretches(rows, 256)
    assert [part for run in runs for part in run] == rows
    assert 3 <= len(runs) <= 12
    for run in runs[:-1]:
        assert run[-1][0].magnitude <= 1.5 * run[0][0].magnitude or len(run) == 4  # type: ignore[operator]
    assert [len(run) for run in stretches(rows[:1], 256)] == [1]
    assert max(len(run) for run in stretches(rows[:50] + rows[:50], 16)) <= 16
