"""How releases share a plan's price: by weight, or so that their errors stand to each other as their targets do.

Pure epsilons, and rhos, are divided in proportion. An (epsilon, delta) is divided in two ways at once. Some releases
pay in epsilon, each its share; the others divide the largest mu that keeps to what is left, mu^2 in proportion, since
Gaussian bounds compose to exactly the root of the sum of squares (theorem `compose-gdp`). Who pays how follows
from what each gains: releases are put in the order of (error of pure noise) / (error of Gaussian noise), and of all
cuts through this order the one with the least mean of log errors is taken. Every statistic counts once: counts, sums
and means by the quantile of their noise, quantiles by the error of their ranks. Releases that need a delta of their
own (unknown keys, sparse histograms) get their share of epsilon, and of the delta that is not needed otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tacit.curator.asks import Ask
from tacit.curator.chooser import choose, is_gaussian, needs_delta
from tacit.curator.prices import Price
from tacit.curator.treatments import groups_of
from tacit.errors import InvalidParameter
from tacit.exact.rounding import down
from tacit.guarantees import gaussian_budget
from tacit.statistics.base import Question

__all__ = ["divided"]

Weights = Mapping[int, Fraction]

MOST_CUTS = 8
"""So many cuts are tried; more differ by a release of hundreds."""


def divided(asks: Sequence[Ask], questions: Sequence[Question], total: Price | None) -> list[Price]:
    """The price of each ask: its own, or its share of the plan's."""
    sharing = [i for i, a in enumerate(asks) if a.price is None]
    if sharing and total is None:
        raise InvalidParameter(
            parameter="price", value=None, must="be given",
            hint="epsilon=..., with delta= or without; rho=...; or within=... to pay by accuracy",
        )  # fmt: skip
    out: dict[int, Price] = {i: p for i, a in enumerate(asks) if (p := a.price) is not None}
    if not sharing:
        # A delta says where to read the curves of releases that were paid in rho or mu; nothing else is left to pay.
        curves = any(p.kind in ("concentrated", "gaussian") for p in out.values())
        if total is not None and not (total.kind == "approximate" and curves):
            raise InvalidParameter(
                parameter="price", value=str(total), must="be left out where every release has a price of its own",
                hint="it would be paid by nobody; ask(...) without a price shares the plan's",
            )  # fmt: skip
        return [out[i] for i in range(len(asks))]
    assert total is not None
    if total.kind == "accuracy" or len(sharing) == 1:
        return [out.get(i, total) for i in range(len(asks))]
    linear, squared = _weights(asks, questions, sharing)
    if total.kind == "approximate":
        out |= _approximate(total, {i: questions[i] for i in sharing}, linear, squared)
    else:
        weights = linear if total.kind == "pure" else squared
        whole = _sum(weights, sharing)
        out |= {i: total.part(weights[i] / whole) for i in sharing}
    return [out[i] for i in range(len(asks))]


def _weights(
    asks: Sequence[Ask], questions: Sequence[Question], sharing: Sequence[int]
) -> tuple[Weights, Weights]:
    """Shares of an epsilon, and of a squared mu. By weight both are the same; by target errors they follow the noise:
    Laplace noise errs like l1 / epsilon, Gaussian noise like l2 / mu."""
    aimed = [i for i in sharing if asks[i].target is not None]
    if not aimed:
        plain = {i: asks[i].weight for i in sharing}
        return plain, plain
    for i in sharing:
        groups = groups_of(questions[i])
        if asks[i].target is None or len(groups) != 1 or not questions[i].known_keys:
            raise InvalidParameter(
                parameter="target", value=asks[i].name, must="be given for every release that shares the price",
                hint="counts, sums, margins and hierarchies have target errors; others take weights",
            )  # fmt: skip
    linear, squared = {}, {}
    for i in aimed:
        _, l1, l2_squared = groups_of(questions[i])[0]
        each = questions[i].parts[0].spacing / (asks[i].target or 1)
        linear[i], squared[i] = l1 * each, l2_squared * each**2
    return linear, squared


def _sum(weights: Weights, of: Sequence[int]) -> Fraction:
    return sum((weights[i] for i in of), Fraction(0))


def _approximate(
    total: Price, questions: Mapping[int, Question], linear: Weights, squared: Weights
) -> dict[int, Price]:
    """An (epsilon, delta), some of it as epsilons and some as squares of mu: the best cut between the two."""
    needy = [i for i in questions if needs_delta(questions[i])]
    normal_only = [i for i in questions if is_gaussian(questions[i])]
    others = [i for i in questions if i not in needy and i not in normal_only]
    whole = _sum(linear, [*questions])
    epsilon, delta = total.epsilon or Fraction(0), total.delta or Fraction(0)
    pure = {i: Price(epsilon=epsilon * linear[i] / whole) for i in others}

    def normal(rest: Sequence[int]) -> dict[int, Price]:
        """Their shares of the mu that keeps to their part of epsilon and of delta."""
        if not rest:
            return {}
        part = epsilon * _sum(linear, rest) / whole
        at = delta * _sum(linear, rest) / _sum(linear, [*rest, *needy])
        common = Price(mu=Fraction(gaussian_budget(epsilon=down(part), delta=down(at)).mu))
        shared = _sum(squared, rest)
        return {i: common.part(squared[i] / shared) for i in rest}

    def keys(rest: Sequence[int]) -> dict[int, Price]:
        """Those that need a delta share it with those that divide a mu, and with no others."""
        at = delta / _sum(linear, [*rest, *needy]) if needy else delta
        return {i: Price(epsilon=epsilon * linear[i] / whole, delta=at * linear[i]) for i in needy}

    first = normal([*others, *normal_only])
    seen: dict[tuple[int, Price], float] = {}

    def log_error(i: int, price: Price) -> float:
        """A question that is asked again at the same price is looked at once."""
        place = (id(questions[i]), price)
        if place not in seen:
            seen[place] = choose(questions[i], price).log_error
        return seen[place]

    errors = {i: log_error(i, pure[i]) for i in others}
    # Gaussian noise errs like 1 / mu, so that one look at it is enough for every cut.
    at_one = {i: log_error(i, p) + math.log(p.mu or 1) for i, p in first.items()}
    ordered = sorted(others, key=lambda i: errors[i] - at_one[i])

    def loss(cut: int) -> float:
        rest = [*ordered[cut:], *normal_only]
        each = [errors[i] for i in ordered[:cut]]
        each += [at_one[i] - math.log(p.mu or 1) for i, p in normal(rest).items()]
        # A threshold that hides keys grows like ln(1 / delta).
        each += [math.log(-math.log(p.delta or 1)) for p in keys(rest).values()]
        return sum(each)

    count = min(len(ordered), MOST_CUTS) or 1
    cuts = sorted({round(k * len(ordered) / count) for k in range(count + 1)})
    best = min(cuts, key=loss)
    rest = [*ordered[best:], *normal_only]
    return {**{i: pure[i] for i in ordered[:best]}, **normal(rest), **keys(rest)}
