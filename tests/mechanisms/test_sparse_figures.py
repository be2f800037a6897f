"""Hall's figures 2.3 and 2.4 and the DPBench table: the kept numbers are those of the formulas, and of fresh runs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from support.shared import shared
from tacit.errors import BadData
from tacit.noise import SeededSource
from tacit.reproduce import hall_2 as dpbench
from tacit.reproduce import hall_2 as sparse_figures
from tacit.reproduce import reproduction
from tacit.reproduce.hall_2 import (
    MILDEW,
    MILDEW_CELLS,
    NLTCS,
    NLTCS_CELLS,
    Table,
    chosen_errors,
    exact_errors,
    simulated_errors,
)

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"
TABLES = {
    "hall-2.3": Table(name="Mildew", cells=MILDEW_CELLS, counts=MILDEW),
    "hall-2.4": Table(name="Survey", cells=NLTCS_CELLS, counts=NLTCS),
}


def kept(name: str) -> list[dict[str, str]]:
    with (KEPT / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", TABLES)
def test_fixed_thresholds_are_as_kept(name) -> None:
    for row in kept(name):
        for column, value in exact_errors(TABLES[name], float(row["epsilon"])).items():
            assert value == pytest.approx(float(row[column]), rel=1e-9), column


@pytest.mark.parametrize(("name", "trials"), [("hall-2.3", 3000), ("hall-2.4", 40)])
def test_trials_agree_with_the_formula(name, trials) -> None:
    exact = exact_errors(TABLES[name], 1.0)
    clip, sparse = simulated_errors(TABLES[name], 1.0, trials, SeededSource(seed=1))
    for found, column in ((clip, "laplace_and_clip"), (sparse, "hall")):
        assert abs(found.mean() - exact[column]) < 6 * found.std() / np.sqrt(trials)


def test_kept_numbers_meet_what_was_asked() -> None:
    survey = next(r for r in kept("hall-2.4") if float(r["epsilon"]) == 1.0)
    assert float(survey["hall"]) <= float(survey["laplace_and_clip"]) / 7
    best = min(float(survey[c]) for c in ("false_discovery_rate", "least_estimated_risk", "posterior_median"))
    assert best <= 7750
    mildew = next(r for r in kept("hall-2.3") if float(r["epsilon"]) == 1.0)
    assert float(mildew["hall"]) <= 0.75 * float(mildew["laplace_and_clip"])


def test_dpbench_table_is_as_kept() -> None:
    path = shared(dpbench.FILE)
    tables = {t.name: t for t in dpbench.read(path)}
    rows = kept("dpbench")
    assert len(rows) == 21
    for row in rows[::4]:
        exact = exact_errors(tables[row["histogram"]], float(row["epsilon"]))
        for column in ("laplace_and_clip", "hall", "known_q", "best_fixed"):
            assert exact[column] == pytest.approx(float(row[column]), rel=1e-9)
    adult = next(r for r in rows if r["histogram"] == "ADULT" and float(r["epsilon"]) == 1.0)
    fresh = chosen_errors(tables["ADULT"], 1.0, 20, seed=25)
    assert fresh["posterior median"].mean() == pytest.approx(float(adult["posterior_median"]), rel=0.02)


def test_without_its_data_dpbench_says_so(monkeypatch) -> None:
    monkeypatch.setattr(dpbench, "FILE", "data/nowhere.csv")
    with pytest.raises(BadData, match="skipped"):
        dpbench.make_dpbench()


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_the_figures_are_made_anew(name, tmp_path, monkeypatch) -> None:
    """Two rows of the sweep, trial for trial; that of epsilon = 1 in a tenth of its trials, to six deviations."""
    at_one: dict[str, np.ndarray] = {}

    def fewer(table: Table, epsilon: float, trials: int, seed: int) -> dict[str, np.ndarray]:
        found = chosen_errors(table, epsilon, max(trials // 10, 20) if epsilon == 1 else trials, seed)
        if epsilon == 1:
            at_one.update(found)
        return found

    monkeypatch.setattr(sparse_figures, "EPSILONS", (0.2, 1.0, 5.0))
    monkeypatch.setattr(sparse_figures, "chosen_errors", fewer)
    monkeypatch.setattr(
        sparse_figures,
        "simulated_errors",
        lambda table, e, trials, source: simulated_errors(table, e, 30, source),
    )
    made = reproduction(name).make()
    made.write_table(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        fresh = {float(r["epsilon"]): r for r in csv.DictReader(file)}
    known = {float(r["epsilon"]): r for r in kept(name)}
    for epsilon, row in fresh.items():
        for column, value in row.items():
            if epsilon != 1 or column.replace("_", " ") not in at_one:
                assert float(value) == pytest.approx(float(known[epsilon][column]), rel=1e-6), (
                    epsilon,
                    column,
                )
    for choice, errors in at_one.items():
        slack = 6 * errors.std() / np.sqrt(errors.size)
        assert abs(errors.mean() - float(known[1.0][choice.replace(" ", "_")])) < slack, choice
    made.write_picture(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10_000
