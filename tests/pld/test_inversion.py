"""Inverted transforms enclose a curve that is known in closed form, and count all that they are told to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.pld import GaussianPair, Product
from tacit.pld.engine import CompositionEngine
from tacit.pld.transforms import FourierInversion, SmoothedCurve

MU, TILT = 1.3, 2.0


def normal(error: float = 0.0, outside: float = 1e-13) -> FourierInversion:
    """The loss N(mu^2/2, mu^2) of Gaussian noise, tilted by c: N(mu^2 (c + 1/2), mu^2), on 24 deviations."""
    mean = MU**2 * (TILT + 0.5)
    bottom, top = mean - 12 * MU, mean + 12 * MU
    w = np.arange(40) * (2 * math.pi / (top - bottom))
    return FourierInversion(
        step=0.01,
        tilt=TILT,
        bottom=bottom,
        top=top,
        log_scale=TILT * (TILT + 1) * MU**2 / 2,
        scale_error=1e-15,
        mean=mean,
        coefficients=np.exp(-(MU**2) * w * w / 2).astype(np.complex128),
        error=error,
        outside=outside,
    )


def curve(epsilon: float) -> float:
    """Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu)."""
    phi = [0.5 * math.erfc((s * MU / 2 + epsilon / MU) / math.sqrt(2)) for s in (-1, 1)]
    return phi[0] - math.exp(epsilon) * phi[1]


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0, 6.0])
def test_the_curve_of_normal_noise_is_enclosed(epsilon: float) -> None:
    low, high = normal().finite_part(epsilon)
    assert low <= curve(epsilon) <= high
    assert high - low <= 1e-8 * high


def test_errors_and_what_lies_outside_count_above_and_below() -> None:
    """Mass outside the window may weigh as much as 1 under the tilt, e^(K - c epsilon) in the curve."""
    epsilon = 3.0
    plain, doubted = normal(), normal(outside=1e-6)
    weight = math.exp(plain.log_scale - TILT * epsilon)
    low, high = doubted.finite_part(epsilon)
    assert high >= plain.finite_part(epsilon)[1] + 0.999e-6 * weight
    assert low <= plain.finite_part(epsilon)[0] - 0.999e-6 * weight
    # An error of e in every coefficient moves the sum by up to e times the integral of the kernel, 1/(c (c + 1)).
    wrong = normal(error=1e-3)
    least = 1e-3 / (TILT * (TILT + 1)) / (wrong.top - wrong.bottom) * weight
    assert wrong.finite_part(epsilon)[1] >= plain.finite_part(epsilon)[1] + 0.999 * least


def test_mass_at_infinity_counts_whatever_epsilon_is() -> None:
    known = SmoothedCurve(
        composed=normal(),  # type: ignore[arg-type]
        slack=0.0,
        infinite_high=0.01,
        infinite_low=0.01,
        log_gain=0.0,
        unresolved=0.0,
        spread=0.001,
        deviation=0.001,
        exact=True,
    )
    for epsilon in (0.0, 2.0, 6.0):
        assert known.above(epsilon) >= min(1.0, curve(epsilon) + 0.01)
        assert replace(known, infinite_high=0.0).above(epsilon) < known.above(epsilon)
        assert known.below(epsilon, 5.0) >= 0.01


def test_gaussians_merge_exactly() -> None:
    merged = Product(pairs=[(GaussianPair(mu=0.5), 3), (GaussianPair(mu=0.25), 4)])
    assert merged.pairs == ((GaussianPair(mu=1.0), 1),)


def test_a_direction_that_is_not_clearly_better_is_not_called_so() -> None:
    """A coarse look says yes beyond the truth, and never before it."""
    from tacit.pld import PoissonSampledPair

    part = PoissonSampledPair(pair=GaussianPair(mu=1.0), rate=0.05)
    engine = CompositionEngine([(part, 100)])
    truth = engine.epsilon(1e-6, 2e-4)
    assert engine._at_most(1.5 * truth.high, 1e-6)
    for share in (0.3, 0.7, 0.999):
        assert not engine._at_most(share * truth.low, 1e-6)
