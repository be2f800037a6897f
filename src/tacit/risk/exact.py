"""From a solver's floats to a matrix of integers that is private beyond doubt.

The entries become integers over one common total for each row; every inequality of privacy is then checked
in integers against a rational number that is certainly not above e^epsilon. What the repair costs is
accuracy, and it is counted, because the risk is computed from the repaired matrix (theorem `exact-matrix`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tacit.errors import NotCertified
from tacit.exact.arrays import Floats
from tacit.exact.balls import ball, lower

__all__ = ["Edges", "Rows", "factor_below", "private_matrix"]

Edges = Sequence[tuple[int, int]]
Rows = tuple[tuple[int, ...], ...]

SCALE_BITS = 60
MIX_BITS = 40


def factor_below(epsilon: Fraction) -> Fraction:
    """A rational number that is at most e^epsilon, and close to it."""
    return Fraction(lower(lambda: ball(epsilon).exp()))


def private_matrix(matrix: Floats, edges: Edges, epsilon: Fraction, delta: Fraction, refuge: int) -> Rows:
    """Integer rows with one common sum, (epsilon, delta)-private for these neighbours, near the given matrix.

    `refuge` is the output that takes the mass that the repair moves.
    """
    factor = factor_below(epsilon)
    whole = 1 << SCALE_BITS
    rows = [[int(v * whole) for v in np.clip(row, 0.0, 1.0).tolist()] for row in matrix]
    if delta == 0:
        rows = _raise_to_private(rows, edges, factor)
        rows = _level(rows, factor, refuge)
    else:
        rows = [_to_total(row, whole, refuge) for row in rows]
        rows = _mix(rows, edges, factor, delta, refuge, whole)
    _check(rows, edges, factor, delta)
    return tuple(tuple(row) for row in rows)


def _raise_to_private(rows: list[list[int]], edges: Edges, factor: Fraction) -> list[list[int]]:
    """The smallest larger matrix whose columns change by at most the factor between neighbours."""
    top, bottom = factor.numerator, factor.denominator
    changed = True
    while changed:
        changed = False
        for i, j in [*edges, *((b, a) for a, b in reversed(edges))]:
            source, target = rows[i], rows[j]
            for r, value in enumerate(source):
                need = -(-value * bottom // top)
                if target[r] < need:
                    target[r] = need
                    changed = True
    return rows


def _level(rows: list[list[int]], factor: Fraction, refuge: int) -> list[list[int]]:
    """Equal row sums: the missing mass goes to one output, as a column that is itself private.

    With spread = largest - smallest sum and room >= spread / (factor - 1), all amounts lie in
    [room, room + spread], so no two of them differ by more than the factor.
    """
    sums = [sum(row) for row in rows]
    spread = max(sums) - min(sums)
    room = -(-spread * factor.denominator // (factor.numerator - factor.denominator)) if spread else 0
    total = max(max(sums) + room, 1)
    for row, own in zip(rows, sums, strict=True):
        row[refuge] += total - own
    return rows


def _to_total(row: list[int], whole: int, refuge: int) -> list[int]:
    """The row scaled down to at most the total; what is missing goes to its largest entry."""
    own = sum(row)
    scaled = [v * whole // own for v in row] if own else row
    scaled[max(range(len(row)), key=lambda r: scaled[r]) if own else refuge] += whole - sum(scaled)
    return scaled


def _mix(
    rows: list[list[int]], edges: Edges, factor: Fraction, delta: Fraction, refuge: int, whole: int
) -> list[list[int]]:
    """Mix with a constant answer until the excess over the factor is at most delta."""
    excess = _excess(rows, edges, factor)
    if excess <= delta * whole:
        return rows
    share = 1 - delta * whole / excess
    k = -(-share.numerator * (1 << MIX_BITS) // share.denominator)
    mixed = [[v * ((1 << MIX_BITS) - k) for v in row] for row in rows]
    for row in mixed:
        row[refuge] += k * whole
    return mixed


def _excess(rows: list[list[int]], edges: Edges, factor: Fraction) -> Fraction:
    """The largest sum over the outputs of (P - factor P')+, over ordered pairs of neighbours."""
    worst = Fraction(0)
    for a, b in edges:
        for i, j in ((a, b), (b, a)):
            total = sum(
                max(0, v * factor.denominator - w * factor.numerator)
                for v, w in zip(rows[i], rows[j], strict=True)
            )
            worst = max(worst, Fraction(total, factor.denominator))
    return worst


def _check(rows: list[list[int]], edges: Edges, factor: Fraction, delta: Fraction) -> None:
    total = sum(rows[0])
    sound = all(min(row) >= 0 and sum(row) == total for row in rows)
    if not sound or _excess(rows, edges, factor) > delta * total:
        raise NotCertified(
            what="the optimal matrix", reason="the repaired matrix fails an inequality of privacy"
        )
