"""A private score on rows outside of a model's training: confusion table, accuracy, calibration, with intervals.

One table is released: label by bin of the predicted chance. A row is in one cell, so Laplace noise of scale (1
or 2) rows / epsilon makes the histogram pure; all scores follow from it. No score is free: a score of true rows
reveals something about them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tacit.accounting.events import Event
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Floats
from tacit.exact.checks import whole
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import exact_parameter
from tacit.functions.models.conventions import class_numbers, relation
from tacit.guarantees import Guarantee, Neighbours, Unit, group_of, rows
from tacit.mechanisms import L1, Laplace
from tacit.noise.source import Source

CHANCES = 10
"""The number of bins of the predicted probability, even so that one edge is 1/2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HoldoutReport:
    """A noisy table of labels (two rows) by bins of the predicted chance, and the statistics computed from it."""

    table: Floats
    half: float
    guarantee: Guarantee
    event: Event
    publishable: bool
    chances: int = CHANCES

    @property
    def rows(self) -> float:
        """An estimate of the number of rows."""
        return float(max(self.table.sum(), 1.0))

    @property
    def confusion(self) -> Floats:
        """Label (first the declared first class) by prediction."""
        cut = self.chances // 2
        return np.stack([self.table[:, :cut].sum(axis=1), self.table[:, cut:].sum(axis=1)], axis=1)

    @property
    def confusion_half(self) -> float:
        """With 95%, no entry of the confusion table is further from the true one; all entries at once."""
        return self.half * self.chances / 2

    @property
    def accuracy(self) -> float:
        """The share of right answers, within [0, 1]."""
        return float(np.clip(np.trace(self.confusion) / self.rows, 0.0, 1.0))

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """A 95% interval for the share on these rows, from the largest noise in the number of right rows and
        of all rows.
        """
        right, total = float(np.trace(self.confusion)), float(self.table.sum())
        off = self.half * self.chances
        low = max(right - off, 0.0) / max(total + 2 * off, 1.0)
        high = (right + off) / max(total - 2 * off, 1.0)
        return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))

    @property
    def calibration(self) -> list[dict[str, float]]:
        """For each bin of the predicted probability: its middle, the share of the second class, and an estimated
        number of rows.

        `low` and `high` contain the share on these rows, in all bins at once with 95%; they do not cover
        sampling error.
        """
        out = []
        for k in range(self.chances):
            no, yes = (float(v) for v in self.table[:, k])
            total, middle = max(no, 0.0) + max(yes, 0.0), (k + 0.5) / self.chances
            out.append(
                {
                    "chance": middle, "share": max(yes, 0.0) / total if total else middle, "rows": total,
                    "low": _share(yes - self.half, no + self.half, 0.0),
                    "high": _share(yes + self.half, no - self.half, 1.0),
                }
            )  # fmt: skip
        return out

    def svg(self, *, width: int = 360, height: int = 320) -> str:
        """The calibration curve with its intervals, beside the diagonal of a perfect one."""
        left, top, base, right = 44, 14, height - 36, width - 14

        def place(x: float, y: float) -> tuple[float, float]:
            return left + (right - left) * x, base - (base - top) * y

        (x0, y0), (x1, y1) = place(0, 0), place(1, 1)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            'aria-label="calibration curve" font-family="sans-serif" font-size="11">',
            f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#999" stroke-dasharray="4 3"/>',
            f'<path d="M{x0:.1f} {y1:.1f}V{y0:.1f}H{x1:.1f}" stroke="#555" fill="none"/>',
        ]
        for bin_ in self.calibration:
            if bin_["rows"] <= 2 * self.half:
                continue  # an interval as wide as the picture
            x, y = place(bin_["chance"], bin_["share"])
            low, high = place(0, bin_["low"])[1], place(0, bin_["high"])[1]
            parts.append(f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="#9bb8d9" stroke-width="5"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#1f4e8c"/>')
        for mark in (0.0, 0.5, 1.0):
            x, y = place(mark, mark)
            parts.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{mark:g}</text>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:g}</text>')
        parts.append(
            f'<text x="{(left + right) / 2:.0f}" y="{height - 8}" text-anchor="middle">predicted chance</text>'
            f'<text x="{left + 8}" y="{top + 12}">share of rows; bars: noise alone, 95%</text></svg>'
        )
        return "".join(parts)

    @property
    def calibration_error(self) -> float:
        """The expected calibration error by middles of bins; noise makes it larger on average."""
        found = self.calibration
        total = sum(c["rows"] for c in found)
        return sum(c["rows"] * abs(c["share"] - c["chance"]) for c in found) / total if total else 0.0


def _share(one: float, other: float, empty: float) -> float:
    """one / (one + other), after both are cut at 0."""
    a, b = max(one, 0.0), max(other, 0.0)
    return a / (a + b) if a + b else empty


def holdout_report(
    model: Any, X: Any, y: Any, *, epsilon: Any, neighbours: Any = "add-or-remove", rows_each: int = 1,
    source: Source | None = None,
) -> HoldoutReport:  # fmt: skip
    """Scores a classifier of two declared classes on rows outside of its training; Pure(epsilon) for those rows.

    Rows with an undeclared label count as absent. If people may have rows on both sides of the split, add the prices.
    """
    classes = np.asarray(model.classes_)
    if len(classes) != 2:
        raise InvalidParameter(parameter="model", value=len(classes), must="be a classifier of two classes")
    kind, most = relation(neighbours), whole("rows_each", rows_each)
    moved = most * (2 if kind is Neighbours.REPLACE_ONE else 1)
    noise = Laplace.for_target(epsilon=exact_parameter("epsilon", epsilon), sensitivity=L1(Fraction(moved)))
    # An empty table is a neighbour of one with a single row: it is scored, too.
    chance = np.asarray(model.predict_proba(X))[:, 1] if len(y) else np.empty(0)
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
