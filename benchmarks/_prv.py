"""The heterogeneous plan by prv-accountant, at an error of half the width to each side. JSON lines."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from prv_accountant import GaussianMechanism, LaplaceMechanism, PRVAccountant


def main() -> None:
    width = float(sys.argv[1])
    parts = [LaplaceMechanism(mu=float(e)) for e in np.linspace(0.01, 0.2, 50)]
    parts += [GaussianMechanism(noise_multiplier=float(s)) for s in np.linspace(5, 50, 50)]
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        accountant = PRVAccountant(
            prvs=parts, max_self_compositions=[1] * len(parts), eps_error=width / 2, delta_error=1e-9
        )
        low, _, high = accountant.compute_epsilon(delta=1e-6, num_self_compositions=[1] * len(parts))
        best = min(best, time.perf_counter() - start)
    row = {"low": low, "high": high, "seconds": best, "peer": f"prv-accountant {version('prv-accountant')}"}
    print(json.dumps(row))


main()
