"""Times OpenDP's context: a count by state, a clamped sum by state; run by curator.py in the peers' environment."""

from __future__ import annotations

import json
import sys
import time

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def timed(path: str, what: str, rows: int) -> tuple[float, float]:
    """Seconds from a path to released numbers: on the wall, and of the processor."""
    start, busy = time.perf_counter(), time.process_time()
    context = dp.Context.compositor(
        data=pl.scan_parquet(path), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1, margins=[dp.polars.Margin(by=["state"], invariant="keys", max_length=rows, max_groups=50)],
    )  # fmt: skip
    grouped = context.query().group_by("state")
    if what == "count":
        query = grouped.agg(dp.len())
    else:
        query = grouped.agg(pl.col("income").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 100_000.0)))
    query.release().collect()
    return time.perf_counter() - start, time.process_time() - busy


def main(path: str, rows: int, repeats: int) -> None:
    """The first run of a process is not counted."""
    for what in ("count", "sum"):
        times = [timed(path, what, rows) for _ in range(repeats + 1)][1:]
        seconds, processor = (min(column) for column in zip(*times, strict=True))
        row = {"what": what, "seconds": seconds, "processor": processor, "version": dp.__version__}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
