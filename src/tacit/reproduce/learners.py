"""A lesson: textbook learners by the exponential mechanism, and their sample sizes.

For a finite class H and examples that one of its hypotheses labels, choose h with weight e^(-epsilon errors(h) / 2).
With n >= max(8, 4/epsilon) ln(2 |H| / beta) / alpha examples its true error is at most alpha, with probability 1 - beta
(theorem `private-learners`). The probability of failure is exact for the exponential mechanism, averaged over
samples. The least n follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.attacks import Draws
from tacit.exact.data_classes import dataclass
from tacit.mechanisms import Exponential, Score
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHA, BETA = 0.1, 0.1
EPSILONS = (0.1, 0.5, 1.0)
BITS = (4, 6, 8)
SAMPLES = 120
Row = tuple[float | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Hypotheses over {0, ..., 2^bits - 1}: the table of their answers, and the distribution of the examples."""

    name: str
    answers: Any
    law: Any
    target: int

    @property
    def true_errors(self) -> Any:
        """The chance that a hypothesis and the target differ."""
        return (self.answers != self.answers[self.target]) @ self.law


def points(bits: int) -> Class:
    """h_a(x) = 1 if x = a, and the one that is always 0; half of the examples are the target's point."""
    size = 1 << bits
    answers = np.vstack([np.eye(size, dtype=bool), np.zeros((1, size), dtype=bool)])
    law = np.full(size, 0.5 / (size - 1))
    law[size // 3] = 0.5
    return Class(name="points", answers=answers, law=law, target=size // 3)


def thresholds(bits: int) -> Class:
    """h_a(x) = 1 if x >= a; examples are uniform."""
    size = 1 << bits
    answers = np.arange(size)[None, :] >= np.arange(size + 1)[:, None]
    return Class(name="thresholds", answers=answers, law=np.full(size, 1 / size), target=size // 2)


def parities(bits: int) -> Class:
    """h_s(x) = the parity of the bits of x in s; examples are uniform. Every wrong hypothesis errs on half."""
    size = 1 << bits
    both = np.arange(size)[:, None] & np.arange(size)[None, :]
    odd = np.zeros(both.shape, dtype=bool)
    for k in range(bits):
        odd ^= (both >> k & 1).astype(bool)
    return Class(name="parity", answers=odd, law=np.full(size, 1 / size), target=size // 3)


CLASSES: tuple[Callable[[int], Class], ...] = (points, thresholds, parities)


def enough(hypotheses: int, *, epsilon: float | None, alpha: float = ALPHA, beta: float = BETA) -> int:
    """Sufficient numbers of examples: with an epsilon by the theorem, without one for any hypothesis without
    errors.
    """
    if epsilon is None:
        return math.ceil(math.log(hypotheses / beta) / alpha)
    return math.ceil(max(8.0, 4 / epsilon) * math.log(2 * hypotheses / beta) / alpha)


def sampled(which: Class, n: int, samples: int, seed: int) -> Any:
    """The frequency of each example in each of some samples of n."""
    at = Draws(seed, f"{which.name} {n}").uniforms(samples, n)
    edges = np.cumsum(which.law)
    places = np.minimum(np.searchsorted(edges, at), len(edges) - 1)
    return np.array([np.bincount(row, minlength=len(edges)) for row in places])


def failure(which: Class, n: int, epsilon: float, *, samples: int = SAMPLES, seed: int = 1) -> float:
    """The chance of a true error above alpha: exact over the mechanism, a mean over samples of n examples."""
    bad = which.true_errors > ALPHA
    wrong = (which.answers != which.answers[which.target]).astype(np.int64)
    drawn = sampled(which, n, samples, seed)
    errors = drawn @ wrong.T
    rate = float(Exponential(epsilon=epsilon, sensitivity=Score(1)).rate)
    weights = np.exp(-rate * (errors - errors.min(axis=1, keepdims=True)))
    return float((weights[:, bad].sum(axis=1) / weights.sum(axis=1)).mean())


def least(which: Class, epsilon: float) -> int:
    """The least n (to 2%) at which the chance of failure is at most beta."""
    low, high = 1, 2
    while failure(which, high, epsilon) > BETA:
        low, high = high, high * 2
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if failure(which, middle, epsilon) <= BETA else (middle, high)
    return high


def make() -> Made:
    """For each class, size and epsilon: the theorem's number of rows, the failure there, and the least n."""
    rows: list[Row] = []
    for maker in CLASSES:
        for bits in BITS:
            which = maker(bits)
            count = len(which.answers)
            for epsilon in EPSILONS:
                n = enough(count, epsilon=epsilon)
                rows.append((
                    which.name, bits, count, epsilon, enough(count, epsilon=None), n, failure(which, n, epsilon),
                    least(which, epsilon),
                ))  # fmt: skip
    return Made(
        columns=(
            "class",
            "bits",
            "hypotheses",
            "epsilon",
            "enough_without_privacy",
            "enough",
            "failure_there",
            "least",
        ),
        rows=tuple(rows),
        notes=(
            "The sample size grows with ln |H|, and with 1/epsilon below epsilon = 1/2.",
            f"Errors of at most {ALPHA:g} with probability {1 - BETA:g}; failures at the theorem's n are below 0.001.",
        ),
        draw=lambda: _draw(rows),
    )


def _draw(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = figure.subplots()
    for name, mark in (("points", "o"), ("thresholds", "s"), ("parity", "^")):
        for epsilon, colour in zip(EPSILONS, (INK, MUTED, ACCENT), strict=True):
            mine = [r for r in rows if r[0] == name and r[3] == epsilon]
            axes.plot(
                [float(r[1]) for r in mine], [float(r[7]) for r in mine], f"{mark}-", color=colour,
                label=f"{name}, epsilon = {epsilon:g}",
            )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(BITS)
    axes.legend(frameon=False, fontsize=8, ncols=3)
    label(axes, "Examples that the exponential mechanism needs", "bits of an example", "least n")
    return figure


LEARNERS = Reproduction(
    name="learners",
    title="Textbook learners by the exponential mechanism",
    source="for lessons; Kasiviswanathan et al. 2011; Groce 2014, 3.3.3; the numbers are ours",
    make=make,
)
