"""Bets against claims whose wealth cannot grow, on average, while the claim is true (theorem `audit-betting`).

A claim is rejected when the wealth of a bet against it, begun at 1, reaches 1/level. By Ville's inequality that
happens to a true claim with a probability of at most the level, at any stopping time and for any continuation.

Pure epsilon: a fair coin B picks the neighbour, Z is the output, q = e^epsilon/(1 + e^epsilon). Betting on B = 1 pays
p/q if right and (1 - p)/(1 - q) if wrong, with a p >= q that was chosen before B is read; by symmetry for B = 0.
Against a curve delta(epsilon), a bet takes one output X of one neighbour and Y of the other: 1 + lambda (1_S(X)
- e^epsilon 1_S(Y) - delta).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.audit.claimed import AuditedClaim
from tacit.audit.fixed_bets import FixedBets
from tacit.audit.predictors import BELIEF, Levels, promise
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.data_classes import dataclass

CAUTION = 0.5
"""Each frequency is drawn towards a coin by this many standard errors before a bet."""
PROMISE = 0.5
"""A strategy bets on a pair of neighbours if its past gains are at least this many times ln of its outputs."""
SIGNIFICANT = 1.0
"""The same for a curve: the event exceeded the claim by this many standard errors."""
STAKE = 0.75
"""The part of the wealth that a bet on a curve may lose at most."""
TOGETHER = 2.0
"""Frequencies of two opposite events within this many standard errors count as one."""
UNSTAKED = 3.0
"""The lead that a merely watched strategy needs to become the leader."""
FORGET = 0.8
"""The share of a strategy's past gains that counts when the leader of the next stage is chosen."""
LEADER = 0.5
"""The leader's share of the learning strategies' wealth at the start; the others share the rest."""
FIXED = 0.6
"""The share of the bets on fixed events at the start, if there are any."""
MOMENTS = 24
"""The number of times that a batch looks at the wealth."""
ROUNDING = 1 + 1e-9
"""Above all rounding errors of 10^6 bets."""

Factors = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinBets:
    """Bets on the coin for the claims of a ladder, from one predictor's levels."""

    logs: Floats
    """ln of the factor by level, coin and claim."""
    staked: Booleans
    """For each claim, whether past gains suffice for a bet. Other bets are followed without a stake."""

    @classmethod
    def on(cls, levels: Levels, q: Floats) -> CoinBets:
        """Bets at past frequencies, drawn towards a fair coin; bets nothing where they are below q."""
        n = levels.ones + levels.zeros
        share = (levels.ones + BELIEF) / (n + 2 * BELIEF)
        error = CAUTION * np.sqrt(share * (1 - share) / (n + 2 * BELIEF))
        up = (share - error)[:, None]
        down = (1 - share - error)[:, None]
        staked = promise(levels, q) >= PROMISE * np.log(n.sum() + 1)
        q = q[None, :]
        logs = np.zeros((len(n), 2, q.size))
        for p, right in ((up, 1), (down, 0)):
            bet = (p > q) & (p < 1)
            safe, at = np.where(bet, p, 0.5), np.where(bet, q, 0.5)
            logs[:, right] += np.log(safe / at)
            logs[:, 1 - right] += np.log((1 - safe) / (1 - at))
        return cls(logs=logs, staked=staked)

    @classmethod
    def on_events(cls, levels: Levels, q: Floats) -> CoinBets:
        """For each claim and each end of the levels, the event with the largest past gain."""
        size = len(levels.ones)
        logs = np.zeros((size, 2, q.size))
        promised = np.zeros(q.size)
        ends = (
            (np.cumsum(levels.ones[::-1])[::-1], np.cumsum(levels.zeros[::-1])[::-1]),
            (np.cumsum(levels.zeros)[::-1], np.cumsum(levels.ones)[::-1]),
        )
        best = [_best_cuts(*end, q) for end in ends]
        for g, at in enumerate(q):
            found = [
                (right, int(cut[g]), float(gain[g]), float(hits[g]), float(n[g]))
                for right, (cut, gain, hits, n) in zip((1, 0), best, strict=True)
            ]
            promised[g] = sum(gain for _, _, gain, _, _ in found)
            bets = [one for one in found if one[2] > 0]
            if len(bets) == 2:
                # Most mechanisms tell as much in one direction as in the other: one frequency has half the variance.
                (_, _, _, k, n), (_, _, _, m, o) = bets
                error = np.sqrt(k * (n - k) / n**3 + m * (o - m) / o**3 + 1e-9)
                if abs(k / n - m / o) < TOGETHER * error:
                    bets = [(right, cut, gain, k + m, n + o) for right, cut, gain, _, _ in bets]
            for right, cut, _, k, n in bets:
                share = (k + BELIEF) / (n + 2 * BELIEF)
                p = share - CAUTION * np.sqrt(share * (1 - share) / (n + 2 * BELIEF))
                if p <= at:
                    continue
                inside = slice(cut, None) if right else slice(0, size - cut)
                logs[inside, right, g] = np.log(p / at)
                logs[inside, 1 - right, g] = np.log((1 - p) / (1 - at))
        enough = PROMISE * np.log(levels.ones.sum() + levels.zeros.sum() + 1)
        return cls(logs=logs, staked=promised >= enough)

    def gains(self, level: Integers, coin: Integers) -> Floats:
        """The joint gain of a batch of outputs: ln of the factor, by claim."""
        counts = np.zeros(self.logs.shape[:2])
        np.add.at(counts, (level, coin), 1.0)
        return np.asarray(np.einsum("lb,lbg->g", counts, self.logs))

    def path(self, level: Integers, coin: Integers, claim: int) -> Floats:
        """ln of the factor of each output, for one claim."""
        return np.asarray(self.logs[level, coin, claim])


def _best_cuts(mine: Floats, other: Floats, q: Floats) -> tuple[Integers, Floats, Floats, Floats]:
    """The best past cut among events at one end, by claim: its gain, hits and outputs."""
    n = mine + other
    share = (mine + BELIEF) / (n + 2 * BELIEF)
    shrunk = share - CAUTION * np.sqrt(share * (1 - share) / (n + 2 * BELIEF))
    some = np.flatnonzero(shrunk > q.min(initial=1.0))
    gain = np.zeros((q.size, n.size))
    if some.size:
        at = np.minimum(q, np.nextafter(1.0, 0.0))[:, None]
        p = np.maximum(shrunk[None, some], at)
        part = n[some] * (share[some] * np.log(p / at) + (1 - share[some]) * np.log((1 - p) / (1 - at)))
        gain[:, some] = np.where((q < 1)[:, None], part, 0.0)
    cut = np.argmax(gain, axis=1)
    return cut, gain[np.arange(q.size), cut], mine[cut], n[cut]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBets:
    """Bets on one event at one epsilon for the claims of a ladder: the event is a run of levels from one end."""

    epsilon: float
    delta: Floats
    stake: Floats
    staked: Booleans
    cut: Integers
    """For each claim, the level where its event begins. The event contains all levels from there upwards
    (direction 1) or downwards (direction 0).
    """
    direction: int

    @classmethod
    def on(cls, levels: Levels, epsilon: float, delta: Floats, direction: int) -> CurveBets:
        """The event whose past excess over the claim is most significant, and the stake that fits it."""
        mine, other = (levels.ones, levels.zeros) if direction else (levels.zeros[::-1], levels.ones[::-1])
        grown = np.exp(epsilon)
        p = (np.cumsum(mine[::-1])[::-1] + BELIEF) / (mine.sum() + 2 * BELIEF)
        r = (np.cumsum(other[::-1])[::-1] + BELIEF) / (other.sum() + 2 * BELIEF)
        n = max(1.0, min(mine.sum(), other.sum()))
        excess = p[:, None] - grown * r[:, None] - delta[None, :]
        spread = (p * (1 - p) + grown**2 * r * (1 - r))[:, None]
        strength = excess / np.sqrt(spread / n)
        strength[0] = -np.inf  # the whole space is no event
        cut = np.argmax(strength, axis=0)
        claims = np.arange(delta.size)
        safe = excess[cut, claims] - CAUTION * np.sqrt(spread[cut, 0] / n)
        stake = np.clip(safe / (spread[cut, 0] + safe**2), 0.0, STAKE / (grown + delta))
        stake = np.where(np.isfinite(strength[cut, claims]), stake, 0.0)
        level = cut if direction else len(mine) - 1 - cut
        staked = strength[cut, claims] >= SIGNIFICANT
        return cls(epsilon=epsilon, delta=delta, stake=stake, staked=staked, cut=level, direction=direction)

    def _inside(self, level: Integers, claim: int) -> Floats:
        held = level >= self.cut[claim] if self.direction else level <= self.cut[claim]
        return np.asarray(held, dtype=np.float64)

    def path(self, ones: Integers, zeros: Integers, claim: int) -> Floats:
        """ln of the factor of each pair, for one claim."""
        mine, other = (ones, zeros) if self.direction else (zeros, ones)
        moved = (
            self._inside(mine, claim) - np.exp(self.epsilon) * self._inside(other, claim) - self.delta[claim]
        )
        return np.asarray(np.log1p(self.stake[claim] * moved))

    def gains(self, ones: Integers, zeros: Integers) -> Floats:
        """The joint gain of a batch of pairs, by claim."""
        mine, other = (ones, zeros) if self.direction else (zeros, ones)
        way = 1 if self.direction else -1
        held = (way * np.asarray(one)[:, None] >= way * self.cut[None, :] for one in (mine, other))
        a, b = held
        total = np.zeros(self.delta.size)
        for x in (0, 1):
            for y in (0, 1):
                count = np.count_nonzero((a == x) & (b == y), axis=0)
                total += count * np.log1p(self.stake * (x - np.exp(self.epsilon) * y - self.delta))
        return total


Bets = Sequence[CoinBets] | Sequence[CurveBets]


def moments(bets: int) -> Integers:
    """The indices of the outputs after which a batch looks at its wealth. The last output is one of them."""
    return np.unique(np.linspace(0, bets - 1, num=min(bets, MOMENTS)).astype(np.int64))


class Wealth:
    """The wealth of all bets against each claim of a ladder: a mixture of strategies and of their leader.

    A strategy bets on every pair of neighbours, and its wealth is the product over all of them. The leader of a
    pair is the strategy with the largest recent gain on it, if it gained or its past gain suffices.
    """

    def __init__(
        self, claim: AuditedClaim, *, strategies: int, pairs: int, fixed: Sequence[FixedBets] = ()
    ) -> None:
        self.claim = claim
        self.ladder = claim.ladder()
        self.main = (
            min(range(len(self.ladder)), key=lambda i: abs(self.ladder[i] - claim.value))
            if claim.parameter
            else 0
        )
        self.strategies = strategies
        self.lasting = np.zeros((pairs, strategies, len(self.ladder)))
        self.logs = np.zeros((strategies + 1, len(self.ladder)))
        self.fixed = fixed
        learning = 1 - FIXED if fixed else 1.0
        self.prior = np.log(learning * np.r_[np.full(strategies, (1 - LEADER) / strategies), LEADER])
        self.highest = np.full(len(self.ladder), -np.inf)
        self.path: list[tuple[int, float]] = [(0, 0.0)]
        self.outputs = 0
        self.crossed: int | None = None

    def value(self) -> Floats:
        """ln of the wealth, by claim."""
        learned = np.logaddexp.reduce(self.prior[:, None] + self.logs, axis=0)
        if not self.fixed:
            return np.asarray(learned)
        each = np.array([one.now for one in self.fixed])
        sure = np.logaddexp.reduce(each, axis=0) + math.log(FIXED / len(self.fixed))
        return np.asarray(np.logaddexp(learned, sure))

    def take(
        self,
        pair: int,
        gains: Floats,
        paths: Floats,
        staked: Booleans,
        *,
        cost: int,
        needed: float,
        at: Integers | None = None,
        fixed: Floats | None = None,
    ) -> bool:
        """One batch of a pair: gains by strategy and claim, paths by strategy and output; is the claim rejected?

        If `staked` (by strategy and claim) is false, the bet was only watched, to choose later leaders.

        `cost` is the number of outputs a bet, 1 or 2; `needed` the ln of the wealth that rejects. `fixed` is the ln of
        the wealth of this pair's fixed bets after the outputs numbered in `at`; these bets have been made already.
        """
        if at is None:
            at = moments(paths.shape[1])
        lasting = self.lasting[pair]
        choice = np.argmax(np.where(staked, lasting, lasting - UNSTAKED), axis=0)
        leads = np.take_along_axis(lasting, choice[None], axis=0)[0] > 0
        leads |= np.take_along_axis(staked, choice[None], axis=0)[0]
        claims = np.arange(len(self.ladder))
        first = choice[self.main]
        leader = paths[first] if leads[self.main] else np.zeros(paths.shape[1])
        real = paths * staked[:, self.main, None]
        run = self.logs[:, self.main, None] + np.cumsum(np.vstack([real, leader]), axis=1)
        course = np.logaddexp.reduce(self.prior[:, None] + run[:, at], axis=0)
        if fixed is not None:
            rest = [one.now[self.main] for i, one in enumerate(self.fixed) if i != pair]
            whole = np.logaddexp(fixed, np.logaddexp.reduce(rest)) if rest else fixed
            course = np.logaddexp(course, whole + math.log(FIXED / len(self.fixed)))
        over = np.flatnonzero(course >= needed)
        if over.size and self.crossed is None:
            self.crossed = self.outputs + cost * (int(at[over[0]]) + 1)
        for i, value in zip(at, course, strict=True):
            self.path.append((self.outputs + cost * (int(i) + 1), float(value)))
        self.outputs += cost * paths.shape[1]
        self.logs[:-1] += gains * staked
        self.logs[-1] += np.where(leads, gains[choice, claims], 0.0)
        self.lasting[pair] = FORGET * lasting + gains
        now = self.value()
        if course.size:
            now[self.main] = max(float(course.max()), now[self.main])
        self.highest = np.maximum(self.highest, now)
        return self.crossed is not None

    def rejected(self, needed: float) -> list[bool]:
        """For each claim, whether the wealth ever reached the amount that rejects."""
        return [bool(h >= needed) for h in self.highest]

    def lower(self, needed: float) -> float:
        """The end of the unbroken run of rejected claims from the bottom up; 0 if none is rejected."""
        last = 0.0
        for value, out in zip(self.ladder, self.rejected(needed), strict=True):
            if not out:
                break
            last = value
        return last
