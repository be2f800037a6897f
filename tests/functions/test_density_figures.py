"""The figures of chapter 3: their numbers by other ways, and the files on disk are those of the code."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from tacit.reproduce import reproduction
from tacit.reproduce.hall_3 import BANDWIDTH, SIZE, estimate, mixture, two_classes

ROOT = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.mark.parametrize("name", ["hall-3.1", "hall-3.2", "hall-3.3"])
def test_the_kept_tables_are_made_by_the_code(name: str, tmp_path: Path) -> None:
    made = reproduction(name).make()
    made.write_table(tmp_path / "made.csv")
    rows = [
        list(csv.reader(p.read_text().splitlines())) for p in (ROOT / f"{name}.csv", tmp_path / "made.csv")
    ]
    assert rows[0][0] == rows[1][0]
    for kept, now in zip(*[np.array(r[1:], dtype=float) for r in rows], strict=True):
        assert kept == pytest.approx(now, rel=1e-5, abs=1e-12)
    if name != "hall-3.1":
        return
    # By the eigenvectors of the kernel's matrix on a fine grid, with equal weights.
    at = (np.arange(1200) + 0.5) / 1200
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((at[:, None] - at[None, :]) / 0.05) ** 2) / 1200)
    values, psi = values[::-1], vectors[:, ::-1] * math.sqrt(1200)
    f = estimate(at, mixture(SIZE), 0.05)
    theta = psi.T @ f / 1200
    for m in (5, 10, 15):
        rest = ((f - psi[:, :m] @ theta[:m]) ** 2).mean()
        assert float(made.rows[m - 1][2]) == pytest.approx(rest, rel=0.01)
        assert float(made.rows[m - 1][1]) == pytest.approx(values[m - 1], rel=0.001)


def test_noise_of_the_kernel_figure_by_the_printed_formulas() -> None:
    from tacit.guarantees import GaussianDP

    for row in reproduction("hall-3.2").make().rows:
        n, sensitivity, printed, exact, ratio = map(float, row)
        assert sensitivity == pytest.approx(math.sqrt(2) / (n * math.sqrt(2 * math.pi) * BANDWIDTH), rel=1e-6)
        assert printed == pytest.approx(math.sqrt(2 * math.log(20)) * sensitivity)
        assert GaussianDP(mu=sensitivity / exact).delta(1.0) == pytest.approx(0.1, rel=1e-3)
        assert ratio == pytest.approx(exact / printed)


def test_the_sample_is_the_stated_mixture() -> None:
    """20,000 rows: means and spread of both parts, at 6.5 standard errors."""
    rows = mixture(20_000)
    assert rows.mean() == pytest.approx(0.5, abs=6.5 * math.sqrt(0.05 / 20_000))
    assert rows.var() == pytest.approx(0.05, abs=6.5 * 0.05 * math.sqrt(2 / 20_000))
    assert len(mixture(SIZE)) == 100


def test_the_classes_are_half_moons() -> None:
    X, y = two_classes(4000, 3)
    assert y.mean() == 0.5
    for label, middle in ((0, (0.0, 0.0)), (1, (1.0, 0.5))):
        away = np.hypot(*(X[y == label] - np.array(middle)).T)
        assert abs(float(np.median(away)) - 1) < 0.05
