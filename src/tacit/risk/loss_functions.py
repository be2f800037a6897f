"""Losses on a count: what it costs to say r when the truth is x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats

__all__ = ["LOSSES", "Loss", "as_loss"]

LOSSES = ("absolute", "squared", "zero-one")
# A loss read from a file carries rounding errors; a step back this small, relative to the largest, is one.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """L(x, r) >= 0: a named loss for every range, or a matrix with a row a count and a column an output."""

    name: str
    table: Floats | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.table is None:
            if self.name not in LOSSES:
                raise UnknownName(what="loss", name=self.name, known=LOSSES)
            return
        if self.table.ndim != 2 or self.table.shape[0] < 2 or self.table.shape[1] < 1:
            raise InvalidParameter(
                parameter="loss",
                value=f"array of shape {self.table.shape}",
                must="be a matrix with at least two rows",
                hint="row x, column r: what it costs to say r when the truth is x",
            )
        if not np.isfinite(self.table).all() or (self.table < 0).any():
            raise InvalidParameter(
                parameter="loss",
                value="a matrix with entries that are negative or not finite",
                must="be finite and at least 0",
                hint="add a constant to each row: it changes no comparison",
            )

    def at(self, rows: Any, outputs: Any) -> Floats:
        """L(x, r) for integer arrays that broadcast."""
        if self.table is not None:
            return np.asarray(self.table[rows, outputs])
        # Both as floats first: they broadcast, and would else be converted once for each pair.
        distance = np.asarray(np.asarray(rows, dtype=np.float64) - np.asarray(outputs, dtype=np.float64))
        np.abs(distance, out=distance)
        if self.name == "absolute":
            return distance
        return np.asarray(distance * distance if self.name == "squared" else distance > 0, dtype=np.float64)

    def between(self, rows: npt.NDArray[np.int64], h: Floats) -> Floats:
        """The expected loss when h is rounded to a neighbouring integer at random, with h as the mean."""
        if self.table is None and self.name == "absolute":
            # No count lies strictly between two neighbours, so that the loss is linear there: |x - h|.
            return self.at(rows[:, None], h)
        low = np.floor(h).astype(np.int64)
        share = h - low
        high = np.minimum(low + 1, self.last if self.table is not None else low + 1)
        column = rows[:, None]
        return np.asarray((1 - share) * self.at(column, low) + share * self.at(column, high))

    @property
    def last(self) -> int:
        """The largest output of a tabled loss."""
        assert self.table is not None
        return int(self.table.shape[1]) - 1

    def matrix(self, n: int) -> Floats:
        """The whole table on 0..n."""
        if self.table is not None:
            return self.table
        x = np.arange(n + 1)
        return self.at(x[:, None], x)

    def fit(self, n: int) -> None:
        """Refuse a table that is for another range."""
        if self.table is not None and self.table.shape[0] != n + 1:
            raise InvalidParameter(
                parameter="loss",
                value=f"array of shape {self.table.shape}",
                must=f"have a row for each of the counts 0..{n}",
            )

    def grows_outwards(self) -> bool:
        """Whether no step of the output away from the truth makes the loss smaller.

        The condition of theorem `optimal-count-remap`; it also asks that the outputs are the counts.
        """
        if self.table is None:
            return True
        count, outputs = self.table.shape
        return count == outputs and bool(
            (self.table - self.minorant()).max(initial=0.0) <= ROUNDING * self.table.max(initial=0.0)
        )

    def minorant(self) -> Floats:
        """The largest table below this one that grows outwards: a lower bound for it holds for this one."""
        assert self.table is not None
        best = self.table.copy()
        for x in range(best.shape[0]):
            best[x, x:] = np.minimum.accumulate(best[x, x:][::-1])[::-1]
            best[x, : x + 1] = np.minimum.accumulate(best[x, : x + 1])
        return best

    def is_convex(self) -> bool:
        """Whether the loss is convex in the output, for every count."""
        if self.table is None:
            return self.name != "zero-one"
        if self.table.shape[1] < 3:
            return True
        bend = np.diff(self.table, n=2, axis=1)
        return bool(bend.min() >= -ROUNDING * self.table.max())

    def is_symmetric(self) -> bool:
        """Whether L(n-x, n-r) = L(x, r)."""
        return self.table is None or bool((self.table == self.table[::-1, ::-1]).all())


def as_loss(loss: str | Loss | Sequence[Sequence[float]] | npt.NDArray[Any]) -> Loss:
    """A loss from its name or from a matrix."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return Loss(name=loss)
    try:
        table = np.array(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            parameter="loss", value=type(loss).__name__, must="be a name or a matrix of numbers"
        ) from None
    return Loss(name="matrix", table=table)
