"""Group privacy and amplification against exact enumeration of small mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.strategies import any_closed
from tacit.errors import InvalidParameter, UnknownName
from tacit.guarantees import Bound
from tacit.guarantees.laws.amplify import without_replacement_renyi
from tacit.pld import GaussianPair, GroupPair, LaplacePair, Pair, Product
from tacit.pld.distributions import pld_curve

EPSILONS = (0.0, 0.2, 0.7, 1.5, 4.0)


@given(st.floats(0.01, 2), st.integers(1, 6), st.floats(0.01, 3))
def test_groups_of_gaussian_noise(mu: float, size: int, epsilon: float) -> None:
    """k steps move the mean by k: the exact curve is that of k mu."""
    grown = tacit.group(tacit.GaussianDP(mu=mu), size=size)
    assert isinstance(grown, tacit.GaussianDP)
    assert mu * size * (1 - 1e-15) <= grown.mu <= mu * size * (1 + 1e-15)
    point = tacit.Approximate(epsilon=epsilon, delta=tacit.GaussianDP(mu=mu).delta(epsilon))
    try:
        grouped = tacit.group(point, size=size)
    except tacit.NoLaw:
        return
    exact = tacit.GaussianDP(mu=mu * size)
    assert isinstance(grouped, tacit.Approximate)
    assert grouped.delta >= exact.delta(float(grouped.epsilon)) * (1 - 1e-12)
    rho = tacit.group(tacit.Concentrated(rho=mu**2 / 2), size=size)
    assert rho.renyi(3.0) >= exact.renyi(3.0) * (1 - 1e-12)
    curve = tacit.convert(tacit.GaussianDP(mu=mu), tacit.Renyi, orders=(2.0, 4.0, 8.0, 16.0, 32.0))
    halved = tacit.group(curve, size=size)
    assert isinstance(halved, tacit.Renyi)
    for order, value in zip(halved.orders, halved.epsilons, strict=True):
        assert value >= exact.renyi(order) * (1 - 1e-12)


def _group(pair: Pair, size: int) -> GroupPair:
    return GroupPair(products=(Product.of(pair),), size=size)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 10])
def test_groups_of_laplace_noise_have_the_curve_of_a_larger_shift(size: int) -> None:
    """group-privacy, splits: k units of Laplace noise move it k times as far; the best split reaches that curve.

    The float law from which groups are composed is held to the same.
    """
    for own in (0.05, 0.5, 2.0):
        grouped, exact = _group(LaplacePair(epsilon=own), size), LaplacePair(epsilon=own * size)
        epsilons = [own * size * share for share in (0.0, 0.013, 0.1, 0.37, 0.5, 0.77, 0.9, 0.99, 0.9999)]
        composed = pld_curve(grouped.pld(), np.array(epsilons))[1]
        for epsilon, other in zip(epsilons, composed, strict=True):
            found, true = grouped.hockey_stick(epsilon).high, exact.hockey_stick(epsilon)
            assert true.low <= min(found, other)
            assert max(found, other) <= true.high * 1.01 + 1e-12
    profile = tacit.group(tacit.Profile.of(tacit.Pure(epsilon=0.5)), size=2)
    assert profile.delta(1.0) == 0.0
    assert tacit.group(tacit.Profile.laplace(epsilon=0.5), size=2).delta(0.9) < 0.0488 * 1.01


@pytest.mark.parametrize(("mu", "size"), [(0.25, 2), (2.0, 2), (1.0, 3), (0.5, 5), (0.25, 10)])
def test_the_best_split_is_that_of_gaussian_noise(mu: float, size: int) -> None:
    """group-privacy, splits: walked like any other curve, Gaussian noise gets k mu. Whole epsilons are floats."""
    grouped, exact = _group(GaussianPair(mu=mu), size), GaussianPair(mu=mu * size)
    for epsilon in (0, 1, 2, 3, 0.1, 0.3 * mu, mu * size, 2.1 * mu * size, 30.0):
        found, true = grouped.hockey_stick(epsilon).high, exact.hockey_stick(float(epsilon))
        assert true.low <= found <= true.high * 1.02 + 1e-12
    swept = np.linspace(0.0, 3 * mu * size, 2001)
    composed = pld_curve(grouped.pld(), swept)[1]
    low, high = exact.hockey_stick_grid(swept)
    assert np.all(low <= composed)
    assert np.all(composed <= high * 1.02 + 1e-12)


def test_very_large_groups_split_evenly() -> None:
    grouped, exact = _group(GaussianPair(mu=0.001), 300), GaussianPair(mu=0.3)
    even = GaussianPair(mu=0.001).hockey_stick(0.001).high * math.expm1(0.3) / math.expm1(0.001)
    assert grouped.hockey_stick(0.3).high == pytest.approx(even, rel=1e-9)
    assert exact.hockey_stick(0.3).low <= even < 1


def test_the_printed_group_law_is_false() -> None:
    """Groce sec. 3.2 prints (k epsilon, k delta): Gaussian mu = epsilon = .5, k = 2 has .127, not .105."""
    delta = tacit.GaussianDP(mu=0.5).delta(0.5)
    exact = second.gaussian_hockey_stick(1.0, 1.0)
    assert 2 * delta == pytest.approx(0.105, abs=5e-4)
    assert exact == pytest.approx(0.1269, abs=5e-5)
    assert exact > 2 * delta
    mended = tacit.group(tacit.Approximate(epsilon=0.5, delta=delta), size=2)
    assert isinstance(mended, tacit.Approximate)
    assert mended.delta == pytest.approx(delta * (math.e - 1) / (math.exp(0.5) - 1))
    assert mended.delta >= exact


@given(any_closed, st.integers(1, 5))
def test_larger_groups_are_promised_less(bound: Bound, size: int) -> None:
    try:
        small, large = tacit.group(bound, size=size), tacit.group(bound, size=size + 1)
    except tacit.NoLaw:
        return
    for e in EPSILONS:
        assert small.delta_at(e) <= large.delta_at(e) * (1 + 1e-12) or isinstance(bound, tacit.Renyi)
    assert tacit.group(bound, size=1) == bound


def test_sharper_group_divergence_is_sharper_and_tight_for_gaussian_noise_at_large_orders() -> None:
    from tacit.guarantees.laws.group import group_renyi, group_renyi_printed

    curve = tacit.convert(tacit.GaussianDP(mu=0.3), tacit.Renyi, orders=(4.0, 1024.0))
    sharp, printed = group_renyi(curve, 2), group_renyi_printed(curve, 2)
    assert sharp.epsilons < printed.epsilons
    exact = tacit.GaussianDP(mu=0.6).renyi(512.0)
    assert exact <= sharp.epsilons[-1] <= exact * 1.001


# --- amplification -----------------------------------------------------------------------------------


def noisy_count(count: int, top: int, epsilon: float) -> list[float]:
    """A truncated geometric count on 0..top: epsilon-private for steps of one."""
    r = math.exp(-epsilon)
    weights = [r ** abs(count - k) for k in range(-40, top + 41)]
    total = sum(weights)
    masses = [w / total for w in weights]
    inner = masses[40 : 40 + top + 1]
    inner[0] += sum(masses[:40])
    inner[-1] += sum(masses[40 + top + 1 :])
    return inner


def poisson_output(data: tuple[int, ...], rate: float, epsilon: float) -> list[float]:
    """The law of the noisy count of ones in a Poisson sample, by enumerating all samples."""
    total = np.zeros(8)
    for kept in itertools.product((0, 1), repeat=len(data)):
        weight = math.prod(rate if k else 1 - rate for k in kept)
        total += weight * np.array(
            noisy_count(sum(k * x for k, x in zip(kept, data, strict=True)), 7, epsilon)
        )
    return list(total)


def subset_output(data: tuple[int, ...], size: int, epsilon: float) -> list[float]:
    """The law of the noisy count of ones in a uniform subset, by enumerating all subsets."""
    subsets = list(itertools.combinations(data, size))
    return list(np.mean([noisy_count(sum(s), 7, epsilon) for s in subsets], axis=0))


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_poisson_sampling_against_enumeration(rate: float, epsilon: float) -> None:
    """Base: epsilon-private noisy count; every data set of up to four bits and its neighbours."""
    base = tacit.Pure(epsilon=epsilon)
    pure = tacit.subsample(base, rate=rate, scheme="poisson")
    approximate = tacit.subsample(tacit.Approximate(epsilon=epsilon, delta=0.0), rate=rate, scheme="poisson")
    curve = tacit.subsample(
        tacit.convert(base, tacit.Renyi, orders=(2.0, 3.0, 6.0, math.inf)), rate=rate, scheme="poisson"
    )
    reached = 0.0
    for data in itertools.product((0, 1), repeat=3):
        bigger = (*data, 1)
        p, q = poisson_output(bigger, rate, epsilon), poisson_output(data, rate, epsilon)
        for one, two in ((p, q), (q, p)):
            reached = max(reached, second.renyi(one, two, math.inf))
            for e in EPSILONS:
                value = second.hockey_stick(one, two, e)
                for bound in (pure, approximate, curve):
                    assert value <= bound.delta_at(e) + 1e-12
            for order in (2.0, 3.0, 6.0):
                assert second.renyi(one, two, order) <= curve.renyi(order) * (1 + 1e-9)
    assert reached >= 0.95 * float(pure.epsilon)  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.4, 1.5])
def test_sampling_without_replacement_against_enumeration(size: int, epsilon: float) -> None:
    base = tacit.Pure(epsilon=epsilon)
    rate = size / 4
    pure = tacit.subsample(base, rate=rate, scheme="without-replacement")
    curve = tacit.subsample(
        tacit.convert(base, tacit.Renyi, orders=(2.0, 3.0, 6.0, math.inf)),
        rate=rate,
        scheme="without-replacement",
    )
    for rest in itertools.product((0, 1), repeat=3):
        p, q = subset_output((*rest, 1), size, epsilon), subset_output((*rest, 0), size, epsilon)
        for one, two in ((p, q), (q, p)):
            for e in EPSILONS:
                value = second.hockey_stick(one, two, e)
                assert value <= pure.delta_at(e) + 1e-12
                assert value <= curve.delta_at(e) + 1e-12
            for order in (2.0, 3.0, 6.0):
                assert second.renyi(one, two, order) <= curve.renyi(order) * (1 + 1e-9)


@pytest.mark.parametrize("mu", [0.25, 1.0])
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_poisson_renyi_is_above_the_integrated_mixture_in_both_directions(mu: float, rate: float) -> None:
    curve = tacit.subsample(
        tacit.convert(tacit.GaussianDP(mu=mu), tacit.Renyi, orders=(2.0, 3.0, 8.0)),
        rate=rate,
        scheme="poisson",
    )
    x = np.linspace(-30, 40, 700_001)
    q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    mix = (1 - rate) * q + rate * np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    keep = q > 1e-290
    for order in (2.0, 3.0, 8.0):
        for top, bottom in ((mix, q), (q, mix)):
            total = np.trapezoid((top[keep] / bottom[keep]) ** order * bottom[keep], x[keep])
            assert math.log(total) / (order - 1) <= curve.renyi(order) * (1 + 1e-9)


def test_the_printed_without_replacement_law_is_false() -> None:
    """Lecture 7, Thm 7.8 prints 4(epsilon(2) - 1): for small divergences the bound would be negative."""
    curve = tacit.Renyi(orders=(2.0,), epsilons=(0.5,))
    printed = math.log(1 + 0.1**2 * 4 * (0.5 - 1))
    mended = without_replacement_renyi(curve, 0.1).renyi(2.0)
    assert printed < 0 < mended
    assert mended == pytest.approx(math.log(1 + 0.01 * min(4 * math.expm1(0.5), 2 * math.exp(0.5))))


@given(any_closed, st.floats(0, 1))
def test_sampling_never_hurts(bound: Bound, rate: float) -> None:
    if not isinstance(bound, tacit.Pure | tacit.Approximate | tacit.guarantees.Pointwise):
        return
    for scheme in ("poisson", "without-replacement"):
        after = tacit.subsample(bound, rate=rate, scheme=scheme)
        for e in EPSILONS:
            assert after.delta_at(e) <= bound.delta_at(e) * (1 + 1e-12)


def test_rates_of_zero_and_one() -> None:
    pure = tacit.Pure(epsilon=1.0)
    assert tacit.subsample(pure, rate=1.0, scheme="poisson") == pure
    assert tacit.subsample(pure, rate=0.0, scheme="poisson") == tacit.Pure(epsilon=0.0)
    huge = tacit.subsample(tacit.Pure(epsilon=1000.0), rate=0.5, scheme="poisson")
    assert float(huge.epsilon) == pytest.approx(1000 + math.log(0.5))  # type: ignore[attr-defined]
    tiny = tacit.subsample(tacit.Pure(epsilon=1e-12), rate=0.5, scheme="poisson")
    assert float(tiny.epsilon) == pytest.approx(5e-13, rel=1e-9)  # type: ignore[attr-defined]


def test_what_sampling_refuses() -> None:
    with pytest.raises(tacit.NoLaw, match="concentrated"):
        tacit.subsample(tacit.Concentrated(rho=0.1), rate=0.1, scheme="poisson")
    with pytest.raises(UnknownName, match="poisson"):
        tacit.subsample(tacit.Pure(epsilon=1), rate=0.1, scheme="poison")
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidParameter):
            tacit.subsample(tacit.Pure(epsilon=1), rate=bad, scheme="poisson")
    replace = tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows(neighbours="replace-one"))
    assert replace.subsampled(rate=0.1, scheme="poisson").bound == tacit.Pure(epsilon=1)
    assert replace.subsampled(rate=0.1, scheme="without-replacement").bound.delta_at(0.5) == 0.0
    add = tacit.Guarantee(bound=tacit.Pure(epsilon=1), unit=tacit.rows())
    with pytest.raises(tacit.NoLaw, match="without-replacement"):
        add.subsampled(rate=0.1, scheme="without-replacement")
    with pytest.raises(tacit.NoLaw, match="integer orders"):
        tacit.subsample(tacit.Renyi(orders=(1.5,), epsilons=(1.0,)), rate=0.1, scheme="poisson")


def test_zcdp_has_no_sampling_law_numerically() -> None:
    """The divergence of sampled Gaussian noise returns to that of the whole at large orders."""
    mu, rate = 0.5, 0.1
    ratios = []
    for order in (2, 64, 256):
        mean = sum(
            math.exp(
                math.lgamma(order + 1)
                - math.lgamma(j + 1)
                - math.lgamma(order - j + 1)
                + (order - j) * math.log(1 - rate)
                + j * math.log(rate)
                + j * (j - 1) * mu**2 / 2
                - order * (order - 1) * mu**2 / 2
            )
            for j in range(order + 1)
        )
        sampled = (math.log(mean) + order * (order - 1) * mu**2 / 2) / (order - 1)
        ratios.append(sampled / (order * mu**2 / 2))
    assert ratios[0] < 0.02
    assert ratios[2] > 0.9
