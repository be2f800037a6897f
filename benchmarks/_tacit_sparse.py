"""Times one sparse release and its peak memory, in a process of its own; run by sparse.py."""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

from tacit.mechanisms import L1, SparseHistogram


def main(bits: int, occupied: int, rule: str) -> None:
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 1 << bits, size=occupied, dtype=np.uint64))
    counts = rng.integers(1, 50, size=keys.size)
    times, size, table = [], 0, 0.0
    for _ in range(3):
        start = time.perf_counter()
        mechanism = SparseHistogram.for_target(epsilon=1, sensitivity=L1(1), domain=1 << bits, rule=rule)
        out = mechanism.release(keys, counts)
        times.append(time.perf_counter() - start)
        size = out.keys.size
        if rule == "floor":
            start = time.perf_counter()
            out.shrunk()
            table = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        json.dumps({"first": times[0], "best": min(times), "peak": peak, "out": size, "shrunk": table}),
        flush=True,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
