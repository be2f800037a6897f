"""The log-linear model chosen from a noisy table, beside the one of the table itself: mildew and NLTCS."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import BadData
from tacit.guarantees import gaussian_budget
from tacit.mechanisms import L1, Laplace, RoundedGaussian
from tacit.mechanisms.forests import CRITERIA, ForestSelection, Pair, chosen_forest, pair_score, pair_tables
from tacit.noise import SeededSource
from tacit.report.figures import ACCENT, INK, MUTED, label
from tacit.reproduce.base import Made, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
RUNS = 50
DELTA = 1e-6
Row = tuple[float | str, ...]


def find(name: str) -> Path:
    """A file in a folder `shared` beside the project, or above the working folder."""
    for place in (*Path.cwd().parents, *Path(__file__).resolve().parents):
        if (place / "shared" / "data" / name).exists():
            return place / "shared" / "data" / name
    raise BadData(
        source=f"../shared/data/{name}", problem="is not there, so that this reproduction is skipped",
        hint="the data are not part of the project; docs/reproduction/model-selection.md has the table",
    )  # fmt: skip


def mildew() -> Any:
    """70 rows of six binary loci, as 0 and 1."""
    with find("mildew/mildew_records.csv").open(newline="") as file:
        return np.array([[int(v) - 1 for v in row.values()] for row in csv.DictReader(file)])


def nltcs() -> Any:
    """21574 rows of sixteen yes-or-no questions."""
    with find("nltcs/nltcs.csv").open(newline="") as file:
        return np.array([[int(v) for n, v in row.items() if n != "split"] for row in csv.DictReader(file)])


def cells(data: Any) -> Any:
    """The full table, 2^columns counts."""
    code = data @ (1 << np.arange(data.shape[1])[::-1])
    return np.bincount(code, minlength=1 << data.shape[1])


def margins_of(table: Any, columns: int) -> dict[Pair, Any]:
    """The 2 x 2 tables of a full one."""
    cube = np.asarray(table, dtype=np.float64).reshape((2,) * columns)
    return {
        (i, j): cube.sum(axis=tuple(k for k in range(columns) if k not in (i, j)))
        for i in range(columns)
        for j in range(i + 1, columns)
    }


def noisy_mildew(data: Any, epsilon: float, source: SeededSource) -> tuple[dict[Pair, Any], float]:
    """Laplace noise on all 64 cells; a count of a margin has the noise of 16 of them."""
    noise = Laplace.for_target(epsilon=epsilon, sensitivity=L1(1))
    noisy = noise.release(cells(data), source=source).values
    variance = float(noise.distribution.variance)
    return margins_of(noisy, data.shape[1]), variance * 2 ** (data.shape[1] - 2)


def noisy_nltcs(data: Any, epsilon: float, source: SeededSource) -> tuple[dict[Pair, Any], float]:
    """Gaussian noise on the 120 tables of pairs, (epsilon, 1e-6) for one row added or taken away."""
    exact = pair_tables(data)
    squared = Fraction(gaussian_budget(epsilon=epsilon, delta=DELTA).mu) ** 2
    noise = RoundedGaussian.for_mu_squared(
        mu_squared=squared, squared_steps=len(exact), dimension=4 * len(exact)
    )
    drawn = np.asarray(
        noise.release(np.concatenate([t.ravel() for t in exact.values()]), source=source).values
    )
    tables = {p: drawn[4 * k : 4 * k + 4].reshape(2, 2) for k, p in enumerate(exact)}
    return tables, float(noise.noise_std) ** 2


def differences(found: Iterable[frozenset[Pair]], truth: frozenset[Pair]) -> tuple[float, float, float]:
    """(share of runs with another model, mean of edges too many, mean of edges that are missing)."""
    held = list(found)
    return (
        float(np.mean([f != truth for f in held])),
        float(np.mean([len(f - truth) for f in held])),
        float(np.mean([len(truth - f) for f in held])),
    )


def make() -> Made:
    """For each table, criterion and epsilon: how often the model differs, without and with a correction for the
    noise.
    """
    rows: list[Row] = []
    for name, data, noisy in (("mildew", mildew(), noisy_mildew), ("nltcs", nltcs(), noisy_nltcs)):
        columns, exact = data.shape[1], pair_tables(data)
        for epsilon in EPSILONS:
            source = SeededSource(seed=round(1000 * epsilon))
            drawn = [noisy(data, epsilon, source) for _ in range(RUNS)]
            for criterion in CRITERIA:
                truth = chosen_forest(exact, columns, criterion)
                naive = differences((chosen_forest(t, columns, criterion) for t, _ in drawn), truth)
                aware = differences(
                    (chosen_forest(t, columns, criterion, noise_variance=v) for t, v in drawn), truth
                )
                rows.append((name, criterion, epsilon, len(truth), *naive, *aware, *("",) * 2))
            # The private score chooses as many edges as a spanning tree has.
            best = _tree_by_score(exact, columns)
            choice = ForestSelection(epsilon=epsilon, columns=columns, edges=columns - 1)
            made = [frozenset(choice.release(exact, source=source)) for _ in range(RUNS)]
            changed, extra, _ = differences(made, best)
            rows.append((name, "private score", epsilon, len(best), *("",) * 6, changed, extra))
    return Made(
        columns=(
            "table", "criterion", "epsilon", "edges_of_the_table",
            "naive_differs", "naive_extra", "naive_missing",
            "aware_differs", "aware_extra", "aware_missing", "score_differs", "score_wrong_edges",
        ),
        rows=tuple(rows),
        notes=_notes(rows),
        draw=lambda: _draw(rows),
    )  # fmt: skip


def _tree_by_score(exact: dict[Pair, Any], columns: int) -> frozenset[Pair]:
    from tacit.mechanisms.forests import heaviest_forest

    return heaviest_forest({p: pair_score(t) + 0.5 for p, t in exact.items()}, columns)


def _notes(rows: list[Row]) -> tuple[str, ...]:
    at_one = {(r[0], r[1]): r for r in rows if r[2] == 1.0}
    said = []
    for name in ("mildew", "nltcs"):
        bic = at_one[name, "bic"]
        said.append(
            f"{name}, BIC, epsilon = 1: as if the noisy counts were exact, {float(bic[5]):.1f} edges too many and "
            f"{float(bic[6]):.1f} missing on average; with the noise counted {float(bic[8]):.1f} and "
            f"{float(bic[9]):.1f}"
        )
    return tuple(said)


def _draw(rows: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("mildew", "nltcs"), strict=True):
        mine = [r for r in rows if r[0] == name and r[1] == "bic"]
        at = [float(r[2]) for r in mine]
        for first, colour, words in ((4, MUTED, "as if exact"), (7, ACCENT, "with the noise counted")):
            axes.plot(at, [float(r[first + 1]) for r in mine], "o-", color=colour, label=f"too many, {words}")
            axes.plot(at, [float(r[first + 2]) for r in mine], "s--", color=colour, label=f"missing, {words}")
        score = [r for r in rows if r[0] == name and r[1] == "private score"]
        wrong = [float(r[11]) for r in score]
        axes.plot(at, wrong, "^:", color=INK, label="wrong edges of a tree, private score")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)
        title = "Mildew, n = 70" if name == "mildew" else "Long Term Care Survey, n = 21574"
        label(axes, f"{title}: BIC", "epsilon", "edges, mean of 50 runs")
    return figure


MODEL_SELECTION = Reproduction(
    name="model-selection",
    title="Log-linear models chosen from noisy tables",
    source="the question is Hall 2012, ch. 2; the numbers are ours",
    make=make,
)
