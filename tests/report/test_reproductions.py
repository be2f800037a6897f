"""What the reproductions rest on, from its definition: facts of the tables, noise, thresholds, sums of errors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tacit.mechanisms import SparseTable
from tacit.noise import SeededSource
from tacit.reproduce import hall_2 as dpbench
from tacit.reproduce import reproduction
from tacit.reproduce.base import spread
from tacit.reproduce.hall_2 import (
    MILDEW,
    MILDEW_CELLS,
    NLTCS,
    NLTCS_CELLS,
    Table,
    error_of,
    exact_errors,
    noise_of,
    simulated_errors,
)


def test_the_tables_are_those_of_the_sources() -> None:
    """n and q as the sources print them."""
    assert (sum(c * n for c, n in NLTCS.items()), sum(NLTCS.values()), NLTCS_CELLS) == (21574, 3152, 65536)
    assert (sum(c * n for c, n in MILDEW.items()), sum(MILDEW.values()), MILDEW_CELLS) == (70, 22, 64)


def test_noise_is_for_replaced_rows() -> None:
    """A replaced row moves two cells by 1 each: P(0) of discrete Laplace noise with scale 2/epsilon, by its formula."""
    epsilon, cells = 1.0, 200_000
    found = noise_of(epsilon).release(np.zeros(cells, dtype=np.int64), source=SeededSource(seed=3)).values
    q = math.exp(-epsilon / 2)
    share = (1 - q) / (1 + q)
    assert abs(float((found == 0).mean()) - share) < 6 * math.sqrt(share / cells)


def test_a_count_at_the_threshold_is_not_kept() -> None:
    """With next to no noise a count of exactly the threshold is an error of all of it."""
    epsilon, cells = 20.0, 1 << 16
    threshold = int(exact_errors(Table(name="t", cells=cells, counts={1: 4}), epsilon)["hall_threshold"])
    assert threshold >= 1
    at, above = (Table(name="t", cells=cells, counts={threshold + more: 4}) for more in (0, 1))
    _, errors = simulated_errors(at, epsilon, 3, SeededSource(seed=1))
    assert errors.tolist() == [4.0 * threshold] * 3
    assert simulated_errors(above, epsilon, 3, SeededSource(seed=1))[1].tolist() == [0.0] * 3


def test_errors_are_summed_over_kept_lost_and_invented_cells() -> None:
    """Cells 0, 1, 2 hold 5, 7, 9; released are 0 -> 6, 2 -> 9 and the empty cell 50 -> 4: 1 + 7 + 0 + 4."""
    released = SparseTable(
        keys=np.array([0, 2, 50]),
        values=np.array([6, 9, 4]),
        choice="by hand",
        threshold=1,
        publishable=False,
    )
    assert error_of(released, np.array([5, 7, 9])) == 12.0


def test_points_are_spread_evenly_in_their_logarithm() -> None:
    points = spread(0.05, 2.0, 41)
    assert (points[0], points[-1], len(points)) == (0.05, 2.0, 41)
    steps = np.diff(np.log(points))
    assert steps == pytest.approx([math.log(40) / 40] * 40)


def test_empty_cells_of_a_histogram_are_no_counts(tmp_path: Path) -> None:
    lines = [",".join(dpbench.NAMES), *(",".join([v] * len(dpbench.NAMES)) for v in ("0", "3", "3", "1"))]
    (tmp_path / "h.csv").write_text("\n".join(lines))
    for table in dpbench.read(tmp_path / "h.csv"):
        assert table.counts == {1: 1, 3: 2}
        assert (table.cells, table.occupied) == (4, 3)


def test_the_corner_nearest_to_zero_is_randomised_response() -> None:
    for epsilon, corner, at_0, at_1 in reproduction("hall-2.1").make().rows:
        if corner == 1:
            assert at_0 == pytest.approx(1 / (1 + math.exp(float(epsilon))))
            assert at_1 == pytest.approx(1 / (1 + math.exp(float(epsilon))))


def test_local_against_central() -> None:
    """Lecture 2: sqrt(n) / epsilon against 1 / epsilon, from the formulas; what is simulated agrees with the law."""
    from tacit.reproduce.lessons import make_lecture_2_local as make
    from tacit.reproduce.lessons import simulated

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.reproduce.lessons.RUNS", 2)  # the dots of the picture are drawn elsewhere
        made = make()
    for what, size, curator, local, _, other in made.rows:
        if what == "empty cell, by categories":
            assert float(other) == pytest.approx(100 * (math.e + 1) / (math.e - 1))
            continue
        n, e = (float(size), 1.0) if what == "count, by people" else (10_000.0, float(size))
        assert float(local) == pytest.approx(math.sqrt(n * math.exp(e)) / (math.exp(e) - 1))
        assert float(curator) == pytest.approx(math.sqrt(2 * math.exp(e)) / (math.exp(e) - 1))
        assert float(other) >= 2 * float(local)
    assert simulated(300, 1.0, 300, 5) == pytest.approx(16.619, rel=0.27)  # 6.5 standard deviations
