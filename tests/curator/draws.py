"""Noise as it is really drawn: every draw with its law and the true integers that it was added to.

The laws' own samplers and the one addition of integers and noise are watched; nothing is rebuilt. What the noise of a
draw hides between two tables is computed here, from the definitions of the laws.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tacit.accounting import account, events
from tacit.mechanisms import base, sparse, stability
from tacit.mechanisms import cumulative as cumulative_gaussian
from tacit.mechanisms import partition as partition_gaussian
from tacit.mechanisms.partition import KeyDistribution
from tacit.mechanisms.polytope import PolytopeNorm, _Range
from tacit.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    GaussianVector,
    KNormVector,
    LinfBall,
)

ADDING = (base, cumulative_gaussian, partition_gaussian, sparse, stability)


@dataclass
class Draw:
    """One call of a sampler: its law, what it gave, and what that was added to (None where it is not added up)."""

    kind: str
    law: Any
    values: Any
    true: Any = None
    spacing: Any = 1

    def __post_init__(self) -> None:
        # A body of another shape would need a gauge of its own.
        assert self.kind != "cube" or isinstance(self.law.body, LinfBall)

    @property
    def scale(self) -> Fraction:
        """The noise scale or standard deviation in steps of the grid; of a staircase its step over its epsilon."""
        if self.kind == "staircase":
            return Fraction(self.law.sensitivity) / Fraction(self.law.epsilon)
        return Fraction(self.law.noise_std if "gaussian" in self.kind else self.law.noise_scale) / Fraction(
            self.spacing
        )


@contextlib.contextmanager
def watched() -> Iterator[list[Draw]]:
    """All draws inside, in order."""
    found: list[Draw] = []
    with pytest.MonkeyPatch.context() as patch:
        for kind, law, name in (
            ("laplace", DiscreteLaplace, "sample"), ("discrete gaussian", DiscreteGaussian, "sample"),
            ("gaussian", GaussianVector, "sample"), ("keys", KeyDistribution, "draw"),
            ("names", KeyDistribution, "below"),
            ("range norm", _Range, "sample"), ("cube", KNormVector, "sample"),
            ("staircase", DiscreteStaircase, "sample"), ("hull", PolytopeNorm, "_draw"),
        ):  # fmt: skip
            patch.setattr(law, name, _watch(getattr(law, name), kind, found))
        for module in ADDING:
            patch.setattr(module, "add_exact", _added(module.add_exact, found, module is partition_gaussian))
        yield found


def _watch(sample: Any, kind: str, found: list[Draw]) -> Any:
    def watching(self: Any, *given: Any, **named: Any) -> Any:
        out = sample(self, *given, **named)
        values = np.array(getattr(out, "values", out), copy=True)
        spacing = self.step if kind == "hull" else named.get("spacing", 1)
        found.append(Draw(kind=kind, law=self, values=values, spacing=spacing))
        return out

    return watching


def _added(add: Any, found: list[Draw], keys: bool) -> Any:
    def adding(values: Any, noise: Any) -> Any:
        out = add(values, noise)
        last = found[-1]
        if keys and last.true is not None:
            return out  # a key and its noisy count are one draw, which is not an addition of its own
        if last.kind in (
            "laplace",
            "gaussian",
            "discrete gaussian",
            "range norm",
            "cube",
            "staircase",
            "hull",
        ):
            # What is added is the last draw, all of it, once.
            assert last.true is None, "a draw was added twice"
            assert np.array_equal(np.ravel(noise), np.ravel(last.values)), (
                "what was added is not what was drawn"
            )
            last.true = np.array(values, dtype=object)
            assert (np.ravel(out) == np.ravel(last.true) + np.ravel(last.values).astype(object)).all()
        return out

    return adding


@dataclass
class Loss:
    """What separates two tables: epsilons of Laplace noise, the squared mu of Gaussian noise, keys that are named."""

    pure: list[tuple[Fraction, int]] = field(default_factory=list)
    mu_squared: Fraction = Fraction(0)
    pairs: list[tuple[float, float, int]] = field(default_factory=list)
    lattice: tuple[tuple[int, ...], float] | None = None
    """Discrete Gaussian noise, which has a curve of its own: how far each cell moves, and the standard deviation."""
    shown: float = 0.0
    """The chance that something shows which one of the tables cannot give."""

    def laplace(self, difference: Any, scale: Fraction, *, curve: bool = True) -> None:
        """`curve` is for noise that is priced by its own curve and not by its epsilon alone."""
        steps = sum(abs(int(x)) for x in np.ravel(difference))
        if steps:
            self.pure.append((steps / scale, steps if curve else 0))

    def stairs(self, difference: Any, law: Any) -> None:
        """It falls by e^-epsilon from one step to the next: a move costs epsilon for every step that it begins."""
        (moved,) = (abs(int(x)) for x in np.ravel(difference))
        if moved:
            self.pure.append((-(-moved // law.sensitivity) * Fraction(law.epsilon), 0))

    def gaussian(self, difference: Any, std: Fraction) -> None:
        self.mu_squared += sum(int(x) ** 2 for x in np.ravel(difference)) / std**2

    def shaped(self, kind: str, difference: Any, scale: Fraction) -> None:
        """Noise of density e^(-g(x) / scale): g is the span of 0 and the coordinates, or the largest of them."""
        moved = [int(x) for x in np.ravel(difference)]
        span = max(0, *moved) - min(0, *moved) if kind == "range norm" else max(map(abs, moved))
        if span:
            self.pure.append((span / scale, 0))

    def hull(self, difference: Any, law: Any, scale: Fraction) -> None:
        """Noise of density e^(-g(x) / scale): g is the least sum of weights of points and their opposites."""
        moved = np.ravel(difference).astype(float)
        if moved.any():
            points = np.array(law.points, dtype=float)
            corners = np.concatenate([points, -points]).T
            found = linprog(np.ones(corners.shape[1]), A_eq=corners, b_eq=moved)
            assert found.status == 0
            self.pure.append((Fraction(found.fun) / scale, 0))

    def discrete(self, difference: Any, std: Fraction) -> None:
        self.lattice = (tuple(abs(int(x)) for x in np.ravel(difference) if x), float(std))

    def plus(self, other: Loss) -> Loss:
        assert not self.lattice
        assert not other.lattice
        return Loss(
            pure=self.pure + other.pure, mu_squared=self.mu_squared + other.mu_squared,
            pairs=self.pairs + other.pairs, shown=1 - (1 - self.shown) * (1 - other.shown),
        )  # fmt: skip

    # --- read in the terms of a bound -------------------------------------------------------------------
    @property
    def epsilon(self) -> Fraction | None:
        """The sum of the pure epsilons, where that is all."""
        if self.mu_squared or self.pairs or self.shown or self.lattice:
            return None
        return sum((e for e, _ in self.pure), Fraction(0))

    def delta(self, epsilon: float, neighbours: Any) -> float:
        """At this epsilon: b, and 1 - b times what is left where nothing shows, which is rarer by 1 - b there."""
        if self.shown:
            rest = replace(self, shown=0.0).delta(epsilon - math.log1p(-self.shown), neighbours)
            return self.shown + (1 - self.shown) * rest
        whole = self.epsilon
        if whole is not None:
            return 0.0 if whole <= Fraction(epsilon) * (1 + Fraction(1, 10**15)) else 1.0
        if self.lattice:
            assert not self.pure
            assert not self.pairs
            assert not self.mu_squared
            return lattice_delta(*self.lattice, epsilon)
        if not self.pure and not self.pairs:
            mu = math.sqrt(self.mu_squared)
            return _phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * _phi(-mu / 2 - epsilon / mu)
        what: list[Any] = [
            events.DiscreteLaplaceEvent(epsilon=float(e) * (1 + 1e-15), sensitivity=n)
            if n
            else events.PureEvent(epsilon=float(e))
            for e, n in self.pure
        ]
        for e, d, n in self.pairs:
            what.append(events.RepeatedEvent(event=events.ApproximateEvent(epsilon=e, delta=d), times=n))
        if self.mu_squared:
            what.append(events.GaussianEvent(noise_multiplier=1 / math.sqrt(self.mu_squared)))
        return float(account(what, epsilon=epsilon, neighbours=neighbours).delta.high)

    @property
    def rho(self) -> float:
        assert not self.pairs
        assert not self.shown
        if self.lattice:
            # By definition: the largest divergence over its order, on orders where it is reached and others.
            assert not self.pure
            return max(self.renyi(a) / a for a in (1.1, 2.0, 3.5, 12.0))
        return float(self.mu_squared) / 2 + sum(float(e) * math.tanh(float(e) / 2) for e, _ in self.pure)

    @property
    def mu(self) -> float:
        """Phi(mu / 2) = e^epsilon / (1 + e^epsilon) for a pure epsilon; squares add up."""
        from scipy.special import ndtri

        assert not self.pairs
        assert not self.shown
        assert not self.lattice, "discrete Gaussian noise has no mu"
        each = [2 * float(ndtri(1 / (1 + math.exp(-float(e))))) for e, _ in self.pure]
        return math.sqrt(float(self.mu_squared) + sum(m * m for m in each))

    def renyi(self, order: float) -> float:
        assert not self.pairs
        assert not self.shown
        out = order * float(self.mu_squared) / 2
        if self.lattice:
            moves, std = self.lattice
            out += sum(discrete_gaussian_renyi(std, m, order) for m in moves)
        for e, steps in self.pure:
            if steps:
                out += lattice_renyi(float(e) / steps, steps, order)
                continue
            p = 1 / (1 + math.exp(-float(e)))
            out += math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (
                order - 1
            )
        return out


@functools.lru_cache(maxsize=4096)
def lattice_renyi(rate: float, steps: int, order: float) -> float:
    """Of discrete Laplace noise that moves by so many steps: ln sum_k p(k)^a p(k - steps)^(1 - a) / (a - 1), summed."""
    reach = steps + math.ceil(45 / rate) + 1
    k = np.arange(-reach, reach + steps + 1, dtype=float)
    far = np.abs(k), np.abs(k - steps)
    log_mass = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
    terms = log_mass - rate * (order * far[0] + (1 - order) * far[1])
    top = float(terms.max())
    return (top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)


@functools.lru_cache(maxsize=4096)
def discrete_gaussian_renyi(std: float, steps: int, order: float) -> float:
    """Of discrete Gaussian noise that moves by so many steps, summed over all integers that count."""
    reach = math.ceil(order * steps + 12 * std) + 1
    k = np.arange(-reach, reach + 1, dtype=float)
    log_mass = -math.log(float(np.exp(-((k / std) ** 2) / 2).sum()))
    terms = log_mass - (order * (k - steps) ** 2 + (1 - order) * k**2) / (2 * std**2)
    top = float(terms.max())
    return (top + math.log(float(np.exp(terms - top).sum()))) / (order - 1)


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def share_of(loss: Loss, bound: Any, neighbours: Any, exact: Any = None) -> float:
    """How much of a bound a loss uses up: above 1 it is broken."""
    numbers = dict(exact or {})
    match bound.kind:
        case "pure":
            whole = loss.epsilon
            assert whole is not None, "noise without a pure epsilon under a pure bound"
            limit = numbers.get("epsilon", Fraction(bound.epsilon))
            if not whole:
                return 0.0
            assert limit > 0, "something moves under a bound of nothing"
            return float(whole / limit) if whole <= limit else max(1 + 1e-9, float(whole / limit))
        case "approximate":
            delta = loss.delta(float(bound.epsilon), neighbours)
            return _over(max(delta, 0.0), bound.delta)
        case "concentrated":
            return _over(loss.rho, numbers.get("rho", bound.rho))
        case "gaussian":
            return _over(loss.mu, bound.mu)
        case "renyi":
            return max(_over(loss.renyi(a), e) for a, e in zip(bound.orders, bound.epsilons, strict=True))
    raise AssertionError(bound.kind)


def _over(used: float, limit: Any) -> float:
    assert limit or not used, "something moves under a bound of nothing"
    return used / float(limit) if used else 0.0


def key_pair(law: KeyDistribution, epsilon: float, shift: int) -> float:
    """The delta at this epsilon between a key with n and with n + shift supporters, at worst over n, by enumeration.

    What is published of a key with n supporters is n - J where J <= n, and nothing otherwise.
    """
    reached = [0.0, *(r / law.reached[-1] for r in law.reached)]
    mass = np.diff(reached)
    length = len(mass)
    worst, factor = 0.0, math.exp(epsilon)
    for n in {0, 1, 2, length // 4, length // 2, length - 1, length, 2 * length}:
        for few, many in ((n, n + shift), (n + shift, n)):
            here = {few - j: m for j, m in zip(range(1, length + 1), mass, strict=True) if j <= few}
            there = {many - j: m for j, m in zip(range(1, length + 1), mass, strict=True) if j <= many}
            kept = sum(max(m - factor * there.get(v, 0.0), 0.0) for v, m in here.items())
            silent = max((1 - sum(here.values())) - factor * (1 - sum(there.values())), 0.0)
            worst = max(worst, kept + silent)
    return worst


@functools.lru_cache(maxsize=256)
def lattice_delta(moves: tuple[int, ...], std: float, epsilon: float) -> float:
    """The delta of discrete Gaussian noise on cells that move by so much: the law of <moves, noise>, summed.

    ln of the ratio at noise z is (2 <moves, z> + |moves|^2) / (2 std^2).
    """
    if not moves:
        return 0.0
    reach = math.ceil(12 * std)
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * std * std))
    one /= one.sum()
    law = np.ones(1)
    for move in moves:
        spread = np.zeros(2 * reach * move + 1)
        spread[::move] = one
        law = np.convolve(law, spread)
    inner = np.arange(law.size) - law.size // 2
    ratio = (2 * inner + sum(m * m for m in moves)) / (2 * std * std)
    return float(np.sum(law * np.maximum(-np.expm1(epsilon - ratio), 0.0)[: law.size]))


def survival(scale: Fraction, k: int) -> float:
    """Pr[X >= k] of the discrete Laplace law, k >= 1."""
    q = math.exp(-1 / float(scale))
    return q**k / (1 + q)


def sizes(draws: Sequence[Draw]) -> int:
    """How many numbers were drawn."""
    return sum(int(np.size(d.values)) for d in draws)
