"""How far a reader has to walk: the files of tacit that one ordinary call runs through, and how deep calls nest.

    python benchmarks/walk.py            a table of all walks
    python benchmarks/walk.py --files    and the files of each, in the order in which they are entered

Each walk runs once to warm up (imports, kept plans, engines) and is then recorded with `sys.setprofile`, without
module bodies. `files` counts the files below src/tacit whose functions run; `depth` is the largest number of nested
calls of functions of tacit. Both depend on the code only, not on the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import tacit

HOME = str(Path(tacit.__file__).parent)


@dataclass
class Walk:
    """The files that were entered, in order, and the largest depth."""

    files: dict[str, int] = field(default_factory=dict)
    depth: int = 0


def recorded(run: Callable[[], Any]) -> Walk:
    """The walk of one call, in this thread."""
    walk, now = Walk(), 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal now
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_name == "<module>" or not code.co_filename.startswith(HOME):
            return
        if event == "return":
            now -= 1
            return
        now += 1
        walk.depth = max(walk.depth, now)
        name = code.co_filename[len(HOME) + 1 :]
        walk.files[name] = walk.files.get(name, 0) + 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return walk


def quiet(*words: str) -> None:
    """A command of tacit, without its output."""
    from tacit.cli import main

    shown = sys.argv
    sys.argv = ["tacit", *words]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = main()
    except SystemExit as stopped:
        code = stopped.code
    finally:
        sys.argv = shown
    if code not in (0, None):
        raise SystemExit(f"tacit {' '.join(words)} ended with {code}")


def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """Name and call of each walk; the table is that of the demo."""
    demo = folder / "demo"
    quiet("demo", "--out", str(demo))
    found = sorted([*demo.rglob("survey.parquet"), *folder.rglob("*.parquet")])
    table = shutil.copy(found[0], folder / "walk.parquet")
    schema = {
        "region": tacit.category(["North", "South", "East", "West"]),
        "income": tacit.number(0, 250_000),
    }
    number = iter(range(1, 1000))

    def release(statistic: Any) -> Callable[[], Any]:
        """A new curator with a ledger of its own, and one release."""

        def run() -> None:
            with tacit.Curator(
                table, protect=tacit.rows(), schema=schema, budget=tacit.Pure(epsilon=1.0),
                ledger=folder / f"walk-{next(number)}.ledger", another_ledger=True,
            ) as curator:  # fmt: skip
                curator.release(statistic, epsilon=0.1)

        return run

    def account() -> None:
        # Other parameters each time: a repeated account is answered from memory.
        noise = tacit.events.GaussianEvent(noise_multiplier=30.0 + next(number))
        pure = tacit.events.LaplaceEvent(epsilon=0.05)
        sampled = tacit.events.PoissonSampledEvent(sampling_rate=0.01, event=noise)
        tacit.account(tacit.events.ComposedEvent(events=(noise, pure, sampled)), delta=1e-6)

    return {
        "mean by region": release(tacit.mean("income", by="region")),
        "count": release(tacit.count()),
        "tacit verify": lambda: quiet("verify", str(demo)),
        "account of three events": account,
    }


def main() -> None:
    """Print a line a walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files of each walk")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'walk':28} {'files':>6} {'depth':>6}")
        for name, run in walks(Path(folder)).items():
            run()
            walk = recorded(run)
            print(f"{name:28} {len(walk.files):6} {walk.depth:6}")
            if wanted.files:
                print("\n".join(f"    {file}" for file in walk.files))


if __name__ == "__main__":
    main()
