"""Mechanisms for all tables of a question at once: candidates beside independent noise on every number.

Each is calibrated to the price, gets the true counts, draws, and lets noisy counts out; what it is charged, states and
errs by it says itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.curator.prices import Price
from tacit.curator.treatments import Applied, Treatment, mu_squared_within, pure_within
from tacit.exact.balls import ball, lower
from tacit.mechanisms import L1, Laplace, RoundedGaussian
from tacit.mechanisms.budgets import Budget
from tacit.mechanisms.fitted_tables import MOST_FITTED, Agreement, FittedTables, agreement_of
from tacit.mechanisms.hull_tables import MOST_COUNTS, HullTables, Image, small_image
from tacit.mechanisms.range_answers import RangeAnswers, best_trees
from tacit.mechanisms.tables import MOST_SHAPED, CellSums, ShapedTables, TableMechanism
from tacit.statistics.base import Question
from tacit.statistics.tables import CountTables

__all__ = ["fitted"]


def fitted(question: Question, price: Price) -> Iterator[tuple[str, Treatment]]:
    """Every mechanism for all tables of the question at once that keeps to the price, by name."""
    noisy = [p for p in question.parts if not p.exact and not question.sensitivities[p.name].none]
    epsilon = pure_within(price)
    if question.tables is None or epsilon is None or not noisy:
        return
    names, sizes = tuple(p.name for p in noisy), [p.cells or 0 for p in noisy]
    for name, mechanism in _mechanisms(question, price, epsilon, names, sizes):
        pure = mechanism.exact_epsilon is not None
        delta = Fraction(0) if pure else price.spent_delta
        yield name, Treatment(noise=(Applied(names, mechanism),), price=price, reason="", delta=delta)


def _mechanisms(
    question: Question, price: Price, epsilon: Fraction, names: tuple[str, ...], sizes: list[int]
) -> Iterator[tuple[str, TableMechanism]]:
    facts, square = question.tables, mu_squared_within(price)
    assert facts is not None
    if facts.sensitivity is not None and not facts.sensitivity.none:
        l1, move = facts.sensitivity.l1, int(facts.sensitivity.l2_squared)

        def plain(cells: int) -> Iterator[tuple[str, Laplace | RoundedGaussian]]:
            yield "Laplace", Laplace.for_epsilon(epsilon=epsilon, sensitivity=L1(l1))
            if square is not None:
                made = RoundedGaussian.for_mu_squared(mu_squared=square, squared_steps=move, dimension=cells)
                yield "Gaussian", made

        if facts.sums is not None:
            sums = tuple(facts.sums[name] for name in names)
            for law, noise in plain(sums[0].size):
                yield f"{law} noise on the cells", CellSums(noise=noise, sums=sums)
        if facts.ranges is not None:
            cells = int(np.prod([a.size or 0 for a in question.requests[0].axes]))
            for law, noise in plain(cells):
                yield f"{law} noise on the bins", RangeAnswers(noise=noise, ranges=facts.ranges, cells=cells)
            mu = Fraction(0) if square is None else Fraction(lower(lambda: ball(square).sqrt()))
            trees = best_trees(
                facts.ranges, cells, Budget(epsilon=epsilon, delta=None, mu=mu),
                replaced=facts.replaced, rows=facts.times, absent=not facts.fixed,
            )  # fmt: skip
            for name, tree in trees:
                yield name, RangeAnswers(noise=tree, ranges=facts.ranges, cells=cells)
    agreement = _agreement(facts, names, tuple(sizes))
    if agreement is not None:
        moved = int(question.sensitivity.l1), int(question.sensitivity.l2_squared)
        yield (
            "Laplace noise and least squares",
            FittedTables.for_epsilon(epsilon=epsilon, l1=moved[0], agreement=agreement),
        )
        if square is not None:
            yield (
                "Gaussian noise and least squares",
                FittedTables.for_mu_squared(mu_squared=square, l2_squared=moved[1], agreement=agreement),
            )
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
        yield f"{law} on {shaped.on}", shaped
    bins = math.prod(a.size or 0 for a in question.requests[0].axes) if facts.ranges is not None else 0
    image = _image(facts, names, tuple(sizes), bins)
    if image is not None:
        hull = HullTables.for_epsilon(epsilon=epsilon, image=image, times=facts.times)
        yield f"K-norm noise on {len(image.base)} of {sum(sizes)} counts", hull


@lru_cache(maxsize=8)
def _agreement(facts: CountTables, names: tuple[str, ...], sizes: tuple[int, ...]) -> Agreement | None:
    """What the tables have in common, made once for a question; None where they tell nothing about each other."""
    places = facts.sums if facts.spans is None else facts.spans
    if places is None or facts.ranges is not None or sum(sizes) > MOST_FITTED:
        return None
    return agreement_of(tuple(places[name] for name in names), sizes, facts.fixed)


@lru_cache(maxsize=8)
def _image(facts: CountTables, names: tuple[str, ...], sizes: tuple[int, ...], bins: int) -> Image | None:
    """All that one row can do to the counts, made once for a question; None where that is too much to be listed."""
    if sum(sizes) > MOST_COUNTS:
        return None
    if facts.ranges is not None:
        at = np.arange(bins)[:, None]
        patterns = ((facts.ranges[None, :, 0] <= at) & (at <= facts.ranges[None, :, 1])).astype(np.int64)
    elif facts.sums is not None:
        blocks = [
            facts.sums[name][:, None] == np.arange(size) for name, size in zip(names, sizes, strict=True)
        ]
        patterns = np.concatenate(blocks, axis=1).astype(np.int64)
    elif facts.complete and len(sizes) == 1 and facts.replaced:
        patterns = np.eye(
            sizes[0], dtype=np.int64
        )  # added to one table, a row is what Laplace noise is made for
    else:
        return None
    return small_image(patterns, sizes, replaced=facts.replaced, absent=not facts.fixed)
