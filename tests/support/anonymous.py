"""Properties of tables from their definitions: plain Python over lists of dicts, exact fractions, linear programs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Row = dict[str, Any]


def classes_of(rows: Sequence[Row], quasi: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[q] for q in quasi)].append(row)
    return dict(found)


def k_of(rows: Sequence[Row], quasi: Sequence[str]) -> int:
    return min(len(c) for c in classes_of(rows, quasi).values())


def shares(rows: Sequence[Row], column: str) -> dict[Any, Fraction]:
    return {v: Fraction(n, len(rows)) for v, n in Counter(r[column] for r in rows).items()}


def per_class(rows: Sequence[Row], quasi: Sequence[str], column: str) -> list[dict[Any, Fraction]]:
    return [shares(c, column) for c in classes_of(rows, quasi).values()]


def entropy_l(rows: Sequence[Row], quasi: Sequence[str], column: str) -> float:
    return min(
        math.exp(-sum(float(p) * math.log(p) for p in found.values()))
        for found in per_class(rows, quasi, column)
    )


def is_recursive(rows: Sequence[Row], quasi: Sequence[str], column: str, c: Fraction, l: int) -> bool:  # noqa: E741
    for group in classes_of(rows, quasi).values():
        counts = sorted(Counter(r[column] for r in group).values(), reverse=True)
        if not counts[0] < c * sum(counts[l - 1 :]):
            return False
    return True


def moved(p: dict[Any, Fraction], q: dict[Any, Fraction], distance: Callable[[Any, Any], float]) -> float:
    """The earth mover's distance, as the transport problem that it is."""
    import numpy as np
    from scipy.optimize import linprog

    sources, sinks = list(p), list(q)
    cost = [distance(a, b) for a in sources for b in sinks]
    equal = np.zeros((len(sources) + len(sinks), len(cost)))
    for i in range(len(sources)):
        equal[i, i * len(sinks) : (i + 1) * len(sinks)] = 1
    for j in range(len(sinks)):
        equal[len(sources) + j, j :: len(sinks)] = 1
    right = [float(p[a]) for a in sources] + [float(q[b]) for b in sinks]
    return float(linprog(cost, A_eq=equal, b_eq=right, method="highs").fun)


def closeness_of(
    rows: Sequence[Row], quasi: Sequence[str], column: str, distance: Callable[[Any, Any], float]
) -> float:
    everything = shares(rows, column)
    return max(moved(p, everything, distance) for p in per_class(rows, quasi, column))


def ordered_distance(rows: Sequence[Row], column: str) -> Callable[[Any, Any], float]:
    values = sorted({r[column] for r in rows}, key=lambda v: (v is not None, v))
    if len(values) == 1:
        return lambda a, b: 0.0
    return lambda a, b: abs(values.index(a) - values.index(b)) / (len(values) - 1)


def gains(rows: Sequence[Row], quasi: Sequence[str], column: str) -> list[tuple[Fraction, Fraction]]:
    """(p, q) for every class and every value of the table."""
    everything = shares(rows, column)
    return [
        (found.get(v, Fraction(0)), q)
        for found in per_class(rows, quasi, column)
        for v, q in everything.items()
    ]
