"""Quantiles, several at once: the counts on a fine public grid, from which a mechanism selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from tacit.errors import EmptyComposition, InvalidParameter
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.checks import members, settle, whole
from tacit.guarantees import Unit
from tacit.sources.aggregates import CountRows
from tacit.sources.axes import Cut, cell_count
from tacit.sources.expressions import Expression
from tacit.sources.query import Aggregation, Cells
from tacit.sources.schema import Schema
from tacit.statistics.base import By, Part, Question, Statistic, by_columns, filter_of
from tacit.statistics.forms import Parts
from tacit.statistics.sensitivity import base_unit, boxes, replaced, row_limit

__all__ = ["Quantiles", "median", "quantile", "quantiles", "rank_sensitivity"]

RESOLUTION = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Statistic):
    """The values below which given shares of the rows lie, in each cell: all shares from one histogram.

    The part is the histogram over `resolution` equal ranges between the declared bounds; a row is counted in one of
    them, so it moves like Count. These ranges are no groups: groups are the keys of `by` alone, and within them all
    rows of a person are counted, of which there are at most m wherever they lie. A selection by rank uses the score
    -|#(values below t) - q n|, which one unit of m rows moves by m max(q, 1 - q) under add-or-remove and by m under
    replace-one (`rank_sensitivity`).
    """

    kind: ClassVar[str] = "quantiles"
    in_column_units: ClassVar[bool] = True
    fits: ClassVar[Literal["noise", "ranks", "clamping bounds", "thresholds"]] = "ranks"
    layout: ClassVar[Literal["cells", "ends", "levels", "shares", "tables"]] = "shares"

    column: str
    at: tuple[float, ...]
    resolution: int = RESOLUTION

    def __post_init__(self) -> None:
        self._check_words()
        settle(self, at=members("at", self.at))
        if not self.at:
            raise EmptyComposition(what="the list of shares", hint="for example at=[0.25, 0.5, 0.75]")
        for share in self.at:
            if isinstance(share, bool) or not isinstance(share, int | float | Fraction) or not 0 < share < 1:
                raise InvalidParameter(
                    parameter="at", value=share, must="lie strictly between 0 and 1", hint="0.5 is the median"
                )
        settle(self, at=tuple(float(s) if isinstance(s, float) else s for s in self.at))
        if list(self.at) != sorted(set(self.at)):
            raise InvalidParameter(parameter="at", value=self.at, must="increase")
        settle(self, resolution=whole("resolution", self.resolution, least=2))

    def on(self, schema: Schema, unit: Unit) -> Question:
        column = schema.measured(self.column)
        frame = self._frame(schema, unit, (self.column,))
        if frame.support is not None:
            raise InvalidParameter(
                parameter="by", value=[str(b) for b in self.by], must="have known keys for quantiles",
                hint="declare category([...]), or release the keys first and declare those",
            )  # fmt: skip
        fine = Cut(column=self.column, values=column, count=min(self.resolution, column.width + 1))
        axes = (*frame.axes, fine)
        sensitivity = boxes([(1, 1)], unit, cells=cell_count(axes), absent=frame.absent)
        return Question(
            statistic=self, schema=schema, unit=unit, axes=frame.axes,
            requests=(Aggregation(axes=axes, aggregates=(CountRows(where=self.where),), groups=frame.axes),),
            parts=(Part(name="counts", axes=axes),),
            sensitivity=sensitivity, sensitivities={"counts": sensitivity}, form=None,
            details={
                # Steps are below 2^52 and their spacing is a power of two: no product is rounded.
                "edges": tuple((np.asarray(fine.first_steps(), np.float64) * float(column.spacing)).tolist()),
                "rank_sensitivity": {float(q): rank_sensitivity(q, unit) for q in self.at},
            },
        )  # fmt: skip

    def integers(self, question: Question, cells: Sequence[Cells]) -> dict[str, AnyArray]:
        return {"counts": cells[0].values[CountRows(where=self.where)]}

    def assemble(self, question: Question, noisy: Parts) -> Floats:
        """Quantiles of the histogram, in order; negative counts are read as 0, no rows as the middle."""
        counts = np.maximum(np.asarray(noisy["counts"]).astype(np.float64), 0.0)
        edges = np.asarray(question.details["edges"])
        below = np.concatenate([np.zeros((*counts.shape[:-1], 1)), np.cumsum(counts, axis=-1)], axis=-1)
        flat = below.reshape(-1, below.shape[-1])
        out = np.empty((len(flat), len(self.at)))
        for i, ranks in enumerate(flat):
            for j, share in enumerate(self.at):
                total = ranks[-1]
                k = int(np.searchsorted(ranks, share * total, side="left")) if total > 0 else len(ranks) // 2
                k = max(k, 1)
                step = ranks[k] - ranks[k - 1]
                inside = (share * total - ranks[k - 1]) / step if step > 0 else 0.5
                out[i, j] = edges[k - 1] + (edges[k] - edges[k - 1]) * inside
        return out.reshape((*counts.shape[:-1], len(self.at)))


def rank_sensitivity(share: float, unit: Unit) -> Fraction:
    """How far one unit can move |#(values below t) - q n|, for any t.

    A row adds (b, 1) to (#below, n), b in {0, 1}, or (0, 0): it moves the difference by b - q in {-q, 1 - q}.
    Add-or-remove: m max(q, 1 - q). Replace-one: m times the distance of the extremes, m. For a group of units m counts
    the rows of all of them.
    """
    q, m = Fraction(share), row_limit(unit) * base_unit(unit)[1]
    return Fraction(m) if replaced(unit) else m * max(q, 1 - q)


def quantiles(
    column: str,
    *,
    at: Sequence[float] = (0.25, 0.5, 0.75),
    by: By = None,
    where: str | Expression | None = None,
    resolution: int = RESOLUTION,
) -> Quantiles:
    """Several quantiles of a number or date at once, in each group."""
    return Quantiles(
        column=column, at=members("at", at), by=by_columns(by), where=filter_of(where), resolution=resolution
    )


def quantile(
    column: str,
    at: float,
    *,
    by: By = None,
    where: str | Expression | None = None,
    resolution: int = RESOLUTION,
) -> Quantiles:
    """One quantile of a number or date, in each group."""
    return quantiles(column, at=(at,), by=by, where=where, resolution=resolution)


def median(
    column: str, *, by: By = None, where: str | Expression | None = None, resolution: int = RESOLUTION
) -> Quantiles:
    """The middle value of a number or date, in each group."""
    return quantile(column, 0.5, by=by, where=where, resolution=resolution)
