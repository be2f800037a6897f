"""Compositions of which only one part breaks a condition, and deltas that are set aside before anything is run."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tacit
from tacit.accounting import AdvancedFilter
from tacit.accounting import events as ev
from tacit.errors import InvalidParameter, NoLaw

PURE = ev.RandomizedResponseEvent(epsilon=1.0, categories=4)
NOT_PURE = ev.GaussianEvent(noise_multiplier=2.0)
SAMPLED = ev.PoissonSampledEvent(event=PURE, sampling_rate=0.5)


@pytest.mark.parametrize("turned", [False, True])
def test_every_local_answer_must_be_pure(turned: bool) -> None:
    parts = (NOT_PURE, PURE) if turned else (PURE, NOT_PURE)
    with pytest.raises(NoLaw, match="gaussian"):
        ev.ShuffledEvent(event=ev.ComposedEvent(events=parts), people=1000)
    sampled = (SAMPLED, PURE) if turned else (PURE, SAMPLED)
    with pytest.raises(InvalidParameter, match="own data"):
        ev.ShuffledEvent(event=ev.ComposedEvent(events=sampled), people=1000)
    assert ev.ShuffledEvent(event=ev.ComposedEvent(events=(PURE, PURE)), people=1000).pure() == 2.0


@pytest.mark.parametrize("share", [0.25, 0.5, 0.875])
def test_the_delta_of_the_losses_is_spent_with_the_first_release(share: float) -> None:
    """Two releases of delta 2^-30: the odometer says their deltas and what was set aside for the losses, exactly."""
    budget, own = 2.0**-10, 2.0**-30
    chosen = AdvancedFilter(tacit.Approximate(epsilon=1.0, delta=budget), share=share)
    for _ in range(2):
        chosen.admit(tacit.Approximate(epsilon=0.125, delta=own))
    told = Fraction(chosen.spent.delta)
    wanted = Fraction(budget) * Fraction(share) + 2 * Fraction(own)
    assert wanted <= told <= wanted * (1 + Fraction(1, 10**9))
