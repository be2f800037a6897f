"""Audits of other libraries, each in an environment of its own.

    python benchmarks/audit_peers.py diffprivlib ENVIRONMENT/bin/python [NAME ...]

A line for each public function; the claim is epsilon = 1 for rows in [0, 1]. A rejection prints its event, which
the same command shows again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tacit.audit.answers import answer_of
from tacit.audit.black_box import watch
from tacit.audit.claimed import claim_of
from tacit.audit.neighbours import named_neighbours
from tacit.audit.outputs import Output, plain_output

RELATION = {
    "Laplace": "number", "Geometric": "number", "Snapping": "number", "laplace of integers": "number",
    "laplace of floats": "number",
    # diffprivlib takes the number of rows as public.
    "mean": "rows replaced", "var": "rows replaced", "LinearRegression": "rows replaced", "median": "rows replaced",
    "count_nonzero": "rows replaced", "histogram": "rows replaced", "diffprivlib sum": "rows replaced",
}  # fmt: skip


def main(library: str, python: str, names: Sequence[str], outputs: int = 4_000) -> None:
    """Audit every function of a library, or those that are named."""
    script = Path(__file__).with_name("_audit_peer.py")
    with subprocess.Popen(
        [python, str(script), library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        known = json.loads(peer.stdout.readline())
        for name in names or known:
            pairs = named_neighbours(RELATION.get(f"{library} {name}", RELATION.get(name, "rows added")))

            def run(jobs: Sequence[tuple[int, int]], name: str = name, pairs: object = pairs) -> list[Output]:
                out = []
                for pair, side in jobs:
                    peer.stdin.write(json.dumps([name, pairs.pairs[pair][side]]) + "\n")
                    peer.stdin.flush()
                    out.append(plain_output(json.loads(peer.stdout.readline())))
                return out

            course = watch(
                run,
                claim=claim_of("epsilon=1"),
                neighbours=pairs,
                level=1e-4,
                most_outputs=outputs,
                seconds=40.0,
            )
            found = answer_of(course)
            verdict = f"REJECTED after {found.rejected_after:,}" if found.rejected else "not rejected"
            print(
                f"{library} {name}: {verdict} in {found.outputs:,} outputs, epsilon above {found.lower:.3g}",
                flush=True,
            )
            if found.rejected and found.event is not None:
                print(f"    {found.event.sentence()}", flush=True)
        peer.stdin.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
