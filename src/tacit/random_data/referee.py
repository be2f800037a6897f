"""The referee: how often a mechanism breaks its bound, counted over all samples.

`breaks(D, D')` says whether two neighbouring tables of counts have outputs that are too far apart. Over the orders
of one multiset of rows that is a share (Hall 2012, 5.2.1); the largest share is the conditional referee's verdict and
bounds the iid referee's, a weighted mean of shares, whatever the law of the rows. Everything is an exact rational.
Theorem `random-relabelling`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.errors import InvalidParameter
from tacit.exact.checks import probability, whole
from tacit.exact.rationals import Exact, exact_parameter
from tacit.exact.rounding import Interval
from tacit.guarantees import Neighbours
from tacit.noise import FiniteDistribution
from tacit.noise.source import Source, default_source

__all__ = ["Referee", "Worst", "ordered_failure", "sampled_failure", "tables"]

Counts = tuple[int, ...]
Breaks = Callable[[Counts, Counts], bool]
MOST_TABLES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest share of relabellings that break the bound, and the multiset of rows at which it is reached."""

    gamma: Fraction
    counts: Counts


def tables(total: int, cells: int) -> Iterator[Counts]:
    """All tables of counts with this total."""
    for bars in itertools.combinations(range(total + cells - 1), cells - 1):
        ends = (-1, *bars, total + cells - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def law_parameter(law: Sequence[Exact]) -> tuple[Fraction, ...]:
    """Probabilities of the cells, exact; they must add up to 1."""
    exact = tuple(exact_parameter("law", p, positive=False) for p in law)
    if any(p < 0 for p in exact) or sum(exact) != 1:
        raise InvalidParameter(
            parameter="law", value=f"{len(exact)} numbers", must="be probabilities that add up to 1 exactly",
            hint="give Fractions",
        )  # fmt: skip
    return exact


class Referee:
    """For each multiset of rows, the share of its relabellings on which the bound fails; computed once.

    Replace-one: rows + 1 draws, D = all but the last, D' = all but the last but one. Add-or-remove: `rows` draws,
    D = all of them, D' = all but the last.
    """

    __slots__ = ("cells", "neighbours", "rows", "shares")

    def __init__(
        self, breaks: Breaks, *, rows: int, cells: int, neighbours: Neighbours = Neighbours.REPLACE_ONE
    ) -> None:
        self.rows = whole("rows", rows, least=1)
        self.cells = whole("cells", cells, least=1)
        self.neighbours = Neighbours.parse(neighbours)
        draws = self.rows + (self.neighbours is Neighbours.REPLACE_ONE)
        if math.comb(draws + self.cells - 1, self.cells - 1) > MOST_TABLES:
            raise InvalidParameter(
                parameter="rows", value=rows, must=f"make at most {MOST_TABLES} tables of {self.cells} cells",
                hint="fewer rows or cells; sampled_failure() is for larger ones",
            )  # fmt: skip
        share = self._replaced if self.neighbours is Neighbours.REPLACE_ONE else self._removed
        self.shares: Mapping[Counts, Fraction] = {t: share(breaks, t) for t in tables(draws, self.cells)}

    def _replaced(self, breaks: Breaks, t: Counts) -> Fraction:
        failing = 0
        held = [j for j in range(self.cells) if t[j]]
        for a, b in itertools.permutations(held, 2):
            if breaks(_less(t, b), _less(t, a)):
                failing += t[a] * t[b]
        return Fraction(failing, self.rows * (self.rows + 1))

    def _removed(self, breaks: Breaks, t: Counts) -> Fraction:
        failing = sum(t[a] for a in range(self.cells) if t[a] and breaks(t, _less(t, a)))
        return Fraction(failing, self.rows)

    @property
    def conditional(self) -> Worst:
        """The worst share over all multisets: the smallest gamma that the technique of 5.2.1 can prove."""
        counts = max(self.shares, key=lambda t: self.shares[t])
        return Worst(gamma=self.shares[counts], counts=counts)

    def iid(self, law: Sequence[Exact]) -> Fraction:
        """The probability that the bound fails for rows drawn independently from this law, exactly."""
        p = law_parameter(law)
        if len(p) != self.cells:
            raise InvalidParameter(
                parameter="law", value=f"{len(p)} numbers", must=f"have {self.cells} entries"
            )
        below = math.lcm(*(x.denominator for x in p))
        weights = [int(x * below) for x in p]
        powers = [
            list(itertools.accumulate([w] * (self.rows + 1), lambda a, b: a * b, initial=1)) for w in weights
        ]
        draws = sum(next(iter(self.shares)))
        total = Fraction(0)
        factorials = [math.factorial(i) for i in range(draws + 1)]
        for t, share in self.shares.items():
            if share:
                ways = factorials[draws] // math.prod(factorials[c] for c in t)
                total += share * ways * math.prod(powers[j][c] for j, c in enumerate(t))
        return Fraction(total, below**draws)


def _less(t: Counts, place: int) -> Counts:
    return (*t[:place], t[place] - 1, *t[place + 1 :])


def ordered_failure(
    breaks: Callable[[Counts, Counts], bool], *, rows: int, law: Sequence[Exact], place: int = -1
) -> Fraction:
    """The same over all ordered samples, for mechanisms that look at the order of the rows; row `place` is replaced."""
    n, p = whole("rows", rows, least=1), law_parameter(law)
    at = place % n
    total = Fraction(0)
    if len(p) ** (n + 1) > MOST_TABLES:
        raise InvalidParameter(
            parameter="rows", value=rows, must=f"make at most {MOST_TABLES} samples of {len(p)} values"
        )
    for x in itertools.product(range(len(p)), repeat=n + 1):
        chance = math.prod((p[v] for v in x), start=Fraction(1))
        sample, fresh = x[:n], x[n]
        if chance and breaks(sample, (*sample[:at], fresh, *sample[at + 1 :])):
            total += chance
    return total


def sampled_failure(
    breaks: Breaks,
    *,
    rows: int,
    law: Sequence[Exact],
    trials: int,
    confidence: float = 0.999,
    source: Source | None = None,
) -> Interval:
    """Limits of confidence (Clopper and Pearson) for the probability that the bound fails, by drawing samples.

    For sizes beyond enumeration: each trial draws rows + 1 rows and asks `breaks` once. Replace-one.
    """
    from scipy.special import betaincinv

    n, count = whole("rows", rows, least=1), whole("trials", trials, least=1)
    miss = (1 - probability("confidence", confidence, below_one=True)) / 2
    weights = law_parameter(law)
    draw = FiniteDistribution(weights=list(weights))
    source = source if source is not None else default_source()
    failed = 0
    for _ in range(count):
        x = draw.sample(size=n + 1, source=source)
        t = np.bincount(x.astype(np.int64), minlength=len(weights)).tolist()
        a, b = int(x[n - 1]), int(x[n])
        failed += a != b and breaks(_less(tuple(t), b), _less(tuple(t), a))
    low = float(betaincinv(failed, count - failed + 1, miss)) if failed else 0.0
    high = float(betaincinv(failed + 1, count - failed, 1 - miss)) if failed < count else 1.0
    return Interval(low=low, high=high)
