"""What a treatment is: rows in, rows out, with what was done in one sentence, and whether rows stay in their places."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tacit.anonymity.treatments.draws import Draws

__all__ = ["Treatment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment(ABC):
    """A change of a table. None has a guarantee."""

    @abstractmethod
    def apply(self, table: Any, draws: Draws) -> Any:
        """The changed Arrow table."""

    @abstractmethod
    def describe(self) -> str:
        """What is done, in words."""

    @property
    def aligned(self) -> bool:
        """Does row i of the result come from row i of the table?"""
        return True
