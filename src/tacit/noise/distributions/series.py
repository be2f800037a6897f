"""Laws given by weights whose sum is certified: finite lists, or series with a bound on what is cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import flint

from tacit.errors import NotCertified
from tacit.exact.balls import Ball, working_precision

__all__ = ["Series", "Terms", "between_zero_and", "gaussian_terms"]

Terms: TypeAlias = Callable[[], tuple[Sequence[Ball], Ball]]
"""Weights w_0..w_{K-1} and a ball around the sum of all later ones, at the working precision."""

MOST_TERMS = 1 << 22


def between_zero_and(bound: Ball) -> Ball:
    """The ball around [0, bound]."""
    half = bound.upper() / 2
    return flint.arb(half, half)


class Series:
    """Pr[X = k] = w_k / sum of w: survival probabilities as suffix sums, kept for each precision."""

    __slots__ = ("_kept", "_terms")

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._kept: dict[int, tuple[list[Ball], list[Ball]]] = {}

    def _sums(self) -> tuple[list[Ball], list[Ball]]:
        """Probabilities, and survival probabilities from k = 0 on."""
        bits = working_precision()
        kept = self._kept.get(bits)
        if kept is None:
            weights, rest = self._terms()
            suffix, suffixes = rest, [rest]
            for weight in reversed(weights):
                suffix = suffix + weight
                suffixes.append(suffix)
            suffixes.reverse()
            kept = [w / suffix for w in weights], [s / suffix for s in suffixes]
            if len(self._kept) >= 24:
                self._kept.clear()
            self._kept[bits] = kept
        return kept

    def survival(self, k: int) -> Ball:
        """Pr[X >= k] as a ball."""
        suffixes = self._sums()[1]
        return suffixes[k] if k < len(suffixes) else between_zero_and(suffixes[-1])

    def survivals(self) -> Iterator[Ball]:
        """Pr[X >= k] for k = 1, 2, ... as balls."""
        yield from self._sums()[1][1:]

    def probability(self, k: int) -> Ball:
        """Pr[X = k] as a ball."""
        probabilities, suffixes = self._sums()
        return probabilities[k] if k < len(probabilities) else between_zero_and(suffixes[-1])


def gaussian_terms(coefficient: Callable[[], Ball], *, double: bool) -> Terms:
    """exp(-a k^2) for k = 0, 1, ...; every term but the first doubled if asked.

    The rest is below exp(-a K^2) / (1 - exp(-a (2K+1))), since later ratios are smaller still.
    """

    def terms() -> tuple[list[Ball], Ball]:
        a = coefficient()
        cut = flint.arb(2) ** -(working_precision() + 8)
        ratio, step = (-a).exp(), (-2 * a).exp()
        weights, weight = [flint.arb(1)], ratio
        factor = flint.arb(2 if double else 1)
        while not weight < cut:
            weights.append(weight * factor)
            ratio = ratio * step
            weight = weight * ratio
            if len(weights) > MOST_TERMS:
                raise NotCertified(what="a Gaussian sum", reason="it has too many terms at this scale")
        return weights, between_zero_and(factor * weight / (1 - ratio * step))

    return terms
