"""Select, measure, fit, draw: the rounds of a synthesis. They use true margins, and only noisy ones leave this room.

One-way margins first. Each round draws rows from the present model, scores every candidate margin c by

    ||t_c - M_c||_1 - penalty_c,    penalty_c = sqrt(2/pi) noise_std cells(c) / 2,

chooses one by the exponential mechanism among those that keep the junction tree within its limit of cells, measures it
with Gaussian noise, and fits the model again. t are the true counts, M those of the drawn rows scaled to the noisy
number of rows and rounded: a public table, so that the score moves by at most as much as t (`synthesis-score`). The
true counts enter a choice, a measurement and the final errors, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction

import numpy as np

from tacit.exact.arrays import Integers
from tacit.exact.data_classes import dataclass
from tacit.mechanisms import RoundedGaussian
from tacit.noise.source import Source, default_source
from tacit.sources.error_boundary import each
from tacit.synthesis.choices import ChoiceLog, Choices, penalty_of, scaled_margins
from tacit.synthesis.drawing import Codes, draw_rows, most_rows
from tacit.synthesis.model import Model
from tacit.synthesis.public import one_way, total_of
from tacit.synthesis.schedule import Schedule
from tacit.synthesis.trees import Margin, fitting

WARM, FIRST, LAST = 15, 60, 150
"""Steps of the fit: in each round, after the one-way margins, and at the end."""
SCORED = 50_000
"""At most so many rows are drawn to score the candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All outputs of a synthesis: noisy margins, the choices, the rows, and their noisy errors."""

    ones: tuple[Integers, ...]
    chosen: tuple[Margin, ...]
    measured: tuple[Integers, ...]
    total: int
    rows: Codes = field(repr=False)
    errors: Integers | None = None
    choices: Choices | None = None


def synthesise_margins(
    true: Mapping[Margin, Integers],
    sizes: Sequence[int],
    schedule: Schedule,
    *,
    candidates: Sequence[Margin],
    checked: Sequence[Margin] = (),
    zeros: Mapping[Margin, np.ndarray] | None = None,
    public: Mapping[Margin, Integers] | None = None,
    cells: int,
    draw: int | None = None,
    source: Source | None = None,
) -> Outcome:
    """Runs the whole synthesis; `true` is PRIVATE, and holds the flattened counts of every named margin."""
    source = source if source is not None else default_source()
    shape = tuple(sizes)
    known_ones = {i: one_way(public or {}, i) for i in range(len(shape))}
    ones = _ones(true, shape, schedule, known_ones, source)
    total = total_of(public or {}) or noisy_total(ones)
    model = Model(sizes=shape, rows=float(total), zeros=dict(zeros or {}), public=dict(public or {}))
    for i, counts in enumerate(ones):
        if schedule.ones is not None and known_ones[i] is None:
            model.measure((i,), counts.astype(np.float64), float(schedule.ones.noise_std) ** 2)
    model.arrange()
    model.fit(FIRST)
    chosen: list[Margin] = []
    measured: list[Integers] = []
    log = ChoiceLog(sizes=shape)
    allowed = list(candidates)
    for _ in each(range(schedule.rounds), "rounds of synthesis"):
        # Public: which candidates fit follows from declarations and earlier answers. What does not fit is left out for
        # good, before anything is drawn, so that no time is spent that would depend on scores. What was measured fits.
        fit = fitting(allowed, model.margins, shape, cells)
        allowed = [c for c, fits in zip(allowed, fit, strict=True) if fits]
        scored = draw_rows(model, min(total, SCORED), source)
        known = scaled_margins(scored, shape, allowed, total)
        margin = _choose(true, known, allowed, schedule, source)
        noisy = _noisy(schedule.measuring, true[margin], source)
        log.add(scored, allowed, margin, noisy, known[margin])
        shaped = noisy.reshape([shape[i] for i in margin]).astype(np.float64)
        model.measure(margin, shaped, float(schedule.measuring.noise_std) ** 2)
        model.arrange()
        model.fit(WARM)
        chosen.append(margin)
        measured.append(noisy)
    model.fit(LAST)
    drawn = min(total, most_rows(len(shape))) if draw is None else draw
    rows = draw_rows(model, drawn, source, exact=True)
    finished = scaled_margins(rows, shape, [*dict.fromkeys([*candidates, *checked])], total)
    return Outcome(
        ones=tuple(ones),
        chosen=tuple(chosen),
        measured=tuple(measured),
        total=total,
        rows=rows,
        errors=_errors(true, finished, schedule, checked, source),
        choices=log.settled(candidates, finished, schedule, total=total),
    )


def _ones(
    true: Mapping[Margin, Integers],
    sizes: tuple[int, ...],
    schedule: Schedule,
    known: Mapping[int, Integers | None],
    source: Source,
) -> list[Integers]:
    """All one-way margins: public ones as declared, the others as one vector and one release."""
    asked = [i for i in range(len(sizes)) if known[i] is None]
    found = {i: counts for i, counts in known.items() if counts is not None}
    if asked:
        assert schedule.ones is not None
        noisy = _noisy(schedule.ones, np.concatenate([true[(i,)] for i in asked]), source)
        found |= dict(zip(asked, np.split(noisy, np.cumsum([sizes[i] for i in asked])[:-1]), strict=True))
    return [found[i] for i in range(len(sizes))]


def _noisy(noise: RoundedGaussian, exact: Integers, source: Source) -> Integers:
    """The numbers with independent noise, of the distribution that the schedule states."""
    (found,) = noise.release_parts([exact], cells=_no_cells, source=source)
    return np.asarray(found).astype(np.int64)


def _no_cells() -> Integers:
    raise AssertionError("independent noise asks for no cells")


def noisy_total(ones: Sequence[Integers]) -> int:
    """The number of rows: the mean of the totals of the one-way margins, weighted by inverse variance; at least 1."""
    weights = [1 / len(counts) for counts in ones]
    mean = sum(w * int(c.sum()) for w, c in zip(weights, ones, strict=True)) / sum(weights)
    return max(1, round(mean))


def _choose(
    true: Mapping[Margin, Integers],
    known: Mapping[Margin, Integers],
    allowed: Sequence[Margin],
    schedule: Schedule,
    source: Source,
) -> Margin:
    """One of the candidates that fit, by the exponential mechanism."""
    sizes = {c: known[c].size for c in allowed}
    scores = [
        int(np.abs(true[c] - known[c]).sum()) - Fraction(penalty_of(sizes[c], schedule)) for c in allowed
    ]
    return allowed[schedule.choosing.choose(scores, source=source).index]


def _errors(
    true: Mapping[Margin, Integers],
    finished: Mapping[Margin, Integers],
    schedule: Schedule,
    checked: Sequence[Margin],
    source: Source,
) -> Integers | None:
    """||t_c - S_c||_1 of every checked margin of the finished rows, with noise (`synthesis-errors`)."""
    if schedule.errors is None:
        return None
    exact = np.array([int(np.abs(true[c] - finished[c]).sum()) for c in checked], dtype=np.int64)
    return _noisy(schedule.errors, exact, source)
