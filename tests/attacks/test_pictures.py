"""What the pictures of attacks rest on: the bound, the kept figures, and that a picture can be drawn."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.reproduce import reproduction
from tacit.reproduce.attacks import Bar, draw_panels, most, on_classes, on_digits

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def kept(name: str) -> list[dict[str, str]]:
    with (KEPT / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_bound_is_that_of_the_best_guess(epsilon: float) -> None:
    guarantee = tacit.Guarantee(bound=tacit.Pure(epsilon=epsilon), unit=tacit.rows(neighbours="replace-one"))
    assert most(epsilon, 0.5) == pytest.approx(guarantee.best_guess(), rel=1e-12)
    # Randomised response on two values with prior g attains it: the posterior after the likelier answer.
    for g in (0.02, 0.3, 0.5, 0.9):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert most(epsilon, g) == pytest.approx(g * p / (g * p + (1 - g) * (1 - p)))


def test_no_share_from_a_curator_is_above_what_epsilon_allows() -> None:
    for b in [*on_digits(), *on_classes()]:
        if b.epsilon is not None:
            assert b.right <= b.bound + 6.2 * max(b.error, 0.5 / math.sqrt(b.tries)), b.attack


def test_the_kept_figures_are_those_that_are_promised() -> None:
    """Twenty seeds, 1,000 people and as many strangers, 200 releases: run once, kept, and compared with the claims."""
    counts = {float(r["noise_over_root_n"]): r for r in kept("attack-counts")}
    assert float(counts[0.1]["better"]) == 1
    assert float(counts[0.25]["better"]) >= 0.95
    assert float(counts[2.0]["better"]) <= 0.65
    assert float(counts[7.5]["better"]) <= 0.55
    assert float(counts[2.0]["bound"]) == pytest.approx(0.6914625, abs=1e-6)
    history = [r for r in kept("attack-histories") if r["release"] == "with dates"]
    at = next(r for r in history if float(r["eccentricity_or_epsilon"]) == 7)
    assert float(at["named_rightly_or_area"]) >= 0.95
    assert float(at["strangers_named"]) <= 0.01
    members = kept("attack-membership")
    assert all(float(r["area"]) > 0.99 for r in members if r["release"] == "exact")
    ours = next(r for r in members if r["release"] == "curator" and float(r["epsilon"]) == 0.1)
    assert int(ours["releases"]) == 200
    assert float(ours["area"]) <= 0.525 + 3 * float(ours["standard_error"])
    for row in kept("attack-before-after"):
        if row["bound"]:
            assert float(row["right"]) <= float(row["bound"]) + 4 * float(row["standard_error"])


def test_a_seed_of_the_kept_figure_is_as_it_was() -> None:
    from tacit.reproduce.attacks_on_counts import shares

    assert shares(0.1, 3) == {"linear program": 1.0, "least squares": 1.0}
    assert set(shares(7.5, 3)) == {"linear program", "least squares"}


def test_panels_are_drawn_and_named() -> None:
    for name in ("attack-before-after", "attack-counts", "attack-histories", "attack-membership"):
        assert reproduction(name).name == name
    titles = {f"attack {i}": f"title {i}" for i in range(12)}
    bars = [
        Bar(attack=a, release="", epsilon=1.0, right=0.6, tries=100, guessing=0.5, bound=0.73) for a in titles
    ]
    figure = draw_panels(bars, titles)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(titles.values())
    assert np.allclose([b.error for b in bars], math.sqrt(0.24 / 100))
