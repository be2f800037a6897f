"""An ordinary plan by dp-accounting: the upper end at delta = 1e-6 on the coarsest grid that is near enough."""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib.metadata import version

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

logging.disable(logging.WARNING)


def composed(name: str, n: int, interval: float) -> float:
    total = None
    for k in range(n):
        if name == "Laplace":
            epsilon = np.linspace(0.5, 1.0, n)[k] / n**0.5
            part = pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=interval)
        else:
            part = pld.from_gaussian_mechanism(
                np.linspace(0.8, 2.0, n)[k],
                value_discretization_interval=interval,
                sampling_prob=np.linspace(0.01, 0.1, n)[k],
            )
        total = part if total is None else total.compose(part)
    return float(total.get_epsilon_for_delta(1e-6))


def main() -> None:
    name, n = sys.argv[1], int(sys.argv[2])
    truth, excess = float(sys.argv[3]), float(sys.argv[4])
    composed(name, 2, 1e-2)
    interval = 4e-3
    while True:
        start = time.process_time()
        upper = composed(name, n, interval)
        seconds = time.process_time() - start
        if upper - truth <= excess or interval < 1e-6:
            break
        interval /= 2
    peer = f"dp-accounting {version('dp-accounting')}, grid {interval:.0e}"
    print(json.dumps({"upper": upper, "seconds": seconds, "peer": peer}))


main()
