"""The sparse graph: its chance by hand, by enumeration and by simulation; sums and joint releases over it; liars."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest

import tacit
from support.parties import Room
from tacit.errors import InvalidParameter, JointRefused
from tacit.parties import Joint, joint_release
from tacit.parties import session as graph
from tacit.parties.aggregator import Wire, run_in_process
from tacit.parties.session import (
    AGGREGATOR,
    TRIES,
    Ring,
    Sizes,
    at_least,
    refused,
    ring_for,
    surrounded,
    write,
)


def test_the_chance_by_hand() -> None:
    """50 holders, 4 corrupt, 5 neighbours each way: 3 of 5 in a row are corrupt, or 6 of 10 keepers (there are 4)."""
    row = Fraction(comb(4, 3) * comb(46, 2) + comb(4, 4) * comb(46, 1), comb(50, 5))
    assert at_least(total=50, marked=4, drawn=5, count=3) == row
    assert surrounded(holders=50, corrupt=4, side=5, threshold=6) == pytest.approx(
        float(min(50 * TRIES * row, 1))
    )
    assert surrounded(holders=50, corrupt=2, side=5, threshold=6) == 0.0
    lost = Fraction(sum(comb(6, j) * comb(44, 5 - j) for j in range(3, 6)), comb(50, 5))
    assert refused(holders=50, gone=6, side=5) == pytest.approx(float(50 * lost))


@pytest.mark.parametrize("side", [2, 3])
def test_by_enumeration_a_list_that_is_signed_keeps_honest_holders_together(side: int) -> None:
    """All rings of 8 that are honest, corrupt or gone: connected unless some `side` in a row are half corrupt."""
    n, split = 8, 0
    ring = Ring(side=side, threshold=side + 1, delta=0.0)
    sizes = Sizes(holders=n, fewest=2, colluding=0)
    order = ring.order(sizes, b"x")
    for kinds in itertools.product("hcg", repeat=n):
        left = [order[p] for p in range(n) if kinds[p] != "g"]
        signed = not ring.gaps(sizes, b"x", left)
        windows = [[kinds[(p + k) % n] for k in range(side)] for p in range(n)]
        assert signed == all(w.count("g") <= side // 2 for w in windows)
        rare = any(w.count("c") >= side - side // 2 for w in windows)
        honest = [p for p in range(n) if kinds[p] == "h"]
        together = _connected(honest, n, side)
        split += not together
        assert together or rare or not signed
        if signed:
            # Whoever is on the ring has enough keepers left to open its secret.
            keepers = [[kinds[(p + k) % n] for k in range(-side, side + 1)] for p in range(n)]
            assert all(sum(k != "g" for k in w) >= side + 1 for p, w in enumerate(keepers) if kinds[p] != "g")
    assert split > 100


def _connected(places: list[int], n: int, side: int) -> bool:
    seen, waiting = set(places[:1]), places[:1]
    while waiting:
        here = waiting.pop()
        for p in places:
            if p not in seen and min((p - here) % n, (here - p) % n) <= side:
                seen.add(p)
                waiting.append(p)
    return len(seen) == len(places)


def test_the_chance_bounds_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 holders, 5 corrupt at random, 5 neighbours each way: how often half of 5 in a row are corrupt."""
    monkeypatch.setattr(graph, "TRIES", 1)
    rng = np.random.default_rng(1)
    n, bad, side, tries, met = 20, 3, 5, 20_000, 0
    for _ in range(tries):
        corrupt = np.zeros(n, dtype=int)
        corrupt[rng.permutation(n)[:bad]] = 1
        rows = sum(np.roll(corrupt, k) for k in range(side))
        met += int(rows.max() >= side - side // 2)
    chance = surrounded(holders=n, corrupt=bad, side=side, threshold=side + 1)
    assert 0.2 * chance < met / tries <= chance


def test_rings_are_symmetric_and_small() -> None:
    sizes = Sizes(holders=1000, fewest=800, colluding=50)
    ring = ring_for(sizes, 1e-9)
    assert 0 < ring.delta <= 1e-9
    assert ring.failing <= 1e-3
    assert ring.side < 80
    keepers = ring.keepers(sizes, b"seed")
    assert all(len(k) == 2 * ring.side + 1 and i in k for i, k in enumerate(keepers))
    assert all(i in keepers[j] for i in range(0, 1000, 97) for j in keepers[i])
    # Few colluding holders can never fill half of a long enough row: then the chance is 0.
    assert ring_for(Sizes(holders=201, fewest=190, colluding=5)).delta == 0.0
    with pytest.raises(InvalidParameter, match="graph_delta"):
        ring_for(Sizes(holders=1000, fewest=900, colluding=200), 1e-9)
    with pytest.raises(InvalidParameter, match="fewest"):
        ring_for(Sizes(holders=1000, fewest=520, colluding=5), 1e-9)
    assert ring_for(Sizes(holders=200, fewest=150, colluding=20)).side == 0


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch):
    """Rings from 11 holders on."""
    monkeypatch.setattr(graph, "COMPLETE", 10)
    ring_for.cache_clear()
    yield monkeypatch
    ring_for.cache_clear()


def test_sums_over_a_ring(small: pytest.MonkeyPatch) -> None:
    at = Room(Sizes(holders=24, fewest=21, colluding=1))
    assert at.session.ring.side == 6
    wire = Wire(carry=lambda stage, i, raw: [] if stage == "masked" and i in (3, 11, 17) else [raw])
    found = run_in_process(at.session, at.holders(), wire)
    assert set(found.remaining) == set(range(24)) - {3, 11, 17}
    assert (found.values == at.truth(found.remaining)).all()


@pytest.mark.slow
def test_a_sum_of_205_holders() -> None:
    at = Room(Sizes(holders=205, fewest=195, colluding=5))
    assert at.session.ring.side > 0
    wire = Wire(carry=lambda stage, i, raw: [] if stage == "masked" and i % 41 == 3 else [raw])
    found = run_in_process(at.session, at.holders(), wire)
    assert len(found.remaining) == 200
    assert (found.values == at.truth(found.remaining)).all()


def test_stretches_of_the_ring_that_are_named_as_gone_are_refused(small: pytest.MonkeyPatch) -> None:
    """Two stretches as long as the masks reach part the rest into two sums; no honest holder signs such a list."""
    at = Room(Sizes(holders=40, fewest=28, colluding=2, threshold=22))
    ring, holders = Ring(side=6, threshold=7, delta=0.0), at.holders()
    small.setattr(type(at.session), "ring", property(lambda self: ring))
    order: list[int] = []

    def carry(stage: str, i: int, raw: bytes) -> list[bytes]:
        if stage != "to masked":
            return [raw]
        if not order:
            order.extend(ring.order(at.session.sizes, holders[i]._ring_seed()))
        gone = {*order[:6], *order[20:26]}
        left = sorted(set(range(40)) - gone)
        return [write("survivors", session=at.session.id, sender=AGGREGATOR, key=None, survivors=left)]

    wire = Wire(carry=carry)
    with pytest.raises(JointRefused, match="confirmed the list"):
        run_in_process(at.session, holders, wire)
    assert sum("gone" in told for told in wire.told) >= 28
    assert not any(h.state in ("confirmed", "revealed") for h in holders.values())


# --- joint releases over a ring ------------------------------------------------------------------------------
SCHEMA = {"k": tacit.category(["a", "b"])}
MANY = Sizes(holders=1000, fewest=900, colluding=50, appearances=1)


def joint(asked: object = None, sizes: Sizes = MANY, **paid: object) -> Joint:
    return Joint.of(
        asked or tacit.count(by="k"),
        schema=SCHEMA,
        protect=tacit.rows(),
        sizes=sizes,
        graph_delta=1e-9,
        **paid,
    )


def test_the_chance_is_in_delta_of_guarantee_and_charge() -> None:
    budget = tacit.Approximate(epsilon=10, delta=1e-3)
    agreed = joint(epsilon=1, delta=1e-6)
    chance = agreed.ring.delta
    assert chance > 0
    plan = agreed.plan(budget)
    (one,) = plan.releases
    assert float(one.guarantee.bound.delta) >= chance
    assert float(one.guarantee.bound.epsilon) == 1.0
    assert float(plan.charged.bound.delta) >= chance
    assert sum(getattr(e, "delta", 0.0) for e in one.assignment.events) == chance
    assert "sparse-masks" in one.assignment.theorems
    both = joint([tacit.count(by="k"), tacit.count()], epsilon=1, delta=1e-6).plan(budget)
    assert float(both.charged.bound.delta) >= 2 * chance * (1 - 1e-12)
    assert "order of the ring" in " ".join(agreed.declared)
    for paid in ({"epsilon": 1}, {"rho": 0.5}, {"mu": 1}, {"epsilon": 1, "delta": chance / 2}):
        with pytest.raises(InvalidParameter, match="hold the chance"):
            joint(**paid)
    with pytest.raises(tacit.TacitError):
        agreed.plan(tacit.Pure(epsilon=10))


def test_skellam_noise_gets_what_the_ring_leaves_of_delta() -> None:
    wide = {f"f{i}": tacit.flag() for i in range(30)}
    agreed = Joint.of(
        tacit.margins(list(wide)), schema=wide, protect=tacit.rows(), sizes=MANY, epsilon=1, delta=1e-8,
        graph_delta=1e-9,
    )  # fmt: skip
    (one,) = agreed.plan(tacit.Approximate(epsilon=10, delta=1e-3)).releases
    noise = one.assignment.noise[0].mechanism
    assert noise.delta == Fraction(1e-8).limit_denominator(10**9) - Fraction(agreed.ring.delta)
    assert float(one.guarantee.bound.delta) == pytest.approx(1e-8, rel=1e-9)
    from tacit.accounting import account

    assert account(list(one.assignment.events), delta=1e-8).epsilon.high <= 1 + 1e-9


def test_a_joint_release_over_a_ring_charges_the_chance(small: pytest.MonkeyPatch) -> None:
    small.setattr(graph, "TRIES", Fraction(1, 10_000))
    held = [
        tacit.Curator(
            pd.DataFrame({"k": ["a"] * (i + 1) + ["b"] * 3}), protect=tacit.rows(), schema=SCHEMA, table=f"t{i}",
            budget=tacit.Approximate(epsilon=100, delta=1e-2),
        )
        for i in range(14)
    ]  # fmt: skip
    (found,) = joint_release(
        held,
        tacit.count(by="k"),
        fewest=13,
        colluding=3,
        appearances=1,
        epsilon=50,
        delta=1e-3,
        graph_delta=1e-3,
    )
    told = found.certificate["data"]["joint"]["ring"]
    assert 0 < told["chance"] <= 1e-3
    assert float(found.guarantee.bound.delta) >= told["chance"]
    assert all(float(c.spent.delta) >= told["chance"] for c in held)
    assert list(found.table["value"]) == [sum(range(1, 15)), 42]
