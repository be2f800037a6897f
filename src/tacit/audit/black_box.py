"""The black-box audit: outputs on neighbours, bets against the claim, and an answer that is valid at any time.

Outputs come in stages. All bets of a stage are fixed before it: predictors are fitted to past outputs, and
neighbours are chosen by past gains. Then the system's randomness tosses the coins, the mechanism runs, and the
wealth changes. The mechanism never sees a coin before it is tossed, and its own generator never makes the
coins.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from os import urandom
from typing import Any, Protocol

import numpy as np

from tacit.audit.betting import ROUNDING, CoinBets, CurveBets, Wealth, moments
from tacit.audit.claimed import AuditedClaim
from tacit.audit.fixed_bets import FixedBets
from tacit.audit.neighbours import NeighbourPairs
from tacit.audit.outputs import Encoder, Output, difference, is_answer
from tacit.audit.predictors import Levels, boosted, logistic, projection, promise, table
from tacit.exact.arrays import Floats, Integers
from tacit.exact.data_classes import dataclass

FIRST = 8
"""Outputs of each pair of neighbours before the first bet."""
GROWTH = 0.3
"""A stage is this share of all outputs before it."""
LARGEST_STAGE = 20_000
EQUALLY = 0.2
RANKED = (0.6, 0.2, 0.12, 0.08)
"""A stage gives this share equally to all pairs, and the rest to the most promising ones."""
FOREMOST = 0.75
"""The share of a stage for the pair with the largest gain, if fixed events are bet on."""
EASIER = 0.2
"""The weight of the gain against half of the claimed epsilon, which shows earlier."""
TREES_FROM = 240
"""Outputs of a pair before boosted trees are fitted."""
REFIT = 1.25
REFIT_TREES = 1.6
TREES_FOR = 4
REFIT_OTHERS = 2.5
"""Trees are refitted more often for the pairs of neighbours that promise most, the first this many."""

NAMES = ("table of outputs", "one column", "a logistic regression", "boosted trees")


class Runner(Protocol):
    """Runs the mechanism: (pair, side) in, one output each out."""

    def __call__(self, jobs: Sequence[tuple[int, int]]) -> list[Output]: ...


def system_coins(count: int) -> Integers:
    """Fair coins from the operating system, which no name that a mechanism replaces can change."""
    return np.unpackbits(np.frombuffer(urandom((count + 7) // 8), dtype=np.uint8))[:count].astype(np.int64)


@dataclass(slots=True)
class PairRecord:
    """The observations of one pair of neighbours, and the lessons from them."""

    toward: tuple[float, ...] = ()
    """The difference of the two inputs, if they are lists of numbers."""
    outputs: list[Output] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    columns: Floats | None = None
    levels: dict[str, Levels] = field(default_factory=dict)
    fitted: dict[str, int] = field(default_factory=dict)
    promised: float = 0.0
    """The expected gain of the levels against the claim, and a part of that against half of it."""

    def add(self, outputs: Sequence[Output], bits: Sequence[int], columns: Floats | None) -> None:
        """Append new outputs with their coins."""
        self.outputs.extend(outputs)
        self.bits.extend(bits)
        if columns is not None:
            self.columns = columns if self.columns is None else np.vstack([self.columns, columns])

    def learn(self, encoder: Encoder, q: float, half: float, *, first: bool) -> None:
        """Refit the predictors whose data have grown enough since their last fit."""
        n, before = len(self.bits), dict(self.fitted)
        if n < FIRST or self.columns is None or len(set(self.bits)) < 2:
            return
        bits = np.array(self.bits)
        for name, fit in (
            ("table of outputs", table),
            ("a logistic regression", logistic),
            ("boosted trees", boosted),
        ):
            grown = (REFIT_TREES if first else REFIT_OTHERS) if fit is boosted else REFIT
            if n < grown * self.fitted.get(name, 0) or (fit is boosted and n < TREES_FROM):
                continue
            if fit is logistic and n < 24:
                continue
            made = fit(encoder, self.columns, self.outputs, bits)
            self.fitted[name] = n
            if made is None:
                self.levels.pop(name, None)
            else:
                self.levels[name] = made
        if n >= REFIT * self.fitted.get("one column", 0):
            made = projection(encoder, self.columns, self.outputs, bits, q)
            self.fitted["one column"] = n
            if made is not None:
                self.levels["one column"] = made
        if self.fitted != before:
            weights = np.array([1.0, EASIER])
            both = np.array([q, half])
            self.promised = max(
                (float(weights @ promise(levels, both)) for levels in self.levels.values()), default=0.0
            )


@dataclass(slots=True)
class Course:
    """One running audit: the wealth, the record of each pair, and the reason for stopping."""

    claim: AuditedClaim
    neighbours: NeighbourPairs
    level: float
    wealth: Wealth
    records: list[PairRecord]
    encoder: Encoder | None = None
    ended: str = ""
    seconds: float = 0.0
    answers: int = 0

    @property
    def needed(self) -> float:
        """ln of the wealth that rejects."""
        return math.log(ROUNDING / self.level)

    @property
    def outputs(self) -> int:
        """The number of runs of the mechanism so far."""
        return sum(len(r.bits) for r in self.records)


def watch(
    run: Runner,
    *,
    claim: AuditedClaim,
    neighbours: NeighbourPairs,
    level: float,
    most_outputs: int,
    seconds: float,
    to_the_end: bool = False,
    coins: Callable[[int], Integers] = system_coins,
    tell: Callable[[Course], None] | None = None,
) -> Course:
    """Run the mechanism and bet until the claim is rejected, the outputs are used up, or the time is over."""
    many = len(neighbours.pairs)
    epsilons = claim.epsilons()
    toward = [difference(*pair) for pair in neighbours.pairs]
    q = np.array([_q(v) for v in claim.ladder()]) if claim.pure else np.empty(0)
    strategies = len(NAMES) * (1 if claim.pure else 2 * len(epsilons))
    course = Course(
        claim=claim,
        neighbours=neighbours,
        level=level,
        wealth=Wealth(
            claim,
            strategies=strategies,
            pairs=many,
            fixed=[FixedBets(q, one) for one in toward] if claim.pure else (),
        ),
        records=[PairRecord(toward=one) for one in toward],
    )
    ladder = course.wealth.ladder
    deltas = (
        np.empty((0, 0))
        if claim.pure
        else np.array([[float(claim.at(v).delta_at(e)) for v in ladder] for e in epsilons])
    )
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    began = time.monotonic()
    with threadpool_limits(limits=1):
        _stages(course, run, began, most_outputs, seconds, to_the_end, coins, tell, q, epsilons, deltas)
    course.seconds = time.monotonic() - began
    if course.ended != "the claim was rejected" and course.wealth.crossed is not None:
        course.ended = "the claim was rejected; " + course.ended
    return course


def _stages(
    course: Course,
    run: Runner,
    began: float,
    most_outputs: int,
    seconds: float,
    to_the_end: bool,
    coins: Callable[[int], Integers],
    tell: Callable[[Course], None] | None,
    q: Floats,
    epsilons: Sequence[float],
    deltas: Floats,
) -> None:
    """Stage after stage: sizes, coins, runs, bets, then learning."""
    while True:
        sizes = _sizes(course, most_outputs)
        if not sum(sizes):
            course.ended = "all outputs were used"
            break
        stopped = False
        for pair in _order(course):
            if not sizes[pair]:
                continue
            if _batch(course, run, pair, sizes[pair], coins, q, epsilons, deltas) and not to_the_end:
                course.ended, stopped = "the claim was rejected", True
                break
            if time.monotonic() - began > seconds and course.outputs >= 2 * len(course.records):
                course.ended, stopped = "the time was over", True
                break
        course.seconds = time.monotonic() - began
        if tell is not None:
            tell(course)
        if stopped:
            break
        _learn(course)


def _q(epsilon: float) -> float:
    return math.nextafter(1 / (1 + math.exp(-epsilon)), 1.0)


def _order(course: Course) -> list[int]:
    """Pairs that promise most first: a stage may end early."""
    gained = course.wealth.lasting[:, :, course.wealth.main].max(axis=1)
    rates = [
        (record.promised + gained[i]) / (len(record.bits) + 4 * FIRST)
        for i, record in enumerate(course.records)
    ]
    return [int(i) for i in np.argsort(-np.array(rates), kind="stable")]


def _foremost(course: Course) -> int | None:
    """The pair with the largest gain, by fixed bets or by a learning strategy."""
    if not course.wealth.fixed:
        return None
    main = course.wealth.main
    learned = course.wealth.lasting[:, :, main].max(axis=1)
    return int(np.argmax(np.maximum(learned, [one.now[main] for one in course.wealth.fixed])))


def _sizes(course: Course, most_outputs: int) -> list[int]:
    """Outputs of each pair in the next stage: a part equally, the rest to the most promising pairs."""
    many, so_far = len(course.records), course.outputs
    left = most_outputs - so_far
    each = 1 if course.claim.pure else 2
    if so_far == 0:
        wanted = [FIRST] * many
    else:
        stage = max(2 * each * many, min(int(GROWTH * so_far), LARGEST_STAGE))
        share = np.full(many, EQUALLY / many)
        ranks = _order(course)[: len(RANKED)]
        share[ranks] += np.array(RANKED[: len(ranks)]) * (1 - EQUALLY) / sum(RANKED[: len(ranks)])
        foremost = _foremost(course)
        if foremost is not None:
            share *= 1 - FOREMOST
            share[foremost] += FOREMOST
        wanted = [int(x) for x in np.ceil(stage * share)]
    wanted = [each * max(1, w // each) for w in wanted]
    while wanted and sum(wanted) > left:
        cut = sum(wanted) - left
        most = int(np.argmax(wanted))
        wanted[most] = max(0, wanted[most] - max(cut, 1))
        wanted[most] -= wanted[most] % each
        if left < each:
            return [0] * many
    return wanted


def _batch(
    course: Course,
    run: Runner,
    pair: int,
    size: int,
    coins: Callable[[int], Integers],
    q: Floats,
    epsilons: Sequence[float],
    deltas: Floats,
) -> bool:
    """Tosses, runs, bets; True if the claim is rejected."""
    record, pure = course.records[pair], course.claim.pure
    if pure:
        bits = coins(size)
    else:
        first = coins(size // 2)
        bits = np.column_stack([first, 1 - first]).ravel()
    bets = _bets(record, course.claim, q, epsilons, deltas)
    outputs = run([(pair, int(b)) for b in bits])
    course.answers += sum(map(is_answer, outputs))
    if course.encoder is None:
        record.add(outputs, bits.tolist(), None)
        columns = np.empty((len(outputs), 0))
    else:
        columns = course.encoder.columns(outputs, record.toward)
        record.add(outputs, bits.tolist(), columns)
    claims, strategies = len(course.wealth.ladder), course.wealth.strategies
    each = 1 if pure else 2
    gains = np.zeros((strategies, claims))
    paths = np.zeros((strategies, size // each))
    staked = np.zeros((strategies, claims), dtype=bool)
    main = course.wealth.main
    ones, zeros = np.flatnonzero(bits == 1), np.flatnonzero(bits == 0)
    for at, (levels, bet) in bets.items():
        level = levels.place(columns, outputs)
        staked[at] = bet.staked
        if isinstance(bet, CoinBets):
            gains[at] = bet.gains(level, bits)
            paths[at] = bet.path(level, bits, main)
        else:
            gains[at] = bet.gains(level[ones], level[zeros])
            paths[at] = bet.path(level[ones], level[zeros], main)
    watched = moments(size // each)
    fixed = None
    if pure:
        known = course.encoder if course.encoder is not None else Encoder(())
        fixed = course.wealth.fixed[pair].take(known, columns, outputs, bits, claim=main, at=watched)
    return course.wealth.take(
        pair, gains, paths, staked, cost=each, needed=course.needed, at=watched, fixed=fixed
    )


def _bets(
    record: PairRecord, claim: AuditedClaim, q: Floats, epsilons: Sequence[float], deltas: Floats
) -> dict[int, tuple[Levels, Any]]:
    """The bets of every strategy on this pair, by the strategy's number."""
    made: dict[int, tuple[Levels, Any]] = {}
    for i, name in enumerate(NAMES):
        levels = record.levels.get(name)
        if levels is None:
            continue
        if claim.pure:
            made[i] = levels, (CoinBets.on_events if levels.events else CoinBets.on)(levels, q)
            continue
        for k, epsilon in enumerate(epsilons):
            for direction in (0, 1):
                at = (i * len(epsilons) + k) * 2 + direction
                made[at] = levels, CurveBets.on(levels, epsilon, deltas[k], direction)
    return made


def _learn(course: Course) -> None:
    """Columns for new kinds of output, then predictors."""
    every = [o for r in course.records for o in r.outputs]
    strange = course.encoder is not None and any(
        len(o[1]) > course.encoder.size or o[0] not in course.encoder.structures
        for r in course.records
        for o in r.outputs[-64:]
    )
    doubled = course.encoder is None or (strange and course.outputs >= 2 * course.encoder.seen)
    if doubled:
        course.encoder = Encoder(every)
        for record in course.records:
            record.columns = course.encoder.columns(record.outputs, record.toward)
            record.levels.clear()
            record.fitted.clear()
            record.promised = 0.0
    assert course.encoder is not None
    best = _order(course)[:TREES_FOR]
    at, half = (_q(course.claim.value), _q(course.claim.value / 2)) if course.claim.pure else (0.5, 0.5)
    for i, record in enumerate(course.records):
        record.learn(course.encoder, at, half, first=i in best)
        if course.wealth.fixed and record.columns is not None:
            course.wealth.fixed[i].begin(
                course.encoder, record.columns, record.outputs, np.array(record.bits)
            )
