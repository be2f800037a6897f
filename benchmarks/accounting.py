"""Composed plans, certified from both sides, beside the peers' accountants.

The plan is heterogeneous: 50 Laplace releases with epsilon evenly from 0.01 to 0.2 and 50 Gaussian ones with
noise multipliers evenly from 5 to 50, at delta = 1e-6 (true epsilon 4.39605). "Both ends" is the time until the
truth is enclosed to the width; connect-the-dots has no lower end, so that dp-accounting's privacy buckets give
it. "Upper end" is connect-the-dots alone, on the coarsest grid whose excess over the truth is not above ours.
Ours always computes both. Times are processor time, the best of a few in one run; caches are emptied before each.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _peers import run_peer

from tacit.accounting import Account, account
from tacit.accounting import events as e
from tacit.pld import engine as closed_form
from tacit.pld import product
from tacit.pld import product as enumerated

WIDTH = 1e-3
TRUTH = 4.396045


def fresh(
    plan: Callable[[], Sequence[e.Event]], repeats: int = 5, neighbours: str = "add-or-remove"
) -> tuple[Account, float]:
    """The account, and the best time from events to enclosure with nothing cached."""
    best = float("inf")
    for _ in range(repeats):
        for cache in (product._delta, product._epsilon, closed_form._invert, enumerated.enumerated):
            cache.cache_clear()
        start = time.process_time()
        found = account(plan(), delta=1e-6, neighbours=neighbours)
        best = min(best, time.process_time() - start)
    return found, best


def mixed() -> list[e.Event]:
    """The heterogeneous plan."""
    laplace = [e.LaplaceEvent(epsilon=float(x)) for x in np.linspace(0.01, 0.2, 50)]
    return [*laplace, *(e.GaussianEvent(noise_multiplier=float(x)) for x in np.linspace(5, 50, 50))]


def row(measure: str, ours: float, peer: str, theirs: float, target: float) -> dict[str, Any]:
    """One line of the results."""
    return {
        "measure": measure,
        "ours": f"{ours:.3f} s",
        "peer": peer,
        "theirs": f"{theirs:.3f} s",
        "ratio": theirs / ours,
        "target": target,
    }


def main() -> list[dict[str, Any]]:
    found, seconds = fresh(mixed)
    ends = found.epsilon
    rows: list[dict[str, Any]] = []
    excess = max(ends.high - TRUTH, 1e-6)
    peers = run_peer(
        "_dp_accounting.py",
        str(WIDTH),
        str(excess),
        str(TRUTH),
        requirements="requirements-dp-accounting.txt",
    )
    for peer in peers:
        both = peer["what"] == "both"
        grid = f"{peer['peer']}, grid {peer['interval']:.0e}"
        label = f"100 different releases, both ends within {WIDTH:g} (ours: {ends.width:.1e})"
        if not both:
            label = f"100 different releases, upper end within {excess:.1e} (ours: both ends)"
        rows.append(row(label, seconds, grid, peer["seconds"], 5.0 if both else 0.0))
    _, sampled = fresh(lambda: [_times(_sampled(0.01), 10_000)], repeats=3)
    labels = {
        "mixed": ("100 different releases", seconds),
        "sampled": ("10^4 Poisson-sampled Gaussian releases", sampled),
    }
    for peer in run_peer("_prv.py", str(WIDTH), requirements="requirements-prv.txt"):
        name, ours = labels[peer["plan"]]
        label = f"{name}, both ends within {WIDTH:g}"
        if "problem" in peer:
            told = {
                "measure": label,
                "ours": f"{ours:.3f} s",
                "peer": peer["peer"],
                "theirs": f"refused: {peer['problem']}",
            }
            rows.append(told)
        else:
            rows.append(row(label, ours, peer["peer"], peer["seconds"], 0.0))
    plans: list[tuple[str, Callable[[], Sequence[e.Event]]]] = [
        ("10^6 repetitions of one Laplace release", lambda: [_times(e.LaplaceEvent(epsilon=1e-3), 10**6)]),
        (
            "10^6 repetitions of one Poisson-sampled Gaussian release",
            lambda: [_times(_sampled(1e-3), 10**6)],
        ),
        (
            "10^4 different Laplace releases",
            lambda: [e.LaplaceEvent(epsilon=float(x)) for x in np.linspace(1e-3, 2e-2, 10_000)],
        ),
        (
            "10^4 different Laplace and Gaussian releases",
            lambda: [
                *(e.LaplaceEvent(epsilon=float(x)) for x in np.linspace(1e-3, 2e-2, 5_000)),
                *(e.GaussianEvent(noise_multiplier=float(x)) for x in np.linspace(50, 500, 5_000)),
            ],
        ),
    ]
    for name, plan in plans:
        done, seconds = fresh(plan, repeats=2)
        rows.append(
            {
                "measure": f"{name}, width {done.epsilon.width:.1e} (asked: under 2 s)",
                "ours": f"{seconds:.2f} s",
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append({"measure": "peak memory of all of these (asked: under 1 GiB)", "ours": f"{peak:.2f} GiB"})
    return rows


def _sampled(rate: float) -> e.Event:
    return e.PoissonSampledEvent(event=e.GaussianEvent(noise_multiplier=1.0), sampling_rate=rate)


def _times(event: e.Event, times: int) -> e.Event:
    return e.RepeatedEvent(event=event, times=times)
