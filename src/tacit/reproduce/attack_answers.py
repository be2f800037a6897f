"""Attacks on answers, before and after: differencing, averaging, floating-point noise, a block, subset counts.

Each try is a village of its own with one person under attack; all villages are one table, and one release is as many
tries. The attacker knows everybody else in the village.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.attacks import (
    Draws,
    difference,
    random_questions,
    reconstruct,
    seven,
    textbook_laplace,
    which_answer,
)
from tacit.reproduce.attack_releases import EPSILONS, Bar, bar, counts_from, release_from
from tacit.sources import flag, integer, number
from tacit.statistics import count
from tacit.statistics import sum as total_of

if TYPE_CHECKING:
    from tacit.exact.arrays import Floats, Integers


__all__ = ["on_averages", "on_block", "on_counts", "on_differences", "on_digits"]

VILLAGES, SIZE = 4000, 20
PEOPLE = 200


def _villages(seed: int) -> tuple[Any, Integers, Integers]:
    """A table of people with bits, the target's bit in each village, and the sum of the others."""
    import numpy as np
    import pyarrow as pa

    bits = Draws(seed, "villages").bits(VILLAGES, SIZE)
    target = np.tile(np.arange(SIZE) == 0, VILLAGES)
    table = pa.table(
        {"village": np.repeat(np.arange(VILLAGES), SIZE), "bit": bits.ravel() == 1, "target": target}
    )
    return table, bits[:, 0], bits[:, 1:].sum(axis=1)


SCHEMA = {"village": integer(0, VILLAGES - 1), "bit": flag(), "target": flag()}


def _by_village(frame: Any) -> Floats:
    return counts_from(frame, ["village"], (VILLAGES,))


def _right(guess: Any, truth: Integers) -> float:
    return float(((guess > 0.5) == (truth == 1)).mean())


def on_differences() -> list[Bar]:
    """Two counts, with the target and without."""
    table, truth, others = _villages(51)
    exact = difference(truth + others, others).score(truth.tolist())
    found = [bar("differencing", "exact counts", exact.share, VILLAGES, 0.5)]
    for epsilon in EPSILONS:
        both = [count(by="village", where="bit"), count(by="village", where="bit and not target")]
        with_her, without = (_by_village(f) for f in release_from(table, SCHEMA, both, epsilon, seed=52))
        found.append(bar("differencing", "", _right(with_her - without, truth), VILLAGES, 0.5, epsilon))
    return found


def on_averages() -> list[Bar]:
    """The same count asked again and again; the attacker knows the others and subtracts them."""
    import numpy as np

    table, truth, others = _villages(53)
    draws = Draws(54, "server")
    found = []
    for times in (1, 100, 10_000):
        total = np.zeros(VILLAGES)
        for start in range(0, times, 500):
            total += draws.laplace(min(500, times - start), VILLAGES).sum(axis=0)
        mean = truth + 2 / 0.1 * total / times  # epsilon = .1 for one replaced person, in each of the answers
        found.append(bar("averaging", f"no ledger, {times:,}×", _right(mean, truth), VILLAGES, 0.5))
    for epsilon in EPSILONS:
        # A curator gives a recorded answer again: the mean of any number of them is the first.
        frame = release_from(table, SCHEMA, count(by="village", where="bit"), epsilon, seed=55)[0]
        found.append(bar("averaging", "", _right(_by_village(frame) - others, truth), VILLAGES, 0.5, epsilon))
    return found


def on_digits() -> list[Bar]:
    """One noisy bit for each village: textbook noise in doubles, and ours on integers."""
    import numpy as np

    table, truth, others = _villages(56)
    found = []
    for ours in (False, True):
        for epsilon in EPSILONS:
            if ours:
                frame = release_from(table, SCHEMA, count(by="village", where="bit"), epsilon, seed=57)[0]
                published, scale = _by_village(frame) - others, 2 / epsilon
            else:
                scale = 1 / epsilon
                published = textbook_laplace(truth, noise_scale=scale, draws=Draws(58, f"{epsilon}"))
            told = which_answer(published, [0, 1], noise_scale=scale)
            guess = (published > 0.5).astype(np.float64)
            guess[list(told.exposed)] = np.array(told.learned, dtype=np.float64)
            share = _right(guess, truth)
            name = "" if ours else f"textbook, ε = {epsilon:g}"
            found.append(bar("floating-point noise", name, share, VILLAGES, 0.5, epsilon if ours else None))
    return found


def on_block() -> list[Bar]:
    """Blocks of seven: everybody follows from exact tables; from noisy sums, which of two ages the seventh has."""
    import numpy as np
    import pyarrow as pa

    solved = seven().reconstruct()
    found = [bar("people from tables", "exact, suppressed", solved.share, solved.people, 1 / 1008)]
    known = np.array([8, 18, 24, 30, 36, 66])
    truth = Draws(59, "ages").bits(VILLAGES)
    ages = np.column_stack([np.tile(known, (VILLAGES, 1)), np.where(truth == 1, 84, 24)])
    table = pa.table({"village": np.repeat(np.arange(VILLAGES), 7), "age": ages.ravel()})
    schema = {"village": integer(0, VILLAGES - 1), "age": number(0, 125, spacing=1)}
    for epsilon in EPSILONS:
        frame = release_from(table, schema, total_of("age", by="village"), epsilon, seed=60)[0]
        last = _by_village(frame) - known.sum()
        found.append(bar("people from tables", "", _right((last - 24) / 60, truth), VILLAGES, 0.5, epsilon))
    return found


def on_counts() -> list[Bar]:
    """200 people, 800 subset counts: noise of a tenth of √n, and counts from a curator's table, ten times each."""
    import numpy as np
    import pyarrow as pa

    runs = 10
    asked = random_questions(PEOPLE, 4 * PEOPLE, seed=61)
    before, ours = 0.0, dict.fromkeys(EPSILONS, 0.0)
    for run in range(runs):
        draws = Draws(62 + run, "bits")
        bits = draws.bits(PEOPLE)
        answers = asked @ bits + 0.1 * math.sqrt(PEOPLE) * draws.normals(len(asked))
        before += reconstruct(asked, answers).score(bits.tolist()).share / runs
        table = pa.table({"id": np.arange(PEOPLE), "bit": bits == 1})
        schema = {"id": integer(0, PEOPLE - 1), "bit": flag()}
        for epsilon in EPSILONS:
            frame = release_from(table, schema, count(by="id", where="bit"), epsilon, seed=63 + run)[0]
            cells = counts_from(frame, ["id"], (PEOPLE,))
            ours[epsilon] += reconstruct(asked, asked @ cells).score(bits.tolist()).share / runs
    tries = runs * PEOPLE
    return [
        bar("subset counts", "noise √n/10", before, tries, 0.5),
        *(bar("subset counts", "", share, tries, 0.5, epsilon) for epsilon, share in ours.items()),
    ]
