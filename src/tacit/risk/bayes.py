"""The Bayes risk of a histogram at real sizes: a mechanism above, and a bound for all private mechanisms below.

Prior: n rows, each in cell j with probability p_j, independently. Loss: the sum of absolute errors. Neighbours: one
row replaced.

    above   truncated geometric noise with epsilon/2 in every cell, then for each noisy count the best guess under the
            cell's own distribution Bin(n, p_j): epsilon-private, and its risk is a sum over cells.
    below   cells in pairs. Whoever knows all other cells and the total m of a pair still has an epsilon-private count
            on 0..m with prior Bin(m, p_j/(p_j + p_k)), counted twice: its Bayes risk is exact (theorem
            `optimal-count-remap`). Fewer rows are easier: k <= m undisclosed rows give a bound for m.

Theorem `histogram-bayes`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import listed, positive, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import Exact
from tacit.mechanisms.base import epsilon_parameter
from tacit.risk.certificate import GeometricKernel, Loss, bayes_floor, best_outputs

MOST_CELLS = 1 << 20
WINDOW = 12.0
"""Cell counts this many standard deviations from their mean are left out, and counted."""
LONGEST = 4000
MOST_ROWS = 10**6
_SAFE = 1e-7
_SIZES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramBayes:
    """The Bayes risk of the best epsilon-private histogram lies between the two ends.

    The named mechanism reaches `risk`; guessing without data reaches `constant`.
    """

    n: int
    cells: int
    epsilon: float
    risk: float
    lower_bound: float
    constant: float
    mechanism: str

    @property
    def ratio(self) -> float:
        """The largest ratio to the smallest possible risk."""
        return self.risk / self.lower_bound if self.lower_bound > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "n": self.n,
            "cells": self.cells,
            "epsilon": self.epsilon,
            "risk": self.risk,
            "lower_bound": self.lower_bound,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "constant": self.constant,
            "mechanism": self.mechanism,
            "theorem": "histogram-bayes",
        }


def histogram_bayes(
    *, n: int, epsilon: Exact, cells: int | None = None, probabilities: Sequence[float] | None = None
) -> HistogramBayes:
    """Both ends of the Bayes risk of a histogram of n rows; `cells` equally likely ones, or their probabilities."""
    rows = whole("n", n, least=1)
    if rows > MOST_ROWS:
        raise InvalidParameter(parameter="n", value=rows, must=f"be at most {MOST_ROWS}")
    level = float(epsilon_parameter(epsilon))
    if (cells is None) == (probabilities is None):
        raise InvalidParameter(
            parameter="cells", value="both or none", must="be given, or probabilities, and not both"
        )
    if probabilities is None:
        count = whole("cells", cells, least=2)
        chances: list[Fraction] = [Fraction(1, count)] * min(count, MOST_CELLS + 1)
    else:
        given = [Fraction(positive("probabilities", p)) for p in listed("probabilities", probabilities)]
        total = sum(given, Fraction(0))
        if len(given) < 2 or not Fraction(999_999_999, 10**9) < total < Fraction(1_000_000_001, 10**9):
            raise InvalidParameter(
                parameter="probabilities", value=len(given), must="be two at least, above 0, and add up to 1"
            )
        chances = [p / total for p in given]
    if len(chances) > MOST_CELLS:
        raise InvalidParameter(parameter="cells", value=len(chances), must=f"be at most {MOST_CELLS}")
    noisy = guessed = 0.0
    for chance, times in Counter(chances).items():
        one, none = _cell(rows, float(chance), level)
        noisy, guessed = noisy + times * one, guessed + times * none
    below = 0.0
    ordered = sorted(chances)
    pairs = Counter(zip(ordered[len(ordered) % 2 :: 2], ordered[len(ordered) % 2 + 1 :: 2], strict=True))
    for (a, b), times in pairs.items():
        below += times * _pair(rows, float(a + b), float(a / (a + b)), level)
    best = min(noisy, guessed) * (1 + _SAFE)
    # Where noise tells nothing both risks are one number, and the last digits of a sum must not choose between them.
    return HistogramBayes(
        n=rows,
        cells=len(chances),
        epsilon=level,
        risk=best,
        lower_bound=min(best, max(0.0, below * (1 - _SAFE))),
        constant=guessed * (1 + _SAFE),
        mechanism="the same guess whatever the data"
        if guessed <= noisy * (1 + _SAFE)
        else "geometric noise and the best guess",
    )


def _binomial(n: int, p: float) -> tuple[int, Floats, float]:
    """(First count, probabilities within the window, the largest mass outside), of Bin(n, p)."""
    from scipy.special import gammaln

    spread = WINDOW * math.sqrt(n * p * (1 - p)) + WINDOW**2
    low, high = max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread))
    if high - low > LONGEST:
        raise InvalidParameter(
            parameter="n", value=n, must=f"make a cell's count vary over at most {LONGEST} values"
        )
    k = np.arange(low, high + 1)
    logs = (
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
        if p < 1
        else np.where(k == n, 0.0, -np.inf)
    )
    weights = np.exp(logs)
    # Bernstein: a sum of bits is t from its mean with probability at most 2 exp(-t^2 / (2 (variance + t/3))).
    outside = 2 * math.exp(-(spread**2) / (2 * (n * p * (1 - p) + spread / 3)))
    return low, weights, outside if low > 0 or high < n else 0.0


def _cell(n: int, p: float, epsilon: float) -> tuple[float, float]:
    """(Risk of noise and the best guess, risk of the best constant) of one cell, from above."""
    low, weights, outside = _binomial(n, p)
    kernel = GeometricKernel(n=len(weights) - 1, epsilon=epsilon / 2)
    # A count outside of the window is clamped to it first; it costs at most n.
    loss = Loss(name="absolute")
    risk = float(best_outputs(kernel, loss, weights)[1].sum())
    k = np.arange(low, low + len(weights))
    median = int(k[int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))])
    guess = float(np.abs(k - median) @ weights)
    return risk + 2 * n * outside, guess + 2 * n * outside


def _pair(n: int, p: float, share: float, epsilon: float) -> float:
    """Twice the mean Bayes risk of a count among the rows of a pair of cells, from below."""
    low, weights, _ = _binomial(n, p)
    sizes = _grid(low, low + len(weights) - 1)
    total, tail = 0.0, np.cumsum(weights[::-1])[::-1]
    # By size classes: totals from one grid size to the next have at least the risk of the first.
    for here, following in zip(sizes, [*sizes[1:], low + len(weights)], strict=True):
        inside = tail[here - low] - (tail[following - low] if following - low < len(weights) else 0.0)
        if inside > 1e-15 and here > 0:
            total += float(inside) * _count(here, share, epsilon)
    return 2 * total


def _grid(low: int, high: int) -> list[int]:
    """A sample of the totals between the two, with the first and the last; all of them if there are few."""
    first = range(low, min(high, low + 2 * _SIZES) + 1)
    return sorted({*first, *(low + round((high - low) * j / _SIZES) for j in range(_SIZES + 1))})


@lru_cache(maxsize=4096)
def _count(rows: int, share: float, epsilon: float) -> float:
    """The Bayes risk of a count of this many rows, each counted with this probability; the risk for fewer rows is a
    lower bound as well.
    """
    # The window is conditioned on: somebody is told that the count lies in it, or else what it is.
    _, weights, _ = _binomial(rows, share)
    kernel = GeometricKernel(n=max(1, len(weights) - 1), epsilon=epsilon)
    prior = weights if len(weights) > 1 else np.array([*weights, 0.0])
    return bayes_floor(kernel, Loss(name="absolute"), prior) * float(min(1.0, prior.sum()))
