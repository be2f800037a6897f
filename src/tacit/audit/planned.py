"""Every release of a plan under audit, on made-up neighbours: nothing is charged, and no real row is read.

For each release:

    replay   pairs of neighbours from the unit's definition, on every engine: how far they move the integers before the
             Compares the integers before the noise with the declared sensitivity, then runs both tables with
             the same words and looks for a difference.
    bets     against the release's bound, on the pairs that moved most, with fresh noise of the system
    opinion  the bound computed again from its events

and bets against the charge of all releases together. The levels of all bets add up to the level of the audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tacit.audit.answers import MechanismAudit, answer_of
from tacit.audit.black_box import Course, system_coins, watch
from tacit.audit.claimed import claim_of
from tacit.audit.claims import Opinion, opinion_on_certificate
from tacit.audit.grey_box import Parting
from tacit.audit.house import checked_level
from tacit.audit.isolation import run_once
from tacit.audit.neighbours import NeighbourPairs
from tacit.audit.outputs import Output
from tacit.curator.certificate import CIPHER, certify
from tacit.curator.plan_files import PlanFile, read_plan
from tacit.curator.planning import Plan, Planned
from tacit.curator.rehearsing import (
    RehearsedPair,
    by_proof,
    fresh,
    integers_of,
    moved_by,
    outputs_of,
    parting,
    rehearsed,
    steps_of,
)
from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Integers
from tacit.exact.checks import positive, whole
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Always
from tacit.sources.synthetic.neighbours import neighbouring_tables

NEIGHBOURS = 24
STEPPED = 8
"""The number of pairs of neighbours whose releases are compared line by line; integers are compared on all pairs."""
BET_ON = 3
"""The number of pairs of neighbours for bets: those with the largest moves."""
ENGINES = ("duckdb", "spark")
ON_SPARK = 4
"""The number of pairs of neighbours that are also read on Spark, where a small table takes seconds."""
UNSEEN = (
    "the audit of a plan could not have seen: the plan's own data, joins, views and files (it made up its rows), what"
    " its pairs of neighbours do not show, and durations"
)
_MADE = {"time": "2026-01-01T00:00:00+00:00", "noise": CIPHER, "data": {"bounded": True}, "versions": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAudit:
    """The answer for one release of a plan, or for all of them together."""

    name: str
    claim: str
    pairs: int
    """Pairs of neighbours that were compared, on all engines together."""
    moved: float
    """The largest part of the declared L1 sensitivity that a pair used; nan if none is declared in integers."""
    partings: tuple[Parting, ...]
    bets: MechanismAudit | None
    opinion: Opinion | None
    notes: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether its claim is rejected, accused by a replay, or refuted by the second opinion."""
        return (
            any(p.accuses for p in self.partings)
            or (self.bets is not None and self.bets.rejected)
            or (self.opinion is not None and self.opinion.confirmed is False)
        )

    def lines(self) -> list[str]:
        """The answer in sentences, the name first."""
        said = [f"{self.name}: claim {self.claim}"]
        for p in self.partings:
            said.append(f"  {'breaks' if p.accuses else 'parts'} at {p.place}: {p.words}")
        if self.pairs and not any(p.accuses for p in self.partings):
            told = (
                ""
                if math.isnan(self.moved)
                else f"; they use up to {self.moved:.3g} of the declared sensitivity"
            )
            said.append(f"  replay: no breach on {self.pairs} pairs of neighbours{told}")
        if self.bets is not None:
            told = "rejected" if self.bets.rejected else "not rejected"
            lower = (
                f", {self.bets.claim.parameter} is above {self.bets.lower:.3g}"
                if self.bets.claim.parameter
                else ""
            )
            said.append(
                f"  bets: {told} in {self.bets.outputs:,} outputs (level {self.bets.level:.2g}){lower}"
            )
            if self.bets.rejected and self.bets.event is not None:
                said.append(f"  the event that tells most: {self.bets.event.sentence()}")
        if self.opinion is not None:
            words = {True: "confirmed", False: f"not confirmed: {self.opinion.why}", None: self.opinion.why}
            said.append(f"  second opinion on its events: {words[self.opinion.confirmed]}")
        return [*said, *(f"  {note}" for note in self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "broken": self.broken,
            "pairs": self.pairs,
            "moved": None if math.isnan(self.moved) else self.moved,
            "partings": [
                {"kind": p.kind, "place": p.place, "words": p.words, "accuses": p.accuses}
                for p in self.partings
            ],
            "bets": None if self.bets is None else self.bets.to_dict(),
            "opinion": None if self.opinion is None else self.opinion.confirmed,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAudit:
    """The answer for a plan. If no audit broke a plan, that is no proof of the plan."""

    unit: str
    level: float
    neighbours: dict[str, int]
    """Pairs of neighbours by engine."""
    releases: tuple[ReleaseAudit, ...]
    together: ReleaseAudit | None
    notes: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Is any claim broken?"""
        return any(r.broken for r in self.every)

    @property
    def every(self) -> tuple[ReleaseAudit, ...]:
        """The releases, then all of them together."""
        return self.releases if self.together is None else (*self.releases, self.together)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The answer in sentences."""
        told = "at least one claim breaks" if self.broken else "no claim was broken; this is no proof of them"
        said = [
            f"{len(self.releases)} releases for {self.unit}: {told} (level {self.level:g} for all together)",
            f"pairs of made-up neighbours: {', '.join(f'{n} on {e}' for e, n in self.neighbours.items())}",
        ]
        return [*said, *(line for r in self.every for line in r.lines()), *self.notes, UNSEEN]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "unit": self.unit,
            "level": self.level,
            "neighbours": dict(self.neighbours),
            "broken": self.broken,
            "releases": [r.to_dict() for r in self.releases],
            "together": None if self.together is None else self.together.to_dict(),
            "notes": list(self.notes),
            "could_not_see": UNSEEN,
        }


def plan(
    given: Plan | PlanFile | str | Path,
    *,
    neighbours: int = NEIGHBOURS,
    level: float = 0.05,
    outputs: int = 2_000,
    seconds: float = 60.0,
    engines: Sequence[str] = ("duckdb",),
    seed: int = 0,
    coins: Callable[[int], Integers] = system_coins,
    tell: Callable[[str], None] | None = None,
) -> PlanAudit:
    """Try to break every release of a plan, on made-up neighbours. Reads no data and charges nothing.

    `outputs` is the number of runs for each release (0: no bets), `seconds` the time of all bets together. The rows
    follow from `seed`.
    """
    made = _plan_of(given)
    level, seconds = checked_level(level), positive("seconds", seconds)
    number, outputs = whole("neighbours", neighbours), whole("outputs", outputs, least=0)
    for engine in engines:
        if engine not in ENGINES:
            raise UnknownName(what="engine", name=str(engine), known=ENGINES)
    if not engines or not made.releases:
        raise InvalidParameter(
            parameter="plan", value="nothing", must="have releases, and an engine to run on"
        )
    say = tell if tell is not None else (lambda _: None)
    read: dict[str, list[RehearsedPair]] = {}
    for engine in engines:
        read[engine] = []
        pairs = min(number, ON_SPARK) if engine == "spark" and len(engines) > 1 else number
        for k in range(pairs):
            say(f"neighbours {k + 1} of {pairs} on {engine}")
            two = neighbouring_tables(made.schema, made.unit, number=k, seed=seed)
            read[engine].append(rehearsed(made, (two.left, two.right), words=two.words, engine=engine))
    several = len(made.releases) > 1
    share = level / (len(made.releases) + several)
    each = seconds / (len(made.releases) + several)
    options: dict[str, Any] = {"level": share, "outputs": outputs, "seconds": each, "coins": coins}
    found = []
    for at, one in enumerate(made.releases):
        say(f"{one.name}: replay")
        found.append(_audited(made, at, one, read, say, options))
    together = _together(made, read[engines[0]], say, options) if several and outputs else None
    notes = tuple(
        f"reading ended differently on neighbours ({engine}): {pair.refused[0] or 'read'} / {pair.refused[1] or 'read'}"
        for engine, pairs in read.items()
        for pair in pairs
        if pair.refused[0] != pair.refused[1]
    )
    return PlanAudit(
        unit=made.unit.describe(), level=level, neighbours={e: len(p) for e, p in read.items()}, releases=tuple(found),
        together=together, notes=notes,
    )  # fmt: skip


def _plan_of(given: Any) -> Plan:
    if isinstance(given, Plan):
        return given
    if isinstance(given, PlanFile):
        return given.plan()
    if isinstance(given, str | Path):
        return read_plan(given).plan()
    raise InvalidParameter(
        parameter="plan", value=type(given).__name__, must="be a plan or the path of a plan file"
    )


def _audited(
    made: Plan,
    at: int,
    one: Planned,
    read: dict[str, list[RehearsedPair]],
    say: Callable[[str], None],
    options: dict[str, Any],
) -> ReleaseAudit:
    partings: dict[tuple[str, str], Parting] = {}
    notes: list[str] = []
    moved, pairs = math.nan, 0
    shares: list[tuple[float, int]] = []
    narrow = one.ask.public is not None
    for engine, rehearsals in read.items():
        for k, pair in enumerate(rehearsals):
            told, share = _compared(one, pair, at, stepped=k < STEPPED, narrow=narrow)
            pairs += 1
            for p in told:
                partings.setdefault((p.kind, p.place), p)
            if share is not None and not narrow:
                moved = share if math.isnan(moved) else max(moved, share)
            if engine == next(iter(read)) and not any(pair.refused):
                shares.append((0.0 if share is None else share, k))
    if narrow:
        notes.append(
            "known counts restrict its neighbours; the pairs here change them, so that no bets were made"
        )
    conditional = not isinstance(one.guarantee.condition, Always)
    if conditional:
        notes.append(
            f"its claim holds under a condition ({one.guarantee.condition}); fixed neighbours say nothing about it, so"
            " that no bets were made"
        )
    bets = None
    if options["outputs"] and not conditional and not narrow and shares:
        best = [k for _, k in sorted(shares, key=lambda s: (-s[0], s[1]))[:BET_ON]]
        rehearsals = next(iter(read.values()))
        runs = [
            (outputs_of(one, rehearsals[k].left[at], rehearsals[k].right[at]), rehearsals[k], at)
            for k in best
        ]
        bets = _bets(made, runs, one.guarantee.bound, one.name, say, options)
    opinion = opinion_on_certificate(certify(made, one, ledger={}, made=_MADE, values=None))
    return ReleaseAudit(
        name=one.name, claim=_claim(one), pairs=pairs, moved=moved, partings=tuple(partings.values()), bets=bets,
        opinion=opinion, notes=tuple(notes),
    )  # fmt: skip


def _claim(one: Planned) -> str:
    condition = one.guarantee.condition
    said = one.guarantee.bound.describe()
    return said if isinstance(condition, Always) else f"{said} ({condition})"


def _compared(
    one: Planned, pair: RehearsedPair, at: int, *, stepped: bool, narrow: bool
) -> tuple[list[Parting], float | None]:
    """Integers against the declared sensitivity, then both releases under the same words."""
    found: list[Parting] = []
    if any(pair.refused):
        if pair.refused[0] != pair.refused[1]:
            words = (
                f"reading: {pair.refused[0] or 'an answer'} / {pair.refused[1] or 'an answer'} ({pair.words})"
            )
            found.append(Parting(kind="error", place="the reading", words=words, accuses=True))
        return found, None
    left, right = pair.left[at], pair.right[at]
    share: float | None = None
    a, b = integers_of(one, fresh(left)), integers_of(one, fresh(right))
    if a is not None and b is not None:
        for size in moved_by(one, a, b):
            share = max(share or 0.0, size.share)
            if not size.within and not narrow:
                words = f"{size.sentence()} ({pair.words})"
                found.append(
                    Parting(kind=f"sensitivity of {size.part}", place=one.name, words=words, accuses=True)
                )
    if stepped:
        told = parting(*steps_of(one, (left, right), seed=7919))
        if told is not None:
            proof = by_proof(one)
            said = f"; theorems that cover it: {proof}" if proof else ""
            found.append(
                Parting(
                    kind="control flow",
                    place=told[0],
                    words=f"{told[1]} ({pair.words}){said}",
                    accuses=not proof,
                )
            )
    return found, share


def _bets(
    made: Plan,
    runs: Sequence[tuple[Callable[[Any], Any], RehearsedPair, int | None]],
    bound: Any,
    name: str,
    say: Callable[[str], None],
    options: dict[str, Any],
) -> MechanismAudit:
    sides = [
        (f, (p.left if at is None else p.left[at], p.right if at is None else p.right[at]))
        for f, p, at in runs
    ]
    pairs = NeighbourPairs(
        relation=made.unit.describe(),
        pairs=tuple((f"with {p.words}", f"without {p.words}") for _, p, _ in runs),
    )

    def run(jobs: Sequence[tuple[int, int]]) -> list[Output]:
        return [run_once(sides[pair][0], None, sides[pair][1][side]) for pair, side in jobs]

    def tell(course: Course) -> None:
        say(f"{name}: {course.outputs:,} outputs")

    course = watch(
        run, claim=claim_of(bound), neighbours=pairs, level=options["level"],
        most_outputs=max(options["outputs"], 2 * len(runs)), seconds=options["seconds"], coins=options["coins"],
        to_the_end=False, tell=tell,
    )  # fmt: skip
    return answer_of(course)


def _together(
    made: Plan, rehearsals: Sequence[RehearsedPair], say: Callable[[str], None], options: dict[str, Any]
) -> ReleaseAudit | None:
    """Bets against the charge, on the outputs of all releases at once."""
    charge = made.charge
    usable = [p for p in rehearsals if not any(p.refused)][:BET_ON]
    if (
        not isinstance(charge.condition, Always)
        or any(r.ask.public is not None for r in made.releases)
        or not usable
    ):
        return None

    def whole_plan(pair: RehearsedPair) -> Callable[[Any], Any]:
        parts = [outputs_of(r, pair.left[i], pair.right[i]) for i, r in enumerate(made.releases)]
        return lambda cells: [f(c) for f, c in zip(parts, cells, strict=True)]

    runs: list[tuple[Callable[[Any], Any], RehearsedPair, int | None]] = [
        (whole_plan(p), p, None) for p in usable
    ]
    bets = _bets(made, runs, charge.bound, "all together", say, options)
    return ReleaseAudit(
        name="all releases together", claim=charge.bound.describe(), pairs=0, moved=math.nan, partings=(), bets=bets,
        opinion=None,
    )  # fmt: skip
