"""Sources that tests steer by hand, and a goodness-of-fit check that cannot fail by luck."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from scipy.special import gammaincc

from tacit.noise import DiscreteDistribution, SeededSource, Source


class Exhausted(Exception):
    """The script has no further word."""


class ScriptedSource(Source):
    """Gives the words of a list, then complains: a path down the random-bit tree."""

    def __init__(self, words: Iterable[int] = (), *, width: int = 64) -> None:
        self.left = [w << (64 - width) for w in words]

    @property
    def publishable(self) -> bool:
        return False

    def words(self, count: int) -> np.ndarray:
        if count > len(self.left):
            raise Exhausted
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


@pytest.fixture
def scripted() -> type[ScriptedSource]:
    return ScriptedSource


@pytest.fixture
def exhausted() -> type[Exhausted]:
    return Exhausted


def chi_square_p(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of Pearson's statistic; cells below 10 expected are merged."""
    big = expected >= 10
    o, e = list(observed[big]), list(expected[big])
    if (~big).any() and expected[~big].sum() > 0:
        o.append(observed[~big].sum())
        e.append(expected[~big].sum())
    o_, e_ = np.array(o, dtype=float), np.array(e, dtype=float)
    # A last merged cell with next to no expectation joins its neighbour.
    if e_.size > 1 and e_[-1] < 5:
        o_[-2] += o_[-1]
        e_[-2] += e_[-1]
        o_, e_ = o_[:-1], e_[:-1]
    return float(gammaincc(max(o_.size - 1, 1) / 2, ((o_ - e_) ** 2 / e_).sum() / 2))


@pytest.fixture
def p_of() -> Callable[[np.ndarray, np.ndarray], float]:
    return chi_square_p


@pytest.fixture
def fits() -> Callable[..., float]:
    """p-value of `draws` seeded draws of a law against its own certified probabilities."""

    def check(law: DiscreteDistribution, draws: int = 100_000, seed: int = 7) -> float:
        x = law.sample(size=draws, source=SeededSource(seed=seed))
        low, high = int(x.min()), int(x.max())
        cell = max(1, (high - low) // 200)
        edges = list(range(low, high + cell, cell))
        below = [0.0, *(sum(law.cumulative(e + cell - 1)) / 2 for e in edges)]
        expected = np.diff(below) * draws
        expected[-1] += (1 - below[-1]) * draws
        expected[0] += sum(law.cumulative(low - 1)) / 2 * draws
        observed = np.bincount(((x - low) // cell).astype(np.int64), minlength=len(edges))
        return chi_square_p(observed, expected)

    return check
