"""Both ends of ordinary plans against an inversion of the transform from its definition, at 160 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx

from tacit.accounting import account
from tacit.accounting import events as e

Part = tuple[float, float, int]
"""Noise multiplier, sampling rate, count."""


def moments(parts: Sequence[Part], z: Any) -> Any:
    """ln E_P e^(zL) of the product, record removed: sums over x of phi(x) g(x)^(z+1)."""
    total = acb(0)
    for multiplier, rate, count in parts:
        mu, q = 1 / arb(multiplier), arb(rate)
        one = acb(0)
        for k in range(-140, 260):
            x = arb(k) / 10
            g = 1 - q + q * (mu * x - mu * mu / 2).exp()
            one += ((z + 1) * g.log() - x * x / 2).exp() / 10
        total += count * (one / (2 * arb.pi()).sqrt()).log()
    return total


def delta(parts: Sequence[Part], epsilon: float, tilt: float, sigma: float) -> float:
    """(1/2 pi) integral of e^(K(z) - z epsilon)/(z (z + 1)) over z = tilt + iw (the curve's Laplace transform)."""
    ctx.prec, before = 160, ctx.prec
    try:
        gap, total = 0.1 / sigma, arb(0)
        for k in range(95):
            z = acb(arb(tilt), arb(k * gap))
            term = ((moments(parts, z) - z * arb(epsilon)).exp() / (z * (z + 1))).real
            total += term if k else term / 2
        return float((total * gap / arb.pi()).mid())
    finally:
        ctx.prec = before


def plan(parts: Sequence[Part]) -> list[e.Event]:
    sampled = [
        (e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=m), sampling_rate=q), n)
        for m, q, n in parts
    ]
    return [e.RepeatedEvent(event=event, times=n) for event, n in sampled]


CASES = {
    "ten to the sixth": ([(1.0, 1e-3, 10**6)], 1e-6, 4.0, 1.3),
    "ten to the ninth": ([(1.0, 3.2e-5, 10**9)], 1e-6, 4.0, 1.3),
    "ten to the ninth, large delta": ([(1.0, 3.2e-5, 10**9)], 1e-3, 2.4, 1.3),
    "few": ([(1.5 + 0.1 * k, 0.05 + 0.01 * k, 40) for k in range(3)], 1e-6, 5.0, 0.8),
}


@pytest.mark.parametrize("name", CASES)
def test_the_ends_enclose_the_inversion(name: str) -> None:
    parts, level, tilt, sigma = CASES[name]
    found = account(plan(parts), delta=level, neighbours="add-or-remove").epsilon
    assert found.width <= 1e-3 * max(1.0, found.high)
    low, high = (delta(parts, at, tilt, sigma) for at in (found.low, found.high))
    assert high <= level * (1 + 1e-9)
    # The account is the larger of two directions; this is that of removals, which are the worse ones here.
    assert low >= level * (1 - 1e-9)


def test_different_sampled_releases_take_no_longer_than_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 different ones used to be put on grids, one by one, which took longer than 10^4 by their transforms."""
    from tacit.pld import engine as grid_composition

    def refused(*_: object) -> None:
        raise AssertionError("put on a grid")

    monkeypatch.setattr(grid_composition, "gridded", refused)
    for size in (30, 100):
        parts = [(0.8 + 1.2 * k / size, 0.01 + 0.09 * k / size, 1) for k in range(size)]
        found = account(plan(parts), delta=1e-6, neighbours="add-or-remove").epsilon
        assert found.width <= 1e-3
    assert math.isfinite(found.high)


def test_a_direction_that_is_clearly_better_is_looked_at_coarsely_only() -> None:
    """Additions of rarely sampled noise cost less than removals: any enclosure below those will do, and holds."""
    from tacit.accounting.accountants import profile_of

    for parts in (
        [(0.7 + 0.02 * k, 0.002 + 1e-4 * k, 5) for k in range(20)],
        [(1.0, 0.05, 200), (2.0, 0.1, 100)],
    ):
        curve = profile_of(plan(parts), neighbours="add-or-remove")
        removal, addition = (d.epsilon(1e-6) for d in curve.directions)
        assert addition.high < removal.low
        known = curve.directions[1].epsilon(1e-6, known=removal.low)
        assert known.low <= addition.low <= addition.high <= known.high <= removal.low
        found = curve.epsilon_between(1e-6)
        assert (found.low, found.high) == (removal.low, removal.high)
        # What is not below it is found as before.
        assert curve.directions[0].epsilon(1e-6, known=addition.low) == removal


def _laplace_and_sampled(epsilon: float, a: float, noise: float, rate: float, *, removed: bool) -> float:
    """delta of one Laplace release and one Poisson-sampled Gaussian: the Laplace curve, averaged over the other loss.

    Removal: P is (1 - q) N(0, s^2) + q N(1, s^2) and Q is N(0, s^2); addition: the other way round.
    """
    x = np.linspace(-14 * noise, 1 + 14 * noise, 400_001)
    base, moved = (np.exp(-((x - m) ** 2) / (2 * noise**2)) for m in (0.0, 1.0))
    p, q = (1 - rate) * base + rate * moved, base
    loss = np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2)))
    p, loss = (p, loss) if removed else (q, -loss)
    left = epsilon - loss
    middle = -np.expm1((np.clip(left, -a, a) - a) / 2)
    curve = np.where(left > a, 0.0, np.where(left < -a, -np.expm1(np.minimum(left, 0.0)), middle))
    return float(np.sum(p * curve) * (x[1] - x[0]) / (noise * math.sqrt(2 * math.pi)))


@pytest.mark.parametrize("delta", [1e-3, 3e-4, 1e-6, 1e-9])
@pytest.mark.parametrize(("noise", "rate"), [(0.8, 1e-5), (1.0, 1e-3), (0.8, 1e-2)])
def test_an_atom_beside_a_release_that_is_rarely_sampled(noise: float, rate: float, delta: float) -> None:
    """Most of the loss lies on the atom and the rest spreads little, or far and rarely: both ends are still near."""
    sampled = e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=noise), sampling_rate=rate)
    found = account([e.LaplaceEvent(epsilon=0.707), sampled], delta=delta, neighbours="add-or-remove").epsilon
    assert found.width <= 1e-3
    low, high = (
        max(_laplace_and_sampled(x, 0.707, noise, rate, removed=r) for r in (True, False))
        for x in (found.low, found.high)
    )
    assert low >= delta * (1 - 1e-5)
    assert high <= delta * (1 + 1e-5)
    few = [e.LaplaceEvent(epsilon=x) for x in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert account([*few, sampled], delta=delta, neighbours="add-or-remove").epsilon.width <= 1e-3
