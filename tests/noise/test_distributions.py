"""Goodness of fit, certified probabilities against plain definitions, and bad input."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import flint
import numpy as np
import pytest

from tacit.errors import EmptyComposition, InvalidParameter, NotCertified
from tacit.exact.arrays import Words
from tacit.exact.checks import add_exact, integer_array
from tacit.noise import (
    Bernoulli,
    Binomial,
    Categorical,
    CertifiedReal,
    ComputableDistribution,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    FiniteDistribution,
    OneSidedGeometric,
    SeededSource,
    permutation,
    uniform_integer,
)
from tacit.noise.distributions.finite import uniform_below_secret

FITTED = [
    DiscreteLaplace(noise_scale=0.3),
    DiscreteLaplace(noise_scale=10),
    DiscreteLaplace(noise_scale=1000),
    DiscreteLaplace(noise_scale=10**6),
    DiscreteLaplace(noise_scale=10**9),
    DiscreteLaplace(noise_scale=10**30),
    DiscreteGaussian(noise_std=10**30),
    OneSidedGeometric(noise_scale=Fraction(7, 3)),
    OneSidedGeometric(noise_scale=12345.678),
    DiscreteGaussian(noise_std=0.4),
    DiscreteGaussian(noise_std=10),
    DiscreteGaussian(noise_std=48),
    DiscreteGaussian(noise_std=48.001),
    DiscreteGaussian(noise_std=1000),
    DiscreteGaussian(noise_std=10**6),
    DiscreteGaussian(noise_std=10**9),
    DiscreteStaircase(epsilon=1, sensitivity=1),
    DiscreteStaircase(epsilon=0.5, sensitivity=9),
    DiscreteStaircase(epsilon=2, sensitivity=10**6, gamma=0.5),
    Binomial(trials=12, probability_of_one=Fraction(1, 3)),
    Binomial(trials=2**64, probability_of_one=Fraction(30, 2**64)),
    FiniteDistribution(weights=[5, 0, 1, Fraction(1, 3), 0.125]),
    Categorical(log_weights=[0.1, 0.7, -2, Fraction(1, 3)]),
    Bernoulli(probability_of_one=0.2),
    Bernoulli.exponential(Fraction(5, 2)),
]


@pytest.mark.parametrize("law", FITTED, ids=lambda law: repr(law)[:60])
def test_goodness_of_fit(law, fits) -> None:
    assert fits(law) > 1e-9


def test_goodness_of_fit_of_a_wide_binomial(fits) -> None:
    assert fits(Binomial(trials=30_000, probability_of_one=0.3), draws=20_000) > 1e-9


def test_the_fit_can_fail(fits, p_of) -> None:
    x = DiscreteGaussian(noise_std=10).sample(size=100_000, source=SeededSource(seed=1))
    expected = np.array([sum(DiscreteGaussian(noise_std=10.5).probability(k)) / 2 for k in range(-30, 31)])
    observed = np.array([(x == k).sum() for k in range(-30, 31)])
    assert p_of(observed, expected * 100_000) < 1e-9


@pytest.mark.parametrize("n", [2**64, 10**30])
def test_binomial_with_huge_trials(n: int) -> None:
    law = Binomial(trials=n, probability_of_one=Fraction(1, 3))
    x = law.sample(size=400, source=SeededSource(seed=4))
    z = np.array([float(Fraction(3 * int(v) - n, 3)) for v in x]) / law.std
    assert abs(z.mean()) < 6.2 / 20
    assert abs((z**2).mean() - 1) < 6.2 * math.sqrt(2) / 20
    assert all(0 <= int(v) <= n for v in x)


def test_binomial_takes_a_certified_tail() -> None:
    tail = DiscreteLaplace(noise_scale=10).survival_real(300)
    law = Binomial(trials=2**70, probability_of_one=tail)
    expected = 2**70 * math.exp(-30) / (1 + math.exp(-0.1))
    assert law.mean == pytest.approx(expected, rel=1e-12)
    x = law.sample(size=50, source=SeededSource(seed=1))
    assert abs(np.array([float(v) for v in x]).mean() - expected) < 6.2 * law.std / math.sqrt(50)


# -- certified numbers against the definition --------------------------------------------------------


def encloses(pair: tuple[float, float], value: float, slack: float = 1e-12) -> bool:
    low, high = pair
    return (
        low <= high and low - slack * abs(value) <= value <= high + slack * abs(value) and high - low <= slack
    )


@pytest.mark.parametrize("scale", [0.5, 3, 40])
def test_laplace_numbers(scale: float) -> None:
    law = DiscreteLaplace(noise_scale=scale)
    ks = range(-4000, 4001)
    w = np.array([math.exp(-abs(k) / scale) for k in ks])
    p = w / w.sum()
    for k in (-7, -1, 0, 1, 2, 30):
        assert encloses(law.probability(k), p[k + 4000])
        assert encloses(law.cumulative(k), p[: k + 4001].sum())
        assert encloses(law.survival(k), p[k + 4000 :].sum())
        assert encloses(law.tail(k), p[[abs(j) >= k for j in ks]].sum())
    assert law.variance == pytest.approx(sum(k * k * q for k, q in zip(ks, p, strict=True)), rel=1e-10)
    assert law.mean == 0.0


@pytest.mark.parametrize("std", [0.3, 0.99, 1.0, 5, 47.9, 60])
def test_gaussian_numbers(std: float) -> None:
    law = DiscreteGaussian(noise_std=std)
    ks = range(-2000, 2001)
    p = np.array([math.exp(-k * k / (2 * std * std)) for k in ks])
    p /= p.sum()
    for k in (-9, 0, 1, 2, 14, 200):
        assert encloses(law.probability(k), p[k + 2000])
        assert encloses(law.survival(k), p[k + 2000 :].sum())
        assert encloses(law.cumulative(k), p[: k + 2001].sum())
    assert law.variance == pytest.approx(sum(k * k * q for k, q in zip(ks, p, strict=True)), rel=1e-10)


def test_gaussian_tail_far_out_and_at_scale() -> None:
    wide = DiscreteGaussian(noise_std=10**9)
    low, high = wide.survival(2 * 10**9)
    assert low <= 0.5 * math.erfc(2 / math.sqrt(2)) * (1 + 1e-8)
    assert high >= 0.5 * math.erfc(2 / math.sqrt(2)) * (1 - 1e-8)
    assert high / low < 1 + 1e-12
    low, high = DiscreteGaussian(noise_std=1000).survival(30_000)
    assert 0 < low <= high < 1e-196


@pytest.mark.parametrize(("epsilon", "d", "gamma"), [(0.5, 1, None), (1, 5, None), (2, 8, 0.5), (0.2, 6, 1)])
def test_staircase_numbers_and_its_privacy(epsilon: float, d: int, gamma: float | None) -> None:
    law = DiscreteStaircase(epsilon=epsilon, sensitivity=d, gamma=gamma)
    r = law.plateau
    w = {k: math.exp(-epsilon * (abs(k) // d + (abs(k) % d >= r))) for k in range(-1200, 1201)}
    total = sum(w.values())
    worst = 0.0
    for k in range(-40, 41):
        assert encloses(law.probability(k), w[k] / total, 1e-9)
        for shift in range(1, d + 1):
            worst = max(worst, math.log(w[k] / w[k + shift]), math.log(w[k + shift] / w[k]))
    assert worst == pytest.approx(epsilon, rel=1e-9)
    assert encloses(law.survival(3), sum(v for k, v in w.items() if k >= 3) / total, 1e-9)
    assert encloses(law.survival(-3), sum(v for k, v in w.items() if k >= -3) / total, 1e-9)
    assert law.variance == pytest.approx(sum(k * k * v for k, v in w.items()) / total, rel=1e-9)
    assert law.mean_absolute == pytest.approx(sum(abs(k) * v for k, v in w.items()) / total, rel=1e-9)


def test_staircase_beats_laplace_and_its_default_is_the_best_plateau() -> None:
    d, epsilon = 20, 3.0
    best = DiscreteStaircase(epsilon=epsilon, sensitivity=d)
    every = [
        DiscreteStaircase(epsilon=epsilon, sensitivity=d, gamma=Fraction(r, d)).mean_absolute
        for r in range(1, d + 1)
    ]
    assert best.mean_absolute == min(every)
    q = math.exp(-epsilon / d)
    assert best.mean_absolute < 2 * q / (1 - q * q)


def test_binomial_numbers() -> None:
    n, p = 40, Fraction(3, 10)
    law = Binomial(trials=n, probability_of_one=p)
    pmf = [float(math.comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1)]
    for k in (0, 5, 12, 40):
        assert encloses(law.probability(k), pmf[k])
        assert encloses(law.survival(k), sum(pmf[k:]))
    assert law.mean == pytest.approx(12)
    assert law.variance == pytest.approx(8.4)
    wide = Binomial(trials=10**6, probability_of_one=0.5)
    assert encloses(wide.survival(500_001), 0.5 - sum(wide.probability(500_000)) / 4, 1e-9)


def test_degenerate_laws() -> None:
    assert Binomial(trials=0, probability_of_one=0.5).sample(size=3).tolist() == [0, 0, 0]
    assert Binomial(trials=9, probability_of_one=1).sample(size=2).tolist() == [9, 9]
    assert Binomial(trials=2**70, probability_of_one=1).sample().item() == 2**70
    assert Binomial(trials=9, probability_of_one=0).survival(1) == (0.0, 0.0)
    assert Bernoulli(probability_of_one=1).sample(size=50).tolist() == [1] * 50
    assert Bernoulli(probability_of_one=0).sample(size=50).tolist() == [0] * 50
    assert Bernoulli.exponential(0).sample(size=50).tolist() == [1] * 50
    assert FiniteDistribution(weights=[0, 0, 3, 0]).sample(size=60).tolist() == [2] * 60
    assert Categorical(log_weights=[5]).sample(size=60).tolist() == [0] * 60
    assert Categorical(log_weights=[0, -1e6]).sample(size=60).tolist() == [0] * 60
    assert DiscreteLaplace(noise_scale=1e-3).sample(size=100).tolist() == [0] * 100
    assert DiscreteGaussian(noise_std=1e-3).sample(size=100).tolist() == [0] * 100
    assert uniform_integer(1, size=4).tolist() == [0] * 4


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(40)])
def test_coins_of_exponentials_have_that_chance(x: Fraction) -> None:
    """P = exp(-x) of the law; of 20,000 tosses within 7 standard deviations, which an honest coin leaves at 1e-11."""
    coin, p = Bernoulli.exponential(x), math.exp(-x)
    assert encloses(coin.probability(1), p)
    assert encloses(coin.probability(0), 1 - p)
    heads = int(coin.sample(size=20_000, source=SeededSource(seed=7)).sum())
    assert abs(heads - 20_000 * p) <= 7 * math.sqrt(20_000 * p * (1 - p)) + 1


def test_quantiles_and_error_bounds() -> None:
    law = DiscreteLaplace(noise_scale=5)
    for p in (0.01, 0.3, 0.5, 0.95, 1 - 1e-12):
        k = law.quantile(p)
        assert law.cumulative(k)[0] >= p - 1e-15
        assert law.cumulative(k - 1)[1] < p
    t = law.error_bound(confidence=0.95)
    assert law.tail(t + 1)[1] <= 0.05 < law.tail(t)[1]
    many = law.error_bound(confidence=0.95, coordinates=100)
    assert (1 - law.tail(many + 1)[0]) ** 100 >= 0.95 > (1 - law.tail(many)[0]) ** 100
    assert OneSidedGeometric(noise_scale=3).quantile(1e-9) == 0
    assert DiscreteGaussian(noise_std=10**6).error_bound(confidence=0.95) == 1_959_964


def test_finite_and_categorical_moments() -> None:
    law = FiniteDistribution(weights=[1, 2, 3])
    assert law.mean == pytest.approx(4 / 3)
    assert law.variance == pytest.approx(5 / 9)
    assert law.cumulative(1)[0] <= 0.5 <= law.cumulative(1)[1]
    law2 = Categorical(log_weights=[0, math.log(2), math.log(3)])
    assert law2.mean == pytest.approx(4 / 3)
    assert law2.probability(7) == (0.0, 0.0)


# -- computable laws -----------------------------------------------------------------------------------


def poisson(rate: int) -> ComputableDistribution:
    def cumulative(k: int) -> flint.arb:
        return flint.arb(rate).gamma_upper(flint.arb(k + 1), regularized=1)

    return ComputableDistribution(cumulative_ball=cumulative, name="Poisson")


def test_a_computable_law(fits) -> None:
    law = poisson(4)
    assert fits(law, draws=30_000) > 1e-9
    assert encloses(law.probability(2), math.exp(-4) * 8)
    with pytest.raises(NotCertified):
        _ = law.std


def test_a_law_whose_balls_never_shrink_is_refused() -> None:
    stuck = ComputableDistribution(cumulative_ball=lambda k: flint.arb(0.5, 0.5))
    with pytest.raises(NotCertified):
        stuck.sample(size=3)
    with pytest.raises(NotCertified):
        stuck.sample(size=3000)


def test_a_law_without_an_end_is_refused() -> None:
    with pytest.raises(NotCertified):
        ComputableDistribution(cumulative_ball=lambda k: flint.arb(0)).sample()


def test_a_boundary_that_cannot_be_told_from_a_dyadic_is_still_exact() -> None:
    def half() -> flint.arb:
        return (flint.arb(2).sqrt() * flint.arb(2).sqrt()) / 4

    law = Bernoulli(probability_of_one=CertifiedReal(evaluate=half, name="a half in disguise"))
    assert abs(law.sample(size=40_000, source=SeededSource(seed=2)).mean() - 0.5) < 6.2 / 400


def test_threads_that_share_laws(p_of) -> None:
    """Tables are built once and shared; draws from many threads at once still have the law."""
    laws = [DiscreteLaplace(noise_scale=Fraction(777, 77)), DiscreteGaussian(noise_std=Fraction(7777, 777))]
    drawn: list[np.ndarray] = []

    def work(seed: int) -> None:
        source = SeededSource(seed=seed)
        for law in laws:
            drawn.append(law.sample(size=5, source=source))
            law.std  # noqa: B018
        drawn.append(laws[1].sample(size=10_000, source=source))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(drawn) == 12
    x = np.concatenate([d for d in drawn if d.size > 5])
    expected = np.array([sum(laws[1].probability(k)) / 2 for k in range(-20, 21)]) * x.size
    observed = np.array([(x == k).sum() for k in range(-20, 21)])
    assert p_of(observed, expected) > 1e-9


# -- uniform integers, permutations, sums ---------------------------------------------------------------


def test_uniform_integers(p_of) -> None:
    x = uniform_integer(7, size=70_000, source=SeededSource(seed=1))
    assert p_of(np.bincount(x, minlength=7), np.full(7, 10_000.0)) > 1e-9
    big = uniform_integer(10**40, size=200, source=SeededSource(seed=1))
    assert all(0 <= int(v) < 10**40 for v in big)
    assert abs(np.array([float(v) for v in big]).mean() / 10**40 - 0.5) < 6.2 / math.sqrt(12 * 200)
    assert uniform_integer(2**62, size=3).dtype == np.int64


class Scripted(SeededSource):
    """Gives these words, one by one."""

    def __init__(self, *words: int) -> None:
        super().__init__(seed=0)
        self.left = list(words)

    def words(self, count: int) -> Words:
        return np.array([self.left.pop(0) for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 4096, 10**9 + 7, 2**40 - 1])
def test_every_integer_below_a_secret_has_equally_many_words(n: int) -> None:
    """The words of j end where those of j + 1 begin; the first one is drawn anew where there is one too many."""
    whole, each = 1 << 64, (1 << 64) // n
    for j in sorted({0, 1 % n, n // 2, n - 1}):
        first, end = -(-j * whole // n), -(-(j + 1) * whole // n)
        if end - first > each:
            again = Scripted(first, end - 1)
            assert uniform_below_secret(n, again) == j
            assert again.left == []
        source = Scripted(end - each, end - 1)
        assert [uniform_below_secret(n, source) for _ in range(2)] == [j, j]
        assert end - first in (each, each + 1)


def test_permutations(p_of) -> None:
    source = SeededSource(seed=8)
    seen = {}
    for _ in range(6_000):
        key = tuple(permutation(3, source=source))
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == 6
    assert p_of(np.array(list(seen.values())), np.full(6, 1_000.0)) > 1e-9
    assert permutation(0).size == 0


def test_sums_never_wrap() -> None:
    edge = np.array([2**63 - 1, -(2**63)])
    total = add_exact(edge, np.array([1, -1]))
    assert total.tolist() == [2**63, -(2**63) - 1]
    assert add_exact([1, 2], np.array([3, 4])).dtype == np.int64
    assert add_exact([2**80], np.array([1])).tolist() == [2**80 + 1]
    assert add_exact([], np.array([], dtype=np.int64)).size == 0
    assert integer_array(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**64 - 1]
    for bad in ([1.5], [1.0], ["a"], [True], [None]):
        with pytest.raises(InvalidParameter):
            integer_array(bad)


# -- sizes and bad input ---------------------------------------------------------------------------------


def test_sizes() -> None:
    law = DiscreteLaplace(noise_scale=3)
    assert law.sample().shape == ()
    assert law.sample(size=0).shape == (0,)
    assert law.sample(size=(2, 0)).shape == (2, 0)
    assert law.sample(size=(2, 3)).shape == (2, 3)
    assert law.sample(size=()).shape == ()
    for bad in (-1, 1.5, "3", True, (2, -1)):
        with pytest.raises(InvalidParameter):
            law.sample(size=bad)


def test_scales_beyond_64_bits_give_python_integers() -> None:
    for law in (DiscreteLaplace(noise_scale=10**40), DiscreteGaussian(noise_std=10**40)):
        x = law.sample(size=50, source=SeededSource(seed=1))
        assert x.dtype == object
        assert all(type(v) is int for v in x)
        assert max(abs(v) for v in x) > 10**39


BAD = [0, 0.0, -1, -0.5, math.nan, math.inf, -math.inf, None, "1", True, 1j]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_scales(bad: object) -> None:
    for law in (DiscreteLaplace, OneSidedGeometric):
        with pytest.raises(InvalidParameter):
            law(noise_scale=bad)
    with pytest.raises(InvalidParameter):
        DiscreteGaussian(noise_std=bad)
    with pytest.raises(InvalidParameter):
        DiscreteStaircase(epsilon=bad, sensitivity=1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, None, "x"], ids=repr)
def test_bad_probabilities(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        Bernoulli(probability_of_one=bad)
    with pytest.raises(InvalidParameter):
        Binomial(trials=3, probability_of_one=bad)


def test_other_bad_input() -> None:
    for bad in (-1, 1.5, True, None):
        with pytest.raises(InvalidParameter):
            Binomial(trials=bad, probability_of_one=0.5)
    with pytest.raises(InvalidParameter):
        Bernoulli.exponential(-1)
    for bad in (0, -1, 2.5):
        with pytest.raises(InvalidParameter):
            DiscreteStaircase(epsilon=1, sensitivity=bad)
        with pytest.raises(InvalidParameter):
            uniform_integer(bad)
    for bad in (0, 1.5, math.nan):
        with pytest.raises(InvalidParameter):
            DiscreteStaircase(epsilon=1, sensitivity=3, gamma=bad)
    for law in (FiniteDistribution, Categorical):
        name = "weights" if law is FiniteDistribution else "log_weights"
        with pytest.raises(EmptyComposition):
            law(**{name: []})
        for bad in ([1, math.nan], [1, math.inf], ["a"]):
            with pytest.raises(InvalidParameter):
                law(**{name: bad})
    for bad in ([0, 0], [1, -1]):
        with pytest.raises(InvalidParameter):
            FiniteDistribution(weights=bad)
    for bad in (0, 1, -0.2, 1.5, math.nan):
        with pytest.raises(InvalidParameter):
            DiscreteLaplace(noise_scale=1).quantile(bad)
