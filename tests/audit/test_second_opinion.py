"""The second opinion: agrees with the accountant, with direct sums, and refuses what is stated too small."""

from __future__ import annotations

import ast
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tacit
from curator import chain
from support.parameter_examples import DECLARED_EVENTS
from tacit.accounting import account
from tacit.accounting import events as ev
from tacit.accounting.codec import to_record
from tacit.audit import opinion_on_certificate, opinion_on_charge, opinion_on_noise
from tacit.audit.composition import BITS, composed, epsilon_at, on_grid
from tacit.audit.curves import both_orders, exact
from tacit.cli import main
from tacit.curator.certificate import CIPHER, certify
from tacit.curator.planning import make_plan
from tacit.errors import TacitError
from tacit.exact.rounding import precision
from tacit.guarantees import Neighbours

ADDED, REPLACED = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE_ONE
MADE = {"time": "2026-01-01T00:00:00+00:00", "noise": CIPHER, "data": {"bounded": True}, "versions": {}}


def stated(bound: dict[str, Any], what: list[ev.Event], neighbours: Neighbours) -> dict[str, Any]:
    """As much of a certificate as the second opinion reads."""
    guarantee = {"bound": bound, "condition": {"kind": "always"}}
    records = json.loads(json.dumps([to_record(e) for e in what]))
    return {"guarantee": guarantee, "event": records, "neighbours": neighbours.value, "mechanism": {}}


def times(event: ev.Event, n: int) -> list[ev.Event]:
    return [ev.RepeatedEvent(event=event, times=n)]


GAUSSIAN = ev.GaussianEvent(noise_multiplier=1.1)
PLANS: list[tuple[list[ev.Event], float, Neighbours]] = [
    ([ev.LaplaceEvent(epsilon=0.354), ev.LaplaceEvent(epsilon=0.707)], 1e-3, ADDED),
    (times(ev.GaussianEvent(noise_multiplier=30.0), 1000), 1e-6, ADDED),
    (times(ev.PoissonSampledEvent(event=GAUSSIAN, sampling_rate=0.01), 500), 1e-5, ADDED),
    (times(ev.PoissonSampledEvent(event=ev.LaplaceEvent(epsilon=1.0), sampling_rate=0.1), 10), 1e-5, ADDED),
    (times(ev.DiscreteLaplaceEvent(epsilon=0.1, sensitivity=3), 30), 1e-9, REPLACED),
    (times(ev.DiscreteGaussianEvent(noise_multiplier=5.0), 5), 1e-6, REPLACED),
    (times(ev.DiscreteGaussianEvent(noise_multiplier=0.7, sensitivity=2), 3), 1e-6, ADDED),
    (times(ev.SkellamEvent(noise_variance=50.0, sensitivity=2), 5), 1e-6, REPLACED),
    (times(ev.StaircaseEvent(epsilon=0.4, gamma=0.3), 8), 1e-2, REPLACED),
    (times(ev.StaircaseEvent(epsilon=0.4, gamma=0.7), 8), 1e-2, ADDED),
    (times(ev.ExponentialEvent(epsilon=0.4), 8), 1e-6, REPLACED),
    (times(ev.PermuteAndFlipEvent(epsilon=0.4), 8), 1e-3, REPLACED),
    (times(ev.RandomizedResponseEvent(epsilon=0.4, categories=5), 8), 1e-4, REPLACED),
    (times(ev.RandomizedResponseEvent(epsilon=0.4, categories=5), 8), 1e-4, ADDED),
    (times(ev.ConcentratedEvent(rho=0.01), 8), 1e-6, REPLACED),
    (times(ev.TabulatedEvent(p=(0.9, 0.1), q=(0.5, 0.5)), 3), 1e-2, REPLACED),
    (times(ev.TabulatedEvent(p=(0.7, 0.1, 0.2), q=(0.3, 0.5, 0.2)), 3), 1e-2, ADDED),
    (times(ev.SampledWithoutReplacementEvent(event=GAUSSIAN, sampling_rate=0.1), 20), 1e-6, REPLACED),
    (
        [
            ev.ConcentratedEvent(rho=0.01),
            ev.GaussianEvent(noise_multiplier=20.0),
            ev.LaplaceEvent(epsilon=0.1),
            ev.ApproximateEvent(epsilon=0.1, delta=1e-7),
        ],
        1e-6,
        REPLACED,
    ),
    *((times(event, 3), 1e-3, ADDED) for event in DECLARED_EVENTS),
]


@pytest.mark.parametrize(("what", "delta", "neighbours"), PLANS)
def test_two_programs_agree(what: list[ev.Event], delta: float, neighbours: Neighbours) -> None:
    """The accountant's upper end is confirmed within 2%; an epsilon that is 5% below its lower end never is."""
    ends = account(what, delta=delta, neighbours=neighbours).epsilon
    bound = {"kind": "approximate", "epsilon": ends.high, "delta": delta}
    opinion = opinion_on_certificate(stated(bound, what, neighbours))
    assert opinion.confirmed is True, opinion
    assert opinion.found is not None
    assert ends.low * (1 - 1e-9) <= opinion.found <= ends.high * 1.02
    bound["epsilon"] = 0.95 * ends.low or 0.9 * ends.high
    assert opinion_on_certificate(stated(bound, what, neighbours)).confirmed is False


def test_a_small_composition_is_what_enumeration_gives() -> None:
    """Two tables, three runs, all 2^3 outcomes by hand: the grid's epsilon is that of the exact sum, rounded up."""
    p, q, n = (Fraction(7, 10), Fraction(3, 10)), (Fraction(2, 5), Fraction(3, 5)), 3

    def delta(epsilon: float) -> float:
        total = 0.0
        for k in range(n + 1):
            a, b = p[0] ** k * p[1] ** (n - k), q[0] ** k * q[1] ** (n - k)
            total += math.comb(n, k) * max(0.0, float(a) - math.exp(epsilon) * float(b))
        return total

    event = {"kind": "tabulated", "p": ["7/10", "3/10"], "q": ["2/5", "3/5"]}
    with precision(256):
        orders = both_orders(event, "add-or-remove")
        assert orders is not None
        step = exact(Fraction(1, 4096))
        together = composed([(on_grid(orders[0], step, negligible=1e-15), n)], negligible=1e-15)
        for target in (0.3, 0.1, 0.02):
            found = epsilon_at(together, step, target)
            assert found is not None
            assert target - 1e-3 <= delta(float(found)) <= target + 1e-12
        assert sum(together.masses) + together.infinite >= 1 << BITS


@pytest.mark.parametrize(
    ("bound", "event", "loose"),
    [
        ({"kind": "pure", "epsilon": 0.5}, ev.LaplaceEvent(epsilon=0.5), "epsilon"),
        ({"kind": "concentrated", "rho": 0.02}, ev.GaussianEvent(noise_multiplier=5.0), "rho"),
        ({"kind": "gaussian", "mu": 0.2}, ev.GaussianEvent(noise_multiplier=5.0), "mu"),
    ],
)
def test_sums_are_confirmed_to_the_last_digits(bound: dict[str, Any], event: ev.Event, loose: str) -> None:
    assert opinion_on_certificate(stated(bound, [event], ADDED)).confirmed is True
    short = {**bound, loose: bound[loose] * (1 - 1e-6)}
    assert opinion_on_certificate(stated(short, [event], ADDED)).confirmed is False
    twice = [event, event]
    assert opinion_on_certificate(stated(bound, twice, ADDED)).confirmed is False


def test_divergences_of_laplace_noise() -> None:
    """Mironov 2017, Prop. 6: ln((a e^{(a-1) eps} + (a-1) e^{-a eps}) / (2a - 1)) / (a - 1)."""
    a, e = 4.0, 0.6
    true = math.log((a * math.exp((a - 1) * e) + (a - 1) * math.exp(-a * e)) / (2 * a - 1)) / (a - 1)
    bound = {"kind": "renyi", "orders": [a], "epsilons": [true * 1.001]}
    event = ev.LaplaceEvent(epsilon=e)
    assert opinion_on_certificate(stated(bound, [event], ADDED)).confirmed is True
    bound["epsilons"] = [true * 0.95]
    assert opinion_on_certificate(stated(bound, [event], ADDED)).confirmed is False


PAYING: list[tuple[dict[str, float], Any]] = [
    ({"epsilon": 1.0}, tacit.Pure(epsilon=9.0)),
    ({"epsilon": 0.5, "delta": 1e-6}, tacit.Approximate(epsilon=9.0, delta=1e-3)),
    ({"rho": 0.1}, tacit.Concentrated(rho=9.0)),
    ({"mu": 0.5}, tacit.GaussianDP(mu=9.0)),
    ({"rho": 0.1}, tacit.Renyi(orders=(2.0, 8.0), epsilons=(50.0, 90.0))),
]


@pytest.mark.parametrize(
    "unit", ["rows, add-or-remove", "few groups, replace-one", "two people, add-or-remove"]
)
def test_every_statistic_is_confirmed(unit: str) -> None:
    """All statistics under all ways to pay: bound, charge and noise of each certificate."""
    confirmed = 0
    for way, (paid, budget) in enumerate(PAYING):
        for asked in chain.ASKED.values():
            try:
                plan = make_plan(
                    [tacit.query(asked, **paid)], schema=chain.SCHEMA, unit=chain.UNITS[unit], budget=budget
                )
            except TacitError:
                continue
            made = certify(plan, plan.releases[0], ledger={}, made=MADE, values=None)
            certificate = json.loads(json.dumps(made))
            assert opinion_on_certificate(certificate).confirmed is True, (way, asked)
            assert opinion_on_charge([certificate]).confirmed is True, (way, asked)
            noise = opinion_on_noise(certificate)
            assert noise is None or noise.confirmed is True, (way, asked)
            confirmed += 1
    assert confirmed > 70


def test_noise_that_gives_less_than_its_event_is_noticed() -> None:
    plan = make_plan(
        [tacit.query(tacit.count(), epsilon=1.0)],
        schema=chain.SCHEMA, unit=tacit.rows(), budget=tacit.Pure(epsilon=2.0),
    )  # fmt: skip
    certificate = json.loads(json.dumps(certify(plan, plan.releases[0], ledger={}, made=MADE, values=None)))
    noise = certificate["mechanism"]["noise"][0]
    noise["noise_scale"] = str(Fraction(noise["noise_scale"]) * Fraction(99, 100))
    found = opinion_on_noise(certificate)
    assert found is not None
    assert found.confirmed is False


def test_it_shares_no_code_with_the_accountant() -> None:
    """The files of the second opinion import errors and exact arithmetic only."""
    root = Path(tacit.__file__).parent / "audit"
    for name in ("claims", "composition", "curves"):
        for node in ast.walk(ast.parse((root / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit"):
                assert (node.module or "").split(".")[1] in {"audit", "errors", "exact"}, (name, node.module)


def test_a_release_is_verified_with_a_second_opinion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--people", "2000", "--json"]) == 0
    capsys.readouterr()
    assert main(["verify", str(out), "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    second = [f for f in findings if "second opinion" in f["what"]]
    assert len(second) == 13
    assert all(f["holds"] is True for f in second)


@pytest.mark.parametrize(
    ("broken", "holds"),
    [({}, None), ({"bound": {"kind": "new"}}, None), ({"bound": {"kind": "pure", "epsilon": "x"}}, False)],
)
def test_what_is_not_known_is_named(broken: dict[str, Any], holds: bool | None, tmp_path: Path) -> None:
    """A certificate of another version, or with a word for a number: not confirmed, and no traceback."""
    from tacit.audit.release import _found

    said = {
        "guarantee": {"condition": {"kind": "always"}, **broken},
        "event": [],
        "neighbours": "add-or-remove",
    }
    (finding,) = _found("x", opinion_on_certificate, said)
    assert finding.holds is holds
