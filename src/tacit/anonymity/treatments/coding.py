"""Treatments without chance: removal, top and bottom coding, collapsing, rounding (the ICPSR list; Groce, 2.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.anonymity.hierarchies import Hierarchy
from tacit.anonymity.treatments.base import Treatment
from tacit.anonymity.treatments.columns import known, numbers, replaced
from tacit.anonymity.treatments.draws import Draws
from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.checks import is_number, positive, require

__all__ = ["BottomCode", "Collapse", "Remove", "Round", "TopCode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove(Treatment):
    """Columns are left out."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise EmptyComposition(what="the list of columns to remove")

    def apply(self, table: Any, draws: Draws) -> Any:
        left = [name for name in table.column_names if name not in known(table, self.columns)]
        if not left:
            raise InvalidParameter(parameter="columns", value=len(self.columns), must="leave a column")
        return table.select(left)

    def describe(self) -> str:
        return f"{', '.join(self.columns)} removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopCode(Treatment):
    """Numbers above a limit become the limit."""

    column: str
    at: float

    def __post_init__(self) -> None:
        finite = is_number(self.at) and math.isfinite(self.at)
        require(finite, parameter="at", value=self.at, must="be a finite number")

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.minimum(numbers(table, self.column), float(self.at))})

    def describe(self) -> str:
        return f"{self.column} top-coded at {self.at:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BottomCode(Treatment):
    """Numbers below a limit become the limit."""

    column: str
    at: float

    def __post_init__(self) -> None:
        finite = is_number(self.at) and math.isfinite(self.at)
        require(finite, parameter="at", value=self.at, must="be a finite number")

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.maximum(numbers(table, self.column), float(self.at))})

    def describe(self) -> str:
        return f"{self.column} bottom-coded at {self.at:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Treatment):
    """Numbers become the nearest multiple of a base, ties to the even multiple."""

    column: str
    base: float

    def __post_init__(self) -> None:
        positive("base", self.base)

    def apply(self, table: Any, draws: Draws) -> Any:
        return replaced(table, {self.column: np.rint(numbers(table, self.column) / self.base) * self.base})

    def describe(self) -> str:
        return f"{self.column} rounded to multiples of {self.base:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse(Treatment):
    """Values become their groups at a level of a hierarchy; what is missing stays missing."""

    column: str
    hierarchy: Hierarchy
    level: int

    def apply(self, table: Any, draws: Draws) -> Any:
        import pyarrow as pa

        known(table, [self.column])
        coded = table.column(self.column).combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        words = [str(v) for v in coded.dictionary.to_pylist()]
        self.hierarchy.check_covers(words, column=self.column)
        above = self.hierarchy.at(self.level)
        return replaced(
            table, {self.column: pa.array([above[w] for w in words], type=pa.string()).take(coded.indices)}
        )

    def describe(self) -> str:
        return f"{self.column} collapsed to level {self.level} of {self.hierarchy.height}"
