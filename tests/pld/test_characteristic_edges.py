"""The edges of transforms of many different parts: deep tails, many nodes, rates near 1, discs of tilts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.pld import (
    DiscreteGaussianPair,
    GaussianPair,
    LaplacePair,
    Pair,
    PoissonSampledPair,
    SampledReplacementPair,
)
from tacit.pld.characteristic import CharacteristicComposition
from tacit.pld.engine import CompositionEngine
from tacit.pld.product import Product
from tacit.pld.quadrature import QuadratureRange, legendre, quadrature_of
from tacit.pld.transforms import SaddlePoint, Tilted


@pytest.mark.parametrize("noise_multiplier", [2.0, 1.0, 0.5, 0.35])
@pytest.mark.parametrize("tilt", [1.0, 6.0, 12.0, 16.0, 30.0, 45.0])
def test_tilts_into_tails_beyond_the_floats_have_no_nodes_rather_than_wrong_ones(
    noise_multiplier: float, tilt: float
) -> None:
    """Under a tilt c the law of normal noise sits (c + 1) mu deviations out, where e^(-x^2/2) may be 0 in floats."""
    mu = 1 / noise_multiplier
    x = np.arange(-60.0, 60 + 2 * tilt * mu, 0.01)
    loss = np.logaddexp(math.log(0.5), math.log(0.5) + mu * x - mu * mu / 2)
    logs = -x * x / 2 + (tilt + 1) * loss + math.log(0.01 / math.sqrt(2 * math.pi))
    k = np.arange(-400.0, 401.0)
    masses = np.exp(-k * k * mu * mu / 2)
    whole = -k * k * mu * mu / 2 + (tilt + 1) * (2 * k - 1) * mu * mu / 2 - math.log(masses.sum())
    for pair, exponents in (
        (PoissonSampledPair(pair=GaussianPair(mu=mu), rate=0.5), logs),
        (DiscreteGaussianPair(noise_std=noise_multiplier), whole),
    ):
        nodes = quadrature_of([(pair, 1)], QuadratureRange(low=-1.0, high=tilt + 1, frequency=2.0))
        known = float(exponents.max()) + math.log(float(np.exp(exponents - exponents.max()).sum()))
        if nodes is not None:
            assert nodes.tilted(tilt)[0][0] == pytest.approx(known, abs=1e-11, rel=1e-14)
        else:
            assert tilt * mu > 12, "nodes are refused only where the tails are deep"


def _laplace(epsilon: float, z: Any) -> Any:
    """E_P e^(zL): atoms of 1/2 at epsilon and e^-epsilon/2 at -epsilon, between them e^((l - epsilon)/2)/4."""
    from flint import acb, arb

    e, half = arb(epsilon), z + acb(0.5)
    between = ((half * e).exp() - (-half * e).exp()) / half * (-e / 2).exp() / 4
    return (z * e).exp() / 2 + (-z * e - e).exp() / 2 + between


def _summed(nodes: Any, z: Any) -> Any:
    from flint import acb, arb

    rows = zip(nodes.masses[0], nodes.losses[0], strict=True)
    return sum((arb(float(m)) * (z * arb(float(x))).exp() for m, x in rows), acb(0))


@pytest.mark.parametrize(
    ("epsilon", "tilt", "frequency"),
    [(0.05, 4.0, 40.0), (0.5, 3.0, 20.0), (1.0, 8.0, 30.0), (2.0, 5.0, 30.0), (2.0, 1.0, 60.0)],
)
def test_gauss_nodes_keep_the_error_they_claim(epsilon: float, tilt: float, frequency: float) -> None:
    """Against the closed transform at 128 bits."""
    from flint import acb, ctx

    reach = QuadratureRange(low=tilt - 2, high=tilt + 2, frequency=frequency)
    nodes = quadrature_of([(LaplacePair(epsilon=epsilon), 1)], reach)
    assert nodes is not None
    with ctx.workprec(128):
        for c in (tilt - 2, tilt, tilt + 2):
            size = float(_laplace(epsilon, acb(c)).real)
            for w in (0.0, frequency / 3, frequency):
                missed = abs(_laplace(epsilon, acb(c, w)) - _summed(nodes, acb(c, w)))
                assert float(missed) <= nodes.relative * size + float(nodes.error[0]) * max(size, 1.0)


def test_gauss_weights_are_right_to_the_last_bit() -> None:
    """Exact integrals of t^(2k): sums of positive terms cannot hide a wrong weight at the ends."""
    from flint import arb, ctx

    for count in (8, 32, 128):
        x, share = legendre(count)
        with ctx.workprec(128):
            for k in (0, 3, count - 1):
                rows = zip(x, share, strict=True)
                total = sum((arb(float(w)) * arb(float(t)) ** (2 * k) for t, w in rows), arb(0))
                # Nodes are rounded too: 2k half-units of each power.
                assert abs(float(total * (2 * k + 1) / 2) - 1) <= 2.0**-53 * (4 + 2 * k)


def test_a_sampled_exchange_is_left_to_the_grid() -> None:
    """1 - q + q (ratio of mixtures) may vanish in the strip where the mixtures themselves do not."""
    assert SampledReplacementPair(mu=0.5, rate=0.1).quadrature_key() is not None
    inner = SampledReplacementPair(mu=0.5, rate=0.1)
    assert PoissonSampledPair(pair=inner, rate=0.1).quadrature_key() is None


@pytest.mark.parametrize("rate", [0.9, 0.99, 0.999])
def test_losses_near_rate_one_carry_their_cancellation(rate: float) -> None:
    from flint import arb, ctx

    pair = PoissonSampledPair(pair=GaussianPair(mu=2.0), rate=rate)
    reach = QuadratureRange(low=-1.0, high=2.0, frequency=5.0)
    nodes = quadrature_of([(pair, 1)], reach)
    assert nodes is not None
    spacing = np.diff(nodes.losses[0])
    assert np.all(spacing[:-1] >= 0)
    # The lowest losses approach ln(1 - rate) from above: what they miss, at 128 bits, is within the claim.
    ratio = np.linspace(-40, 0, 50)
    with ctx.workprec(128):
        for r in ratio:
            exact = float((arb(rate) * arb(float(r)).expm1()).log1p() - arb(math.log1p(rate * math.expm1(r))))
            assert abs(exact) * (reach.power + reach.frequency) <= nodes.relative


def test_moments_are_compared_on_a_disc_inside_the_reach() -> None:
    """|transform - that of the nodes| on the circle around the tilt, against the closed form at 128 bits."""
    from flint import acb, arb, ctx

    parts: list[tuple[Pair, int]] = [(LaplacePair(epsilon=float(e)), 3) for e in np.linspace(0.05, 0.4, 260)]
    transform = CharacteristicComposition(list(Product(pairs=parts).pairs), exact=True)
    saddle = SaddlePoint(tilt=0.75, sigma=4.0, up=1.5, down=1.0)
    assert transform.prepare(saddle, 3.0)
    tilted = Tilted(transform, 0.01, saddle)
    assert transform.reach.low <= saddle.tilt - tilted.disc
    assert saddle.tilt + tilted.disc <= transform.reach.high
    row, nodes, part = 0, transform.nodes[0], tilted.parts[0]
    weights, mean = nodes.tilted(saddle.tilt)[1][row], float(part.means[row])
    epsilon = transform.chunks[0][row][0].epsilon  # type: ignore[attr-defined]
    with ctx.workprec(128):
        whole = _laplace(epsilon, acb(saddle.tilt)).real
        for k in range(12):
            turn = acb(0, 2 * arb.pi() * k / 12).exp() * tilted.disc
            z = acb(saddle.tilt) + acb(0, 1) * turn
            rows = zip(weights, nodes.losses[row], strict=True)
            found = sum(
                (arb(float(w)) * ((z - saddle.tilt) * (arb(float(x)) - mean)).exp() for w, x in rows), acb(0)
            )
            known = _laplace(epsilon, z) / whole * (-(z - saddle.tilt) * mean).exp()
            assert float(abs(found - known)) <= part.off[row] + 4 * nodes.relative


def test_floors_of_densities_do_not_overflow() -> None:
    parts: list[tuple[Pair, int]] = [
        (PoissonSampledPair(pair=GaussianPair(mu=float(m)), rate=0.3), 1) for m in np.linspace(0.2, 0.3, 260)
    ]
    transform = CharacteristicComposition(parts, exact=True)
    for tilt in (0.0, 20.0, 60.0):
        saddle = SaddlePoint(tilt=tilt, sigma=9.0, up=1.0, down=1.0)
        if transform.prepare(saddle, 10.0):
            tilted = Tilted(transform, 0.01, saddle)
            with np.errstate(over="raise", invalid="raise"):
                bound = tilted.bound(tilted.parts[0], np.array([0.1, 1.0, 10.0]))
            assert np.all(np.isfinite(bound))


def test_what_the_transform_found_is_kept_where_the_grid_finds_less() -> None:
    """At delta = 1e-300 neither has a lower end; the upper one is that of the nearby Gaussian, mu^2 the sum."""
    parts: list[tuple[Pair, int]] = [
        (DiscreteGaussianPair(noise_std=float(s)), 1) for s in np.linspace(5, 15, 260)
    ]
    high = CompositionEngine(list(Product(pairs=parts).pairs)).epsilon(1e-300, 1e-3).high
    squared = sum(1 / float(p.noise_std) ** 2 for p, _ in parts if isinstance(p, DiscreteGaussianPair))
    near = GaussianPair(mu=math.sqrt(squared))
    assert near.hockey_stick(high).high <= 1e-300 <= near.hockey_stick(high - 0.1).low
