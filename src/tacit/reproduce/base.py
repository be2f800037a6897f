"""A reproduction: a picture, a table of numbers, and the differences from the source with their reasons."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.exact.data_classes import dataclass
from tacit.report.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The result of one run: the table, and sentences about it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]
    notes: tuple[str, ...]
    draw: Callable[[], Figure] | None = None

    def write_table(self, path: Path) -> None:
        """The numbers, at full precision."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows)

    def write_picture(self, path: Path) -> None:
        """PNG or SVG, by the path's ending; an SVG is the same file every time."""
        assert self.draw is not None
        with style():
            figure = self.draw()
            figure.savefig(
                path, dpi=150, facecolor="white", metadata={"Date": None} if path.suffix == ".svg" else None
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One figure or table of a source."""

    name: str
    title: str
    source: str
    make: Callable[[], Made]


def spread(low: float, high: float, count: int) -> Sequence[float]:
    """Points from low to high, evenly spaced in their logarithm, ends exact."""
    ratio = (high / low) ** (1 / (count - 1))
    return [low, *(low * ratio**i for i in range(1, count - 1)), high]
