"""Synthetic rows of three real tables: distance of pairs and triples, a boosting model, processor seconds.

    python benchmarks/synthesis.py [adult|nltcs|yrbss] [epsilon] [seeds]
    python benchmarks/synthesis.py wide [rows] [columns]        a made-up table, through the curator
    python benchmarks/synthesis.py tables FOLDER                TABLE.npz for the peers (_opendp_synthesis.py, _dpmm.py)
    python benchmarks/synthesis.py score TABLE PICKLE           a peer's rows, and its measurements refitted by ours

Adult in 14 columns with 188 public values, as it is published (32,561 rows to learn from, 16,281 to test); NLTCS with
16 binary columns; YRBSS with 13 columns and their missing values, two thirds to learn from. Every number is of rows
that were synthesised at (epsilon, 1e-6), add-or-remove, by `tacit.synthesis` with exact noise; each seed is one line.
"""

from __future__ import annotations

import csv
import itertools
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _adult import CATEGORIES, place

import tacit
from tacit.noise.source import SeededSource
from tacit.sources.margins import counts_of
from tacit.sources.schema import Schema
from tacit.synthesis.answers import Synthetic
from tacit.synthesis.choices import scaled_margins
from tacit.synthesis.drawing import draw_rows
from tacit.synthesis.model import Model
from tacit.synthesis.rounds import synthesise_margins
from tacit.synthesis.schedule import calibrated, epsilon_of
from tacit.synthesis.statistic import synthetic_table

EDGES = {
    "age": [17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 70, 75, 80, 91],
    "capital-gain": [0, 1, *range(1000, 8001, 1000), 10000, 12000, 15000, 16000, 20000, 50000, 100000],
    "capital-loss": [
        0,
        1,
        500,
        1000,
        1300,
        1500,
        1600,
        1700,
        1800,
        1850,
        1900,
        1950,
        2000,
        2200,
        2500,
        3000,
        4357,
    ],
    "hours-per-week": [1, 10, 16, 20, 21, 25, 30, 35, 38, 40, 41, 45, 46, 50, 55, 60, 100],
}
ORDER = (
    "age", "workclass", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
Table = tuple[np.ndarray, np.ndarray, tuple[int, ...], int]


def _cut(values: np.ndarray, edges: Any) -> np.ndarray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def adult() -> Table:
    """Rows to learn from, rows to test, sizes, and the place of the outcome."""
    path = place()
    assert path is not None
    with path.open(newline="") as file:
        people = list(csv.DictReader(file))
    columns, sizes = [], []
    for name in ORDER:
        given = [p[name] for p in people]
        if name in EDGES:
            columns.append(_cut(np.array(given, dtype=float), EDGES[name]))
            sizes.append(len(EDGES[name]) - 1)
        elif name == "education-num":
            columns.append(np.array(given, dtype=float).astype(int) - 1)
            sizes.append(16)
        elif name == "income":
            columns.append(np.array([int(v.startswith(">")) for v in given]))
            sizes.append(2)
        else:
            words = CATEGORIES[name].split()
            known = {w: i for i, w in enumerate(words)}
            columns.append(np.array([known.get(v, len(words)) for v in given]))
            sizes.append(len(words) + (name in ("workclass", "occupation", "native-country")))
    rows = np.column_stack(columns).astype(np.int32)
    train = np.array([p["split"] == "train" for p in people])
    return rows[train], rows[~train], tuple(sizes), 13


def _shared(name: str) -> Path:
    root = Path(__file__).resolve().parent.parent.parent
    return (
        next(p for p in (root / "shared", Path("/work/shared")) if (p / "data" / name).exists())
        / "data"
        / name
    )


def nltcs() -> Table:
    """Sixteen yes-or-no questions."""
    with _shared("nltcs/nltcs.csv").open(newline="") as file:
        given = list(csv.reader(file))[1:]
    rows = np.array([[int(v) for v in r[1:]] for r in given], dtype=np.int32)
    train = np.array([r[0] == "train" for r in given])
    return rows[train], rows[~train], (2,) * 16, 15


def yrbss() -> Table:
    """Thirteen columns of a health survey; the last value of each is "missing"."""
    with _shared("health/yrbss.csv").open(newline="") as file:
        given = list(csv.DictReader(file))
    words = {
        "gender": "female,male", "grade": "9,10,11,12,other", "hispanic": "hispanic,not",
        "race": "American Indian or Alaska Native,Asian,Black or African American,"
        "Native Hawaiian or Other Pacific Islander,White",
        "helmet_12m": "always,did not ride,most of time,never,rarely,sometimes",
        "text_while_driving_30d": "0,1-2,10-19,20-29,3-5,30,6-9,did not drive",
        "hours_tv_per_school_day": "do not watch,<1,1,2,3,4,5+", "school_night_hours_sleep": "<5,5,6,7,8,9,10+",
    }  # fmt: skip
    edges: dict[str, Any] = {
        "age": range(12, 20), "height": np.linspace(1.25, 2.15, 13), "weight": np.linspace(29, 185, 14),
        "physically_active_7d": range(9), "strength_training_7d": range(9),
    }  # fmt: skip
    columns, sizes = [], []
    for name in given[0]:
        if name in words:
            known = {w: i for i, w in enumerate(words[name].split(","))}
            columns.append(np.array([known.get(r[name], len(known)) for r in given]))
            sizes.append(len(known) + 1)
        else:
            values = np.array([float(r[name]) if r[name] not in ("", "NA") else np.nan for r in given])
            cut = _cut(values, list(edges[name]))
            columns.append(np.where(np.isnan(values), len(edges[name]) - 1, cut))
            sizes.append(len(edges[name]))
    rows = np.column_stack(columns).astype(np.int32)
    mixed = np.random.default_rng(11).permutation(len(rows))
    cut_at = 2 * len(rows) // 3
    return rows[mixed[:cut_at]], rows[mixed[cut_at:]], tuple(sizes), 1


TABLES = {"adult": adult, "nltcs": nltcs, "yrbss": yrbss}


def distances(real: np.ndarray, made: np.ndarray, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Mean total variation of all pairs, and of 200 fixed triples."""
    columns = range(len(sizes))
    triples = list(itertools.combinations(columns, 3))
    chosen = [triples[i] for i in np.random.default_rng(7).permutation(len(triples))[:200]]

    def mean(margins: list[Any]) -> float:
        one, other = (counts_of([t[:, i] for i in columns], sizes, margins) for t in (real, made))
        return float(np.mean([np.abs(one[m] / len(real) - other[m] / len(made)).sum() / 2 for m in margins]))

    return mean(list(itertools.combinations(columns, 2))), mean(chosen)


def boosted(made: np.ndarray, test: np.ndarray, label: int) -> float:
    """The area under the curve of one boosting model, trained on rows and tested on real ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    inputs = [i for i in range(made.shape[1]) if i != label]
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    model.fit(made[:, inputs], made[:, label] == 1)
    return float(roc_auc_score(test[:, label] == 1, model.predict_proba(test[:, inputs])[:, 1]))


def run(name: str, epsilon: float, seed: int, **words: Any) -> dict[str, Any]:
    """One synthesis, scored."""
    train, test, sizes, label = TABLES[name]()
    schema = Schema({f"c{i}": tacit.integer(0, s - 1, missing=0) for i, s in enumerate(sizes)})
    asked = synthetic_table(list(schema), **words).on(schema, tacit.rows())
    details, start = asked.details, time.process_time()
    schedule = calibrated(
        asked, lambda s: epsilon_of(s, 1e-6, tacit.rows().neighbours) <= epsilon, 0.25 * epsilon
    )
    true = counts_of([train[:, i] for i in range(len(sizes))], sizes, asked.requests[0].margins)
    outcome = synthesise_margins(
        true, sizes, schedule, candidates=details["candidates"], checked=details["checked"],
        cells=asked.statistic.cells, source=SeededSource(seed=seed),
    )  # fmt: skip
    seconds = time.process_time() - start
    pairs, triples = distances(train, outcome.rows, sizes)
    found: dict[str, Any] = {
        "table": name, "epsilon": epsilon, "seed": seed, **words, "pairs": round(pairs, 4),
        "triples": round(triples, 4), "auc": round(boosted(outcome.rows, test, label), 4),
        "cpu_seconds": round(seconds, 1), "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip
    if details["checked"]:
        made = Synthetic(
            axes=details["axes"], schema=schema, schedule=schedule, outcome=outcome, checked=details["checked"],
            seed=1,
        )  # fmt: skip
        stated = made.errors()
        drawn = scaled_margins(outcome.rows, sizes, details["checked"], outcome.total)
        far = {m: np.abs(true[m] - drawn[m]).sum() / (2 * outcome.total) for m in stated}
        slack = made.reach(0.95) / (2 * outcome.total)
        found |= {"all_bounds_hold": all(far[m] <= stated[m][2] for m in far), "slack": round(slack, 4)}
    return found


def wide(rows: int, columns: int) -> dict[str, Any]:
    """A made-up table of columns that hang together in threes; release, certificate and a Parquet file."""
    import tempfile

    import pandas as pd

    rng = np.random.default_rng(1)
    sizes = [2 + (i * 7) % 19 for i in range(columns)]
    made: dict[str, Any] = {"c0": rng.integers(0, sizes[0], rows)}
    for i in range(1, columns):
        parent = made[f"c{max(0, i - 1 - (i % 3))}"]
        like = rng.random(rows) < 0.6
        made[f"c{i}"] = np.where(like, (parent * 3 + i) % sizes[i], rng.integers(0, sizes[i], rows))
    schema = {f"c{i}": tacit.integer(0, s - 1, missing=0) for i, s in enumerate(sizes)}
    budget = tacit.Approximate(epsilon=1.0, delta=1e-6)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    with tacit.Curator(pd.DataFrame(made), protect=tacit.rows(), schema=schema, budget=budget) as held:
        start, clock = time.process_time(), time.time()
        asked = synthetic_table(list(schema))
        left_out = asked.on(Schema(schema), tacit.rows()).details["left_out"]
        release = held.release(asked, epsilon=1.0, delta=1e-6)
        released = time.process_time() - start
        with tempfile.TemporaryDirectory() as folder:
            release.synthetic.write(Path(folder) / "rows.parquet")
    return {
        "rows": rows, "columns": columns, "left_out": left_out, "cpu_released": round(released, 1),
        "cpu_written": round(time.process_time() - start, 1), "wall": round(time.time() - clock, 1),
        "gigabytes_before": before, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip


def score(name: str, path: str) -> dict[str, Any]:
    """A peer's own rows, and rows of its measurements that our model was fitted to."""
    import pickle

    with Path(path).open("rb") as file:
        held = pickle.load(file)  # written by the scripts beside this one
    train, test, _, label = TABLES[name]()
    sizes = tuple(held["sizes"])

    def scored(rows: np.ndarray) -> list[float]:
        return [round(v, 4) for v in (*distances(train, rows, sizes), boosted(rows, test, label))]

    found: dict[str, Any] = {"file": path, "own": scored(held["rows"])}
    if held["measurements"]:
        total = float(np.mean([y.sum() for _, y, _ in held["measurements"]]))
        model = Model(sizes=sizes, rows=total)
        for columns, counts, std in held["measurements"]:
            order = sorted(range(len(columns)), key=lambda k, c=columns: c[k])
            shaped = counts.reshape([sizes[i] for i in columns]).transpose(order)
            model.measure(tuple(sorted(columns)), shaped, std**2)
        model.arrange()
        model.fit(400)
        found["refitted"] = scored(draw_rows(model, round(total), SeededSource(seed=1)))
    return found


def main(words: list[str]) -> None:
    """One of the things above, a line of JSON each."""
    which = words[0] if words else "adult"
    if which == "wide":
        rows, columns = (int(w) for w in [*words[1:], "1000000", "100"][:2])
        print(json.dumps(wide(rows, columns)), flush=True)
    elif which == "tables":
        for name, read in TABLES.items():
            train, _, sizes, _ = read()
            np.savez(Path(words[1]) / f"{name}.npz", train=train, sizes=np.array(sizes))
    elif which == "score":
        print(json.dumps(score(words[1], words[2])), flush=True)
    else:
        level = float(words[1]) if len(words) > 1 else 1.0
        for k in range(int(words[2]) if len(words) > 2 else 5):
            for share in (0.0, 0.1):
                print(json.dumps(run(which, level, k, errors=share)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
