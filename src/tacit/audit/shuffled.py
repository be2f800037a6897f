"""Shuffled local answers: the curve of one person among few others, every number of companions summed by itself.

Sources: Feldman, McMillan and Talwar 2021 for any local mechanism with a pure epsilon; Balle, Bell, Gascon and Nissim
2019 for balanced ones. With E = e^epsilon: c of the answers seen are for the own value or for
the other one, j of them for the own, of which one is the person's; given c the chance of j is that of a fair coin times
(a + j)/(a + c/2) under one value, and with c - j for j under the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flint import arb

__all__ = ["MOST_PEOPLE", "MOST_PEOPLE_OF_MANY", "shuffled_curve"]

MOST_PEOPLE, MOST_PEOPLE_OF_MANY = 400, 50
"""With one number of companions to sum over, and with two (answers that may be for neither value, or for both)."""
_RARE = 1e-40


def shuffled_curve(
    epsilon: Fraction, people: int, design: tuple[int, int, int] | None
) -> Callable[[arb], arb]:
    """h(x) = sup_S P(S) - e^x Q(S); `design` has outcomes, those for one value, and those for two, or is None."""
    from flint import arb, fmpq

    grown = arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()
    tails = [_tails(c) for c in range(people + 1)]
    cells: list[tuple[arb, int, arb]] = []  # weight, c, a
    if design is None or one_sum(design):
        chance = 1 / grown if design is None else 2 / (grown + 1)
        for c, weight in enumerate(_binomial(people - 1, chance), start=1):
            cells.append((weight, c, c / (grown - 1)))
    else:
        outcomes, supporting, shared = design
        telling = 2 * (supporting - shared)
        unit = outcomes / (supporting * grown + outcomes - supporting)
        for m, outer in enumerate(_binomial(people - 1, unit), start=1):
            for c, inner in enumerate(_binomial(m, arb(telling) / outcomes)):
                both = arb((m - c) * shared) / (outcomes - telling)  # for both values, in the mean
                tilt = unit * (1 + (grown - 1) * (arb(c) / 2 + both) / m)
                cells.append((outer * inner * tilt, c, m / (grown - 1)))

    # What is too rare to matter is counted whole: no curve is above 1.
    rare = sum((w for w, _, _ in cells if float(w.upper()) < _RARE), arb(0))
    kept = [(w / (a + arb(c) / 2), c, a, a + c) for w, c, a in cells if not float(w.upper()) < _RARE]

    def above(x: arb) -> arb:
        t, total = x.exp(), rare
        for weight, c, a, whole in kept:
            # a + j > t (a + c - j) from the first j on; next to a whole number both sides are tried, the best counts.
            place = float(((t * whole - a) / (1 + t)).mid())
            first = math.floor(place) + 1
            sides = (-1, 0) if place - first + 1 < 1e-6 else (1, 0) if first - place < 1e-6 else (0,)
            found = [
                (a - t * whole) * tails[c][j]
                + (1 + t) * (arb(c) / 2 * tails[c - 1][max(j - 1, 0)] if c else 0)
                for j in (min(max(first + d, 0), c + 1) for d in sides)
            ]
            total += weight * max(found, key=lambda b: float(b.upper()))
        return total

    return lambda x: above(x) if x >= 0 else 1 - x.exp() + x.exp() * above(-x)


def one_sum(design: tuple[int, int, int]) -> bool:
    """Whether every outcome is for one of two values."""
    return design[0] == 2 * (design[1] - design[2])


def _tails(c: int) -> list[arb]:
    """Pr[at least j of c fair coins] for j = 0..c+1."""
    from flint import arb

    out = [0] * (c + 2)
    for j in range(c, -1, -1):
        out[j] = out[j + 1] + math.comb(c, j)
    return [arb(n) / (1 << c) for n in out]


def _binomial(trials: int, chance: arb) -> list[arb]:
    return [math.comb(trials, i) * chance**i * (1 - chance) ** (trials - i) for i in range(trials + 1)]


def local_epsilon(event: Mapping[str, Any]) -> Fraction | None:
    """The epsilon of one local answer, where its kind says that it is pure."""
    return Fraction(event["epsilon"]) if event["kind"] in _PURE else None


_PURE = {
    "balanced_response", "discrete_laplace", "exponential", "laplace", "permute_and_flip", "pure",
    "randomized_response", "staircase",
}  # fmt: skip
