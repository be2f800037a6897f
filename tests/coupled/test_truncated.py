"""Truncated histograms: thresholds from the literature of the project, and divergences summed outcome by outcome."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln

from tacit import coupled
from tacit.coupled.noiseless.histograms import (
    BinomialSample,
    FixedSize,
    PoissonSample,
    cell_delta,
    cell_part,
    directions,
    sample_then_truncate,
    sampled_delta,
    truncated_histogram,
)
from tacit.errors import InvalidInput, NoLaw
from tacit.exact.rounding import ball, precision


def poisson(mean: float, most: int) -> np.ndarray:
    m = np.arange(most)
    return np.exp(m * math.log(mean) - mean - gammaln(m + 1))


def binomial(n: int, q: float, most: int) -> np.ndarray:
    m = np.arange(most)
    inside = m <= n
    out = np.zeros(most)
    k = m[inside]
    out[inside] = np.exp(
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * math.log(q) + (n - k) * math.log1p(-q)
    )
    return out


def truncated(law: np.ndarray, k: int) -> np.ndarray:
    out = law.copy()
    out[0] = law[:k].sum()
    out[1:k] = 0
    return out


def divergence(p: np.ndarray, q: np.ndarray, factor: float) -> float:
    return max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum())


def of_cell(law: np.ndarray, k: int, factor: float) -> float:
    """From the definition: T(M + 1) and T(M), outcome by outcome."""
    more = np.concatenate([[0.0], law[:-1]])
    return divergence(truncated(more, k), truncated(law, k), factor)


@pytest.mark.parametrize(
    ("epsilon", "delta", "threshold"), [(1, 1e-5, 20), (1, 1e-6, 26), (0.5, 1e-6, 78), (0.25, 1e-6, 259)]
)
def test_thresholds_of_poisson_samples(epsilon: float, delta: float, threshold: int) -> None:
    found = truncated_histogram(sampling="poisson", epsilon=epsilon, delta=delta)
    assert found.threshold == threshold
    assert found.sentence.startswith("This is private provided that ")
    assert cell_delta(PoissonSample())(threshold - 1, float(epsilon)).low > delta


@pytest.mark.parametrize(("rate", "threshold"), [(0.1, 30), (0.5, 60), (0.8, 162)])
def test_thresholds_of_binomial_samples(rate: float, threshold: int) -> None:
    assert truncated_histogram(sampling="binomial", rate=rate, epsilon=1, delta=1e-6).threshold == threshold


@pytest.mark.parametrize(("epsilon", "k"), [(0.0, 5), (0.25, 3), (0.25, 40), (1.0, 2), (1.0, 26), (2.0, 9)])
def test_no_mean_is_worse_and_one_is_as_bad(epsilon: float, k: int) -> None:
    claimed = cell_delta(PoissonSample())(k, epsilon).high
    factor = math.exp(epsilon)
    scanned = [
        of_cell(poisson(mean, 40 + int(6 * k * factor)), k, factor)
        for mean in np.geomspace(0.02 * k, 3 * k * factor, 3000)
    ]
    assert max(scanned) <= claimed * (1 + 1e-9)
    assert max(scanned) >= claimed * (1 - 1e-4)


@pytest.mark.parametrize(
    ("epsilon", "k", "rate"), [(1.0, 6, 0.5), (0.5, 10, 0.1), (1.0, 12, 0.8), (0.0, 4, 0.3)]
)
def test_no_number_of_members_is_worse(epsilon: float, k: int, rate: float) -> None:
    claimed = cell_delta(BinomialSample(rate=Fraction(str(rate))))(k, epsilon).high
    factor = math.exp(epsilon)
    scanned = [of_cell(binomial(n, rate, 600), k, factor) for n in range(int(3 * k * factor / rate))]
    assert max(scanned) == pytest.approx(claimed, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "k"), [(0.25, 5), (1.0, 6), (0.0, 3)])
def test_each_direction_is_exact(epsilon: float, k: int) -> None:
    """The smaller one too, which the larger hides: worst over means, and over numbers of members at rate 1/3."""
    factor = math.exp(epsilon)
    means = np.geomspace(0.02 * k, 4 * k * factor, 3000)
    families = [
        (PoissonSample(), [poisson(mean, 400) for mean in means], 1e-4),
        (
            BinomialSample(rate=Fraction(1, 3)),
            [binomial(n, 1 / 3, 400) for n in range(int(12 * k * factor))],
            1e-9,
        ),
    ]
    for sampling, laws, near in families:
        with precision(128):
            claimed = [
                float(x.mid()) for x in directions(sampling, k, ball(epsilon).exp(), ball(epsilon).exp())
            ]
        for turn, value in enumerate(claimed):
            worst = 0.0
            for law in laws:
                a, b = truncated(np.concatenate([[0.0], law[:-1]]), k), truncated(law, k)
                a, b = (b, a) if turn else (a, b)
                worst = max(worst, float(np.maximum(a - factor * b, 0).sum()))
            assert worst <= value * (1 + 1e-9)
            assert worst >= value * (1 - near)


def test_larger_rates_and_known_rows_need_larger_thresholds() -> None:
    found = [cell_delta(BinomialSample(rate=Fraction(q, 10)))(20, 0.7).low for q in range(1, 10)]
    assert found == sorted(found)
    assert cell_delta(PoissonSample())(20, 0.7).high <= found[0]
    plain = truncated_histogram(sampling="poisson", epsilon=1, delta=1e-6)
    told = truncated_histogram(sampling="poisson", epsilon=1, delta=1e-6, known_rows=7)
    assert plain.threshold is not None
    assert told.threshold == plain.threshold + 7


def test_the_checker_agrees_on_a_small_population() -> None:
    """Five people in one cell and two in another, sampled at rate 1/2, counts below 3 hidden."""
    k, rate = 3, Fraction(1, 2)

    def table(rows: tuple[object, ...]) -> tuple[int, ...]:
        counts = [sum(r == cell for r in rows) for cell in ("a", "b")]
        return tuple(c if c >= k else 0 for c in counts)

    deltas = []
    for people in (3, 4, 5, 6):
        prior = coupled.sampled_rows(["a"] * people + ["b"] * 2, size=coupled.binomial_size(people + 2, rate))
        simulator = coupled.Simulator(
            name="without the row", answer=lambda pair, rest: {table(rest): Fraction(1)}
        )
        mechanism = coupled.FiniteMechanism.of(table, [prior])
        found = coupled.Distributional(priors=(prior,)).delta(mechanism, epsilon="ln 2", simulator=simulator)
        deltas.append(found.interval.high)
    # The worst numbers of other members at e^epsilon = 2 are 2 and 5: three people in all, and six.
    with precision(128):
        from tacit.coupled.noiseless.histograms import delta_of_cell

        claimed = float(delta_of_cell(BinomialSample(rate=rate), k, ball(2)).mid())
    assert max(deltas) == pytest.approx(claimed, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "k", "rate"), [(1.0, 8, 0.1), (0.5, 12, 0.5), (0.2, 9, 0.8)])
def test_sample_then_truncate_is_differentially_private(epsilon: float, k: int, rate: float) -> None:
    claimed = sampled_delta(BinomialSample(rate=Fraction(str(rate))))(k, epsilon).high
    factor, worst = math.exp(epsilon), 0.0
    for n in range(1000 if rate < 0.2 else 400):
        law = binomial(n, rate, 600)
        more = (1 - rate) * law + rate * np.concatenate([[0.0], law[:-1]])
        worst = max(worst, divergence(truncated(more, k), truncated(law, k), factor))
    assert worst == pytest.approx(claimed, rel=1e-9)


def test_the_population_is_protected_with_smaller_thresholds() -> None:
    assert sample_then_truncate(rate=0.1, epsilon=1.0, delta=1e-6).threshold == 8
    assert sample_then_truncate(rate=0.5, epsilon=1.0, delta=1e-6).threshold == 35
    assert "added or taken away" in str(sample_then_truncate(rate=0.8, epsilon=1.0, delta=1e-6).guarantee)


def of_fixed_size(kept: FixedSize, k: int, p: float, factor: float) -> float:
    """From the definition: the pair (count of the cell, all others) for somebody who was kept, summed over both."""
    n, discards = kept.rows, kept.discards
    d = np.arange(discards + 1)
    chances = np.exp(-kept.size_epsilon * abs(d - discards // 2)) / (n - d)
    seen = chances * (n - d)  # kept with probability N/n
    size = {n - 1 - int(i): w for i, w in zip(d, seen / seen.sum(), strict=True)}
    forth = back = 0.0
    most = int(n * p + 12 * math.sqrt(n * p) + 40 + k)
    for s in range(max(0, n - 1 - discards - most), n):
        m = np.arange(max(0, n - 1 - discards - s), min(most, n - 1 - s) + 1)
        if not m.size:
            continue
        t = m + s
        joint = np.zeros(int(m[-1]) + 3)
        joint[m] = [size[int(x)] for x in t] * np.exp(
            gammaln(t + 1) - gammaln(m + 1) - gammaln(s + 1) + m * math.log(p) + s * math.log1p(-p)
        )
        wide = np.zeros(max(joint.size, k + 2))
        wide[: joint.size] = joint
        more = np.concatenate([[0.0], wide[:-1]])
        a, b = truncated(more, k), truncated(wide, k)
        forth += np.maximum(a - factor * b, 0).sum()
        back += np.maximum(b - factor * a, 0).sum()
    return max(forth, back)


@pytest.mark.parametrize(
    ("size_epsilon", "cell_epsilon", "k"), [(0.5, 0.7, 12), (0.25, 0.75, 20), (1.0, 0.3, 25)]
)
def test_fixed_sizes_are_within_the_theorem(size_epsilon: float, cell_epsilon: float, k: int) -> None:
    kept = FixedSize.hiding(rows=1600, size_epsilon=size_epsilon, delta=1e-5)
    assert k * kept.discards <= 1600
    bound = kept.delta(k, cell_epsilon).high
    factor = math.exp(size_epsilon + cell_epsilon)
    scanned = [of_fixed_size(kept, k, mean / 1599, factor) for mean in np.geomspace(0.2 * k, 6 * k, 14)]
    assert 0 < max(scanned) <= bound


def test_hiding_the_size_does_not_make_the_poisson_threshold_safe() -> None:
    kept = FixedSize(rows=2000, discards=24, size_epsilon=1.0)
    assert of_fixed_size(kept, 26, 40 / 1999, math.e) == pytest.approx(0.0458, abs=1e-4)
    with pytest.raises(NoLaw, match="rows"):
        FixedSize(rows=500, discards=24, size_epsilon=1.0).delta(26, 1.0)


def test_a_fixed_size_adds_its_part() -> None:
    found = truncated_histogram(sampling="fixed", n=10_000, epsilon=1.0, delta=1e-6)
    parts = found.details
    assert parts["size_epsilon"] + parts["cell_epsilon"] <= 1
    assert parts["delta_at_threshold"] <= 1e-6
    assert (
        found.threshold == truncated_histogram(sampling="poisson", epsilon=0.75, delta=1e-6 * 0.92).threshold
    )
    with precision(128):
        kept = FixedSize(rows=10_000, discards=parts["discards"], size_epsilon=parts["size_epsilon"])
        weights = [float(w.mid()) for w in kept.weights()]
    assert weights[0] * 10_000 == pytest.approx(weights[-1] * (10_000 - parts["discards"]))


def test_the_two_parts_of_a_fixed_size_never_exceed_epsilon() -> None:
    for epsilon in np.linspace(0.1, 2, 50):
        for share in (0.1, 0.25, 0.3, 0.77):
            size = float(epsilon) * share
            assert Fraction(cell_part(float(epsilon), size)) + Fraction(size) <= Fraction(float(epsilon))


def test_two_numbers_give_the_third() -> None:
    k = 26
    e = truncated_histogram(sampling="poisson", threshold=k, delta=1e-6).epsilon
    assert 0.97 < e < 1
    assert of_cell(poisson((k - 1) * math.exp(-e), 200), k, math.exp(e)) <= 1e-6 * (1 + 1e-9)
    d = truncated_histogram(sampling="poisson", threshold=k, epsilon=1.0).delta
    assert d == pytest.approx(6.9496e-7, rel=1e-4)
    pair = truncated_histogram(sampling="poisson", threshold=k, delta=1e-6).epsilon_pair
    assert pair is not None
    assert (1 + math.exp(pair / 2)) * cell_delta(PoissonSample())(k, pair / 2).high <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        {"sampling": "cluster", "epsilon": 1, "delta": 1e-6},
        {"sampling": "poisson", "epsilon": 1},
        {"sampling": "poisson", "epsilon": 1, "delta": 1e-6, "threshold": 30},
        {"sampling": "poisson", "epsilon": 1, "delta": 0},
        {"sampling": "poisson", "epsilon": 1, "delta": 1e-6, "rate": 0.5},
        {"sampling": "binomial", "epsilon": 1, "delta": 1e-6},
        {"sampling": "binomial", "epsilon": 1, "delta": 1e-6, "rate": 1},
        {"sampling": "poisson", "epsilon": 1e-5, "delta": 1e-6},
        {"sampling": "poisson", "epsilon": 1, "delta": 1e-6, "known_rows": -1},
        {"sampling": "fixed", "epsilon": 1, "delta": 1e-6},
        {"sampling": "fixed", "epsilon": 1, "delta": 1e-6, "n": 10000, "size_epsilon": 2},
    ],
)
def test_bad_input_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        truncated_histogram(**bad)  # type: ignore[arg-type]


def test_a_delta_out_of_reach_is_named() -> None:
    """With 19 other members and rate .8 all of them are sampled with probability .0144."""
    with pytest.raises(NoLaw, match=r"smallest delta that this bound reaches is 0\.0145"):
        truncated_histogram(sampling="binomial", rate=0.8, threshold=20, delta=1e-6)
    with pytest.raises(NoLaw, match="smallest delta that this bound reaches is 1"):
        truncated_histogram(sampling="poisson", threshold=5, known_rows=4, delta=1e-6)
