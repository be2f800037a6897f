"""The figures for lessons show what the definitions give, computed here once more."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

import tacit
from support import independent as second
from tacit.accounting.events import GaussianEvent, LaplaceEvent
from tacit.errors import EmptyComposition
from tacit.report.figures import draw_curves
from tacit.reproduce import reproduction
from tacit.reproduce.lessons import crossing, noise, sampling

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"


def test_neighbours_are_within_the_definition() -> None:
    rows = [tuple(map(float, r)) for r in reproduction("lesson-neighbours").make().rows]
    for _, without, present, _ in rows:
        ratio = present / without
        assert min(abs(ratio - math.exp(s * 0.5)) for s in (1, -1)) < 1e-12
    assert 0.98 < math.fsum(r[1] for r in rows) < 1


def test_what_the_price_figure_compares() -> None:
    for epsilon in (0.01, 0.1, 1.0):
        n = crossing(epsilon)
        assert noise(n, epsilon) == pytest.approx(sampling(n))
        # Pr[|Laplace of scale 1/epsilon| > noise * n] = 5%
        assert math.exp(-epsilon * noise(n, epsilon) * n) == pytest.approx(0.05)
    assert math.erfc(sampling(100) / (0.5 / 10) / math.sqrt(2)) == pytest.approx(0.05, abs=1e-6)


def test_the_optimal_way_is_that_of_all_outcomes_of_coins() -> None:
    """The kept table against sums over binomials (Kairouz, Oh, Viswanath 2015): delta at its epsilon is 1e-6."""
    with (PAGES / "lesson-composition.csv").open(newline="") as file:
        rows = {int(r["releases"]): {k: float(v) for k, v in r.items()} for r in csv.DictReader(file)}
    p = math.exp(0.1) / (1 + math.exp(0.1))
    for k in (10, 40, 100):
        epsilon = rows[k]["optimal"]
        total = math.fsum(
            math.comb(k, j)
            * max(0.0, p**j * (1 - p) ** (k - j) - math.exp(epsilon) * p ** (k - j) * (1 - p) ** j)
            for j in range(k + 1)
        )
        assert total == pytest.approx(1e-6, rel=0.02)
        assert rows[k]["laplace"] <= epsilon <= rows[k]["advanced"] <= rows[k]["sum"]
    one = rows[1]["gaussian"]
    assert second.gaussian_hockey_stick(0.1 / math.sqrt(2), one) == pytest.approx(1e-6, rel=1e-3)


def test_the_kept_tables_are_made_anew() -> None:
    """What stands on the pages is what the commands write; composition takes seconds, and is compared in part above."""
    for name in ("lesson-neighbours", "lesson-price", "lesson-curves"):
        made = reproduction(name).make()
        with (PAGES / f"{name}.csv").open(newline="") as file:
            kept = list(csv.reader(file))
        assert kept[0] == list(made.columns)
        for old, new in zip(kept[1:], made.rows, strict=True):
            assert [float(v) for v in old] == pytest.approx([float(v) for v in new], rel=1e-6)


def test_several_curves_in_one_picture(tmp_path: Path) -> None:
    curves = {
        "Laplace": tacit.privacy_curve(LaplaceEvent(epsilon=1.0), points=9),
        "Gaussian": tacit.privacy_curve(GaussianEvent(noise_multiplier=1.0), points=9),
    }
    draw_curves(curves, tmp_path / "both.svg")
    assert (tmp_path / "both.svg").read_text().count("<path") > 10
    with pytest.raises(EmptyComposition):
        draw_curves({}, tmp_path / "none.png")
