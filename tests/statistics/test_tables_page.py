"""The page on tables runs, and its numbers from real histograms hold."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from support.documents import page, run
from support.shared import shared
from tacit.mechanisms import L1, Laplace, RangeTree, margin_errors
from tacit.noise import SeededSource
from tacit.statistics import nearest_histogram, whole_cells

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_page_runs_and_shows_true_numbers():
    assert run(page(PAGE), "docs/tables.md", shown=True).checked >= 14


def test_margins_of_sixteen_columns():
    best = [(1, "range-norm noise", 363), (2, "Gaussian noise", 17_700), (3, "Gaussian noise", 357_000)]
    for order, name, error in best:
        plan = margin_errors(sizes=[2] * 16, order=order, epsilon=1, delta=1e-6)[0]
        assert plan.name == name
        assert abs(plan.absolute / error - 1) < 0.01
    complete = margin_errors(sizes=[2] * 16, order=1, epsilon=1, delta=1e-6, complete=True)[0]
    assert abs(complete.absolute / 203 - 1) < 0.01


def test_trees_answer_ranges_of_real_histograms_better_than_cells():
    path = shared("data/dpbench/dpbench_1d.csv")
    with path.open() as lines:
        rows = list(csv.DictReader(lines))
    source = SeededSource(seed=3)
    laplace = Laplace.for_target(epsilon=0.1, sensitivity=L1(2))
    tree = RangeTree.plan(cells=4096, epsilon=0.1, neighbours="replace-one", absent=False)
    ends = np.sort(np.random.default_rng(0).integers(0, 4097, (500, 2)), axis=1)

    def sums(cells):
        total = np.concatenate([[0], np.cumsum(cells)])
        return total[ends[:, 1]] - total[ends[:, 0]]

    for name in ("ADULT", "HEPTH", "NETTRACE"):
        true = np.array([int(r[name]) for r in rows])
        n = int(true.sum())
        cell_errors, range_errors = np.zeros(2), np.zeros(3)
        for _ in range(5):
            noisy = laplace.release(true, source=source).values
            nearest = nearest_histogram(noisy, total=n)
            whole = whole_cells(tree.release(true, source=source).cells, branching=tree.branching, total=n)
            assert whole.min() >= 0
            assert whole.sum() == n
            cell_errors += [np.abs(x - true).sum() for x in (noisy, nearest)]
            range_errors += [np.abs(sums(x) - sums(true)).mean() for x in (noisy, nearest, whole)]
        assert cell_errors[1] < cell_errors[0]
        assert range_errors[2] < range_errors[0] / 2
        assert range_errors[2] < range_errors[1]
