"""The sparse graph: its chance by simulation and by hand, and sums over it."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from support.parties import Room
from tacit.errors import InvalidParameter
from tacit.parties import graph
from tacit.parties.graph import ring_for, surrounded
from tacit.parties.process import Wire, run_in_process
from tacit.parties.sizes import Sizes


def test_the_chance_by_hand() -> None:
    """n = 5, one corrupt, one gone, one neighbour each way, threshold 2: 5 * 2/5 in a row; two corrupt cannot be."""
    assert surrounded(holders=5, corrupt=1, gone=1, side=1, threshold=2) == 1.0
    found = surrounded(holders=50, corrupt=4, gone=0, side=3, threshold=4)
    row = 50 * (4 * 3 * 2) / (50 * 49 * 48)
    known = 50 * comb(4, 4) * comb(45, 2) / comb(49, 6)
    assert found == pytest.approx(row + known)


def test_the_chance_bounds_a_simulation() -> None:
    """20 holders, 6 bad at random, 3 neighbours each way: how often the others fall apart."""
    rng = np.random.default_rng(1)
    n, bad, side, tries, apart = 20, 6, 3, 20_000, 0
    for _ in range(tries):
        gone = np.zeros(n, dtype=bool)
        gone[rng.permutation(n)[:bad]] = True
        left = np.flatnonzero(~gone)
        steps = np.diff(np.append(left, left[0] + n))
        apart += int((steps > side).sum() >= 2)
    assert apart / tries <= surrounded(holders=n, corrupt=bad, gone=0, side=side, threshold=2 * side + 1)


def test_rings_are_symmetric_and_small() -> None:
    sizes = Sizes(holders=1000, fewest=800, colluding=50)
    ring = ring_for(sizes, 1e-9)
    assert ring.delta <= 1e-9
    assert ring.side < 40
    keepers = ring.keepers(sizes, b"seed")
    assert all(len(k) == 2 * ring.side + 1 and i in k for i, k in enumerate(keepers))
    assert all(i in keepers[j] for i in range(0, 1000, 97) for j in keepers[i])
    with pytest.raises(InvalidParameter, match="graph_delta"):
        ring_for(sizes, 0.0)
    assert ring_for(Sizes(holders=200, fewest=150, colluding=20)).side == 0


def test_sums_over_a_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "COMPLETE", 10)
    ring_for.cache_clear()
    at = Room(Sizes(holders=24, fewest=18, colluding=1))
    assert at.session.ring.side == 4
    wire = Wire(carry=lambda stage, i, raw: [] if stage == "masked" and i in (3, 11, 17) else [raw])
    found = run_in_process(at.session, at.holders(), wire)
    assert set(found.remaining) == set(range(24)) - {3, 11, 17}
    assert (found.values == at.truth(found.remaining)).all()
    ring_for.cache_clear()
