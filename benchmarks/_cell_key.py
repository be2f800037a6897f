"""Cell-key perturbation by the statistics offices' own package, in its own environment: one JSON object a cell."""

from __future__ import annotations

import json
import sys
import time

import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table

COLUMNS = ["region", "age", "sex"]


def main(table: str, ptable: str) -> None:
    data, values = pd.read_csv(table), pd.read_csv(ptable)
    begun = time.process_time()
    found = create_perturbed_table(
        data=data, ptable=values, geog=["region"], tab_vars=["age", "sex"], record_key="record_key", threshold=10
    )  # fmt: skip
    print(json.dumps({"seconds": time.process_time() - begun}))
    for row in found.to_dict("records"):
        count = row["count"]
        print(
            json.dumps(
                {"cell": [str(row[c]) for c in COLUMNS], "count": None if pd.isna(count) else int(count)}
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
