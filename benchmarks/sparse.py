"""Sparse histograms: huge domains alone, and 2^24 cells beside libraries that visit every one of them.

Ours: seconds of the first release in a fresh process (tables built, keys checked), and the peak memory of that
process with its input. The peers get 10^5 occupied cells of 2^20 (TACIT_BENCH_CELL_BITS changes that) and their
times are multiplied up to 2^24 cells, since they grow linearly with the cells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _peers import run_peer

HERE = Path(__file__).parent
PEER_BITS = int(os.environ.get("TACIT_BENCH_CELL_BITS", "20"))
OCCUPIED = 10**5


def ours(bits: int, occupied: int, rule: str = "hall") -> dict[str, Any]:
    """One process of our own."""
    command = [sys.executable, str(HERE / "_tacit_sparse.py"), str(bits), str(occupied), rule]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> list[dict[str, Any]]:
    large, floor, small = ours(64, 10**7), ours(64, 10**7, "floor"), ours(24, OCCUPIED)
    measure = "10^7 occupied of 2^64 cells, pure epsilon = 1"
    rows = [
        {
            "measure": measure, "ours": f"{large['first']:.2f} s", "peer": "limit", "theirs": "10 s",
            "ratio": 10 / large["first"], "target": 1.0,
        },
        {
            "measure": f"{measure}: peak memory", "ours": f"{large['peak']:.2f} GiB", "peer": "limit",
            "theirs": "2 GiB", "ratio": 2 / large["peak"], "target": 1.0,
        },
        {
            "measure": f"{measure}, low floor ({floor['out']:,} cells released)",
            "ours": f"{floor['first']:.2f} s, {floor['peak']:.2f} GiB; posterior medians {floor['shrunk']:.2f} s",
        },
    ]  # fmt: skip
    peers = (
        ("diffprivlib", "_diffprivlib_sparse.py", "requirements-diffprivlib.txt"),
        ("OpenDP", "_opendp_sparse.py", "requirements.txt"),
    )
    for name, script, requirements in peers:
        theirs = run_peer(script, str(1 << PEER_BITS), str(OCCUPIED), requirements=requirements)[0]
        seconds = theirs["seconds"] * (1 << 24) / theirs["cells"]
        how = "" if PEER_BITS == 24 else f" ({theirs['seconds']:.1f} s for 2^{PEER_BITS})"
        rows.append(
            {
                "measure": "10^5 occupied of 2^24 cells", "ours": f"{small['first'] * 1e3:.1f} ms",
                "peer": f"{name} {theirs['version']}", "theirs": f"{seconds:,.0f} s{how}",
                "ratio": seconds / small["first"], "target": 50.0,
            }
        )  # fmt: skip
    return rows
