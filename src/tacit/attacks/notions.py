"""Notions of privacy that look right and fail: nothing useful satisfies Dalenius', and others protect nobody.

All numbers here are exact. The examples are those of Groce 2014, 2.7.1 and of lecture 2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.exact.checks import positive, whole

__all__ = ["Breach", "RandomRow", "dalenius", "mean_loss", "random_row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """What somebody outside of the data believes about Bob's secret, before and after a release that is not about him.

    `statement` is a set of worlds that the release makes likelier; the auxiliary information is "Bob has the secret if
    and only if the world is one of these", and `outcome` is the release after which belief moves most.
    """

    statement: tuple[Hashable, ...]
    outcome: Hashable
    before: Fraction
    after: Fraction


def dalenius(
    prior: Mapping[Hashable, Fraction], mechanism: Mapping[Hashable, Mapping[Hashable, Fraction]]
) -> Breach | None:
    """Auxiliary information with which a release violates Dalenius' definition; None if it tells nothing at all.

    The world is drawn from `prior`; Bob's secret is a fair coin that has nothing to do with it, and his row is not in
    the data. Of a statement S about the world somebody knows whether "secret = S" holds (a bit that by itself says
    nothing of the secret). Then Pr[secret | that they agree, outcome] = Pr[S | outcome], which differs from Pr[S] for
    some S and outcome unless the outcome is independent of the world. So what satisfies the definition for every
    auxiliary information is useless.
    """
    if sum(prior.values()) != 1 or any(p < 0 for p in prior.values()) or set(prior) != set(mechanism):
        raise InvalidParameter(
            parameter="prior",
            value=len(prior),
            must="be probabilities of the worlds of the mechanism, with sum 1",
        )
    if any(sum(law.values()) != 1 or any(p < 0 for p in law.values()) for law in mechanism.values()):
        raise InvalidParameter(parameter="mechanism", value=len(mechanism), must="have a law for each world")
    best: Breach | None = None
    for outcome in {o for law in mechanism.values() for o in law}:
        likely = {w: prior[w] * mechanism[w].get(outcome, Fraction(0)) for w in prior}
        total = sum(likely.values(), Fraction(0))
        if not total:
            continue
        # The set of worlds that the outcome makes likelier moves the belief most.
        risen = tuple(w for w in prior if likely[w] / total > prior[w])
        before = sum((prior[w] for w in risen), Fraction(0))
        after = sum((likely[w] / total for w in risen), Fraction(0))
        if risen and (best is None or after - before > best.after - best.before):
            best = Breach(statement=risen, outcome=outcome, before=before, after=after)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRow:
    """How close the laws are with and without one person, for a release that publishes somebody's whole row."""

    total_variation: float
    kullback_leibler: float
    wasserstein: float
    published: float
    best_guess: float


def random_row(*, people: int, domain: int, mixed: float = 0.01, diameter: float = 1.0) -> RandomRow:
    """Publish one row drawn at random; with probability `mixed` a uniform value of the domain instead.

    One person's row is replaced by another that nobody else has. Then with q = (1 - mixed) / n and u = mixed / domain
    the two laws differ in two points, q + u against u: total variation is q; the Kullback-Leibler divergence is
    q ln(1 + q/u); the Wasserstein distance is at most q times the diameter of the domain. All go to 0 with n, and the
    release is somebody's row with probability 1 - mixed. Whoever sees the row knows whose it is: of the two versions
    of the person in it the posterior is (q + u) / (q + 2u), which goes to 1 as the domain grows.
    """
    n, k = whole("people", people), whole("domain", domain, least=2)
    if not 0 < mixed < 1:
        raise InvalidParameter(parameter="mixed", value=mixed, must="lie strictly between 0 and 1")
    q, u = (1 - mixed) / n, mixed / k
    return RandomRow(
        total_variation=q,
        kullback_leibler=q * math.log1p(q / u),
        wasserstein=q * positive("diameter", diameter),
        published=1 - mixed,
        best_guess=(q + u) / (q + 2 * u),
    )


def mean_loss(epsilons: Sequence[float]) -> tuple[float, float]:
    """The mean of people's privacy losses, and the chance that the worst protected person's bit is guessed.

    Publishing one person's bit by randomised response with epsilon = 20 and nobody else's has a mean loss of 20/n, as
    small as one likes, and tells that bit with probability e^20 / (1 + e^20). An average over people protects nobody in
    particular.
    """
    if not epsilons or any(not (e >= 0 and math.isfinite(e)) for e in epsilons):
        raise InvalidParameter(
            parameter="epsilons", value=len(epsilons), must="be finite, at least 0, one a person"
        )
    worst = max(epsilons)
    return math.fsum(epsilons) / len(epsilons), 1 / (1 + math.exp(-worst))
