"""How far the second opinion reaches: compositions inside of events, many runs, long curves, wide noise."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

import tacit
from curator import chain
from tacit.accounting import account
from tacit.accounting import events as ev
from tacit.accounting.codec import to_record
from tacit.audit import claims, opinion_on_certificate, opinion_on_charge, opinion_on_noise
from tacit.audit.composition import BITS, composed, curve_of, on_grid
from tacit.audit.curves import both_orders, exact
from tacit.curator.certificate import CIPHER, certify
from tacit.curator.planning import make_plan
from tacit.exact.rounding import precision

MADE = {"time": "2026-01-01T00:00:00+00:00", "noise": CIPHER, "data": {"bounded": True}, "versions": {}}
LAPLACE = ev.LaplaceEvent(epsilon=1.0)
TWICE = ev.RepeatedEvent(event=LAPLACE, times=2)


def stated(bound: dict[str, Any], what: ev.Event, neighbours: str = "add-or-remove") -> dict[str, Any]:
    guarantee = {"bound": bound, "condition": {"kind": "always"}}
    records = json.loads(json.dumps([to_record(what)]))
    return {"guarantee": guarantee, "event": records, "neighbours": neighbours, "mechanism": {}}


def agrees(what: ev.Event, delta: float, neighbours: str = "add-or-remove", below: bool = True) -> None:
    """Confirmed as the accountant has it, and not when 3% below its lower end, or at half where it has none."""
    ends = account(what, delta=delta, neighbours=neighbours).epsilon
    bound = {"kind": "approximate", "epsilon": ends.high, "delta": delta}
    assert opinion_on_certificate(stated(bound, what, neighbours)).confirmed is True
    if not below:
        return
    bound["epsilon"] = 0.97 * ends.low or 0.5 * ends.high
    assert opinion_on_certificate(stated(bound, what, neighbours)).confirmed is False


@pytest.mark.parametrize(
    "what",
    [
        ev.PoissonSampledEvent(event=TWICE, sampling_rate=0.1),
        ev.RepeatedEvent(event=ev.PoissonSampledEvent(event=TWICE, sampling_rate=0.1), times=5),
        ev.MixedEvent(events=(TWICE, ev.GaussianEvent(noise_multiplier=4.0)), weights=(0.5, 0.25)),
        ev.PoissonSampledEvent(
            event=ev.ComposedEvent(events=(LAPLACE, ev.StaircaseEvent(epsilon=0.5, gamma=0.4))), sampling_rate=0.1
        ),
    ],
)  # fmt: skip
def test_compositions_inside_of_a_sample_or_a_mixture(what: ev.Event) -> None:
    agrees(what, 1e-3)


def test_a_sampled_composition_from_the_definition() -> None:
    """Two runs of randomised response on one sample: four outcomes, each law by hand."""
    e, rate = math.e, 0.25
    yes, no = e / (1 + e), 1 / (1 + e)
    p = [yes * yes, yes * no, no * yes, no * no]
    q = [no * no, no * yes, yes * no, yes * yes]
    mixed = [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]
    inside = {"kind": "repeated", "times": 2, "event": {"kind": "pure", "epsilon": 1.0}}
    event = {"kind": "poisson_sampled", "sampling_rate": rate, "event": inside}
    with precision(256):
        orders = both_orders(event, "add-or-remove", exact("1/64"))
        assert orders is not None
        for h, (above, below) in zip(orders, ((mixed, q), (q, mixed)), strict=True):
            for x in (-0.5, -0.1, 0.0, 0.2, 0.4, 1.5):
                true = sum(max(a - math.exp(x) * b, 0.0) for a, b in zip(above, below, strict=True))
                assert float(h(exact(x))) == pytest.approx(true, rel=1e-9, abs=1e-12)


def test_the_curve_of_losses_on_a_grid() -> None:
    """Losses -1, 0 and 1 twice: the sum over all pairs of them."""
    event = {"kind": "tabulated", "p": [0.5, 0.25, 0.25], "q": [0.25, 0.25, 0.5]}
    ratios = [math.log(2), 0.0, -math.log(2)]
    with precision(256):
        orders = both_orders(event, "add-or-remove")
        assert orders is not None
        step = exact(2).log()
        h = curve_of(composed([(on_grid(orders[0], step, negligible=1e-30), 2)], negligible=1e-30), step)
        for x in (-3.0, -0.69, 0.0, 0.3, 0.7, 1.3, 2.0):
            true = 0.0
            for a, la in zip(event["p"], ratios, strict=True):  # type: ignore[arg-type]
                for b, lb in zip(event["p"], ratios, strict=True):  # type: ignore[arg-type]
                    true += max(a * b * (1 - math.exp(x - la - lb)), 0.0)  # type: ignore[operator]
            assert float(h(exact(x))) == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (ev.ExponentialEvent(epsilon=0.002), 1e-3),
        (ev.ApproximateEvent(epsilon=0.0015, delta=1e-9), 1e-3),
    ],
)
def test_a_million_runs(event: ev.SimpleEvent, delta: float) -> None:
    """What is cut off of a power counts as often as it is run, and infinite losses do not count twice."""
    agrees(ev.RepeatedEvent(event=event, times=10**6), delta, "replace-one", below=False)


def test_wide_noise_on_integers() -> None:
    agrees(
        ev.RepeatedEvent(event=ev.DiscreteGaussianEvent(noise_multiplier=1200.0), times=10**4),
        1e-6,
        below=False,
    )


def test_a_grid_serves_all_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of orders: one grid an event, not one an order; within 2%, and 3% less is refused."""
    made = []
    monkeypatch.setattr(claims, "on_grid", lambda *a, **k: made.append(1) or on_grid(*a, **k))
    monkeypatch.setattr(claims, "ORDERS", 1 << 10)
    orders = [1.25, 1.5, *map(float, range(2, 20)), 1000.0, math.inf]
    for event in (LAPLACE, ev.TabulatedEvent(p=(0.7, 0.3), q=(0.3, 0.7)),
                  ev.PoissonSampledEvent(event=LAPLACE, sampling_rate=0.1)):  # fmt: skip
        found = [event.renyi(order, neighbours=tacit.guarantees.Neighbours.ADD_OR_REMOVE) for order in orders]
        made.clear()
        bound = {"kind": "renyi", "orders": orders, "epsilons": found}
        assert opinion_on_certificate(stated(bound, event)).confirmed is True
        assert len(made) <= 2
        bound["epsilons"] = [*found[:5], found[5] * 0.97, *found[6:]]  # type: ignore[operator]
        assert opinion_on_certificate(stated(bound, event)).confirmed is False


def test_a_ball_around_0_to_a_power_is_no_number_and_costs_nothing() -> None:
    """The curve of the exponential mechanism at its own epsilon, on a grid that meets it."""
    with precision(512):
        orders = both_orders({"kind": "exponential", "epsilon": 0.0021}, "add-or-remove")
        assert orders is not None
        for k in (2, 3, 5, 7):
            step = exact(0.0021) / k
            assert orders[0](k * step).is_finite()
            losses = on_grid(orders[0], step, negligible=1e-20)
            assert sum(1 for m in losses.masses if m > 1 << 100) >= 2 * k - 1


def counted(**more: Any) -> dict[str, Any]:
    plan = make_plan(
        [tacit.query(tacit.sum("v"), **more)], schema=chain.SCHEMA, unit=tacit.rows(),
        budget=tacit.Approximate(epsilon=9.0, delta=1e-3),
    )  # fmt: skip
    made = certify(plan, plan.releases[0], ledger={}, made=MADE, values=None)
    certificate: dict[str, Any] = json.loads(json.dumps(made))
    return certificate


def test_noise_is_of_the_events_own_kind() -> None:
    """Laplace noise passes neither for an exponential mechanism nor for a staircase, nor for a coarser lattice."""
    honest = counted(epsilon=0.5)
    event, noise = honest["event"][0]["event"], honest["mechanism"]["noise"][0]
    assert event["kind"] == "discrete_laplace"
    found = opinion_on_noise(honest)
    assert found is not None
    assert found.confirmed is True
    epsilon, steps = event["epsilon"], noise["sensitivity"]["steps"]
    for forged in (
        {"kind": "exponential", "epsilon": epsilon},
        {"kind": "staircase", "epsilon": epsilon, "gamma": 0.4},
        {"kind": "randomized_response", "epsilon": epsilon, "categories": 1000},
        {"kind": "discrete_laplace", "epsilon": epsilon, "sensitivity": steps + 1},
        {"kind": "discrete_laplace", "epsilon": epsilon * 0.99, "sensitivity": steps},
    ):
        changed = copy.deepcopy(honest)
        changed["event"][0]["event"] = forged
        opinion = opinion_on_noise(changed)
        assert opinion is not None
        assert opinion.confirmed is False, forged


def test_noise_of_very_many_steps_is_under_the_continuous_curve_that_is_wider() -> None:
    """Laplace noise on a grid is above the continuous one of its epsilon, and under that of 2 ln cosh(1 / 2b) more."""
    schema = {"v": tacit.number(0, 120)}
    plan = make_plan(
        [tacit.query(tacit.mean("v"), epsilon=0.2)], schema=tacit.Schema(schema), unit=tacit.rows(),
        budget=tacit.Pure(epsilon=1.0),
    )  # fmt: skip
    honest = json.loads(json.dumps(certify(plan, plan.releases[0], ledger={}, made=MADE, values=None)))
    assert honest["event"][0]["event"]["kind"] == "laplace"
    found = opinion_on_noise(honest)
    assert found is not None
    assert found.confirmed is True
    narrow = copy.deepcopy(honest)
    narrow["event"][0]["event"]["epsilon"] = 0.199
    assert opinion_on_noise(narrow).confirmed is False  # type: ignore[union-attr]
    for steps, more, holds in ((1, 0.0, False), (1, 0.3, True), (20, 0.0, False), (20, 0.03, True)):
        few = copy.deepcopy(honest)
        few["mechanism"]["noise"][0] |= {
            "noise_scale": str(steps),
            "sensitivity": {"norm": "L1", "steps": steps},
        }
        few["event"][0]["event"]["epsilon"] = 1.0 + more
        assert opinion_on_noise(few).confirmed is holds, (steps, more)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "value"), [("noise_scale", "-1000"), ("noise_scale", "0"), ("steps", -5), ("steps", 0), ("steps", True)]
)  # fmt: skip
def test_noise_of_no_width_hides_nothing(name: str, value: Any) -> None:
    forged = counted(epsilon=0.5)
    noise = forged["mechanism"]["noise"][0]
    (noise if name in noise else noise["sensitivity"])[name] = value
    opinion = opinion_on_noise(forged)
    assert opinion is not None
    assert opinion.confirmed is False


def test_advantages_of_releases_add_up_in_the_charge() -> None:
    def charged(whole: float, definition: str = "sim") -> bool | None:
        condition = {"kind": "bounded-adversary", "assumption": "AES", "definition": definition}
        plan = {
            "charge": {
                "bound": {"kind": "pure", "epsilon": 2.0},
                "condition": {**condition, "advantage": whole},
            },
            "releases": ["a", "b"],
        }
        own = stated({"kind": "pure", "epsilon": 1.0}, LAPLACE)
        own["guarantee"]["condition"] = {**condition, "advantage": 0.1}
        return opinion_on_charge([{**own, "name": name, "plan": plan} for name in ("a", "b")]).confirmed

    assert charged(0.2) is True
    assert charged(0.19) is False
    assert charged(0.9, "ind") is None  # there each is weighed by e^epsilon of those before it


def test_infinite_losses_add_up() -> None:
    """Five runs that fail with 1/1000 each: 1 - 0.999^5, and no delta below is confirmed at any epsilon."""
    with precision(256):
        orders = both_orders({"kind": "approximate", "epsilon": 0.25, "delta": 1e-3}, "add-or-remove")
        assert orders is not None
        one = on_grid(orders[0], exact("1/8"), negligible=1e-30)
        whole = composed([(one, 5)], negligible=1e-30).infinite / 2**BITS
    assert whole == pytest.approx(1 - 0.999**5, rel=1e-9)
    runs = ev.RepeatedEvent(event=ev.ApproximateEvent(epsilon=0.25, delta=1e-3), times=5)
    for delta, confirmed in ((1.05 * whole, True), (0.95 * whole, False)):
        bound = {"kind": "approximate", "epsilon": 1.25, "delta": delta}
        assert opinion_on_certificate(stated(bound, runs)).confirmed is confirmed


def test_a_rho_beside_sampled_noise() -> None:
    """The best order of the curve of a rho is found, not taken from a short list."""
    sampled = ev.PoissonSampledEvent(event=ev.GaussianEvent(noise_multiplier=1.1), sampling_rate=0.05)
    rho = ev.RepeatedEvent(event=ev.ConcentratedEvent(rho=0.004), times=5)
    agrees(ev.ComposedEvent(events=(rho, sampled)), 1e-6, below=False)
