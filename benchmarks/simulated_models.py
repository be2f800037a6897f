"""Perturbed objectives beside full-batch noisy gradients in simulated fits: is the rival better where formulas say so?

    SEEDS=3 python benchmarks/simulated_models.py [additive] [linear]

Both sides have the same coded rows, the same loss and the same budget (add-or-remove, delta = 1e-6), and the number of
rows as the size of the reference table. The rival is ten lines of numpy: T full steps, Gaussian noise of sqrt(T) M R/mu
in each gradient. It runs twice: `formula` has the steps that are best on the reference table; `hindsight` the best of
4, 16, 64 and 256 steps of 1/(n curvature R^2), chosen after the fact on the test rows, which nobody could do.
Tables: made-up ones, flights, NLTCS and Titanic; none of those that models are judged on.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import _tables
import numpy as np

from tacit.functions.models.columns import LONGEST, DeclaredColumns
from tacit.functions.models.losses import LogCosh
from tacit.functions.models.objective import DenseDesign
from tacit.functions.models.perturbed import perturbed_head
from tacit.functions.models.rivals import ReferenceTable, perturbation
from tacit.functions.models.solvers import Logistic
from tacit.guarantees import gaussian_budget

BY_HAND = True
EPSILONS, DELTA = (0.1, 0.25, 1.0, 4.0), 1e-6
LOSSES: dict[str, Any] = {"logistic": Logistic(), "log-cosh": LogCosh(threshold=0.5)}
TRIED = (4, 16, 64, 256)


def descended(loss: Any, rows: Any, y: Any, *, step: float, times: int, std: float, random: Any) -> Any:
    """Full-batch noisy gradients: a row's gradient is at most M R long, so that nothing is clipped."""
    w = np.zeros(rows.dimension)
    for _ in range(times):
        noise = random.normal(0, std * math.sqrt(times), len(w))
        w = w - step * (rows.pull(loss.slopes(rows.model(w), y)) + noise)
    return w


def best_steps(table: ReferenceTable, std: float) -> tuple[float, int]:
    """Length and number of steps with the least error on the reference table, where its steepest direction is known."""
    h, found = table._curvatures, []
    for part in (1.0, 0.5, 0.25, 0.1):
        step = part / float(h.max())
        for times in (2**k for k in range(11)):
            rate = h * step
            each = np.maximum(rate * (2 - rate), 1e-15)
            noise = (std * math.sqrt(times) * step) ** 2 * (1 - (1 - each) ** times) / each
            found.append((table._excess((1 - rate) ** times, noise), step, times))
    _, step, times = min(found)
    return step, times


def made_up(loss: str) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """Numbers and categories with steps, waves and lines, of three kinds of columns."""
    import pandas as pd

    random = np.random.default_rng(11)
    for n, count, kind in [
        (n, d, k) for n in (1_000, 10_000) for d in (3, 10, 30) for k in ("even", "normal", "skewed")
    ]:
        m, columns, rows, f = n + 20_000, {}, {}, np.zeros(n + 20_000)
        for j in range(count):
            if j % 3 == 2:
                names = [chr(97 + i) for i in range(int(random.integers(2, 7)))]
                drawn = random.choice(len(names), m, p=random.dirichlet(np.full(len(names), 2.0)))
                columns[f"c{j}"], rows[f"c{j}"] = names, np.array(names)[drawn].astype(object)
                f += random.normal(size=len(names))[drawn] * random.exponential()
                continue
            x = {
                "even": random.random(m), "normal": np.clip(0.5 + 0.15 * random.normal(size=m), 0, 1),
                "skewed": random.beta(1, 6, m),
            }[kind]  # fmt: skip
            shapes = ((x - x.mean()) / x.std(), np.sin(6 * x), 1.0 * (x > np.quantile(x, random.random())))
            columns[f"c{j}"], rows[f"c{j}"] = (0, 1), x
            f += random.normal() * random.exponential() * shapes[int(random.integers(3))]
        f = (f - f.mean()) / f.std() * random.choice([0.5, 1.0, 2.0])
        if loss == "logistic":
            y = np.where(random.random(m) < 1 / (1 + np.exp(-f - random.normal())), 1.0, -1.0)
        else:
            y = np.clip(0.2 * f + 0.1 * random.normal() + 0.25 * random.normal(size=m), -1, 1)
        table = pd.DataFrame(rows)
        yield f"made-up {kind} {n} x {count}", columns, table.iloc[:n], y[:n], table.iloc[n:], y[n:]


def real(loss: str) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """Flights (late, delay, time in the air), NLTCS (one answer, or a sum of four), Titanic."""
    import pandas as pd

    flights = _tables._parquet("nycflights13_flights")
    flights = flights[flights["arr_delay"].notna()].sample(60_000, random_state=1)
    outcomes = {"late": np.where(flights["arr_delay"] > 15, 1.0, -1.0)}
    if loss != "logistic":
        outcomes = {
            "delay": np.clip((flights["arr_delay"].to_numpy(float) - 60) / 120, -1, 1),
            "air time": np.clip((flights["air_time"].to_numpy(float) - 350) / 350, -1, 1),
        }
    X = flights[list(_tables.FLIGHTS)].astype({"origin": object, "carrier": object})
    for name, y in outcomes.items():
        for n in (2_000, 10_000, 40_000):
            yield f"flights {name} {n}", _tables.FLIGHTS, X.iloc[:n], y[:n], X.iloc[40_000:], y[40_000:]
    answers = pd.read_csv(_tables.DATA / "nltcs/nltcs.csv").sample(frac=1, random_state=1)
    asked = [10] if loss == "logistic" else [10, 14, 15, 16]
    columns: dict[str, Any] = {f"v{i}": ["0", "1"] for i in range(1, 17) if i not in asked}
    total = answers[[f"v{i}" for i in asked]].sum(axis=1).to_numpy(float)
    y, X = total * 2 / len(asked) - 1, answers[list(columns)].astype(str).astype(object)
    for n in (1_000, 15_000):
        yield f"NLTCS {n}", columns, X.iloc[:n], y[:n], X.iloc[15_000:], y[15_000:]
    if loss == "logistic":
        people = pd.read_csv(_tables.DATA / "small/TitanicSurvival.csv").sample(frac=1, random_state=2)
        columns = {"sex": ["male", "female"], "age": (0, 80), "passengerClass": ["1st", "2nd", "3rd"]}
        X, y = people[list(columns)], np.where(people["survived"] == "yes", 1.0, -1.0)
        yield "Titanic 900", columns, X.iloc[:900], y[:900], X.iloc[900:], y[900:]


def scored(loss: Any, f: Any, y: Any) -> tuple[float, float]:
    """Mean loss, and the AUC of classes or R^2 of numbers."""
    from scipy.stats import rankdata

    mean = float(loss.values(f, y).mean())
    if loss.name != "logistic":
        return mean, 1 - float(((np.clip(f, -1, 1) - y) ** 2).mean() / y.var())
    ones = y > 0
    ranks, n = rankdata(f)[ones].sum(), ones.sum()
    return mean, float((ranks - n * (n + 1) / 2) / (n * (len(y) - n)))


def compared(loss: Any, coding: str, table: Any, epsilon: float, seeds: int) -> dict[str, Any]:
    """Excess of the mean loss above a fit without privacy, and the score, of each side."""
    _, declared, X, y, Z, z = table
    columns, n = DeclaredColumns.of(declared), len(y)
    more: dict[str, Any] = (
        {"columns": columns} if coding == "additive" else {"dimension": len(columns.linear_names) + 1}
    )
    choice = perturbation(epsilon=epsilon, delta=DELTA, loss=loss, radius=LONGEST, reference_rows=n, **more)
    made, learned = choice.mechanism, choice.contrasts
    if learned is None:
        rows, fresh = (DenseDesign(table=columns.linear(T), radius=LONGEST) for T in (X, Z))
        reference = ReferenceTable(dimension=rows.dimension, rows=n, radius=LONGEST, loss=loss)
        extra = None
    else:
        rows, fresh = learned.design(columns.codes(X)), learned.design(columns.codes(Z))  # type: ignore[assignment]
        reference = ReferenceTable.of(learned, rows=n, radius=LONGEST, loss=loss)
        extra = learned.penalty(made.ridge)
    std = loss.lipschitz * LONGEST / gaussian_budget(epsilon=epsilon, delta=DELTA).mu
    step, times = best_steps(reference, std)
    safe = 1 / (n * loss.curvature * LONGEST**2)
    free = perturbed_head(loss, rows, y, made, None)
    exact, _ = free(np.zeros(rows.dimension), 2.0**-40)
    least = scored(loss, fresh.model(exact), z)[0]
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        given: dict[str, Any] = {"std": std, "random": random}
        ours = made.release(perturbed_head(loss, rows, y, made, extra)).to_floats()
        fits = {"ours": ours, "formula": descended(loss, rows, y, step=step, times=times, **given)}
        fits |= {f"T = {t}": descended(loss, rows, y, step=safe, times=t, **given) for t in TRIED}
        for name, w in fits.items():
            found.setdefault(name, []).append(scored(loss, fresh.model(w), z))
    mean = {name: np.mean(v, axis=0) - [least, 0] for name, v in found.items()}
    mean["hindsight"] = min((mean[f"T = {t}"] for t in TRIED), key=lambda v: float(v[0]))
    nothing = scored(
        loss, np.full(len(z), np.arctanh(y.mean()) * 2 if loss.name == "logistic" else y.mean()), z
    )
    return {**mean, "constant": np.array(nothing) - [least, 0]}


def main() -> None:
    """One line a setting, then a summary for each coding and loss."""
    seeds = int(os.environ.get("SEEDS", "3"))
    for coding in sys.argv[1:] or ("additive", "linear"):
        for name, loss in LOSSES.items():
            results = []
            for table in [*real(name), *made_up(name)]:
                for epsilon in EPSILONS:
                    one = compared(loss, coding, table, epsilon, seeds)
                    results.append(one)
                    sides = ("constant", "ours", "formula", "hindsight")
                    said = " ".join(f"{k} {one[k][0]:.4f}/{one[k][1]:.3f}" for k in sides)
                    print(f"{coding} {table[0]} epsilon {epsilon:g}: {said}", flush=True)
            ours = np.array([one["ours"] for one in results])
            for side in ("formula", "hindsight"):
                other = np.array([one[side] for one in results])
                less = int((other[:, 0] < ours[:, 0] * 0.95).sum())
                more = int((ours[:, 0] < other[:, 0] * 0.95).sum())
                better = float(np.median(ours[:, 1] - other[:, 1]))
                print(
                    f"{coding} {name}, {side}: {len(results)} settings, the rival has less excess by 5% in {less}, "
                    f"ours in {more}; mean excess {ours[:, 0].mean():.4f} and {other[:, 0].mean():.4f}, median "
                    f"{np.median(ours[:, 0]):.4f} and {np.median(other[:, 0]):.4f}; "
                    f"median score better by {better:.4f}", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
