"""Audits from Python: a function, a claim, neighbours; and a helper for a team's own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.audit.answers import MechanismAudit, answer_of
from tacit.audit.black_box import Course, system_coins, watch
from tacit.audit.claimed import claim_of
from tacit.audit.isolation import InProcess, Isolated
from tacit.audit.neighbours import ask_for_unit, given_neighbours, named_neighbours
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Integers
from tacit.exact.checks import positive, probability, whole
from tacit.guarantees import Guarantee

OUTPUTS = 20_000
SECONDS = 60.0
LEVEL = 0.05


def checked_level(level: float) -> float:
    """A level in (0, 1)."""
    given = probability("level", level, below_one=True)
    if given <= 0:
        raise InvalidParameter(parameter="level", value=level, must="be above 0 and below 1")
    return given


def mechanism(
    f: Callable[[Any], Any],
    *,
    claim: Any,
    neighbours: Any = None,
    level: float = LEVEL,
    outputs: int = OUTPUTS,
    seconds: float = SECONDS,
    to_the_end: bool = False,
    coins: Callable[[int], Integers] = system_coins,
    tell: Callable[[Course], None] | None = None,
) -> MechanismAudit:
    """Try to break the claim of a function, run in this process.

    `claim` is a bound, a guarantee, or a text such as "epsilon=1, delta=1e-6". `neighbours` is the name of a
    relation, pairs of inputs, or a function that gives them. The answer holds at every moment with confidence 1 -
    level (theorem `audit-betting`). `to_the_end` continues after a rejection, for a larger lower bound. `coins` is
    for tests: it replaces the system's randomness.
    """
    if not callable(f):
        raise InvalidParameter(
            parameter="mechanism", value=type(f).__name__, must="be a function of one input"
        )
    chosen = neighbours if neighbours is not None else getattr(f, "neighbours", None)
    if chosen is None and isinstance(claim, Guarantee):
        chosen = "rows added" if claim.unit.neighbours == "add-or-remove" else "rows replaced"
    if chosen is None:
        raise ask_for_unit()
    pairs = given_neighbours(chosen)
    course = watch(
        InProcess(f, pairs),
        claim=claim_of(claim),
        neighbours=pairs,
        level=checked_level(level),
        most_outputs=whole("outputs", outputs, least=2 * len(pairs.pairs)),
        seconds=positive("seconds", seconds),
        to_the_end=to_the_end,
        coins=coins,
        tell=tell,
    )
    return _answer(course)


def mechanism_of_file(
    place: str,
    *,
    claim: Any,
    neighbours: str,
    level: float = LEVEL,
    outputs: int = OUTPUTS,
    seconds: float = SECONDS,
    to_the_end: bool = False,
    memory: int = 4 << 30,
    seconds_a_run: float = 10.0,
    fresh: bool = False,
    tell: Callable[[Course], None] | None = None,
) -> MechanismAudit:
    """The same for FILE.py::function, in a process of its own with limits. This runs the file.

    `fresh` loads the file in a new process for each run, so that no run sees what an earlier one left.
    """
    wanted = claim_of(claim)
    if not neighbours:
        raise ask_for_unit()
    own = "::" in neighbours
    pairs = None if own else named_neighbours(neighbours)
    with Isolated(
        place, pairs, neighbours_place=neighbours if own else "", seconds_a_run=positive("seconds", seconds_a_run),
        memory=memory, fresh=fresh,
    ) as run:  # fmt: skip
        assert run.neighbours is not None
        course = watch(
            run,
            claim=wanted,
            neighbours=run.neighbours,
            level=checked_level(level),
            most_outputs=whole("outputs", outputs, least=2 * len(run.neighbours.pairs)),
            seconds=positive("seconds", seconds),
            to_the_end=to_the_end,
            tell=tell,
        )
        return _answer(course)


def _answer(course: Course) -> MechanismAudit:
    if not course.answers:
        first = course.records[0].outputs[0]
        said = f": {first[1][0]}" if first[1] else ""
        raise InvalidParameter(
            parameter="mechanism",
            value=first[0] + said,
            must="return a value for some of its inputs",
            hint="it never did; check that it takes one input of the form of the neighbours",
        )
    return answer_of(course)


def assert_private(f: Callable[[Any], Any], claim: Any, **options: Any) -> MechanismAudit:
    """For a team's own tests: AssertionError with the evidence if the claim is rejected.

    The default level is 1e-6, so that a right mechanism fails a test less often than once in a million runs. A test
    that does not fail has not proved the claim: the returned answer states the limits of the audit.
    """
    found = mechanism(f, claim=claim, **{"level": 1e-6, "outputs": 5_000, "seconds": 20.0, **options})
    if found.rejected:
        raise AssertionError("\n".join(found.lines()))
    return found
