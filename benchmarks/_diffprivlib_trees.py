"""diffprivlib's decision tree and forest on rows that were saved by trees.py; run in an environment of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings

import diffprivlib
import numpy as np
from diffprivlib.models import DecisionTreeClassifier, RandomForestClassifier


def main(path: str, releases: int) -> None:
    warnings.simplefilter("ignore")
    data = np.load(path)
    bounds = (data["low"], data["high"])
    makers = {
        "tree": lambda depth, seed: DecisionTreeClassifier(
            epsilon=1.0, max_depth=depth, bounds=bounds, classes=[0, 1], random_state=seed
        ),
        "forest": lambda depth, seed: RandomForestClassifier(
            n_estimators=10, epsilon=1.0, max_depth=depth, bounds=bounds, classes=[0, 1], random_state=seed
        ),
    }
    for name, make in makers.items():
        for depth in (3, 5, 8, 12):
            start = time.perf_counter()
            scores = [
                make(depth, seed).fit(data["X"], data["y"]).score(data["Z"], data["z"])
                for seed in range(releases)
            ]
            found = {
                "model": name, "depth": depth, "score": float(np.mean(scores)), "least": float(np.min(scores)),
                "seconds": (time.perf_counter() - start) / releases, "version": diffprivlib.__version__,
            }  # fmt: skip
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
