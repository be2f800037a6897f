"""Sampling priors (Groce 2014, Def. 6.1): a random sample of a fixed, public population.

A size N is drawn, then N members of the population uniformly without replacement. The data are a tuple with one
place a member of the population: its value, or None for who is not in the sample. All probabilities are rational.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tacit.coupled.numbers import as_distribution, as_probability, hashable
from tacit.coupled.priors import Prior, outcomes, row_count
from tacit.errors import InvalidParameter
from tacit.exact.checks import whole
from tacit.exact.rationals import exact_parameter
from tacit.guarantees.arguments import listed

__all__ = ["binomial_size", "fixed_size", "laplace_size", "poisson_size", "sampled_rows"]


def sampled_rows(population: Sequence[Any], *, size: Mapping[int, Any], name: str = "") -> Prior:
    """N members of the population, uniformly without replacement, N drawn from `size`."""
    members = [hashable("population", v) for v in listed("population", population)]
    n = len(members)
    outcomes(2 ** min(n, 64))
    sizes = as_distribution("size", size)
    weights: dict[tuple[Any, Any], Fraction] = {}
    for count, chance in sizes.items():
        if not 0 <= whole("size", count, least=None) <= n:
            raise InvalidParameter(
                parameter="size", value=count, must=f"lie between 0 and the population's {n}"
            )
        each = chance / math.comb(n, count)
        for chosen in itertools.combinations(range(n), count):
            inside = set(chosen)
            x = tuple(v if i in inside else None for i, v in enumerate(members))
            weights[x, None] = weights.get((x, None), Fraction(0)) + each
    return Prior(name=name or f"a sample of a population of {n}", weights=weights)


def fixed_size(size: int) -> dict[int, Fraction]:
    """Exactly so many."""
    return {whole("size", size, least=0): Fraction(1)}


def binomial_size(population: int, rate: Any) -> dict[int, Fraction]:
    """Every member is sampled independently with probability `rate`."""
    n, q = row_count("population", population), as_probability("rate", rate)
    return {k: math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)}


def poisson_size(mean: Any, *, most: int) -> dict[int, Fraction]:
    """A Poisson number, given that it is at most `most` (the population): proportional to mean^k/k!, so rational."""
    rate, limit = exact_parameter("mean", mean), row_count("most", most, least=0)
    terms = [rate**k / math.factorial(k) for k in range(limit + 1)]
    return {k: term / sum(terms) for k, term in enumerate(terms)}


def laplace_size(size: int, *, ratio: Any, shift: int) -> dict[int, Fraction]:
    """`size` less the positive part of (two-sided geometric noise + shift), at least 0: a few dropped at random.

    The noise G has Pr[G = k] = (1 - r)/(1 + r) r^|k|, r = e^{-epsilon} rational: the grid form of the thesis's
    Laplace.
    """
    n, r, s = row_count("size", size), as_probability("ratio", ratio), row_count("shift", shift, least=0)
    if r in (0, 1):
        raise InvalidParameter(parameter="ratio", value=ratio, must="lie strictly between 0 and 1")
    out: dict[int, Fraction] = {}
    for dropped in range(n + 1):
        if dropped == n:
            chance = _tail(r, n - s)
        elif dropped == 0:
            chance = 1 - _tail(r, 1 - s)
        else:
            chance = _tail(r, dropped - s) - _tail(r, dropped - s + 1)
        out[n - dropped] = chance
    return out


def _tail(r: Fraction, k: int) -> Fraction:
    """Pr[G >= k]."""
    return r**k / (1 + r) if k >= 1 else 1 - r ** (1 - k) / (1 + r)
