"""dpmm's MST or AIM on one table, in an environment of its own (requirements-dpmm.txt).

python _dpmm.py TABLE.npz EPSILON mst|aim OUT.pickle
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from numpy.random import RandomState


def main(table: str, epsilon: str, kind: str, out: str) -> None:
    """One run at delta = 1e-6 with its defaults, its rows in a pickle, its cost in a line."""
    held = np.load(table)
    train, sizes = held["train"], held["sizes"].tolist()
    names = [f"c{i}" for i in range(len(sizes))]
    start, clock = time.process_time(), time.time()
    model = {"mst": MSTGM, "aim": AIMGM}[kind](epsilon=float(epsilon), delta=1e-6, n_jobs=1)
    model.set_random_state(RandomState(0))
    model.set_domain(dict(zip(names, sizes, strict=True)))
    model.fit(pd.DataFrame(train.astype(int), columns=names))
    rows = model.generate(n_records=len(train))[names].to_numpy().astype(np.int32)
    with open(out, "wb") as file:
        pickle.dump({"rows": rows, "measurements": [], "sizes": sizes}, file)
    told = {
        "table": table, "kind": f"dpmm {kind}", "epsilon": epsilon, "cpu": round(time.process_time() - start, 1),
        "wall": round(time.time() - clock, 1), "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
