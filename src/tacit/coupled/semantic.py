"""Semantic privacy (Groce 2014, Def. 3.4): how far a whole belief moves, with and without somebody's row.

For a prior B over data sets and a row i, the belief after F(x) = t is compared with the belief after F(x_{-i}) = t,
where the row was replaced by a fixed default. Semantic privacy (s, d) asks that the two are within s in statistical
distance, except with probability d over x and t. Theorem `semantic-implies-dp`: for all priors it implies (ln((1 +
2s)/(1 - 2s)), 2d)-DP.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.divergence import total_variation
from tacit.coupled.mechanisms import FiniteMechanism
from tacit.coupled.numbers import as_probability
from tacit.coupled.priors import Prior, point_priors
from tacit.exact.checks import whole

__all__ = ["neighbour_priors", "semantic_failure"]


def semantic_failure(
    mechanism: FiniteMechanism, prior: Prior, *, row: int, default: Any, shift: object
) -> Fraction:
    """The exact probability that the two beliefs are more than `shift` apart."""
    i, most = whole("row", row, least=0), as_probability("shift", shift)
    real: dict[Any, dict[Any, Fraction]] = {}
    ideal: dict[Any, dict[Any, Fraction]] = {}
    for x, weight in prior.data.items():
        scrubbed = (*x[:i], default, *x[i + 1 :])
        for told, table in ((mechanism[x], real), (mechanism[scrubbed], ideal)):
            for t, p in told.items():
                row_of = table.setdefault(t, {})
                row_of[x] = row_of.get(x, Fraction(0)) + weight * p
    failing = Fraction(0)
    for t, beliefs in real.items():
        chance = sum(beliefs.values(), Fraction(0))
        other = ideal.get(t)
        if other is None or total_variation(_normal(beliefs), _normal(other)) > most:
            failing += chance
    return failing


def _normal(row: dict[Any, Fraction]) -> dict[Any, Fraction]:
    whole_ = sum(row.values(), Fraction(0))
    return {x: w / whole_ for x, w in row.items()}


def neighbour_priors(values: Sequence[Any], *, rows: int) -> list[tuple[int, Prior]]:
    """The priors of the proof: a fair coin between two data sets that differ in row i, for all of them, with i."""
    points = [next(iter(p.data)) for p in point_priors(values, rows=rows)]
    found = []
    for a, x in enumerate(points):
        for y in points[a + 1 :]:
            differing = [i for i, (v, w) in enumerate(zip(x, y, strict=True)) if v != w]
            if len(differing) == 1:
                half = Fraction(1, 2)
                found.append(
                    (differing[0], Prior(name=f"{x!r} or {y!r}", weights={(x, None): half, (y, None): half}))
                )
    return found
