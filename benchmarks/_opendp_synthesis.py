"""OpenDP's MST or AIM on one table, in an environment of its own (requirements-mbi.txt).

    python _opendp_synthesis.py TABLE.npz RHO mst|aim ROUNDS ORDER MEGABYTES OUT.pickle     ("-": the peer's default)

TABLE.npz has `train` and `sizes` (`synthesis.py tables FOLDER` writes it). All keys are declared: the price is a rho.
MST divides its budget so that parts add up to more than the whole by a rounding for some numbers of columns, and then
stops with "insufficient budget": the share that measures is moved by thousandths until it runs. Rows come from
"sample": the default "round" breaks conditional independence.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time

import numpy as np
import opendp.prelude as dp
import polars as pl

SPLITS = (0.9, 0.899, 0.901, 0.898, 0.902, 0.895, 0.905, 0.89, 0.91, 0.88, 0.92)


def main(table: str, rho: str, kind: str, rounds: str, order: str, megabytes: str, out: str) -> None:
    """One run, its rows and measurements in a pickle, its cost in a line."""
    dp.enable_features("contrib")
    held = np.load(table)
    train, sizes = held["train"], held["sizes"].tolist()
    frame = pl.DataFrame({f"c{i}": train[:, i].astype(np.int64) for i in range(len(sizes))}).lazy()
    keys = {f"c{i}": list(range(s)) for i, s in enumerate(sizes)}
    start, clock, tried = time.process_time(), time.time(), []
    words = {n: v for n, v in (("rounds", rounds), ("queries", order), ("max_size", megabytes)) if v != "-"}
    settings = [{"measure_split": s} for s in SPLITS] if kind == "mst" else [words]
    made = None
    for one in settings:
        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=float(rho)),
            split_evenly_over=1,
        )  # fmt: skip
        algorithm = dp.mbi.MST(**one) if kind == "mst" else dp.mbi.AIM(**{n: int(v) for n, v in one.items()})
        try:
            made = context.query().contingency_table(keys=keys, algorithm=algorithm).release()
            break
        except Exception as problem:
            tried.append([one, str(problem)[:120]])
    if made is None:
        raise SystemExit(json.dumps({"table": table, "kind": kind, "failed": tried}))
    rows = made.synthesize(method="sample")
    codes = [
        np.where(rows[f"c{i}"].is_null().to_numpy(), s, rows[f"c{i}"].fill_null(0).to_numpy())
        for i, s in enumerate(sizes)
    ]
    measured = [
        (
            tuple(int(c[1:]) for c in m.clique),
            np.asarray(m.noisy_measurement, dtype=float).ravel(),
            float(m.stddev),
        )
        for m in made.marginals.flatten()
    ]
    with open(out, "wb") as file:
        rows_and_more = {
            "rows": np.column_stack(codes).astype(np.int32),
            "measurements": measured,
            "sizes": [s + 1 for s in sizes],
        }
        pickle.dump(rows_and_more, file)
    told = {
        "table": table, "kind": kind, "rho": float(rho), "tried": tried, "cpu": round(time.process_time() - start, 1),
        "wall": round(time.time() - clock, 1), "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:8])
