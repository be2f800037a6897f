"""People who are alone: unique in the table, and how many of a population are unique, estimated by a named model.

Sample uniques are counted. Population uniques are not in the table: an estimate rests on a model of the population,
and on the table being a simple random sample of it. Two are offered, each with its assumption.

- pitman (Hoshino 2001): the table is a draw from the Ewens-Pitman partition law with parameters theta and alpha,
  fitted by maximum likelihood. A population of N has N (theta + alpha)_{N-1} / (theta + 1)_{N-1} expected uniques,
  (x)_n the rising factorial. Assumes that classes are exchangeable: no quasi-identifier says how many share it.
- zayatz (Zayatz 1991): the sizes of the population's classes have the same law as those of the table. A unique of the
  table is then a unique of the population with a probability by Bayes' rule and the hypergeometric law. Large classes
  of the population are seen in part only, so that it counts too many where the sampling share is small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import whole

__all__ = ["ESTIMATORS", "Uniques", "population_uniques"]

ESTIMATORS = ("pitman", "zayatz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniques:
    """sample: uniques of the table. population: estimated uniques of the population. share: of its people.

    right: the chance that a unique of the table is one of the population, which is population x (rows / people)
    over sample, at most 1.
    """

    estimator: str
    rows: int
    people: int
    sample: int
    population: float
    parameters: Mapping[str, float]

    @property
    def share(self) -> float:
        """The estimated share of the population that is unique."""
        return self.population / self.people

    @property
    def right(self) -> float:
        """The chance that somebody who is unique in the table is unique in the population."""
        return 0.0 if not self.sample else min(1.0, self.population * self.rows / self.people / self.sample)


def population_uniques(sizes: Mapping[int, int], *, people: int, estimator: str = "pitman") -> Uniques:
    """Estimated uniques of a population of `people`, from the numbers of classes of each size in a random sample."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise UnknownName(what="estimator", name=str(estimator), known=ESTIMATORS)
    table = {int(size): int(many) for size, many in sizes.items() if many}
    rows = sum(size * many for size, many in table.items())
    people = whole("people", people)
    if not rows or people < rows:
        raise InvalidParameter(
            parameter="people", value=people, must=f"be at least the {rows:,} rows of the table"
        )
    alone = table.get(1, 0)
    found: float
    parameters: dict[str, float] = {}
    if people == rows:
        found = float(alone)
    elif estimator == "zayatz":
        found = alone * _zayatz(table, rows, people) * people / rows
    else:
        theta, alpha = _fit(table, rows)
        parameters = {"theta": theta, "alpha": alpha}
        found = _expected(theta, alpha, people)
    return Uniques(
        estimator=estimator, rows=rows, people=people, sample=alone,
        population=min(max(found, 0.0), float(people)), parameters=parameters,
    )  # fmt: skip


def _zayatz(table: Mapping[int, int], rows: int, people: int) -> float:
    """The chance that a unique of the sample comes from a class of size 1."""

    def once(size: int) -> float:
        # ln of the hypergeometric probability that exactly one of `size` people is among the sampled rows
        if people - size < rows - 1:
            return 0.0
        ln = math.log(size) + _choose(people - size, rows - 1) - _choose(people, rows)
        return math.exp(ln)

    total = sum(many * once(size) for size, many in table.items())
    return table.get(1, 0) * once(1) / total if total else 0.0


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_likelihood(table: Mapping[int, int], theta: float, alpha: float) -> float:
    """ln of the Ewens-Pitman law of a partition with these class sizes, up to what does not depend on theta, alpha.

    prod_{i=1}^{u-1} (theta + i alpha) / (theta + 1)_{n-1} times prod over classes of (1 - alpha)_{size - 1}.
    """
    rows = sum(size * many for size, many in table.items())
    classes = sum(table.values())
    if alpha > 0:
        first = (classes - 1) * math.log(alpha)
        first += math.lgamma(theta / alpha + classes) - math.lgamma(theta / alpha + 1)
    else:
        first = (classes - 1) * math.log(theta)
    second = math.lgamma(theta + rows) - math.lgamma(theta + 1)
    third = sum(
        many * (math.lgamma(size - alpha) - math.lgamma(1 - alpha))
        for size, many in table.items()
        if size > 1
    )
    return first - second + third


def _fit(table: Mapping[int, int], rows: int) -> tuple[float, float]:
    """The maximum of the likelihood over 0 <= alpha < 1, theta > 0: nested golden-section search on a fixed range."""
    if set(table) == {1}:
        # All distinct: the likelihood rises without end in alpha -> 1 and in theta.
        return float(rows), 1.0 - 1e-9
    top = math.log(1e4 * rows)

    def best_theta(alpha: float) -> tuple[float, float]:
        return _golden(lambda t: log_likelihood(table, math.exp(t), alpha), math.log(1e-6), top)

    alpha, _ = _golden(lambda a: best_theta(a)[1], 0.0, 1.0 - 1e-6)
    return math.exp(best_theta(alpha)[0]), alpha


def _golden(function: object, low: float, high: float, steps: int = 70) -> tuple[float, float]:
    assert callable(function)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(steps):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = function(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = function(a)
    middle = (low + high) / 2
    return middle, function(middle)


def _expected(theta: float, alpha: float, people: int) -> float:
    """N (theta + alpha)_{N-1} / (theta + 1)_{N-1}."""
    ln = math.lgamma(theta + alpha + people - 1) - math.lgamma(theta + alpha)
    ln -= math.lgamma(theta + people) - math.lgamma(theta + 1)
    return people * math.exp(ln)
