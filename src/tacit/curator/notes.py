"""Notes for the custodian's eyes only: each is one line, and each line says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import visible

__all__ = ["MARK", "Note"]

MARK = "NOT FOR PUBLICATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that was seen. `what` is a stable word for programs; `attention` where something is lost.

    Sentences may hold values of people: no character of them begins a new line or steers a terminal.
    """

    about: str
    what: str
    sentence: str
    attention: bool = False
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """The note as plain values."""
        return {
            "mark": MARK.lower(), "about": self.about, "what": self.what, "attention": self.attention,
            "sentence": self.sentence, "numbers": dict(self.numbers),
        }  # fmt: skip

    def __str__(self) -> str:
        sign = "!" if self.attention else " "
        return visible(f"{MARK} | {sign} {self.about}: {self.sentence}")
