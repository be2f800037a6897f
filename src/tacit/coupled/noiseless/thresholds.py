"""The exact delta of a truncated cell: its count plus one against its count, both hidden below a threshold k.

    T(m) = m for m >= k, and 0 below;   P = law of T(M + 1),  Q = law of T(M)

M is the number of the other sampled members of the cell: Poisson with any mean, or binomial with any number of
members and one rate q. Theorem `truncated-histogram`: with a = k - 1 and E = e^epsilon the worst mean is a/E in the
direction P || Q and a E in the direction Q || P, and there truncation changes nothing. So

    delta_k(epsilon) = max( H_E(M + 1 || M) at mean a/E,  H_E(M || M + 1) at mean a E )

for the Poisson law; for the binomial law the same with the smallest numbers of members at which the ratio of
neighbouring probabilities, (n - m + 1) q / (m (1 - q)), reaches 1/E at m = a and E at m = a. Each is one sum of
positive terms. delta_k falls in k, because a histogram truncated at k + 1 is a function of one truncated at k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import NotCertified
from tacit.exact.balls import Ball, ball, positive_ball, working_precision

__all__ = ["Binomial", "CellLaw", "Poisson", "at_most", "delta_of_cell", "population_delta"]

_SPARE_BITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLaw:
    """A law of a cell's other members by the ratio of neighbouring probabilities, and one probability."""

    ratio: Callable[[int], Ball]
    chance: Callable[[int], Ball]


def poisson_cell(mean: Ball) -> CellLaw:
    """A Poisson number with this mean: Pr[m]/Pr[m - 1] = mean/m."""

    def chance(m: int) -> Ball:
        return (ball(m) * mean.log() - mean - (ball(m) + 1).lgamma()).exp()

    return CellLaw(ratio=lambda m: mean / m, chance=chance)


def binomial_cell(members: int, rate: Fraction) -> CellLaw:
    """A binomial number: Pr[m]/Pr[m - 1] = (n - m + 1) q / (m (1 - q))."""
    odds = ball(rate / (1 - rate))

    def chance(m: int) -> Ball:
        if not 0 <= m <= members:
            return ball(0)
        ways = (
            (ball(members) + 1).lgamma() - (ball(m) + 1).lgamma() - (ball(members - m) + 1).lgamma()
        ).exp()
        return ways * ball(rate) ** m * ball(1 - rate) ** (members - m)

    return CellLaw(ratio=lambda m: (members - m + 1) * odds / m, chance=chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Cells are independent Poisson counts; `worst` has the worst means of theorem `truncated-histogram`."""

    def worst(self, a: int, factor: Ball) -> tuple[list[CellLaw], list[CellLaw]]:
        """The worst laws of the two directions at threshold a + 1."""
        return [poisson_cell(a / factor)], [poisson_cell(a * factor)]

    def floor(self, threshold: int) -> Fraction:
        """No epsilon brings delta to this or below."""
        return Fraction(1) if threshold <= 1 else Fraction(0)

    def words(self) -> str:
        """The assumption."""
        return (
            "the numbers of rows in the cells are independent Poisson numbers, with any means (Poisson sampling of a "
            "population that is large against the sample)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial:
    """Every member of a population is sampled independently with probability `rate`, or with any smaller one."""

    rate: Fraction

    def worst(self, a: int, factor: Ball) -> tuple[list[CellLaw], list[CellLaw]]:
        """The worst numbers of members; where a ball does not settle which one it is, all that it may be."""
        inverse = ball((1 - self.rate) / self.rate) * a
        above = [max(n + a - 1, a - 1, 0) for n in _ceilings(inverse / factor)]
        below = [n + a - 1 for n in _ceilings(inverse * factor)]
        return [binomial_cell(n, self.rate) for n in above], [binomial_cell(n, self.rate) for n in below]

    def floor(self, threshold: int) -> Fraction:
        """All threshold - 1 other members of a cell may be sampled, and then the count tells for certain."""
        return self.rate ** (threshold - 1)

    def words(self) -> str:
        """The assumption."""
        return (
            "the rows are a random sample of a population: every member is in it independently, with probability at "
            f"most {float(self.rate):g}"
        )


def _ceilings(value: Ball) -> list[int]:
    """The values that the ceiling of a ball may have."""
    low, high = value.lower().ceil().unique_fmpz(), value.upper().ceil().unique_fmpz()
    if low is None or high is None or int(high) - int(low) > 1:
        raise NotCertified(
            what="the worst number of members", reason="its ball is wider than one at this precision"
        )
    return list(range(int(low), int(high) + 1))


def excess_above(law: CellLaw, a: int, factor: Ball) -> Ball:
    """H(M + 1 || M) on counts above a: the sum over m > a of (Pr[m - 1] - E Pr[m])+; Pr[a] times a series."""
    total, term, m = ball(0), ball(1), a + 1
    while True:
        ratio = law.ratio(m)
        total += term * positive_ball(1 - factor * ratio)
        term *= ratio
        m += 1
        # From here on terms fall at least by `ratio`, which falls in m, and the factors in brackets are below 1.
        if _settled(term, ratio, total):
            return law.chance(a) * (total + _tail(term, ratio))


def excess_below(law: CellLaw, a: int, factor: Ball) -> Ball:
    """H(M || M + 1) on counts up to a: the sum over m <= a of (Pr[m] - E Pr[m - 1])+; Pr[a] times a series."""
    total, term = ball(0), ball(1)
    for m in range(a, -1, -1):
        if m == 0:
            return law.chance(a) * (total + term)
        inverse = 1 / law.ratio(m)
        total += term * positive_ball(1 - factor * inverse)
        term *= inverse
        if _settled(term, inverse, total):
            return law.chance(a) * (total + _tail(term, inverse))
    raise AssertionError("a is not negative")


def at_most(law: CellLaw, a: int) -> Ball:
    """Pr[M <= a], as Pr[a] times a series."""
    total, term = ball(1), ball(1)
    for m in range(a, 0, -1):
        inverse = 1 / law.ratio(m)
        term *= inverse
        if _settled(term, inverse, total):
            return law.chance(a) * (total + _tail(term, inverse))
        total += term
    return law.chance(a) * total


def _settled(term: Ball, ratio: Ball, total: Ball) -> bool:
    """Is what is left, a geometric series, small against what was added?"""
    if term == 0:
        return True
    small = ball(Fraction(1, 1 << (working_precision() - _SPARE_BITS)))
    return bool(ratio < 1) and bool(term < total * (1 - ratio) * small)


def _tail(term: Ball, ratio: Ball) -> Ball:
    """The ball [0, term / (1 - ratio)]."""
    if term == 0:
        return ball(0)
    return ball(0).union((term / (1 - ratio)).abs_upper())


def delta_of_cell(sampling: Poisson | Binomial, threshold: int, factor: Ball) -> Ball:
    """delta_k at e^epsilon = factor, worst over the cell."""
    above, below = directions(sampling, threshold, factor, factor)
    return above.max(below)


def directions(
    sampling: Poisson | Binomial, threshold: int, forward: Ball, backward: Ball
) -> tuple[Ball, Ball]:
    """Both directions, each at its own factor: (M + 1 against M, M against M + 1)."""
    a = threshold - 1
    if a <= 0:
        return ball(1), ball(1)
    above, _ = sampling.worst(a, forward)
    _, below = sampling.worst(a, backward)
    return (
        _largest([excess_above(law, a, forward) for law in above]),
        _largest([excess_below(law, a, backward) for law in below]),
    )


def _largest(values: list[Ball]) -> Ball:
    out = values[0]
    for value in values[1:]:
        out = out.max(value)
    return out


def population_delta(sampling: Binomial, threshold: int, factor: Ball) -> Ball:
    """delta of "sample at this rate, count, truncate" as differential privacy of the population, add-or-remove.

    With the member the count is M + B, B = 1 with probability q:  P' = (1 - q) Q + q P. Hence, with E = e^epsilon,
    H_E(P' || Q) = q H(P || Q) at the factor (E - 1 + q)/q, and H_E(Q || P') = (1 - E (1 - q)) H(Q || P) at the factor
    E q / (1 - E (1 - q)), or 0 if E (1 - q) >= 1. Theorem `sample-then-truncate`.
    """
    q = ball(sampling.rate)
    if threshold <= 1:
        return q.max(positive_ball(1 - factor * (1 - q)))
    left = 1 - factor * (1 - q)
    forward, _ = directions(sampling, threshold, (factor - 1 + q) / q, ball(1))
    if not bool(left > ball(Fraction(1, 1 << _SPARE_BITS))):
        # Almost nothing, times H at an almost unbounded factor: at most the first.
        return (q * forward).max(positive_ball(left))
    _, backward = directions(sampling, threshold, ball(1), factor * q / left)
    return (q * forward).max(left * backward)
