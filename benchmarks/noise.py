"""Exact integer noise beside OpenDP's exact noise and numpy's inexact, insecure one.

Times are nanoseconds for each draw: ours and numpy's the best of seven vectors of 10^6, OpenDP's (whose time
is linear) the best of five vectors of 2*10^5. The tables of our samplers are built beforehand; the time to
build them is a row of its own. Our words come from the cryptographic source.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _peers import run_peer

from tacit.noise import DiscreteGaussian, DiscreteLaplace, GaussianVector
from tacit.noise.distributions import gaussian, geometric

SIZE = 10**6
PEER_SIZE = int(os.environ.get("TACIT_BENCH_PEER_SIZE", SIZE))


def race(*runs: Callable[[], Any], repeats: int = 7) -> list[float]:
    """Nanoseconds for each draw, best of a few rounds; the runs take turns, so that load hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(repeats + 1):
        for run, kept in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            if turn:
                kept.append(time.perf_counter() - start)
    return [min(kept) / SIZE * 1e9 for kept in times]


def row(measure: str, ours: float, peer: str, theirs: float, target: float) -> dict[str, Any]:
    """One line of the results: how many times as fast as the peer we are, and what was asked."""
    return {
        "measure": measure,
        "ours": f"{ours:.1f} ns",
        "peer": peer,
        "theirs": f"{theirs:,.1f} ns",
        "ratio": theirs / ours,
        "target": target,
    }


def main() -> list[dict[str, Any]]:
    rng = np.random.default_rng()
    theirs = {(r["law"], r["scale"]): r for r in run_peer("_opendp_noise.py", str(PEER_SIZE))}
    rows = []
    for name, scale in ((n, s) for n in ("laplace", "gaussian") for s in (10.0, 1e3, 1e6, 1e9)):
        law = DiscreteLaplace(noise_scale=scale) if name == "laplace" else DiscreteGaussian(noise_std=scale)
        ours, inexact = race(
            lambda law=law: law.sample(size=SIZE), lambda scale=scale: rng.laplace(0.0, scale, SIZE)
        )
        peer = theirs[name, scale]
        target = 100.0 if scale <= 1e3 else 30.0
        label = f"discrete {name.capitalize()}, scale {scale:.0e}"
        rows.append(row(label, ours, f"OpenDP {peer['version']}", peer["nanoseconds"], target))
        if scale <= 1e3:
            rows.append(row(label, ours, "numpy Generator.laplace", inexact, 0.2))
    for name, law in (
        ("Laplace", DiscreteLaplace(noise_scale=1000)),
        ("Gaussian", DiscreteGaussian(noise_std=1000)),
    ):
        geometric.geometric_digits.cache_clear()
        geometric._side.cache_clear()
        gaussian._blocks.cache_clear()
        start = time.perf_counter()
        law.sample(size=100)
        rows.append(
            {
                "measure": f"discrete {name}, scale 1e+03: tables and first 100 draws",
                "ours": f"{(time.perf_counter() - start) * 1e3:.1f} ms",
            }
        )
    vector = GaussianVector(coordinates=10, noise_std=3)
    normal, inexact = race(
        lambda: vector.sample(spacing=2.0**-16, size=SIZE // 10), lambda: rng.normal(0.0, 3.0, SIZE)
    )
    measure = "continuous Gaussian on a grid, exact"
    rows.append(row(measure, normal, "numpy Generator.normal", inexact, 0.0))
    return rows
