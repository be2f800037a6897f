"""The chooser: which mechanism a question gets at a price, and why.

A question says what it is about: unknown keys, a huge domain, ranks, or vectors of integers with their sensitivity. For
tables of counts every mechanism that fits is a candidate (`candidates`), calibrated to the price before it is
compared, and the one with the least expected absolute error of a cell is taken, each table counting alike. A
candidate must be better than those before it by one part in a thousand, so that ties and the floats of another
machine decide nothing (docs/decisions/0015-the-curator-runs-mechanisms.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tacit.curator.accuracy import treat_accuracy
from tacit.curator.clamping import treat_clamping_bounds
from tacit.curator.fitted import fitted
from tacit.curator.functions.density import PureDensity
from tacit.curator.functions.treatment import treat_function
from tacit.curator.keys import treat_keys
from tacit.curator.prices import Price
from tacit.curator.ranks import treat_ranks
from tacit.curator.sparse import treat_sparse
from tacit.curator.treatments import (
    Applied,
    Treatment,
    cells_of,
    compared,
    groups_of,
    laplace,
    law_of,
    pure_within,
    treat,
)
from tacit.guarantees import Bound
from tacit.mechanisms import L1, Staircase
from tacit.statistics.base import Question
from tacit.statistics.forms import Average, Linear

__all__ = ["candidates", "choose", "is_gaussian", "needs_delta"]

FITTING: dict[str, Callable[[Question, Price], Treatment]] = {
    "ranks": treat_ranks, "clamping bounds": treat_clamping_bounds, "thresholds": treat_sparse,
    "function": treat_function,
}  # fmt: skip
"""Mechanisms for statistics that are no sums of noisy numbers."""
BETTER = 0.999
"""How much of the best error so far a later candidate may have at most, to be taken."""
CLEARLY = 0.95
"""The same for staircase noise."""
LOUD = 100
"""From this epsilon on a single number has no noise to speak of, whatever its law."""


def choose(question: Question, price: Price, *, budget: Bound | None = None) -> Treatment:
    """The treatment of a question at this price; `budget` says what is cheap."""
    of_its_own = FITTING.get(question.statistic.fits)
    if of_its_own is None and not question.known_keys:
        of_its_own = treat_keys
    if of_its_own is not None:
        return of_its_own(question, price)
    if price.kind == "accuracy":
        return treat_accuracy(question, price, budget=budget, others=lambda p: dict(candidates(question, p)))
    direct = treat(question, price)
    return _best(direct, dict(candidates(question, price))) if direct.noise else direct


def candidates(question: Question, price: Price) -> Iterator[tuple[str, Treatment]]:
    """Mechanisms for all parts at once, and for one number alone, beside independent noise on every number."""
    yield from fitted(question, price)
    yield from _single(question, price)


def _single(question: Question, price: Price) -> Iterator[tuple[str, Treatment]]:
    """Staircase noise, where it errs clearly less than Laplace noise: for one number, many steps and a large epsilon.

    Its event is its epsilon and no more, so that a little less error would be bought with worse composition.
    """
    groups, epsilon = groups_of(question), pure_within(price)
    if epsilon is None or len(groups) != 1 or not isinstance(question.form, Linear | Average):
        return
    parts, l1, _ = groups[0]
    if cells_of(question, parts) != 1 or l1 < 2 or epsilon > LOUD:
        return
    stairs = Staircase(epsilon=epsilon, sensitivity=L1(l1))
    if stairs.expected_error() < CLEARLY * laplace(groups[0], epsilon).mechanism.mean_errors(1)[0]:
        yield "staircase noise", Treatment(noise=(Applied(parts, stairs),), price=price, reason="")


def _best(direct: Treatment, others: dict[str, Treatment]) -> Treatment:
    """The best of all; independent noise stands first, and keeps its own reason where nothing beats it."""
    name, best = law_of(direct), direct
    errors = {name: direct.mean_error} | {n: t.mean_error for n, t in others.items()}
    for other, treatment in others.items():
        if errors[other] < BETTER * errors[name]:
            name, best = other, treatment
    if best is direct:
        return direct
    return replace(best, reason=compared(name, errors), candidates=errors)


def needs_delta(question: Question) -> bool:
    """Does its treatment at an (epsilon, delta) price spend a delta of its own?"""
    return not question.known_keys or question.statistic.fits == "thresholds"


def is_gaussian(question: Question) -> bool:
    """Is there Gaussian noise for it only, so that it takes a part of a mu and never of an epsilon?"""
    return question.statistic.fits == "function" and not isinstance(question.statistic, PureDensity)
