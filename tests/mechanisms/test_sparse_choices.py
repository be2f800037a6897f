"""Choices made after the noise: each against its definition, and all of them on the published survey counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.mechanisms import L1, L2, Gaussian, Laplace, SparseHistogram
from tacit.mechanisms.sparse import _unbiased, estimated_risks, fit
from tacit.mechanisms.sparse_keys import tails
from tacit.noise import SeededSource
from tacit.reproduce.hall_2 import MILDEW, NLTCS

NOISES = [
    Laplace(sensitivity=L1(2), noise_scale=2),
    Laplace(sensitivity=L1(2), noise_scale=7.5),
    Gaussian(sensitivity=L2.root(2), noise_std=1.5, dimension=9),
]


def middle(pair: tuple[float, float]) -> float:
    return (pair[0] + pair[1]) / 2


@pytest.mark.parametrize("noise", NOISES)
def test_tails_are_those_of_the_exact_law(noise) -> None:
    law = tails(noise)
    k = np.arange(-40, 41)
    assert law.probability(k) == pytest.approx(
        [middle(noise.distribution.probability(int(x))) for x in k], rel=1e-9
    )
    assert law.upper(k) == pytest.approx([middle(noise.distribution.survival(int(x))) for x in k], rel=1e-9)
    far = np.arange(-400, 401)
    mass = law.probability(far)
    for m in (-3, 0, 1, 2, 9):
        here = far >= m
        assert law.mean_above(m) == pytest.approx((far * mass)[here].sum(), rel=1e-9)
        assert law.size_above(m) == pytest.approx((np.abs(far) * mass)[here].sum(), rel=1e-9)


@pytest.mark.parametrize("scale", [0.8, 2.0, 6.0])
@pytest.mark.parametrize("t", [0, 3, 12])
def test_the_estimate_of_the_risk_is_unbiased(scale, t) -> None:
    """sum over noise of Pr[z] g(c + z) = r(c), for every true count."""
    noise = Laplace(sensitivity=L1(1), noise_scale=scale)
    law = tails(noise)
    z = np.arange(-400, 401)
    for count in (0, 1, 2, t, t + 1, 30):
        mean = float((law.probability(z) * _unbiased(law, t, count + z)).sum())
        assert mean == pytest.approx(float(law.risk(t, count)), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("t", [0, 4, 9])
def test_cells_below_the_floor_have_the_stated_estimate(t) -> None:
    law = tails(NOISES[0])
    q = math.exp(-0.5)
    x = np.arange(-30, t)
    assert _unbiased(law, t, x) == pytest.approx(x + 2 * q ** (t + 1.0 - x) / (1 - q), rel=1e-9, abs=1e-9)


def test_estimated_risks_do_not_depend_on_the_floor_for_empty_cells() -> None:
    """An empty table: the expectation is p times r_t(0) up to a constant, whatever the floor."""
    noise = NOISES[0]
    law = tails(noise)
    sums: dict[int, list[float]] = {0: [], 3: []}
    source = SeededSource(seed=3)
    for floor, kept in sums.items():
        for _ in range(60):
            out = SparseHistogram(noise=noise, domain=20_000, threshold=floor).release([], [], source=source)
            thresholds, risks = estimated_risks(out, "unbiased")
            at = dict(zip(thresholds.tolist(), risks.tolist(), strict=True))
            kept.append(at[4] - at[20])
    expected = 20_000 * float(law.risk(4, 0) - law.risk(20, 0))
    for kept in sums.values():
        assert abs(np.mean(kept) - expected) < 8 * np.std(kept) / math.sqrt(60)
        assert np.std(kept) < expected / 2


def test_false_discovery_threshold_by_its_definition() -> None:
    source = SeededSource(seed=4)
    mechanism = SparseHistogram(noise=NOISES[0], domain=5000, threshold=0)
    for rate in (0.02, 0.1, 0.5):
        out = mechanism.release(np.arange(60), np.arange(60), source=source)
        chosen = out.by_false_discovery(rate)

        def met(t: int, out=out, rate=rate) -> bool:
            kept = int((out.values > t).sum())
            return kept > 0 and 5000 * middle(NOISES[0].distribution.survival(t + 1)) <= rate * kept

        least = next((t for t in range(200) if met(t)), 200)
        expected = out.above(least) if least < 200 else None
        assert expected is not None
        assert chosen.keys.tolist() == expected.keys.tolist()
        assert met(chosen.threshold)


def test_false_discoveries_are_at_most_the_rate() -> None:
    source = SeededSource(seed=5)
    mechanism = SparseHistogram(noise=NOISES[0], domain=3000, threshold=2)
    shares = []
    for _ in range(300):
        out = mechanism.release(np.arange(100), np.full(100, 14), source=source).by_false_discovery(0.2)
        shares.append(float((out.keys >= 100).mean()) if out.keys.size else 0.0)
    assert 0.1 < np.mean(shares) < 0.2 + 6 * np.std(shares) / math.sqrt(300)


def test_nothing_to_find() -> None:
    mechanism = SparseHistogram(noise=NOISES[0], domain=1 << 50, threshold=60)
    out = mechanism.release([], [], source=SeededSource(seed=1))
    assert out.by_false_discovery(0.05).keys.size == 0
    assert out.shrunk().keys.size == 0
    assert out.by_estimated_risk().keys.size <= 1
    with pytest.raises(InvalidParameter):
        out.above(59)
    for rate in (0, 1, -0.5, math.nan):
        with pytest.raises(InvalidParameter):
            out.by_false_discovery(rate)
    with pytest.raises(InvalidParameter):
        out.shrunk("cubic")
    with pytest.raises(InvalidParameter):
        out.by_estimated_risk("best")
    normal = SparseHistogram(noise=NOISES[2], domain=9, threshold=0)
    with pytest.raises(InvalidParameter, match="Gaussian"):
        normal.release([1], [9], source=SeededSource(seed=1)).by_estimated_risk("unbiased")


def test_fitted_prior_finds_a_known_mixture() -> None:
    """95% empty, 3% at 12, 2% at 30: masses near those counts within a part in 50 of all cells."""
    noise = NOISES[0]
    counts = np.concatenate([np.full(900, 12), np.full(600, 30)])
    out = SparseHistogram(noise=noise, domain=30_000, threshold=0).release(
        np.arange(1500), counts, source=SeededSource(seed=6)
    )
    prior = fit(out)
    near = [
        float(prior.weights[(prior.counts >= a) & (prior.counts <= b)].sum()) for a, b in ((0, 3), (9, 15))
    ]
    assert near[0] == pytest.approx(0.95, abs=0.01)
    assert near[1] == pytest.approx(0.03, abs=0.006)
    table = out.shrunk()
    values = dict(zip(table.keys.tolist(), table.values.tolist(), strict=True))
    assert np.median([values.get(k, 0) for k in range(900)]) == 12
    assert table.values.dtype == np.int64


@pytest.mark.parametrize("noise", NOISES[::2], ids=["laplace", "gaussian"])
def test_shrinking_keeps_the_order_and_large_counts(noise) -> None:
    out = SparseHistogram(noise=noise, domain=5000 if noise is NOISES[0] else 9, threshold=0).release(
        np.arange(5), [2, 5, 20, 100, 10**15], source=SeededSource(seed=7)
    )
    table = out.shrunk()
    kept = dict(zip(table.keys.tolist(), table.values.tolist(), strict=True))
    noisy = dict(zip(out.keys.tolist(), out.values.tolist(), strict=True))
    assert kept[4] == noisy[4]
    assert kept[3] == noisy[3]
    pairs = sorted((v, kept.get(k, 0)) for k, v in noisy.items())
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(pairs))
    assert out.shrunk("squared").values.dtype == np.float64


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "wide", "gaussian"])
def test_the_fitted_risk_is_that_of_the_prior_by_definition(noise) -> None:
    """cells times the mean over the prior of r_t, which differs between thresholds as the true risks do."""
    cells = 20_000 if noise.__class__ is Laplace else 9
    true = np.array([0, 0, 3, 9, 14, 30]) if cells == 9 else np.repeat([5, 25, 60], 200)
    out = SparseHistogram(noise=noise, domain=cells, threshold=0).release(
        np.arange(true.size), true, source=SeededSource(seed=8)
    )
    prior = fit(out)
    thresholds, risks = estimated_risks(out)
    law = tails(noise)
    for i in (0, len(thresholds) // 2):
        direct = sum(
            w * float(law.risk(int(thresholds[i]), c))
            for c, w in zip(prior.counts, prior.weights, strict=True)
        )
        assert risks[i] == pytest.approx(cells * direct, rel=1e-9)
    if cells > 9:
        exact = [
            float(law.risk(int(t), true).sum() + (cells - true.size) * law.risk(int(t), 0))
            for t in thresholds
        ]
        chosen = int(np.argmin(risks))
        assert exact[chosen] <= 1.1 * min(exact)


def trials(counts: dict[int, int], p: int, number: int, rules) -> dict[str, float]:
    """Mean sum of absolute errors at epsilon = 1, replace-one, of each rule; keys are the first ones."""
    true = np.repeat(list(counts), list(counts.values()))
    mechanism = SparseHistogram.for_target(epsilon=1, sensitivity=L1(2), domain=p, rule="floor")
    source, sums = SeededSource(seed=2026), dict.fromkeys(rules, 0.0)
    for _ in range(number):
        out = mechanism.release(np.arange(true.size), true, source=source)
        for name, rule in rules.items():
            table = rule(out)
            here = np.asarray(table.keys < true.size)
            dense = np.zeros(true.size)
            dense[table.keys[here].astype(int)] = table.values[here]
            sums[name] += float(np.abs(dense - true).sum() + np.abs(table.values[~here]).sum())
    return {name: total / number for name, total in sums.items()}


def test_survey_errors() -> None:
    """The National Long Term Care Survey: what was asked for holds with 200 trials; 40 are enough to see it."""
    assert sum(NLTCS.values()) == 3152
    assert sum(c * n for c, n in NLTCS.items()) == 21574
    found = trials(
        NLTCS,
        1 << 16,
        40,
        {
            "clip": lambda out: out,
            "hall": lambda out: out.above(22),
            "discovery": lambda out: out.by_false_discovery(),
            "risk": lambda out: out.by_estimated_risk(),
            "unbiased": lambda out: out.by_estimated_risk("unbiased"),
            "shrunk": lambda out: out.shrunk(),
        },
    )
    assert found["hall"] <= found["clip"] / 7
    assert found["hall"] == pytest.approx(8450, abs=60)
    for name in ("discovery", "risk", "unbiased", "shrunk"):
        assert found[name] <= 7750, (name, found[name])


def test_mildew_errors() -> None:
    assert sum(MILDEW.values()) == 22
    assert sum(c * n for c, n in MILDEW.items()) == 70
    found = trials(MILDEW, 64, 400, {"clip": lambda out: out, "hall": lambda out: out.above(8)})
    assert found["hall"] <= 0.75 * found["clip"]
