"""Tables of counts by a mechanism for all of them at once: an adapter between a question and the library's noise.

The mechanism is what runs: it gets the true counts, draws, and lets noisy counts out. Its event is what is charged,
its law is what the certificate states, its errors are those of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.curator.blocks import Block
from tacit.curator.intervals import Estimate
from tacit.curator.prices import CONFIDENCE, Price
from tacit.curator.treatments import Noisy, Treatment, mu_squared_within, pure_within
from tacit.exact.balls import ball, lower, upper
from tacit.exact.rounding import up
from tacit.guarantees import Approximate, Bound, Concentrated, Pure
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian
from tacit.mechanisms.budgets import Budget
from tacit.mechanisms.range_answers import RangeAnswers, best_trees
from tacit.mechanisms.tables import MOST_SHAPED, CellSums, ShapedTables
from tacit.noise.source import Source
from tacit.sources.query import Cells
from tacit.statistics.base import Question

__all__ = ["Fitted", "fitted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted(Treatment):
    """All noisy parts of a question by one mechanism; `names` are these parts, in its order."""

    mechanism: ShapedTables | CellSums | RangeAnswers
    names: tuple[str, ...]
    level: Fraction
    """The exact epsilon; for Gaussian noise the exact squared mu."""

    @property
    def events(self) -> tuple[Event, ...]:
        """One release of all tables; of a tree one for each level."""
        return self.mechanism.events

    @property
    def gaussian(self) -> bool:
        """Is the noise Gaussian?"""
        if isinstance(self.mechanism, RangeAnswers):
            return self.mechanism.gaussian
        return isinstance(self.mechanism.noise, RoundedGaussian)

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        if isinstance(self.mechanism, ShapedTables):
            return ("k-norm",) if self.mechanism.replaced else ("polytope-noise",)
        noise = ("rounded-gaussian",) if self.gaussian else ("discrete-laplace", "laplace")
        if len(self.events) == 1:
            return noise
        return (*noise, "linear-strategies", "compose-gdp" if self.gaussian else "compose-pure")

    @property
    def pure(self) -> Fraction | None:
        """The exact epsilon, where there is one."""
        return None if self.gaussian else self.level

    @property
    def rho(self) -> Fraction | None:
        """A rho that holds."""
        return self.level / 2 if self.gaussian else Block.laplace((), 1, 1, self.level).rho

    @property
    def bound(self) -> Bound:
        """What it may reveal, in the price's own kind."""
        if self.pure is not None:
            return Pure(epsilon=up(self.pure))
        if self.price.kind == "approximate":
            return Approximate(epsilon=up(self.price.epsilon or 0), delta=up(self.price.delta or 0))
        if self.price.kind == "concentrated":
            return Concentrated(rho=up(self.rho or 0))
        return self.mechanism.bound

    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> Noisy:
        """The noisy parts: the only step that sees true numbers."""
        integers = question.integers(cells)
        given: Any = [integers[name] for name in self.names]
        if not isinstance(self.mechanism, ShapedTables):
            given = question.histogram(cells)
        released = self.mechanism.release(given, source=source)
        parts = {p.name: np.asarray(integers[p.name]) for p in question.parts}
        for name, values in zip(self.names, released.values, strict=True):
            parts[name] = np.asarray(values).reshape(parts[name].shape)
        return Noisy(parts=parts)

    @property
    def noised(self) -> frozenset[str]:
        """The parts that get noise; the others are public."""
        return frozenset(self.names)

    def read(
        self, question: Question, noisy: Noisy, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """Every cell with what its own noise stays within; several at once by adding up the misses."""
        value = question.assemble(noisy.parts)
        level = 1 - (1 - confidence) / coordinates
        halves = dict(zip(self.names, self.mechanism.error_quantiles(level), strict=True))
        each = [np.ravel(halves.get(p.name, np.zeros(np.size(noisy.parts[p.name])))) for p in question.parts]
        half = np.concatenate(each).reshape(np.shape(value))
        # Counts are whole numbers; an interval is rounded outwards, and never gets shorter.
        return Estimate(value=np.rint(value), low=np.floor(value - half), high=np.ceil(value + half))

    def describe(self) -> dict[str, Any]:
        """The mechanism for a certificate."""
        return {"noise": [self.mechanism.noise_distribution], "chosen": self.reason, "numerical_delta": 0.0}

    def variances(self) -> dict[str, float]:
        """The mean variance of a cell of each part."""
        return dict(zip(self.names, self.mechanism.variances(), strict=True))

    @property
    def mean_error(self) -> float:
        """E |error| of a cell, the mean over the tables."""
        return float(np.mean(self.mechanism.mean_sizes()))

    @property
    def log_error(self) -> float:
        """ln of the error at 95%."""
        return math.log(float(np.mean([q.mean() for q in self.mechanism.error_quantiles(CONFIDENCE)])) + 0.5)

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """Means over the cells of a table, and over the tables."""
        found = self.mechanism.error_quantiles(confidence)
        alike = len({float(x) for q in found for x in (q.min(), q.max())}) == 1
        about = (
            "each cell" if alike else f"a cell, on average; the largest ± {max(q.max() for q in found):.3g}"
        )
        return self.mean_error, float(np.mean([q.mean() for q in found])), about


def _ranged(question: Question, price: Price, epsilon: Fraction) -> Iterator[tuple[str, Fitted]]:
    """Noise on the bins, and on a tree over them."""
    facts = question.tables
    assert facts is not None
    if facts.ranges is None or facts.sensitivity is None or facts.sensitivity.none:
        return
    cells = int(np.prod([a.size or 0 for a in question.requests[0].axes]))
    square, spent = mu_squared_within(price), price.delta if price.kind == "approximate" else None
    l1, move = facts.sensitivity.l1, int(facts.sensitivity.l2_squared)
    plain: dict[str, Any] = {
        "Laplace noise on the bins": Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(l1))
    }
    mu = Fraction(0)
    if square is not None:
        std = Fraction(upper(lambda: ball(move / square).sqrt()))
        normal = RoundedGaussian(sensitivity=L2.root(move), noise_std=std, dimension=cells)
        plain["Gaussian noise on the bins"] = normal
        mu = Fraction(lower(lambda: ball(square).sqrt()))
    budget = Budget(epsilon=epsilon, delta=None, mu=mu)
    trees = best_trees(
        facts.ranges, cells, budget, replaced=facts.replaced, rows=facts.times, absent=not facts.fixed
    )
    for name, noise in (*plain.items(), *trees):
        found = RangeAnswers(noise=noise, ranges=facts.ranges, cells=cells)
        delta = (spent or Fraction(0)) if found.gaussian else Fraction(0)
        yield (
            name,
            Fitted(
                blocks=(), price=price, reason="", delta=delta, names=("count",), mechanism=found, level=found.level
            ),
        )  # fmt: skip


def fitted(question: Question, price: Price) -> Iterator[tuple[str, Fitted]]:
    """Every mechanism for all tables of the question at once that keeps to the price, by name."""
    facts, epsilon = question.tables, pure_within(price)
    noisy = [p for p in question.parts if not p.exact and not question.sensitivities[p.name].none]
    if facts is None or epsilon is None or not noisy:
        return
    names = tuple(p.name for p in noisy)
    if facts.sums is not None and facts.sensitivity is not None and not facts.sensitivity.none:
        sums = tuple(facts.sums[name] for name in names)
        laplace = Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(facts.sensitivity.l1))
        found = CellSums(noise=laplace, sums=sums)
        yield (
            "Laplace noise on the cells",
            Fitted(blocks=(), price=price, reason="", mechanism=found, names=names, level=epsilon),
        )
        square = mu_squared_within(price)
        if square is not None:
            move = int(facts.sensitivity.l2_squared)
            std = Fraction(upper(lambda: ball(move / square).sqrt()))
            normal = RoundedGaussian(sensitivity=L2.root(move), noise_std=std, dimension=sums[0].size)
            spent = price.delta if price.kind == "approximate" else None
            yield (
                "Gaussian noise on the cells",
                Fitted(
                    blocks=(), price=price, reason="", delta=spent or Fraction(0), names=names,
                    mechanism=CellSums(noise=normal, sums=sums), level=move / std**2,
                ),
            )  # fmt: skip
    yield from _ranged(question, price, epsilon)
    sizes = [p.cells or 0 for p in noisy]
    ways = [{"complete": False}]
    if facts.complete:
        ways.append({"complete": True, "fixed": facts.fixed})
    for way in ways:
        count = sum(sizes) if not way["complete"] else sum(s - 1 for s in sizes) + (not way.get("fixed"))
        # One count alone has nothing to be shaped by; where the number of rows is known, one count tells two.
        if not (1 if way.get("fixed") else 2) <= count <= MOST_SHAPED:
            continue
        shaped = ShapedTables.for_epsilon(
            epsilon=epsilon, sizes=sizes, times=facts.times, replaced=facts.replaced, **way
        )
        law = "cube noise" if facts.replaced else "range-norm noise"
        yield (
            f"{law} on {shaped.on}",
            Fitted(blocks=(), price=price, reason="", mechanism=shaped, names=names, level=epsilon),
        )
