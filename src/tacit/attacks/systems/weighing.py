"""Coins that are weighed: bits from sums that give nobody away by linear algebra, for blocks of people at a time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tacit.attacks.draws import Draws
from tacit.attacks.finding import Finding
from tacit.attacks.systems.restricted import AuditedSums
from tacit.errors import NotCertified, Refused
from tacit.exact.checks import require, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Integers


__all__ = ["fitting_bits", "weigh"]

LARGEST_BLOCK = 32


def weigh(service: AuditedSums, *, questions: int, block: int = 24, seed: int = 0) -> Finding:
    """Bits from sums that give nobody away by linear algebra: that values are 0 or 1 was not in the audit.

    People are taken in blocks of at most `block`, and `questions` random sets of each block are asked. Exposed is
    whoever has the same bit in all that fits the answers (a coin-weighing argument: about 2n / log2 n sums are enough
    for a block of n). Sets of one block share nobody with those of another, so that 10^5 people take no more than as
    many small systems.
    """
    import numpy as np

    questions, block = whole("questions", questions), whole("block", block, least=2)
    require(block <= LARGEST_BLOCK, parameter="block", value=block, must=f"be at most {LARGEST_BLOCK}")
    draws, answered = Draws(seed, "weighing"), 0
    exposed: list[int] = []
    learned: list[float] = []
    for people in np.array_split(np.arange(service.people), -(-service.people // block)):
        asked, answers = _ask(service, people, questions, draws)
        answered += len(answers)
        if not answers:
            continue
        for place, bit in fitting_bits(asked, answers).items():
            exposed.append(int(people[place]))
            learned.append(float(bit))
    return Finding(
        attack="weighing",
        people=service.people,
        exposed=exposed,
        learned=learned,
        guessing=0.5,
        alone="a coin",
        details={"asked": service.asked, "answered": answered},
    )


def _ask(
    service: AuditedSums, people: Integers, questions: int, draws: Draws
) -> tuple[Integers, list[float]]:
    """Random sets of these people, as many as are wanted or as the service answers of twenty times as many."""
    import numpy as np

    asked, answers = [], []
    for _ in range(20 * questions):
        members = draws.bits(len(people))
        try:
            answers.append(service.total(people[members == 1]))
        except Refused:
            continue
        asked.append(members)
        if len(asked) == questions:
            break
    return np.array(asked, dtype=np.int64), answers


def fitting_bits(asked: Integers, answers: Sequence[float]) -> dict[int, int]:
    """Whose bit is the same in everything that fits: by place, from all patterns of one half met with all of the other.

    Sums are compared by one word each, a sum of theirs with odd weights modulo 2^64. Equal sums have equal words, so
    that no solution is missed; should different sums share one, less is claimed, and nothing wrong.
    """
    import numpy as np

    totals = np.rint(answers).astype(np.int64)
    questions, people = asked.shape
    half = people // 2
    step = np.uint64(0x9E3779B97F4A7C15)
    weights = np.cumprod(np.full(questions, step, dtype=np.uint64), dtype=np.uint64)
    words = (asked.astype(np.uint64) * weights[:, None]).sum(axis=0, dtype=np.uint64)
    left, right = _patterns(half), _patterns(people - half)
    wanted = (totals.astype(np.uint64) * weights).sum(dtype=np.uint64) - right @ words[half:]
    first = left @ words[:half]
    ordered = np.sort(wanted)
    met = ordered[np.minimum(np.searchsorted(ordered, first), len(ordered) - 1)] == first
    left, right = left[met], right[np.isin(wanted, first[met])]
    if not len(left) or np.abs(totals - np.asarray(answers)).max() > 1e-6:
        raise NotCertified(what="the search for bits", reason="no zeros and ones have these sums")
    least = np.r_[left.min(axis=0), right.min(axis=0)]
    most = np.r_[left.max(axis=0), right.max(axis=0)]
    return {int(i): int(least[i]) for i in np.flatnonzero(least == most)}


@cache
def _patterns(people: int) -> npt.NDArray[np.uint64]:
    """All zeros and ones for so many people, a row each."""
    import numpy as np

    codes = np.arange(2**people, dtype=np.uint64)[:, None]
    return (codes >> np.arange(people, dtype=np.uint64)) & np.uint64(1)
