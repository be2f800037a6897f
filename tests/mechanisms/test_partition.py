"""Unknown keys: every claim by enumeration of all outcomes on all small neighbours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from scipy.special import ndtr

from tacit.accounting import events
from tacit.errors import InvalidParameter
from tacit.mechanisms.partition import GaussianSelection, OptimalSelection, partition_selection
from tacit.noise import SeededSource


def neighbours(keys, most, *, t, replaced, group=1):
    """All pairs of supports of `keys` keys up to `most` that differ in one unit (or group) of t keys."""
    single = [np.array(v) for v in itertools.product((0, 1), repeat=keys) if sum(v) <= t]
    adds = {tuple(sum(c)) for c in itertools.combinations_with_replacement(single, group)}
    for add in map(np.array, adds):
        for take in map(np.array, adds) if replaced else [np.zeros(keys, dtype=int)]:
            for base in itertools.product(range(most + 1), repeat=keys):
                left, right = np.array(base) + add, np.array(base) + take
                if (left != right).any():
                    yield tuple(left), tuple(right)


def touched(keys, replaced, group=1):
    """So many keys can change between neighbours, by the definition: those of one version of a unit, or of two."""
    return keys * group * (2 if replaced else 1)


def product(laws):
    out = np.ones(1)
    for law in laws:
        out = np.multiply.outer(out, law).reshape(-1)
    return out


def excess(left, right, epsilon):
    p, q = product(left), product(right)
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())


def name_law(m, n):
    p = m.keep_probability(n)
    return np.array([1 - p, p])


def count_law(m, n, width):
    """Not named, or the noisy count n + center - J."""
    steps = np.diff([0.0, *(r / 2**128 for r in m.distribution.reached)])
    out = np.zeros(width)
    for j, p in enumerate(steps, start=1):
        out[n + m.distribution.center - j if j <= n else -1] += p
    return out


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0, 15.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-20])
def test_one_key_is_private_exactly_and_cannot_be_better(epsilon, delta):
    m = OptimalSelection(epsilon=epsilon, delta=delta)
    reached = [0, *m.distribution.reached]
    with flint.ctx.workprec(400):
        grow, d = flint.arb(epsilon).exp(), flint.arb(delta)
        for a, b in itertools.pairwise(reached):
            p, q = (flint.arb(flint.fmpq(x, 2**128)) for x in (a, b))
            assert q <= grow * p + d
            assert 1 - p <= grow * (1 - q) + d
            best = min(float(grow * p + d), float(1 - (1 - p - d) / grow), 1.0)
            assert float(q) == pytest.approx(best, rel=1e-12)
    first = [m.keep_probability(n) for n in range(1, 4)]
    if first[2] < 1e-3:
        closed = [delta * math.expm1(n * epsilon) / math.expm1(epsilon) for n in (1, 2, 3)]
        assert first == pytest.approx(closed, rel=1e-4)


@pytest.mark.parametrize(
    ("keys", "replaced", "group"), [(1, False, 1), (1, True, 1), (2, False, 1), (1, False, 2), (2, True, 1)]
)
def test_names_by_enumeration(keys, replaced, group):
    epsilon, delta = 1.5, 0.05
    m = OptimalSelection(epsilon=epsilon, delta=delta, keys=keys, replaced=replaced, group=group)
    moved = touched(keys, replaced, group)
    most = min(len(m.distribution.reached), 2 if moved == 4 else 30)
    worst = max(
        excess([name_law(m, n) for n in a], [name_law(m, n) for n in b], epsilon)
        for a, b in neighbours(moved, most, t=keys, replaced=replaced, group=group)
    )
    assert worst <= delta * (1 + 1e-9)
    assert worst >= delta * (0.9 if group == 1 and not replaced else 0.3)


@pytest.mark.parametrize(("keys", "replaced"), [(1, False), (1, True), (2, False)])
def test_counts_by_enumeration(keys, replaced):
    epsilon, delta = 1.5, 0.05
    m = OptimalSelection(epsilon=epsilon, delta=delta, keys=keys, replaced=replaced)
    moved = touched(keys, replaced)
    most = len(m.distribution.reached) + 1 if moved == 1 else 4
    width = most + 2 + m.distribution.center + len(m.distribution.reached)
    worst = max(
        excess([count_law(m, n, width) for n in a], [count_law(m, n, width) for n in b], epsilon)
        for a, b in neighbours(moved, most, t=keys, replaced=replaced)
    )
    assert (0.5 if replaced else 0.9) * delta <= worst <= delta * (1 + 1e-9)


def threshold_law(m, n):
    """Not named, or the noisy count, by the normal law of rounded noise."""
    if n == 0:
        out = np.zeros(200)
        out[-1] = 1.0
        return out
    std = float(m.noise_std)
    values = np.arange(m.threshold, m.threshold + 199)
    shown = ndtr((values + 0.5 - n) / std) - ndtr((values - 0.5 - n) / std)
    return np.array([*shown, 1 - shown.sum()])


@pytest.mark.parametrize(
    ("keys", "replaced", "group"), [(1, False, 1), (1, True, 1), (2, False, 1), (1, False, 2)]
)
def test_threshold_by_enumeration(keys, replaced, group):
    epsilon, delta = 1.0, 0.01
    m = GaussianSelection.for_target(epsilon=epsilon, delta=delta, keys=keys, replaced=replaced, group=group)
    assert m.bound.delta <= delta
    moved = touched(keys, replaced, group)
    supports = [0, 1, m.threshold] if moved > 1 else [0, 1, m.threshold // 2, m.threshold]
    pairs = [(a, b) for a, b in neighbours(moved, 0, t=keys, replaced=replaced, group=group)]
    worst = 0.0
    for a, b in pairs:
        for base in itertools.product(supports, repeat=moved):
            left = [threshold_law(m, x + y) for x, y in zip(base, a, strict=True)]
            right = [threshold_law(m, x + y) for x, y in zip(base, b, strict=True)]
            worst = max(worst, excess(left, right, epsilon))
    assert worst <= m.bound.delta
    assert worst >= (0.6 if group == 1 else 0.2) * m.bound.delta


def test_the_event_of_the_threshold_covers_its_curve():
    m = GaussianSelection.for_rho(rho=0.1, delta=1e-3, keys=2)
    assert m.new <= 1e-3
    assert m.rho == pytest.approx(0.1)
    assert isinstance(m.event, events.ComposedEvent)
    mu = m._mu(2)
    for epsilon in (0.2, 0.5, 1.0):
        gauss = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        assert m.delta(epsilon) <= m.new + (1 - m.new) * gauss + 1e-12
    worst = max(
        excess([threshold_law(m, n) for n in a], [threshold_law(m, n) for n in b], 0.5)
        for a, b in neighbours(2, 1, t=2, replaced=False)
    )
    assert worst <= m.delta(0.5)


def test_the_form_is_chosen_by_the_support_it_needs():
    few = partition_selection(epsilon=1, delta=1e-6)
    assert isinstance(few, OptimalSelection)
    assert (few.support_for(0.5), few.support_for(0.95)) == (14, 16)
    assert few.event == events.ApproximateEvent(epsilon=1.0, delta=1e-6)
    assert isinstance(partition_selection(epsilon=1, delta=1e-6, keys=2), OptimalSelection)
    many = partition_selection(epsilon=1, delta=1e-6, keys=30)
    assert isinstance(many, GaussianSelection)
    assert many.support_for(0.5) < 0.5 * OptimalSelection(epsilon=1, delta=1e-6, keys=30).support_for(0.5)
    assert isinstance(many.event, events.ApproximateEvent)
    crowd = partition_selection(epsilon=0.1, delta=1e-9, keys=10_000)
    assert isinstance(crowd, GaussianSelection)
    assert crowd.bound.delta <= 1e-9
    assert "threshold" in many.method
    assert "optimal" in few.method
    for m in (few, many):
        n = m.support_for(0.5)
        assert m.keep_probability(n) >= 0.5 > m.keep_probability(n - 1)
        assert m.keep_probability(0) == 0.0


@pytest.mark.parametrize("kind", ["optimal", "gaussian"])
def test_draws_follow_the_law(kind):
    m = partition_selection(epsilon=1, delta=1e-4, keys=1 if kind == "optimal" else 20)
    runs = 200_000
    n = m.support_for(0.3)
    p = m.keep_probability(n)
    for kept in (m.select(np.full(runs, n), source=SeededSource(seed=1)),
                 m.release_counts(np.full(runs, n), source=SeededSource(seed=2))):  # fmt: skip
        # Six standard deviations.
        assert abs(kept.mask.mean() - p) <= 6 * math.sqrt(p * (1 - p) / runs)
        assert not kept.publishable
    large = np.full(runs, 10_000)
    counts = m.release_counts(large, source=SeededSource(seed=3))
    assert counts.mask.all()
    inside = (np.abs(counts.counts - large) <= m.error_quantile(0.9)).mean()
    assert inside >= 0.9 - 6 * math.sqrt(0.09 / runs)
    assert (np.abs(counts.counts - large) <= m.error_quantile(0.9) - 1).mean() < 0.9
    small = m.release_counts(np.ones(1000, dtype=int), source=SeededSource(seed=4))
    assert (small.counts[~small.mask] == 0).all()


def test_a_tie_of_the_first_word_is_settled_by_the_second():
    m = OptimalSelection(epsilon=Fraction(1), delta=Fraction(1, 1000))

    class Scripted(SeededSource):
        def __init__(self, words):
            super().__init__(seed=0)
            self._script = list(words)

        def words(self, count):
            out, self._script = self._script[:count], self._script[count:]
            return np.array(out, dtype=np.uint64)

    high, low = int(m.distribution.high[2]), int(m.distribution.low[2])
    assert m.select([3], source=Scripted([high, low - 1])).mask[0]
    assert not m.select([3], source=Scripted([high, low])).mask[0]
    assert m.distribution.draw((1,), Scripted([high, low - 1]))[0] == 3
    assert m.distribution.draw((1,), Scripted([high, low]))[0] == 4


def test_bad_input():
    m = OptimalSelection(epsilon=1, delta=1e-6)
    for wrong in ([0, 3], [1.0], [-1]):
        with pytest.raises(InvalidParameter):
            m.select(wrong)
    for wrong in ({"delta": 0}, {"delta": 1e-40}, {"epsilon": 0}, {"keys": 0}, {"group": 0}, {"rho": 1.0}):
        with pytest.raises(InvalidParameter):
            partition_selection(**{"epsilon": 1.0, "delta": 1e-6, **wrong})
    with pytest.raises(InvalidParameter):
        partition_selection(delta=1e-6)
    assert m.select(np.empty(0, dtype=int)).mask.shape == (0,)
    assert partition_selection(rho=0.1, delta=1e-6).select(np.empty(0, dtype=int)).mask.shape == (0,)
