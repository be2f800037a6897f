"""Tables with totals: every number is covered by the exact law of its noise; running totals at their best errors."""

from __future__ import annotations

import numpy as np
from simulate import Found, Line, noise

import tacit
from tacit.curator.assignments import assign_totals
from tacit.curator.charging import price
from tacit.curator.intervals import noise_by_part
from tacit.mechanisms.factorisation import GridFactor
from tacit.sources import Schema, category
from tacit.statistics import table

SCHEMA = Schema({"a": category([f"a{i}" for i in range(10)]), "b": category([f"b{i}" for i in range(20)])})


def covered(importance: dict[str, float] | None) -> Line:
    """Cells, both totals and the grand total of 10 x 20 cells."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        statistic = table("a", "b", importance=importance)
        question = statistic.on(SCHEMA, tacit.rows())
        laws = noise_by_part(assign_totals(question, price(epsilon=1)).noise)
        true = rng.poisson(2.5, (10, 20)).astype(np.float64)
        margins = {"cells": true, "a": true.sum(1), "b": true.sum(0), "total": np.array(true.sum())}
        truth = np.concatenate([true.ravel(), margins["a"], margins["b"], [true.sum()]])
        found = []
        for _ in range(runs):
            noisy = {
                p.name: margins[p.name]
                + noise(
                    rng, float(laws[p.name].distribution.noise_scale), max(margins[p.name].size, 1)
                ).reshape(margins[p.name].shape)
                for p in question.parts
            }
            _, low, high, _ = statistic.answers(question, laws, noisy, 0.95)
            inside = (low <= truth) & (truth <= high)
            found.append([inside[:200].mean(), inside[200:210].mean(), inside[210:230].mean(), inside[230]])
        # Each kind of number must be covered, not their mean: the least of the four shares is judged.
        return Found(covered=np.full(runs, np.array(found, dtype=np.float64).mean(axis=0).min()))

    words = "noise on the cells" if importance is None else "shares .55/.15/.15/.15"
    return Line(name=f"10 x 20 cells with totals, {words}", run=run, cover=0.95)


def running(steps: int, most: float) -> Line:
    """The largest standard deviation of a running total at mu = 1."""

    def run(rng: np.random.Generator, runs: int) -> Found:
        return Found(covered=np.ones(1), more={"std": np.array([GridFactor(steps=steps).largest_error])})

    return Line(name=f"running total of {steps} steps", run=run, at_most={"std": most})


LINES = [
    covered(None),
    covered({"cells": 0.55, "a": 0.15, "b": 0.15, "total": 0.15}),
    running(52, 2.148),
    running(365, 2.757),
    running(1000, 3.074),
]
