"""Questions that were once refused, against laws computed from the definition: neighbours, samples, curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

import tacit
from support import independent as second
from support.promises import REPLACE, promise
from tacit.guarantees import Neighbours, Unit
from tacit.guarantees.implication import Order, compare
from tacit.guarantees.units import steps
from tacit.pld import FinitePair, PoissonSampledPair, RandomizedResponsePair

AT = (0.0, 0.1, 0.4, 1.0, 1.7, 3.0)
Law = list[float]


# --- the pure epsilon that hides in a bound -----------------------------------------------------------


def test_a_curve_that_reaches_zero_is_pure() -> None:
    assert tacit.convert(tacit.Approximate(epsilon=1, delta=0), tacit.Pure) == tacit.Pure(epsilon=1)
    assert tacit.convert(tacit.guarantees.Pointwise(epsilon=1, delta=0), tacit.Pure) == tacit.Pure(epsilon=1)
    assert tacit.convert(tacit.Profile.laplace(epsilon=0.5), tacit.Pure) == tacit.Pure(epsilon=0.5)
    top = tacit.Renyi(orders=(2.0, math.inf), epsilons=(0.5, 1.0))
    assert tacit.convert(top, tacit.Pure) == tacit.Pure(epsilon=1)
    both = tacit.compose(tacit.Profile.laplace(epsilon=0.5), tacit.Profile.laplace(epsilon=0.25))
    assert float(tacit.convert(both, tacit.Pure).epsilon) == pytest.approx(0.75, rel=1e-12)
    assert tacit.convert(both, tacit.Pure).epsilon >= 0.75
    tilted = tacit.Profile.of_pair(FinitePair(p=(0.5, 0.3, 0.2), q=(0.2, 0.3, 0.5)))
    assert tacit.convert(tilted, tacit.Pure).epsilon >= math.log(2.5) * (1 - 1e-15)


@pytest.mark.parametrize(
    "bound",
    [
        tacit.Approximate(epsilon=1, delta=1e-300),
        tacit.Profile.gaussian(mu=0.1),
        tacit.Renyi(orders=(2.0,), epsilons=(0.1,)),
        tacit.Concentrated(rho=1e-9),
        tacit.Profile.of(tacit.Approximate(epsilon=1, delta=1e-6)),
    ],
)
def test_what_is_never_zero_gives_no_pure_epsilon(bound: tacit.Bound) -> None:
    with pytest.raises(tacit.NoLaw, match="above 0 at every epsilon"):
        tacit.convert(bound, tacit.Pure)


def test_what_follows_from_a_hidden_pure_epsilon() -> None:
    hidden = tacit.Approximate(epsilon=1, delta=0)
    for target in (tacit.Concentrated, tacit.GaussianDP):
        assert tacit.convert(hidden, target) == tacit.convert(tacit.Pure(epsilon=1), target)
    curve = tacit.Profile.gaussian(mu=0.5)
    assert tacit.convert(curve, tacit.GaussianDP).mu == pytest.approx(0.5, rel=1e-12)
    assert tacit.convert(curve, tacit.Concentrated).rho == pytest.approx(0.125, rel=1e-12)


def test_groups_of_curves_have_divergences() -> None:
    """A bit through randomised response after Poisson sampling, two of them: by the definition."""
    inner = tacit.subsample(tacit.Profile.laplace(epsilon=0.5), rate=0.2, scheme="poisson")
    grouped = tacit.group(inner, size=2)
    for order in (1.5, 2.0, 4.0):
        told = tacit.convert(grouped, tacit.Renyi, orders=(order,)).renyi(order)
        assert math.isfinite(told)
        assert told <= 2 * inner.epsilon_at(0.0) * (1 + 1e-12)
    # two steps of Gaussian noise are mu = 1: the law must not be below the exact divergence
    mixed = tacit.compose(tacit.Profile.gaussian(mu=0.5), tacit.Profile.laplace(epsilon=1e-9), law="profile")
    for order in (1.5, 2.0, 8.0):
        assert tacit.group(mixed, size=2).renyi(order) >= order * 1.0**2 / 2


# --- a secret sample, enumerated ----------------------------------------------------------------------


def outcome(sample: Sequence[int], *, tells_size: bool, epsilon: float = 0.7) -> Law:
    """A noisy parity-like answer whose laws on any two samples are within epsilon a step; perhaps with the size."""
    total = sum(sample)
    weights = np.exp(-epsilon / 2 * np.abs(np.arange(8) - total))
    law = weights / weights.sum()
    if not tells_size:
        return list(law)
    return [float(law[j]) if len(sample) == size else 0.0 for size in range(7) for j in range(8)]


def poisson(table: Sequence[int], rate: float, mechanism: Callable[[Sequence[int]], Law]) -> Law:
    parts = []
    for kept in itertools.product((0, 1), repeat=len(table)):
        chance = math.prod(rate if k else 1 - rate for k in kept)
        parts.append(chance * np.array(mechanism([v for v, k in zip(table, kept, strict=True) if k])))
    return list(np.sum(parts, axis=0))


def subsets(table: Sequence[int], size: int, mechanism: Callable[[Sequence[int]], Law]) -> Law:
    drawn = list(itertools.combinations(table, size))
    return list(np.mean([mechanism(sample) for sample in drawn], axis=0))


def tables(most: int) -> list[tuple[int, ...]]:
    return [t for n in range(most + 1) for t in itertools.combinations_with_replacement((0, 1), n)]


def apart(a: Sequence[int], b: Sequence[int]) -> int:
    """Rows that must be added or removed."""
    return sum(abs(a.count(v) - b.count(v)) for v in (0, 1))


def curve_of(
    mechanism: Callable[[Sequence[int]], Law], near: Callable[..., bool], most: int = 5
) -> tacit.Profile:
    """The worst curve over neighbours, as tabulated pairs."""
    pairs = [
        tacit.Profile.of_pair(FinitePair(p=tuple(_exact(mechanism(a))), q=tuple(_exact(mechanism(b)))))
        for a, b in itertools.combinations(tables(most), 2)
        if near(a, b)
    ]
    return tacit.Profile.worst(pairs)


def _exact(law: Law) -> list[Fraction]:
    parts = [Fraction(x) for x in law]
    return [x / sum(parts) for x in parts]


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_poisson_sampling_of_groups_is_above_the_enumerated_curve(rate: float) -> None:
    def mechanism(sample: Sequence[int]) -> Law:
        return outcome(sample, tells_size=False)

    known = promise(
        curve_of(mechanism, lambda a, b: apart(a, b) <= 2), unit=tacit.group_of(tacit.rows(), size=2)
    )
    told = known.subsampled(rate=rate, scheme="poisson")
    plain = promise(tacit.Pure(epsilon=2 * 0.7), unit=known.unit).subsampled(rate=rate, scheme="poisson")
    worst = dict.fromkeys(AT, 0.0)
    for a, b in itertools.combinations(tables(4), 2):
        if apart(a, b) <= 2:
            p, q = poisson(a, rate, mechanism), poisson(b, rate, mechanism)
            for e in AT:
                worst[e] = max(worst[e], second.both(p, q, e))
    for e, value in worst.items():
        assert value <= told.delta_at(e) + 1e-12
        assert value <= plain.delta_at(e) + 1e-12
    assert worst[0.0] > 0.4 * told.delta_at(0.0)  # and not far above it
    w = 1 - (1 - rate) ** 2
    assert float(plain.bound.epsilon) == pytest.approx(math.log1p(w * math.expm1(1.4)))  # type: ignore[attr-defined]


def any_one(sample: Sequence[int]) -> Law:
    """Whether a 1 is among the rows, told through randomised response: two rows matter as one would."""
    truth, lie = second.randomized_response(0.7)
    return truth if any(sample) else lie


def test_the_rate_of_a_group_is_reached() -> None:
    rate, unit = 0.3, tacit.group_of(tacit.rows(), size=3)
    told = promise(tacit.Pure(epsilon=0.7), unit=unit).subsampled(rate=rate, scheme="poisson")
    with_ones, without = poisson((1, 1, 1), rate, any_one), poisson((), rate, any_one)
    assert math.log(with_ones[0] / without[0]) == pytest.approx(float(told.bound.epsilon))  # type: ignore[attr-defined]
    # two exchanged rows of ten, a subset of three: hit with probability 8/15, and the law says at most 6/10
    fixed = promise(tacit.Pure(epsilon=0.7), unit=tacit.group_of(REPLACE, size=2))
    told = fixed.subsampled(rate=0.3, scheme="without-replacement")
    p, q = subsets((1, 1, *[0] * 8), 3, any_one), subsets((0,) * 10, 3, any_one)
    reached = math.log(p[0] / q[0])
    assert reached == pytest.approx(math.log1p(8 / 15 * math.expm1(0.7)))
    assert reached <= float(told.bound.epsilon) <= 1.1 * reached  # type: ignore[attr-defined]


def test_subsets_of_fixed_size_and_two_exchanged_rows() -> None:
    def mechanism(sample: Sequence[int]) -> Law:
        return outcome(sample, tells_size=False)

    n, m = 5, 2
    unit = tacit.group_of(REPLACE, size=2)
    known = promise(
        curve_of(mechanism, lambda a, b: len(a) == len(b) and apart(a, b) <= 4, most=3), unit=unit
    )
    told = known.subsampled(rate=m / n, scheme="without-replacement")
    for a, b in itertools.combinations([t for t in tables(n) if len(t) == n], 2):
        if apart(a, b) <= 4:
            for e in AT:
                value = second.both(subsets(a, m, mechanism), subsets(b, m, mechanism), e)
                assert value <= told.delta_at(e) + 1e-12


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_poisson_sampling_under_replace_one_is_reached_where_the_size_is_told(rate: float) -> None:
    def mechanism(sample: Sequence[int]) -> Law:
        return outcome(sample, tells_size=True)

    known = promise(curve_of(mechanism, lambda a, b: len(a) == len(b) and apart(a, b) == 2), unit=REPLACE)
    told = known.subsampled(rate=rate, scheme="poisson")
    alone = promise(
        curve_of(mechanism, lambda a, b: len(a) == len(b) and apart(a, b) == 2, most=1), unit=REPLACE
    )
    reached = alone.subsampled(rate=rate, scheme="poisson")
    p, q = poisson((0,), rate, mechanism), poisson((1,), rate, mechanism)
    for e in AT:
        for a, b in itertools.combinations([t for t in tables(4) if len(t) == 4], 2):
            if apart(a, b) == 2:
                assert second.both(poisson(a, rate, mechanism), poisson(b, rate, mechanism), e) <= (
                    told.delta_at(e) + 1e-12
                )
        assert second.both(p, q, e) == pytest.approx(reached.delta_at(e), rel=1e-6, abs=1e-12)
    # the law for add-or-remove would promise too much
    wrong = tacit.subsample(alone.bound, rate=rate, scheme="poisson")
    assert second.both(p, q, 0.5) > wrong.delta_at(0.5) * (1 + 1e-6)
    for order in (1.5, 2.0, 6.0):
        p_full, q_full = [x for x in p if x > 0], [x for x in q if x > 0]
        assert second.renyi(p_full, q_full, order) <= told.renyi(order) * (1 + 1e-9)
    table = promise(tacit.convert(known.bound, tacit.Renyi, orders=(2.0, 6.0)), unit=REPLACE)
    assert table.subsampled(rate=rate, scheme="poisson").renyi(2.0) == pytest.approx(told.renyi(2.0))


def test_poisson_sampling_of_gaussian_noise_under_replace_one() -> None:
    whole = tacit.GaussianDP(mu=1)
    told = promise(whole, unit=REPLACE).subsampled(rate=0.1, scheme="poisson")
    for e in (0.0, 0.5, 2.0):
        assert told.delta_at(e) == pytest.approx(0.1 * second.gaussian_hockey_stick(1.0, e), rel=1e-9)
    point = promise(tacit.Approximate(epsilon=1, delta=1e-5), unit=REPLACE)
    assert point.subsampled(rate=0.1, scheme="poisson").bound.parameters == pytest.approx(
        {"epsilon": 1.0, "delta": 1e-6}
    )
    for rate, kept in ((1.0, whole.delta(1.0)), (0.0, 0.0)):
        assert promise(whole, unit=REPLACE).subsampled(rate=rate, scheme="poisson").delta_at(1.0) == (
            pytest.approx(kept)
        )
    with pytest.raises(tacit.NoLaw, match="size of the sample"):
        promise(whole).subsampled(rate=0.1, scheme="without-replacement")


# --- curves against curves ----------------------------------------------------------------------------


def laplace(epsilon: float) -> tacit.Profile:
    return tacit.Profile.laplace(epsilon=epsilon)


def test_curves_of_one_kind() -> None:
    assert promise(laplace(0.5)).implies(promise(laplace(1))).chain[-1] == "curve-order"
    assert not promise(laplace(1)).implies(promise(laplace(0.5)))
    sampled = tacit.subsample(tacit.Profile.gaussian(mu=1), rate=0.1, scheme="poisson")
    more = tacit.subsample(tacit.Profile.gaussian(mu=1.5), rate=0.2, scheme="poisson")
    assert promise(sampled).implies(promise(more))
    assert not promise(more).implies(promise(sampled))
    many, few = tacit.repeat(sampled, 10, law="profile"), tacit.repeat(sampled, 9, law="profile")
    assert promise(few).implies(promise(many))
    assert not promise(many).implies(promise(few))


def test_curves_of_different_kinds_are_compared_at_points() -> None:
    assert promise(tacit.Pure(epsilon=0.1)).implies(promise(laplace(1)))
    against = promise(tacit.Pure(epsilon=1)).implies(promise(laplace(1)))  # flatter than randomised response
    assert not against
    assert "is larger" in against.reason
    answers = tacit.Profile.of_pair(RandomizedResponsePair(epsilon=0.5, categories=4))
    assert promise(answers).implies(promise(laplace(1)))
    assert not promise(laplace(1)).implies(promise(answers))
    twice = tacit.compose(laplace(0.3), laplace(0.2), law="profile")
    assert promise(twice).implies(promise(laplace(0.7)))
    undecided = promise(tacit.Profile.of(tacit.Concentrated(rho=1e-6))).implies(promise(laplace(1)))
    assert not undecided
    assert undecided.reason


def test_comparisons_agree_with_tables() -> None:
    """Random pairs of laws: below and above as the definition says, in both orders."""
    rng = np.random.default_rng(23)
    seen = set()
    for _ in range(60):
        p, q = (list(rng.dirichlet(np.full(4, 3.0))) for _ in range(2))
        keep = float(rng.uniform(0.2, 1.0))
        mean = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        r = [keep * a + (1 - keep) * m for a, m in zip(p, mean, strict=True)]
        s = [keep * b + (1 - keep) * m for b, m in zip(q, mean, strict=True)]
        u, v = (list(rng.dirichlet(np.full(4, 3.0))) for _ in range(2))
        for one, other in (((r, s), (p, q)), ((u, v), (p, q))):
            left, right = (
                tacit.Profile.of_pair(FinitePair(p=tuple(_exact(x)), q=tuple(_exact(y))))
                for x, y in (one, other)
            )
            verdict, _ = compare(left, right)
            grid = np.linspace(-4, 4, 321)
            above = any(
                second.hockey_stick(*one, e) > second.hockey_stick(*other, e) + 1e-9
                or second.hockey_stick(one[1], one[0], e) > second.hockey_stick(other[1], other[0], e) + 1e-9
                for e in grid
            )
            seen.add(verdict)
            if verdict is Order.BELOW:
                assert not above
            if verdict is Order.ABOVE:
                assert above
    assert {Order.BELOW, Order.ABOVE} <= seen


def test_the_order_of_neighbours_matters() -> None:
    """A pair and its swap: larger in one order, smaller in the other, is no implication."""
    pair = PoissonSampledPair(pair=RandomizedResponsePair(epsilon=2.0), rate=0.2)
    forward = tacit.Profile.of_pair(pair).directions
    mine = tacit.Profile(directions=(forward[0], forward[0].swapped()))
    turned = tacit.Profile(directions=(forward[1], forward[1].swapped()))
    assert compare(mine, turned)[0] is Order.ABOVE
    assert compare(turned, mine)[0] is Order.ABOVE
    assert compare(mine, tacit.Profile.of(tacit.Pure(epsilon=3)))[0] is Order.BELOW
    # one curve for both orders: lower from 0 on, higher below 0
    more = tacit.Profile.of_pair(PoissonSampledPair(pair=RandomizedResponsePair(epsilon=2.0), rate=0.25))
    low, high = tacit.Profile(directions=forward[1:]), tacit.Profile(directions=more.directions[:1])
    verdict, at = compare(low, high)
    assert verdict is Order.ABOVE
    assert at is not None
    assert at < 0


# --- people with more and with fewer rows -------------------------------------------------------------


def data_of(unit: tacit.guarantees.People) -> set[tuple[int, ...]]:
    groups = 3 if unit.groups is None else unit.groups
    return {
        c
        for c in itertools.product(range(unit.at_most + 1), repeat=3)
        if sum(c) <= unit.at_most and sum(x > 0 for x in c) <= groups
    }


def test_more_rows_cover_fewer_and_not_the_other_way() -> None:
    made = [
        tacit.people("id", at_most=m, groups=g, neighbours=n)
        for m in (1, 2, 3)
        for g in (None, 1, 2)
        for n in Neighbours
    ]
    for known, wanted in itertools.product(made, made):
        if known.neighbours is not wanted.neighbours:
            continue
        if data_of(wanted) <= data_of(known):
            assert steps(known, wanted) == (1, () if known == wanted else ("fewer-neighbours",))
        else:
            with pytest.raises(tacit.errors.UnitMismatch):
                steps(known, wanted)


def test_twelve_rows_and_six() -> None:
    twelve: Unit = tacit.people("id", at_most=12)
    six = tacit.people("id", at_most=6)
    assert promise(tacit.Pure(epsilon=1), unit=twelve).implies(promise(tacit.Pure(epsilon=1), unit=six))
    back = promise(tacit.Pure(epsilon=1), unit=six).implies(promise(tacit.Pure(epsilon=100), unit=twelve))
    assert not back
    assert "few rows" in back.reason
