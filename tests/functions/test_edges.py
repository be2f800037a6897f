"""Bands, choices and fits where several points, candidates or heads differ."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.functions import Box
from tacit.functions.bases import FourierBasis, HistogramBasis
from tacit.functions.densities import DensityChoice, DensityPlan, GaussianKDE
from tacit.functions.densities.released import _simulated, sampling_root
from tacit.functions.models import Hinge, KernelModelPlan, LinearFeatures, PenaltyChoice, PublicBall
from tacit.noise import SeededSource

UNIT = Box.unit()


def test_a_band_at_each_point_is_as_wide_as_the_worst_point_needs() -> None:
    """Laplace noise: where one coefficient alone speaks the 95% quantile is ln(20)/sqrt(2) = 2.12 deviations.

    Where more of them add up it is less. The factor is one for all points, and may be too small for none.
    """
    smooth = DensityPlan(
        family=FourierBasis(domain=UNIT, order=1), size=200, mechanism="laplace", epsilon=0.5
    )
    curve = smooth.release(np.random.default_rng(1).random(200), source=SeededSource(seed=0))
    at = np.linspace(0, 1, 17)
    alone = [curve.band([x], draws=4000).factor for x in at]
    assert max(alone) >= math.log(20) / math.sqrt(2) * 0.99
    assert min(alone) < 0.98 * max(alone), "points differ, so that this says something"
    assert curve.band(at, draws=4000).factor == max(alone)


def test_noise_and_sample_err_independently_of_each_other() -> None:
    """The simulated error over its deviation has mean square 1 at every point, where both parts count alike."""
    family = HistogramBasis(domain=UNIT, bins=8)
    rows = np.random.default_rng(8).random(400)
    made = DensityPlan(family=family, size=400, mu=0.2).release(rows, source=SeededSource(seed=1))
    at = made.family.box.inside(np.array([0.3, 0.5, 0.7]))
    synthesis = made.family.synthesis(at) / made.size
    root = sampling_root(made, at, 8)
    assert root.shape == synthesis.shape, "as many numbers are drawn for either"
    noise = (synthesis**2) @ made.noise.stds(synthesis.shape[1]) ** 2
    sample = (root**2).sum(axis=1)
    assert (noise / sample > 0.05).all()
    assert (noise / sample < 20).all()
    draws = 40_000
    found = _simulated(made, synthesis, root, np.sqrt(noise + sample), "both", draws, 3, False)
    assert np.abs((found**2).mean(axis=0) - 1).max() < 6.5 * math.sqrt(2 / draws)


@pytest.mark.parametrize(("confidence", "wide"), [(0.95, 1.959964), (0.5, 0.674490), (0.99, 2.575829)])
def test_a_band_of_sampling_error_has_two_sides(confidence: float, wide: float) -> None:
    """Quantiles of the normal law as printed in tables."""
    family = GaussianKDE(domain=UNIT, bandwidth=0.1)
    made = DensityPlan(family=family, size=50, mu=2).release([0.4] * 25 + [0.6] * 25)
    band = made.band([0.5], covers="sampling", confidence=confidence)
    assert band.factor == pytest.approx(wide, abs=2e-6)
    assert made.band([0.5], covers="noise", confidence=confidence).factor == pytest.approx(wide, abs=2e-6)


def penalties(heads: int, candidates: list[float], clip: float = 2.0) -> PenaltyChoice:
    features = LinearFeatures(features=2, domain=PublicBall(radius=1.0))
    plan = KernelModelPlan.for_target(
        epsilon=1, delta=1e-5, loss=Hinge(), features=features, size=20, penalty=0.1, heads=heads
    )
    return PenaltyChoice(plan=plan, candidates=candidates, epsilon=1.0, clip=clip)


def test_heads_move_together() -> None:
    """Three heads with the same labels: a held-out row moves the risk of each by its clipped loss."""
    one, three = penalties(1, [1000.0], 0.5), penalties(3, [1000.0], 0.5)
    X, y = np.full((20, 2), 0.5), np.ones(20)
    right, wrong = X.copy(), X.copy()
    right[4], wrong[4] = np.nan, [1e6, 1e6]
    moved = float(three.risks(wrong, [y, y, y])[0] - three.risks(right, [y, y, y])[0])
    assert moved == pytest.approx(3 * 0.5 / 4, rel=1e-3)
    assert moved <= three.risk_sensitivity <= 3.001 * one.risk_sensitivity
    flip, noise = three._mechanisms()
    assert float(noise.noise_scale) >= three.risk_sensitivity * (1 - 1e-9)
    assert float(flip.sensitivity.value) >= three.risk_sensitivity


@pytest.mark.parametrize("count", [1, 2, 5])
def test_noisy_risks_of_several_candidates_divide_epsilon(count: int) -> None:
    """Each of k risks moves by the sensitivity: k Laplace noises cost k sensitivity / scale."""
    asked = penalties(1, [0.1 * (i + 1) for i in range(count)])
    noise = asked._mechanisms()[1]
    spent = count * Fraction(asked.risk_sensitivity) / Fraction(noise.noise_scale)
    assert 0.999 <= spent <= 1 + 1e-9  # risks lie on a grid, and so does what they move by


@pytest.mark.parametrize("turned", [False, True])
def test_a_choice_is_sized_by_the_candidate_that_moves_most(turned: bool) -> None:
    """Narrow kernels move more than wide ones; in either order the choice pays for the narrow one."""
    wide, narrow = GaussianKDE(domain=UNIT, bandwidth=0.3), GaussianKDE(domain=UNIT, bandwidth=0.02)
    plan = DensityPlan(family=wide, size=50, mu=1.0)

    def sensitivity(*families: GaussianKDE) -> float:
        return DensityChoice(plan=plan, candidates=list(families), epsilon=1).score_sensitivity

    both = sensitivity(*((narrow, wide) if turned else (wide, narrow)))
    assert sensitivity(narrow) > 3 * sensitivity(wide)
    assert both == sensitivity(narrow)
    chosen = DensityChoice(plan=plan, candidates=[wide, narrow], epsilon=1)
    start, end = np.full(50, 0.5), np.full(50, 0.5)
    end[0] = 0.9
    moves = [abs(float(a - b)) for a, b in zip(chosen.scores(start), chosen.scores(end), strict=True)]
    assert sensitivity(wide) < max(moves) <= both
