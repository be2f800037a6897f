"""Uniform integers and permutations, exact for every size."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray
from tacit.exact.checks import whole
from tacit.noise.distributions.base import Shape, shape_of
from tacit.noise.distributions.blocks import random_bits
from tacit.noise.lazy_inversion import joined
from tacit.noise.source import Source, default_source

__all__ = ["permutation", "uniform_draws", "uniform_integer"]


def uniform_draws(n: int, count: int, source: Source) -> AnyArray:
    """`count` uniform integers in 0..n-1: bits are drawn until they fall below n, at least half do."""
    bits = (n - 1).bit_length()
    if n == 1 << bits:
        return random_bits(bits, count, source)
    parts: list[AnyArray] = []
    missing = count
    while missing > 0:
        tries = min(missing * (1 << bits) // n + 8, 1 << 16)
        drawn = random_bits(bits, tries, source)
        kept = drawn[(drawn < n).astype(np.bool_)][:missing]
        parts.append(kept)
        missing -= kept.size
    return joined(parts)


def uniform_integer(n: int, *, size: Shape = None, source: Source | None = None) -> AnyArray:
    """Exactly uniform integers in 0..n-1, for n of any length; int64 up to n = 2^62."""
    n = whole("n", n, least=1)
    shape = shape_of(size)
    source = source if source is not None else default_source()
    return uniform_draws(n, math.prod(shape), source).reshape(shape)


def permutation(n: int, *, source: Source | None = None) -> npt.NDArray[np.intp]:
    """A uniform permutation of 0..n-1: the order of n words, drawn anew if two of them are equal."""
    n = whole("n", n, least=0)
    source = source if source is not None else default_source()
    while True:
        words = source.words(n)
        order = np.argsort(words)
        if n < 2 or bool((np.diff(words[order]) != 0).all()):
            return order
