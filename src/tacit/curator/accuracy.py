"""Paying by accuracy: the cheapest mechanism that stays within the asked error.

Makes every fitting mechanism just large enough, and takes the cheapest in the budget's own kind: epsilon,
epsilon at the offered delta, or rho. Independent noise is sized in closed form. For other noise a search finds
the price at which the largest error of a cell is the requested one, and checks it before use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from tacit.curator.assignments import Applied, Assignment, Group, cells_of, groups_of, laplace
from tacit.curator.charging import Price
from tacit.errors import InvalidParameter, NotCertified
from tacit.exact.rounding import down
from tacit.guarantees import Bound
from tacit.mechanisms import L2, RoundedGaussian
from tacit.mechanisms.spreads import normal_quantile
from tacit.statistics.base import Question
from tacit.statistics.forms import Linear

Candidates = Callable[[Price], Mapping[str, Assignment]]

CHEAPER = 0.999
"""Another mechanism is chosen if its cost is at most this share of the least cost so far."""
CLEARLY = 0.95
"""The same for staircase noise, whose event is only its epsilon, so that it composes worse than Laplace noise."""
ROUNDS = 12
EXACT = "no unit can change it: it is published as it is"


def assign_accuracy(
    question: Question, price: Price, *, budget: Bound | None, others: Candidates
) -> Assignment:
    """The cheapest noise within the requested error, for counts and sums: their error is the noise."""
    groups = groups_of(question)
    if not groups:
        return Assignment(noise=(), price=price, reason=EXACT)
    if not question.statistic.noise_alone or len(groups) != 1:
        raise InvalidParameter(
            parameter="within", value=float(price.within or 0),
            must=f"be asked of counts and sums; the error of a {question.statistic.kind} depends on the data",
            hint="pay it in epsilon; preview(..., rows=...) shows the error for a number of rows",
        )  # fmt: skip
    spacing = question.form.spacing if isinstance(question.form, Linear) else Fraction(1)
    assert price.within is not None
    reach = int(price.within // spacing)
    if reach < 1:
        raise InvalidParameter(
            parameter="within", value=float(price.within), must=f"be at least one step of the grid, {spacing}"
        )
    # One vector, independent noise in every cell of every table: the misses multiply, no union bound is needed.
    coordinates = cells_of(question, groups[0][0]) if price.simultaneous else 1
    plain = {
        "Laplace noise": _least_laplace(groups[0], reach, price.confidence, coordinates),
        "Gaussian noise": _least_gaussian(groups[0], reach, price.confidence, coordinates),
    }
    found = {name: _spending(Assignment(noise=(a,), price=price, reason="")) for name, a in plain.items()}
    cost, what = _cost(price, budget)
    if what == PURE_ONLY:
        del found["Gaussian noise"]
    for name, made in _fitting(others, found, reach, price, coordinates).items():
        found[name] = _spending(replace(made, price=price))
    return _cheapest(found, cost, what)


def _spending(assignment: Assignment) -> Assignment:
    """Noise without a pure epsilon spends the delta that is offered."""
    pure = assignment.pure() is not None
    return replace(assignment, delta=Fraction(0) if pure else assignment.price.spent_delta)


PURE_ONLY = "pure epsilon"


def _cost(price: Price, budget: Bound | None) -> tuple[Callable[[Assignment], float], str]:
    """The price to minimise, the kind of the budget, and its name."""
    kind = None if budget is None else budget.kind
    if kind in ("concentrated", "gaussian", "renyi"):
        return (lambda t: float(t.concentrated() or 0)), "rho"
    if price.delta is not None and kind != "pure":
        delta = down(price.delta)
        return (lambda t: t.bound.epsilon_at(delta)), "epsilon"
    return (lambda t: float(t.pure() or 0)), PURE_ONLY


def _cheapest(found: Mapping[str, Assignment], cost: Callable[[Assignment], float], what: str) -> Assignment:
    """The noise with the lowest cost among those with the same error; a later candidate must be clearly cheaper."""
    costs = {name: cost(t) for name, t in found.items()}
    first = {n: c for n, c in costs.items() if n in ("Laplace noise", "Gaussian noise")}
    name = min(first, key=lambda n: first[n])
    for other in found:
        if costs[other] < (CLEARLY if other == "staircase noise" else CHEAPER) * costs[name]:
            name = other
    # Where independent noise is the cheapest, it is told how the two kinds of it compare.
    rest = {n: c for n, c in (first if name in first else costs).items() if n != name}
    if not rest:
        reason = f"{name}: the least that stays within the asked error"
        return replace(found[name], reason=reason)
    other = min(rest, key=lambda n: rest[n])
    said = "epsilon" if what == PURE_ONLY else what
    reason = f"{name}: for this error it costs {said} {costs[name]:.3g}, {other} {costs[other]:.3g}"
    return replace(found[name], reason=reason, candidates=costs)


# --- mechanisms for all tables at once, and for one number ------------------------------------------------------
def _fitting(
    others: Candidates, plain: Mapping[str, Assignment], reach: int, price: Price, coordinates: int
) -> dict[str, Assignment]:
    """Every other candidate, at the lowest found price whose largest error is within `reach`."""
    (laplace_noise,) = plain["Laplace noise"].noise
    epsilon = laplace_noise.mechanism.exact_epsilon or Fraction(1)
    starts = {False: Price(epsilon=epsilon)}
    if "Gaussian noise" in plain:
        (normal,) = plain["Gaussian noise"].noise
        starts[True] = Price(mu=Fraction(normal.mechanism.bound.parameters["mu"]))
    out: dict[str, Assignment] = {}
    for gaussian, start in starts.items():
        for name, made in _made(others, start).items():
            if (made.pure() is None) is not gaussian:
                continue
            fitted = _fitted(others, name, made, start, reach, price.confidence, coordinates)
            if fitted is not None:
                out[name] = fitted
    return out


def _fitted(
    others: Candidates,
    name: str,
    made: Assignment,
    start: Price,
    reach: int,
    confidence: Fraction,
    coordinates: int,
) -> Assignment | None:
    """Errors fall about like one over epsilon, or over mu: a few steps of the rule of three."""

    def largest(assignment: Assignment) -> float:
        halves = assignment.half_widths(confidence, coordinates=coordinates).values()
        return max(float(h.max()) for h in halves)

    at, low, best = start, 0.0, None
    level = float(start.epsilon or start.mu or 0)
    if largest(made) > 4 * reach:
        return None  # independent noise of the same price errs far less
    for _ in range(ROUNDS):
        held = _made(others, at).get(name)
        if held is None:
            return best
        error = largest(held)
        if error <= reach:
            best, high = held, level
            if error > 0.999 * reach or high - low < 1e-3 * high:
                return best
        else:
            low = level
        # A little more than the rule says, so that the asked error is met and not just missed.
        step = level * error / reach * (1 + 1e-4)
        level = (
            step if step > low and (best is None or step < high) else (low + high) / 2 if best else 2 * level
        )
        at = Price(epsilon=_short(level)) if start.epsilon is not None else Price(mu=_short(level))
    return best


def _made(others: Candidates, price: Price) -> Mapping[str, Assignment]:
    """The candidates at a price; an empty list if the price is so high that almost no noise is left."""
    try:
        return others(price)
    except NotCertified:
        return {}


def _short(value: float) -> Fraction:
    """The price with six digits, rounded up."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 5)
    return math.ceil(Fraction(value) / unit) * unit


# --- independent noise --------------------------------------------------------------------------------------
def _least_gaussian(group: Group, reach: int, confidence: Fraction, coordinates: int) -> Applied:
    """|round(Z)| <= reach with the asked probability: noise_std = (reach + 1/2) / z."""
    parts, _, l2_squared = group
    std = (reach + 0.5) / normal_quantile(float(confidence), coordinates)
    level = down(Fraction(std * (1 - 1e-12)))
    return Applied(
        parts, RoundedGaussian(sensitivity=L2.root(l2_squared), noise_std=level, dimension=coordinates)
    )


def _least_laplace(group: Group, reach: int, confidence: Fraction, coordinates: int) -> Applied:
    """The least epsilon, to six digits, with Pr[max |X| > reach] <= 1 - confidence."""
    l1, miss = group[1], -math.expm1(math.log(float(confidence)) / coordinates)

    def over(epsilon: float) -> bool:
        rate = epsilon / l1
        return 2 * math.exp(-rate * (reach + 1)) / (1 + math.exp(-rate)) > miss

    low, high = 0.0, 1.0
    while over(high):
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) else (low, middle)
    unit = Fraction(10) ** (math.floor(math.log10(high)) - 5)
    epsilon = Fraction(math.ceil(Fraction(high) / unit)) * unit
    # Found in floats; held against the certified quantile before it is used.
    while _largest(found := laplace(group, epsilon), confidence, coordinates) > reach:
        epsilon += unit
    return found


def _largest(applied: Applied, confidence: Fraction, coordinates: int) -> float:
    return max(float(h.max()) for h in applied.half_widths(confidence, coordinates=coordinates).values())
