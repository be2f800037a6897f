"""From a question and a price to noise: the best mechanism that the price allows, and why it is the best.

Candidates are Laplace noise (sized by L1, pure) and Gaussian noise (sized by L2); the one whose error at 95% is
smaller is taken. Parts on one grid are one vector with the question's own joint sensitivity where that needs less
noise; others (the two sums of a ratio) get equal shares of the price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.curator.blocks import Block, normal_quantile
from tacit.curator.intervals import Estimate, estimate
from tacit.curator.prices import CONFIDENCE, Price
from tacit.errors import InvalidParameter
from tacit.exact.balls import ball, lower
from tacit.exact.rounding import down, up
from tacit.guarantees import (
    Approximate,
    Bound,
    Concentrated,
    GaussianDP,
    Pure,
    Renyi,
    compose,
    gaussian_budget,
)
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.statistics.forms import Linear

__all__ = [
    "Noisy",
    "Treatment",
    "cells_of",
    "compared",
    "groups_of",
    "mu_squared_within",
    "pure_within",
    "treat",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """What a treatment lets out: noisy integers by part, and the keys where these were not known in advance."""

    parts: dict[str, Any]
    keys: tuple[tuple[Any, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """The noise of one question: blocks, the price that they keep to, and why these."""

    blocks: tuple[Block, ...]
    price: Price
    reason: str
    delta: Fraction = Fraction(0)
    candidates: dict[str, float] = field(default_factory=dict)

    @property
    def events(self) -> tuple[Event, ...]:
        """What is run; nothing where no unit can move anything."""
        return tuple(b.event for b in self.blocks)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        found = [t for b in self.blocks for t in b.theorems]
        if len(self.blocks) > 1:
            found.append("compose-pure" if self.pure is not None else "compose-gdp")
        return tuple(dict.fromkeys(found))

    @property
    def pure(self) -> Fraction | None:
        """The exact epsilon, where the whole treatment has one."""
        total = Fraction(0)
        for block in self.blocks:
            if block.epsilon is None:
                return None
            total += block.epsilon
        return total

    @property
    def rho(self) -> Fraction | None:
        """A rho that holds, where there is one."""
        return sum((b.rho for b in self.blocks), Fraction(0))

    @property
    def epsilon_at_delta(self) -> Fraction | None:
        """The epsilon that goes with `delta`, where the price names both."""
        if self.delta == 0:
            return None
        if self.price.kind == "approximate":
            return self.price.epsilon
        return Fraction(self.bound.epsilon_at(down(self.delta)))

    @property
    def bound(self) -> Bound:
        """What the whole of it may reveal, in the price's own kind."""
        if self.pure is not None:
            return Pure(epsilon=up(self.pure))
        if self.price.kind == "approximate":
            return Approximate(epsilon=up(self.price.epsilon or 0), delta=up(self.price.delta or 0))
        if self.price.kind == "concentrated":
            return Concentrated(rho=up(self.rho or 0))
        return compose(*(b.bound for b in self.blocks)) if len(self.blocks) > 1 else self.blocks[0].bound

    # --- running ----------------------------------------------------------------------------------------
    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
        """The noisy parts: the only step that sees true numbers."""
        integers = question.integers(cells)
        noisy = {p.name: np.asarray(integers[p.name]) for p in question.parts if p.name not in self.noised}
        for block in self.blocks:
            noisy |= block.release(integers, source=source)
        return Noisy(parts=noisy)

    @property
    def noised(self) -> frozenset[str]:
        """The parts that get noise; the others are public."""
        return frozenset(name for b in self.blocks for name in b.parts)

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Values and intervals from noisy parts."""
        return estimate(question, self.blocks, noisy.parts, confidence, coordinates=coordinates)

    def describe(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {"noise": [b.describe() for b in self.blocks], "chosen": self.reason, "numerical_delta": 0.0}

    @property
    def covers(self) -> str:
        """What the intervals hold, with their confidence."""
        return "the statistic of the declared, clamped and bounded data, each cell by itself"

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """E |error|, its quantile and what they are about, where the treatment knows better than its parts."""
        return None

    # --- errors before a row is read ------------------------------------------------------------------
    def variances(self) -> dict[str, float]:
        """The variance of a cell of each part, in steps."""
        return {n: b.scale**2 * (2 if b.law == "laplace" else 1) for b in self.blocks for n in b.parts}

    @property
    def mean_error(self) -> float:
        """E |noise| of a cell in steps, the mean over the parts: what mechanisms for counts are compared by."""
        each = [b.expected_error() for b in self.blocks for _ in b.parts]
        return sum(each) / len(each) if each else 0.0

    @property
    def log_error(self) -> float:
        """ln of the error at 95%, the mean over the blocks: what a price is divided by."""
        each = [math.log(b.quantile(CONFIDENCE) + 0.5) for b in self.blocks]
        return sum(each) / len(each) if each else 0.0

    def part_errors(self, question: Question, confidence: Fraction) -> dict[str, tuple[float, float]]:
        """E |noise| and its quantile for each part, in the part's own unit."""
        spacing = {p.name: float(p.spacing) for p in question.parts}
        return {
            name: (b.expected_error() * spacing[name], b.quantile(confidence) * spacing[name])
            for b in self.blocks
            for name in b.parts
        }


Group = tuple[tuple[str, ...], int, int]


def groups_of(question: Question) -> list[Group]:
    """The vectors that get noise: their parts, and how far one unit moves them in L1 and in squared L2."""
    noisy = [p for p in question.parts if not p.exact and not question.sensitivities[p.name].none]
    if not noisy:
        return []
    m, moves = question.sensitivity, [(p.name, question.sensitivities[p.name]) for p in noisy]
    joint: list[Group] = [(tuple(p.name for p in noisy), int(m.l1), int(m.l2_squared))]
    apart: list[Group] = [((name,), int(x.l1), int(x.l2_squared)) for name, x in moves]
    if len({p.spacing for p in noisy}) > 1:
        return apart
    # One vector has noise of size l1 on every part, separate ones k l1_i each: the smaller one, on average of logs.
    # Compared as whole numbers: tables of equal size are a tie, which a sum of logarithms decides by its rounding.
    return joint if m.l1 ** len(moves) <= math.prod(len(moves) * x.l1 for _, x in moves) else apart


def cells_of(question: Question, parts: Sequence[str]) -> int:
    """How many numbers of these parts get noise: counted part by part, as a family of tables is no product of axes."""
    return sum(p.cells or 0 for p in question.parts if p.name in parts)


def treat(question: Question, price: Price, *, budget: Bound | None = None) -> Treatment:
    """The treatment of a question with additive noise at this price; `budget` says what is cheap."""
    groups = groups_of(question)
    if not groups:
        return Treatment(blocks=(), price=price, reason="no unit can change it: it is published as it is")
    if price.kind == "accuracy":
        return _accurate(question, price, groups, budget)
    options = _options(price, groups)
    return _best(options, price)


def _best(options: dict[str, tuple[Block, ...]], price: Price, coordinates: int = 1) -> Treatment:
    errors = {
        name: math.exp(sum(math.log(b.quantile(CONFIDENCE, coordinates) + 0.5) for b in blocks) / len(blocks))
        for name, blocks in options.items()
    }
    name = min(errors, key=lambda n: errors[n])
    reason = compared(f"{name} noise", {f"{n} noise": e for n, e in errors.items()})
    spends = price.delta if name == "Gaussian" and price.kind == "approximate" else None
    return Treatment(
        blocks=options[name], price=price, reason=reason, delta=spends or Fraction(0), candidates=errors
    )


def compared(name: str, errors: Mapping[str, float]) -> str:
    """Why this noise: its error at the asked price beside that of the next best."""
    others = [n for n in errors if n != name]
    if not others:
        return f"{name}: the price is pure"
    other = min(others, key=lambda n: errors[n])
    share = errors[name] / errors[other] if errors[other] else 1.0
    times = "the same as" if share > 0.995 else f"{share:.2f} of"
    return f"{name}: at this price its error is {times} that of {other}"


def _options(price: Price, groups: Sequence[Group]) -> dict[str, tuple[Block, ...]]:
    share = Fraction(1, len(groups))
    epsilon = pure_within(price, share)
    options: dict[str, tuple[Block, ...]] = {}
    if epsilon is not None:
        options["Laplace"] = tuple(Block.laplace(*g, epsilon) for g in groups)
    mu_squared = mu_squared_within(price)
    if mu_squared is not None:
        options["Gaussian"] = tuple(Block.gaussian(*g, mu_squared * share) for g in groups)
    return options


def pure_within(price: Price, share: Fraction = Fraction(1)) -> Fraction | None:
    """The pure epsilon that keeps to this share of the price."""
    match price.kind:
        case "pure" | "approximate":
            assert price.epsilon is not None
            return price.epsilon * share
        case "concentrated":
            assert price.rho is not None
            return _inverse(lambda e: Block.laplace((), 1, 1, e).rho, price.rho * share)
        case "gaussian":
            assert price.mu is not None
            return _epsilon_of_mu(price.mu**2 * share)
    return None


def mu_squared_within(price: Price) -> Fraction | None:
    """The squared mu that keeps to the price; None for a pure one."""
    match price.kind:
        case "approximate":
            assert price.epsilon is not None
            assert price.delta is not None
            epsilon, delta = down(price.epsilon), down(price.delta)
            return Fraction(gaussian_budget(epsilon=epsilon, delta=delta).mu) ** 2
        case "concentrated":
            return 2 * (price.rho or Fraction(0))
        case "gaussian":
            return (price.mu or Fraction(0)) ** 2
    return None


def _inverse(cost: object, target: Fraction) -> Fraction:
    """The largest epsilon (a float, taken exactly) whose cost stays within the target."""
    assert callable(cost)
    low, high = 0.0, 1.0
    while cost(Fraction(high)) <= target:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if cost(Fraction(middle)) <= target else (low, middle)
    return Fraction(low)


def _epsilon_of_mu(mu_squared: Fraction) -> Fraction:
    """The pure epsilon inside mu: Phi(mu / 2) = e^epsilon / (1 + e^epsilon), rounded down (`pure-to-gdp`)."""

    def formula() -> object:
        half = ball(mu_squared).sqrt() / 2
        phi = (1 + (half / ball(2).sqrt()).erf()) / 2
        return (phi / (1 - phi)).log()

    return Fraction(lower(formula))


# --- by accuracy --------------------------------------------------------------------------------------------
def _accurate(question: Question, price: Price, groups: Sequence[Group], budget: Bound | None) -> Treatment:
    """The cheapest noise that stays within the asked error; for counts and sums, whose error is the noise."""
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
    parts, l1, l2_squared = groups[0]
    # One vector, independent noise in every cell of every table: the misses multiply, no union bound is needed.
    coordinates = cells_of(question, parts) if price.simultaneous else 1
    epsilon = _least_epsilon(l1, reach, price.confidence, coordinates)
    # |round(Z)| <= reach with the asked probability: noise_std = (reach + 1/2) / z.
    std = (reach + 0.5) / normal_quantile(float(price.confidence), coordinates)
    level = Fraction(down(Fraction(std * (1 - 1e-12))))
    options: dict[str, Block] = {
        "Laplace": Block.laplace(parts, l1, l2_squared, epsilon),
        "Gaussian": Block(parts=parts, law="gaussian", l1=l1, l2_squared=l2_squared, level=level),
    }
    return _cheaper(options, price, budget)


def _cheaper(options: dict[str, Block], price: Price, budget: Bound | None) -> Treatment:
    """Of two noises with the same error, the one that costs less of what the budget is kept in."""
    if isinstance(budget, Concentrated | GaussianDP | Renyi):
        costs, what = {name: float(block.rho) for name, block in options.items()}, "rho"
    elif price.delta is not None and not isinstance(budget, Pure):
        delta, what = down(price.delta), "epsilon"
        costs = {name: block.bound.epsilon_at(delta) for name, block in options.items()}
    else:
        reason = "Laplace noise: the least that stays within the asked error"
        return Treatment(blocks=(options["Laplace"],), price=price, reason=reason)
    name = min(costs, key=lambda n: costs[n])
    other = next(n for n in costs if n != name)
    reason = (
        f"{name} noise: for this error it costs {what} {costs[name]:.3g}, {other} noise {costs[other]:.3g}"
    )
    spends = price.delta if name == "Gaussian" and price.delta is not None else Fraction(0)
    return Treatment(blocks=(options[name],), price=price, reason=reason, delta=spends, candidates=costs)


def _least_epsilon(l1: int, reach: int, confidence: Fraction, coordinates: int) -> Fraction:
    """The least epsilon, to six digits, with Pr[max |X| > reach] <= 1 - confidence."""
    miss = -math.expm1(math.log(float(confidence)) / coordinates)

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
    while Block.laplace((), l1, 1, epsilon).quantile(confidence, coordinates) > reach:
        epsilon += unit
    return epsilon
