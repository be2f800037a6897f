"""Three quantiles of ten million numbers through the curator, beside numpy's exact ones in memory.

A release is a new request each time: charged, read from the Parquet file, noised, recorded, certified. numpy has the
numbers in memory. They take turns and the best of five are compared; a target of 3 x is a ratio of 0.33.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit

VALUES = 10**7
TURNS = 5


def main() -> list[dict[str, Any]]:
    values = np.random.default_rng(1).lognormal(10, 1, VALUES)
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = Path(folder) / "values.parquet"
        pq.write_table(pa.table({"x": values}), path)
        curator = tacit.Curator(
            path,
            protect=tacit.rows(),
            schema={"x": tacit.number(0, 250_000)},
            budget=tacit.Pure(epsilon=1000.0),
        )
        ours, theirs = [], []
        with curator:
            curator.release(tacit.count(), epsilon=1)
            for turn in range(TURNS):
                start = time.perf_counter()
                curator.release(tacit.quantiles("x"), epsilon=1, key=f"turn {turn}")
                ours.append(time.perf_counter() - start)
                start = time.perf_counter()
                np.quantile(values, [0.25, 0.5, 0.75])
                theirs.append(time.perf_counter() - start)
    best, exact = min(ours), min(theirs)
    return [
        {
            "measure": "three quantiles of 10^7 numbers",
            "ours": f"{best * 1000:,.0f} ms",
            "peer": f"numpy {np.__version__}, exact",
            "theirs": f"{exact * 1000:,.0f} ms",
            "ratio": exact / best,
            "target": 1 / 3,
        }
    ]
