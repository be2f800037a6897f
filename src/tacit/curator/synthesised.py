"""Synthetic rows in the curator: the schedule at a price, the run on true margins, and the rows read back.

The schedule is fixed before a row is read, so that the price is that of a fixed list of events. A run that
fails after the charge says one fixed sentence and keeps no count.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.events import Event
from tacit.curator.assignments import Assignment, NoisyParts, mu_squared_within
from tacit.curator.charging import Number, Price
from tacit.curator.functions.assignment import fixed_sentence
from tacit.curator.intervals import Estimate
from tacit.errors import InvalidParameter
from tacit.exact.arrays import Integers
from tacit.exact.checks import instance
from tacit.exact.data_classes import dataclass
from tacit.exact.rounding import down
from tacit.mechanisms.base import Mechanism
from tacit.noise.source import Source, default_source
from tacit.sources.axes import Binned
from tacit.sources.expressions import Expression
from tacit.sources.margins import MarginCells
from tacit.sources.query import Cells
from tacit.statistics.base import Question
from tacit.synthesis.answers import NOT_FOR, Synthetic, not_for_of
from tacit.synthesis.choices import Choices
from tacit.synthesis.drawing import most_rows
from tacit.synthesis.public import total_of
from tacit.synthesis.rounds import Outcome, synthesise_margins
from tacit.synthesis.schedule import Schedule, calibrated, epsilon_of
from tacit.synthesis.statistic import ERRORS, MODEL_CELLS, ROUNDS, SyntheticTable, moves, synthetic_table
from tacit.synthesis.trees import cells_of

if TYPE_CHECKING:
    from tacit.curator.curator import Curator
    from tacit.curator.release import Release

LOUDEST = 1e6
"""The largest standard deviation of one-way margins for learning a table."""
NOISE_FILLED = 0.05
"""A margin is named if a larger share of its rows is in cells that noise alone may have filled."""
POST_PROCESSING = "fits, drawn rows and answers are made of the noisy numbers alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisAssignment(Assignment):
    """A schedule of choices and measurements, and the rows that are drawn from them."""

    schedule: Schedule

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Each mechanism once; `events` has the number of runs."""
        return self.schedule.mechanisms

    @property
    def events(self) -> tuple[Event, ...]:
        """The fixed list of mechanisms."""
        return self.schedule.events

    @property
    def theorems(self) -> tuple[str, ...]:
        """What the claim rests on."""
        own = (
            "synthesis-score",
            "synthesis-account",
            *(("synthesis-errors",) if self.schedule.errors else ()),
        )
        return (*dict.fromkeys(t for m in self.mechanisms for t in m.theorems), *own, "compose-profile")

    def pure(self) -> None:
        """Gaussian noise has no pure epsilon."""
        return

    def concentrated(self) -> Fraction | None:
        """The rho of all rounds."""
        return self.schedule.rho

    def mu_squared(self) -> None:
        """The exponential mechanism is not Gaussian: no mu is claimed."""
        return

    # --- running ----------------------------------------------------------------------------------------
    def run(self, question: Question, cells: Sequence[Cells], *, source: Source | None) -> NoisyParts:
        """Choices, measurements, rows; drops the counts in every case."""
        (read,) = cells
        assert isinstance(read, MarginCells)
        statistic, details = question.statistic, question.details
        assert isinstance(statistic, SyntheticTable)
        source = source if source is not None else default_source()
        try:
            outcome = fixed_sentence(
                lambda: synthesise_margins(
                    read.margins, details["sizes"], self.schedule, candidates=details["candidates"],
                    checked=details["checked"], zeros=details["zeros"], public=details["public"],
                    cells=statistic.cells, draw=statistic.draw,
                    source=source,
                )
            )  # fmt: skip
        finally:
            read.clear()
        return NoisyParts(parts=packed(outcome, seed=int(source.words(1)[0] >> np.uint64(2))))

    def read(
        self, question: Question, noisy: NoisyParts, confidence: Fraction, *, coordinates: int = 1
    ) -> Estimate:
        """The total variation of each checked margin from the table; without a measured error it is unknown."""
        made = self.synthetic(question, noisy, confidence=confidence)
        found = made.errors()
        if not found:
            count = len(question.details["shown"])
            return Estimate(value=np.full(count, np.nan), low=np.zeros(count), high=np.ones(count))
        value, low, high = np.array([found[m] for m in question.details["shown"]]).T
        # The ends use that a margin is no further off than a larger one that holds it; the measured error does not.
        low = np.minimum(low, high)
        return Estimate(value=np.clip(value, low, high), low=low, high=high)

    def synthetic(
        self, question: Question, noisy: NoisyParts, *, confidence: Fraction, publishable: bool = True,
        made_up: bool = False, certificate: str = "",
    ) -> Synthetic:  # fmt: skip
        """The rows with their measurements."""
        outcome, seed = unpacked(noisy.parts, question)
        statistic: Any = question.statistic
        return Synthetic(
            axes=question.details["axes"], schema=question.schema, schedule=self.schedule, outcome=outcome,
            checked=question.details["checked"], candidates=question.details["candidates"],
            public=question.details["public"], weight_column=statistic.weight_column,
            not_for=not_for_of(question.unit), seed=seed,
            confidence=float(confidence), publishable=publishable, made_up=made_up, certificate=certificate,
        )  # fmt: skip

    # --- words ------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """The mechanisms for a certificate, with the number of their runs."""
        s = self.schedule
        noise = [
            *(
                []
                if s.ones is None
                else [{"part": "one-way margins", "times": 1, **s.ones.noise_distribution}]
            ),
            {"part": "choices", "times": s.rounds, **s.choosing.noise_distribution},
            {"part": "chosen margins", "times": s.rounds, **s.measuring.noise_distribution},
        ]
        if s.errors is not None:
            noise.append({"part": "errors of the rows", "times": 1, **s.errors.noise_distribution})
        return {
            "noise": noise, "chosen": self.reason, "numerical_delta": 0.0, "schedule": "fixed in advance",
            "post_processing": POST_PROCESSING, "not_for": list(NOT_FOR),
        }  # fmt: skip

    def sensitivity_record(self, question: Question) -> dict[str, str]:
        """The sensitivities of one margin, all one-way margins, a score, and the errors."""
        one, count = moves(question.unit), len(question.details["ones"])
        return {
            "margin_l1": str(one.l1),
            "margin_l2_squared": str(one.l2_squared),
            "one_way_l2_squared": str(moves(question.unit, count).l2_squared if count else 0),
            "score": str(one.l1),
            "errors_l2_squared": str(len(question.details["checked"]) * one.l1**2),
        }

    def grid_record(self, question: Question) -> dict[str, str]:
        """Counts and L1 errors are whole numbers."""
        return {"counts": "1", "errors": "1"}

    @property
    def covers(self) -> str:
        """The contents of the intervals of the errors."""
        if self.schedule.errors is None:
            return "nothing: no part of the price measured the error of the rows"
        return (
            "half the L1 distance between the counts of rows and table, over the noisy number of rows, on each margin; "
            "all margins at once on each side"
        )

    def own_error(
        self, question: Question, confidence: Fraction, rows: int | None
    ) -> tuple[float | None, float | None, str] | None:
        """The distance of a bound above the measured error, for a guess of the number of rows."""
        left = question.details["left_out"]
        told = f"; {left}" if left else ""
        if self.schedule.errors is None:
            return None, None, f"no error of the rows is measured{told}"
        if rows is None:
            return None, None, f"depends on the number of rows: give rows= for a guess{told}"
        std = float(self.schedule.errors.noise_std) / (2 * rows)
        count = len(question.details["checked"])
        from scipy.special import ndtri

        each = -np.expm1(np.log(float(confidence)) / count)
        about = f"the measured total variation of {count:,} margins at {rows:,} rows, all at once{told}"
        return std * 0.7978845608028654, float(-ndtri(each)) * std, about

    @property
    def log_error(self) -> float:
        """ln of the error of a measured cell at 95%."""
        return float(np.log(1.96 * float(self.schedule.measuring.noise_std)))


# --- the record --------------------------------------------------------------------------------------------
def packed(outcome: Outcome, *, seed: int) -> dict[str, Any]:
    """An outcome as arrays of whole numbers, with compressed rows for the ledger."""
    width = 3
    chosen = np.full((len(outcome.chosen), width), -1, dtype=np.int64)
    for k, margin in enumerate(outcome.chosen):
        chosen[k, : len(margin)] = margin
    # Column by column in as few bytes as the codes need: a million rows of a hundred columns are 100 MB, not 400.
    bytes_each = int(outcome.rows.max(initial=0)).bit_length() // 8 + 1
    each = 1 if bytes_each == 1 else 2 if bytes_each == 2 else 4
    press = zlib.compressobj(6)
    body = b"".join(press.compress(column.astype(f"<u{each}").tobytes()) for column in outcome.rows.T)
    body += press.flush()
    bytes_ = np.frombuffer(body + bytes(-len(body) % 8), dtype="<i8")
    empty = np.zeros(0, dtype=np.int64)
    return {
        "total": np.array([outcome.total]),
        "seed": np.array([seed]),
        "ones": np.concatenate(outcome.ones),
        "chosen": chosen,
        "measured": np.concatenate([empty, *outcome.measured]),
        "errors": empty if outcome.errors is None else outcome.errors,
        "shape": np.array([*outcome.rows.shape, len(body), each]),
        "rows": bytes_.copy(),
        **_choices_packed(outcome.choices),
    }


def _choices_packed(choices: Choices | None) -> dict[str, Any]:
    if choices is None:
        return {}
    return {
        "choice_distances": choices.distances,
        "choice_rounds": choices.rounds,
        "choice_drifts": choices.drifts,
    }


def _choices_unpacked(parts: dict[str, Any]) -> Choices | None:
    """None for records from a time before choices were stored."""
    if "choice_rounds" not in parts:
        return None
    return Choices(
        distances=np.asarray(parts["choice_distances"]),
        rounds=np.asarray(parts["choice_rounds"]),
        drifts=np.asarray(parts["choice_drifts"]),
    )


def unpacked(parts: dict[str, Any], question: Question) -> tuple[Outcome, int]:
    """The outcome of a record, and the seed for draws inside of bins."""
    sizes = question.details["sizes"]
    chosen = tuple(tuple(int(i) for i in line if i >= 0) for line in np.asarray(parts["chosen"]))
    ends = np.cumsum([cells_of(m, sizes) for m in chosen]).tolist()
    measured = np.split(np.asarray(parts["measured"]), ends[:-1]) if chosen else []
    count, columns, length, *rest = (int(v) for v in parts["shape"])
    each = rest[0] if rest else 4
    body = np.asarray(parts["rows"]).astype("<i8").tobytes()[:length]
    size = count * columns * each
    opened = zlib.decompressobj().decompress(body, size + 1)
    rows: Any = np.frombuffer(opened, dtype=f"<u{each}").reshape(columns, count).T
    errors: Integers | None = np.asarray(parts["errors"])
    outcome = Outcome(
        ones=tuple(np.split(np.asarray(parts["ones"]), np.cumsum(sizes)[:-1])),
        chosen=chosen,
        measured=tuple(measured),
        total=int(np.asarray(parts["total"])[0]),
        rows=rows,
        errors=errors if errors is not None and errors.size else None,
        choices=_choices_unpacked(parts),
    )
    return outcome, int(np.asarray(parts["seed"])[0])


def synthetic_record(synthetic: Synthetic) -> dict[str, Any]:
    """The certificate's part about the rows: their number, their digest, and the measured margins."""
    return {
        "rows": len(synthetic.outcome.rows),
        "stand_for": synthetic.total,
        "columns": [*synthetic.columns, *([synthetic.weight_column] if synthetic.weight_column else [])],
        **({"public": [synthetic.label(m) for m in synthetic.public]} if synthetic.public else {}),
        "sha256": synthetic.csv_digest(),
        "measured": synthetic.measurements,
        "filled_by_noise": {m: round(s, 4) for m, s in synthetic.filled_by_noise.items() if s > NOISE_FILLED},
        "not_for": list(synthetic.not_for),
    }


def faults_of_record(
    assignment: SynthesisAssignment, question: Question, said: Mapping[str, Any], text: str
) -> list[str]:
    """The fields of a certificate about synthetic rows that contradict its plan, its schedule or the file of the rows.

    The rows themselves, the choices and the cells that noise filled follow from the ledger alone.
    """
    details, schedule = question.details, assignment.schedule
    statistic: Any = question.statistic
    names = [a.column for a in details["axes"]]
    columns = [*names, *([statistic.weight_column] if statistic.weight_column else [])]
    public = [" x ".join(names[i] for i in m) for m in details["public"]]
    known = {"rows", "stand_for", "columns", "sha256", "measured", "filled_by_noise", "not_for"}
    total, rows, measured = said["stand_for"], said["rows"], said["measured"]
    lines = (
        list(csv.reader(io.StringIO(text))) if any("\n" in str(v) for v in _declared_keys(question)) else None
    )
    count = len(lines) - 1 if lines is not None else text.count("\n") - 1
    drawn = statistic.draw or min(total, most_rows(len(names)))
    ones = (
        [((i,), float(schedule.ones.noise_std)) for i in details["ones"]] if schedule.ones is not None else []
    )
    allowed = {tuple(names[i] for i in m): m for m in details["candidates"]}
    chosen = [allowed.get(tuple(one["margin"])) for one in measured[len(ones) :]]
    expected = [*ones, *((m, float(schedule.measuring.noise_std)) for m in chosen if m is not None)]
    wanted = [
        {"margin": [names[i] for i in m], "cells": cells_of(m, details["sizes"]), "noise_std": std}
        for m, std in expected
    ]
    filled = said["filled_by_noise"]
    holds = {
        "words": set(said) == known | ({"public"} if public else set()),
        "columns": said["columns"] == columns and next(csv.reader(io.StringIO(text))) == columns,
        "rows": rows == count == drawn,
        "stand_for": type(total) is int and total >= 1 and total == (total_of(details["public"]) or total),
        "measured": measured == wanted and len(chosen) == schedule.rounds,
        "not_for": said["not_for"] == list(not_for_of(question.unit)),
        "public": said.get("public", []) == public,
        "filled_by_noise": all(
            n in {" x ".join(one["margin"]) for one in measured[len(ones) :]} and NOISE_FILLED <= v <= 1
            for n, v in filled.items()
        ),
    }
    return [word for word, right in holds.items() if not right]


def _declared_keys(question: Question) -> list[Any]:
    """Declared keys and names, which may have line breaks in a file."""
    axes = question.details["axes"]
    return [v for a in axes for v in (a.column, *a.labels)]


# --- the price ---------------------------------------------------------------------------------------------
def assign_synthesis(question: Question, price: Price) -> SynthesisAssignment:
    """The schedule with the least noise whose certified account keeps to the price."""
    neighbours = question.unit.neighbours
    squared = mu_squared_within(price)
    if squared is None or price.kind not in ("approximate", "concentrated"):
        raise InvalidParameter(
            parameter="price", value=price.kind, must="have a delta or be a rho, where rows are synthesised",
            hint="pay with epsilon= and delta=, or with rho=",
        )  # fmt: skip
    guess = max(float(squared) ** 0.5, 1e-6)
    if price.kind == "concentrated":
        limit = price.rho or Fraction(0)
        made = calibrated(question, lambda s: s.rho is not None and s.rho <= limit, guess)
    else:
        epsilon, delta = down(price.epsilon or 0), down(price.delta or 0)
        made = calibrated(question, lambda s: epsilon_of(s, delta, neighbours) <= epsilon, guess)
    loudest = float((made.ones or made.measuring).noise_std)
    if loudest > LOUDEST:
        raise InvalidParameter(
            parameter="price", value=str(price), must="be large enough for the one-way margins",
            hint=f"their noise would have a standard deviation of {loudest:.3g} rows",
        )  # fmt: skip
    statistic: Any = question.statistic
    reason = (
        f"{len(question.details['ones'])} one-way margins, then {made.rounds} chosen among "
        f"{len(question.details['candidates']):,} of up to {statistic.order} columns, by a fixed schedule"
    )
    return SynthesisAssignment(noise=(), price=price, reason=reason, delta=price.spent_delta, schedule=made)


def synthesise(
    curator: Curator,
    *,
    columns: str | Binned | Sequence[str | Binned],
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    key: str | None = None,
    rounds: int = ROUNDS,
    order: int = 3,
    errors: float = ERRORS,
    draw: int | None = None,
    impossible: Sequence[Mapping[str, Any]] = (),
    where: str | Expression | None = None,
    cells: int = MODEL_CELLS,
    public_margins: Sequence[Mapping[str, Any]] = (),
    weight_column: str | None = None,
) -> Synthetic:
    """Synthetic rows of a curator's table: `synthesise(curator, columns=["age", "sex"], epsilon=1, delta=1e-6)`.

    Charges the ledger before a row is read. The same request is answered from the record, free. Other words are those
    of `synthetic_table`, which `curator.release` takes for a release with its certificate.
    """
    from tacit.curator.curator import Curator as Kind

    instance(
        "curator", curator, Kind, must="be a Curator", hint="tacit.synthesise(survey, columns=[...], ...)"
    )
    if epsilon is None and rho is None:
        raise InvalidParameter(
            parameter="epsilon",
            value=None,
            must="be given: there is no default price",
            hint="with delta, or rho",
        )
    asked = synthetic_table(
        columns,
        rounds=rounds,
        order=order,
        errors=errors,
        draw=draw,
        impossible=impossible,
        where=where,
        cells=cells,
        public_margins=public_margins,
        weight_column=weight_column,
    )
    made: Release = curator.release(asked, epsilon=epsilon, delta=delta, rho=rho, key=key)
    return made.synthetic
