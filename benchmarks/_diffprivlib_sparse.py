"""Times diffprivlib's histogram over all cells; run by sparse.py in an environment of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings

import diffprivlib
import numpy as np
from diffprivlib.tools import histogram


def main(cells: int, occupied: int) -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.choice(cells, occupied, replace=False), rng.integers(1, 50, size=occupied))
    start = time.perf_counter()
    histogram(rows + 0.5, epsilon=1.0, bins=cells, range=(0, cells))
    seconds = time.perf_counter() - start
    print(json.dumps({"cells": cells, "seconds": seconds, "version": diffprivlib.__version__}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
