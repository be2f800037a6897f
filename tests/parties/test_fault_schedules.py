"""Seeded schedules of faults: the right sum or a clear refusal, never a wrong number, never a second charge."""

from __future__ import annotations

import pytest

from support.parties import Room
from tacit.errors import JointRefused
from tacit.noise import SeededSource
from tacit.parties.aggregator import Wire, run_in_process
from tacit.parties.session import Sizes

FEW = Sizes(holders=5, fewest=3, colluding=1, threshold=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "seeds", "part"),
    [
        (FEW, range(200), 1),
        (Sizes(holders=12, fewest=7, colluding=1, threshold=7), range(200, 240), 2),
        (Sizes(holders=20, fewest=13, colluding=2, threshold=13), range(240, 260), 2),
    ],
    ids=["5", "12", "20"],
)
def test_random_faults_give_the_right_sum_or_a_refusal(sizes: Sizes, seeds: range, part: int) -> None:
    """Schedules of lost, doubled, reordered, altered and replayed messages, and crashes at each step.

    With more holders each fault is as much rarer as `part` says, so that some of the schedules still reach a sum.
    """
    outcomes, kinds = (
        {"sum": 0, "refused": 0},
        dict.fromkeys(("crash", "lost", "twice", "altered", "old", "late"), 0),
    )
    gone = 0
    earlier: list[bytes] = []
    for seed in seeds:
        source = SeededSource(seed=seed)
        at = Room(sizes, nonce=seed.to_bytes(32, "little"))
        rate = seed % 4
        crashed: set[int] = set()
        late: list[bytes] = []

        def carry(
            stage: str, i: int, raw: bytes, source=source, rate=rate, crashed=crashed, late=late
        ) -> list[bytes]:
            draw = int(source.words(1)[0] % (1000 * part))
            if i in crashed:
                return []
            earlier.append(raw)
            if draw < 8 * rate:
                kinds["crash"] += 1
                crashed.add(i)
                return []
            if draw < 16 * rate:
                kinds["lost"] += 1
                return []
            if draw < 40 * rate:
                kinds["twice"] += 1
                return [raw, raw]
            if draw < 60 * rate:
                kinds["altered"] += 1
                place = int(source.words(1)[0]) % len(raw)
                return [raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]]
            if draw < 80 * rate:
                kinds["old"] += 1
                return [earlier[draw % len(earlier)], raw]
            if draw < 100 * rate:
                kinds["late"] += 1
                late.append(raw)
                return late[::-1]
            return [raw]

        wire = Wire(carry=carry)
        try:
            found = run_in_process(at.session, at.holders(), wire)
        except JointRefused:
            outcomes["refused"] += 1
        else:
            outcomes["sum"] += 1
            gone += len(found.remaining) < sizes.holders
            assert len(found.remaining) >= sizes.fewest
            assert (found.values == at.truth(found.remaining)).all()
        assert all(count == 1 for count in at.charges.values())
    assert outcomes["sum"] >= 3 * len(seeds) // 10
    assert outcomes["refused"] >= len(seeds) // 20
    assert min(kinds.values()) >= 8
    assert gone >= 4
