"""A second implementation, from the definitions: events by enumeration, posteriors by Bayes, simulators by search.

It shares nothing with the checker but the tables: all 2^m events are tried, in exact rationals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

Law = Mapping[Any, Fraction]


def events(outputs: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    found = list(outputs)
    return itertools.chain.from_iterable(itertools.combinations(found, k) for k in range(len(found) + 1))


def smallest_delta(p: Law, q: Law, factor: Fraction) -> Fraction:
    """sup over all events of P(S) - E Q(S), in both directions."""
    worst = Fraction(0)
    for event in events(dict.fromkeys([*p, *q])):
        a, b = (sum((law.get(t, Fraction(0)) for t in event), Fraction(0)) for law in (p, q))
        worst = max(worst, a - factor * b, b - factor * a)
    return worst


def conditional(
    weights: Mapping[tuple[Any, Any], Fraction],
    kernel: Callable[[Any], Law],
    given: Callable[[Any, Any], bool],
) -> Law:
    """The distribution of kernel(X) given an event about (X, Z), by summing."""
    out: dict[Any, Fraction] = {}
    whole = Fraction(0)
    for (x, z), w in weights.items():
        if given(x, z):
            whole += w
            for t, p in kernel(x).items():
                out[t] = out.get(t, Fraction(0)) + w * p
    return {t: w / whole for t, w in out.items()}


def without(x: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    return (*x[:i], *x[i + 1 :])


def distributional_delta(
    weights: Mapping[tuple[Any, Any], Fraction],
    mechanism: Callable[[Any], Law],
    simulator: Callable[[int, Any], Law],
    factor: Fraction,
) -> Fraction:
    """Def. 5.3 for one prior and a given simulator of (row number, the other rows)."""
    size = len(next(iter(weights))[0])
    worst = Fraction(0)
    for i in range(size):
        for v, z in {(x[i], z) for x, z in weights}:

            def inside(x: Any, y: Any, i: int = i, v: Any = v, z: Any = z) -> bool:
                return bool(x[i] == v and y == z)

            real = conditional(weights, mechanism, inside)
            ideal = conditional(weights, lambda x, i=i: simulator(i, without(x, i)), inside)
            worst = max(worst, smallest_delta(real, ideal, factor))
    return worst


def pairs_of_neighbours(table: Mapping[Any, Law]) -> Iterable[tuple[Law, Law]]:
    for x, y in itertools.combinations(table, 2):
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
            yield table[x], table[y]


def dp_delta(table: Mapping[Any, Law], factor: Fraction) -> Fraction:
    """Def. 3.3: the worst pair of neighbours."""
    return max(smallest_delta(p, q, factor) for p, q in pairs_of_neighbours(table))
