"""The second opinion on a folder that `tacit release` wrote: each certificate, and the charge of all of them.

It stands alone because it reads the curator's certificates, and the opinions themselves share no code with the curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tacit.audit.claims import Opinion, opinion_on_certificate, opinion_on_charge, opinion_on_noise
from tacit.curator.verifying import CheckResult, read_certificate
from tacit.errors import TacitError

Question = Callable[[Any], Opinion | None]


def second_opinions(folder: str | Path) -> Iterator[CheckResult]:
    """Findings about stated bounds, computed again from the certificates by this room alone."""
    read: dict[str, dict[str, Any]] = {}
    for path in sorted((Path(folder) / "certificates").glob("*.json")):
        name = f"certificates/{path.name}"
        try:
            read[name] = read_certificate(path)
        except TacitError as problem:
            yield CheckResult(what=f"a second opinion on {name}", holds=None, why=problem.message)
    for name, said in read.items():
        yield from _found(f"a second opinion confirms the bound of {name}", opinion_on_certificate, said)
        yield from _found(f"the noise of {name} gives its events", opinion_on_noise, said)
    if read:
        yield from _found(
            "a second opinion confirms the charge of the plan", opinion_on_charge, list(read.values())
        )


def _found(what: str, question: Question, said: Any) -> Iterator[CheckResult]:
    try:
        opinion = question(said)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        # A certificate of a later version, or one that was changed, may have any shape.
        yield CheckResult(what=what, holds=None, why="its form is unknown here")
        return
    if opinion is not None:
        found = "" if opinion.found is None else f"found {opinion.found:.6g} for {opinion.stated}"
        yield CheckResult(
            what=what, holds=opinion.confirmed, why="; ".join(filter(None, [opinion.why, found]))
        )
