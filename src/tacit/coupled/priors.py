"""A belief before a release: a prior over (data, auxiliary knowledge), in exact rationals.

Data are anything hashable: mostly a tuple of rows. The auxiliary knowledge Z is the adversary's further knowledge;
None stands for nothing. A class of priors is a tuple of them. A claim for all of them with one simulator also
holds for all their mixtures (theorem `mixtures-of-priors`), and for anybody with less knowledge (theorem
`less-auxiliary-knowledge`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from tacit.coupled.numbers import Distribution, as_distribution, as_probability, hashable
from tacit.errors import InvalidParameter
from tacit.exact.checks import check_fields, instance, listed, refuse_if, text, whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import exact_parameter

__all__ = [
    "Prior",
    "binomial_size",
    "fixed_size",
    "iid_rows",
    "independent_rows",
    "known_rows",
    "laplace_size",
    "mixture",
    "point_prior",
    "point_priors",
    "poisson_size",
    "sampled_rows",
    "with_auxiliary",
]

MOST_OUTCOMES = 1 << 18
"""The largest size of one prior; a larger one is refused before it is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Probabilities of (data, auxiliary) that add up to exactly 1."""

    name: str
    weights: Mapping[tuple[Any, Any], Fraction] = field(hash=False)

    def __post_init__(self) -> None:
        check_fields(self, name=partial(text, empty=False))
        weights = as_distribution("prior", self.weights)
        for outcome in weights:
            if not isinstance(outcome, tuple) or len(outcome) != 2:
                raise InvalidParameter(
                    parameter="prior",
                    value="an outcome of another form",
                    must="give probabilities of pairs (data, auxiliary)",
                    hint="the auxiliary is None if the adversary has none",
                )
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def data(self) -> dict[Any, Fraction]:
        """The distribution of the data alone."""
        out: dict[Any, Fraction] = {}
        for (x, _), weight in self.weights.items():
            out[x] = out.get(x, Fraction(0)) + weight
        return out

    @property
    def auxiliaries(self) -> dict[Any, Fraction]:
        """The distribution of the auxiliary knowledge alone."""
        out: dict[Any, Fraction] = {}
        for (_, z), weight in self.weights.items():
            out[z] = out.get(z, Fraction(0)) + weight
        return out

    def unknown_rows(self) -> int:
        """The smallest number of rows, over all auxiliary values, that remain unknown. Data must be tuples."""
        seen: dict[Any, list[set[Any]]] = {}
        for x, z in self.weights:
            if not isinstance(x, tuple):
                raise InvalidParameter(parameter="data", value=type(x).__name__, must="be a tuple of rows")
            columns = seen.setdefault(z, [set() for _ in x])
            if len(columns) != len(x):
                return 0
            for values, row in zip(columns, x, strict=True):
                values.add(row)
        return min(sum(len(values) > 1 for values in columns) for columns in seen.values())


MOST_ROWS = 1024


def row_count(parameter: str, value: object, *, least: int = 1) -> int:
    """A number of rows or members: whole, and small enough to write the rows down."""
    found = whole(parameter, value, least=least)
    refuse_if(
        found > MOST_ROWS, parameter, "a larger number", f"be at most {MOST_ROWS}", "the checker enumerates"
    )
    return found


def outcomes(count: int) -> None:
    """Refuse a prior that is too large to be enumerated."""
    if count > MOST_OUTCOMES:
        raise InvalidParameter(
            parameter="prior",
            value=f"{count} outcomes" if count < 10**18 else "more outcomes than can be counted here",
            must=f"have at most {MOST_OUTCOMES} outcomes",
            hint="the checker enumerates: take fewer rows or fewer values",
        )


def point_prior(data: Any, *, auxiliary: Any = None, name: str = "") -> Prior:
    """Somebody who knows the data: all probability on one data set."""
    x = hashable("data", data)
    return Prior(name=name or f"X = {x!r}", weights={(x, hashable("auxiliary", auxiliary)): Fraction(1)})


def point_priors(values: Sequence[Any], *, rows: int) -> tuple[Prior, ...]:
    """All point priors on data sets of this many rows with these values: the class that makes Def. 5.3 Def. 5.1."""
    options, n = listed("values", values), row_count("rows", rows)
    outcomes(len(options) ** min(n, 64) if len(options) > 1 else 1)
    return tuple(point_prior(x) for x in itertools.product(options, repeat=n))


def independent_rows(laws: Sequence[Mapping[Any, Any]], *, name: str = "independent rows") -> Prior:
    """Rows drawn independently, each from a distribution of its own."""
    given = [as_distribution("row", law) for law in listed("laws", laws)]
    count = 1
    for law in given:
        count = min(count * len(law), 1 << 64)
    outcomes(count)
    weights: dict[tuple[Any, Any], Fraction] = {((), None): Fraction(1)}
    for law in given:
        weights = {
            ((*x, hashable("row", value)), None): p * q
            for (x, _), p in weights.items()
            for value, q in law.items()
        }
    return Prior(name=name, weights=weights)


def iid_rows(law: Mapping[Any, Any], *, rows: int, name: str = "") -> Prior:
    """Rows drawn independently from one known distribution."""
    n, law = row_count("rows", rows), as_distribution("law", law)
    outcomes(len(law) ** min(n, 64) if len(law) > 1 else 1)
    return independent_rows([law] * n, name=name or f"{n} rows drawn independently from one distribution")


def mixture(priors: Sequence[Prior], weights: Sequence[Any], *, name: str = "mixture") -> Prior:
    """A convex combination of priors (Groce 2014, Def. 5.6): a belief about which of them is right."""
    parts = [instance("priors", p, Prior, must="be priors") for p in listed("priors", priors)]
    shares = [as_probability("weights", w) for w in listed("weights", weights)]
    refuse_if(len(parts) != len(shares), "weights", len(shares), f"be {len(parts)}, one for each prior")
    if sum(shares, Fraction(0)) != 1:
        raise InvalidParameter(
            parameter="weights", value=float(sum(shares, Fraction(0))), must="add up to exactly 1"
        )
    out: dict[tuple[Any, Any], Fraction] = {}
    for part, share in zip(parts, shares, strict=True):
        for outcome, weight in part.weights.items():
            out[outcome] = out.get(outcome, Fraction(0)) + share * weight
    return Prior(name=name, weights=out)


def with_auxiliary(
    prior: Prior,
    tell: Callable[[Any], Any] | Mapping[Any, Any],
    *,
    name: str = "",
    keep: bool = True,
) -> Prior:
    """The prior of an adversary who also learns `tell(data)`: a value, or a mapping of values to probabilities.

    With `keep` the new knowledge is added to the earlier knowledge as a pair (old, new), if this prior had any.
    Otherwise it replaces it.
    """
    out: dict[tuple[Any, Any], Fraction] = {}
    weights = instance("prior", prior, Prior, must="be a prior").weights
    alone = not keep or all(z is None for _, z in weights)
    for (x, z), weight in weights.items():
        for told, chance in answer_distribution(tell, x, "auxiliary").items():
            known = told if alone else (z, told)
            out[x, known] = out.get((x, known), Fraction(0)) + weight * chance
    return Prior(name=name or f"{prior.name}, with auxiliary knowledge", weights=out)


def known_rows(prior: Prior, *, unknown: int) -> tuple[Prior, ...]:
    """Adversaries who know all rows but `unknown` of them: one prior for each set of known rows.

    With theorem `less-auxiliary-knowledge` this covers everybody who knows any function of this many rows.
    """
    sizes = {len(x) if isinstance(x, tuple) else -1 for x in prior.data}
    if len(sizes) != 1 or -1 in sizes:
        raise InvalidParameter(parameter="prior", value=prior.name, must="have data of one number of rows")
    (n,) = sizes
    u = whole("unknown", unknown, least=0)
    refuse_if(u > n, "unknown", u, f"be at most the number of rows, {n}")
    found = []
    for known in itertools.combinations(range(n), n - u):
        which = ", ".join(str(i) for i in known)
        if not known:
            return (prior,)

        def tell(x: Any, places: tuple[int, ...] = known) -> tuple[Any, ...]:
            return tuple(x[i] for i in places)

        found.append(with_auxiliary(prior, tell, name=f"{prior.name}; rows known: {which}"))
    return tuple(found)


def _checked(law: MappingProxyType[Any, Any]) -> bool:
    """Is this a distribution as `as_distribution` makes them? Then it need not be made again."""
    weights = law.values()
    return all(type(w) is Fraction and w > 0 for w in weights) and sum(weights, Fraction(0)) == 1


def answer_distribution(
    tell: Callable[[Any], Any] | Mapping[Any, Any], given: Any, what: str
) -> Distribution:
    """The answer of a random function to one input, as a distribution. A plain value has probability 1."""
    if isinstance(tell, Mapping):
        refuse_if(
            given not in tell, what, "a table without it", "say something about every input that can occur"
        )
        answer = tell[given]
    else:
        answer = tell(given)
    if isinstance(answer, MappingProxyType) and _checked(answer):
        return answer
    if isinstance(answer, Mapping):
        return as_distribution(what, {hashable(what, t): p for t, p in answer.items()})
    return {hashable(what, answer): Fraction(1)}


# Sampling priors (Groce 2014, Def. 6.1): a random sample of a fixed, public population.
#
# A size N is drawn, then N members of the population uniformly without replacement. The data are a tuple with one
# place a member of the population: its value, or None for who is not in the sample. All probabilities are rational.


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
    """Exactly this size."""
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
    refuse_if(r in (0, 1), "ratio", ratio, "lie strictly between 0 and 1")
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
