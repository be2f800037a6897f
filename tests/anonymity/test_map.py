"""The risk-utility map, by a second count of what an attacker gets right."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from tacit.reproduce import reproduction
from tacit.reproduce.risk_utility import _boxes, _covers, _people, _right, _table


@pytest.mark.slow
def test_risk_and_loss() -> None:
    made = reproduction("risk-utility").make()
    rows = {str(r[1]): r for r in made.rows}
    inside, outside = _people(1), _people(2)
    fits: dict[tuple[int, ...], Counter[int]] = {}
    for *known, ill in inside.tolist():
        fits.setdefault(tuple(known), Counter())[ill] += 1
    common = Counter(inside[:, 3].tolist()).most_common(1)[0][0]

    def share(people: list[list[int]]) -> float:
        right = 0
        for *known, ill in people:
            votes = fits.get(tuple(known))
            # Among equally frequent ones the first is taken, as the map does.
            guess = min(votes, key=lambda v: (-votes[v], v)) if votes else common
            right += guess == ill
        return right / len(people)

    risk = share(inside.tolist()) - share(outside.tolist())
    assert float(rows["as it is"][2]) == pytest.approx(risk, abs=1e-4)
    assert float(rows["as it is"][3]) == 0
    for name, row in rows.items():
        assert 0 <= float(row[3]) < 1
        if row[0] == "released":
            epsilon = float(name.rpartition("=")[2])
            assert float(row[4]) == pytest.approx((math.exp(epsilon) - 1) / (math.exp(epsilon) + 1))
            # Five standard errors of a difference of two shares of 2,000.
            assert float(row[2]) <= float(row[4]) + 5 * 0.016
    losses = [float(rows[f"noisy counts, epsilon = {e}"][3]) for e in ("0.1", "1", "10")]
    assert losses == sorted(losses, reverse=True)


def test_published_texts_are_read() -> None:
    assert _covers("*", range(3)) == [True] * 3
    assert _covers("[1, 3)", range(4)) == [False, True, True, False]
    assert _covers("[1, 3]", range(4)) == [False, True, True, True]
    assert _covers("{0, 2}", range(3)) == [True, False, True]
    assert _covers("1.0", range(3)) == [False, True, False]
    people = _people(3)[:50]
    assert _right(_boxes(_table(people)), _table(people), people) > np.mean(people[:, 3] == 0)
