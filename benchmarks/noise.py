"""Exact integer noise beside OpenDP's exact noise and numpy's inexact, insecure one.

Every time is for a vector of 10^6 integers, in nanoseconds for each draw, the tables of our samplers built
beforehand; the time to build them is a row of its own. Our words come from the cryptographic source.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _peers import run_peer

from tacit.noise import DiscreteGaussian, DiscreteLaplace, GaussianVector
from tacit.noise.laws import gaussian, geometric

SIZE = 10**6
PEER_SIZE = int(os.environ.get("TACIT_BENCH_PEER_SIZE", SIZE))


def best(run: Callable[[], Any], repeats: int = 7) -> float:
    """Nanoseconds for each draw, best of a few runs."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) / SIZE * 1e9


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
    inexact = {s: best(lambda s=s: rng.laplace(0.0, s, SIZE)) for s in (10.0, 1e3)}
    theirs = {(r["law"], r["scale"]): r for r in run_peer("_opendp_noise.py", str(PEER_SIZE))}
    rows = []
    for name, scale in ((n, s) for n in ("laplace", "gaussian") for s in (10.0, 1e3, 1e6, 1e9)):
        law = DiscreteLaplace(noise_scale=scale) if name == "laplace" else DiscreteGaussian(noise_std=scale)
        ours = best(lambda law=law: law.sample(size=SIZE))
        peer = theirs[name, scale]
        target = 100.0 if scale <= 1e3 else 30.0
        label = f"discrete {name.capitalize()}, scale {scale:.0e}"
        rows.append(row(label, ours, f"OpenDP {peer['version']}", peer["nanoseconds"], target))
        if scale in inexact:
            rows.append(row(label, ours, "numpy Generator.laplace", inexact[scale], 0.2))
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
    normal = best(lambda: vector.sample(spacing=2.0**-16, size=SIZE // 10), 3)
    peer_normal = best(lambda: rng.normal(0.0, 3.0, SIZE))
    measure = "continuous Gaussian on a grid, exact"
    rows.append(row(measure, normal, "numpy Generator.normal", peer_normal, 0.0))
    return rows
