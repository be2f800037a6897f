"""The two-party gap: what a joint curator errs, what two parties must err, and noise on every message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise import DiscreteLaplace, SeededSource
from tacit.report.look import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction
from tacit.risk.two_party import curator_squared_error, response_squared_error, two_party_floor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HERE", "make", "simulated_response"]

EPSILON = 1.0
ROWS = (16, 64, 256, 1024, 4096, 16384, 65536)
HOLDERS = (2, 5, 10, 20, 50, 100, 200)
DRAWS = 1 << 21
Row = tuple[float | str, ...]


def simulated_response(rows: int, epsilon: float, runs: int, seed: int) -> float:
    """Root mean squared error of the inner product when both publish their bits by randomised response."""
    source = SeededSource(seed=seed)
    keep, tilt = math.exp(epsilon) / (1 + math.exp(epsilon)), math.tanh(epsilon / 2)
    total = 0.0
    for _ in range(runs):
        words = source.words(2 * rows).reshape(2, rows)
        # One bit of a word is the party's own, 53 others say whether it is published as it is.
        x, y = (words & np.uint64(1)).astype(np.int64) * 2 - 1
        kept = np.where((words >> np.uint64(11)) * 2.0**-53 < keep, 1, -1)
        told = [x * kept[0], y * kept[1]]
        total += (tilt**2 * float(told[0] @ told[1]) - float(x @ y)) ** 2
    return math.sqrt(total / runs)


def make() -> Made:
    """Errors of the inner product and of the distance by n, and of a joint count by the number of holders."""
    pairs: list[Row] = []
    simulated = {n: simulated_response(n, EPSILON, max(30, min(400, DRAWS // n)), n) for n in ROWS}
    for hamming in (False, True):
        curator = math.sqrt(curator_squared_error(epsilon=EPSILON, hamming=hamming))
        for n in ROWS:
            floor = math.sqrt(two_party_floor(rows=n, epsilon=EPSILON, hamming=hamming))
            reached = math.sqrt(response_squared_error(rows=n, epsilon=EPSILON)) / (2 if hamming else 1)
            seen = simulated[n] / (2 if hamming else 1)
            what = "Hamming distance" if hamming else "inner product"
            pairs.append((what, n, curator, floor, reached, seen))
    one = math.sqrt(DiscreteLaplace(noise_scale=1 / EPSILON).variance)
    for k in HOLDERS:
        honest = max(1, math.ceil(0.9 * k) - k // 10)
        pairs.append(("count, k holders", k, one, one, math.sqrt(k / honest) * one, math.sqrt(k) * one))
    crossing = next(n for w, n, c, f, *_ in pairs if w == "inner product" and float(f) > float(c))
    return Made(
        columns=("question", "size", "curator", "floor", "protocol", "noisy_messages_or_simulated"),
        rows=tuple(pairs),
        notes=(
            "Root mean squared errors at epsilon = 1. For the inner product and the distance: the curator's noise; the "
            "computed lower bound for every two-party protocol that is private against everybody; what randomised "
            "response reaches; the same, simulated.",
            f"From n = {crossing} on no statistical two-party protocol reaches the curator, and the gap grows as the "
            "root of n.",
            "For a count over k holders: the curator; the same; a secure sum whose shares are sized for nine tenths "
            "that remain, less one tenth that colludes; and whole noise on every message, the root of k times as much.",
        ),
        draw=lambda: _draw(pairs),
    )


def _draw(rows: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, what in zip(axes[:2], ("inner product", "Hamming distance"), strict=True):
        n, curator, floor, reached, seen = (
            np.array([float(r[i]) for r in rows if r[0] == what]) for i in range(1, 6)
        )
        ax.fill_between(n, floor, floor.min() / 10, color=SHADE)
        ax.loglog(n, floor, color=MUTED, linewidth=2, label="no statistical protocol below")
        ax.loglog(n, reached, color=INK, linewidth=1, label="randomised response")
        ax.loglog(n, seen, "o", color=INK, markersize=4, label="the same, simulated")
        ax.loglog(n, curator, color=ACCENT, linewidth=2, label="one curator, or a secure protocol")
        ax.set_ylim(min(floor.min(), curator.min()) / 2, reached.max() * 2)
        label(ax, x="bits of each party", y="root mean squared error", title=what)
    k, curator, _, shares, noisy = (
        np.array([float(r[i]) for r in rows if r[0] == "count, k holders"]) for i in range(1, 6)
    )
    axes[2].loglog(k, noisy, color=INK, linewidth=1, label="noise on every message")
    axes[2].loglog(k, shares, color=ACCENT, linewidth=2, label="shares behind masks")
    axes[2].loglog(k, curator, color=MUTED, linewidth=2, label="one curator")
    label(axes[2], x="holders", y="standard deviation", title="a joint count")
    for ax in axes:
        ax.legend(fontsize=8, frameon=False)
    return figure


HERE = Reproduction(
    name="two-party-gap",
    title="What two parties must err without a cipher, and noise on every message",
    source="McGregor et al. 2010; Groce 2014, ch. 4; Hall 2012, sec. 1.4",
    make=make,
)
