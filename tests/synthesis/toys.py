"""Small tables, and second implementations from the definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np

import tacit
from tacit.sources.margins import counts_of
from tacit.sources.schema import Schema
from tacit.synthesis.schedule import schedule_of


def question(sizes, *, unit=None, **words):
    """Integer columns c0, c1, ... that are never missing, of these sizes."""
    schema = Schema({f"c{i}": tacit.integer(0, s - 1, missing=0) for i, s in enumerate(sizes)})
    return tacit.synthesis.synthetic_table(list(schema), **words).on(schema, unit or tacit.rows())


def margins_of(rows, sizes, margins):
    """Counts by looking at every row: margin -> flat list."""
    out = {}
    for margin in margins:
        table = dict.fromkeys(itertools.product(*(range(sizes[i]) for i in margin)), 0)
        for row in rows:
            table[tuple(int(row[i]) for i in margin)] += 1
        out[margin] = np.array(list(table.values()))
    return out


def chain(rows, seed=0):
    """Six columns that hang together: a chain with noise, and a pair that depends on both ends."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.7, a, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.6, b // 2, rng.integers(0, 2, rows))
    d = (a + rng.integers(0, 2, rows)) % 5
    e = np.where(rng.random(rows) < 0.8, (b + c) % 3, rng.integers(0, 3, rows))
    f = rng.integers(0, 2, rows)
    return np.column_stack([a, b, c, d, e, f]).astype(np.int32), (4, 4, 2, 5, 3, 2)


def everything(rows, sizes, asked):
    """All margins that a question names."""
    return counts_of([rows[:, i] for i in range(len(sizes))], sizes, asked.requests[0].margins)


def loud(asked, mu=1.0):
    """A schedule at a public total."""
    return schedule_of(asked, mu)


def total_variation(one, other):
    """Half the L1 distance of shares."""
    return float(np.abs(one / max(one.sum(), 1) - other / max(other.sum(), 1)).sum()) / 2


def joint(model):
    """The probabilities of every combination, by multiplying potentials: no junction tree, no messages."""
    shape = model.sizes
    log = np.zeros(shape)
    for margin, theta in model.potentials.items():
        log = log + theta.reshape([shape[i] if i in margin else 1 for i in range(len(shape))])
    for margin, zero in model.zeros.items():
        wide = np.asarray(zero).reshape([shape[i] if i in margin else 1 for i in range(len(shape))])
        log = np.where(np.broadcast_to(wide, shape), -math.inf, log)
    weights = np.exp(log - log.max())
    return weights / weights.sum()
