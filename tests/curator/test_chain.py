"""The chain of promises, over every statistic, unit, neighbour relation, noise and way to pay:

    what the noise that was really drawn hides, between tables that are neighbours by definition
      <= the bound that the release states  =  what the certificate prints,
    and of all releases of a plan together
      <= what the ledger keeps as its charge  =  what the certificate prints  <=  the price that was asked.

Neighbours are made here from the definition: a base table, and all that one unit may bring along. The noise is watched
where it is drawn (`draws.py`), with the integers that it is added to; no law is rebuilt. That the largest loss comes
near the claim shows that the tables are bad enough for the test to fail.
"""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, NoLaw, UnitMismatch
from tacit.noise.source import SeededSource

from .chain import ASKED, SCHEMA, UNITS, drawn, losses, table, versions
from .draws import Draw, Loss, share_of, sizes, watched

ROOM = 1 + 1e-6
APPROXIMATE = tacit.Approximate(epsilon=1e6, delta=0.9)
RENYI = tacit.Renyi(orders=(1.5, 4.0, 32.0), epsilons=(1e6, 1e6, 1e6))
WAYS: list[tuple[dict[str, Any], Any]] = [
    ({"epsilon": 0.5}, tacit.Pure(epsilon=1e6)),
    ({"epsilon": 0.7}, APPROXIMATE),
    ({"epsilon": 0.5, "delta": 1e-2}, APPROXIMATE),
    ({"epsilon": 1, "delta": 1e-6}, APPROXIMATE),
    ({"rho": 0.05}, tacit.Concentrated(rho=1e6)),
    ({"epsilon": 0.4}, tacit.Concentrated(rho=1e6)),
    ({"mu": 0.3}, tacit.GaussianDP(mu=1e6)),
    ({"epsilon": 0.4}, tacit.GaussianDP(mu=1e6)),
    ({"rho": 0.05}, RENYI),
    ({"within": 40, "confidence": 0.9}, tacit.Pure(epsilon=1e6)),
    ({"within": 40, "delta": 1e-6, "simultaneous": True}, APPROXIMATE),
    ({"within": 40}, tacit.Concentrated(rho=1e6)),
]


SLOW = {
    ("rows, add-or-remove", "sparse", 2), ("few groups, replace-one", "sparse people", 3),
    ("two people, add-or-remove", "sparse", 2),
}  # fmt: skip
"""Sparse histograms with a delta take seconds to price: one of each noise."""


def planned_for(curator: tacit.Curator, asked: Any, paid: Any) -> Any:
    """The plan, or None where this is not to be had for such a price."""
    try:
        return curator.preview(asked, **paid)
    except (InvalidParameter, NoLaw, UnitMismatch):
        return None


@functools.cache
def curator(unit: str, place: int) -> tacit.Curator:
    return tacit.Curator(
        table(versions(UNITS[unit])[0][0]), protect=UNITS[unit], schema=SCHEMA, budget=WAYS[place][1],
        source=SeededSource(seed=place),
    )  # fmt: skip


def due(unit: str, name: str, place: int) -> bool:
    """Every statistic is paid for in every way under the first unit, and under five of the ten at least."""
    if name.startswith("sparse") and "delta" in WAYS[place][0]:
        return (unit, name, place) in SLOW
    number = list(UNITS).index(unit)
    return number == 0 or (list(ASKED).index(name) + place + (number + 1) // 2) % 2 == 0


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_drawn_keeps_to_what_is_stated_charged_and_paid(unit: str) -> None:
    neighbours = UNITS[unit].neighbours
    seen: dict[str, float] = {}
    for (name, asked), (place, (paid, _)) in itertools.product(ASKED.items(), enumerate(WAYS)):
        if not due(unit, name, place):
            continue
        plan = planned_for(curator(unit, place), asked, paid)
        if plan is None:
            continue
        (planned,) = plan.releases
        worst = 0.0
        for loss in losses(planned, unit, name):
            stated = share_of(loss, planned.guarantee.bound, neighbours)
            assert stated <= ROOM, (name, paid, stated)
            charged = share_of(loss, plan.charged.bound, neighbours, plan.charged.exact)
            assert charged <= ROOM, (name, paid, charged)
            worst = max(worst, charged)
        kept_to_the_price(plan, paid)
        seen[name] = max(seen.get(name, 0.0), worst)
    # No row is worth nothing: the tables reach the claims, or nearly.
    for name, most in seen.items():
        public = name == "count" and unit in ("rows, replace-one", "three rows, replace-one")
        assert public or most > (0.1 if "keys" in name else 0.4), (name, most)
    assert len(seen) >= len(ASKED) - 4


def kept_to_the_price(plan: Any, paid: Any) -> None:
    """The charge, in the words of the price, is at most the price."""
    exact, bound = plan.charged.exact, plan.charged.bound
    if "epsilon" in paid and bound.kind in ("pure", "approximate"):
        assert exact["epsilon"] <= Fraction(str(paid["epsilon"]))
        assert exact.get("delta", 0) <= Fraction(str(paid.get("delta", 0)))
        assert bound.epsilon <= float(paid["epsilon"]) * (1 + 4e-16)  # one rounding, upwards
    if "rho" in paid and bound.kind == "concentrated":
        assert bound.rho <= paid["rho"] * (1 + 4e-16)
    if "mu" in paid and bound.kind == "gaussian":
        assert bound.mu <= paid["mu"] * (1 + 1e-15)


def scaled(draw: Draw) -> Any:
    return draw.kind, draw.law if draw.kind in ("keys", "names") else draw.scale


@pytest.mark.parametrize("place", range(len(WAYS)))
def test_certificate_ledger_and_price_say_the_same(place: int) -> None:
    """Real releases, each statistic under another unit: what the certificate prints is what the ledger keeps."""
    (paid, _), units = WAYS[place], list(UNITS)
    before: dict[str, int] = {}
    done = 0
    for turn, (name, asked) in enumerate(ASKED.items()):
        unit = units[(turn + place) // 2 % len(units)]
        if (turn + place) % 2 or (name.startswith("sparse") and "delta" in paid):
            continue
        held = curator(unit, place)
        plan = planned_for(held, asked, paid)
        if plan is None:
            continue
        with watched() as draws:
            (answer,) = held.release(plan)
        charges = held.ledger.charges()
        assert len(charges) == before.get(unit, 0) + 1
        before[unit] = len(charges)
        kept, told = charges[-1], answer.certificate
        assert kept.guarantee == plan.charge
        assert told["plan"]["charge"] == kept.guarantee.to_dict()
        assert told["guarantee"] == answer.guarantee.to_dict() == plan.releases[0].guarantee.to_dict()
        assert dict(kept.exact) == plan.charged.exact
        assert kept.event == plan.event_record
        again = drawn(plan.releases[0], unit, name)[0]
        assert [scaled(d) for d in draws] == [scaled(d) for d in again]
        noised = [d for d in draws if d.true is not None]
        for one, two in zip(noised, [d for d in again if d.true is not None], strict=True):
            # The release reads the same integers as all questions at once.
            assert one.true.size != two.true.size or (np.ravel(one.true) == np.ravel(two.true)).all()
        kept_to_the_price(plan, paid)
        done += 1
    assert done >= 4


PLANS: dict[str, tuple[list[Any], dict[str, Any], Any]] = {
    "weights": ([("counts", {"weight": 3}), ("mean", {}), ("quantiles", {})], {"epsilon": 1}, tacit.Pure(epsilon=1e6)),
    "weights, delta": (
        [("counts", {"weight": 3}), ("means", {}), ("sum", {}), ("keys", {}), ("histogram", {})],
        {"epsilon": 1, "delta": 1e-3}, APPROXIMATE,
    ),
    "many, delta": (
        [("counts", {}), ("means", {}), ("sum", {}), ("histogram", {}), ("margins", {}), ("hierarchy", {})] * 5,
        {"epsilon": 1, "delta": 1e-3}, APPROXIMATE,
    ),
    "targets": ([("counts", {"target": 5}), ("sums", {"target": 40})], {"epsilon": 1, "delta": 1e-3}, APPROXIMATE),
    "rho": ([("counts", {"weight": 2}), ("mean", {}), ("ratio", {}), ("variance", {})], {"rho": 0.1},
            tacit.Concentrated(rho=1e6)),
    "mu": ([("counts", {"weight": 2}), ("quantiles", {}), ("ratio", {})], {"mu": 0.4}, tacit.GaussianDP(mu=1e6)),
    "own and shared": (
        [("counts", {"epsilon": 0.5, "delta": 1e-3}), ("keys", {"epsilon": 1, "delta": 1e-3})]
        + [("sum", {}), ("histogram", {}), ("margins", {}), ("means", {})] * 6,
        {"epsilon": 1, "delta": 1e-3}, APPROXIMATE,
    ),
    "accuracy": ([("counts", {}), ("sum", {})], {"within": 60, "delta": 1e-4}, APPROXIMATE),
    "renyi": ([("counts", {}), ("mean", {}), ("ratio", {})], {"rho": 0.1}, RENYI),
}  # fmt: skip


@pytest.mark.parametrize("unit", ["people, add-or-remove", "few groups, replace-one"])
@pytest.mark.parametrize("name", PLANS)
def test_releases_of_a_plan_compose_to_no_more_than_its_charge(name: str, unit: str) -> None:
    asked, paid, budget = PLANS[name]
    neighbours = UNITS[unit].neighbours
    with tacit.Curator(
        table(versions(UNITS[unit])[0][0]), protect=UNITS[unit], schema=SCHEMA, budget=budget,
        source=SeededSource(seed=1),
    ) as held:  # fmt: skip
        plan = held.preview([tacit.query(ASKED[n], **how) for n, how in asked], **paid)
        with watched() as draws:
            answers = held.release(plan)
        (kept,) = held.ledger.charges()
        spent = held.spent.parameters
        assert all(spent[n] == v for n, v in kept.guarantee.bound.parameters.items())
    assert all(a.certificate["plan"]["charge"] == kept.guarantee.to_dict() for a in answers)
    # No draw serves twice: as many numbers as all parts together have.
    if not any(n in ("quantiles", "keys") for n, _ in asked):
        noised = sum(drawn_for(a) for a in answers)
        assert sizes(draws) == noised
        values = [tuple(np.ravel(d.values)) for d in draws if np.size(d.values) > 2]
        assert len(set(values)) == len(values)
    worst = 0.0
    for together in zip(
        *(losses(r, unit, n) for r, (n, _) in zip(plan.releases, asked, strict=True)), strict=True
    ):
        total = functools.reduce(Loss.plus, together)
        share = share_of(total, kept.guarantee.bound, neighbours, dict(kept.exact))
        assert share <= ROOM, share
        worst = max(worst, share)
    assert worst > 0.02
    own = [how for _, how in asked if "epsilon" in how]
    if "epsilon" in paid:
        assert kept.exact["epsilon"] <= Fraction(str(paid["epsilon"])) + sum(
            Fraction(str(h["epsilon"])) for h in own
        )
        most = Fraction(str(paid.get("delta", 0))) + sum(Fraction(str(h["delta"])) for h in own)
        assert kept.exact.get("delta", 0) <= most
    if "rho" in paid and kept.guarantee.bound.kind == "concentrated":
        assert kept.exact["rho"] <= Fraction(str(paid["rho"])) * (1 + Fraction(1, 10**12))
    if "mu" in paid:
        assert kept.guarantee.bound.mu <= paid["mu"] * (1 + 1e-12)


def drawn_for(answer: Any) -> int:
    """How many numbers have noise of their own: all of the parts, or as many as the mechanism's law states."""
    (law, *_) = answer.certificate["mechanism"]["noise"]
    if "on" in law:
        return int(law["dimension"] if "dimension" in law else law["on"].split()[0])
    return sum(np.size(answer.noisy.parts[p]) for p in answer.planned.assignment.noised)


def test_an_analysts_share_is_paid_from_what_the_ledger_keeps() -> None:
    """Two fifths of the budget are four charges of a tenth, to the last bit; the fifth draws no noise."""
    unit = "people, replace-one"
    with tacit.Curator(
        table(versions(UNITS[unit])[0][0]), protect=UNITS[unit], schema=SCHEMA, budget=tacit.Pure(epsilon=1.0),
        analyst="ada", source=SeededSource(seed=2),
    ) as held:  # fmt: skip
        held.ledger.share("ada", tacit.Pure(epsilon=0.4))
        for turn in range(4):
            held.release(ASKED["counts"], epsilon=0.1, key=str(turn))
        with watched() as draws, pytest.raises(BudgetExceeded):
            held.release(ASKED["counts"], epsilon=0.1, key="too many")
        assert draws == []
        kept = held.ledger.charges()
    assert [c.exact["epsilon"] for c in kept] == [Fraction(1, 10)] * 4
    assert {c.analyst for c in kept} == {"ada"}
