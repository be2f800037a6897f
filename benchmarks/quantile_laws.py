"""Medians and quartiles of the curator's defaults, beside OpenDP and diffprivlib, on six tables, by group and not.

Same rows, bounds, relation (add-or-remove, one row a unit) and epsilon; the number of rows is public, for tacit's
resolution and for nothing else. The error is the median over draws, groups and shares' cells of |value - the table's
quantile|.

    tacit        RUNS draws of the plain default, which pays for an interval, and of `interval=False`, which spends all
                 of epsilon on the values as the peers do; the latter also with `resolution=4000`
    OpenDP 0.16  its exact law: noisy max with exponential noise, which is permute-and-flip, over even candidates; with
                 4,001 and with 65,537 of them (a coarse grid may have a candidate beside the quantile: it is
                 compared with as coarse a grid of tacit's alone); quartiles by a third of epsilon each
    diffprivlib  0.6.6, its exact law: the exponential mechanism over the intervals between the rows with a sensitivity
                 of 1, uniform inside; quartiles by a third of epsilon each

Of tacit's intervals: the share that holds the table's quantile, the median width, that share of them which is the
whole range, and their width over that of the narrower of two other constructions with the same part of the price (two
more selections at shifted ranks, and a tree of counts over the whole range; WIDTHS draws).

usage: quantile_laws.py [RUNS] [TABLE]; prints a table. Tables are those of defaults.py.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from defaults import EPSILONS, SHARES, quantile, tables

import tacit
from tacit.curator.charging import CONFIDENCE, price
from tacit.curator.planning import choose
from tacit.mechanisms.cumulative import CumulativeTree
from tacit.mechanisms.quantiles import quantiles
from tacit.noise import SeededSource
from tacit.sources.axes import CountRows
from tacit.statistics.quantiles import fine_column, range_steps

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
GRIDS = (4001, (1 << 16) + 1)
WIDTHS = 100
LARGE, FAR = 20_000, 2000.0
"""From so many occupied ranges on, rows whose rank is so many 1 / epsilon from every quantile are put together."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
# Heads are many or one: nodes crowd where the product of (1 - p + p u) is not yet 0, near u = 1.
U = 1 - (1 - (NODES + 1) / 2) ** 6
W = WEIGHTS / 2 * 6 * (1 - (NODES + 1) / 2) ** 5


def permute_and_flip(distance: Any, rate: float) -> Any:
    """P(t) = p_t * integral over u in [0, 1] of the product over s != t of (1 - p_s + p_s u), p = e^(-rate d)."""
    p = np.exp(-rate * distance)
    some = p > 1e-14
    held, out = p[some], np.zeros(p.shape)
    # Candidates with the same chance are one term.
    chances, place, times = np.unique(held, return_inverse=True, return_counts=True)
    total = np.zeros(chances.shape)
    for u, w in zip(U, W, strict=True):
        logs = np.log1p(-chances * (1 - u))
        total += w * np.exp((times * logs).sum() - logs)
    out[some] = (chances * total)[place]
    return out / out.sum()


def middle(errors: Any, chances: Any) -> float:
    """The weighted median."""
    order = np.argsort(errors)
    at = np.searchsorted(np.cumsum(chances[order]), 0.5 * chances.sum())
    return float(errors[order][min(at, len(order) - 1)])


def lumped(at: Any, counts: Any, shares: tuple[float, ...], reach: float) -> tuple[Any, Any]:
    """The same histogram near the quantiles; rows whose rank is farther away are put together, gap by gap.

    A range so far away is chosen with a probability below e^-200, and no interval reaches it.
    """
    if at.size < LARGE:
        return at, counts
    upto = np.cumsum(counts)
    below = upto - counts
    near = np.zeros(at.size, dtype=bool)
    for share in shares:
        near |= (upto > share * upto[-1] - reach) & (below < share * upto[-1] + reach)
    part = np.cumsum(np.concatenate([[True], near[1:] | near[:-1]])) - 1
    return at[np.unique(part, return_index=True)[1]], np.bincount(part, weights=counts).astype(np.int64)


class Held:
    """The occupied ranges of all groups, as an engine gives them."""

    def __init__(self, keys: Any, counts: Any) -> None:
        self.values, self.keys = {CountRows(where=None): counts}, (keys,)


class Listed:
    """All ranges of all groups."""

    def __init__(self, counts: Any) -> None:
        self.values = {CountRows(where=None): counts}


class Case:
    """One table, its groups and its shares."""

    def __init__(self, groups: list[Any], low: float, high: float, shares: tuple[float, ...]) -> None:
        self.groups, self.low, self.high, self.shares = groups, low, high, shares
        self.schema = tacit.Schema(
            {"x": tacit.number(low, high), "g": tacit.category([str(i) for i in range(len(groups))])}
        )
        self.truth = np.array([[quantile(g, s) for s in shares] for g in groups])
        self.rows = sum(map(len, groups)) // len(groups)

    def draws(self, epsilon: float, runs: int, *, interval: bool, ranges: int | None = None) -> Any:
        """Errors of each group and share; cover, widths and whole ranges of the intervals."""
        by = "g" if len(self.groups) > 1 else None
        fine = {} if ranges is None else {"resolution": ranges}
        asked = tacit.query(
            tacit.quantiles("x", at=self.shares, by=by, **fine), **({} if interval else {"interval": False})
        ).statistic
        question = asked.on(self.schema, tacit.rows())
        if ranges is not None:
            return self._listed(question, epsilon, runs)
        how: Any = choose(question, price(epsilon=epsilon), rows=self.rows)
        column = fine_column(self.schema.measured("x"), how.selection.bins)
        keys, counts, exact = [], [], []
        for i, values in enumerate(self.groups):
            put = np.clip(np.rint(values / float(column.spacing)), column.lowest, column.highest).astype(
                np.int64
            )
            at, some = np.unique(
                (put - column.lowest) * how.selection.bins // (column.width + 1), return_counts=True
            )
            at, some = lumped(at, some, self.shares, FAR / epsilon)
            keys.append(at + i * how.selection.bins)
            counts.append(some)
            exact.append([quantile(put, s) * float(column.spacing) for s in self.shares])
        read = how.asked(question)
        cells: Any = [Held(np.concatenate(keys), np.concatenate(counts))]
        source, found = SeededSource(seed=17), []
        for _ in range(runs):
            one = how.read(read, how.run(read, cells, source=source), CONFIDENCE)
            found.append([np.reshape(v, self.truth.shape) for v in (one.value, one.low, one.high)])
        value, left, right = np.moveaxis(np.array(found), 1, 0)
        held = (left <= np.array(exact)) & (np.array(exact) <= right)
        share = 0 if how.counts is None else how.counts.epsilon / Fraction(epsilon)
        wide = right - left
        return np.abs(value - self.truth), (held, wide, wide >= 0.999 * (self.high - self.low), share)

    def _listed(self, question: Any, epsilon: float, runs: int) -> Any:
        """Errors where the ranges were asked for."""
        how, source = choose(question, price(epsilon=epsilon)), SeededSource(seed=17)
        column, steps = self.schema.measured("x"), range_steps(question, question.details["bins"])
        put = [
            np.clip(np.rint(g / float(column.spacing)), column.lowest, column.highest) for g in self.groups
        ]
        counts = np.array([np.histogram(p, steps)[0] for p in put])
        cells: Any = [Listed(counts if len(counts) > 1 else counts[0])]
        drawn = [how.read(question, how.run(question, cells, source=source), CONFIDENCE) for _ in range(runs)]
        return np.abs(np.array([np.reshape(d.value, self.truth.shape) for d in drawn]) - self.truth)

    def opendp(self, epsilon: float, j: int, count: int) -> float:
        share, candidates = self.shares[j], np.linspace(self.low, self.high, count)
        errors, chances = [], []
        rate = epsilon / len(self.shares) / (2 * max(share, 1 - share))
        for values, truth in zip(self.groups, self.truth[:, j], strict=True):
            ordered = np.sort(np.clip(values, self.low, self.high))
            under = np.searchsorted(ordered, candidates, side="left")
            above = len(ordered) - np.searchsorted(ordered, candidates, side="right")
            distance = np.abs((1 - share) * under - share * above)
            chances.append(permute_and_flip(distance - distance.min(), rate))
            errors.append(np.abs(candidates - truth))
        return middle(np.concatenate(errors), np.concatenate(chances))

    def diffprivlib(self, epsilon: float, j: int) -> float:
        share, errors, chances = self.shares[j], [], []
        for values, truth in zip(self.groups, self.truth[:, j], strict=True):
            edges = np.concatenate([[self.low], np.sort(np.clip(values, self.low, self.high)), [self.high]])
            n, wide = len(values), np.diff(edges)
            law = wide * np.exp(-epsilon / len(self.shares) / 2 * np.abs(np.arange(n + 1) - n * share))
            near = np.flatnonzero(law > 1e-9 * law.max())
            law = law[near] / law.sum()
            for at in np.linspace(0.05, 0.95, 10):
                errors.append(np.abs(edges[near] + at * wide[near] - truth))
                chances.append(law)
        return middle(np.concatenate(errors), np.concatenate(chances))

    def others(self, epsilon: float) -> Any:
        """Median widths of intervals by shifted selections and by a tree of counts, at this price, by share."""
        rng, bins, out = np.random.default_rng(3), 1 << 16, []
        edges = np.linspace(self.low, self.high, bins + 1)
        tree = CumulativeTree(bins=4096, l1=1, epsilon=Fraction(epsilon))
        source = SeededSource(seed=4)
        each = max(1, WIDTHS // len(self.groups))
        for values in self.groups:
            counts = np.histogram(np.clip(values, self.low, self.high), edges)[0]
            coarse = counts.reshape(4096, -1).sum(axis=1)
            read = [
                quantiles(
                    tree.release(coarse, source=source), shares=[Fraction(s) for s in self.shares],
                    edges=edges[::16],
                )
                for _ in range(each)
            ]  # fmt: skip
            trees = np.array([np.ravel(r.high) - np.ravel(r.low) for r in read])
            shifted = [self._shifted(counts, edges, s, epsilon, each, rng) for s in self.shares]
            out.append(np.minimum(np.median(trees, axis=0), [np.median(w) for w in shifted]))
        return np.median(out, axis=0)

    def _shifted(self, counts: Any, edges: Any, share: float, epsilon: float, runs: int, rng: Any) -> Any:
        """Widths of two selections by permute-and-flip at shifted ranks."""
        bins, ranks = len(counts), np.concatenate([[0], np.cumsum(counts)])
        rate = epsilon / (2 * len(self.shares)) / (2 * max(share, 1 - share))
        # Of K - 1 coins e^(-rate c) at most (K - 1) e^(-rate c) / 2 is the chance that one of them is chosen.
        reach = math.log((bins - 1) / (2 * 0.025)) / rate
        ends = []
        for target in (ranks[-1] * share - reach, ranks[-1] * share + reach):
            left, right = ranks[:-1].astype(float), ranks[1:].astype(float)
            left[0], right[-1] = -np.inf, np.inf
            chance = np.exp(-rate * np.maximum(np.maximum(left - target, target - right), 0))
            ends.append(
                np.array([int(rng.choice(np.flatnonzero(rng.random(bins) < chance))) for _ in range(runs)])
            )
        return edges[ends[1] + 1] - edges[ends[0]]


def ratio_of(errors: Any, best: float) -> tuple[float, float]:
    """Error over the best of the others, and two standard errors of it by resampling."""
    each = np.ravel(errors)
    if not best:
        return (1.0 if not np.median(each) else math.inf), 0.0
    again = np.random.default_rng(3).choice(each, (200, each.size))
    return float(np.median(each)) / best, 2 * float(np.median(again, axis=1).std()) / best


def main(runs: int, only: str) -> None:
    print(
        "| table | epsilon | share | without interval | default | 4,000 ranges | OpenDP 4,001 | OpenDP 65,537 "
        "| diffprivlib | without / best | 2 s.e. | default / best | 2 s.e. | 4,000 / 4,001 | 2 s.e. "
        "| cover | width | whole | width / narrower |"
    )
    print("|---" * 19 + "|")
    for name, (groups, low, high) in tables().items():
        if only not in name:
            continue
        for told, parts in ((", by group", groups), (", all", [np.concatenate(groups)])):
            for kind, shares in SHARES.items():
                case = Case(parts, low, high, shares)
                for epsilon in EPSILONS:
                    plain, _ = case.draws(epsilon, runs, interval=False)
                    default, (held, wide, whole, part) = case.draws(epsilon, runs, interval=True)
                    even = case.draws(epsilon, runs, interval=False, ranges=GRIDS[0] - 1)
                    narrow = case.others(epsilon * float(part))
                    for j, share in enumerate(shares):
                        peers = [case.opendp(epsilon, j, g) for g in GRIDS] + [case.diffprivlib(epsilon, j)]
                        mine = [np.median(e[:, :, j]) for e in (plain, default, even)]
                        ratios = [ratio_of(e[:, :, j], min(peers[1:])) for e in (plain, default)]
                        ratios.append(ratio_of(even[:, :, j], peers[0]))
                        width = float(np.median(wide[:, :, j]))
                        cells = [
                            f"{name}{told}: {kind}", f"{epsilon}", f"{share}",
                            *(f"{v:.4g}" for v in (*mine, *peers)),
                            *(f"{v:.2f}" for pair in ratios for v in pair),
                            f"{held[:, :, j].mean():.3f}", f"{width:.4g}", f"{whole[:, :, j].mean():.2f}",
                            f"{width / narrow[j]:.2f}",
                        ]  # fmt: skip
                        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 500, sys.argv[2] if sys.argv[2:] else "")
