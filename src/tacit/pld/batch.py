"""Laws of many pairs of one kind at once, so that ten thousand different events cost a few hundred calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tacit.pld.continuous import (
    ExponentialPair,
    GaussianPair,
    LaplacePair,
    exponential_pld,
    gaussian_pld,
    laplace_pld,
)
from tacit.pld.derived import WithoutReplacementPair
from tacit.pld.distributions import AtomicPLD, PrivacyLossDistribution
from tacit.pld.pair import FloatArray, Pair, SwappedPair
from tacit.pld.sampled import PoissonSampledPair

__all__ = ["batch_pld", "grouped", "kind"]


def kind(pair: Pair) -> tuple[Any, ...]:
    """Pairs of equal kind may share a law."""
    if isinstance(pair, SwappedPair | PoissonSampledPair):
        inner = kind(pair.pair)
        return (type(pair).__name__, pair if isinstance(inner[-1], Pair) else inner)
    if isinstance(pair, WithoutReplacementPair):
        inner = ("", pair) if pair.single is None or pair.rate == 1 else kind(pair.single)
        return (type(pair).__name__, pair if isinstance(inner[-1], Pair) else inner)
    if isinstance(pair, GaussianPair | LaplacePair | ExponentialPair):
        return (type(pair).__name__,)
    return (type(pair).__name__, pair.atom_count)


def grouped(parts: Sequence[tuple[Pair, int]]) -> list[list[tuple[Pair, int]]]:
    """Parts come sorted, so that those of one kind, and with near parameters, stand together."""
    return [list(group) for _, group in groupby(parts, key=lambda part: kind(part[0]))]


def _column(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)[:, None]


def batch_pld(pairs: Sequence[Pair]) -> PrivacyLossDistribution:
    """The law of pairs of one kind, a row for each."""
    if len(pairs) == 1:
        return pairs[0].pld()
    first = pairs[0]
    if isinstance(first, SwappedPair):
        return batch_pld([p.pair for p in pairs if isinstance(p, SwappedPair)]).swapped()
    if isinstance(first, PoissonSampledPair):
        members = [p for p in pairs if isinstance(p, PoissonSampledPair)]
        return batch_pld([p.pair for p in members]).sampled(_column([p.rate for p in members]))
    if isinstance(first, WithoutReplacementPair):
        picked = [p for p in pairs if isinstance(p, WithoutReplacementPair)]
        inner = batch_pld([p.single for p in picked if p.single is not None])
        return inner.sampled(_column([p.rate for p in picked])).mirrored()
    if isinstance(first, GaussianPair):
        return gaussian_pld(_column([p.mu for p in pairs if isinstance(p, GaussianPair)]))
    if isinstance(first, LaplacePair):
        return laplace_pld(_column([p.epsilon for p in pairs if isinstance(p, LaplacePair)]))
    if isinstance(first, ExponentialPair):
        return exponential_pld(_column([p.epsilon for p in pairs if isinstance(p, ExponentialPair)]))
    laws = [p.pld() for p in pairs]
    atomic = [law for law in laws if isinstance(law, AtomicPLD)]
    assert len(atomic) == len(laws)
    return AtomicPLD.stacked(atomic)
