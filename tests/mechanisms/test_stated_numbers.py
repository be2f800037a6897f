"""Numbers that the pages state of a mechanism, each computed again from its definition."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.mechanisms import Box, Contribution, KNormDifference, QuantileSelection

DOCS = Path(__file__).parents[2] / "docs"
MECHANISMS = (DOCS / "mechanisms.md").read_text()
(TIGHT,) = re.findall(r"^Tight: .*$", MECHANISMS, flags=re.M)
EXCEPTIONS = {"two": 2, "three": 3, "four": 4, "five": 5}


def test_every_exception_from_tightness_is_named() -> None:
    (number,) = re.findall(r"with (\w+) exceptions", TIGHT)
    named = ["`KNormDifference`", "`QuantileSelection`", "Smooth sensitivity", "Propose-test-release"]
    assert EXCEPTIONS[number] == len(named)
    assert [n for n in named if n not in TIGHT] == []


@pytest.mark.parametrize("high", [2, 10])
def test_what_replaced_contributions_reach_of_a_difference_of_norms(high: int) -> None:
    """A - B for contributions in [-1, high], one of them replaced: densities by quadrature, on many outputs."""
    mechanism = KNormDifference.for_target(epsilon=1, sensitivity=Contribution(1, Box(low=[-1], high=[high])))
    scale, step = float(mechanism.noise_scale), 0.02 * high
    t = np.arange(-60 * high, 60 * high, step)
    one = np.exp(-np.where(t > 0, t / high, -t) / scale)
    one /= one.sum() * step
    outputs = np.linspace(-13 * high, 13 * high, 53)
    here, moved = (
        np.array([np.interp(t - s, t, one) @ one * step for s in outputs - by]) for by in (0, 1 + high)
    )
    reached = float(np.abs(np.log(here / moved)).max())
    (stated,) = re.findall(rf"(\d+)% for \[-1, {high}\]", TIGHT)
    assert reached == pytest.approx(int(stated) / 100, abs=0.005)
    assert reached < 0.95 * mechanism.bound.epsilon


def test_what_neighbours_reach_of_three_choices() -> None:
    """All histograms of three bins with these counts, one row more: the three choices at their worst together."""
    (low, high) = re.findall(r"no neighbours reached more than (\d+)% to (\d+)%", TIGHT)[0]
    mechanism = QuantileSelection(bins=3, share=Fraction(1, 2), rank_sensitivity=Fraction(1, 2), epsilon=1)
    # A score moves by 1/2, and each choice has a third of epsilon: e^(-epsilon/3 distance).
    targets, worst = (0, -mechanism.reach, mechanism.reach), 0.0

    def laws(counts: tuple[int, ...]) -> list[np.ndarray]:
        ranks = np.concatenate([[0], np.cumsum(counts)]).astype(float)
        left, right = ranks[:-1].copy(), ranks[1:].copy()
        left[0], right[-1] = -np.inf, np.inf
        out = []
        for target in targets:
            rank = ranks[-1] / 2 + target
            weights = np.exp(-np.maximum(np.maximum(left - rank, rank - right), 0) / 3)
            out.append(np.log(weights / weights.sum()))
        return out

    for counts in itertools.product((0, 1, 2, 5, 10, 20, 40, 60), repeat=3):
        here = laws(counts)
        for k in range(3):
            gaps = [
                a - b
                for a, b in zip(here, laws(tuple(c + (i == k) for i, c in enumerate(counts))), strict=True)
            ]
            worst = max(worst, sum(float(g.max()) for g in gaps), sum(float((-g).max()) for g in gaps))
    assert int(low) / 100 <= worst <= int(high) / 100


def test_how_far_the_discrete_gaussian_lies_above_the_continuous_one() -> None:
    """At v = 1/4, s = 1: both curves from their definitions; what is stated is no less, and less than 0.1 more."""
    text = (DOCS / "theory" / "discrete-gaussian.md").read_text()
    (told,) = re.findall(
        r"factor of up to ([\d.]+) for epsilon below 6, ([\d.]+) below 10 and ([\d.]+) below 14", text
    )
    weights = np.exp(-2.0 * np.arange(-40, 41) ** 2)
    p = weights / weights.sum()

    def tail(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2))

    def times(e: float) -> float:
        discrete = math.fsum(np.maximum(p[1:] - math.exp(e) * p[:-1], 0))
        return discrete / (tail(e / 2 - 1) - math.exp(e) * tail(e / 2 + 1))

    for stated, top in zip(told, (6, 10, 14), strict=True):
        found = max(times(e) for e in np.linspace(0.01, top, 3000))
        assert found <= float(stated) < found + 0.1


def test_the_interval_of_a_share_can_be_the_whole_range() -> None:
    """Five rows under noise of scale 1000: some interval is all of 0..1, as the page says, and none is empty."""
    import pyarrow as pa

    from tacit.noise.source import SeededSource

    curator = tacit.Curator(
        pa.table({"x": [1, 2, 3, 4, 5]}), protect=tacit.rows(), schema={"x": tacit.integer(0, 9)},
        budget=tacit.Pure(epsilon=1.0), source=SeededSource(seed=2),
    )  # fmt: skip
    with curator:
        found = [
            curator.release(tacit.proportion("x > 4"), epsilon=0.001, key=str(i)).interval for i in range(3)
        ]
    assert all(0 <= low <= high <= 1 for low, high in found)
    assert (0, 1) in found
    assert "never the whole range" not in (DOCS / "theory" / "pivot-intervals.md").read_text()
