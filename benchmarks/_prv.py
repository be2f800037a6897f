"""Plans by prv-accountant, at an error of half the width to each side. JSON lines; a plan that it refuses says why."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)

PEER = f"prv-accountant {version('prv-accountant')}"


def report(plan: str, parts: Callable[[], list[Any]], times: list[int], width: float) -> None:
    best, answer = float("inf"), (0.0, 0.0)
    try:
        for _ in range(2):
            start = time.process_time()
            accountant = PRVAccountant(
                prvs=parts(), max_self_compositions=times, eps_error=width / 2, delta_error=1e-9
            )
            low, _, high = accountant.compute_epsilon(delta=1e-6, num_self_compositions=times)
            best, answer = min(best, time.process_time() - start), (low, high)
    except RuntimeError as problem:
        print(json.dumps({"plan": plan, "peer": PEER, "problem": str(problem)}))
        return
    print(json.dumps({"plan": plan, "peer": PEER, "low": answer[0], "high": answer[1], "seconds": best}))


def main() -> None:
    width = float(sys.argv[1])
    report(
        "mixed",
        lambda: [
            *(LaplaceMechanism(mu=float(e)) for e in np.linspace(0.01, 0.2, 50)),
            *(GaussianMechanism(noise_multiplier=float(s)) for s in np.linspace(5, 50, 50)),
        ],
        [1] * 100,
        width,
    )
    report(
        "sampled",
        lambda: [PoissonSubsampledGaussianMechanism(noise_multiplier=1.0, sampling_probability=0.01)],
        [10_000],
        width,
    )


main()
