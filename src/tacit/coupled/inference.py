"""Inference-based forms, by exact posteriors: what somebody believes after the release, in both worlds.

A bad outcome (t, z) of the release is one after which the belief about priv(X) differs from the one in the ideal
world by more than (epsilon, delta). The claim holds if bad outcomes have probability at most delta; the smallest
such delta is found exactly, since the probability that the difference is above a threshold falls in steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.coupled.cells import cells
from tacit.coupled.divergence import distance
from tacit.coupled.mechanisms import FiniteMechanism, Simulator, scrub
from tacit.coupled.numbers import Distribution, hashable
from tacit.coupled.pairs import Pair, Secret
from tacit.coupled.priors import Prior

__all__ = ["Belief", "coupled_beliefs", "crossing", "free_of_simulators", "pufferfish_beliefs"]

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """After one outcome: its probability, and how far the beliefs are apart (1 if the ideal one is undefined)."""

    prior: str
    pair: str
    output: Any
    auxiliary: Any
    probability: Fraction
    apart: Fraction


def crossing(beliefs: Iterable[Belief]) -> Fraction:
    """The smallest d such that beliefs that are more than d apart have probability at most d."""
    steps: dict[Fraction, Fraction] = {}
    for b in beliefs:
        steps[b.apart] = steps.get(b.apart, ZERO) + b.probability
    above = sum(steps.values(), ZERO)
    best = ONE
    for level in sorted({ZERO, *steps}):
        above -= steps.get(level, ZERO)
        # For thresholds from this level up to the next one the probability of being above is `above`.
        best = min(best, max(level, above))
    return best


def coupled_beliefs(
    mechanism: FiniteMechanism,
    prior: Prior,
    pairs: Sequence[Pair],
    simulator: Simulator | None,
    factor: Fraction,
) -> list[Belief]:
    """For each (t, z): the largest difference over the pairs (Def. 5.4 asks for all pairs at once).

    Without a simulator the ideal belief is the prior one, given z: see `free_of_simulators`.
    """
    worst: dict[tuple[Any, Any], Belief] = {}
    for pair in pairs:
        real: dict[tuple[Any, Any], dict[Any, Fraction]] = {}
        other: dict[tuple[Any, Any], dict[Any, Fraction]] = {}
        before: dict[Any, dict[Any, Fraction]] = {}
        for (x, z), weight in prior.weights.items():
            v = hashable("priv", pair.priv(x))
            _add(before.setdefault(z, {}), v, weight)
            for t, p in mechanism[x].items():
                _add(real.setdefault((t, z), {}), v, weight * p)
            if simulator is not None:
                for a, w in scrub(pair, x).items():
                    for t, p in simulator(pair.name, a).items():
                        _add(other.setdefault((t, z), {}), v, weight * w * p)
        for (t, z), row in real.items():
            chance = sum(row.values(), ZERO)
            shadow = before[z] if simulator is None else other.get((t, z))
            apart = ONE if shadow is None else distance(_normal(row), _normal(shadow), factor)
            known = worst.get((t, z))
            if known is None or apart > known.apart:
                worst[t, z] = Belief(
                    prior=prior.name, pair=pair.name, output=t, auxiliary=z, probability=chance, apart=apart
                )
    return list(worst.values())


def free_of_simulators(mechanism: FiniteMechanism, priors: Sequence[Prior], pairs: Sequence[Pair]) -> bool:
    """Is alt(X) independent of priv(X) given Z, under every prior and for every pair?

    Then no simulator's output tells anything about priv(X): the ideal belief is the prior one given Z whatever the
    simulator, as long as it can give every output, and the checker decides for all simulators at once.
    """
    first: dict[tuple[str, str, Any], Distribution] = {}
    for cell in cells(mechanism, priors, pairs):
        key = (cell.prior, cell.pair, cell.auxiliary)
        if dict(first.setdefault(key, cell.scrubbed)) != dict(cell.scrubbed):
            return False
    return True


def pufferfish_beliefs(
    mechanism: FiniteMechanism, prior: Prior, secret: Secret, factor: Fraction
) -> dict[Any, list[Belief]]:
    """For each z: the belief about the secret after t against the one before, weighted by Pr[t | z] (Def. 5.9)."""
    before: dict[Any, dict[Any, Fraction]] = {}
    after: dict[Any, dict[Any, dict[Any, Fraction]]] = {}
    for (x, z), weight in prior.weights.items():
        s = secret(x)
        _add(before.setdefault(z, {}), s, weight)
        for t, p in mechanism[x].items():
            _add(after.setdefault(z, {}).setdefault(t, {}), s, weight * p)
    found: dict[Any, list[Belief]] = {}
    for z, rows in after.items():
        whole = sum(before[z].values(), ZERO)
        was = _normal(before[z])
        found[z] = [
            Belief(
                prior=prior.name,
                pair=secret.name,
                output=t,
                auxiliary=z,
                probability=sum(row.values(), ZERO) / whole,
                apart=distance(_normal(row), was, factor),
            )
            for t, row in rows.items()
        ]
    return found


def _add(row: dict[Any, Fraction], key: Any, weight: Fraction) -> None:
    row[key] = row.get(key, ZERO) + weight


def _normal(row: dict[Any, Fraction]) -> Distribution:
    whole = sum(row.values(), ZERO)
    return {key: weight / whole for key, weight in row.items()}
