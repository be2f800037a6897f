"""A small table with a clear pattern, and functions that are asked of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import tacit

BUDGET = tacit.Approximate(epsilon=1e3, delta=0.5)
DECLARED = {
    "x": tacit.number(-1, 1), "z": tacit.number(0, 10), "k": tacit.category(["no", "yes"]), "f": tacit.flag(),
    "t": tacit.category(), "u": tacit.number(), "c": tacit.category(["a", "b", "c"]),
    "d": tacit.date("2020-01-01", "2020-12-31"),
}  # fmt: skip


def small(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, rows)
    return pd.DataFrame(
        {
            "id": np.arange(rows) // 2,
            "x": x,
            "z": 5 + 4 * np.sin(3 * x) + rng.normal(size=rows) * 0.2,
            "k": np.where(x > 0, "yes", "no"),
            "f": x > 0.3,
            "t": "t",
            "u": x,
            "c": rng.choice(["a", "b", "c"], rows),
            "d": pd.Timestamp("2020-06-01"),
        }
    )


def curator(data: Any = None, **more: Any) -> tacit.Curator:
    given = {"protect": tacit.rows(neighbours="replace-one"), "schema": DECLARED, "budget": BUDGET} | more
    return tacit.Curator(small() if data is None else data, **given)


PAID = {"epsilon": 1, "delta": 1e-5}
ASKS: dict[str, Any] = {
    "density": tacit.density("x", size=300),
    "map": tacit.density(["x", "z"], size=300, points=5),
    "days": tacit.density("d", size=300, bandwidth=20),
    "classifier": tacit.classifier(["x", "z"], "k", size=300, pairs=8),
    "flag": tacit.classifier(["x"], "f", size=300, pairs=8),
    "linear": tacit.classifier(["x", "c", "d"], "k", size=300, kernel="linear", loss="logistic"),
    "three": tacit.classifier(["x"], "c", size=300, pairs=4),
    "regression": tacit.regression_function("x", "z", size=300, pairs=8),
}
