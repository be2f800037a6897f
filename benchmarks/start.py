"""What a user waits for before a command does anything: processor time of small commands, each in a process of its own.

    python benchmarks/start.py          # five runs of each, the smallest is told

The commands alternate, and a bare `import numpy` stands beside them as a measure of the machine's load. Byte code is
compiled beforehand, as an installation does. Times are those of the process and its children, user and system.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RUNS = 5
PLAN = """
[data]
path = "table.csv"
[protect]
unit = "rows"
[budget]
epsilon = 1.0
[schema.region]
kind = "category"
keys = ["north", "south"]
[[release]]
name = "rows"
kind = "count"
by = "region"
epsilon = 0.01
"""
TACIT = "from tacit.cli import main; main()"
COMMANDS: dict[str, tuple[str, ...]] = {
    "import numpy": ("import numpy",),
    "import tacit; tacit.Curator": ("import tacit; tacit.Curator",),
    "tacit --help": (TACIT, "--help"),
    "tacit plan": (TACIT, "plan", "plan.toml"),
    "tacit release, refused": (TACIT, "release", "nothing.toml", "--out", "out"),
    "tacit release": (TACIT, "release", "plan.toml", "--out", "out-{run}", "--key", "run {run}"),
    "tacit ledger show": (TACIT, "ledger", "show", "table.csv.ledger"),
}
GOALS = {
    "tacit --help": 0.15,
    "tacit plan": 0.5,
    "tacit release, refused": 0.5,
    "tacit release": 1.2,
    "import tacit; tacit.Curator": 0.4,
}


def processor_seconds(code: str, *words: str, folder: Path) -> float:
    """The processor time of one process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], cwd=folder, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> list[dict[str, Any]]:
    """The smallest processor time of each command, beside its goal."""
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.toml").write_text(PLAN)
        (folder / "table.csv").write_text("region\n" + "north\nsouth\n" * 500)
        for run in range(RUNS + 1):  # the first one compiles
            for what, (code, *words) in COMMANDS.items():
                took = processor_seconds(code, *(w.format(run=run) for w in words), folder=folder)
                best[what] = min(best.get(what, took), took) if run > 1 else took
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    rows = []
    for what, took in best.items():
        goal = f"; goal {1000 * GOALS[what]:.0f} ms" if what in GOALS else ""
        rows.append({"measure": f"{what} ({load}{goal})", "ours": f"{1000 * took:.0f} ms"})
    return rows


if __name__ == "__main__":
    for row in main():
        print(row["measure"], row["ours"], sep=": ")
