"""The failure rate of bounds under random differential privacy, counted over all samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Neighbours
from tacit.mechanisms import L1, Laplace, hall_threshold
from tacit.noise import SeededSource
from tacit.random_data import (
    Overlap,
    OverlapCount,
    OverlapHistogram,
    RandomHistogram,
    RandomProportion,
    Referee,
)
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction
from tacit.statistics import nearest_histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# L1 losses of histograms: plain Laplace noise, random differential privacy, and the plain-DP threshold.

METHODS = ("laplace", "random", "threshold")
METHOD_NAMES = {
    "laplace": "Laplace noise on every cell (DP)",
    "random": "exact empty cells (random DP)",
    "threshold": "threshold (2/epsilon) ln k (DP)",
}


def _clip(noisy: Floats, rows: int) -> Floats:
    """Negatives to 0, then scaled to the known total."""
    kept = np.maximum(noisy, 0.0)
    total = kept.sum()
    return kept * (rows / total) if total else np.full(noisy.shape, rows / noisy.size)


def _simplex(noisy: Floats, rows: int) -> Floats:
    """The nearest point in L2 with no negative entry and the known total."""
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - rows) / np.arange(1, noisy.size + 1)
    lift = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(noisy - lift, 0.0))


def _smallest_first(noisy: Floats, rows: int) -> Floats:
    """A nearest point in L1 too: the surplus is taken from the smallest cells first, a deficit goes to one."""
    kept = np.maximum(noisy, 0.0)
    order = np.argsort(kept, kind="stable")
    excess = float(kept.sum()) - rows
    if excess <= 0:
        kept[order[-1]] -= excess
        return np.asarray(kept)
    before = np.cumsum(kept[order]) - kept[order]
    kept[order] -= np.clip(excess - before, 0.0, kept[order])
    return np.asarray(kept)


PROJECTIONS: dict[str, Callable[[Floats, int], Floats]] = {
    "none": lambda noisy, rows: noisy,
    "clip and renormalise": _clip,
    "l2 (simplex)": _simplex,
    "l1, the paper's (2)": lambda noisy, rows: nearest_histogram(
        noisy.astype(np.int64), total=rows, norm="l1"
    ).astype(np.float64),
    "l1, the paper's (2), smallest cells first": _smallest_first,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A histogram, and the numbers of a release."""

    counts: tuple[int, ...]
    epsilon: float
    gamma: float
    trials: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.counts)

    @property
    def mechanism(self) -> RandomHistogram:
        """The release under random differential privacy."""
        return RandomHistogram(rows=self.rows, cells=len(self.counts), epsilon=self.epsilon, gamma=self.gamma)


def released(setting: Setting, seed: int) -> dict[str, Floats]:
    """One release by each method, in counts."""
    noise = Laplace.for_target(epsilon=setting.epsilon, sensitivity=L1(2))
    plain = np.asarray(noise.release(list(setting.counts), source=SeededSource(seed=2 * seed)).values)
    random = setting.mechanism.release(list(setting.counts), source=SeededSource(seed=2 * seed + 1)).counts
    level = hall_threshold(noise, cells=len(setting.counts))
    return {
        "laplace": plain.astype(np.float64),
        "random": np.asarray(random).astype(np.float64),
        "threshold": np.where(plain > level, plain, 0).astype(np.float64),
    }


def losses(setting: Setting) -> dict[tuple[str, str], Floats]:
    """The L1 loss of the proportions, for each method and projection and trial."""
    true = np.asarray(setting.counts, dtype=np.float64)
    found: dict[tuple[str, str], list[float]] = {(m, p): [] for m in METHODS for p in PROJECTIONS}
    for trial in range(setting.trials):
        for method, noisy in released(setting, trial).items():
            for name, project in PROJECTIONS.items():
                made = project(noisy, setting.rows)
                found[method, name].append(float(np.abs(made - true).sum()) / setting.rows)
    return {key: np.array(values) for key, values in found.items()}


# What the figures about random differential privacy share: the table, the notes, the picture.

RED = "#b42318"
COLOURS = {"laplace": RED, "random": ACCENT, "threshold": MUTED}
COLUMNS = (
    "setting", "method", "projection", "median", "mean", "low_5", "high_95", "laplace_over_this", "above_half"
)  # fmt: skip
PAPERS = "l1, the paper's (2)"


def made(named: Sequence[tuple[str, Setting]], *, grid: tuple[int, int] | None, notes: Sequence[str]) -> Made:
    """A table of all settings; the picture is of the first."""
    rows: list[tuple[float | str, ...]] = []
    every: list[dict[tuple[str, str], Floats]] = []
    for name, setting in named:
        found = losses(setting)
        every.append(found)
        for projection in PROJECTIONS:
            plain = float(np.median(found["laplace", projection]))
            for method in METHODS:
                values = found[method, projection]
                low, middle, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
                ratio = plain / middle if middle else float("inf")
                above = float((values > 0.5).mean())
                rows.append((name, method, projection, middle, float(values.mean()), low, high, ratio, above))
    first, setting = every[0], named[0][1]
    told = []
    for projection in PROJECTIONS:
        middles = {m: float(np.median(first[m, projection])) for m in METHODS}
        told.append(
            f"Projection {projection}: median L1 loss {middles['laplace']:.4g} for Laplace noise, "
            f"{middles['random']:.4g} for random DP ({middles['laplace'] / middles['random']:.1f} times less), "
            f"{middles['threshold']:.4g} for the plain-DP threshold."
        )
    return Made(
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(*told, *notes),
        draw=lambda: _draw(first, setting, grid, "none" if grid else PAPERS),
    )


def _draw(
    found: dict[tuple[str, str], Floats], setting: Setting, grid: tuple[int, int] | None, projection: str
) -> Figure:
    from matplotlib.figure import Figure

    one = {m: v / setting.rows for m, v in released(setting, 0).items()}
    true = np.asarray(setting.counts) / setting.rows
    figure = Figure(figsize=(11.6, 5.2), layout="constrained")
    alone = projection != "none"
    right = METHODS if alone else ("loss",) * len(METHODS)
    axes: dict[str, Any] = figure.subplot_mosaic(
        [[left, other] for left, other in zip("abc", right, strict=True)], width_ratios=[1, 1.5]
    )
    panels = (
        ("a", "true proportions", true),
        ("b", "Laplace noise (DP)", one["laplace"]),
        ("c", "random DP", one["random"]),
    )
    for name, title, values in panels:
        panel = axes[name]
        if grid is None:
            panel.bar(
                np.arange(values.size), values, color=INK if name == "a" else RED if name == "b" else ACCENT
            )
            panel.set_ylim(min(-0.1, 1.1 * float(one["laplace"].min())), 0.8)
            panel.axhline(0, color=MUTED, linewidth=0.6)
        else:
            panel.imshow(values.reshape(grid), cmap="Blues", vmin=0, vmax=float(true.max()))
            panel.set_xticks([])
            panel.set_yticks([])
        panel.set_title(title, color=INK, fontsize=9, loc="left")
    shown = {m: found[m, projection] for m in METHODS}
    top = max(float(v.max()) for v in shown.values())
    title = f"{setting.trials} releases, n = {setting.rows}, epsilon = {setting.epsilon:g}, gamma = {setting.gamma:g}"
    if alone:
        _losses(axes, shown, title, top)
    else:
        place = axes["loss"]
        edges = np.geomspace(max(1e-3, min(float(v.min()) for v in shown.values())) * 0.9, top * 1.05, 60)
        for method, values in shown.items():
            place.hist(values, bins=list(edges), color=COLOURS[method], alpha=0.7, label=METHOD_NAMES[method])
        place.set_xscale("log")
        place.legend(frameon=False, fontsize=9)
        label(place, title, "L1 loss, before any projection", "releases")
    return figure


def _losses(axes: dict[str, Any], shown: dict[str, Floats], title: str, top: float) -> None:
    """A histogram for each method, on equal axes, because in one picture they would hide each other."""
    edges = list(np.linspace(0, top * 1.02, 27))
    most = max(int(np.histogram(values, bins=edges)[0].max()) for values in shown.values())
    for number, (method, values) in enumerate(shown.items()):
        place = axes[method]
        place.hist(values, bins=edges, color=COLOURS[method])
        place.axvline(float(np.median(values)), color=INK, linewidth=1.2)
        place.axvline(0.5, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)))
        place.set_xlim(0, top * 1.02)
        place.set_ylim(0, 1.05 * most)
        last = number == len(shown) - 1
        what = "L1 loss after the paper's projection (2); line: median, dashes: 0.5" if last else ""
        label(place, title if not number else "", what, "releases")
        place.text(
            0.99, 0.9, METHOD_NAMES[method], transform=place.transAxes, ha="right", va="top", fontsize=9
        )


# Hall, Rinaldo, Wasserman 2011, Figure 1: 25 bins, two of them occupied, 500 rows.

SETTING = Setting(counts=(0,) * 8 + (300,) + (0,) * 8 + (200,) + (0,) * 7, epsilon=0.1, gamma=0.1, trials=100)
NOTES = (
    "The source leaves epsilon, gamma and the two counts open; gamma = 0.1 (the least with 2k <= gamma n) and 300 + "
    "200 rows are assumed. It projects by its rule (2) and says that plain noise occasionally loses more than 0.5: of "
    "100 projected releases 37 do at epsilon = 0.05, 1 does at 0.1, and none from 0.12 on. So epsilon = 0.1 is taken.",
    "Random DP is the weaker promise: the only inhabitant of a cell is not protected.",
)


def make_random_1() -> Made:
    """100 simulations."""
    return made([("two occupied cells", SETTING)], grid=None, notes=NOTES)


RANDOM_1 = Reproduction(
    name="random-1",
    title="Random differential privacy: a one-dimensional histogram",
    source="Hall, Rinaldo, Wasserman 2011, Figure 1",
    make=make_random_1,
)


# Hall, Rinaldo, Wasserman 2011, Figure 2: 400 bins in two dimensions, 16 of them occupied.

SIDE = 20


def table(*, small: int = 0, size: int = 0) -> tuple[int, ...]:
    """8000 rows: 16 cells in a square, and `small` cells of `size` rows each; the other rows are divided evenly."""
    counts = [0] * SIDE**2
    places = [SIDE * (8 + i) + 8 + j for i in range(4) for j in range(4)]
    others = [p for p in range(SIDE**2) if p not in places][: 3 * small : 3]
    for place in others:
        counts[place] = size
    rest = 8000 - small * size
    for i, place in enumerate(places):
        counts[place] = rest // 16 + (i < rest % 16)
    return tuple(counts)


def make_random_2() -> Made:
    """100 simulations of the figure's table, and of tables with small cells beside the 16."""
    named = [("16 cells", Setting(counts=table(), epsilon=0.2, gamma=0.1, trials=100))]
    for size in (5, 20, 40, 60, 80):
        counts = table(small=64, size=size)
        named.append((f"and 64 cells of {size}", Setting(counts=counts, epsilon=0.2, gamma=0.1, trials=40)))
    notes = (
        "The source leaves epsilon, gamma and n open; epsilon = 0.2, gamma = 0.1, n = 8000 fit its description (2k = "
        "gamma n).",
        "Projections to the known total take away most of what plain noise loses in empty cells: the nearest point in "
        "L2 narrows the gap from 25 times to less than 4 times, clipping and renormalising leaves 20 times. The "
        "paper's rule (2), least L1 distance, has many solutions, as what is too much may be taken from any cells: the "
        "one that is nearest in L2 too leaves less than 4 times, the one that takes from the smallest cells first "
        "nearly closes the gap. Here, plain noise and that projection do as well as random DP.",
        "Hall's verdict (5.5), that plain-DP methods for sparse histograms do as well, is right where the "
        "occupied cells are large: the threshold, (2/epsilon) ln k = 60 rows, loses none of the 16 cells. With 64 "
        "further cells of 5 rows it is better than random DP, which spends noise on each of them. It is wrong where "
        "many cells hold fewer rows than the threshold and more than the noise: of 64 further cells of 20 to 60 rows "
        "it loses most.",
    )
    return made(named, grid=(SIDE, SIDE), notes=notes)


RANDOM_2 = Reproduction(
    name="random-2",
    title="Random differential privacy: a two-dimensional histogram",
    source="Hall, Rinaldo, Wasserman 2011, Figure 2",
    make=make_random_2,
)


# Hall 2012, Figure 5.1: a very sparse histogram; the same experiment as Figure 1 of the paper.


def make_hall_5_1() -> Made:
    """The thesis prints no number at all: the paper's experiment, and how it changes with epsilon."""
    named = [
        (f"epsilon = {epsilon:g}", replace(SETTING, epsilon=epsilon))
        for epsilon in (0.1, 0.05, 0.2, 0.5, 1.0, 2.0)
    ]
    note = (
        "The thesis does not state k, n, epsilon or gamma for this figure; its caption and panels are those of the "
        "paper's Figure 1, whose numbers are taken. The table adds other epsilons."
    )
    return made(named, grid=None, notes=(note, *NOTES))


HALL_5_1 = Reproduction(
    name="hall-5.1",
    title="Random differential privacy: a very sparse histogram",
    source="Hall 2012, Figure 5.1",
    make=make_hall_5_1,
)


RANDOM_REFEREE_COLUMNS = ("mechanism", "n", "cells", "gamma", "law", "conditional", "iid", "slack")
BITS = tuple((40 - i, i) for i in (1, 2, 3, 5, 8, 13, 20, 30, 38))
CELLS = {
    2: ((1, 1), (9, 1), (39, 1), (19, 1)),
    3: ((1, 1, 1), (8, 1, 1), (18, 1, 1), (48, 1, 1), (4, 5, 1)),
    4: ((1, 1, 1, 1), (17, 1, 1, 1), (97, 1, 1, 1), (5, 5, 9, 1)),
}
Row = tuple[float | str, ...]


def make_random_referee() -> Made:
    """All settings, one row each."""
    rows = [*_proportions(), *_histograms(), *_surveys()]
    worst = min(float(row[7]) for row in rows)
    iid = max(float(row[6]) / float(row[3]) for row in rows if row[6] != "")
    notes = (
        f"{len(rows)} settings of mechanism, size, gamma and law of the rows. No failure probability is above gamma.",
        f"The least slack, gamma minus the worst share of relabellings, is {worst:.4g}; the largest failure "
        f"probability of a law is {iid:.2f} of its gamma.",
        "conditional: the worst share of relabellings of any multiset (it does not depend on the law). iid: the "
        "probability of failing for the law with these weights. Exact, printed as floats.",
    )
    return Made(columns=RANDOM_REFEREE_COLUMNS, rows=tuple(rows), notes=notes)


def _rows(name: str, referee: Referee, gamma: float, laws: tuple[tuple[int, ...], ...]) -> list[Row]:
    worst = referee.conditional.gamma
    slack = float(Fraction(gamma) - worst)
    found: list[Row] = []
    for weights in laws:
        iid = referee.iid([Fraction(w, sum(weights)) for w in weights])
        told = ":".join(map(str, weights))
        found.append((name, referee.rows, referee.cells, gamma, told, float(worst), float(iid), slack))
    return found


def _proportions() -> list[Row]:
    found: list[Row] = []
    for relation in Neighbours:
        for n in (10, 30, 80):
            for gamma in (0.05, 0.1, 0.3):
                m = RandomProportion(rows=n, epsilon=1, gamma=gamma, neighbours=relation)
                referee = Referee(m.breaks, rows=n, cells=2, neighbours=relation)
                found += _rows(f"proportion, {relation.value}", referee, gamma, BITS)
    return found


def _histograms() -> list[Row]:
    found: list[Row] = []
    for relation in Neighbours:
        for n, k, gamma in ((20, 3, 0.3), (24, 2, 0.4), (16, 4, 0.6), (30, 3, 0.25)):
            for small, sharp in ((False, False), (True, False), (True, True)):
                m = RandomHistogram(
                    rows=n,
                    cells=k,
                    epsilon=1,
                    gamma=gamma,
                    small_cells=small,
                    sharp=sharp,
                    neighbours=relation,
                )
                kind = "sharp" if sharp else "(5.3)" if small else "(5.2)"
                referee = Referee(m.breaks, rows=n, cells=k, neighbours=relation)
                found += _rows(f"histogram {kind}, {relation.value}", referee, gamma, CELLS[k])
    return found


def _surveys() -> list[Row]:
    found: list[Row] = []
    for least in (14, 13, 12):
        overlap = Overlap(rows=15, attacker_rows=40, least_overlap=least)
        for gamma in (0.3, 0.5):
            count = OverlapCount(overlap=overlap, epsilon=1, gamma=gamma)
            cells = OverlapHistogram(overlap=overlap, cells=2, epsilon=1, gamma=gamma)
            for name, breaks in (("count", count.breaks), ("histogram", cells.breaks)):
                worst = overlap.worst(breaks, cells=2).gamma
                slack = float(Fraction(gamma) - worst)
                found.append(
                    (f"survey {name}, overlap {least}", 15, 2, gamma, "any", float(worst), "", slack)
                )
    return found


RANDOM_REFEREE = Reproduction(
    name="random-referee",
    title="Random differential privacy: how often bounds fail",
    source="the definition of Hall, Rinaldo, Wasserman 2011; the table is ours",
    make=make_random_referee,
)
