"""An additive model for readers: a shape per column, a scorecard, a formula as JSON, pictures.

All of it is post-processing of released weights. Each shape is moved to a mean of 0 over its declared bins, and the
constant takes the rest. Bands need a bought noisy histogram. They cover the noise of the random term only, use the
curvature of each bin from its noisy count, and are labelled approximate.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.arrays import Floats
from tacit.exact.checks import positive
from tacit.exact.data_classes import dataclass
from tacit.functions.models.columns import NumberColumn, PairColumn, _group_labels
from tacit.functions.models.perturbed import PerturbedRelease

BAND = "approximate 95% band for the noise alone: curvature from noisy counts; sampling error is not in it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnShape:
    """One column's part of the model: a value for each bin, the last for missing and undeclared values; or the part
    of a pair of columns.
    """

    name: str
    labels: tuple[str, ...]
    values: Floats
    half: Floats | None
    edges: tuple[float, ...] | None
    pair: PairColumn | None = None
    kept: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shapes:
    """All shapes of a model with one output: value = constant + sum of shapes; a classifier's value is a logit."""

    constant: float
    shapes: tuple[ColumnShape, ...]
    outcomes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        released: PerturbedRelease,
        *,
        outcomes: tuple[str, ...] = (),
        unit: float = 1.0,
        middle: float = 0.0,
    ) -> Shapes:
        """The shapes of a release; models of more than two classes have one function each, and no single scorecard."""
        if len(released.weights) != 1 or released.plan.coding != "binned":
            raise InvalidParameter(
                parameter="model", value=f"{len(released.weights)} functions", must="be one additive function",
                hint="declare two classes",
            )  # fmt: skip
        columns = released.columns
        scaled = released.weights[0] * unit
        stds = _stds(released)
        constant, out = middle + float(scaled[-1]), []
        pairs = columns.pair_columns
        names = (*columns.names, *(" × ".join(columns.names[k] for k in p.places) for p in pairs))
        learned = released.parts.contrasts
        kept = iter(() if learned is None else learned.kept)
        for name, block, start, size in zip(
            names, (*columns.columns, *pairs), columns.starts, columns.sizes, strict=False
        ):
            own = scaled[start : start + size]
            pair = block if isinstance(block, PairColumn) else None
            mean = float(own.mean() if pair is not None else own[:-1].mean())
            constant += mean
            half = None
            if stds is not None and pair is None:
                half = 1.96 * stds[start : start + size] * unit * released.slope
            edges = None
            if isinstance(block, NumberColumn):
                edges = (block.low, *block.cuts.tolist(), block.high)
            out.append(
                ColumnShape(
                    name=name,
                    labels=block.labels,
                    values=own - mean,
                    half=half,
                    edges=edges,
                    pair=pair,
                    kept=next(kept, None),
                )
            )
        return cls(constant=constant, shapes=tuple(out), outcomes=outcomes)

    def __getitem__(self, name: str) -> ColumnShape:
        for shape in self.shapes:
            if shape.name == name:
                return shape
        raise UnknownName(what="column", name=str(name), known=[s.name for s in self.shapes])

    def __iter__(self) -> Iterator[ColumnShape]:
        return iter(self.shapes)

    def scorecard(self, *, points: float = 20.0) -> list[dict[str, Any]]:
        """A row for each bin: column, bin, points; `points` double the odds (for a regressor: its own unit)."""
        scale = positive("points", points) / math.log(2) if self.outcomes else 1.0
        rows = [{"column": "(constant)", "bin": "", "points": round(self.constant * scale, 1)}]
        for shape in self.shapes:
            rows += [
                {"column": shape.name, "bin": label, "points": round(float(v) * scale, 1)}
                for label, v in zip(shape.labels, shape.values, strict=True)
            ]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON: a page evaluates constant + sum of values[bin].

        A pair has the columns' places and the group of each of their bins: its cell is group * groups + other group.
        """
        return {
            "format": "tacit additive model 1",
            "outcomes": list(self.outcomes),
            "link": "logit" if self.outcomes else "identity",
            "constant": self.constant,
            "columns": [
                {
                    "name": s.name,
                    "edges": None if s.edges is None else list(s.edges),
                    "bins": list(s.labels),
                    "values": [float(v) for v in s.values],
                    **({} if s.pair is None else {"pair": list(s.pair.places), "groups": s.pair.bin_groups}),
                    **({} if s.kept is None else {"kept": s.kept}),
                    **({} if s.half is None else {"half_widths": [float(v) for v in s.half], "about": BAND}),
                }
                for s in self.shapes
            ],
        }

    @property
    def formula(self) -> str:
        """The model as text, one line a bin."""
        lines = [f"{'logit' if self.outcomes else 'value'} = {self.constant:+.4f}"]
        for s in self.shapes:
            lines += [
                f"  {v:+.4f}  if {s.name} in {label}" for label, v in zip(s.labels, s.values, strict=True)
            ]
        return "\n".join(lines)

    def svg(self, name: str, *, width: int = 480, height: int = 260) -> str:
        """A picture of one shape: steps over a number's range, bars for categories, and a band if the shape has one."""
        shape = self[name]
        if shape.pair is not None:
            return _pair_svg(shape, "log odds" if self.outcomes else "in the target's unit", width, height)
        longest = 7 * max(len(_short(v)) for v in shape.labels)
        # Names of categories stand upright where they are too long to lie.
        upright = shape.edges is None and longest * len(shape.values) > width - 66
        room = 24 + 6 * longest // 7 if upright else 40
        left, top, base, right = 54, 26, height - room, width - 12
        half = np.zeros(len(shape.values)) if shape.half is None else shape.half
        count = len(shape.values) - (1 if shape.edges is not None else 0)
        drawn = (np.abs(shape.values) + half)[:count]
        reach = max(float(drawn.max()), 1e-9)

        def y(value: float) -> float:
            return top + (base - top) * (1 - (value / reach + 1) / 2)

        if shape.edges is not None:
            low, high = shape.edges[0], shape.edges[-1]
            ends = [left + (right - left) * (e - low) / (high - low) for e in shape.edges]
        else:
            ends = [left + (right - left) * k / count for k in range(count + 1)]
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{html.escape(name)}" font-family="sans-serif" font-size="11">',
            f'<text x="{left}" y="16" font-size="13">{html.escape(name)}</text>',
            f'<line x1="{left}" y1="{y(0):.1f}" x2="{right}" y2="{y(0):.1f}" stroke="#999"/>',
        ]
        for mark in (-reach, 0.0, reach):
            parts.append(f'<text x="{left - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark:.2g}</text>')
        for k in range(count):
            a, b, v, h = ends[k], ends[k + 1], float(shape.values[k]), float(half[k])
            if h:
                parts.append(
                    f'<rect x="{a:.1f}" y="{y(v + h):.1f}" width="{b - a:.1f}" height="{y(v - h) - y(v + h):.1f}" '
                    'fill="#9bb8d9" fill-opacity="0.5"/>'
                )
            parts.append(f'<path d="M{a:.1f} {y(v):.1f}H{b:.1f}" stroke="#1f4e8c" stroke-width="2.5"/>')
        if shape.edges is not None:
            middles = [(low + (high - low) * k / 4, "middle") for k in (1, 2, 3)]
            for value, anchor in ((low, "start"), *middles, (high, "end")):
                x = left + (right - left) * (value - low) / (high - low)
                parts.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="{anchor}">{value:.6g}</text>')
        elif not upright:
            for k in range(count):
                x, text = (ends[k] + ends[k + 1]) / 2, html.escape(_short(shape.labels[k]))
                parts.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{text}</text>')
        else:
            every = max(1, -(-12 * count // (right - left)))
            for k in range(0, count, every):
                x, text = (ends[k] + ends[k + 1]) / 2, html.escape(_short(shape.labels[k]))
                parts.append(
                    f'<text x="{x + 4:.1f}" y="{base + 6}" text-anchor="end" '
                    f'transform="rotate(-90 {x + 4:.1f} {base + 6})">{text}</text>'
                )
        unit = "log odds" if self.outcomes else "in the target's unit"
        parts.append(f'<text x="{left}" y="{height - 8}" fill="#555">{unit}</text></svg>')
        return "".join(parts)


LONGEST_NAME = 16


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _pair_svg(shape: ColumnShape, unit: str, width: int, height: int) -> str:
    """Cells of a pair as a map: blue above 0, red below, stronger further out; gaps are the last row and column."""
    assert shape.pair is not None
    one, two = shape.pair.groups
    across, up = shape.name.split(" × ", 1)
    left, top, base, right = 96, 40, height - 42, width - 12
    wide, tall = (right - left) / one, (base - top) / two
    reach = max(float(np.abs(shape.values).max()), 1e-9)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{html.escape(shape.name)}" font-family="sans-serif" font-size="11">',
        f'<text x="12" y="16" font-size="13">{html.escape(shape.name)}</text>',
        f'<text x="{right}" y="{base + 30}" text-anchor="end">{html.escape(across)}</text>',
        f'<text x="{left}" y="32">{html.escape(up)}</text>',
    ]
    for i in range(one):
        for j in range(two):
            value, label = float(shape.values[i * two + j]), shape.labels[i * two + j]
            colour = "#1f4e8c" if value >= 0 else "#a63d2f"
            parts.append(
                f'<rect x="{left + i * wide:.1f}" y="{base - (j + 1) * tall:.1f}" width="{wide:.1f}" '
                f'height="{tall:.1f}" fill="{colour}" fill-opacity="{abs(value) / reach:.2f}" stroke="#ddd">'
                f"<title>{html.escape(label)}: {value:+.3g}</title></rect>"
            )
    columns, rows = (_group_labels(c) for c in shape.pair.columns)
    for i in sorted({0, (one - 1) // 2, one - 1}):
        x, text = left + (i + 0.5) * wide, html.escape(_short(columns[i]))
        parts.append(f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle">{text}</text>')
    for j in range(0, two, max(1, -(-12 * two // int(base - top)))):
        y, text = base - (j + 0.5) * tall + 4, html.escape(_short(rows[j]))
        parts.append(f'<text x="{left - 6}" y="{y:.1f}" text-anchor="end">{text}</text>')
    parts.append(
        f'<text x="12" y="{height - 6}" fill="#555">{unit}, at most {reach:.2g} from 0; blue is above</text></svg>'
    )
    return "".join(parts)


def _stds(released: PerturbedRelease) -> Floats | None:
    """About sigma / curvature of each place, the curvature from noisy counts: ridges + bend B' count B.

    None if no histogram was bought. A quarter is the largest second derivative of the logistic loss; smaller ones
    make the band wider, so the mean chance of the model's own constant is used.
    """
    learned = released.parts.contrasts
    if released.counts is None or learned is None:
        return None
    counts = np.maximum(released.counts, 0.0)
    if released.plan.kind == "logistic":
        chance = 1 / (1 + math.exp(-float(np.clip(released.weights[0, -1], -30, 30))))
        bend = max(chance * (1 - chance), 0.02)
    else:
        bend = 1.0
    second = learned.matrix.T @ (learned.matrix * (counts * bend)[:, None]) + np.diag(learned.ridges)
    moved = learned.matrix @ np.linalg.inv(second)
    return np.asarray(released.mechanism.term_std * np.sqrt((moved**2).sum(axis=1)))
