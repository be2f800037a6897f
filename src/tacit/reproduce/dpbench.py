"""Errors of every way to release a sparse histogram on seven histograms of DPBench (Hay et al. 2016)."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np

from tacit.errors import BadData
from tacit.mechanisms import L1, L2, Gaussian, StableHistogram, hall_threshold
from tacit.mechanisms.sparse_risk import tails
from tacit.reproduce.base import Made, Reproduction
from tacit.reproduce.sparse_errors import CHOICES, Table, chosen_errors, exact_errors

__all__ = ["HERE", "make"]

NAMES = ("HEPTH", "INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS", "ADULT")
EPSILONS = (0.01, 0.1, 1.0)
DELTA = 1e-6
TRIALS = 20
FILE = "data/dpbench/dpbench_1d.csv"
COLUMNS = (
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


def make() -> Made:
    """Mean sums of absolute errors; exact for fixed thresholds, over 20 trials for choices made after the noise."""
    rows: list[tuple[float | str, ...]] = []
    for table in read(find()):
        for epsilon in EPSILONS:
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
    wins = Counter(COLUMNS[2 + int(np.argmin([float(x) for x in r[2:8]]))] for r in rows)
    return Made(
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "Replace-one neighbours, noise scale 2/epsilon; sums of absolute errors over 4096 cells. The last columns "
            f"hold for (epsilon, {DELTA:g}).",
            "Least error of the pure choices that do not need the truth (known_q is told q): "
            + ", ".join(f"{name} {n} times" for name, n in wins.most_common())
            + f", of {len(rows)}.",
        ),
    )


HERE = Reproduction(
    name="dpbench",
    title="Sparse histograms on seven DPBench histograms",
    source="histograms of Hay et al. 2016; the table is ours",
    make=make,
)
