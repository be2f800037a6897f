"""Generalisation hierarchies: for each value its group, the larger group of that, and so on, in equally many steps.

Level 0 is the value itself. A hierarchy is checked when it is made: every value has every level (no gaps), and two
values that share a group share all larger ones (it is a tree). A value of the table that the hierarchy lacks is
refused.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from itertools import pairwise
from pathlib import Path

from tacit.errors import BadData, EmptyComposition, InvalidParameter
from tacit.exact.checks import is_number
from tacit.exact.data_classes import dataclass

SUPPRESSED = "*"
"""What stands for "any value"."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """value -> (level 0, level 1, ..., level L), level 0 the value; all of one length, and a tree."""

    levels: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        if not self.levels:
            raise EmptyComposition(what="the hierarchy", hint="give each value its groups")
        lengths = {len(path) for path in self.levels.values()}
        if len(lengths) > 1 or any(not isinstance(n, str) or not n for p in self.levels.values() for n in p):
            raise InvalidParameter(
                parameter="hierarchy", value=f"levels from {min(lengths)} to {max(lengths)}",
                must="have every level for every value, without gaps",
                hint="repeat a group if the next one is no larger",
            )  # fmt: skip
        (length,) = lengths
        if any(path[0] != value for value, path in self.levels.items()):
            raise InvalidParameter(parameter="hierarchy", value="level 0", must="be the value itself")
        for level in range(1, length - 1):
            above: dict[str, str] = {}
            for path in self.levels.values():
                if above.setdefault(path[level], path[level + 1]) != path[level + 1]:
                    raise InvalidParameter(
                        parameter="hierarchy", value=f"a group of level {level}",
                        must="lie in one group of the next level",
                        hint="two values that share a group share all larger ones",
                    )  # fmt: skip

    @classmethod
    def of(cls, groups: Mapping[object, Sequence[object] | object]) -> Hierarchy:
        """From value -> groups above it, smallest first (one group may be given as itself)."""
        made = {}
        for value, above in groups.items():
            more = [above] if isinstance(above, str) or not isinstance(above, Sequence) else list(above)
            made[str(value)] = (str(value), *(str(group) for group in more))
        return cls(made)

    @property
    def height(self) -> int:
        """The number of the coarsest level; 0 is the value itself."""
        return len(next(iter(self.levels.values()))) - 1

    def at(self, level: int) -> dict[str, str]:
        """The image of each value at a level."""
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= self.height:
            raise InvalidParameter(parameter="level", value=level, must=f"lie between 0 and {self.height}")
        return {value: path[level] for value, path in self.levels.items()}

    def path(self, value: str | None) -> tuple[str, ...]:
        """The nodes from a value to below the root; a root is added if the coarsest level has several groups.

        A missing value is a separate leaf below the root.
        """
        single = len({path[-1] for path in self.levels.values()}) == 1
        length = self.height if single else self.height + 1
        if value is None:
            return ("\0missing",) * max(length, 1)
        # Names of nodes are those of their level: a group that is called like a value is another node.
        return tuple(f"{level}\0{node}" for level, node in enumerate(self.levels[value][: max(length, 1)]))

    def check_covers(self, values: Iterable[str], *, column: str) -> None:
        """Every value of a column has a place."""
        missing = sum(1 for value in set(values) if value not in self.levels)
        if missing:
            raise InvalidParameter(
                parameter="hierarchy", value=f"{missing} values of column {column!r} without a place",
                must="have a place for every value of its column", hint="add them, with all their groups",
            )  # fmt: skip


def read_hierarchy(path: str | os.PathLike[str]) -> Hierarchy:
    """A CSV file without a header: a line a value, then its groups, smallest first; separated by ; or , ."""
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise BadData(source=str(where), problem="cannot be read", hint="a CSV file in UTF-8") from None
    first = text.partition("\n")[0]
    mark = ";" if ";" in first else ","
    try:
        lines = [line for line in csv.reader(StringIO(text, newline=""), delimiter=mark) if line]
    except csv.Error:
        raise BadData(source=str(where), problem="is no CSV file", hint="a line a value, ; between") from None
    if len({line[0] for line in lines}) != len(lines):
        raise InvalidParameter(parameter="hierarchy", value=str(where), must="name each value once")
    return Hierarchy({line[0]: tuple(line) for line in lines})


def suppression(values: Iterable[object]) -> Hierarchy:
    """Two levels: the value, and any value."""
    return Hierarchy.of({str(v): (SUPPRESSED,) for v in values})


def intervals(values: Iterable[float], *, widths: Sequence[float]) -> Hierarchy:
    """Numbers in intervals [a, a + width) of rising widths, each a multiple of the one before; then any value."""
    if not widths or not all(is_number(w) and 0 < w < math.inf for w in widths):
        raise InvalidParameter(parameter="widths", value=list(widths), must="be numbers above 0")
    values = list(values)
    if not all(is_number(value) and math.isfinite(value) for value in values):
        raise InvalidParameter(parameter="values", value=len(values), must="be finite numbers")
    # As decimals, which is how they were written: 0.3 is three times 0.1, and lies in [0.3, 0.4).
    exact = [Fraction(str(w)) for w in widths]
    for small, large in pairwise(exact):
        if (large / small).denominator != 1:
            raise InvalidParameter(
                parameter="widths", value=list(widths), must="each be a multiple of the one before",
                hint="5, 10, 20: an interval lies in one interval of the next level",
            )  # fmt: skip

    def group(value: Fraction, width: Fraction) -> str:
        low = value // width * width
        return f"[{_decimal(low)}, {_decimal(low + width)})"

    made: dict[object, object] = {}
    for value in values:
        at = Fraction(str(value))
        above = (*(group(at, w) for w in exact), SUPPRESSED)
        # A column of fractions has 5.0 where one of whole numbers has 5.
        for name in {str(value), _decimal(at)}:
            made[name] = above
    return Hierarchy.of(made)


def _decimal(number: Fraction) -> str:
    """All digits of a decimal number, whole ones without a point."""
    if number.denominator == 1:
        return str(number.numerator)
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
