"""Our own mechanisms under the black box: a line each, with the lower bound that was reached (`make audit`).

    python benchmarks/audit_house.py [OUTPUTS]

The level is 1e-4. A rejection here is a breach of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tacit
from tacit import mechanisms as m
from tacit.audit import mechanism

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


def main(outputs: int) -> int:
    """Audit all; the exit code is 1 if one is rejected."""
    rejected = 0
    print(f"| mechanism | claim | outputs | lower bound |  tacit {tacit.__version__}")
    for name, claim, neighbours, run in cases():
        found = mechanism(run, claim=claim, neighbours=neighbours, level=1e-4, outputs=outputs, seconds=600.0)
        rejected += found.rejected
        verdict = " **rejected**" if found.rejected else ""
        print(
            f"| {name} | {found.claim.describe()} | {found.outputs:,} | {found.lower:.3g}{verdict} |",
            flush=True,
        )
    return int(bool(rejected))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
