"""diffprivlib's logistic regression on rows that were saved by machines.py; run in an environment of its own."""

from __future__ import annotations

import json
import sys
import warnings

import diffprivlib
import numpy as np
from diffprivlib.models import LogisticRegression


def main(path: str, radius: float, releases: int) -> None:
    warnings.simplefilter("ignore")
    data = np.load(path)
    for strength in (0.001, 0.01, 0.1, 1.0):
        scores = []
        for seed in range(releases):
            model = LogisticRegression(
                epsilon=1.0, data_norm=radius, C=strength, max_iter=1000, random_state=seed
            )
            scores.append(model.fit(data["X"], data["y"]).score(data["Z"], data["z"]))
        found = {"C": strength, "score": float(np.mean(scores)), "version": diffprivlib.__version__}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
