"""Medians by the curator's default, OpenDP and diffprivlib: median absolute errors by the exact laws of their draws.

tacit: 500 draws of its choice for the public number of rows, at nine tenths of epsilon or more (the rest buys the
interval), each range named by its roundest number. The peers' laws are exact: OpenDP 0.16: noisy max with
exponential noise, which is permute-and-flip, over as many even candidates, all of epsilon. diffprivlib 0.6.6: the
exponential mechanism over the intervals between the rows with a sensitivity of 1, uniform inside. Tables are those of
defaults.py; groups count alike.

usage: quantile_laws.py; prints a table.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from defaults import EPSILONS, quantile, tables

import tacit
from tacit.curator.planning import choose
from tacit.curator.prices import price
from tacit.curator.quantile_choice import roundest
from tacit.noise import SeededSource
from tacit.statistics.quantiles import fine_column, step_at

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
CANDIDATES = (1 << 16) + 1
RUNS = 500
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)
# Heads are many or one: nodes crowd where the product of (1 - p + p u) is not yet 0, near u = 1.
U = 1 - (1 - (NODES + 1) / 2) ** 6
W = WEIGHTS / 2 * 6 * (1 - (NODES + 1) / 2) ** 5


def permute_and_flip(distance: Any, rate: float) -> Any:
    """P(t) = p_t * integral over u in [0, 1] of the product over s != t of (1 - p_s + p_s u), p = e^(-rate d)."""
    p = np.exp(-rate * distance)
    some = p > 1e-14
    held, out = p[some], np.zeros(p.shape)
    total = np.zeros(held.shape)
    for u, w in zip(U, W, strict=True):
        logs = np.log1p(-held * (1 - u))
        total += w * np.exp(logs.sum() - logs)
    out[some] = held * total
    return out / out.sum()


def middle(errors: Any, chances: Any) -> float:
    """The weighted median."""
    order = np.argsort(errors)
    at = np.searchsorted(np.cumsum(chances[order]), 0.5 * chances.sum())
    return float(errors[order][min(at, len(order) - 1)])


def ours(groups: list[Any], low: float, high: float, epsilon: float) -> float:
    """By RUNS draws of what `SparseRankSelection.release` draws for one share, its runs of ranges computed once."""
    schema = tacit.Schema(
        {"x": tacit.number(low, high), "g": tacit.category([str(i) for i in range(len(groups))])}
    )
    question = tacit.median("x", "g" if len(groups) > 1 else None).on(schema, tacit.rows())
    rows = sum(len(g) for g in groups)
    how: Any = choose(question, price(epsilon=epsilon), rows=rows)
    selection, source, errors = how.selection, SeededSource(seed=1), []
    column = fine_column(schema.measured("x"), selection.bins)
    for values in groups:
        put = np.clip(np.rint(values / float(column.spacing)), column.lowest, column.highest).astype(np.int64)
        key = (put - column.lowest) * selection.bins // (column.width + 1)
        at, counts = np.unique(key, return_counts=True)
        ranks = np.concatenate([[0], np.cumsum(counts)])
        runs = selection._runs(at, ranks, 0, selection.bins - 1)
        truth = quantile(values, 0.5)
        for _ in range(RUNS):
            k = selection._choose(runs, Fraction(len(values), 2), len(values), source)
            first, behind = (int(v) for v in step_at(question, selection.bins, np.array([k, k + 1])))
            value = roundest(first * column.spacing, (behind - 1) * column.spacing)
            errors.append(abs(float(value) - truth))
    return float(np.median(errors))


def opendp(groups: list[Any], low: float, high: float, epsilon: float) -> float:
    candidates, errors, chances = np.linspace(low, high, CANDIDATES), [], []
    for values in groups:
        ordered = np.sort(np.clip(values, low, high))
        under = np.searchsorted(ordered, candidates, side="left")
        above = len(ordered) - np.searchsorted(ordered, candidates, side="right")
        chances.append(
            permute_and_flip(np.abs(under - above) / 2 - np.min(np.abs(under - above)) / 2, epsilon)
        )
        errors.append(np.abs(candidates - quantile(values, 0.5)))
    return middle(np.concatenate(errors), np.concatenate(chances))


def diffprivlib(groups: list[Any], low: float, high: float, epsilon: float) -> float:
    errors, chances = [], []
    for values in groups:
        edges = np.concatenate([[low], np.sort(np.clip(values, low, high)), [high]])
        n, wide = len(values), np.diff(edges)
        law = wide * np.exp(-epsilon / 2 * np.abs(np.arange(n + 1) - n / 2))
        law /= law.sum()
        near = np.flatnonzero(law > 1e-9)
        for at in np.linspace(0.05, 0.95, 10):
            errors.append(np.abs(edges[near] + at * wide[near] - quantile(values, 0.5)))
            chances.append(law[near])
    return middle(np.concatenate(errors), np.concatenate(chances))


def main() -> None:
    print("| table | epsilon | tacit | OpenDP | diffprivlib | tacit / the better |")
    print("|---|---|---|---|---|---|")
    for name, (groups, low, high) in tables().items():
        for epsilon in EPSILONS:
            mine, *theirs = (f(groups, low, high, epsilon) for f in (ours, opendp, diffprivlib))
            ratio = mine / min(theirs) if min(theirs) else (1.0 if not mine else float("inf"))
            told = " | ".join(f"{v:.4g}" for v in (mine, *theirs))
            print(f"| {name} | {epsilon} | {told} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
