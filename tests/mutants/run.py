"""Tests of the tests: breaches of the sources, each of which a test must notice.

`make mutants` makes one change at a time, runs the tests that must notice it, and wants them to fail. A change that
survives is a promise that no test holds. There are two kinds.

The kept list is in the TOML files beside this one, a file a room; each entry has

    file     the source, below src/tacit
    old      the line or part of a line, which must stand in the file exactly once
    new      what is put in its place
    notice   the tests that are run, as pytest names them
    why      what the change would do to somebody

`python tests/mutants/run.py sources ledger` runs two rooms; `-k text` those whose file, change or reason has it.

`--changed REVISION` tries the lines changed since a revision (without one: since the last release) with the operators
of `operators.py`, and runs the tests of the room that enter the changed function, or import the changed module.
`--sample 8 mechanisms` tries eight changes drawn from a whole room. Changes that nobody can notice are listed with the
reason in `equivalent.toml`.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forks import Ended, Job
    from operators import Change

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "src" / "tacit"
TESTS = ROOT / "tests"
MOST = 60
"""So many machine-made changes are tried in one run; which ones follows from the seed."""
ROOM_SECONDS = 1200.0
"""The unchanged tests of a room, watched, must end within this time."""
LEAST_SECONDS = 20.0
"""A change is given this time and ten times what the unchanged tests took."""


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

    def text(self) -> str:
        """The file with the change made."""
        text = (PACKAGE / self.file).read_text()
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.file}: {self.old!r} stands there {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


def mutants(rooms: Sequence[str] = ()) -> list[Mutant]:
    """The kept list, or that of some rooms."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        if (rooms and path.stem not in rooms) or path.stem == "equivalent":
            continue
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(room=path.stem, **{**entry, "notice": tuple(entry["notice"])}))
    return found


def _clock(began: float) -> str:
    return f"{time.monotonic() - began:6.0f} s"


def kept(chosen: Sequence[Mutant], *, at_once: int) -> int:
    """Runs the kept list; 0 if every breach was noticed."""
    from forks import Job, run

    began = time.monotonic()
    # What fails without a change would notice anything: the tests of each file are run once as they are.
    names = sorted({name for m in chosen for name in m.notice})
    files = sorted({name.partition("::")[0] for name in names})
    sets = [tuple(n for n in names if n.partition("::")[0] == f) for f in files]
    took: dict[str, float] = {}
    for number, ended in run([Job(notice=s, seconds=ROOM_SECONDS) for s in sets], at_once=at_once):
        if ended.word != "SURVIVED":
            print(f"the tests fail without any change: {' '.join(sets[number])}\n{ended.said}")
            return 2
        took[files[number]] = ended.seconds
    print(f"{_clock(began)}  {len(names)} tests in {len(files)} files pass without a change", flush=True)

    def limit(mutant: Mutant) -> float:
        return LEAST_SECONDS + 10 * sum(took[f] for f in {name.partition("::")[0] for name in mutant.notice})

    jobs = [Job(notice=m.notice, file=m.file, text=m.text(), seconds=limit(m)) for m in chosen]
    bad = 0
    for number, ended in run(jobs, at_once=at_once):
        mutant = chosen[number]
        print(f"{_clock(began)}  {ended.word:8}  {mutant.title}", flush=True)
        if ended.word not in ("noticed", "hung"):
            bad += 1
            print(f"          {mutant.why}\n{ended.said if ended.word == 'BROKEN' else ''}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - bad} noticed")
    return 1 if bad else 0


def room_tests(room: str, files: Iterable[str]) -> list[str]:
    """The room's tests, and those elsewhere that import one of these modules by name."""
    found = [f"tests/{room}"] if (TESTS / room).is_dir() else []
    names = [f"tacit.{f.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for f in files]
    for path in sorted(TESTS.rglob("test_*.py")):
        where = path.relative_to(ROOT).as_posix()
        if path.relative_to(TESTS).parts[0] not in (room, "contracts") and any(
            n in path.read_text() for n in names
        ):
            found.append(where)
    return found


def who_notices(change: Change, plain: Ended) -> list[str]:
    """The tests that enter the changed function, quick ones first; then the rest of their files.

    What a fixture or a cache does is done once, in the first test that asks for it, and told on by others of its file.
    """
    place = f"{change.file}:{change.function}"
    everybody = sorted(plain.took, key=lambda name: plain.took[name])
    if change.function:
        enter = [name for name in everybody if place in plain.reached.get(name, ())]
    else:
        module = f"tacit.{change.file.removesuffix('.py').replace('/', '.')}"
        files = {n.partition("::")[0] for n in everybody}
        direct = {f for f in files if module in (ROOT / f).read_text()}
        enter = [name for name in everybody if name.partition("::")[0] in direct] or everybody
    files = {name.partition("::")[0] for name in enter}
    return [*enter, *(n for n in everybody if n.partition("::")[0] in files and n not in set(enter))]


def machine(wanted: Sequence[Change], *, at_once: int, seconds: float) -> int:
    """Tries machine-made changes, room by room; 0 if every one was noticed or is listed as one that cannot be."""
    from forks import Job, run
    from operators import equivalent

    began = time.monotonic()
    listed = equivalent()
    bad = tried = 0
    for room in sorted({c.file.partition("/")[0] for c in wanted}):
        mine = [c for c in wanted if c.file.partition("/")[0] == room]
        tests = room_tests(room.removesuffix(".py"), {c.file for c in mine})
        if not tests:
            print(f"{_clock(began)}  no tests for {room}")
            bad += len(mine)
            continue
        plain = next(run([Job(notice=tuple(tests), seconds=ROOM_SECONDS, record=True)]))[1]
        if plain.word != "SURVIVED":
            print(f"the tests fail without any change: {' '.join(tests)}\n{plain.said}")
            return 2
        print(f"{_clock(began)}  {room}: {plain.ran} tests pass without a change", flush=True)
        jobs, tries = [], []
        for change in mine:
            source = (PACKAGE / change.file).read_text()
            if (change.file, *change.lines(source)) in listed:
                continue
            tries.append(change)
            jobs.append(_job(change, source, plain, seconds))
        tried += len(tries)
        untested = [c for c, j in zip(tries, jobs, strict=True) if j is None]
        entered = [(c, j) for c, j in zip(tries, jobs, strict=True) if j is not None]
        for change in untested:
            bad += 1
            _tell(began, "UNTESTED", change)
        for number, ended in run([j for _, j in entered], at_once=at_once):
            word = "noticed" if ended.word == "BROKEN" and ended.code == 2 else ended.word
            bad += word not in ("noticed", "hung")
            _tell(began, word, entered[number][0])
            if word == "BROKEN":
                print(ended.said)
    print(f"{tried} changes, {tried - bad} noticed")
    return 1 if bad else 0


def _job(change: Change, source: str, plain: Ended, seconds: float) -> Job | None:
    from forks import Job

    names = who_notices(change, plain)
    chosen, total = [], 0.0
    for name in names:
        total += plain.took[name]
        if chosen and total > seconds:
            break
        chosen.append(name)
    limit = LEAST_SECONDS + 10 * min(total, seconds)
    return (
        Job(notice=tuple(chosen), file=change.file, text=change.text(source), seconds=limit)
        if chosen
        else None
    )


def _tell(began: float, word: str, change: Change) -> None:
    old, new = change.lines((PACKAGE / change.file).read_text())
    print(f"{_clock(began)}  {word:8}  {change.file}:{change.line} ({change.operator})", flush=True)
    if word not in ("noticed", "hung"):
        print(f"              - {old}\n              + {new}", flush=True)


def _wanted(given: argparse.Namespace) -> list[Change]:
    """The changes to try, and a line that says how many there are."""
    from operators import changed_lines, changes, last_release, some

    if given.sample:
        files = [p.relative_to(PACKAGE).as_posix() for p in sorted(PACKAGE.rglob("*.py"))]
        found = []
        for room in given.rooms:
            inside = [c for f in files if f.startswith(f"{room}/") for c in changes(f)]
            found += some(inside, given.sample, f"{given.seed} {room}")
        return found
    base = given.changed or last_release()
    everything = [c for file, lines in sorted(changed_lines(base).items()) for c in changes(file, lines)]
    everything = [c for c in everything if not given.rooms or c.file.partition("/")[0] in given.rooms]
    few = min(given.most, len(everything))
    print(f"{few} of {len(everything)} changes of lines that changed since {base}", flush=True)
    return some(everything, few, given.seed)


def main() -> int:
    """Runs the kept list, or the changes of a machine."""
    parser = argparse.ArgumentParser(description="breaches that the tests must notice")
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("-k", default="", help="only listed ones whose file, change or reason contains this")
    parser.add_argument("-j", type=int, default=2, help="how many at once")
    parser.add_argument("--changed", nargs="?", const="", metavar="REVISION", help="lines changed since then")
    parser.add_argument("--sample", type=int, default=0, help="so many changes of each room given")
    parser.add_argument("--seed", default="0", help="which of the machine's changes are tried")
    parser.add_argument("--most", type=int, default=MOST, help="at most so many of them")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of tests for one of the machine's changes"
    )
    given = parser.parse_args()
    from forks import prepare

    prepare()
    if given.sample or given.changed is not None:
        return machine(_wanted(given), at_once=given.j, seconds=given.seconds)
    chosen = [m for m in mutants(given.rooms) if given.k in f"{m.file} {m.old} {m.new} {m.why}"]
    return kept(chosen, at_once=given.j)


if __name__ == "__main__":
    sys.exit(main())
