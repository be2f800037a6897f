"""Parts of one release, levels of one tree and groups of one workload each draw noise of their own."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.curator.assignments import Assignment, gaussian, laplace
from tacit.curator.charging import price
from tacit.mechanisms import RangeTree, Workload, choose, margin_matrices
from tacit.noise import SeededSource

SIZE = 40_000


def alike(first: np.ndarray, second: np.ndarray) -> float:
    """How often two noises are the same, place by place."""
    return float(np.mean(np.asarray(first) == np.asarray(second)))


def expected(scale: float) -> float:
    """sum_k Pr[X = k]^2 for independent discrete Laplace noise."""
    q = math.exp(-1 / scale)
    return float(((1 - q) / (1 + q)) ** 2 * (1 + 2 * q * q / (1 - q * q)))


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_parts_with_two_mechanisms_have_independent_noise(law: str) -> None:
    if law == "laplace":
        noise = tuple(laplace(((name,), 1, 1), Fraction(1, 2)) for name in ("a", "b"))
        same = expected(2.0)
    else:
        noise = tuple(gaussian(((name,), 1, 1), Fraction(1, 4)) for name in ("a", "b"))
        # The difference of two rounded Gaussians of 2 is 0 with about this probability.
        same = 1 / (2 * 2 * math.sqrt(math.pi))
    assignment = Assignment(noise=noise, price=price(epsilon=1), reason="a test")
    zeros = np.zeros(SIZE, dtype=np.int64)
    question: Any = SimpleNamespace(
        integers=lambda cells: {"a": zeros, "b": zeros},
        parts=(SimpleNamespace(name="a"), SimpleNamespace(name="b")),
    )
    parts = assignment.run(question, (), source=SeededSource(seed=1)).parts
    seen = alike(parts["a"], parts["b"])
    assert abs(seen - same) <= 6 * math.sqrt(same / SIZE) + 0.002
    assert abs(float(np.corrcoef(parts["a"].astype(float), parts["b"].astype(float))[0, 1])) < 6 / math.sqrt(
        SIZE
    )


def test_levels_of_a_tree_have_independent_noise() -> None:
    tree = RangeTree.plan(cells=4096, epsilon=1, branching=2)
    out = tree.release(np.zeros(4096, dtype=np.int64), source=SeededSource(seed=2))
    levels = [np.asarray(r.values, dtype=float) for r in out.levels if r is not None and r.values.size >= 512]
    assert len(levels) >= 3
    for first, second in itertools.pairwise(levels):
        size = min(first.size, second.size)
        assert abs(float(np.corrcoef(first[:size], second[:size])[0, 1])) < 6 / math.sqrt(size)


def test_groups_of_a_workload_have_independent_noise() -> None:
    """Two one-way margins of 8 keys each, released many times."""
    matrix = np.vstack(margin_matrices([8, 8], 1))
    found = [c for c in choose(Workload(matrix=matrix), epsilon=1) if len(c.strategy.blocks) > 1]
    assert found
    source, first, second = SeededSource(seed=3), [], []
    for _ in range(150):
        blocks = [
            r for r in found[0].release(np.zeros(64, dtype=np.int64), source=source).released if r is not None
        ]
        first.append(np.asarray(blocks[0].values[:8], dtype=float))
        second.append(np.asarray(blocks[1].values[:8], dtype=float))
    a, b = np.concatenate(first), np.concatenate(second)
    assert abs(float(np.corrcoef(a, b)[0, 1])) < 6 / math.sqrt(a.size)
