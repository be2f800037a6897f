"""The heterogeneous plan by dp-accounting: both ends to the width asked, and the upper end alone. JSON lines."""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib.metadata import version

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

logging.disable(logging.WARNING)


def composed(interval: float, pessimistic: bool) -> float:
    total = None
    for epsilon in np.linspace(0.01, 0.2, 50):
        part = pld.from_laplace_mechanism(
            1 / epsilon,
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        total = part if total is None else total.compose(part)
    for multiplier in np.linspace(5, 50, 50):
        total = total.compose(
            pld.from_gaussian_mechanism(
                multiplier,
                value_discretization_interval=interval,
                pessimistic_estimate=pessimistic,
                use_connect_dots=pessimistic,
            )
        )
    return float(total.get_epsilon_for_delta(1e-6))


def timed(interval: float, pessimistic: bool, repeats: int) -> tuple[float, float]:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        value = composed(interval, pessimistic)
        best = min(best, time.process_time() - start)
    return value, best


def main() -> None:
    width, excess, truth = (float(a) for a in sys.argv[1:4])
    composed(1e-2, True)
    # The coarsest grid (halving) whose upper end is as near the truth as ours.
    interval = 4e-3
    while True:
        upper, seconds = timed(interval, True, 3)
        if upper - truth <= excess:
            break
        interval /= 2
    name = f"dp-accounting {version('dp-accounting')}"
    print(
        json.dumps({"what": "upper", "interval": interval, "upper": upper, "seconds": seconds, "peer": name})
    )
    # The coarsest grid whose two ends (connect-the-dots above, privacy buckets below) are within the width.
    interval = 1.6e-4
    while True:
        upper, above = timed(interval, True, 1)
        lower, below = timed(interval, False, 1)
        if upper - lower <= width:
            break
        interval /= 2
    print(
        json.dumps(
            {
                "what": "both",
                "interval": interval,
                "upper": upper,
                "lower": lower,
                "seconds": above + below,
                "peer": name,
            }
        )
    )


main()
