"""Audits measured: outputs until broken mechanisms are caught, false accusations, lower bounds, speed.

    python benchmarks/audit.py caught --seeds 20        median outputs for the broken sparse vectors and others
    python benchmarks/audit.py right --audits 1000      share of right mechanisms accused at level 0.05, 2,000 outputs
    python benchmarks/audit.py right --audits 10000 --outputs 200 --level 1e-6
    python benchmarks/audit.py lower --seeds 5          lower bounds for Laplace and geometric noise, 20,000 outputs
    python benchmarks/audit.py speed                    seconds for 100,000 outputs of a cheap mechanism

Each line is printed as soon as it is known, so that a run may be cut short.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.zoo import audited, zoo

CAUGHT = {
    "sparse_vector_5": 3_000,
    "sparse_vector_6": 8_000,
    "sparse_vector_4": 30_000,
    "sparse_vector_3": 40_000,
    "float_laplace": 2_000,
    "gaussian_too_small": 60_000,
    "noise_reused": 3_000,
    "redrawn_function": 3_000,
    "person_per_row": 4_000,
    "noisy_max_gap": 12_000,
    "caratheodory_printed": 30_000,
}


def caught(seeds: int, names: list[str]) -> None:
    """Outputs until the claim is rejected, by seed."""
    for name in names or CAUGHT:
        found = []
        for seed in range(seeds):
            one = audited(name, outputs=CAUGHT[name], seed=seed)
            found.append(one.rejected_after if one.rejected_after is not None else float("inf"))
            print(f"  {name} seed {seed}: {found[-1]}", flush=True)
        print(
            f"{name}: median {statistics.median(found):,.0f} of {seeds}, {sum(map(np.isfinite, found))} caught",
            flush=True,
        )


def right(audits: int, outputs: int, level: float) -> None:
    """The share of right mechanisms that are accused."""
    names = [n for n, e in zoo().ZOO.items() if e.private]
    accused = 0
    for i in range(audits):
        name = names[i % len(names)]
        one = audited(name, outputs=outputs, seed=1000 + i, level=level)
        accused += one.rejected or one.lower > one.claim.value
        if (i + 1) % 20 == 0 or i + 1 == audits:
            print(f"right: {accused} of {i + 1} accused ({outputs} outputs, level {level:g})", flush=True)


def lower(seeds: int) -> None:
    """Lower bounds where the truth is 1."""
    for name in ("laplace", "geometric"):
        for seed in range(seeds):
            one = audited(name, outputs=20_000, seed=seed)
            print(f"{name} seed {seed}: epsilon above {one.lower:.3g}", flush=True)


def speed() -> None:
    """Seconds for 100,000 outputs."""
    began, used = time.perf_counter(), time.process_time()
    one: Any = audited("geometric", outputs=100_000, seed=1)
    clock, processor = time.perf_counter() - began, time.process_time() - used
    print(
        f"speed: {one.outputs:,} outputs in {clock:.1f} s ({processor:.1f} s processor), epsilon above {one.lower:.3g}"
    )


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("what", choices=["caught", "right", "lower", "speed"])
    given.add_argument("names", nargs="*")
    given.add_argument("--seeds", type=int, default=20)
    given.add_argument("--audits", type=int, default=1000)
    given.add_argument("--outputs", type=int, default=2_000)
    given.add_argument("--level", type=float, default=0.05)
    args = given.parse_args()
    if args.what == "caught":
        caught(args.seeds, args.names)
    elif args.what == "right":
        right(args.audits, args.outputs, args.level)
    elif args.what == "lower":
        lower(args.seeds)
    else:
        speed()
