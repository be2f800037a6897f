"""A release: values with intervals, their cost, and their privacy loss. A plan has no value; a release has all
three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from tacit.curator.assignments import NoisyParts, population
from tacit.curator.cells import RULE, WORDS, csv_text, flags_of, key_columns
from tacit.curator.certificate import CIPHER, certify, json_text, with_looks
from tacit.curator.fitted import finish
from tacit.curator.functions.assignment import FunctionAssignment, PublishedFunction
from tacit.curator.functions.trees import PublishedTree, TreeAssignment
from tacit.curator.intervals import Estimate
from tacit.curator.planning import Plan, Planned
from tacit.curator.random_counts import OnRandomData
from tacit.curator.synthesised import SynthesisAssignment, synthetic_record
from tacit.errors import InvalidParameter, NoLaw
from tacit.exact.canonical import formerly, sha256
from tacit.exact.data_classes import dataclass
from tacit.guarantees import Bound, Guarantee
from tacit.ledger import Correction
from tacit.sources.columns import Date
from tacit.statistics.forms import Average, Share
from tacit.synthesis.answers import Synthetic

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


NUMBERS = ("value", "low", "high")
MEASURED = "measured"
SHORT = 1 << 20
"""The longest text of values, in characters, that is kept for the next request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The published answer: `table` has the keys, value, low and high of every cell.

    `publishable` is False for noise from a seeded source, which is for tests; `made_up` is True if the table
    declares that it describes nobody. `corrections` says whether it was withdrawn or replaced since.
    """

    planned: Planned
    noisy: NoisyParts = field(repr=False)
    estimate: Estimate = field(repr=False)
    certify: Callable[..., dict[str, Any]] = field(repr=False, compare=False)
    standing: tuple[Guarantee, Guarantee]
    replayed: bool = False
    publishable: bool = True
    made_up: bool = False
    joint: bool = False
    corrections: tuple[Correction, ...] = ()
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    words: tuple[str, ...] | None = field(default=None, repr=False)
    """The words of quality from a certified file, if the release was read from one; otherwise computed."""
    rows_text: str | None = field(default=None, repr=False)
    """The synthetic rows of a certified file, if they are read from one."""
    measured: Any = field(default=None, repr=False, compare=False)
    """The noisy measurement of every value, if the release has it beside the value."""
    _certified: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _stated: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _text: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The release's name."""
        return self.planned.name

    @property
    def spent(self) -> Bound:
        """The amount spent when it was made, in the budget's own terms; `standing` has the gamma too."""
        return self.standing[0].bound

    @property
    def remaining(self) -> Bound:
        """The amount left. For a joint release, the amount is in every holder's own ledger."""
        if self.joint:
            raise NoLaw(
                operation="what is left after a joint release",
                reason="each holder has a budget of its own",
                hint="ask each curator",
            )
        return self.standing[1].bound

    @property
    def stands(self) -> bool:
        """Whether the release was neither withdrawn nor replaced, by the ledger's state at the answer."""
        return not self.corrections

    @property
    def correction(self) -> str:
        """A sentence if the release was withdrawn or replaced; otherwise empty."""
        told = "; ".join(map(str, self.corrections))
        return f"Do not use this release: {told}." if told else ""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy loss of this release, and the protected unit."""
        return with_looks(self.planned.guarantee, self.data)

    @property
    def certificate(self) -> dict[str, Any]:
        """Mechanisms, privacy loss and assumptions of a release, with digests of the values and of itself.

        Made at the first request, since a digest of millions of cells takes seconds.
        """
        if not self._certified:
            self._certified.update(self.certify(values=self.to_csv()))
        return self._certified

    @property
    def statement(self) -> dict[str, Any]:
        """The certificate before its digests, for displays that do not need them."""
        if not self._certified and not self._stated:
            self._stated.update(self.certify(values=None))
        return self._certified or self._stated

    @property
    def columns(self) -> dict[str, Any]:
        """The cells as columns: keys, then value, low, high."""
        whole = self.planned.question.statistic.whole
        found: dict[str, Any] = dict(key_columns(self.planned.question, self.noisy))
        for name in NUMBERS:
            values = np.ravel(getattr(self.estimate, name))
            exact = whole and bool(np.all(np.isfinite(values))) and bool(np.all(np.abs(values) < 2.0**53))
            found[name] = np.rint(values).astype(np.int64) if exact else self._days(name, values)
        return found

    @property
    def file_columns(self) -> dict[str, Any]:
        """The columns as files have them: the noisy measurements, if any, come before the values."""
        held = self.columns
        if self.measured is None:
            return held
        keys = {n: c for n, c in held.items() if n not in NUMBERS}
        return {**keys, MEASURED: self.measured, **{n: held[n] for n in NUMBERS}}

    told = formerly("told", "file_columns")

    def _days(self, name: str, values: Any) -> Any:
        """Means and quantiles of dates as dates, ends of intervals rounded outwards; other values unchanged.

        Records of the first rule rounded all of them to the nearest day, and still do, since certificates contain
        them.
        """
        if not self.dated:
            return values
        statistic: Any = self.planned.question.statistic
        column: Any = self.planned.question.schema[statistic.column]
        outwards = self.data.get("quality_rule", 1) >= RULE
        turn = {"low": math.floor, "high": math.ceil}.get(name, round) if outwards else round
        return [column.label(turn(v)) if np.isfinite(v) else None for v in values]

    @property
    def dated(self) -> bool:
        """Are its values days?"""
        statistic: Any = self.planned.question.statistic
        return bool(statistic.in_column_units) and isinstance(
            self.planned.question.schema[statistic.column], Date
        )

    @property
    def quality(self) -> list[str]:
        """For each cell "good", "use with care", "too noisy to use", "no value" or "no interval" (`curator.cells`)."""
        return [WORDS[flag] for flag in flags_of(self)] if self.words is None else list(self.words)

    @property
    def table(self) -> pd.DataFrame:
        """The cells as a pandas DataFrame; its `attrs` say whether it was withdrawn or replaced."""
        import pandas as pd

        made = pd.DataFrame(self.file_columns)
        if self.corrections:
            made.attrs["corrections"] = self.correction
        return made

    @property
    def value(self) -> float:
        """The single value of a release with one cell."""
        return float(self._only("value"))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of a release with one cell."""
        return float(self._only("low")), float(self._only("high"))

    def _only(self, name: str) -> Any:
        values = np.ravel(getattr(self.estimate, name))
        if values.size != 1:
            raise InvalidParameter(
                parameter="release",
                value=f"{values.size} cells",
                must="have one cell",
                hint="read .table instead",
            )
        return values[0]

    @property
    def tree(self) -> PublishedTree:
        """The released decision tree: it carries no row, and may be evaluated anywhere, as often as anybody likes."""
        assignment = self.planned.assignment
        if not isinstance(assignment, TreeAssignment):
            raise InvalidParameter(
                parameter="release", value=self.planned.question.statistic.kind, must="be of a decision tree",
                hint="tacit.curator.functions.decision_tree(...)",
            )  # fmt: skip
        return assignment.function(self.planned.question, self.noisy, publishable=self.publishable)

    @property
    def function(self) -> PublishedFunction:
        """The released function: it carries no row, and may be evaluated anywhere, as often as anybody likes."""
        assignment = self.planned.assignment
        if not isinstance(assignment, FunctionAssignment):
            raise InvalidParameter(
                parameter="release", value=self.planned.question.statistic.kind, must="be of a function",
                hint="tacit.density(...), tacit.classifier(...) or tacit.regression_function(...)",
            )  # fmt: skip
        return assignment.function(self.planned.question, self.noisy, publishable=self.publishable)

    @property
    def synthetic(self) -> Synthetic:
        """The synthetic rows: a table that may be shared, counts with intervals, and the measurements behind them."""
        return self._synthetic(self.certificate["digest"])

    def _synthetic(self, certificate: str) -> Synthetic:
        assignment = self.planned.assignment
        if not isinstance(assignment, SynthesisAssignment):
            raise InvalidParameter(
                parameter="release", value=self.planned.question.statistic.kind, must="be of synthetic rows",
                hint="tacit.synthesis.synthetic_table([...])",
            )  # fmt: skip
        return assignment.synthetic(
            self.planned.question, self.noisy, confidence=self.planned.ask.confidence, publishable=self.publishable,
            made_up=self.made_up, certificate=certificate,
        )  # fmt: skip

    @property
    def rows_csv(self) -> str | None:
        """The synthetic rows as CSV text; None for other releases."""
        if self.rows_text is not None or not isinstance(self.planned.assignment, SynthesisAssignment):
            return self.rows_text
        return self._synthetic("").to_csv()

    def to_csv(self) -> str:
        """The cells as CSV text, with their quality; no text in it is a formula (`tacit.curator.cells`)."""
        if (held := self._text.get("csv")) is not None:
            return held
        text = csv_text({**self.file_columns, "quality": self.quality})
        if (
            len(text) <= SHORT
        ):  # its digest and its file are made of one text; a long one is not held for that
            self._text["csv"] = text
        return text

    def to_arrow(self) -> pa.Table:
        """The cells as an Arrow table, with their quality; its metadata say whether it was withdrawn or replaced."""
        import pyarrow as pa

        made = pa.table({**self.file_columns, "quality": self.quality})
        return made.replace_schema_metadata({"corrections": self.correction}) if self.corrections else made

    def to_json(self) -> str:
        """The certificate as JSON text."""
        return json_text(self.certificate)

    def __str__(self) -> str:
        from tacit.curator.text import release_text

        return release_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tacit.curator.text import release_html

        return release_html(self)


class Releases(tuple[Release, ...]):
    """The releases of one plan, in its order; also by name."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Release: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Release, ...]: ...

    def __getitem__(self, key: SupportsIndex | str | slice) -> Release | tuple[Release, ...]:
        if isinstance(key, str):
            for release in self:
                if release.name == key:
                    return release
            raise KeyError(key)
        return super().__getitem__(key)

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self))


# From a recorded answer to its releases: values, intervals and certificates are functions of plan and record alone.
#
# So a replay gives what the first answer gave, and anybody who has the ledger can make a certificate again and compare.


def ledger_part(ledger: str, recorded: bytes, made: dict[str, Any]) -> dict[str, Any]:
    """The ledger's part of a certificate: the entry that charged for it, and the digest of the recorded answer."""
    named = {"id": ledger, "sequence": made["sequence"], "time": made["time"], "digest": made["entry"]}
    return {**named, "answer": sha256(recorded)}


def _function(planned: Planned, noisy: NoisyParts) -> dict[str, Any] | None:
    assignment = planned.assignment
    if not isinstance(assignment, FunctionAssignment | TreeAssignment):
        return None
    return assignment.function(planned.question, noisy).to_dict()


def read_release(
    plan: Plan, planned: Planned, noisy: NoisyParts, made: dict[str, Any], *, ledger: dict[str, Any],
    spent: Guarantee, remaining: Guarantee, replayed: bool, said: tuple[Correction, ...] = (),
    agreed: Estimate | None = None,
) -> Release:  # fmt: skip
    """One release of a recorded answer; `agreed` has its numbers if they agree with other releases."""
    if agreed is not None:
        estimate = agreed
    elif planned.ask.sampling and isinstance(planned.question.form, Share | Average):
        estimate = population(planned.question, planned.assignment, noisy, planned.ask.confidence)
    else:
        estimate = planned.assignment.read(planned.question, noisy, planned.ask.confidence)
    assignment = planned.assignment
    told = assignment.released_facts(noisy) if isinstance(assignment, OnRandomData) else None
    if agreed is None and (planned.ask.consistent or planned.ask.public is not None):
        estimate = finish(planned.question, planned.assignment, noisy, estimate)
    synthetic = None
    if isinstance(assignment, SynthesisAssignment):
        rows = assignment.synthetic(planned.question, noisy, confidence=planned.ask.confidence)
        synthetic = cache(partial(synthetic_record, rows))
    return Release(
        planned=planned, noisy=noisy, estimate=estimate, standing=(spent, remaining), replayed=replayed,
        publishable=made["noise"] == CIPHER, made_up=made["data"].get("made_up") is True,
        joint="joint" in made["data"],
        corrections=tuple(c for c in said if c.release in ("", planned.name)), data=made["data"],
        measured=planned.question.statistic.measured(planned.question, noisy.parts),
        certify=partial(
            certify, plan, planned, ledger=ledger, made=made, function=_function(planned, noisy), told=told,
            synthetic=synthetic,
        ),
    )  # fmt: skip
