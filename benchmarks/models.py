"""Additive models beside DP-EBM of interpret 0.7, and logistic regression, on real tables in one run.

Both sides have the same declared bounds and categories; ours has 24 even bins a number, and all its settings are the
defaults, which were fixed on made-up tables and flights. Processor seconds of fit alone.
EBM=/path/to/python with interpret-core[dp] 0.7; without it the peer is left out. SEEDS (10), TABLES.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import _adult
import _interpret
import _tables
import numpy as np

from tacit.functions.models import PrivateAdditiveClassifier, PrivateLogisticRegression, PublicBall

EPSILONS = (1.0, 0.25)
DELTA = 1e-6


def ours(name: str, seeds: int) -> list[dict[str, Any]]:
    """Scores of the additive model."""
    columns, (X, y), (Z, z) = _tables.table(name)
    out = []
    for epsilon in EPSILONS:
        for seed in range(seeds):
            start = time.process_time()
            model = PrivateAdditiveClassifier(epsilon, DELTA, columns=columns, classes=[0, 1]).fit(X, y)
            used = time.process_time() - start
            chance = model.predict_proba(Z)[:, 1]
            out.append({"epsilon": epsilon, "seed": seed, "cpu": used, **_interpret.scores(chance, z)})
    return out


def peer(name: str, seeds: int, python: str) -> list[dict[str, Any]]:
    """Scores of DP-EBM, in its own environment; gaps are filled with the lowest bound or a word, as it takes none."""
    columns, (X, y), (Z, z) = _tables.table(name)
    bounds, types = {}, []
    tables = []
    for frame in (X, Z):
        made = {}
        for n, declared in columns.items():
            if isinstance(declared, list):
                made[n] = (
                    frame[n].map(lambda v: v if isinstance(v, str) else "missing").to_numpy(dtype=object)
                )
            else:
                made[n] = np.clip(
                    frame[n].fillna(declared[0]).to_numpy(dtype=float), declared[0], declared[1]
                )
        tables.append(np.column_stack([np.asarray(v, dtype=object) for v in made.values()]))
    for j, (n, declared) in enumerate(columns.items()):
        if isinstance(declared, list):
            types.append("nominal")
        else:
            types.append("continuous")
            bounds[n] = (float(declared[0]), float(declared[1]))
        del j
    given = {
        "X": tables[0], "y": np.asarray(y), "Z": tables[1], "z": np.asarray(z), "bounds": bounds, "types": types,
        "names": list(columns), "epsilons": EPSILONS, "delta": DELTA, "seeds": seeds,
    }  # fmt: skip
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(given, file)
        file.flush()
        script = Path(__file__).with_name("_interpret.py")
        env = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
        found = subprocess.run(
            [python, str(script), file.name], capture_output=True, text=True, env=env, check=False
        )
    if found.returncode:
        print(found.stderr[-2000:])
    return [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]


def told(name: str, who: str, rows: list[dict[str, Any]]) -> None:
    """One line for each epsilon."""
    for epsilon in EPSILONS:
        own = [r for r in rows if r["epsilon"] == epsilon]
        if own:
            mean = {k: float(np.mean([r[k] for r in own])) for k in ("auc", "accuracy", "calibration", "cpu")}
            print(
                f"{name:8} {who:9} epsilon {epsilon:<5g} AUC {mean['auc']:.4f} accuracy {mean['accuracy']:.4f} "
                f"calibration {mean['calibration']:.4f} cpu {mean['cpu']:.2f} s, {len(own)} fits", flush=True,
            )  # fmt: skip


def logistic(seeds: int) -> None:
    """Adult at delta = 1e-5: rows of 13 columns in [0, 1], whose length is at most the root of 13."""
    (X, y), (Z, z) = _adult.adult("train"), _adult.adult("test")
    domain = PublicBall(radius=float(np.sqrt(13)))
    for neighbours in ("add-or-remove", "replace-one"):
        for epsilon in (0.1, 0.25, 0.5, 1.0):
            found, used = [], []
            for _ in range(seeds):
                start = time.process_time()
                model = PrivateLogisticRegression(
                    epsilon, 1e-5, domain=domain, classes=[0, 1], neighbours=neighbours
                ).fit(X, y)
                used.append(time.process_time() - start)
                found.append(_interpret.scores(model.predict_proba(Z)[:, 1], z))
            mean = {k: float(np.mean([f[k] for f in found])) for k in ("auc", "accuracy", "calibration")}
            print(
                f"logistic {neighbours:13} epsilon {epsilon:<5g} AUC {mean['auc']:.4f} accuracy "
                f"{mean['accuracy']:.4f} calibration {mean['calibration']:.4f} cpu {np.mean(used):.2f} s", flush=True,
            )  # fmt: skip


def speed() -> None:
    """48,000 rows of 100 columns, beside scikit-learn's own fit of the same rows."""
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(1)
    X = random.uniform(-1, 1, (48_000, 100))
    y = (random.random(48_000) < 1 / (1 + np.exp(-X[:, :10].sum(axis=1)))).astype(int)
    domain = PublicBall(radius=10.0)
    times = []
    for _ in range(3):
        start = time.process_time()
        PrivateLogisticRegression(1, 1e-6, domain=domain, classes=[0, 1]).fit(X, y)
        own = time.process_time() - start
        start = time.process_time()
        LogisticRegression(max_iter=1000).fit(X, y)
        times.append((own, time.process_time() - start))
    own, other = (sorted(t[k] for t in times)[1] for k in (0, 1))
    print(f"48,000 x 100: ours {own:.2f} s, scikit-learn {other:.2f} s, ratio {own / other:.2f}", flush=True)


def main() -> None:
    """All tables, ours and the peer's in turn."""
    warnings.simplefilter("ignore")
    seeds, python = int(os.environ.get("SEEDS", "10")), os.environ.get("EBM")
    for name in os.environ.get("TABLES", "adult yrbss randhie nlswork rwm5yr").split():
        told(name, "additive", ours(name, seeds))
        if python:
            told(name, "DP-EBM", peer(name, seeds, python))
    logistic(seeds)
    speed()


if __name__ == "__main__":
    main()
