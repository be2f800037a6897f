"""Noise of cells that are never visited: how many pass a threshold, and the values of those that do, exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import AnyArray
from tacit.exact.balls import Ball, ball
from tacit.noise import Binomial, DiscreteGaussian, DiscreteLaplace, OneSidedGeometric
from tacit.noise.lazy_inversion import CHUNK, Uniform, joined
from tacit.noise.source import Source

__all__ = ["count_passing", "passing_noise", "tail_ball"]

Law = DiscreteLaplace | DiscreteGaussian
MARGIN = 2.0**-40


def tail_ball(law: Law, least: int) -> Ball:
    """A ball around Pr[noise >= least]."""
    return law.survival_ball(least)


def count_passing(law: Law, cells: int, least: int, source: Source) -> int:
    """How many of `cells` independent draws are at least `least`: binomial, exactly."""
    if cells == 0:
        return 0
    return int(_passing(law, cells, least).sample(source=source))


@lru_cache(maxsize=64)
def _passing(law: Law, cells: int, least: int) -> Binomial:
    """Kept, since its tables serve every later release of the same kind."""
    return Binomial(trials=cells, probability_of_one=law.survival_real(least))


def passing_noise(law: Law, count: int, least: int, source: Source) -> AnyArray:
    """`count` draws of the law given that it is at least `least`.

    Laplace, least >= 1: least + geometric, since the tail has no memory. Gaussian far out: least + geometric of rate
    least / noise_std^2, kept with chance exp(-(x - least)^2 / (2 noise_std^2)), which is the ratio of the two laws.
    Otherwise draws of the law itself, until they pass (at least one in seven does).
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    if isinstance(law, DiscreteLaplace) and least >= 1:
        return least + OneSidedGeometric(noise_scale=law.noise_scale).sample(size=count, source=source)
    far = isinstance(law, DiscreteGaussian) and Fraction(least) ** 2 >= law.parameter and least >= 1
    parts: list[AnyArray] = []
    missing = count
    while missing > 0:
        tries = min(CHUNK, 2 * missing + 16)
        if far:
            assert isinstance(law, DiscreteGaussian)
            beyond = OneSidedGeometric(noise_scale=law.parameter / least).sample(size=tries, source=source)
            kept = least + beyond[_keep(beyond, law.parameter, source)]
        else:
            drawn = law.sample(size=tries, source=source)
            kept = drawn[np.asarray(drawn >= least, dtype=np.bool_)]
        parts.append(kept[:missing])
        missing -= parts[-1].size
    return joined(parts)


def _keep(beyond: AnyArray, variance: Fraction, source: Source) -> npt.NDArray[np.bool_]:
    """Coins with chance exp(-x^2 / (2 variance)): floats settle all but one in 2^39, balls the rest."""
    words = source.words(beyond.size)
    x = beyond.astype(np.float64)
    chance = np.exp(-x * x / (2.0 * float(variance)))
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    keep: npt.NDArray[np.bool_] = uniform < chance
    for i in np.flatnonzero(np.abs(uniform - chance) < MARGIN):
        keep[i] = _exactly(int(beyond[i]), int(words[i]), variance, source)
    return keep


def _exactly(x: int, word: int, variance: Fraction, source: Source) -> bool:
    exponent = Fraction(x * x) / (2 * variance)

    def chance() -> Any:
        return (-ball(exponent)).exp()

    return Uniform(value=word, bits=64, source=source).below(chance)
