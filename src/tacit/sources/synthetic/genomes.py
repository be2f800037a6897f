"""Bits of people who do not exist, as of a genome: each site has a share in the population, people are independent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.exact.checks import whole

__all__ = ["Genomes", "genomes"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Genomes:
    """The shares in the population, and a row of bits for each person of the study and for each of the others."""

    shares: npt.NDArray[np.float64]
    study: npt.NDArray[np.uint8]
    others: npt.NDArray[np.uint8]


def genomes(*, people: int = 200, others: int = 200, sites: int = 10_000, seed: int = 1) -> Genomes:
    """Shares uniform on [.05, .5]; people of the study and others are drawn alike."""
    generator = np.random.default_rng(whole("seed", seed, least=0))
    m, n, k = whole("sites", sites), whole("people", people), whole("others", others)
    shares = generator.uniform(0.05, 0.5, m)
    bits = (generator.random((n + k, m), dtype=np.float32) < shares.astype(np.float32)).astype(np.uint8)
    return Genomes(shares=shares, study=bits[:n], others=bits[n:])
