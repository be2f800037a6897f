"""Bets against claims whose wealth cannot grow, on average, while the claim is true (theorem `audit-betting`).

A claim is rejected when the wealth of a bet against it, begun at 1, reaches 1/level. By Ville's inequality that happens
to a true claim with a probability of at most the level, whenever one looks and however one goes on.

Pure epsilon: a fair coin B picks the neighbour, Z is the output, q = e^epsilon/(1 + e^epsilon). Betting on B = 1 pays
p/q if right and (1 - p)/(1 - q) if wrong, with a p >= q that was chosen before B is looked at; by symmetry for B = 0.
Curves delta(epsilon): one output X and Y of either neighbour, 1 + lambda (1_S(X) - e^epsilon 1_S(Y) - delta).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.audit.claimed import AuditedClaim
from tacit.audit.predictors import BELIEF, Levels, promise
from tacit.exact.arrays import Booleans, Floats, Integers
from tacit.exact.data_classes import dataclass

CAUTION = 0.5
"""Standard errors by which a frequency is drawn towards a coin before it is bet on."""
PROMISE = 0.5
"""A strategy bets on a pair of neighbours if its past gains are at least this many times ln of its outputs."""
SIGNIFICANT = 1.0
"""The same for a curve: standard errors by which the event exceeded the claim."""
STAKE = 0.75
"""The part of the wealth that a bet on a curve may lose at most."""
TOGETHER = 2.0
"""Standard errors below which the frequencies of two opposite events are taken for one."""
UNSTAKED = 3.0
"""By how much a strategy that is only watched must be ahead to lead."""
FORGET = 0.8
"""The share of a strategy's past gains that counts when the leader of the next stage is chosen."""
LEADER = 0.5
"""The leader's share of the wealth at the start; the other strategies share the rest."""
ROUNDING = 1 + 1e-9
"""Above all rounding errors of 10^6 bets."""

Factors = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinBets:
    """Bets on the coin for the claims of a ladder, from one predictor's levels."""

    logs: Floats
    """ln of the factor by level, coin and claim."""
    staked: Booleans
    """By claim: did the past promise enough for a bet? Other bets are only watched."""

    @classmethod
    def on(cls, levels: Levels, q: Floats) -> CoinBets:
        """Bets at the frequencies of the past, drawn towards a coin; no bet where these are below q."""
        n = levels.ones + levels.zeros
        share = (levels.ones + BELIEF) / (n + 2 * BELIEF)
        error = CAUTION * np.sqrt(share * (1 - share) / (n + 2 * BELIEF))
        up = (share - error)[:, None]
        down = (1 - share - error)[:, None]
        q = q[None, :]
        logs = np.zeros((len(n), 2, q.size))
        for p, right in ((up, 1), (down, 0)):
            bet = (p > q) & (p < 1)
            safe, at = np.where(bet, p, 0.5), np.where(bet, q, 0.5)
            logs[:, right] += np.log(safe / at)
            logs[:, 1 - right] += np.log((1 - safe) / (1 - at))
        enough = PROMISE * np.log(n.sum() + 1)
        staked = np.array([promise(levels, float(one)) >= enough for one in q[0]])
        return cls(logs=logs, staked=staked)

    @classmethod
    def on_events(cls, levels: Levels, q: Floats) -> CoinBets:
        """One event from each end of the levels, for each claim the one that would have gained most."""
        size = len(levels.ones)
        logs = np.zeros((size, 2, q.size))
        promised = np.zeros(q.size)
        ends = (
            (np.cumsum(levels.ones[::-1])[::-1], np.cumsum(levels.zeros[::-1])[::-1]),
            (np.cumsum(levels.zeros)[::-1], np.cumsum(levels.ones)[::-1]),
        )
        for g, at in enumerate(q):
            found = [(right, *_best_cut(*end, float(at))) for end, right in zip(ends, (1, 0), strict=True)]
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


def _best_cut(mine: Floats, other: Floats, q: float) -> tuple[int, float, float, float]:
    """Of events from one end, by cut: the one that would have gained most, its gain, its hits and its outputs."""
    n = mine + other
    if q >= 1:
        return 0, 0.0, float(mine[0]), float(n[0])
    share = (mine + BELIEF) / (n + 2 * BELIEF)
    p = np.maximum(share - CAUTION * np.sqrt(share * (1 - share) / (n + 2 * BELIEF)), q)
    gain = n * (share * np.log(p / q) + (1 - share) * np.log((1 - p) / (1 - q)))
    cut = int(np.argmax(gain))
    return cut, float(gain[cut]), float(mine[cut]), float(n[cut])


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBets:
    """Bets on one event at one epsilon for the claims of a ladder: the event is a run of levels from one end."""

    epsilon: float
    delta: Floats
    stake: Floats
    staked: Booleans
    cut: Integers
    """By claim: outputs from this level on (for direction 1), or up to it (for direction 0), are in the event."""
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
        return np.array([float(self.path(ones, zeros, g).sum()) for g in range(self.delta.size)])


Bets = Sequence[CoinBets] | Sequence[CurveBets]


class Wealth:
    """The wealth of all bets against each claim of a ladder: a mixture of strategies and of their leader.

    A strategy bets on every pair of neighbours, and its wealth is the product over all of them. The leader of a pair is
    the strategy that would have gained most there lately, if it gained or the past promises enough.
    """

    def __init__(self, claim: AuditedClaim, *, strategies: int, pairs: int) -> None:
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
        self.prior = np.log(np.r_[np.full(strategies, (1 - LEADER) / strategies), LEADER])
        self.highest = np.full(len(self.ladder), -np.inf)
        self.path: list[tuple[int, float]] = [(0, 0.0)]
        self.outputs = 0
        self.crossed: int | None = None

    def value(self) -> Floats:
        """ln of the wealth, by claim."""
        return np.asarray(np.logaddexp.reduce(self.prior[:, None] + self.logs, axis=0))

    def take(
        self, pair: int, gains: Floats, paths: Floats, staked: Booleans, *, cost: int, needed: float
    ) -> bool:
        """One batch of a pair: gains by strategy and claim, paths by strategy and output; is the claim rejected?

        Where `staked` (by strategy and claim) is false, the bet was only watched, to choose later leaders.

        `cost` is the number of outputs a bet, 1 or 2; `needed` the ln of the wealth that rejects.
        """
        lasting = self.lasting[pair]
        choice = np.argmax(np.where(staked, lasting, lasting - UNSTAKED), axis=0)
        leads = np.take_along_axis(lasting, choice[None], axis=0)[0] > 0
        leads |= np.take_along_axis(staked, choice[None], axis=0)[0]
        claims = np.arange(len(self.ladder))
        first = choice[self.main]
        leader = paths[first] if leads[self.main] else np.zeros(paths.shape[1])
        real = paths * staked[:, self.main, None]
        run = self.logs[:, self.main, None] + np.cumsum(np.vstack([real, leader]), axis=1)
        course = np.logaddexp.reduce(self.prior[:, None] + run, axis=0)
        over = np.flatnonzero(course >= needed)
        if over.size and self.crossed is None:
            self.crossed = self.outputs + cost * (int(over[0]) + 1)
        for i in np.unique(np.linspace(0, course.size - 1, num=min(course.size, 24)).astype(int)):
            self.path.append((self.outputs + cost * (int(i) + 1), float(course[i])))
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
        """By claim: did the wealth ever reach what rejects?"""
        return [bool(h >= needed) for h in self.highest]

    def lower(self, needed: float) -> float:
        """The end of the unbroken run of rejected claims from the bottom up; 0 if there is none."""
        last = 0.0
        for value, out in zip(self.ladder, self.rejected(needed), strict=True):
            if not out:
                break
            last = value
        return last
