"""Times OpenDP's exact integer noise; run by noise.py in the peers' environment."""

from __future__ import annotations

import json
import sys
import time

import opendp.prelude as dp

dp.enable_features("contrib")

PARTS = 5


def main(size: int) -> None:
    zeros = [0] * (size // PARTS)
    for law in ("laplace", "gaussian"):
        for scale in (10.0, 1e3, 1e6, 1e9):
            domain = dp.vector_domain(dp.atom_domain(T="i64"))
            if law == "laplace":
                noise = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
            else:
                noise = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale)
            noise(zeros[:100])
            times = []
            for _ in range(PARTS):
                start = time.perf_counter()
                noise(zeros)
                times.append(time.perf_counter() - start)
            each = min(times) / len(zeros) * 1e9
            row = {"law": law, "scale": scale, "nanoseconds": each, "version": dp.__version__}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
