"""Events, accountants, records and calibration: laws first, then published values, then bad input."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import independent as second
from support.parameter_examples import DECLARED_EVENTS
from tacit.accounting import ACCOUNTANTS, account, accountants, bound_of, calibrate, profile_of
from tacit.accounting import events as e
from tacit.accounting.codec import dumps, from_record, loads, to_record
from tacit.errors import EmptyComposition, InvalidParameter

SIMPLE: list[e.SimpleEvent] = [
    e.GaussianEvent(noise_multiplier=2.0),
    e.LaplaceEvent(epsilon=0.3),
    e.DiscreteLaplaceEvent(epsilon=0.4, sensitivity=2),
    e.DiscreteGaussianEvent(noise_multiplier=1.5, sensitivity=2),
    e.StaircaseEvent(epsilon=0.5, gamma=0.4),
    e.ExponentialEvent(epsilon=0.5),
    e.PermuteAndFlipEvent(epsilon=0.5),
    e.RandomizedResponseEvent(epsilon=0.6, categories=4),
    e.PureEvent(epsilon=0.5),
    e.ApproximateEvent(epsilon=0.5, delta=1e-7),
    e.ConcentratedEvent(rho=0.05),
    e.TabulatedEvent(p=(0.6, 0.3, 0.1), q=(0.5, 0.3, 0.2)),
    e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.1),
    e.PoissonSampledEvent(event=e.LaplaceEvent(epsilon=1.0), sampling_rate=0.1),
    e.BalancedResponseEvent(epsilon=0.6, outcomes=20, supporting=8, shared=2),
    *DECLARED_EVENTS,
]
REPLACED: list[e.SimpleEvent] = [
    e.SampledWithoutReplacementEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.1),
    e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.1),
    e.BalancedResponseEvent(epsilon=0.6, outcomes=4, supporting=2, shared=1),
    e.ShuffledEvent(event=e.RandomizedResponseEvent(epsilon=0.8, categories=3), people=9),
    e.ShuffledEvent(event=e.BalancedResponseEvent(epsilon=0.8, outcomes=4, supporting=2, shared=1), people=9),
]
CASES = [(x, "add-or-remove") for x in SIMPLE] + [(x, "replace-one") for x in REPLACED]
NAMES = [f"{x.kind}-{n}-{i}" for i, (x, n) in enumerate(CASES)]


@pytest.mark.parametrize(("event", "neighbours"), CASES, ids=NAMES)
@pytest.mark.parametrize("accountant", sorted(ACCOUNTANTS))
def test_repeat_is_compose_for_every_event_and_accountant(
    event: e.SimpleEvent, neighbours: str, accountant: str
) -> None:
    repeated = e.RepeatedEvent(event=event, times=6)
    composed = e.ComposedEvent(events=(event,) * 6)
    nested = e.RepeatedEvent(
        event=e.ComposedEvent(events=(event, e.RepeatedEvent(event=event, times=2))), times=2
    )
    listed = [event] * 6
    try:
        one = bound_of(repeated, accountant=accountant, neighbours=neighbours)
    except tacit.NoLaw:
        with pytest.raises(tacit.NoLaw):
            bound_of(composed, accountant=accountant, neighbours=neighbours)
        return
    for other in (composed, nested, listed):
        assert bound_of(other, accountant=accountant, neighbours=neighbours) == one


@pytest.mark.parametrize(("event", "neighbours"), CASES, ids=NAMES)
def test_one_event_has_its_own_curve_and_more_cost_more(event: e.SimpleEvent, neighbours: str) -> None:
    one = account(event, delta=1e-6, neighbours=neighbours)
    many = account(e.RepeatedEvent(event=event, times=5), delta=1e-6, neighbours=neighbours)
    assert 0 <= one.epsilon.low <= one.epsilon.high < math.inf
    assert many.epsilon.high >= one.epsilon.high
    back = account(event, epsilon=one.epsilon.high, neighbours=neighbours)
    assert back.delta.high <= 1e-6 * (1 + 1e-6)
    for accountant in sorted(ACCOUNTANTS):
        try:
            other = account(event, delta=1e-6, neighbours=neighbours, accountant=accountant)
        except tacit.NoLaw:
            continue
        assert other.epsilon.high >= one.epsilon.low


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
@pytest.mark.parametrize(("event", "neighbours"), CASES, ids=NAMES)
def test_divergences_bound_every_direction(event: e.SimpleEvent, neighbours: str, order: float) -> None:
    """Against the curve: D_a = ln(1 + a(a-1) int e^{(a-1)x} H_x dx terms)/(a-1), a second way to the same number."""
    curve = profile_of(event, neighbours=neighbours)
    bound = curve.renyi(order)
    if math.isinf(bound):
        stated = event.approximate()
        assert stated is not None
        assert stated[1] > 0, "only what discloses with probability delta has no divergence"
        return
    if event.kind == "exponential":
        return  # its curve is the envelope of a class, its divergence that of the worst single member
    worst = 0.0
    for direction in curve.directions:
        x = np.linspace(-30, 30, 6001)
        h = np.array([direction.delta(float(v)).low for v in x[::20]])
        grid = x[::20]
        # E_Q (P/Q)^a = a(a-1) int_{-inf}^{inf} e^{(a-1)x} H_x(P,Q) dx
        total = order * (order - 1) * np.trapezoid(np.exp((order - 1) * grid) * h, grid)
        if total > 1:
            worst = max(worst, math.log(total) / (order - 1))
    assert worst <= bound + 0.02


def test_published_compositions() -> None:
    """delta = 1e-6, add-or-remove; the true values to five decimals, certified to 1e-3."""
    laplace = [e.LaplaceEvent(epsilon=float(x)) for x in np.linspace(0.01, 0.2, 50)]
    gaussian = [e.GaussianEvent(noise_multiplier=float(x)) for x in np.linspace(5, 50, 50)]
    sampled = e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=0.01)
    cases: list[tuple[object, float]] = [
        (e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=30.0), times=1000), 5.18904),
        (e.RepeatedEvent(event=sampled, times=10_000), 6.90738),
        (e.RepeatedEvent(event=e.LaplaceEvent(epsilon=0.1), times=200), 7.06051),
        ([*laplace, *gaussian], 4.39605),
    ]
    for plan, truth in cases:
        found = account(plan, delta=1e-6).epsilon  # type: ignore[arg-type]
        assert found.low <= truth + 5e-6
        assert found.high >= truth - 5e-6
        assert found.width <= 1e-3


def test_many_repetitions_and_many_events() -> None:
    million = account(e.RepeatedEvent(event=e.LaplaceEvent(epsilon=1e-3), times=10**6), delta=1e-6).epsilon
    # nearly Gaussian: mu^2 = 10^6 * E[loss variance] ~ 10^6 * epsilon^2 for small epsilon
    near = tacit.GaussianDP(mu=1.0).epsilon(1e-6)
    assert million.width <= 1e-3
    assert million.high == pytest.approx(near, abs=0.02)
    events = [e.LaplaceEvent(epsilon=float(x)) for x in np.linspace(1e-3, 2e-2, 10_000)]
    found = account(events, delta=1e-6).epsilon
    mu = math.sqrt(sum(x.epsilon**2 for x in events))
    assert found.width <= 1e-3
    assert found.high == pytest.approx(tacit.GaussianDP(mu=mu).epsilon(1e-6), rel=0.02)


def test_many_concentrated_events_are_one() -> None:
    events = [e.ConcentratedEvent(rho=float(x)) for x in np.linspace(1e-6, 1e-4, 10_000)]
    total = tacit.compose(*[tacit.Concentrated(rho=x.rho) for x in events])
    assert account(events, delta=1e-6).epsilon.high == pytest.approx(total.epsilon_at(1e-6), rel=1e-9)
    both = account([*events, e.LaplaceEvent(epsilon=0.1)], delta=1e-6).epsilon.high
    assert total.epsilon_at(1e-6) <= both <= total.epsilon_at(1e-6) + 0.1 + 1e-3


def test_no_sum_is_below_the_product_of_many_curves() -> None:
    """What is not tried beside many curves would not have helped; what is known by its rho only is tried."""
    many = [e.ExponentialEvent(epsilon=0.01 + k / 5000) for k in range(300)]
    found = account(many, delta=1e-6)
    for other in ("pure", "zcdp"):
        assert found.epsilon.high <= account(many, delta=1e-6, accountant=other).epsilon.high
    mixed = [*many, e.ConcentratedEvent(rho=0.5)]
    best = account(mixed, delta=1e-6)
    assert best.epsilon.high <= account(mixed, delta=1e-6, accountant="zcdp").epsilon.high


def test_extremes() -> None:
    assert (
        account(
            e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=1e6), times=10**9), delta=1e-6
        ).epsilon.high
        < 1
    )
    tiny = account(e.GaussianEvent(noise_multiplier=1e-3), delta=1e-6).epsilon
    assert tiny.low == pytest.approx(tiny.high)
    assert tiny.high > 5e5
    assert account(e.PureEvent(epsilon=1e3), delta=1e-6).epsilon.high <= 1e3
    assert (
        account(
            e.PoissonSampledEvent(event=e.LaplaceEvent(epsilon=1), sampling_rate=0.0), delta=1e-6
        ).epsilon.high
        == 0
    )
    whole = e.PoissonSampledEvent(event=e.LaplaceEvent(epsilon=1.0), sampling_rate=1.0)
    assert (
        account(whole, delta=1e-6).epsilon.high
        == account(e.LaplaceEvent(epsilon=1.0), delta=1e-6).epsilon.high
    )
    assert account(e.LaplaceEvent(epsilon=0.5), delta=0.0).epsilon.high == 0.5
    assert account(e.RepeatedEvent(event=e.LaplaceEvent(epsilon=0.5), times=4), delta=0.0).epsilon.high == 2.0
    assert math.isinf(account(e.GaussianEvent(noise_multiplier=1), delta=0.0).epsilon.high)
    far = account(e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=2.0), times=4), delta=1e-300).epsilon
    assert far.low <= far.high < 100
    assert far.high == pytest.approx(tacit.GaussianDP(mu=1.0).epsilon(1e-300), rel=1e-9)
    some = account(e.RepeatedEvent(event=e.LaplaceEvent(epsilon=0.5), times=40), delta=1e-300).epsilon
    assert some.high <= 20.0
    big = account(e.RepeatedEvent(event=e.LaplaceEvent(epsilon=1e-6), times=10**9), delta=1e-6).epsilon
    assert 0 < big.high < 1


@pytest.mark.parametrize("delta", [1.0, 1.5, -0.1, math.nan])
def test_bad_levels(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        account(e.PureEvent(epsilon=1), delta=delta)
    with pytest.raises(InvalidParameter):
        account(e.PureEvent(epsilon=1))
    with pytest.raises(InvalidParameter):
        account(e.PureEvent(epsilon=1), delta=1e-6, epsilon=1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: account([], delta=1e-6),
        lambda: e.ComposedEvent(events=()),
        lambda: e.RepeatedEvent(event=e.PureEvent(epsilon=1), times=0),
        lambda: e.RepeatedEvent(event=e.PureEvent(epsilon=1), times=2.5),  # type: ignore[arg-type]
        lambda: e.GaussianEvent(noise_multiplier=0),
        lambda: e.GaussianEvent(noise_multiplier=math.inf),
        lambda: e.LaplaceEvent(epsilon=-1),
        lambda: e.PoissonSampledEvent(event=e.PureEvent(epsilon=1), sampling_rate=1.5),
        lambda: e.TabulatedEvent(p=(0.5, 0.6), q=(0.5, 0.5)),
        lambda: e.ApproximateEvent(epsilon=1, delta=1.0),
        lambda: account(e.PureEvent(epsilon=1), delta=1e-6, neighbours="both"),
        lambda: account(e.PureEvent(epsilon=1), delta=1e-6, accountant="best"),
        lambda: account("gaussian", delta=1e-6),  # type: ignore[arg-type]
    ],
)
def test_bad_events(make: object) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.exit_code == 2


def test_pairings_without_a_theorem_are_refused() -> None:
    with pytest.raises(tacit.NoLaw, match="add-or-remove"):
        account(REPLACED[0], delta=1e-6, neighbours="add-or-remove")
    sampled = e.PoissonSampledEvent(event=e.LaplaceEvent(epsilon=1), sampling_rate=0.1)
    with pytest.raises(tacit.NoLaw, match="replace-one"):
        account(sampled, delta=1e-6, neighbours="replace-one")


@settings(max_examples=15)
@given(st.lists(st.sampled_from(range(len(SIMPLE))), min_size=1, max_size=4), st.floats(0, 2))
def test_composition_encloses_a_brute_force_convolution(chosen: list[int], at: float) -> None:
    """Finite mechanisms only: the product of tables, enumerated."""
    tables = {
        8: second.randomized_response(0.5),
        11: ([0.6, 0.3, 0.1], [0.5, 0.3, 0.2]),
        9: second.worst_approximate(0.5, 1e-7),
    }
    chosen = [c for c in chosen if c in tables]
    if not chosen:
        return
    for swap in (False, True):
        pair: tuple[list[float], list[float]] = ([1.0], [1.0])
        for c in chosen:
            p, q = tables[c]
            pair = second.product(pair, (q, p) if swap else (p, q))
        exact = second.hockey_stick(*pair, at)
        found = account([SIMPLE[c] for c in chosen], epsilon=at).delta
        assert exact <= found.high + 1e-12


# --- records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("event", "neighbours"), CASES, ids=NAMES)
def test_records_round_trip(event: e.SimpleEvent, neighbours: str) -> None:
    for whole in (
        event,
        e.RepeatedEvent(event=event, times=10**9),
        e.ComposedEvent(events=(event, e.PureEvent(epsilon=0.1))),
    ):
        assert loads(dumps(whole)) == whole
        assert from_record(json.loads(json.dumps(to_record(whole)))) == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 1}',
        '{"version": 2, "event": {"kind": "pure", "epsilon": 1.0}}',
        '{"version": true, "event": {"kind": "pure", "epsilon": 1.0}}',
        '{"version": 1, "event": {"kind": "os.system", "command": "true"}}',
        '{"version": 1, "event": {"kind": "pure"}}',
        '{"version": 1, "event": {"kind": "pure", "epsilon": NaN}}',
        '{"version": 1, "event": {"kind": "pure", "epsilon": -1}}',
        '{"version": 1, "event": {"kind": "pure", "epsilon": 1, "delta": 0}}',
        '{"version": 1, "event": {"kind": "repeated", "event": {"kind": "pure", "epsilon": 1}, "times": "2"}}',
        '{"version": 1, "event": {"kind": "repeated", "event": 3, "times": 2}}',
        '{"version": 1, "event": {"kind": "tabulated", "p": [1], "q": {"kind": "pure", "epsilon": 1}}}',
        '{"version": 1, "event": ' + '{"kind":"repeated","times":2,"event":' * 40 + "1" + "}" * 41,
    ],
)
def test_broken_and_future_records_are_refused(text: str) -> None:
    with pytest.raises(tacit.TacitError) as caught:
        loads(text)
    assert caught.value.exit_code == 2


# --- calibration -------------------------------------------------------------------------------------


def test_calibration() -> None:
    found = calibrate(
        lambda s: e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=s), times=100), epsilon=1, delta=1e-6
    )
    assert found.value == pytest.approx(42.2468, abs=1e-3)
    assert found.account.epsilon.high <= 1
    pure = calibrate(
        lambda v: e.RepeatedEvent(event=e.LaplaceEvent(epsilon=v), times=10),
        epsilon=1,
        delta=0,
        more_noise=False,
    )
    assert pure.value == pytest.approx(0.1, rel=1e-5)
    assert pure.value <= 0.1
    mixed = calibrate(
        lambda s: [
            e.LaplaceEvent(epsilon=0.3),
            e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=s), times=10),
        ],
        epsilon=1.0,
        delta=1e-6,
    )
    assert mixed.account.epsilon.high <= 1.0
    less = [
        e.LaplaceEvent(epsilon=0.3),
        e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=mixed.value * 0.999), times=10),
    ]
    assert account(less, delta=1e-6).epsilon.high > 1.0 - 1e-3
    with pytest.raises(tacit.NoLaw, match="no amount of noise"):
        calibrate(
            lambda s: [e.PureEvent(epsilon=2.0), e.GaussianEvent(noise_multiplier=s)], epsilon=1.0, delta=1e-6
        )


def test_empty_lists_are_refused() -> None:
    with pytest.raises(EmptyComposition):
        account([], delta=0.1)


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(
    "plan",
    [
        lambda s: e.RepeatedEvent(event=e.GaussianEvent(noise_multiplier=s), times=100),
        lambda s: e.RepeatedEvent(event=e.RandomizedResponseEvent(epsilon=1 / s), times=30),
        lambda s: e.RepeatedEvent(event=e.LaplaceEvent(epsilon=1 / s), times=50),
        lambda s: e.RepeatedEvent(
            event=e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=s), sampling_rate=0.01),
            times=100,
        ),
    ],
)
def test_calibration_asks_for_few_accounts_and_wastes_little(
    monkeypatch: pytest.MonkeyPatch, plan: Any, target: float
) -> None:
    asked: list[int] = []
    module = sys.modules["tacit.accounting.calibrate"]
    monkeypatch.setattr(module, "account", lambda *a, **k: (asked.append(1), account(*a, **k))[1])
    found = calibrate(plan, epsilon=target, delta=1e-6)
    assert found.account == account(plan(found.value), delta=1e-6)
    assert found.account.epsilon.high <= target
    # Less noise by a part in ten thousand would break the promise, as far as the account can tell.
    less = account(plan(found.value * (1 - 1e-4)), delta=1e-6).epsilon
    assert less.high > target - less.width
    assert len(asked) <= 10


@pytest.mark.parametrize(("theirs", "ours"), [("rdp", "renyi"), ("RDP", "renyi"), ("prv", "pld")])
def test_who_says_the_word_of_another_tool_is_told_ours(theirs: str, ours: str) -> None:
    with pytest.raises(tacit.errors.UnknownName, match=f"here it is called '{ours}'"):
        tacit.account(tacit.events.GaussianEvent(noise_multiplier=1), delta=1e-6, accountant=theirs)
    for word, name in accountants.ELSEWHERE.items():
        assert word not in accountants.ACCOUNTANTS
        assert name in accountants.ACCOUNTANTS
