"""A table of independent draws, and curators and plans over it, given random data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import tacit
from tacit.curator.charging import price
from tacit.curator.planning import make_plan
from tacit.guarantees import Always, Guarantee, Pure, RandomData
from tacit.noise import SeededSource
from tacit.sources.schema import Schema

REPLACE, ADD = tacit.rows(neighbours="replace-one"), tacit.rows()
SCHEMA = {
    "c": tacit.integer(0, 399),
    "k": tacit.category(["a", "b", "z"]),
    "all": tacit.category(["a", "b", "z"], missing="z"),
    "f": tacit.flag(),
    "sure": tacit.flag(missing=False),
}


def rows(n: int = 8000, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "c": random.choice(16, n) * 7,
            "k": random.choice(["a", "b"], n),
            "all": random.choice(["a", "b"], n),
            "f": random.random(n) < 0.002,
            "sure": random.random(n) < 0.002,
        }
    )


def curator(
    gamma: float | None = 0.1, *, unit: Any = REPLACE, data: Any = None, epsilon: float = 1.0, **more: Any
) -> tacit.Curator:
    condition = Always() if gamma is None else RandomData(gamma=gamma)
    return tacit.Curator(
        rows() if data is None else data, protect=unit, schema=SCHEMA, source=SeededSource(seed=5),
        budget=Guarantee(bound=Pure(epsilon=epsilon), unit=unit, condition=condition), **more,
    )  # fmt: skip


def planned(*asks: Any, unit: Any = REPLACE, epsilon: Any = 1, given: Any = None, **schema: Any) -> Any:
    listed = [a if isinstance(a, tacit.Query) else tacit.query(a) for a in asks]
    return make_plan(
        listed, schema=Schema(schema or SCHEMA), unit=unit, budget=Pure(epsilon=9.0),
        total=price(epsilon=epsilon), given=given,
    )  # fmt: skip
