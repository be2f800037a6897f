"""Uniform and normal numbers, and permutations, for treatments: from the one source of randomness, as floats.

Treatments carry no guarantee, so that nothing here is exact; but who can repeat the words of the source can undo what
was swapped or disturbed, so that by default they come from the cryptographic source.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats
from tacit.noise.source import Source, default_source

__all__ = ["Draws"]


class Draws:
    """Independent draws from a source."""

    def __init__(self, source: Source | None = None) -> None:
        self.source = source if source is not None else default_source()

    def uniform(self, count: int) -> Floats:
        """Numbers in (0, 1), 52 bits each."""
        words = self.source.words(count) >> np.uint64(12)
        return (words.astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, count: int) -> Floats:
        """Standard normal numbers, by inversion."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(count)), dtype=np.float64)

    def permutation(self, count: int) -> npt.NDArray[np.int64]:
        """A uniform order of 0 .. count - 1: that of 64-bit words, which are alike with probability count^2 / 2^65."""
        return np.argsort(self.source.words(count), kind="stable").astype(np.int64)

    def below(self, limits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """For each limit a whole number from 0 to below it."""
        return np.minimum((self.uniform(len(limits)) * limits).astype(np.int64), limits - 1)
