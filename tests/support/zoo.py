"""The zoo of examples with seeds: audits that do not depend on luck."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tacit.audit import MechanismAudit, mechanism

ZOO = Path(__file__).parents[2] / "examples" / "mechanism_zoo.py"


@cache
def zoo() -> Any:
    """The module of the examples."""
    spec = importlib.util.spec_from_file_location("mechanism_zoo", ZOO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mechanism_zoo"] = module
    spec.loader.exec_module(module)
    return module


def audited(name: str, *, outputs: int, seed: int, level: float = 0.05, **options: Any) -> MechanismAudit:
    """The audit of an entry under its own claim, with seeded noise and coins."""
    entry = zoo().ZOO[name]
    zoo().rng = np.random.default_rng(seed)
    zoo()._NOISE.clear()
    zoo()._BODY.clear()
    coins = np.random.default_rng(seed + 10**6)
    return mechanism(
        entry.run,
        claim=entry.claim,
        neighbours=entry.neighbours,
        outputs=outputs,
        seconds=3600.0,
        level=level,
        coins=lambda n: coins.integers(0, 2, n),
        **options,
    )
