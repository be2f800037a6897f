"""The reproductions: what they must reach, and that their losses are those of the definition."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.reproduce import reproduction
from tacit.reproduce.random_data import PROJECTIONS, Setting, losses, table


def test_two_dimensions() -> None:
    """Before any projection at most a twentieth of plain noise's median loss; (2) leaves two to six times, or none."""
    setting = Setting(counts=table(), epsilon=0.2, gamma=0.1, trials=60)
    assert (setting.rows, len(setting.counts), sum(c > 0 for c in setting.counts)) == (8000, 400, 16)
    found = losses(setting)
    middle = {key: float(np.median(values)) for key, values in found.items()}
    assert middle["random", "none"] <= middle["laplace", "none"] / 20
    # Expectations by hand: 400 and 16 cells of noise with mean size 1/sinh(0.1), over 8000 rows.
    each = 1 / np.sinh(0.1) / 8000
    assert found["laplace", "none"].mean() == pytest.approx(400 * each, rel=0.05)
    assert found["random", "none"].mean() == pytest.approx(16 * each, rel=0.25)
    for name in ("l2 (simplex)", "l1, the paper's (2)"):
        assert 2 < middle["laplace", name] / middle["random", name] < 6
    closed = "l1, the paper's (2), smallest cells first"
    assert 0.8 < middle["laplace", closed] / middle["random", closed] < 1.25
    # Also beside the best that random DP has: before any projection.
    assert middle["laplace", closed] < 1.5 * middle["random", "none"]


def test_projections_are_valid() -> None:
    noisy = np.array([-3.0, 5.0, 0.0, 12.0, 1.0])
    for name, project in PROJECTIONS.items():
        made = project(noisy, 10)
        if name != "none":
            assert made.min() >= 0
            assert made.sum() == pytest.approx(10)
    simplex = PROJECTIONS["l2 (simplex)"](noisy, 10)
    assert simplex.tolist() == [0.0, 1.5, 0.0, 8.5, 0.0]


def test_both_solutions_of_rule_2_are_as_near() -> None:
    names = ("l1, the paper's (2)", "l1, the paper's (2), smallest cells first")
    random = np.random.default_rng(3)
    for total in (1, 30, 200):
        noisy = np.rint(random.laplace(2, 9, 40))
        one, other = (np.abs(PROJECTIONS[n](noisy, total) - noisy).sum() for n in names)
        assert one == pytest.approx(other)


def test_the_referee_s_table() -> None:
    made = reproduction("random-referee").make()
    assert len(made.rows) >= 200
    for row in made.rows:
        gamma, worst, slack = float(row[3]), float(row[5]), float(row[7])
        assert worst <= gamma
        assert slack >= 0
        assert row[6] == "" or float(row[6]) <= worst
    assert sum(float(row[6] or 0) > 0 for row in made.rows) > 100  # most settings can fail at all
