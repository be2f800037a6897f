"""Mixtures, one sample for a whole composition, and correlated noise with participation schedules."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.accounting import CorrelatedNoise, codec, profile_of
from tacit.accounting.correlated import STRATEGIES
from tacit.audit.curves import both_orders, exact
from tacit.errors import EmptyComposition, InvalidParameter, NoLaw, UnknownName

E = tacit.events
LAPLACE, NORMAL = E.LaplaceEvent(epsilon=1.0), E.GaussianEvent(noise_multiplier=1.0)


def table(p: list[float], q: list[float]) -> E.TabulatedEvent:  # type: ignore[name-defined]
    return E.TabulatedEvent(p=tuple(p), q=tuple(q))


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:  # type: ignore[type-arg]
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


ONE, TWO = ([0.5, 0.3, 0.2], [0.25, 0.35, 0.4]), ([0.9, 0.1], [0.4, 0.6])


def both(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:  # type: ignore[type-arg]
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


# --- a coin ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.5])
def test_a_mixture_is_the_joint_law_of_coin_and_answer(times: int, epsilon: float) -> None:
    """Theorem `coin-mixture`, by enumeration of the outcomes."""
    weights = (0.25, 0.5)
    p = np.concatenate([0.25 * np.array(ONE[0]), 0.5 * np.array(TWO[0]), [0.25]])
    q = np.concatenate([0.25 * np.array(ONE[1]), 0.5 * np.array(TWO[1]), [0.25]])
    joint_p, joint_q = p, q
    for _ in range(times - 1):
        joint_p, joint_q = np.outer(joint_p, p).ravel(), np.outer(joint_q, q).ravel()
    coin = E.MixedEvent(events=(table(*ONE), table(*TWO)), weights=weights)
    found = tacit.account(E.RepeatedEvent(event=coin, times=times), epsilon=epsilon).delta
    truth = both(joint_p, joint_q, epsilon)
    assert found.low <= truth * (1 + 1e-9)
    assert truth <= found.high * (1 + 1e-12)
    assert found.high <= truth * 1.01 + 1e-9


def test_a_secret_coin_costs_no_more() -> None:
    p = 0.5 * np.array([0.9, 0.1]) + 0.5 * np.array([0.3, 0.7])
    q = 0.5 * np.array([0.4, 0.6]) + 0.5 * np.array([0.2, 0.8])
    coin = E.MixedEvent(
        events=(table([0.9, 0.1], [0.4, 0.6]), table([0.3, 0.7], [0.2, 0.8])), weights=(0.5, 0.5)
    )
    for epsilon in (0.0, 0.1, 0.5):
        assert both(p, q, epsilon) <= tacit.account(coin, epsilon=epsilon).delta.high


def test_mixtures_of_compositions_and_their_divergences() -> None:
    many = E.RepeatedEvent(event=LAPLACE, times=3)
    coin = E.MixedEvent(events=(many, NORMAL), weights=(0.5, 0.5))
    assert coin.pure() is None
    assert E.MixedEvent(events=(many, LAPLACE), weights=(0.5, 0.25)).pure() == 3.0
    parts = [tacit.account(e, epsilon=0.5).delta for e in (many, NORMAL)]
    found = tacit.account(coin, epsilon=0.5).delta.high
    assert sum(d.low for d in parts) / 2 <= found <= sum(d.high for d in parts) / 2 * 1.001
    inner = [profile_of(e, neighbours="add-or-remove").renyi(3.0) for e in (many, NORMAL)]
    truth = math.log(sum(math.exp(2 * d) for d in inner) / 2) / 2
    assert profile_of(coin, neighbours="add-or-remove").renyi(3.0) == pytest.approx(truth, rel=1e-12)
    assert codec.loads(codec.dumps(coin)) == coin


def test_the_second_opinion_knows_mixtures() -> None:
    coin = E.MixedEvent(events=(table(*ONE), NORMAL), weights=(0.25, 0.5))
    record = codec.to_record(coin)["event"]
    curves = both_orders(record, "add-or-remove")
    assert curves is not None
    for epsilon in (0.0, 0.3, 1.0):
        own = max(float(h(exact(epsilon)).mid()) for h in curves)
        assert own == pytest.approx(tacit.account(coin, epsilon=epsilon).delta.high, rel=1e-9)


def test_bad_mixtures() -> None:
    with pytest.raises(EmptyComposition):
        E.MixedEvent(events=(), weights=())
    for weights in ((0.5,), (0.7, 0.7), (0.0, 0.0), (math.nan, 0.5), (-0.1, 0.5)):
        with pytest.raises(InvalidParameter):
            E.MixedEvent(events=(LAPLACE, NORMAL), weights=weights)
    with pytest.raises(InvalidParameter):
        E.MixedEvent(events=(LAPLACE, 3), weights=(0.5, 0.5))


# --- one sample ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.6])
def test_one_sample_for_two_runs(epsilon: float) -> None:
    """Theorem `sampled-composition`: the product first, the sample around it; by enumeration."""
    p, q = (np.outer(side, side).ravel() for side in map(np.array, ONE))
    mixed = 0.3 * p + 0.7 * q
    event = E.PoissonSampledEvent(event=E.RepeatedEvent(event=table(*ONE), times=2), sampling_rate=0.3)
    found = tacit.account(event, epsilon=epsilon).delta
    truth = both(mixed, q, epsilon)
    assert found.low <= truth * (1 + 1e-9)
    assert truth <= found.high * (1 + 1e-12)
    assert found.high <= truth * 1.01 + 1e-9


def test_gaussian_runs_on_one_sample_are_one_run() -> None:
    four = E.RepeatedEvent(event=E.GaussianEvent(noise_multiplier=2.0), times=4)
    one = E.PoissonSampledEvent(event=NORMAL, sampling_rate=0.1)
    same = E.PoissonSampledEvent(event=four, sampling_rate=0.1)
    assert tacit.account(same, delta=1e-5).epsilon == tacit.account(one, delta=1e-5).epsilon
    assert codec.loads(codec.dumps(same)) == same


def test_a_sample_shown_twice_costs_more_than_two_samples() -> None:
    laplace = E.LaplaceEvent(epsilon=4.0)
    once = E.PoissonSampledEvent(event=E.RepeatedEvent(event=laplace, times=2), sampling_rate=0.5)
    anew = E.RepeatedEvent(event=E.PoissonSampledEvent(event=laplace, sampling_rate=0.5), times=2)
    assert tacit.account(once, epsilon=3.0).delta.low > 0.38
    assert tacit.account(anew, epsilon=3.0).delta.high < 0.20
    assert once.pure() == pytest.approx(math.log(1 + 0.5 * (math.exp(8) - 1)))


def test_compositions_are_not_sampled_for_replaced_units() -> None:
    event = E.PoissonSampledEvent(event=E.RepeatedEvent(event=LAPLACE, times=2), sampling_rate=0.5)
    with pytest.raises(NoLaw):
        tacit.account(event, delta=1e-5, neighbours="replace-one")


# --- correlated noise ------------------------------------------------------------------------------------
def matrix(strategy: str, n: int, bands: int | None) -> np.ndarray:  # type: ignore[type-arg]
    """The strategy from its definition."""
    if strategy == "tree":
        rows = []
        width = 1
        while width < 2 * n:
            for start in range(0, n, width):
                rows.append([1.0 if start <= t < start + width else 0.0 for t in range(n)])
            width *= 2
        return np.array(rows)
    c = [math.comb(2 * k, k) / 4**k for k in range(n)]
    if strategy == "toeplitz":
        c = [1.0, 1 / 2, 1 / 3, 1 / 4, *[0.0] * n][:n]
    if bands is not None:
        c = [x if k < bands else 0.0 for k, x in enumerate(c)]
    full = np.array([[c[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    return full / np.linalg.norm(full, axis=0) if strategy == "normalised_square_root" else full


def schedules(n: int, k: int, b: int) -> list[tuple[int, ...]]:
    found = []
    for size in range(1, k + 1):
        for chosen in itertools.combinations(range(n), size):
            if all(y - x >= b for x, y in itertools.pairwise(chosen)):
                found.append(chosen)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("n", "k", "b"), [(7, 1, 1), (8, 2, 3), (9, 3, 2), (10, 3, 4), (8, 8, 1), (9, 5, 4)])
def test_no_schedule_moves_more_than_the_sensitivity(strategy: str, n: int, k: int, b: int) -> None:
    """Theorem `participation-schedules`: every schedule is tried."""
    bands = 3 if strategy == "banded_square_root" else None
    if strategy == "normalised_square_root" and k > 1:
        with pytest.raises(NoLaw):
            CorrelatedNoise(strategy=strategy, steps=n, participations=k, separation=b)
        return
    own = (1.0, 0.5, Fraction(1, 3), 0.25, 0) if strategy == "toeplitz" else None
    found = CorrelatedNoise(
        strategy=strategy, steps=n, participations=k, separation=b, bands=bands, coefficients=own
    )
    c = matrix(strategy, n, bands)
    truth = max(float(np.linalg.norm(c[:, list(s)].sum(axis=1))) for s in schedules(n, k, b))
    assert truth <= found.sensitivity * (1 + 1e-12)
    assert found.sensitivity <= truth * (1.5 if strategy == "tree" and k > 1 else 1 + 1e-12)


@pytest.mark.parametrize(
    ("strategy", "n", "error"),
    [
        ("normalised_square_root", 52, 2.15),
        ("normalised_square_root", 365, 2.76),
        ("tree", 52, 5.92),
        ("tree", 365, 8.94),
    ],
)
def test_largest_errors(strategy: str, n: int, error: float) -> None:
    assert CorrelatedNoise(strategy=strategy, steps=n).largest_error == pytest.approx(error, abs=5e-3)


def test_diagonals_of_ones_own() -> None:
    """Those of the square root give what it gives, on any scale; the error is that of the inverse matrix."""
    c = [math.comb(2 * k, k) / 4**k for k in range(20)]
    how = {"steps": 20, "participations": 3, "separation": 4}
    named = CorrelatedNoise(strategy="square_root", **how)  # type: ignore[arg-type]
    for scale in (1, 8):
        own = CorrelatedNoise(strategy="toeplitz", coefficients=[scale * x for x in c], **how)  # type: ignore[arg-type]
        assert own.sensitivity == pytest.approx(scale * named.sensitivity, rel=1e-14)
        assert own.largest_error == pytest.approx(named.largest_error, rel=1e-12)
    plain = CorrelatedNoise(strategy="toeplitz", coefficients=[2], steps=9)
    assert (plain.sensitivity, plain.largest_error) == (2.0, pytest.approx(3.0))
    inverse = np.linalg.inv(matrix("toeplitz", 9, None))
    rows = np.linalg.norm(np.tril(np.ones((9, 9))) @ inverse, axis=1)
    short = CorrelatedNoise(strategy="toeplitz", coefficients=(1.0, 0.5, Fraction(1, 3), 0.25, 0), steps=9)
    assert short.largest_error == pytest.approx(short.sensitivity * rows.max(), rel=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        None, [], [0], [1, -0.5], [0.5, 1], [1, math.nan], [1, math.inf], [1, True], "1", 1, [1] * 9, [[1]], [1, None],
    ],
)  # fmt: skip
def test_diagonals_that_have_no_theorem_are_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        CorrelatedNoise(strategy="toeplitz", steps=8, coefficients=bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        CorrelatedNoise(strategy="tree", steps=8, coefficients=[1])


def test_the_event_is_gaussian_noise_over_the_sensitivity() -> None:
    noise = CorrelatedNoise(strategy="square_root", steps=52, participations=4, separation=13)
    event = noise.as_event(noise_multiplier=20.0)
    assert event.noise_multiplier == pytest.approx(20 / noise.sensitivity)
    assert event.noise_multiplier <= 20 / noise.sensitivity * (1 + 1e-15)


def test_bad_schedules() -> None:
    for bad in ({"steps": 0}, {"participations": 0}, {"separation": 0}, {"bands": 3}, {"steps": 1 << 20}):
        with pytest.raises(InvalidParameter):
            CorrelatedNoise(**{"strategy": "square_root", "steps": 8} | bad)  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        CorrelatedNoise(strategy="guess", steps=8)


def test_a_sampled_composition_asks_few_questions_of_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve that is measured gets no sharper by more digits: both ends, from few accounts of the composition."""
    from tacit.exact.rounding import precision
    from tacit.pld.product import Product

    asked, delta_of = [], Product.delta
    monkeypatch.setattr(Product, "delta", lambda self, *a, **k: asked.append(a) or delta_of(self, *a, **k))
    once = E.PoissonSampledEvent(event=E.RepeatedEvent(event=LAPLACE, times=2), sampling_rate=0.07)
    ends = tacit.account(once, delta=1e-3).epsilon
    assert ends.high * (1 - 1e-3) <= ends.low <= ends.high
    assert len(asked) <= 100
    inside = {"kind": "repeated", "times": 2, "event": {"kind": "laplace", "epsilon": 1.0}}
    with precision(192):
        second = both_orders(
            {"kind": "poisson_sampled", "sampling_rate": 0.07, "event": inside},
            "add-or-remove",
            exact(2.0**-10),
        )
        assert second is not None
        found = [max(float(h(exact(e))) for h in second) for e in (ends.low, ends.high)]
    assert found[1] <= 1e-3 * (1 + 1e-5)
    assert found[0] >= 1e-3 * (1 - 1e-5)
