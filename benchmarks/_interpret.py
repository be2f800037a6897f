"""DP-EBM of interpret on the tables of `_tables`, in an environment of its own: AUC, accuracy, calibration, seconds."""

from __future__ import annotations

import json
import pickle
import sys
import time
import warnings

import numpy as np


def main() -> None:
    """Reads {columns, train, test, epsilons, delta, seeds} from a pickle, prints a line of JSON a fit."""
    warnings.simplefilter("ignore")
    from interpret.privacy import DPExplainableBoostingClassifier

    with open(sys.argv[1], "rb") as file:
        given = pickle.load(file)
    X, y, Z, z = given["X"], given["y"], given["Z"], given["z"]
    for epsilon in given["epsilons"]:
        for seed in range(given["seeds"]):
            start = time.process_time()
            model = DPExplainableBoostingClassifier(
                epsilon=epsilon, delta=given["delta"], privacy_bounds=given["bounds"],
                feature_types=given["types"], feature_names=given["names"], random_state=None,
            )  # fmt: skip
            model.fit(X, y)
            used = time.process_time() - start
            chance = np.asarray(model.predict_proba(Z))[:, 1]
            print(
                json.dumps(
                    {"epsilon": epsilon, "seed": seed, "cpu": used, "chance": None, **scores(chance, z)}
                )
            )
            sys.stdout.flush()


def scores(chance: np.ndarray, z: np.ndarray) -> dict[str, float]:
    """AUC by ranks, accuracy, and the expected calibration error in ten bins."""
    order = np.argsort(np.argsort(chance, kind="stable"), kind="stable") + 1.0
    for value in np.unique(chance):
        same = chance == value
        if same.sum() > 1:
            order[same] = order[same].mean()
    ones = z == 1
    n1, n0 = int(ones.sum()), int((~ones).sum())
    auc = (order[ones].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    bins = np.clip((chance * 10).astype(int), 0, 9)
    error = sum(
        abs(chance[bins == k].mean() - z[bins == k].mean()) * (bins == k).mean()
        for k in range(10)
        if (bins == k).any()
    )
    return {
        "auc": float(auc),
        "accuracy": float(((chance > 0.5) == ones).mean()),
        "calibration": float(error),
    }


if __name__ == "__main__":
    main()
