"""Holders whose keys are replaced by older ones of their own, shares of full size, people in several holders."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tacit
from support.parties import room
from tacit.errors import JointRefused
from tacit.noise import SeededSource
from tacit.parties import Joint, JointSkellam, Sizes
from tacit.parties.masks import PRIME, split
from tacit.parties.session import AGGREGATOR, pack, write


def test_a_roster_with_other_keys_of_its_own_is_refused() -> None:
    """The same holder started twice: keys that it signed, but not those it holds now, are not used."""
    at = room()
    old, new = at.holders(), at.holders()
    first = {i: h.start() for i, h in old.items()}
    later = {i: h.start() for i, h in new.items()}
    assert first[0] != later[0]
    for own, accepted in ((first[0], False), (later[0], True)):
        lengths, body = pack([own, *(later[i] for i in range(1, 6))])
        raw = write("roster", session=at.session.id, sender=AGGREGATOR, key=None, body=body, lengths=lengths)
        fresh = new[0] if accepted else at.holders()[0]
        if accepted:
            new[0].handle(raw)
            continue
        fresh.start()
        with pytest.raises(JointRefused, match="other keys for this holder"):
            fresh.handle(raw)
        assert fresh.state == "ended"


def test_coefficients_are_as_long_as_the_field() -> None:
    """One share of two is secret + coefficient: it hides the secret only if the coefficient covers the whole field.

    The chance that all of 200 coefficients are below 2^500 is 2^-4200, that none has its lowest bit is 2^-200.
    """
    secret = bytes(range(32))
    source = SeededSource(seed=5)
    found = []
    for _ in range(200):
        share = int.from_bytes(split(secret, threshold=2, points=[1, 2], source=source)[1], "little")
        found.append((share - int.from_bytes(secret, "little")) % PRIME)
    halves = sum(value >> 520 for value in found)
    assert 50 < halves < 150, "the highest bit is set in about half of them: 7 standard deviations"
    assert 50 < sum(value & 1 for value in found) < 150
    assert len(set(found)) == 200


@pytest.mark.parametrize("appearances", [1, 2, 4])
def test_a_person_in_several_holders_moves_each_number_so_often(appearances: int) -> None:
    """Skellam noise for 30 margins: one person in k holders moves a count by k, and k times as many counts."""
    flags = {f"f{i}": tacit.flag() for i in range(30)}
    sizes = Sizes(holders=4, fewest=3, colluding=1, appearances=appearances)
    joint = Joint.of(
        tacit.margins(list(flags)), schema=flags, protect=tacit.rows(), sizes=sizes, epsilon=1, delta=1e-6
    )
    (planned,) = joint.plan(tacit.Approximate(epsilon=1, delta=1e-6)).releases
    noise = planned.assignment.noise[0].mechanism
    assert isinstance(noise, JointSkellam)
    assert noise.steps == appearances
    assert noise.moved == min(30 * appearances, 60)


@pytest.mark.parametrize("remaining", [2, 3, 4])
def test_bands_of_a_joint_density_grow_with_those_who_remain(remaining: int) -> None:
    """Shares are for two honest holders: where r remain the variance is r/2 times that of one curator's noise."""
    sizes = Sizes(holders=4, fewest=2, colluding=0, appearances=1)
    joint = Joint.of(
        tacit.density("x", size=400, guarantee="pure", order=2), schema={"x": tacit.integer(0, 3)},
        protect=tacit.rows(), sizes=sizes, epsilon=2,
    )  # fmt: skip
    (planned,) = joint.plan(tacit.Pure(epsilon=2)).releases
    fit = planned.assignment.fit
    two, wide = (replace(fit, joint=fit.joint.left(n)) for n in (2, remaining))
    assert wide.joint.ratio == Fraction(remaining, 2)
    at = np.array([[0.0], [0.3], [0.7]])
    grown = math.sqrt(remaining / 2)
    assert wide.stds(at) / two.stds(at) == pytest.approx(grown, rel=1e-9)
    assert wide.widest == pytest.approx(wide.plan.noise_std * grown, rel=0.05)
