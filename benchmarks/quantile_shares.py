"""The part of a quantile's price that buys its interval: errors and widths of three constructions at several shares.

For a median under add-or-remove, at a share s of epsilon for the interval and 1 - s for the value:

    around      noisy counts over ranges that double their width away from the released value (what tacit does)
    shifted     two more selections, at ranks q N - c and q N + c, c what a selection among all bins stays within
    cumulative  a tree of counts over the whole range

All intervals cover the table's median with 95% for every table. Widths are medians over the runs, in percent of the
table's median; the error of the value is beside them, with that of s = 0 as 1.

usage: quantile_shares.py [RUNS]; prints a table.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

import tacit
from tacit.curator import quantile_choice
from tacit.curator.charging import CONFIDENCE, price
from tacit.mechanisms.cumulative import CumulativeTree
from tacit.mechanisms.quantiles import quantiles
from tacit.noise import SeededSource
from tacit.sources.axes import CountRows
from tacit.statistics.quantiles import joined, range_edges

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
SHARES = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 8), Fraction(1, 6), Fraction(1, 4))
SIZES = ((700, 0.1), (700, 0.5), (700, 1.0), (5000, 0.1), (5000, 0.5), (5000, 1.0), (100_000, 0.1))
LOW, HIGH = 0.0, 250_000.0


class Held:
    """A histogram as an engine gives it."""

    def __init__(self, counts: Any) -> None:
        self.values = {CountRows(where=None): counts}


def shifted(counts: Any, edges: Any, epsilon: float, runs: int, rng: Any) -> Any:
    """Widths of two selections by permute-and-flip at shifted ranks, epsilon / 2 each."""
    bins, rate, ranks = len(counts), epsilon / 2, np.concatenate([[0], np.cumsum(counts)])
    # Of K - 1 coins e^(-rate c) at most (K - 1) e^(-rate c) / 2 is the chance that one of them is chosen.
    reach = math.log((bins - 1) / (2 * 0.025)) / rate
    ends = []
    for target in (ranks[-1] / 2 - reach, ranks[-1] / 2 + reach):
        left, right = ranks[:-1].astype(float), ranks[1:].astype(float)
        left[0], right[-1] = -np.inf, np.inf
        chance = np.exp(-rate * np.maximum(np.maximum(left - target, target - right), 0))
        drawn = []
        for _ in range(runs):
            heads = np.flatnonzero(rng.random(bins) < chance)
            drawn.append(int(rng.choice(heads)))
        ends.append(np.array(drawn))
    return edges[ends[1] + 1] - edges[ends[0]]


def main(runs: int) -> None:
    print("| rows | epsilon | share | error | around | shifted | cumulative |")
    print("|---|---|---|---|---|---|---|")
    schema = tacit.Schema({"x": tacit.number(LOW, HIGH)})
    question = tacit.median("x", resolution=1 << 16).on(schema, tacit.rows())
    for rows, epsilon in SIZES:
        rng = np.random.default_rng(rows)
        values = rng.lognormal(10, 0.8, rows)
        edges = range_edges(question, question.details["bins"])
        counts = np.histogram(values, edges)[0]
        middle, errors = float(np.median(values)), {}
        for share in SHARES:
            quantile_choice.SHARES = (share,)  # type: ignore[misc]
            how: Any = quantile_choice.assign_quantiles(question, price(epsilon=epsilon))
            source, found = SeededSource(seed=5), []
            for _ in range(runs):
                one = how.read(question, how.run(question, [Held(counts)], source=source), CONFIDENCE)
                found.append((abs(float(one.value[0]) - middle), float(one.high[0] - one.low[0])))
            error, around = (float(np.median(v)) for v in np.array(found).T)
            errors[share] = error
            tree = CumulativeTree(bins=4096, l1=1, epsilon=Fraction(epsilon) * share)
            coarse, wide = joined(counts, 4096), []
            for _ in range(runs):
                noisy = quantiles(
                    tree.release(coarse, source=source), shares=[Fraction(1, 2)],
                    edges=range_edges(question, 4096),
                )  # fmt: skip
                wide.append(float(noisy.high[0] - noisy.low[0]))
            selected = shifted(counts, edges, epsilon * float(share), runs, rng)
            widths = [100 * float(np.median(w)) / middle for w in (around, selected, wide)]
            print(
                f"| {rows:,} | {epsilon} | 1/{1 / float(share):.0f} | {100 * error / middle:.2f}% | "
                + " | ".join(f"{w:.0f}%" for w in widths) + " |",
                flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
