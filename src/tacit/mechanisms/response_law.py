"""The exact law of the number of answers that name a category: Bin(c, p) + Bin(n - c, q) for a true count of c.

It rises with c, so that the counts that a test of the observed number does not reject are an interval: Clopper and
Pearson's construction for one binomial, here for the sum of two. Theorem `local-intervals`. Numbers are floats; they
speak of accuracy, not of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.exact.arrays import Floats

__all__ = ["ResponseLaw"]


_REACH = 9.5
"""Standard deviations beyond which a binomial's probabilities are left out: below 1e-18 by Bernstein's inequality where
the deviation is above a few, and the window has a floor for where it is not."""
_FLOOR = 60
_GRID = 256
"""Different observed numbers whose intervals are each computed; of more, a grid of so many is, outwards."""
_MOST_POINTS = 1 << 23
_DEAR = 16
"""A tail in closed form costs as much as so many listed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLaw:
    """How often a category is named by n people, of whom c belong to it: with probability p if so, else with q < p."""

    people: int
    p: float
    q: float
    gap: float
    """p - q, which is not computed by subtraction."""

    def at_most(self, observed: float, count: int) -> float:
        """Pr[X <= observed] for a true count."""
        return self._tail(math.floor(observed), count, below=True)

    def at_least(self, observed: float, count: int) -> float:
        """Pr[X >= observed] for a true count."""
        return self._tail(math.ceil(observed), count, below=False)

    def _tail(self, observed: int, count: int, *, below: bool) -> float:
        rest = self.people - count
        # The narrower of the two is listed, the other one is summed in closed form.
        narrow = count * self.p * (1 - self.p) <= rest * self.q * (1 - self.q)
        one, other = ((count, self.p), (rest, self.q)) if narrow else ((rest, self.q), (count, self.p))
        start, masses = _masses(*one)
        left = observed - (start + np.arange(len(masses)))
        share = _tails(*other, left, below=below)
        return min(1.0, float(masses @ share))

    def interval(self, observed: int, miss: float) -> tuple[int, int]:
        """The true counts that are not rejected: both tails above miss/2; the nearest where there is none."""
        n, half = self.people, miss / 2
        from scipy.special import ndtri

        guess = (observed - n * self.q) / self.gap
        spread = self._std(guess)
        away, step = -float(ndtri(max(half, 1e-300))) * spread, int(spread / 64) + 1
        low = _first(lambda c: self.at_least(observed, c) > half, n, int(guess - away), step)
        high = _first(lambda c: self.at_most(observed, c) <= half, n, int(guess + away), step)
        return min(low, n), max(high - 1, 0)

    def _std(self, count: float) -> float:
        inside = min(max(count, 0.0), float(self.people))
        p, q = self.p, self.q
        return math.sqrt(inside * p * (1 - p) + (self.people - inside) * q * (1 - q)) / self.gap

    def intervals(self, observed: npt.NDArray[np.int64], miss: float) -> tuple[Floats, Floats]:
        """Low and high ends for many observed numbers; both rise with what was observed."""
        points = np.unique(observed)
        if len(points) > _GRID:
            points = np.unique(np.linspace(int(points[0]), int(points[-1]), _GRID).astype(np.int64))
        ends = np.array([self.interval(int(x), miss) for x in points], dtype=np.float64).reshape(-1, 2)
        before = np.searchsorted(points, observed, side="right") - 1
        after = np.searchsorted(points, observed, side="left")
        return ends[before, 0], ends[np.minimum(after, len(points) - 1), 1]

    def quantile(self, count: int, miss: float) -> float:
        """The least w with Pr[|(X - n q)/(p - q) - c| > w] <= miss, for a true count; infinite where it is too dear."""
        rest = self.people - count
        widths = [_window(m, r) for m, r in ((count, self.p), (rest, self.q))]
        if sum(w[1] - w[0] for w in widths) > _MOST_POINTS or miss < 1e-9:
            return math.inf
        (a, first), (b, second) = _masses(count, self.p), _masses(rest, self.q)
        size = len(first) + len(second) - 1
        length = 1 << (size - 1).bit_length() if size > 1 else 1
        both = np.fft.irfft(np.fft.rfft(first, length) * np.fft.rfft(second, length), length)[:size] if size > 1 else (
            first * second
        )  # fmt: skip
        away = np.abs(a + b + np.arange(size) - (count * self.p + rest * self.q))
        order = np.argsort(away)
        inside = np.cumsum(np.maximum(both[order], 0.0))
        place = int(np.searchsorted(inside, 1 - miss + 1e-13))
        return float(away[order][min(place, size - 1)]) / self.gap * (1 + 1e-12)

    def worst_quantile(self, miss: float) -> float:
        """The largest quantile over true counts: all of them up to 64 people; else at 33, and a step of the lattice."""
        n = self.people
        if n <= 64:
            return max(self.quantile(c, miss) for c in range(n + 1))
        # Between two of them the law moves by less than a step of the lattice 1/(p - q) against a smooth one.
        return max(self.quantile(round(n * i / 32), miss) for i in range(33)) + 1 / self.gap


def _first(true: Callable[[int], bool], n: int, start: int, step: int) -> int:
    """The least c in 0..n at which a rising condition holds, n + 1 where none does; looked for around `start`."""
    start = min(max(start, 0), n)
    low, high = -1, n + 1
    if true(start):
        high = start
        while high - step > low:
            if not true(high - step):
                low = high - step
                break
            high, step = high - step, 2 * step
    else:
        low = start
        while low + step < high:
            if true(low + step):
                high = low + step
                break
            low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def _window(trials: int, chance: float) -> tuple[int, int]:
    reach = _REACH * math.sqrt(trials * chance * (1 - chance)) + _FLOOR
    mean = trials * chance
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


@lru_cache(maxsize=256)
def _masses(trials: int, chance: float) -> tuple[int, Floats]:
    """(First value, probabilities from there on) of a binomial, without its far tails, adding up to 1."""
    from scipy.special import gammaln, xlog1py, xlogy

    low, high = _window(trials, chance)
    x = np.arange(low, high + 1, dtype=np.float64)
    logs = (
        gammaln(trials + 1)
        - gammaln(x + 1)
        - gammaln(trials - x + 1)
        + xlogy(x, chance)
        + xlog1py(trials - x, -chance)
    )
    masses = np.exp(logs - logs.max())
    return low, masses / masses.sum()


def _tails(trials: int, chance: float, values: npt.NDArray[np.int64], *, below: bool) -> Floats:
    """Pr[Bin <= value], or >= value, of each of many values; what lies beyond the listed ones is 0 or 1."""
    low, high = _window(trials, chance)
    if high - low > _DEAR * len(values):
        return _closed_tails(trials, chance, values, below=below)
    start, masses = _masses(trials, chance)
    place = np.clip(values - start, -1, len(masses))
    if below:
        return np.concatenate([np.cumsum(masses), [1.0, 0.0]])[place]
    return np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0, 1.0]])[place]


def _closed_tails(trials: int, chance: float, values: npt.NDArray[np.int64], *, below: bool) -> Floats:
    """The same by the incomplete beta function."""
    from scipy.special import betainc

    least = 0 if below else 1
    inside = (values >= least) & (values < trials + least)
    x = np.where(inside, values, least).astype(np.float64)
    found = betainc(trials - x, x + 1, 1 - chance) if below else betainc(x, trials - x + 1, chance)
    outside = np.where(values < least, 0.0 if below else 1.0, 1.0 if below else 0.0)
    return np.where(inside, found, outside)
