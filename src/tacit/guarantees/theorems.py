"""Every theorem that tacit rests on: id, statement, source, assumptions.

An id names a page in docs/theory, where the proof is, and marks the laws that use the theorem. A statement
that differs from its source is marked: CORRECTED (the source is wrong) or SHARPER (ours, and better).
`python docs/_site/theorems.py` makes theorems.json from the front matter of the pages.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.checks import refuse_if
from tacit.exact.data_classes import dataclass


class Standing(StrEnum):
    """How a statement relates to its source."""

    AS_PRINTED = "as printed"
    CORRECTED = "corrected"
    SHARPER = "sharper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """A statement with its source and its assumptions; the proof is on its `page`, docs/theory/<id>.md."""

    id: str
    statement: str
    source: str
    assumptions: str = "none beyond the definitions"
    standing: Standing = Standing.AS_PRINTED

    @property
    def page(self) -> str:
        """The page of the proof, as a path in the repository. On the site the same name ends in .html."""
        return f"docs/theory/{self.id}.md"


THEOREMS: dict[str, Theorem] = {}


def register(
    id: str,
    statement: str,
    source: str,
    assumptions: str = "none beyond the definitions",
    standing: Standing = Standing.AS_PRINTED,
) -> None:
    """Registers one theorem; an id may be used once."""
    refuse_if(id in THEOREMS, "id", id, "be registered once")
    THEOREMS[id] = Theorem(
        id=id, statement=statement, source=source, assumptions=assumptions, standing=standing
    )


def theorem(id: str) -> Theorem:
    """The theorem with this id."""
    if not isinstance(id, str):
        raise InvalidParameter(parameter="theorem", value=type(id).__name__, must="be the id of a theorem")
    if id not in THEOREMS:
        raise UnknownName(what="theorem", name=id, known=THEOREMS)
    return THEOREMS[id]


for _room in json.loads(Path(__file__).with_name("theorems.json").read_text("utf-8")).values():
    for _id, _said in _room.items():
        register(_id, **{**_said, "standing": Standing(_said["standing"])})
