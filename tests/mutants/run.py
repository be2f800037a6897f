"""Tests of the tests: one-line breaches of the sources, each of which a named test must notice.

`make mutants` copies the package, makes one change, runs the tests that must notice it, and wants them to fail.
A mutant that survives is a promise that no test holds. The list is in the TOML files beside this one, a file a
room; each entry has

    file     the source, below src/tacit
    old      the line or part of a line, which must stand in the file exactly once
    new      what is put in its place
    notice   the tests that are run, as pytest names them
    why      what the change would do to somebody

`python tests/mutants/run.py sources ledger` runs two rooms; `-k text` those whose file, change or reason has it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "tacit"
SECONDS = 240
"""Tests that hang under a breach have noticed it; the line says so, as a busy machine may look the same."""
HUNG = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One breach, and who must notice it."""

    room: str
    file: str
    old: str
    new: str
    notice: tuple[str, ...]
    why: str

    @property
    def title(self) -> str:
        """A line for people."""
        short = " ".join(self.old.split())
        return f"{self.file}: {short[:60]} -> {' '.join(self.new.split())[:50] or 'nothing'}"


def mutants(rooms: Sequence[str] = ()) -> list[Mutant]:
    """The kept list, or that of some rooms."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        if rooms and path.stem not in rooms:
            continue
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(room=path.stem, **{**entry, "notice": tuple(entry["notice"])}))
    return found


def breach(mutant: Mutant, package: Path) -> None:
    """Makes the change in a copy of the package."""
    path = package / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.file}: {mutant.old!r} stands there {text.count(mutant.old)} times, not once"
        )
    path.write_text(text.replace(mutant.old, mutant.new))


def outcome(notice: Sequence[str], sources: Path, *, seconds: int = SECONDS) -> tuple[int, str]:
    """The tests' exit code with these sources: 0 all passed, 1 some failed, other numbers: not run or not ended."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *notice]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return HUNG, "took too long"
    return done.returncode, done.stdout[-1500:] + done.stderr[-500:]


def verdict(mutant: Mutant) -> tuple[str, str]:
    """noticed, hung, survived, or broken (the tests did not even start)."""
    with tempfile.TemporaryDirectory(prefix="tacit-mutant-") as folder:
        sources = Path(folder) / "src"
        shutil.copytree(PACKAGE, sources / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
        breach(mutant, sources / "tacit")
        code, said = outcome(mutant.notice, sources)
    return {0: "SURVIVED", 1: "noticed", HUNG: "hung"}.get(code, "BROKEN"), said


def main() -> int:
    """Runs the list; 0 if every mutant was noticed."""
    parser = argparse.ArgumentParser(description="one-line breaches that the tests must notice")
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("-k", default="", help="only mutants whose file, change or reason contains this")
    parser.add_argument("-j", type=int, default=2, help="how many at once")
    given = parser.parse_args()
    chosen = [m for m in mutants(given.rooms) if given.k in f"{m.file} {m.old} {m.new} {m.why}"]
    # What fails without a change would notice anything.
    code, said = outcome(
        sorted({name for m in chosen for name in m.notice}), PACKAGE.parent, seconds=15 * SECONDS
    )
    if code != 0:
        print(f"the tests fail without any change\n{said}")
        return 2
    bad = 0
    with ThreadPoolExecutor(given.j) as pool:
        started = time.monotonic()
        for mutant, (word, said) in zip(chosen, pool.map(verdict, chosen), strict=True):
            print(f"{time.monotonic() - started:6.0f} s  {word:8}  {mutant.title}", flush=True)
            if word not in ("noticed", "hung"):
                bad += 1
                print(f"          {mutant.why}\n{said if word == 'BROKEN' else ''}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - bad} noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
