"""Cells: all that a definition compares, one for each (prior, pair, private value, auxiliary value) that can occur.

In the cell (v, z) the real world has the distribution of F(X) given priv(X) = v, Z = z, and the ideal world that of
Sim(alt(X)) given the same, which is the mixture of the simulator's answers with the weights Pr[alt(X) = a | v, z].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.divergence import mixed
from tacit.coupled.mechanisms import FiniteMechanism, Simulator, scrub
from tacit.coupled.numbers import Distribution, hashable
from tacit.coupled.pairs import Pair
from tacit.coupled.priors import Prior
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.guarantees.arguments import instance, listed

__all__ = ["Cell", "cell_of", "cells", "check_pairs", "check_priors", "ideal"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """The conditional distributions of one (prior, pair, value, auxiliary)."""

    prior: str
    pair: str
    value: Any
    auxiliary: Any
    probability: Fraction
    real: Distribution
    scrubbed: Distribution


def check_priors(priors: Sequence[Prior]) -> tuple[Prior, ...]:
    """A class of priors: at least one, each of them a prior, with names that tell them apart."""
    given = listed("priors", priors, must="be a list of priors")
    if not given:
        raise EmptyComposition(what="the class of priors")
    for p in given:
        instance("priors", p, Prior, must="be priors")
    if len({p.name for p in given}) < len(given):
        raise InvalidParameter(
            parameter="priors", value="two of one name", must="have names that tell them apart"
        )
    return given


def check_pairs(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs that are protected: at least one, with names that tell them apart."""
    given = listed("pairs", pairs, must="be a list of pairs (alt, priv)")
    if not given:
        raise EmptyComposition(what="the family of pairs")
    for p in given:
        instance("pairs", p, Pair, must="be pairs (alt, priv)")
    if len({p.name for p in given}) < len(given):
        raise InvalidParameter(
            parameter="pairs", value="two of one name", must="have names that tell them apart"
        )
    return given


def cells(mechanism: FiniteMechanism, priors: Sequence[Prior], pairs: Sequence[Pair]) -> list[Cell]:
    """Every cell of positive probability."""
    instance("mechanism", mechanism, FiniteMechanism, must="be a finite mechanism")
    found = []
    for prior in check_priors(priors):
        for pair in check_pairs(pairs):
            found += _of(mechanism, prior, pair)
    return found


def _of(mechanism: FiniteMechanism, prior: Prior, pair: Pair) -> list[Cell]:
    groups: dict[tuple[Any, Any], list[tuple[Any, Fraction]]] = {}
    for (x, z), weight in prior.weights.items():
        groups.setdefault((hashable("priv", pair.priv(x)), z), []).append((x, weight))
    found = []
    for (v, z), members in groups.items():
        whole = sum((w for _, w in members), Fraction(0))
        if len(members) == 1:
            x = members[0][0]
            real, scrubbed = mechanism[x], scrub(pair, x)
        else:
            given = {x: w / whole for x, w in members}
            real, scrubbed = mixed(given, mechanism), mixed(given, {x: scrub(pair, x) for x in given})
        found.append(
            Cell(
                prior=prior.name,
                pair=pair.name,
                value=v,
                auxiliary=z,
                probability=whole,
                real=real,
                scrubbed=scrubbed,
            )
        )
    return found


def cell_of(
    mechanism: FiniteMechanism, prior: Prior, pair: Pair, *, value: Any, auxiliary: Any = None
) -> Cell:
    """One cell by its value and auxiliary; refused where the prior gives them probability 0."""
    for cell in cells(mechanism, [prior], [pair]):
        if cell.value == value and cell.auxiliary == auxiliary:
            return cell
    raise InvalidParameter(
        parameter="value",
        value="a value of probability 0",
        must="occur under the prior, together with the auxiliary",
        hint="nothing is defined given an event of probability 0",
    )


def ideal(cell: Cell, simulator: Simulator) -> dict[Any, Fraction]:
    """The distribution of Sim(alt(X)) in the cell."""
    return mixed(cell.scrubbed, {a: simulator(cell.pair, a) for a in cell.scrubbed})
