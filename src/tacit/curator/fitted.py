"""Mechanisms for all tables of a question at once: candidates beside independent noise on every number.

Each is calibrated to the price, gets the true counts, draws, and publishes noisy counts. It states its own
charge, certificate and error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.curator.assignments import Applied, Assignment, NoisyParts, mu_squared_within, pure_within
from tacit.curator.charging import Price
from tacit.curator.intervals import Estimate
from tacit.curator.random_counts import OnRandomData
from tacit.errors import TacitError
from tacit.exact.arrays import Floats
from tacit.exact.rounding import ball, lower
from tacit.mechanisms import L1, L2, Laplace, RoundedGaussian
from tacit.mechanisms.fitted_tables import (
    MOST_COUNTS,
    MOST_FITTED,
    Agreement,
    FittedTables,
    HullTables,
    Image,
    agreement_of,
    moves_of,
    small_image,
)
from tacit.mechanisms.ranges import RangeAnswers, RangeTree, best_trees, level_moves
from tacit.mechanisms.strategies import Budget
from tacit.mechanisms.tables import MOST_SHAPED, CellSums, ShapedTables, TableMechanism
from tacit.statistics.base import CountTables, Question
from tacit.statistics.consistency import nearest_histogram
from tacit.statistics.invariants import valid_counts


def fitted(question: Question, price: Price) -> Iterator[tuple[str, Assignment]]:
    """All mechanisms within the price that serve all tables of the question at once, with their names."""
    noisy = [p for p in question.parts if not p.exact and not question.sensitivities[p.name].none]
    epsilon = pure_within(price)
    if question.tables is None or epsilon is None or not noisy:
        return
    names, sizes = tuple(p.name for p in noisy), [p.cells or 0 for p in noisy]
    for name, mechanism in _mechanisms(question, price, epsilon, names, sizes):
        pure = mechanism.exact_epsilon is not None
        delta = Fraction(0) if pure else price.spent_delta
        yield name, Assignment(noise=(Applied(names, mechanism),), price=price, reason="", delta=delta)


def _mechanisms(
    question: Question, price: Price, epsilon: Fraction, names: tuple[str, ...], sizes: list[int]
) -> Iterator[tuple[str, TableMechanism]]:
    facts, square = question.tables, mu_squared_within(price)
    assert facts is not None
    if facts.sensitivity is not None and not facts.sensitivity.none:
        l1, move = facts.sensitivity.l1, int(facts.sensitivity.l2_squared)

        def plain(cells: int) -> Iterator[tuple[str, Laplace | RoundedGaussian]]:
            yield "Laplace", Laplace.for_target(epsilon=epsilon, sensitivity=L1(l1))
            if square is not None:
                made = RoundedGaussian.for_mu_squared(mu_squared=square, squared_steps=move, dimension=cells)
                yield "Gaussian", made

        if facts.sums is not None:
            sums = tuple(facts.sums[name] for name in names)
            for law, noise in plain(sums[0].size):
                yield f"{law} noise on the cells", CellSums(noise=noise, sums=sums)
        if facts.ranges is not None:
            cells = _bins(question)
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
            FittedTables.for_target(epsilon=epsilon, l1=moved[0], agreement=agreement),
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
        times = facts.times if way["complete"] else facts.times_each
        shaped = ShapedTables.for_target(
            epsilon=epsilon, sizes=sizes, times=times, replaced=facts.replaced, **way
        )
        law = "cube noise" if facts.replaced else "range-norm noise"
        yield f"{law} on {_counts(shaped)}", shaped
    bins = _bins(question) if facts.ranges is not None else 0
    image = _image(facts, names, tuple(sizes), bins)
    if image is not None:
        hull = HullTables.for_target(epsilon=epsilon, image=image, times=facts.times)
        yield f"K-norm noise on {len(image.base)} of {sum(sizes)} counts", hull


def _counts(shaped: ShapedTables) -> str:
    """The noisy quantity, as a part of a name. Candidates are stored by their names, which must not change."""
    counts = "1 count" if shaped.coordinates == 1 else f"{shaped.coordinates} counts"
    if not shaped.complete:
        return counts
    if shaped.fixed:
        return f"{counts}, the last of each table by subtraction"
    return f"the number of rows and {shaped.coordinates - 1} counts"


@lru_cache(maxsize=8)
def _agreement(facts: CountTables, names: tuple[str, ...], sizes: tuple[int, ...]) -> Agreement | None:
    """The common part of the tables, made once for a question; None if the tables are unrelated."""
    places = facts.sums if facts.spans is None else facts.spans
    if places is None or facts.ranges is not None or sum(sizes) > MOST_FITTED:
        return None
    return agreement_of(tuple(places[name] for name in names), sizes, facts.fixed)


@lru_cache(maxsize=8)
def _image(facts: CountTables, names: tuple[str, ...], sizes: tuple[int, ...], bins: int) -> Image | None:
    """All changes that one row can make to the counts, listed once for a question; None if there are too many."""
    if sum(sizes) > MOST_COUNTS:
        return None
    patterns = _patterns(facts, names, sizes, bins)
    if patterns is None:
        return None
    return small_image(patterns, sizes, replaced=facts.replaced, absent=not facts.fixed)


def _patterns(
    facts: CountTables, names: Sequence[str], sizes: Sequence[int], bins: int
) -> npt.NDArray[np.int64] | None:
    """The counts to which a row can belong, a line for each possibility; None if the question does not say."""
    if facts.ranges is not None:
        at = np.arange(bins)[:, None]
        return ((facts.ranges[None, :, 0] <= at) & (at <= facts.ranges[None, :, 1])).astype(np.int64)
    if facts.sums is not None:
        blocks = [
            facts.sums[name][:, None] == np.arange(size) for name, size in zip(names, sizes, strict=True)
        ]
        return np.concatenate(blocks, axis=1).astype(np.int64)
    if facts.complete and len(sizes) == 1 and facts.replaced:
        # Added to one table, a row is what Laplace noise is made for.
        return np.eye(sizes[0], dtype=np.int64)
    return None


# --- a stored one -----------------------------------------------------------------------------------------------
def fits_tables(mechanism: TableMechanism, parts: Sequence[str], question: Question) -> bool:
    """Whether this mechanism is made for the tables of this question, and for a move at least as large.

    The account decides whether its noise is large enough for the price; its event follows from its own numbers.
    """
    facts = question.tables
    cells = {p.name: p.cells or 0 for p in question.parts}
    if facts is None or any(name not in cells for name in parts):
        return False
    sizes = tuple(cells[name] for name in parts)
    match mechanism:
        case ShapedTables():
            # A person of a panel brings several rows of one table, in sum no vector of zeros and ones times `each`.
            least = facts.times if mechanism.complete else facts.times_each
            fits = mechanism.sizes == sizes and mechanism.times >= least
            # Cube noise covers rows that are added, too. Range-norm noise does not cover rows that are replaced.
            fits = fits and mechanism.replaced >= facts.replaced and facts.complete >= mechanism.complete
            return fits and facts.fixed >= mechanism.fixed
        case HullTables():
            patterns = _patterns(facts, parts, sizes, _bins(question))
            if patterns is None or mechanism.image.sizes != sizes or mechanism.times < facts.times:
                return False
            return mechanism.image.holds(moves_of(patterns, facts.replaced, not facts.fixed))
        case FittedTables():
            return _fits_agreement(mechanism, parts, sizes, question)
        case CellSums():
            if facts.sums is None or len(mechanism.sums) != len(parts):
                return False
            pairs = zip(mechanism.sums, parts, strict=True)
            return _on_cells(mechanism.noise, facts) and all(
                np.array_equal(own, facts.sums[name]) for own, name in pairs
            )
        case RangeAnswers():
            if facts.ranges is None or mechanism.cells != _bins(question) or len(parts) != 1:
                return False
            if not np.array_equal(mechanism.ranges, facts.ranges):
                return False
            tree = mechanism.noise
            return (
                _on_levels(tree, facts, mechanism.cells)
                if isinstance(tree, RangeTree)
                else _on_cells(tree, facts)
            )
    return False


def _bins(question: Question) -> int:
    """Cells of the finest table of a question about ranges."""
    return math.prod(a.size or 0 for a in question.requests[0].axes)


def _covers(noise: Laplace | RoundedGaussian, l1: int, l2_squared: int, *, steps: int = 1) -> bool:
    """Whether this noise is on a grid of this many steps a count, and made for a move of this size."""
    if noise.step * steps != 1:
        return False
    if isinstance(noise, Laplace):
        return noise.sensitivity.steps(noise.step) >= l1 * steps
    made_for = noise.sensitivity
    return isinstance(made_for, L2) and made_for.squared_steps(noise.step) >= l2_squared * steps**2


def _on_cells(noise: Laplace | RoundedGaussian, facts: CountTables) -> bool:
    moved = facts.sensitivity
    return moved is not None and _covers(noise, int(moved.l1), int(moved.l2_squared))


def _on_levels(tree: RangeTree, facts: CountTables, cells: int) -> bool:
    """Whether every level that a unit can move has noise of one distribution, sized for a move of that level."""
    laws = {type(m) for m in tree.mechanisms if m is not None}
    if tree.cells != cells or len(laws) != 1:
        return False
    # Several rows of one unit can leave the root together, whatever each of them does.
    absent = not facts.fixed or facts.times > 1
    moves = level_moves(
        cells, tree.branching, gaussian=RoundedGaussian in laws, replaced=facts.replaced, rows=facts.times,
        absent=absent,
    )  # fmt: skip
    return all(
        move == 0 if noise is None else _covers(noise, move, move)
        for noise, move in zip(tree.mechanisms, moves, strict=True)
    )


def _fits_agreement(
    mechanism: FittedTables, parts: Sequence[str], sizes: tuple[int, ...], question: Question
) -> bool:
    """Noise for all tables at once, fitted to their common part only."""
    facts, own = question.tables, mechanism.agreement
    assert facts is not None
    steps = int(1 / mechanism.noise.step)
    moved = question.sensitivity
    if own.sizes != sizes or not _covers(mechanism.noise, int(moved.l1), int(moved.l2_squared), steps=steps):
        return False
    ours = _agreement(facts, tuple(parts), sizes)
    # Cells may be others, if they span the same tables: the fit is a projection on these.
    return (
        ours is not None
        and own.fixed == ours.fixed
        and np.allclose(own.projection, ours.projection, rtol=0, atol=1e-6)
        and (not own.fixed or np.allclose(ours.projection @ (own.first - ours.first), own.first - ours.first))
    )


# Finishing a release so that it reads like a table: whole numbers that are not negative, tables that add up.
#
# Post-processing: released numbers in, numbers out. Values are the nearest valid ones (theorems `nearest-histogram`,
# `consistent-margins`, `tree-least-squares`), and agree with declared public totals. Intervals stay those of the
# noise, cut at zero: the true counts are valid, so nothing is lost.


def finish(question: Question, assignment: Assignment, noisy: NoisyParts, estimate: Estimate) -> Estimate:
    """Counts of rows and people: whole, not negative; the tables of a release agree with each other."""
    if not question.statistic.agrees:
        return estimate  # means, shares and quantiles already keep to their declared range and order
    if isinstance(assignment, OnRandomData):
        return assignment.finish(question, noisy, estimate)
    low, high = np.maximum(estimate.low, 0.0), np.maximum(estimate.high, 0.0)
    alone = question.statistic.layout == "cells" and not question.details.get("public")
    value = None if alone else _family(question, assignment, noisy)
    if value is None:
        value = nearest_histogram(estimate.value).astype(np.float64)
    value = value.reshape(np.shape(estimate.value))
    return Estimate(
        value=value, low=np.minimum(low, value), high=np.maximum(high, value), reach=estimate.farthest
    )


def _family(question: Question, assignment: Assignment, noisy: NoisyParts) -> Floats | None:
    """The tables as one family; None if there are too many columns or cells for it."""
    spread = assignment.variances()
    try:
        found = valid_counts(question, noisy.parts, {p.name: spread.get(p.name, 0.0) for p in question.parts})
    except TacitError:
        return None
    return np.concatenate([np.ravel(found[p.name]).astype(np.float64) for p in question.parts])
