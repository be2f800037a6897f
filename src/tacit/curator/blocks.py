"""Blocks of noise: which parts of a question get which exact noise, what that costs, how far it errs.

A block is a vector of integers that gets independent noise of one law. Laplace: the discrete Laplace law of scale
l1 / epsilon, exactly epsilon-private. Gaussian: a continuous Gaussian of standard deviation l2 / mu, drawn exactly
and rounded to the grid, which has exactly the curve of mu (theorems `laplace`, `rounded-gaussian`).
All lengths are in steps of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from tacit.accounting.events import Event, GaussianEvent
from tacit.exact.balls import ball, lower, upper
from tacit.exact.rounding import up
from tacit.guarantees import Bound, GaussianDP, Pure
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian, Staircase
from tacit.noise.source import Source
from tacit.statistics.base import Integers

__all__ = ["Block", "normal_quantile"]

Law = Literal["laplace", "gaussian", "staircase"]

SAFE = 1 + 1e-12
"""Quantiles of the normal law are correct to about 1e-15; this covers it, and no privacy rests on it."""


def normal_quantile(confidence: float, coordinates: int = 1) -> float:
    """z with (2 Phi(z) - 1)^coordinates = confidence, rounded up."""
    miss = -math.expm1(math.log(confidence) / coordinates) if coordinates > 1 else 1 - confidence
    return -NormalDist().inv_cdf(miss / 2) * SAFE


@lru_cache(maxsize=1024)
def _laplace_quantile(l1: int, epsilon: Fraction, confidence: Fraction, coordinates: int) -> int:
    """Certified by a search in ball arithmetic, and asked for several times in one release."""
    law = Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(l1)).distribution
    return int(law.error_bound(confidence=confidence, coordinates=coordinates))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Noise for some parts at once. `level` is epsilon (laplace, staircase) or noise_std in steps (gaussian)."""

    parts: tuple[str, ...]
    law: Law
    l1: int
    l2_squared: int
    level: Fraction

    # --- made from a price ------------------------------------------------------------------------------
    @classmethod
    def laplace(cls, parts: tuple[str, ...], l1: int, l2_squared: int, epsilon: Fraction) -> Block:
        """The smallest Laplace noise of this epsilon."""
        return cls(parts=parts, law="laplace", l1=l1, l2_squared=l2_squared, level=epsilon)

    @classmethod
    def gaussian(cls, parts: tuple[str, ...], l1: int, l2_squared: int, mu_squared: Fraction) -> Block:
        """The smallest Gaussian noise of this mu^2: noise_std^2 = l2^2 / mu^2, rounded up."""
        square = l2_squared / mu_squared
        std = Fraction(upper(lambda: ball(square).sqrt()))
        return cls(parts=parts, law="gaussian", l1=l1, l2_squared=l2_squared, level=std)

    @classmethod
    def staircase(cls, parts: tuple[str, ...], l1: int, l2_squared: int, epsilon: Fraction) -> Block:
        """Staircase noise of this epsilon, for one number."""
        return cls(parts=parts, law="staircase", l1=l1, l2_squared=l2_squared, level=epsilon)

    # --- what it reveals --------------------------------------------------------------------------------
    @property
    def epsilon(self) -> Fraction | None:
        """The exact pure epsilon, where there is one."""
        return None if self.law == "gaussian" else self.level

    @property
    def bound(self) -> Bound:
        """What a release of this block may reveal."""
        if self.law != "gaussian":
            return Pure(epsilon=up(self.level))
        square = self.l2_squared / self.level**2
        return GaussianDP(mu=upper(lambda: ball(square).sqrt()))

    @property
    def event(self) -> Event:
        """What is run, for accountants and the ledger."""
        if self.law != "gaussian":
            return self._pure().event
        square = self.level**2 / self.l2_squared
        return GaussianEvent(noise_multiplier=lower(lambda: ball(square).sqrt()))

    @property
    def rho(self) -> Fraction:
        """A rho that holds: mu^2 / 2, or epsilon tanh(epsilon / 2) for pure epsilon, rounded up."""
        if self.law == "gaussian":
            return Fraction(up(self.l2_squared / (2 * self.level**2)))
        e = self.level
        return Fraction(upper(lambda: ball(e) * (ball(e) / 2).tanh()))

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        if self.law == "staircase":
            return ("staircase-mechanism",)
        return ("discrete-laplace", "laplace") if self.law == "laplace" else ("rounded-gaussian",)

    # --- how far it errs, in steps ----------------------------------------------------------------------
    @property
    def scale(self) -> float:
        """The scale of the Laplace law, or the standard deviation of the Gaussian one."""
        return float(self.level) if self.law == "gaussian" else float(self.l1 / self.level)

    def expected_error(self) -> float:
        """E |noise| of one number."""
        if self.law != "gaussian":
            return self._pure().expected_error()
        return math.sqrt(2 / math.pi) * self.scale + (0.5 if self.scale < 4 else 0.0)

    def quantile(self, confidence: Fraction, coordinates: int = 1) -> int:
        """The least whole number of steps within which the noise of all coordinates stays, with this probability."""
        if self.law == "laplace":
            return _laplace_quantile(self.l1, self.level, confidence, coordinates)
        if self.law == "staircase":
            law = Staircase(epsilon=self.level, sensitivity=L1(self.l1)).distribution
            return int(law.error_bound(confidence=confidence, coordinates=coordinates))
        # |round(Z)| <= t if and only if |Z| < t + 1/2.
        return max(0, math.ceil(normal_quantile(float(confidence), coordinates) * self.scale - 0.5))

    # --- running ----------------------------------------------------------------------------------------
    def _pure(self) -> Laplace | Staircase:
        if self.law == "staircase":
            return Staircase(epsilon=self.level, sensitivity=L1(self.l1))
        return Laplace.for_epsilon(epsilon=self.level, sensitivity=L1(self.l1))

    def release(self, integers: Mapping[str, Integers], *, source: Source | None) -> dict[str, Integers]:
        """The block's parts with noise; one draw for all of them."""
        shapes = {name: np.shape(integers[name]) for name in self.parts}
        flat = [np.ravel(np.asarray(integers[name])) for name in self.parts]
        wide = any(a.dtype == object for a in flat)
        joined = np.concatenate([a.astype(object) if wide else a for a in flat])
        if joined.size == 0:
            return {name: np.zeros(shapes[name], dtype=np.int64) for name in self.parts}
        if self.law != "gaussian":
            noisy = self._pure().release(joined, source=source).values
        else:
            noisy = RoundedGaussian(
                sensitivity=L2.root(self.l2_squared), noise_std=self.level, dimension=joined.size
            ).release(joined, source=source).values  # fmt: skip
        out, start = {}, 0
        for name, array in zip(self.parts, flat, strict=True):
            out[name] = np.asarray(noisy[start : start + array.size]).reshape(shapes[name])
            start += array.size
        return out

    def describe(self) -> dict[str, Any]:
        """The law for a certificate: exact numbers as text."""
        if self.law == "laplace":
            said = {
                "distribution": "discrete Laplace",
                "noise_scale": str(self.l1 / self.level),
                "epsilon": str(self.level),
            }
            norm = {"norm": "L1", "steps": self.l1}
        elif self.law == "staircase":
            plateau = str(self._pure().noise_distribution["plateau_steps"])
            said = {"distribution": "staircase", "epsilon": str(self.level), "plateau_steps": plateau}
            norm = {"norm": "L1", "steps": self.l1}
        else:
            said = {"distribution": "Gaussian, rounded to the grid", "noise_std": str(self.level)}
            norm = {"norm": "L2", "steps_squared": self.l2_squared}
        return {"parts": list(self.parts), **said, "sensitivity": norm, "exact": True}
