"""Every mechanism's event costs at least what its bound says it may, and not more than its bound."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit import mechanisms as m
from tacit.accounting import account
from tacit.accounting.codec import dumps, loads
from tacit.guarantees import Concentrated
from tacit.mechanisms.base import Mechanism

MECHANISMS: list[Mechanism] = [
    m.Laplace.for_target(epsilon=0.5, sensitivity=m.L1(2), spacing=1),
    m.Laplace.for_target(epsilon=0.5, sensitivity=m.L1(2), spacing=Fraction(1, 1 << 20)),
    m.Gaussian.for_rho(rho=0.1, sensitivity=m.L2(1), spacing=1),
    m.Gaussian.for_rho(rho=0.1, sensitivity=m.L2(3), spacing=1, dimension=4),
    m.RoundedGaussian.for_target(
        epsilon=1, delta=1e-6, sensitivity=m.L2(1), dimension=1, spacing=Fraction(1, 1024)
    ),
    m.Geometric(epsilon=0.5),
    m.TruncatedGeometric(epsilon=0.5, low=0, high=10),
    m.Staircase(epsilon=0.5, sensitivity=m.CountSensitivity(3)),
    m.RandomizedResponse(epsilon=1.0, categories=3),
    m.Exponential(epsilon=0.5, sensitivity=m.Score(1)),
    m.PermuteAndFlip(epsilon=0.5, sensitivity=m.Score(1)),
    m.Selection(epsilon=0.5, sensitivity=m.Score(1), candidates=("a", "b")),
    m.SparseHistogram.for_target(epsilon=0.5, sensitivity=m.L1(2), domain=1 << 64),
    m.StableHistogram.for_target(epsilon=0.5, delta=1e-6, sensitivity=m.L1(2)),
    m.StableHistogram.for_target(
        epsilon=0.5, delta=1e-6, sensitivity=m.L1(3), unit=m.KeysOfAUnit(keys=3, each=2, total=3)
    ),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda x: type(x).__name__)
def test_event(mechanism: Mechanism) -> None:
    event = mechanism.event
    assert loads(dumps(event)) == event
    cost = account(event, delta=1e-6, neighbours="replace-one").epsilon
    stated = mechanism.bound.epsilon_at(1e-6)
    if isinstance(mechanism, m.Gaussian) and mechanism.dimension > 1:
        stated = Concentrated(rho=mechanism.rho).epsilon(
            1e-6
        )  # the worst of several moves has no event of its own
    assert cost.high <= stated * (1 + 1e-3) + 1e-9
    curve = getattr(mechanism, "profile", None)
    if curve is not None:
        assert cost.high >= curve.epsilon_between(1e-6).low * (1 - 1e-6)
