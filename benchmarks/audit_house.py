"""Our own house under audit (`make audit`): every statistic under the replay, every mechanism under the black box.

    python benchmarks/audit_house.py [OUTPUTS [NEIGHBOURS]]

First each kind of statistic, for each unit and relation, on NEIGHBOURS pairs of made-up neighbours (200): a line a
unit. Then a line a mechanism, with the lower bound that OUTPUTS outputs reached (20,000) at level 1e-4. A breach or a
rejection here is a fault of ours, and the exit code is 1. With OUTPUTS or NEIGHBOURS 0 that half is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit import mechanisms as m
from tacit.audit import mechanism, plan

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzz.quick import sped_up
from support.house import UNITS, house_plan

Case = tuple[str, Any, Any, Callable[[Any], Any]]


def cases() -> list[Case]:
    """Name, claim, neighbours, one run."""
    made = (
        m.Laplace.for_target(epsilon=1, sensitivity=m.L1(1)),
        m.Geometric.for_target(epsilon=1),
        m.Staircase.for_target(epsilon=1, sensitivity=m.L1(1)),
        m.Gaussian(noise_std=4.0, sensitivity=m.L2(1)),
        m.TruncatedDiscreteLaplace(epsilon=1, largest_noise=14, sensitivity=m.L1(1), moved_cells=1),
    )

    def released(one: Any) -> Callable[[Any], Any]:
        return lambda x: np.asarray(one.release([int(x)]).values).tolist()

    found: list[Case] = [(type(one).__name__, one.bound, "number", released(one)) for one in made]
    response = m.RandomizedResponse(epsilon=1)
    found.append((type(response).__name__, response.bound, "bit", released(response)))
    return found


def replayed(neighbours: int) -> int:
    """The replay of every statistic for every unit; how many releases are broken."""
    broken = 0
    print(
        f"| unit | releases | pairs of neighbours | broken | least, most sensitivity used |  tacit {tacit.__version__}"
    )
    for name, unit in UNITS.items():
        used = time.process_time()
        with sped_up():
            found = plan(house_plan(unit), neighbours=neighbours, outputs=0)
        wrong = [r for r in found.releases if r.broken]
        shares = [r.moved for r in found.releases if r.moved == r.moved]
        print(
            f"| {name} | {len(found.releases)} | {neighbours} | {len(wrong)} | {min(shares):.2g}, {max(shares):.2g} |"
            f"  {time.process_time() - used:.0f} s of processor",
            flush=True,
        )
        for one in wrong:
            print("\n".join(one.lines()), flush=True)
        broken += len(wrong)
    return broken


def bet_on(outputs: int) -> int:
    """Bets against every mechanism; how many are rejected."""
    rejected = 0
    print("| mechanism | claim | outputs | lower bound |")
    for name, claim, neighbours, run in cases():
        found = mechanism(run, claim=claim, neighbours=neighbours, level=1e-4, outputs=outputs, seconds=600.0)
        rejected += found.rejected
        verdict = " **rejected**" if found.rejected else ""
        print(
            f"| {name} | {found.claim.describe()} | {found.outputs:,} | {found.lower:.3g}{verdict} |",
            flush=True,
        )
    return rejected


def main(outputs: int, neighbours: int) -> int:
    """Audit all; the exit code is 1 if anything breaks."""
    broken = replayed(neighbours) if neighbours else 0
    rejected = bet_on(outputs) if outputs else 0
    return int(bool(broken or rejected))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(given[0] if given else 20_000, given[1] if len(given) > 1 else 200))
