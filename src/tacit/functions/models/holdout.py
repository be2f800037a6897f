"""A private score on rows that a model was not trained on: confusion table, accuracy, calibration, with intervals.

One table is released: label by bin of the predicted chance. A row is in one cell, so Laplace noise of scale
(1 or 2) rows / epsilon makes it pure; everything else is read from it. No score is free: a score of true rows tells of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.rounding import exact_parameter
from tacit.functions.models.conventions import class_numbers, relation
from tacit.guarantees import Guarantee, Neighbours, Unit, group_of, rows
from tacit.mechanisms import L1, Laplace
from tacit.noise.source import Source

CHANCES = 10
"""Bins of the predicted chance; an even number, so that one edge is 1/2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HoldoutReport:
    """A noisy table of labels (two rows) by bins of the predicted chance, and what is read from it."""

    table: Floats
    half: float
    guarantee: Guarantee
    event: Event
    publishable: bool
    chances: int = CHANCES

    @property
    def rows(self) -> float:
        """About how many rows there are."""
        return float(max(self.table.sum(), 1.0))

    @property
    def confusion(self) -> Floats:
        """Label (first the declared first class) by prediction."""
        cut = self.chances // 2
        return np.stack([self.table[:, :cut].sum(axis=1), self.table[:, cut:].sum(axis=1)], axis=1)

    @property
    def confusion_half(self) -> float:
        """At 95% at once, no entry of the confusion table is further from the true one."""
        return self.half * self.chances / 2

    @property
    def accuracy(self) -> float:
        """The share of right answers, within [0, 1]."""
        return float(np.clip(np.trace(self.confusion) / self.rows, 0.0, 1.0))

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """Holds the share on these rows with 95%: right ones and all ones are each off by at most so many cells."""
        right, total = float(np.trace(self.confusion)), float(self.table.sum())
        off = self.half * self.chances
        low = max(right - off, 0.0) / max(total + 2 * off, 1.0)
        high = (right + off) / max(total - 2 * off, 1.0)
        return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))

    @property
    def calibration(self) -> list[dict[str, float]]:
        """For each bin of the chance: its middle, the share of the second class, and about how many rows it has."""
        counts = np.maximum(self.table, 0.0)
        out = []
        for k in range(self.chances):
            total = float(counts[:, k].sum())
            middle = (k + 0.5) / self.chances
            share = float(counts[1, k]) / total if total else middle
            out.append({"chance": middle, "share": share, "rows": total})
        return out

    @property
    def calibration_error(self) -> float:
        """The expected calibration error by middles of bins; noise makes it larger on average."""
        found = self.calibration
        total = sum(c["rows"] for c in found)
        return sum(c["rows"] * abs(c["share"] - c["chance"]) for c in found) / total if total else 0.0


def holdout_report(
    model: Any, X: Any, y: Any, *, epsilon: Any, neighbours: Any = "add-or-remove", rows_each: int = 1,
    source: Source | None = None,
) -> HoldoutReport:  # fmt: skip
    """Scores a classifier of two declared classes on rows that it was not trained on; Pure(epsilon) for those rows.

    Rows with an undeclared label count as absent. If people may have rows on both sides of the split, add the prices.
    """
    classes = np.asarray(model.classes_)
    if len(classes) != 2:
        raise InvalidParameter(parameter="model", value=len(classes), must="be a classifier of two classes")
    kind, most = relation(neighbours), whole("rows_each", rows_each)
    moved = most * (2 if kind is Neighbours.REPLACE_ONE else 1)
    noise = Laplace.for_target(epsilon=exact_parameter("epsilon", epsilon), sensitivity=L1(Fraction(moved)))
    chance = np.asarray(model.predict_proba(X))[:, 1]
    places = class_numbers(y, classes)
    known = places >= 0
    bins = np.clip((chance * CHANCES).astype(np.int64), 0, CHANCES - 1)
    cells = np.bincount(places[known] * CHANCES + bins[known], minlength=2 * CHANCES).astype(np.int64)
    released = noise.release(cells, source=source)
    unit: Unit = rows(neighbours=kind)
    return HoldoutReport(
        table=released.to_floats().reshape(2, CHANCES), half=noise.max_error(confidence=0.95, dimension=2 * CHANCES),
        guarantee=Guarantee(bound=noise.bound, unit=unit if most == 1 else group_of(unit, size=most)),
        event=noise.event, publishable=released.publishable,
    )  # fmt: skip
