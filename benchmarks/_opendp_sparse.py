"""Times OpenDP's count_by_categories with Laplace noise over all cells; run by sparse.py in the peers' environment."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")


def main(cells: int, occupied: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.choice(cells, occupied, replace=False), rng.integers(1, 50, size=occupied)).tolist()
    start = time.perf_counter()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = space >> dp.t.then_count_by_categories(categories=list(range(cells)), null_category=False)
    (count >> dp.m.then_laplace(scale=1.0))(rows)
    seconds = time.perf_counter() - start
    print(json.dumps({"cells": cells, "seconds": seconds, "version": dp.__version__}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
