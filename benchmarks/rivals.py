"""Every default of the curator beside the simplest rival that ten lines of numpy could be, at the same pure epsilon.

One row a unit, added or removed (for "public n": replaced). Errors are means over runs and cells of |released - the
table's own value|, after clamping; of margins each table counts alike, as for the chooser. A ratio above 1 means that
tacit errs more; the last column is twice its standard error. Rivals know the bounds, keys and bins that are declared,
and that no value is missing; nothing else. Medians and densities have benchmarks of their own.

usage: rivals.py [RUNS] [NAME]; prints a table, or the lines whose statistic has NAME in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import tacit
from tacit import statistics
from tacit.curator.charging import CONFIDENCE, price
from tacit.curator.planning import choose
from tacit.noise import SeededSource
from tacit.sources import open_table

BY_HAND = True
"""It prints a table of its own; `run.py` leaves it out."""
ROWS, LOW, HIGH = 3000, 0.0, 100.0
RIVAL_RUNS = 20
HEAVIEST, LONGEST, STEPS = 2.0, 10.0, 5
EPSILONS = (0.1, 1.0)
REGIONS, SEXES = ["a", "b", "c", "d", "e"], ["f", "m"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "x": np.clip(rng.gamma(3.0, 8.0, ROWS), LOW, HIGH), "y": rng.uniform(LOW, HIGH, ROWS),
            "region": rng.choice(REGIONS, ROWS, p=[0.4, 0.3, 0.15, 0.1, 0.05]), "sex": rng.choice(SEXES, ROWS),
            "flag": rng.random(ROWS) < 0.2, "w": rng.uniform(0.5, HEAVIEST, ROWS),
            "years": rng.uniform(0, LONGEST, ROWS),
        }
    )  # fmt: skip


def ours(statistic: Any, data: pd.DataFrame, unit: Any, schema: Any, epsilon: float, runs: int) -> Any:
    """Released values of the default, run by run."""
    question = statistic.on(schema, unit)
    how, source = choose(question, price(epsilon=epsilon)), SeededSource(seed=5)
    with open_table(data, schema=schema, unit=unit) as opened:
        cells = statistics.read_cells(opened, [question])[0]
    found = []
    for _ in range(runs):
        noisy = how.run(question, cells, source=source)
        found.append(np.ravel(how.read(question, noisy, CONFIDENCE).value))
    return np.array(found)


def laplace(values: Any, scale: float, runs: int, rng: Any) -> Any:
    return np.asarray(values, dtype=float) + rng.laplace(scale=scale, size=(runs, np.size(values)))


def geometric(values: Any, epsilon: float, runs: int, rng: Any) -> Any:
    p, size = 1 - np.exp(-epsilon), (runs, np.size(values))
    return np.asarray(values) + rng.geometric(p, size) - rng.geometric(p, size)


Case = tuple[str, Any, Any, Any, Callable[[float, int, Any], dict[str, Any]]]


def cases(data: pd.DataFrame) -> list[Case]:
    """(name, statistic, unit, the table's own values, rivals)."""
    added, replaced = tacit.rows(), tacit.rows(neighbours="replace-one")
    x, y = data["x"].to_numpy(), data["y"].to_numpy()
    groups = [x[data["region"] == r] for r in REGIONS]
    n_by = np.array([len(g) for g in groups])
    sums = np.array([g.sum() for g in groups])
    bars = np.histogram(x, np.linspace(LOW, HIGH, 21))[0]
    two = pd.crosstab(data["region"], data["sex"]).to_numpy()
    smokers = data["flag"].to_numpy()
    by_flag = np.array([smokers[data["region"] == r].sum() for r in REGIONS])

    def quotient(top: Any, bottom: Any, low: float = LOW, high: float = HIGH) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num(top / np.maximum(bottom, 1)), low, high)

    def counts(values: Any) -> Any:
        flat = np.ravel(values)
        return lambda e, k, rng: {
            "Laplace": laplace(flat, 1 / e, k, rng), "geometric": geometric(flat, e, k, rng)
        }  # fmt: skip

    def sum_by(e: float, k: int, rng: Any) -> dict[str, Any]:
        return {"noisy sums": laplace(sums, HIGH / e, k, rng)}

    def mean_by(e: float, k: int, rng: Any) -> dict[str, Any]:
        halves = laplace(sums, 2 * HIGH / e, k, rng), laplace(n_by, 2 / e, k, rng)
        centred = laplace(sums - HIGH / 2 * n_by, HIGH / e, k, rng), laplace(n_by, 2 / e, k, rng)
        return {
            "noisy sum and count": quotient(*halves),
            "centred": np.clip(HIGH / 2 + quotient(*centred, -HIGH, HIGH), LOW, HIGH),
        }

    def mean_all(e: float, k: int, rng: Any) -> dict[str, Any]:
        return {"noisy sum, public n": laplace([x.sum()], HIGH / e, k, rng) / ROWS}

    def share_by(e: float, k: int, rng: Any) -> dict[str, Any]:
        yes, no = laplace(by_flag, 1 / e, k, rng), laplace(n_by - by_flag, 1 / e, k, rng)
        both = laplace(by_flag, 2 / e, k, rng), laplace(n_by, 2 / e, k, rng)
        return {"noisy yes and no": quotient(yes, yes + no, 0, 1), "noisy yes and all": quotient(*both, 0, 1)}

    def variance(e: float, k: int, rng: Any) -> dict[str, Any]:
        third = [laplace([v], 3 * s / e, k, rng) for v, s in (
            (ROWS, 1), ((x - 50).sum(), 50), (((x - 50) ** 2).sum(), 2500)
        )]  # fmt: skip
        first = quotient(third[1], third[0], -50, 50)
        return {"noisy moments": np.clip(quotient(third[2], third[0], 0, 2500) - first**2, 0, 2500)}

    def margins(e: float, k: int, rng: Any) -> dict[str, Any]:
        noisy = laplace(two.ravel(), 1 / e, k, rng).reshape(k, *two.shape)
        cells = np.concatenate([noisy.sum(axis=2), noisy.sum(axis=1)], axis=1)
        alone = laplace(np.concatenate([two.sum(axis=1), two.sum(axis=0)]), 2 / e, k, rng)
        return {"noise on cells": cells, "noise on margins": alone}

    def ratio(e: float, k: int, rng: Any) -> dict[str, Any]:
        halves = [laplace([v], 2 * HIGH / e, k, rng) for v in (x.sum(), y.sum())]
        return {"two noisy sums": quotient(*halves, 0, np.inf)}

    weights, years = data["w"].to_numpy(), data["years"].to_numpy()
    heavy = np.array([weights[data["region"] == r].sum() for r in REGIONS])
    weighed = np.array([(weights * x)[data["region"] == r].sum() for r in REGIONS])

    def weighted_mean(e: float, k: int, rng: Any) -> dict[str, Any]:
        top = laplace(weighed - HIGH / 2 * heavy, HIGH / 2 * HEAVIEST * 2 / e, k, rng)
        bottom = laplace(heavy, HEAVIEST * 2 / e, k, rng)
        return {"two noisy sums, centred": np.clip(HIGH / 2 + quotient(top, bottom, -HIGH, HIGH), LOW, HIGH)}

    def rate(e: float, k: int, rng: Any) -> dict[str, Any]:
        events, time = (
            laplace([smokers.sum()], 2 / e, k, rng),
            laplace([years.sum()], 2 * LONGEST / e, k, rng),
        )
        return {"two noisy sums": quotient(events, time, 0, np.inf)}

    def share_all(e: float, k: int, rng: Any) -> dict[str, Any]:
        return {"noisy yes, public n": np.clip(laplace([smokers.sum()], 1 / e, k, rng) / ROWS, 0, 1)}

    def all_totals(cells: Any) -> Any:
        """Cells, totals by region and by sex, and the grand total, of tables of shape (..., 5, 2)."""
        each = (cells, cells.sum(axis=-1), cells.sum(axis=-2), cells.sum(axis=(-2, -1)))
        return np.concatenate([v.reshape(*cells.shape[:-2], -1) for v in each], axis=-1)

    def totals(e: float, k: int, rng: Any) -> dict[str, Any]:
        cells = laplace(two.ravel(), 1 / e, k, rng).reshape(k, *two.shape)
        quarter = laplace(all_totals(two), 4 / e, k, rng)
        return {"noise on cells": all_totals(cells), "noise on all tables": quarter}

    place = np.minimum((years / LONGEST * STEPS).astype(int), STEPS - 1)
    ended = np.array(
        [[((place == t) & (smokers == died)).sum() for t in range(STEPS)] for died in (True, False)]
    )

    def curve(deaths: Any, gone: Any) -> Any:
        """Kaplan-Meier: those who leave in a step are at risk for half of it."""
        risk = np.maximum(np.cumsum((deaths + gone)[..., ::-1], axis=-1)[..., ::-1] - gone / 2, 1)
        return np.cumprod(np.clip(1 - deaths / risk, 0, 1), axis=-1)

    def survive(e: float, k: int, rng: Any) -> dict[str, Any]:
        noisy = laplace(ended.ravel(), 1 / e, k, rng).reshape(k, 2, STEPS)
        return {"noisy cells": curve(noisy[:, 0], noisy[:, 1])}

    return [
        ("count by region", tacit.count("region"), added, n_by, counts(n_by)),
        ("histogram of 20 bins", tacit.histogram("x", 20), added, bars, counts(bars)),
        ("table of region and sex", tacit.contingency(["region", "sex"]), added, two.ravel(), counts(two)),
        ("sum by region", tacit.sum("x", "region"), added, sums, sum_by),
        ("mean by region", tacit.mean("x", "region"), added, sums / n_by, mean_by),
        ("mean, public n", tacit.mean("x"), replaced, np.array([x.mean()]), mean_all),
        ("share by region", tacit.proportion("flag", "region"), added, by_flag / n_by, share_by),
        ("variance", tacit.variance("x"), added, np.array([x.var()]), variance),
        ("margins of region and sex", tacit.margins(["region", "sex"]), added,
         np.concatenate([two.sum(axis=1), two.sum(axis=0)]), margins),
        ("ratio of two sums", tacit.ratio("x", "y"), added, np.array([x.sum() / y.sum()]), ratio),
        ("weighted mean by region", tacit.mean("x", "region", survey_weight="w"), added, weighed / heavy,
         weighted_mean),
        ("rate", statistics.rate("flag", "years"), added, np.array([smokers.sum() / years.sum()]), rate),
        ("share, public n", tacit.proportion("flag"), replaced, np.array([smokers.mean()]), share_all),
        ("table with totals", statistics.table("region", "sex"), added, all_totals(two), totals),
        ("survival in 5 steps", statistics.survival("years", "flag", STEPS), added, curve(*ended), survive),
    ]  # fmt: skip


def main(runs: int, only: str = "") -> None:
    data = table()
    number = tacit.number(LOW, HIGH, missing=0)
    schema = tacit.Schema({
        "x": number, "y": number, "flag": tacit.flag(missing=False), "region": tacit.category(REGIONS, missing="a"),
        "sex": tacit.category(SEXES, missing="f"), "w": tacit.number(0, HEAVIEST, missing=0),
        "years": tacit.number(0, LONGEST, missing=0),
    })  # fmt: skip
    print("| statistic | epsilon | tacit | best rival | theirs | ratio | 2 s.e. |")
    print("|---|---|---|---|---|---|---|")
    for number_of_case, (name, statistic, unit, truth, rivals) in enumerate(cases(data)):
        if only not in name:
            continue
        for epsilon in EPSILONS:
            # A seed of its own for each line: one lucky draw of a rival is not seen twice.
            rng = np.random.default_rng([9, number_of_case, int(10 * epsilon)])
            # Of margins the first five numbers are one table and the last two another.
            weights = [0.2] * 5 + [0.5] * 2 if name.startswith("margins") else None

            def error(values: Any, truth: Any = truth, weights: Any = weights) -> Any:
                return np.average(np.abs(values - truth), axis=1, weights=weights)

            released = ours(statistic, data, unit, schema, epsilon, runs)
            if name.startswith("survival"):
                released = released[:, STEPS : 2 * STEPS]  # behind the numbers at risk
            mine = error(released)
            # A rival is a line of numpy: so many runs of it that its own error does not count.
            drawn = [rivals(epsilon, runs, rng) for _ in range(RIVAL_RUNS)]
            theirs = {k: np.concatenate([error(d[k]) for d in drawn]) for k in drawn[0]}
            best = min(theirs, key=lambda k: theirs[k].mean())
            ratio = mine.mean() / theirs[best].mean()
            spread = ratio * np.hypot(
                mine.std() / mine.mean(), theirs[best].std() / theirs[best].mean() / np.sqrt(RIVAL_RUNS)
            )
            print(
                f"| {name} | {epsilon} | {mine.mean():.4g} | {best} | {theirs[best].mean():.4g} | {ratio:.3f} "
                f"| {2 * spread / np.sqrt(runs):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2000, *sys.argv[2:3])
