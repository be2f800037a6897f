"""Hall 2012, Figure 2.4: the same on the National Long Term Care Survey (p = 2^16, q = 3152, n = 21574)."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.errors import BadData
from tacit.exact.arrays import Floats
from tacit.exact.data_classes import dataclass
from tacit.mechanisms import (
    L1,
    L2,
    Gaussian,
    Laplace,
    SparseHistogram,
    SparseReleased,
    SparseTable,
    StableHistogram,
    hall_threshold,
)
from tacit.mechanisms.sparse_keys import tails
from tacit.noise import SeededSource
from tacit.noise.source import Source
from tacit.report.figures import ACCENT, INK, MUTED, SHADE, label
from tacit.reproduce.base import Made, Reproduction, spread
from tacit.risk import optimal_count, risk_body

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Counts of counts of two published tables: how many cells hold 1, 2, 3, ... rows. Facts, with their sources.
#
# The error of a rule that treats all cells alike depends on nothing else.

NLTCS_CELLS = 1 << 16
NLTCS: dict[int, int] = {
    1: 1729, 2: 499, 3: 233, 4: 116, 5: 94, 6: 72, 7: 48, 8: 48, 9: 33, 10: 27, 11: 20, 12: 14, 13: 17,
    14: 19, 15: 7, 16: 6, 17: 10, 18: 9, 19: 14, 20: 11, 21: 11, 22: 2, 23: 6, 24: 2, 25: 3, 26: 4, 27:
    4, 28: 2, 29: 3, 30: 3, 31: 1, 32: 1, 33: 3, 34: 2, 36: 1, 37: 4, 38: 1, 39: 2, 40: 3, 42: 1, 43: 2,
    44: 3, 45: 3, 48: 1, 52: 3, 54: 1, 59: 1, 60: 1, 61: 2, 62: 2, 63: 1, 64: 3, 66: 2, 67: 3, 71: 1,
    72: 1, 74: 1, 76: 1, 78: 1, 79: 2, 80: 1, 81: 1, 82: 1, 85: 1, 90: 1, 91: 2, 94: 1, 101: 1, 102: 1,
    104: 1, 106: 1, 107: 1, 108: 1, 120: 1, 122: 1, 123: 1, 153: 1, 164: 1, 176: 1, 182: 1, 188: 1, 195:
    1, 196: 1, 198: 1, 206: 1, 216: 1, 303: 1, 351: 1, 660: 1, 1107: 1, 3853: 1,
}  # fmt: skip
"""The National Long Term Care Survey, 16 yes-or-no questions: n = 21574, 3152 of 2^16 cells occupied.

Source: StatLib; Erosheva, Fienberg, Joutard 2007; counted from the copy of Lowd and Davis 2010 (all three parts).
"""

MILDEW_CELLS = 64
MILDEW: dict[int, int] = {1: 12, 2: 1, 3: 2, 4: 4, 7: 1, 11: 1, 16: 1}
"""Barley powdery mildew, 6 loci with 2 alleles: n = 70, 22 of 64 cells occupied.

Source: Christiansen and Giese 1991; Edwards 2000 (the "Edwards" data).
"""


# Errors of sparse histograms on tables known by their counts of counts: exact by formula if there is one.

CHOICES = ("false discovery rate", "least estimated risk", "posterior median")
BATCH = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The number of cells with each count, for a histogram with its cells in any order."""

    name: str
    cells: int
    counts: Mapping[int, int]

    @property
    def occupied(self) -> int:
        """The number of non-empty cells."""
        return sum(self.counts.values())

    @property
    def true(self) -> npt.NDArray[np.int64]:
        """The counts of the occupied cells."""
        return np.repeat(list(self.counts), list(self.counts.values())).astype(np.int64)


def noise_of(epsilon: float) -> Laplace:
    """Replace-one neighbours: L1 sensitivity 2."""
    return Laplace.for_target(epsilon=epsilon, sensitivity=L1(2))


def exact_errors(table: Table, epsilon: float) -> dict[str, float]:
    """The expected sum of absolute errors of fixed thresholds; at threshold 0 it is noise with negatives set to 0."""
    noise = noise_of(epsilon)
    law, values = tails(noise), np.array([0, *table.counts])
    times = np.array([table.cells - table.occupied, *table.counts.values()], dtype=np.float64)

    def total(threshold: int) -> float:
        return float(law.risk(threshold, values) @ times)

    hall = hall_threshold(noise, cells=table.cells)
    known = hall_threshold(noise, cells=table.cells, occupied=table.occupied)
    tried = np.unique(np.linspace(0, 2 * hall + 1, 400).astype(int))
    best = min((int(t) for t in tried), key=total)
    return {
        "laplace_and_clip": total(0),
        "hall_threshold": float(hall),
        "hall": total(hall),
        "known_q_threshold": float(known),
        "known_q": total(known),
        "best_threshold": float(best),
        "best_fixed": total(best),
    }


def simulated_errors(table: Table, epsilon: float, trials: int, source: Source) -> tuple[Floats, Floats]:
    """Errors of each trial, of noise with negatives set to 0 and of Hall's threshold, on the same noise."""
    noise = noise_of(epsilon)
    true = np.zeros(table.cells, dtype=np.int64)
    true[: table.occupied] = table.true
    hall = hall_threshold(noise, cells=table.cells)
    clip, sparse = [], []
    rows = max(1, BATCH // table.cells)
    for start in range(0, trials, rows):
        many = np.broadcast_to(true, (min(rows, trials - start), table.cells))
        noisy = noise.release(many, source=source).values
        clip.append(np.abs(np.maximum(noisy, 0) - true).sum(axis=1))
        sparse.append(np.abs(np.where(noisy > hall, noisy, 0) - true).sum(axis=1))
    return np.concatenate(clip).astype(np.float64), np.concatenate(sparse).astype(np.float64)


def error_of(table: SparseTable, true: npt.NDArray[np.int64]) -> float:
    """The sum of absolute errors where the first keys are the occupied cells, and all others are empty."""
    here = np.asarray(table.keys < true.size)
    kept = np.zeros(true.size)
    kept[table.keys[here].astype(np.int64)] = table.values[here]
    return float(np.abs(kept - true).sum() + np.abs(table.values[~here]).sum())


def chosen_errors(table: Table, epsilon: float, trials: int, seed: int) -> dict[str, Floats]:
    """Errors of each trial for the choices that are made after the noise."""
    mechanism = SparseHistogram.with_rule(noise=noise_of(epsilon), domain=table.cells, rule="floor")
    true, source = table.true, SeededSource(seed=seed)
    errors: dict[str, list[float]] = {name: [] for name in CHOICES}
    for _ in range(trials):
        out: SparseReleased = mechanism.release(np.arange(true.size), true, source=source)
        for name, kept in zip(
            CHOICES, (out.by_false_discovery(), out.by_estimated_risk(), out.shrunk()), strict=True
        ):
            errors[name].append(error_of(kept, true))
    return {name: np.array(found) for name, found in errors.items()}


# The figure that Hall 2.3 and 2.4 share: errors over many trials at epsilon = 1, and mean errors over a sweep.

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
RED = "#b42318"
COLUMNS = (
    "epsilon",
    "laplace_and_clip",
    "hall",
    "hall_threshold",
    "known_q",
    "known_q_threshold",
    "best_fixed",
    "best_threshold",
    *(c.replace(" ", "_") for c in CHOICES),
)
Row = tuple[float | str, ...]


def made(table: Table, *, trials: int, chosen_trials: int, sweep_trials: int, notes: Sequence[str]) -> Made:
    """The sweep as a table; notes on what was found at epsilon = 1; the picture."""
    clip, sparse = simulated_errors(table, 1.0, trials, SeededSource(seed=23))
    rows: list[Row] = []
    at_one: dict[str, float] = {}
    for epsilon in EPSILONS:
        exact = exact_errors(table, epsilon)
        chosen = chosen_errors(table, epsilon, chosen_trials if epsilon == 1.0 else sweep_trials, seed=24)
        means = {name: float(found.mean()) for name, found in chosen.items()}
        if epsilon == 1.0:
            at_one = {**exact, **means}
        rows.append((epsilon, *(exact[c] for c in COLUMNS[1:8]), *(means[c] for c in CHOICES)))
    best = min(CHOICES, key=lambda c: at_one[c])
    told = (
        f"At epsilon = 1, mean sum of absolute errors over {trials:,} trials: {clip.mean():,.1f} for Laplace noise "
        f"with negatives set to 0, {sparse.mean():,.1f} for the threshold {at_one['hall_threshold']:.0f}; exactly "
        f"{at_one['laplace_and_clip']:,.1f} and {at_one['hall']:,.1f}, a factor of "
        f"{at_one['laplace_and_clip'] / at_one['hall']:.2f}.",
        f"The best fixed threshold, found with the truth, is {at_one['best_threshold']:.0f}, with "
        f"{at_one['best_fixed']:,.1f}; choices made after the noise ({chosen_trials} trials): "
        + ", ".join(f"{c} {at_one[c]:,.1f}" for c in CHOICES)
        + f". The best of them is the {best}.",
        *notes,
    )
    return Made(columns=COLUMNS, rows=tuple(rows), notes=told, draw=lambda: _draw(clip, sparse, rows, table))


def _draw(clip: Floats, sparse: Floats, rows: list[Row], table: Table) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.6, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    low, high = float(min(sparse.min(), clip.min())), float(max(sparse.max(), clip.max()))
    # Errors are integers: bins of whole width, so that none holds one more of them than the next.
    width = max(1, round((high - low) / 80))
    edges = np.arange(low - 0.5, high + width, width)
    left.hist(
        clip, bins=list(edges), color=RED, alpha=0.75, label="Laplace noise, negatives to 0", density=True
    )
    left.hist(
        sparse, bins=list(edges), color=ACCENT, alpha=0.75, label="threshold (2/epsilon) ln p", density=True
    )
    left.set_yticks([])
    left.legend(frameon=False, loc="upper center", fontsize=9)
    label(
        left,
        f"{table.name}, epsilon = 1: {clip.size:,} trials",
        "sum of absolute errors",
        "share of the trials",
    )
    e = [float(r[0]) for r in rows]
    for column, text, color, thick in (
        (1, "Laplace noise, negatives to 0", RED, 2.0),
        (2, "threshold (2/epsilon) ln p", ACCENT, 2.0),
        (6, "best threshold, found with the truth", MUTED, 1.5),
        (10, "posterior median", INK, 1.5),
    ):
        style = (0, (4, 3)) if column == 6 else (0, (1, 2)) if column == 10 else "-"
        values = [float(r[column]) for r in rows]
        right.plot(
            e, values, color=color, linewidth=thick, linestyle=style, label=text, marker="o", markersize=3
        )
    total = sum(c * n for c, n in table.counts.items())
    right.axhline(total, color=MUTED, linewidth=0.8)
    right.annotate(
        "all zeros", (e[0], total), xytext=(2, 3), textcoords="offset points", color=MUTED, fontsize=8
    )
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xticks(e, [f"{x:g}" for x in e])
    right.minorticks_off()
    right.legend(frameon=False, loc="upper right", fontsize=9)
    label(right, "Mean errors against epsilon", "epsilon", "sum of absolute errors")
    return figure


# Errors of every way to release a sparse histogram on seven histograms of DPBench (Hay et al. 2016).

NAMES = ("HEPTH", "INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS", "ADULT")
DPBENCH_EPSILONS = (0.01, 0.1, 1.0)
DELTA = 1e-6
TRIALS = 20
FILE = "data/dpbench/dpbench_1d.csv"
DPBENCH_COLUMNS = (
    "histogram",
    "epsilon",
    "laplace_and_clip",
    "hall",
    "known_q",
    *(c.replace(" ", "_") for c in CHOICES),
    "best_fixed",
    "stability",
    "gaussian",
    "all_zeros",
)


def find() -> Path:
    """The file in a folder `shared` beside the project, or above the working folder."""
    for place in (*Path.cwd().parents, *Path(__file__).resolve().parents):
        if (place / "shared" / FILE).exists():
            return place / "shared" / FILE
    raise BadData(
        source=f"../shared/{FILE}",
        problem="is not there, so that this reproduction is skipped",
        hint="the data are not part of the project; docs/reproduction/dpbench.md has the table",
    )


def read(path: Path) -> list[Table]:
    """Counts of counts of the seven histograms; 4096 cells each."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for name in NAMES:
        counts = Counter(int(r[name]) for r in rows)
        counts.pop(0, None)
        found.append(Table(name=name, cells=len(rows), counts=dict(sorted(counts.items()))))
    return found


def _with_delta(table: Table, epsilon: float) -> tuple[float, float]:
    """Expected errors for (epsilon, 1e-6): the stability threshold, and Gaussian noise with Hall's kind of one."""
    values = np.array(list(table.counts))
    times = np.array(list(table.counts.values()), dtype=np.float64)
    stable = StableHistogram.for_target(epsilon=epsilon, delta=DELTA, sensitivity=L1(2))
    first = float(tails(stable.noise).risk(stable.threshold, values) @ times)
    normal = Gaussian.for_target(epsilon=epsilon, delta=DELTA, sensitivity=L2.root(2), dimension=table.cells)
    t, law = hall_threshold(normal, cells=table.cells), tails(normal)
    second = float(law.risk(t, values) @ times + (table.cells - table.occupied) * law.risk(t, 0))
    return first, second


def make_dpbench() -> Made:
    """Mean sums of absolute errors; exact for fixed thresholds, over 20 trials for choices made after the noise."""
    rows: list[tuple[float | str, ...]] = []
    for table in read(find()):
        for epsilon in DPBENCH_EPSILONS:
            exact = exact_errors(table, epsilon)
            chosen = chosen_errors(table, epsilon, TRIALS, seed=25)
            zeros = float(sum(c * n for c, n in table.counts.items()))
            rows.append(
                (
                    table.name, epsilon, exact["laplace_and_clip"], exact["hall"], exact["known_q"],
                    *(float(chosen[c].mean()) for c in CHOICES), exact["best_fixed"],
                    *_with_delta(table, epsilon), zeros,
                )
            )  # fmt: skip
    wins = Counter(DPBENCH_COLUMNS[2 + int(np.argmin([float(x) for x in r[2:8]]))] for r in rows)
    return Made(
        columns=DPBENCH_COLUMNS,
        rows=tuple(rows),
        notes=(
            "Replace-one neighbours, noise scale 2/epsilon; sums of absolute errors over 4096 cells. The last columns "
            f"hold for (epsilon, {DELTA:g}).",
            "Least error of the pure choices that do not need the truth (known_q is told q): "
            + ", ".join(f"{name} {n} times" for name, n in wins.most_common())
            + f", of {len(rows)}.",
        ),
    )


DPBENCH = Reproduction(
    name="dpbench",
    title="Sparse histograms on seven DPBench histograms",
    source="histograms of Hay et al. 2016; the table is ours",
    make=make_dpbench,
)


# Hall 2012, Figure 2.1: the risk body of a count on 0..1 for four epsilons.

HALL_2_1_EPSILONS = (0.05, 0.5, 1.0, 5.0)


def make_hall_2_1() -> Made:
    """The corners of each body; the one nearest to 0 is the minimax rule."""
    bodies = {e: risk_body(epsilon=e) for e in HALL_2_1_EPSILONS}
    rows = tuple((e, i, float(r[0]), float(r[1])) for e, body in bodies.items() for i, r in enumerate(body))
    minimax = ", ".join(f"{1 / (1 + 2.718281828459045**e):.4f} at epsilon = {e:g}" for e in HALL_2_1_EPSILONS)
    return Made(
        columns=("epsilon", "corner", "risk_at_0", "risk_at_1"),
        rows=rows,
        notes=(
            "The body is the square's image: corners (1, 0) and (0, 1) are the constant answers, the other two "
            "are randomised response and its opposite.",
            f"The minimax risk is 1/(1 + e^epsilon), the corner nearest to 0: {minimax}.",
            "The source prints no numbers; the shapes agree with its description: the body grows with epsilon, "
            "and its lower left edges are the Bayes rules.",
        ),
        draw=lambda: _draw_hall_2_1(bodies),
    )


def _draw_hall_2_1(bodies: Mapping[float, object]) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 3.6), layout="constrained")
    axes = figure.subplots(1, 4, sharex=True, sharey=True)
    for ax, (e, body) in zip(axes, bodies.items(), strict=True):
        corners = np.asarray(body)
        # Around the body: constant 1, randomised response, constant 0, its opposite.
        loop = np.vstack([corners, corners[:1]])
        ax.fill(loop[:, 0], loop[:, 1], color=SHADE)
        ax.plot(loop[:, 0], loop[:, 1], color=MUTED, linewidth=1)
        ax.plot(corners[:3, 0], corners[:3, 1], color=ACCENT, linewidth=2)
        ax.plot(corners[1, 0], corners[1, 1], "o", color=INK, markersize=5)
        high = corners[1, 0] > 0.2
        ax.annotate(
            f"minimax {corners[1, 0]:.3f}",
            corners[1],
            xytext=(0.04, 0.04) if high else (0.16, 0.08),
            color=INK,
            fontsize=9,
        )
        label(ax, f"epsilon = {e:g}", "risk at count 0", "risk at count 1" if ax is axes[0] else "")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75], ["0", "", "0.5", ""])
        ax.set_aspect("equal")
    return figure


HALL_2_1 = Reproduction(
    name="hall-2.1",
    title="Risk bodies of a count on 0..1",
    source="Hall 2012, Figure 2.1",
    make=make_hall_2_1,
)


# Hall 2012, Figure 2.2: the minimax risk of a count on 0..70 against epsilon, beside 1/epsilon.

N = 70
HALL_2_2_EPSILONS = tuple(sorted({*(round(e, 6) for e in spread(0.05, 2.0, 41)), 0.1, 0.2, 0.3, 0.5, 1.0}))


def make_hall_2_2() -> Made:
    """Risk and certified lower bound at each epsilon, with the curves 1/epsilon and 1/sinh(epsilon)."""
    rows: list[tuple[float | str, ...]] = []
    for e in HALL_2_2_EPSILONS:
        proof = optimal_count(n=N, epsilon=e).certificate
        rows.append((e, proof.risk, proof.lower_bound, 1 / e, 1 / math.sinh(e), N / 2))
    at = {float(r[0]): float(r[1]) for r in rows}
    return Made(
        columns=("epsilon", "minimax_risk", "lower_bound", "one_over_epsilon", "one_over_sinh", "half_of_n"),
        rows=tuple(rows),
        notes=(
            f"The risk lies below 1/epsilon, as the source says: {at[1.0]:.6f} at epsilon = 1, where "
            f"1/sinh(1) = {1 / math.sinh(1):.6f}.",
            f"The source says that n = 70 is large enough for every epsilon shown. It is for epsilon from about "
            f"0.5 on; at 0.1 the risk is {at[0.1]:.4f} for n = 70, and 9.98 in the limit of large n. Below that the "
            f"short range, not 1/epsilon, decides: the risk stays under n/2 = 35.",
            "The limit of large n is 1/sinh(epsilon), which is 1/epsilon - epsilon/6 + ...: this is the effect "
            "for small epsilon that the source could not explain.",
            "The source prints no numbers. Ours come with a lower bound that agrees to better than a millionth.",
        ),
        draw=lambda: _draw_hall_2_2(rows),
    )


def _draw_hall_2_2(rows: list[tuple[float | str, ...]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.8), layout="constrained")
    ax = figure.subplots()
    e = [float(r[0]) for r in rows]
    ax.plot(
        e, [float(r[3]) for r in rows], color=MUTED, linestyle=(0, (4, 3)), linewidth=1.5, label="1/epsilon"
    )
    ax.plot(
        e,
        [float(r[4]) for r in rows],
        color=INK,
        linestyle=(0, (1, 2)),
        linewidth=1.5,
        label="1/sinh(epsilon)",
    )
    ax.plot(e, [float(r[1]) for r in rows], color=ACCENT, linewidth=2.2, label="minimax risk, n = 70")
    ax.set_xlim(0, 2)
    ax.set_ylim(0, 21)
    ax.legend(frameon=False, loc="upper right")
    label(ax, "The smallest worst error of a count on 0..70", "epsilon", "expected absolute error")
    return figure


HALL_2_2 = Reproduction(
    name="hall-2.2",
    title="Minimax risk of a count on 0..70",
    source="Hall 2012, Figure 2.2",
    make=make_hall_2_2,
)


# Hall 2012, Figure 2.3: Laplace noise and the threshold on the mildew table (p = 64, q = 22, n = 70).

HALL_2_3_TRIALS = 15_000


def make_hall_2_3() -> Made:
    """15 000 trials at epsilon = 1, and a sweep."""
    return made(
        Table(name="Mildew", cells=MILDEW_CELLS, counts=MILDEW),
        trials=HALL_2_3_TRIALS,
        chosen_trials=400,
        sweep_trials=100,
        notes=(
            "The source does not state its epsilon and prints no numbers; epsilon = 1 is assumed. Its picture shows a "
            "small gain, as here.",
            "With 64 cells of which a third are in use the threshold mostly gains by answering 0: at epsilon = 1 the "
            "table of zeros has the error 70.",
        ),
    )


HALL_2_3 = Reproduction(
    name="hall-2.3",
    title="Sparse histograms: the mildew table",
    source="Hall 2012, Figure 2.3",
    make=make_hall_2_3,
)


HALL_2_4_TRIALS = 1000


def make_hall_2_4() -> Made:
    """1000 trials at epsilon = 1, 200 of the choices made after the noise, and a sweep."""
    return made(
        Table(name="Long Term Care Survey", cells=NLTCS_CELLS, counts=NLTCS),
        trials=HALL_2_4_TRIALS,
        chosen_trials=200,
        sweep_trials=20,
        notes=(
            "The source does not state its epsilon and prints no numbers; epsilon = 1 is assumed. Its picture shows a "
            "massive gain, as here.",
            "With continuous Laplace noise, as in the source, noise with negatives set to 0 has 67 400: integer noise "
            "gains 4%, since an empty cell then errs by 1/(2 sinh(1/2)) = 0.96 on average instead of 1.",
        ),
    )


HALL_2_4 = Reproduction(
    name="hall-2.4",
    title="Sparse histograms: the Long Term Care Survey",
    source="Hall 2012, Figure 2.4",
    make=make_hall_2_4,
)
